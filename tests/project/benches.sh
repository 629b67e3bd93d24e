#!/bin/bash
# Every measuring program runs to its end, shortly, also under the sanitizers: what is measured is not looked at here. The one that
# measures GPUs does where the stand-in plays one.
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
gpus=0
if [ -x "$BUILD/bench/gpu_exchange" ] && STANDIN_GPUS=1 "$TRAINER" devices | grep -q '^gpu:0 .*stand-in'; then
    gpus=1
    STANDIN_GPUS=1 runs gpu_exchange 2 1000 5000
fi
for source in "$root"/bench/*.c; do
    name=$(basename "$source" .c)
    [[ $name == gpu_* && $gpus -eq 0 ]] || [[ " $ran " == *" $name "* ]] || fail "bench/$name.c is not run here"
done

# No stage of the checks leaves this test out.
! grep -n 'project/benches' "$root/.ci/run" "$root/tests/verify" "$tests/stages.sh" || fail "a stage runs without the measuring programs"

[ $failures -eq 0 ]
