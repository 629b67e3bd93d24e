#!/bin/bash
# Weights and gradients move while workers compute: over TCP and encrypted, with one parameter server, with two
# and mirrored, a run has the bits of one process, as it has with --overlap=off. That parts of gradients have
# gone is seen by the bytes of their headers. Where a gradient is clipped, added up in micro-batches,
# compressed or stepped by its worker, none do.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

task="--dataset=digits --model=mlp:hidden=1000-300 --batch=32 --epochs=1 --seed=3 --strategy=sync --quiet"
task+=" --kernels=reference --no-test --timeout=20"
here="--overlap=on --threads=1 --kernels=reference --quiet --timeout=20 --no-shared-memory"

cluster() { # parameter servers, options of the run, options of the workers: trains in run/
    local servers=$1 i names=''
    new_cluster "$servers" 2
    for ((i = servers - 1; i >= 0; i--)); do
        start ps$i "$TRAINER" --job=ps --task=$i $hosts $task --no-shared-memory $2 --replace \
            --out=$([ $i -eq 0 ] && echo run || echo elsewhere)
        names+=" ps$i"
    done
    for i in 0 1; do
        if [ "$servers" -gt 0 ]; then
            start w$i "$TRAINER" --job=worker --task=$i $hosts $here $3
        else
            start w$i "$TRAINER" --job=worker --task=$i $hosts $task $here $2 $3 --replace --out=run
        fi
        names+=" w$i"
    done
    ends 0 $names
}
alone() { # options
    "$TRAINER" $task --devices=cpu:0,cpu:1 --threads=1 $1 --replace --out=alone >out 2>&1 || fail "$(cat out)"
}
expect_bits() { # words
    cmp -s alone/model.safetensors run/model.safetensors || fail "$1: not the bits of one process"
}
received() { python3 -c 'import json; print(json.load(open("run/summary.json"))["wire_received"])'; }
expect_parts() { # words, servers, options of the run, whether there are some
    local with
    cluster $2 "$3" ''
    expect_bits "$1"
    with=$(received)
    cluster $2 "$3" --overlap=off
    expect_bits "$1, --overlap=off"
    if [ $4 -eq 1 ]; then
        [ "$with" -gt "$(received)" ] || fail "$1: $with bytes, $(received) without overlap"
    else
        [ "$with" -eq "$(received)" ] || fail "$1: $with bytes, expected $(received), as without overlap"
    fi
}

alone ''
expect_parts 'one server' 1 '' 1
cluster 2 '' ''
expect_bits 'two servers'
cluster 0 '' ''
expect_bits mirrored
TRAINER_SECRET=$(printf "%064d" 7) cluster 1 '' ''
expect_bits encrypted

alone --clip=0.5
expect_parts clipped 1 --clip=0.5 0
alone --microbatches=2
expect_parts 'in micro-batches' 1 --microbatches=2 0
alone --strategy=local-sgd:every=2
expect_parts 'stepped by workers' 1 --strategy=local-sgd:every=2 0
cluster 1 --compress=1-bit ''
mv run alone.1
rm -rf alone && mv alone.1 alone
cluster 1 --compress=1-bit --overlap=off
expect_bits compressed

[ $failures -eq 0 ]
