#!/bin/bash
# What a training step asks of a GPU, counted by the stand-in of tests/standin, for every model, precision and
# strategy: no more than budgets.txt beside this file says, and no product of matrices that is one number. And
# what opening a run asks: no contest of algorithms twice. Every model is counted in fp32 and bf16 under sync,
# one with convolutions in tf32, too, every strategy with mlp; BUDGETS=all: each with each. With BUDGETS it
# prints what was counted. Skips itself on real GPUs.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no GPU here that counts"; exit 77; }
export STANDIN_COUNTS=1 STANDIN_DRY=1
limit=120 # of a run; all of them run at once, and what is built with a sanitizer is slower
! grep -q -e -fsanitize= "$BUILD/flags" || limit=600

# What is counted in a run of so many steps, and all around them: "recorded N queued N ...".
counts() { # steps, options...
    local steps=$1 at=$scratch/${part:-run}
    shift
    timeout $limit "$TRAINER" --quiet --no-test --deterministic --checkpoint-every=0 \
        --dataset=digits:take=$((steps * 10)) --batch=10 --epochs=1 --replace --out="$at" --devices=gpu:0 \
        --homes=gpu "$@" >/dev/null 2>"$at.err" ||
        echo "$*: exit code $?: $(cat "$at.err")" >>"$scratch/failed"
    sed -n 's/^stand-in: recorded/recorded/p' "$at.err"
}

# Of two runs the difference is that of 40 steps, in which all has happened that happens every few, or of 8 of
# sync, all alike: "MODEL PRECISION STRATEGY recorded N ...", per step.
step() { # model, precision, strategy
    local few=16 more=40
    [ "$3" != sync ] || few=4 more=8
    {
        counts $few --model="$1" --precision="$2" --strategy="$3"
        counts $((few + more)) --model="$1" --precision="$2" --strategy="$3"
    } |
        awk -v name="$1 $2 $3" -v more=$more '
            { for (i = 1; i < NF; i += 2) { name_of[i] = $i; n[NR, i] = $(i + 1) } }
            END {
                printf "%s", name
                for (i = 1; i in name_of; i += 2) printf " %s %.4g", name_of[i], (n[2, i] - n[1, i]) / more
                print ""
            }'
}

models=$("$TRAINER" list models | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p' | grep -vx layers)
strategies=$("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
for model in $models; do # mostly each of them waits
    for precision in fp32 tf32 bf16; do
        part=$model-$precision
        for strategy in $strategies async-lockfree:apply=worker; do
            case ${BUDGETS:-}/$part-$strategy in
            all/* | */mlp-fp32-* | *-fp32-sync | *-bf16-sync | */lenet-tf32-sync) ;;
            *) continue ;;
            esac
            step "$model" $precision "$strategy"
        done >"$scratch/found-$part" &
    done
done
wait
cat "$scratch"/found-* >"$scratch/found"
part=run
[ -z "${BUDGETS:-}" ] || cat "$scratch/found"
[ ! -e "$scratch/failed" ] || fail "$(cat "$scratch/failed")"

awk '
    # What a model has a line of its own for, or all of them.
    function own(most, by) { return (by "/" $1) in most ? most[by "/" $1] : most[by] }
    function over(what, count, most) {
        if (!(most != "" && count <= most + 0.01)) {
            print $1 ", " $2 ", " $3 ": " count " " what " per step, expected " \
                (most == "" ? "a line for it" : most " at most")
            bad = 1
        }
    }
    /^#/ { next }
    FNR == NR && $1 == "graph" { recorded[$2, $3] = $4; converts[$2, $3] = $5; next }
    FNR == NR { queued[$2] = $3; marks[$2] = $4; launches[$2] = $5; waits[$2] = $6; calls[$2] = $7; next }
    {
        for (i = 4; i < NF; i += 2) n[$i] = $(i + 1)
        over("recorded", n["recorded"], recorded[$1, $2])
        over("converts", n["converts"], converts[$1, $2])
        over("products that are one number", n["scalars"], 0)
        over("queued", n["queued"], own(queued, $3))
        over("marks", n["marks"], own(marks, $3))
        over("launches", n["launches"], own(launches, $3))
        over("waits", n["waits"], own(waits, $3))
        over("calls", n["calls"], own(calls, $3))
    }
    END { exit bad }' "$(dirname "$0")/budgets.txt" "$scratch/found" || failures=$((failures + 1))

# Workers of one GPU, and whoever asks whether it can, share what was found out once; two GPUs share nothing.
contests() { # options...
    counts 16 --model=alexnet --precision=bf16 "$@" | sed 's/.* contests //'
}
one=$(contests)
two=$(contests --devices=gpu:0,gpu:0)
apart=$(contests --devices=gpu:0,gpu:1)
[ "${one:-0}" -gt 10 ] && [ "$two" -eq "$one" ] || fail "contests: $one of one worker, $two of two on its GPU"
[ "$apart" -gt "$one" ] && [ "$apart" -le $((2 * one)) ] || fail "contests: $one on one GPU, $apart on two"
[ $failures -eq 0 ]
