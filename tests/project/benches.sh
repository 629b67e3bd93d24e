#!/bin/bash
# Every measuring program runs to its end, shortly: what is measured is not looked at here.
set -u
ran=''
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
runs() { # program, arguments...
    local program=$BUILD/bench/$1
    ran+=" $1"
    shift
    "$program" "$@" >"$scratch/out" 2>"$scratch/err" || fail "$program $*: exit code $?: $(tail -n 5 "$scratch/err")"
    [ -s "$scratch/out" ] || fail "$program $*: printed nothing"
}
runs step mlp 64 4 fp32
runs input 4
runs exchange 2 1000
runs wire 1
for source in "$root"/bench/*.c; do
    name=$(basename "$source" .c)
    [ "$name" = gpu_exchange ] || [[ " $ran " == *" $name "* ]] || fail "bench/$name.c is not run here" # the one is run by cuda/check
done

[ $failures -eq 0 ]
