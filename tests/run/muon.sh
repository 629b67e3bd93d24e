#!/bin/bash
# --optimizer=muon, which steps whole matrices: under every strategy that does not step the same weights by
# several workers at once; the same bits in any number of shards, from a checkpoint, and from processes, also
# where these step their own weights.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

few="--dataset=digits --model=mlp:hidden=40-20 --batch=32 --threads=1 --kernels=reference --timeout=30 \
    --quiet"
muon="--optimizer=muon:weight-decay=0.1 --schedule=linear:warmup=0.1 --average=0.9"

# --- every strategy ---
for strategy in $(names_of strategies); do
    [ "$strategy" = dc-asgd ] && continue # below
    [ "$strategy" = sharded ] && whole=--shard-by=tensor || whole='' # that one likes several shards
    run 0 $few $muon --strategy="$strategy" $whole --devices=cpu:0,cpu:1 --epochs=20 --replace --out=one
    python3 -c 'import json; exit(not json.load(open("one/summary.json"))["test_accuracy"] > 0.8)' ||
        fail "$strategy: $(grep test_accuracy one/summary.json)"
done
refused_with 2 \
    '--optimizer=muon steps whole matrices, --strategy=async-lockfree:apply=worker lets workers .*: '\
'expected another optimizer, .*' \
    --optimizer=muon --strategy=async-lockfree:apply=worker
refused_with 2 \
    '--optimizer=muon steps whole matrices, --strategy=dc-asgd corrects gradients weight by weight: '\
'expected .*' \
    --optimizer=muon --strategy=dc-asgd
refused_with 2 \
    '--optimizer=muon steps whole matrices, but dense1/kernel is cut by the shards: '\
'expected --shard-by=tensor, or fewer shards' \
    --optimizer=muon --shards=3

# --- the same bits ---
few+=" --dataset=digits:take=640 --epochs=4 --replace"
for strategy in sync local-sgd:every=3; do
    run 0 $few $muon --strategy=$strategy --devices=cpu:0,cpu:1 --out=one
    run 0 $few $muon --strategy=$strategy --devices=cpu:0,cpu:1 --out=shards --shards=4 --shard-by=tensor
    same_weights "$strategy in four shards" one shards
    run 0 $few $muon --strategy=$strategy --devices=cpu:0,cpu:1 --out=half --stop-after=2
    run 0 --resume=half --devices=cpu:0,cpu:1 --threads=1 --kernels=reference --quiet
    same_weights "$strategy from a checkpoint" one half
    for servers in 1 2 0; do
        [ "$servers" -eq 1 ] && cut='' || cut=--shard-by=tensor
        [ "$servers" -ge 1 ] || [ $strategy = sync ] || continue # a mirrored cluster has no local-sgd
        new_cluster "$servers" 2
        names=''
        for ((i = servers - 1; i >= 0; i--)); do
            start ps$i "$TRAINER" --job=ps --task=$i $hosts $few $muon $cut \
                --strategy=$strategy "--out=$([ $i -eq 0 ] && echo run || echo elsewhere)"
            names+=" ps$i"
        done
        for i in 0 1; do
            mine=''
            [ "$servers" -ge 1 ] || mine="$few $muon $cut --strategy=$strategy --out=run"
            start w$i "$TRAINER" --job=worker --task=$i $hosts --devices=cpu:0 --threads=1 \
                --kernels=reference --quiet --timeout=30 $mine
            names+=" w$i"
        done
        ends 0 $names
        same_weights "$strategy, $servers parameter servers" one run
    done
done
[ $failures -eq 0 ]
