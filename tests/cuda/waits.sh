#!/bin/bash
# How often a training step waits for a GPU, whole runs counted by the stand-in of tests/standin: every
# strategy, shards on the GPU and in the host's memory, images, and a prefetcher. Skips itself on real GPUs.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no GPU here that counts"; exit 77; }
export STANDIN_WAITS=1

# Waits of a run of so many steps with all that is around them: of two runs, the difference is the steps'. A
# checkpoint waits, too, so there is only the last: where a run takes longer than the time between them, it
# would have more.
waits() { # steps, options...
    local steps=$1 code
    shift
    timeout 300 "$TRAINER" --quiet --deterministic --checkpoint-every=0 \
        --dataset=digits:take=$((steps * 10)) --batch=10 --epochs=1 --replace --out="$scratch/run" "$@" \
        >/dev/null 2>"$scratch/err"
    code=$?
    grep -q "\"steps\": $steps," "$scratch/run/summary.json" ||
        fail "$*: $(grep '"steps"' "$scratch/run/summary.json"), expected $steps" >&2
    sed -n 's/^stand-in: \([0-9]*\) waits$/\1/p' "$scratch/err"
    [ $code -eq 0 ] || fail "$*: exit code $code: $(cat "$scratch/err")" >&2
}

expect() { # waits that 40 steps make, options...
    local expected=$1 few many found
    shift
    few=$(waits 16 "$@")
    many=$(waits 56 "$@")
    found=$((${many:-0} - ${few:-0}))
    # Threads that start may wait some times more or less, by who comes first.
    [ $((found - expected)) -le 3 ] && [ $((expected - found)) -le 3 ] ||
        fail "$*: 40 steps waited $found times, expected $expected"
}

# On the GPU the gradient is waited for, or a worker's own step behind it; a server waits for each update, one
# who ends a round of `backup` for it, `local-sgd` every 8 steps for the mean and for its copies of it, and
# `easgd` every 10 for an exchange.
strategies=$("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
for strategy in $strategies async-lockfree:apply=worker; do
    case $strategy in
    sync | async-lockfree:apply=worker) at_home=40 at_host=40 ;;
    async-apply | async-locked | async-lockfree | ssp) at_home=80 at_host=0 ;;
    dc-asgd) at_home=120 at_host=0 ;; # and for the copy of the weights beside them
    sharded) at_home=120 at_host=0 ;;
    backup | adasync) at_home=80 at_host=0 ;;
    local-sgd) at_home=50 at_host=40 ;;
    easgd) at_home=44 at_host=40 ;;
    gossip) at_home=80 at_host=40 ;; # and for the copy that it computes on
    *) fail "$strategy: say how often it waits" ;;
    esac
    # By two, where each counts its own. Under easgd, how often they meet depends on who takes how many steps.
    # That one alone does not wait more often, budgets.sh says.
    devices=gpu:0,gpu:0
    case $strategy in backup | adasync | local-sgd | gossip | easgd) devices=gpu:0 ;; esac
    expect $at_home --model=mlp:hidden=20 --devices=$devices --homes=gpu --strategy="$strategy"
    # In the host's memory weights come with one wait when there is news, and gradients go with one, which is
    # that of the batch.
    [ $at_host -eq 0 ] ||
        expect $at_host --model=mlp:hidden=20 --devices=gpu:0 --homes=cpu --strategy="$strategy"
done
expect 80 --model=mlp:hidden=20 --devices=gpu:0 --homes=cpu --strategy=async-apply

# Nobody waits for a batch, but a prefetcher, beside the worker.
expect 40 --model=alexnet --devices=gpu:0 --homes=gpu
expect 40 --model=mlp:hidden=20 --devices=gpu:0 --homes=gpu --average=0.9 --optimizer=adam
expect 80 --model=mlp:hidden=20 --devices=gpu:0 --homes=gpu --prefetch=2

# So there is none unless it is asked for, however large a batch is.
for prefetch in auto 0 1; do
    timeout 120 "$TRAINER" --quiet --deterministic --checkpoint-every=0 --dataset=digits --model=softmax \
        --batch=1024 --epochs=10 --replace --out="$scratch/run" --devices=gpu:0 --homes=gpu \
        --prefetch=$prefetch >/dev/null 2>"$scratch/$prefetch" ||
        fail "--prefetch=$prefetch: exit code $?: $(cat "$scratch/$prefetch")"
done
cmp -s "$scratch/auto" "$scratch/0" && ! cmp -s "$scratch/auto" "$scratch/1" ||
    fail "a batch of 256 KB: $(cat "$scratch/auto"), expected $(cat "$scratch/0"), not $(cat "$scratch/1")"

# And though it is looked at later, the loss of a row is that of its step: the CPU's, up to rounding.
losses() { # options...
    timeout 120 "$TRAINER" --quiet --dataset=digits:take=160 --model=mlp:hidden=20 --batch=10 --epochs=1 \
        --replace --out="$scratch/run" "$@" >/dev/null 2>&1 || fail "$*: exit code $?"
    cut -d, -f5,6 "$scratch/run/steps.csv"
}
for strategy in sync local-sgd async-lockfree:apply=worker; do
    losses --devices=cpu:0 --strategy=$strategy >"$scratch/cpu"
    losses --devices=gpu:0 --strategy=$strategy >"$scratch/gpu"
    paste -d, "$scratch/cpu" "$scratch/gpu" | awk -F, \
        'NR > 1 { d = $2 - $4; if ($1 != $3 || d * d > 1e-6) bad = 1 } END { exit bad || NR != 17 }' ||
        fail "$strategy: losses differ: $(paste -d, "$scratch/cpu" "$scratch/gpu" | head -n 4 | tr '\n' ' ')"
done
[ $failures -eq 0 ]
