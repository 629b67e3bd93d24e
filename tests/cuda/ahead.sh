#!/bin/bash
# A worker that is alone with its GPU queues a step before it has waited for the one before: the stand-in,
# which does nothing before somebody waits for it, counts that. What is learnt, and each row of steps.csv, is
# as if it had waited; so is what is said of a run that diverges. (A gradient that is clipped is waited for.)
# Skips itself where no GPU is played.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no GPU here that counts"; exit 77; }
need python3

steps() { # folder, options...: one after the other; how many were waited for with the next one queued
    local folder=$1
    shift
    STANDIN_COUNTS=1 "$TRAINER" --quiet --no-test --replace --checkpoint-every=0 --log-every=1 \
        --deterministic --devices=gpu:0 --homes=gpu --batch=16 --epochs=2 --out="$scratch/$folder" "$@" \
        >"$scratch/out" 2>"$scratch/err" || fail "$*: exit code $?: $(cat "$scratch/err")"
    sed -n 's/^stand-in: .* ahead \([0-9]*\) .*/\1/p' "$scratch/err"
}
rows() { cut -d, -f2-8,14-15 "$scratch/$1/steps.csv"; }
weights() { python3 "$tests/gpu_parity.py" --sum "$scratch/$1/model.safetensors"; }
same() { # options...: the last step of each of 2 epochs is waited for alone
    local ahead waited
    ahead=$(steps ahead "$@")
    waited=$(steps waited "$@" --clip=1e9)
    [ "$ahead" -eq $((2 * (count - 1))) ] && [ "$waited" -eq 0 ] ||
        fail "$*: $ahead steps ahead, expected $((2 * (count - 1))); $waited where they are waited for"
    [ "$(rows ahead | wc -l)" -eq $((2 * count + 1)) ] && [ "$(rows ahead)" = "$(rows waited)" ] ||
        fail "$*: other rows: $(diff <(rows ahead) <(rows waited) | head -n 5)"
    [ "$(weights ahead)" = "$(weights waited)" ] || fail "$*: other weights"
}

count=20
same --model=mlp:hidden=20 --dataset=digits:take=320 --microbatches=4
same --model=mlp:hidden=20 --dataset=digits:take=320 --label-smoothing=0.1 --optimizer=adam:rate=0.01 \
    --average=0.99
count=5 same --model=lenet --dataset=digits:take=80
same --model=mlp:hidden=20 --dataset=digits:take=313 # the last batch of an epoch goes on in the next one

# Who shares the GPU, has the weights elsewhere or a thread that builds its batches is waited for.
for options in '--devices=gpu:0,gpu:0' '--homes=cpu' '--strategy=async-apply' '--strategy=local-sgd' \
    '--prefetch=1'; do
    # shellcheck disable=SC2086 # several
    [ "$(steps other --model=mlp:hidden=20 --dataset=digits:take=320 $options)" -eq 0 ] ||
        fail "$options: it goes ahead"
done

diverge() { # options...
    "$TRAINER" --quiet --replace --dataset=digits --devices=gpu:0 --homes=gpu \
        --deterministic --out="$scratch/diverge" "$@" 2>&1 >/dev/null
}
said=$(diverge --model=cnn --optimizer=sgd:rate=1e6)
[[ $said == *"the loss is nan at step "* ]] && [ "$said" = \
    "$(diverge --model=cnn --optimizer=sgd:rate=1e6 --clip=1e9)" ] || fail "a run that diverges: $said"
[ $failures -eq 0 ]
