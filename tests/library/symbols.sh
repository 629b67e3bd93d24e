#!/bin/bash
# What libtrainer.so and libtrainer.a show to a program is what src/library/symbols.map lists, and that is
# what trainer.h declares.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need nm
library=$BUILD/library

sed -n 's/^ *\(trainer_[a-z_0-9]*\);$/\1/p' "$root/src/library/symbols.map" | sort >"$scratch/listed"
[ -s "$scratch/listed" ] || fail "no symbols in src/library/symbols.map"
same() { # of what; its names are on standard input
    sort -u | diff "$scratch/listed" - >"$scratch/diff" ||
        fail "$1: < only in symbols.map, > only there: $(grep '^[<>]' "$scratch/diff" | tr '\n' ' ')"
}
# Comments are cut out, and types.
tr '\n' ' ' <"$root/src/library/trainer.h" | sed 's:/\*[^*]*\**\([^/*][^*]*\*\**\)*/::g' |
    sed 's/typedef [^;]*;//g' | grep -oE '\btrainer_[a-z_0-9]+\(' | tr -d '(' | same trainer.h
nm -D --defined-only "$library/libtrainer.so" | awk '$2 != "A" {print $3}' | sed 's/@@TRAINER_0$//' |
    same libtrainer.so
nm --defined-only --extern-only "$library/libtrainer.a" | awk 'NF == 3 {print $3}' | same libtrainer.a
[ "$(objdump -p "$library/libtrainer.so" | awk '$1 == "SONAME" {print $2}')" = libtrainer.so.0 ] ||
    fail "another soname"

[ $failures -eq 0 ]
