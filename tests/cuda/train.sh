#!/bin/bash
# Training on GPUs, real ones or those that a stand-in of tests/standin plays: first gradients beside the
# CPU's, every strategy with two replicas on one GPU, on two, and mixed with a CPU, wherever the shards live;
# what must leave the same bits; checkpoints from one device to another; operations that go to the CPU; a GPU
# that fails. Skips itself in a build without GPUs, and where there is none.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
"$TRAINER" devices | grep -q '^gpu:0 ' || { echo "no GPU here"; exit 77; }
flags=$(cat "${BUILD:-build}/flags" 2>/dev/null)
case $flags in
*-fsanitize=thread*) echo "in place on a GPU is a race, and the stand-in's kernels are threads" && exit 77 ;;
esac
need python3
second=gpu:1
"$TRAINER" devices | grep -q '^gpu:1 ' || second=gpu:0
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --epochs=3"

train() { # name of the run, options...
    local name=$1 code replace=--replace
    shift
    [[ " $*" != *" --resume="* ]] || replace='' # the run goes on
    timeout 120 "$TRAINER" --quiet $replace --out="$scratch/$name" "$@" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 0 ] || fail "$name ($*): exit code $code: $(cat "$scratch/err")"
    [ -s "$scratch/err" ] && fail "$name ($*): wrote to standard error: $(cat "$scratch/err")"
}

accuracy() { sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$scratch/$1/summary.json"; }
value() { sed -n "s/.*\"$2\": \([0-9.-]*\).*/\1/p" "$scratch/$1/summary.json"; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
weights() { python3 "$tests/gpu_parity.py" --sum "$scratch/$1/model.safetensors"; }
same() { [ "$(weights "$1")" = "$(weights "$2")" ] || fail "$1 and $2 differ, line ${BASH_LINENO[0]}"; }

# First gradients. The stand-in rounds as the CPU does; a GPU adds in another order.
parity() { # model, dataset, batch, bound, options...
    local model=$1 dataset=$2 batch=$3 bound=$4
    shift 4
    python3 "$tests/gpu_parity.py" "$TRAINER" "$model" "$dataset" "$batch" gpu:0 --bound "$bound" "$@" \
        >"$scratch/parity" ||
        fail "first gradients of $model $*: $(tail -n 4 "$scratch/parity")"
}
parity mlp digits 32 1e-4
parity mlp:hidden=20-20,activation=relu iris 7 1e-4
parity mlp digits 32 1e-2 --precision=tf32
parity cnn digits 8 1e-4
parity lenet digits 5 1e-4
parity mlp digits:pad=1,crop=8,flip=1,rotate=20,contrast=0.5-1.5,mixup=0.4,cutmix=1 32 1e-4
parity alexnet digits 8 1e-4
parity mlp digits 32 1e-2 --precision=bf16
parity alexnet digits 32 4e-2 --precision=bf16 # images of 8x8: the CPU's bf16 is 2e-2 off here, too

# One worker, exactly what the CPU does, up to rounding: nearly the same accuracy after three epochs.
# shellcheck disable=SC2086
train cpu $small --devices=cpu:0
# shellcheck disable=SC2086
train one $small --devices=gpu:0
at_least "$(accuracy one)" "$(awk -v a="$(accuracy cpu)" 'BEGIN { print a - 0.03 }')" ||
    fail "one GPU: accuracy $(accuracy one), the CPU's is $(accuracy cpu)"

# Every strategy and variant, wherever replicas and shards are. `rounds` of exactly-once promises are counted
# by the store, as on the CPU.
strategies=$("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
for strategy in $strategies async-lockfree:apply=worker async-lockfree:apply=worker,adds=atomic; do
    for devices in gpu:0,gpu:0 "gpu:0,$second" gpu:0,cpu:0; do
        for homes in cpu gpu; do
            # shellcheck disable=SC2086
            train run $small --devices=$devices --strategy=$strategy --homes=$homes --shards=2
            [ "$(value run updates)" -gt 0 ] || fail "$strategy on $devices, homes=$homes: no updates"
            at_least "$(accuracy run)" 0.3 ||
                fail "$strategy on $devices, homes=$homes: accuracy $(accuracy run)"
        done
    done
done

# One strategy after another: what workers and shards have on their devices is what each needs.
# shellcheck disable=SC2206
row=($strategies async-lockfree:apply=worker)
where=("gpu:0,gpu:0 --homes=gpu" "gpu:0,$second --homes=gpu --shards=2" "gpu:0,cpu:0 --homes=cpu"
    "gpu:0,$second --homes=cpu")
for ((i = 0; i < ${#row[@]}; i++)); do
    for step in 1 2 4; do
        phased="${row[i]} until epoch 1; ${row[(i + step) % ${#row[@]}]} until epoch 2; ${row[i]}"
        # shellcheck disable=SC2086
        train run $small --devices=${where[(i + step) % ${#where[@]}]} --strategy="$phased"
        [ "$(grep -o '"from_epoch"' "$scratch/run/summary.json" | wc -l)" -eq 3 ] ||
            fail "$phased: not three strategies"
        at_least "$(accuracy run)" 0.3 || fail "$phased: accuracy $(accuracy run)"
    done
done
for homes in cpu gpu; do
    # shellcheck disable=SC2086
    train a $small --devices="gpu:0,$second" --deterministic --average=0.99 --homes=$homes \
        --strategy='sync until epoch 1; local-sgd:every=3 until epoch 2; sync'
    # shellcheck disable=SC2086
    train b $small --devices="gpu:0,$second" --deterministic --average=0.99 --homes=$homes --strategy=sync \
        --stop-after=1
    train b --resume="$scratch/b" --devices="gpu:0,$second" --deterministic --homes=$homes \
        --strategy=local-sgd:every=3 --stop-after=2
    train b --resume="$scratch/b" --devices="gpu:0,$second" --deterministic --homes=$homes --strategy=sync
    same a b
done

# Steps together leave the same bits in every run, and wherever the shards live; so does a serial run
# in place.
for optimizer in sgd:rate=0.1 nesterov:rate=0.05 adam muon; do
    # shellcheck disable=SC2086
    train a $small --devices=gpu:0,gpu:0 --deterministic --optimizer=$optimizer --average=0.99
    # shellcheck disable=SC2086
    train b $small --devices=gpu:0,gpu:0 --deterministic --optimizer=$optimizer --average=0.99
    same a b
    # shellcheck disable=SC2086
    train c $small --devices=gpu:0,gpu:0 --deterministic --optimizer=$optimizer --average=0.99 --homes=cpu
    # shellcheck disable=SC2086
    train d $small "--devices=gpu:0,$second" --deterministic --optimizer=$optimizer --average=0.99
    same a d
    at_least "$(accuracy c)" "$(awk -v a="$(accuracy a)" 'BEGIN { print a - 0.05 }')" ||
        fail "$optimizer: accuracy $(accuracy a), homes=cpu $(accuracy c)"
done
# Mixed examples, built just before they are needed or ahead.
mixed="--dataset=digits:take=320,rotate=10,mixup=0.4,cutmix=1 --model=mlp:hidden=20 --batch=16 --epochs=3 \
    --devices=gpu:0,$second --deterministic"
# shellcheck disable=SC2086
train a $mixed --prefetch=0
# shellcheck disable=SC2086
train b $mixed --prefetch=3
same a b
# However many GPUs the shards are spread over; from a checkpoint of one GPU on several.
gpus="gpu:0,$second,gpu:0,$second"
"$TRAINER" devices | grep -q 'stand-in' && export STANDIN_GPUS=4 && gpus=gpu:2,gpu:0,gpu:3,gpu:1
for strategy in sync local-sgd:every=3; do
    # shellcheck disable=SC2086
    train a $small --devices=gpu:0,gpu:0,gpu:0,gpu:0 --deterministic --average=0.99 --strategy=$strategy
    for shards in 1 5; do
        # shellcheck disable=SC2086
        train b $small --devices=$gpus --deterministic --average=0.99 --strategy=$strategy --shards=$shards
        same a b
    done
    # shellcheck disable=SC2086
    train b $small --devices=gpu:0,gpu:0,gpu:0,gpu:0 --deterministic --average=0.99 --strategy=$strategy \
        --epochs=1
    train b --resume="$scratch/b" --devices=$gpus --shards=3 --epochs=3 --deterministic
    same a b
done
# The mean of a round by the GPUs together: nearly what copies make of it, if the GPUs compute the same bits.
together() { # shards, devices, options...
    local shards=$1 devices=$2
    shift 2
    # shellcheck disable=SC2086
    train a $small --devices=$devices --shards=$shards --links=copies "$@"
    # shellcheck disable=SC2086
    train b $small --devices=$devices --shards=$shards --links=collective "$@"
    at_least 0.03 \
        "$(awk -v a="$(accuracy a)" -v b="$(accuracy b)" 'BEGIN { print (a > b ? a - b : b - a) }')" ||
        fail "the mean of a round on $devices: accuracy $(accuracy a) by copies, $(accuracy b) together"
}
nccl=$("$TRAINER" --quiet --explain --dataset=digits:take=32 --epochs=1 --devices=gpu:0 --links=collective \
    --out="$scratch/nccl" 2>&1 | sed -n 's/^mean of a round: //p')
case $nccl in
NCCL*)
    together 1 gpu:0
    [ "$second" = gpu:0 ] || together 1 gpu:1,gpu:0
    [ "$second" = gpu:0 ] ||
        together 1 gpu:1,gpu:0 --strategy='sync until epoch 1; local-sgd:every=3 until epoch 2; sync'
    [ -z "${STANDIN_GPUS:-}" ] || together 5 "$gpus" --average=0.99 --clip=0.5
    [ -z "${STANDIN_GPUS:-}" ] || together 3 "$gpus" --batch=13 ;; # the last round is not whole
esac
unset STANDIN_GPUS
# The homes are said: each GPU of the workers once, in their order, no more than there are shards.
homes() { # words expected, options...
    local expected=$1
    shift
    # shellcheck disable=SC2086
    "$TRAINER" $small --epochs=1 --replace --out="$scratch/said" "$@" >"$scratch/out" 2>"$scratch/err" ||
        fail "$*: $(cat "$scratch/err")"
    sed -i ':a; N; $!ba; s/\n  */ /g' "$scratch/out" # a long line is folded
    grep -q -- "$expected" "$scratch/out" || fail "$*: expected '$expected': $(cat "$scratch/out")"
}
homes ', 3 shards$' --devices=gpu:0,gpu:0 --shards=3 --homes=cpu
homes ', 3 shards$' --devices=gpu:0,cpu:0 --shards=3
homes ', 3 shards on gpu:0$' --devices=gpu:0,cpu:0 --shards=3 --homes=gpu
homes ', 1 shard on gpu:0$' "--devices=gpu:0,$second"
if [ "$second" = gpu:1 ]; then
    homes ', 3 shards on gpu:1,gpu:0$' --devices=gpu:1,gpu:0,gpu:1 --shards=3
    homes ', 1 shard on gpu:1$' --devices=gpu:1,gpu:0,gpu:1
fi
homes 'mean of a round: copies, in roster order (workers share a device)' --devices=gpu:0,gpu:0
if [ "$second" = gpu:1 ] && [ -n "$nccl" ]; then
    homes 'mean of a round: NCCL ' --devices=gpu:0,gpu:1
    homes 'mean of a round: copies, in roster order (--links=copies)' --devices=gpu:0,gpu:1 --links=copies
    homes 'mean of a round: copies, in roster order (--deterministic promises' \
        --devices=gpu:0,gpu:1 --deterministic
fi
# shellcheck disable=SC2086
train a $small --devices=gpu:0 --deterministic
# shellcheck disable=SC2086
train b $small --devices=gpu:0 --deterministic --strategy=async-lockfree:apply=worker
same a b
# shellcheck disable=SC2086
train b $small --devices=gpu:0 --deterministic --prefetch=2 # a prefetcher's queue beside the worker's
same a b
# shellcheck disable=SC2086
train a $small --devices=gpu:0,gpu:0 --deterministic --clip=0.1
# shellcheck disable=SC2086
train b $small --devices=gpu:0,gpu:0 --deterministic --clip=0.1
same a b

# Atomic additions lose nothing, and say so.
# shellcheck disable=SC2086
train run $small "--devices=gpu:0,gpu:0" --strategy=async-lockfree:apply=worker,adds=atomic --homes=gpu
[ "$(value run lost_updates)" = 0 ] || fail "adds=atomic: $(value run lost_updates) lost updates"

# A group of GPUs: the bits of one GPU, with its layers here and there, as a pipeline, and where measured
# times place them.
# shellcheck disable=SC2086
train a $small --devices=gpu:0 --microbatches=4 --deterministic
for options in "--schedule-pipeline=none --place=dense2=$second" \
    "--schedule-pipeline=gpipe --place=dense2=$second" \
    "--schedule-pipeline=1f1b --place=dense2=$second --homes=cpu" "--schedule-pipeline=1f1b --place=auto"; do
    # shellcheck disable=SC2086
    train b $small "--devices=(gpu:0+$second)" --microbatches=4 --deterministic $options
    same a b
done

# A checkpoint knows no devices: half on a GPU, half on the CPU, and the other way round; with steps together,
# stopped and gone on with, the bits of a run in one piece.
# shellcheck disable=SC2086
train whole $small --devices=gpu:0,gpu:0 --deterministic --epochs=4
# shellcheck disable=SC2086
train half $small --devices=gpu:0,gpu:0 --deterministic --epochs=2
train half --resume="$scratch/half" --devices=gpu:0,gpu:0 --deterministic --epochs=4
same whole half
# shellcheck disable=SC2086
train half $small --devices=gpu:0,gpu:0 --epochs=2
train half --resume="$scratch/half" --devices=cpu:0 --epochs=4
# shellcheck disable=SC2086
train half $small --devices=cpu:0 --epochs=2
train half --resume="$scratch/half" --devices=gpu:0 --epochs=4 --strategy=async-apply
"$TRAINER" evaluate --checkpoint="$scratch/half" >/dev/null || fail "evaluate: exit code $?"

# An operation without a kernel goes to the CPU, is named, and changes nothing; or it is an error.
# shellcheck disable=SC2086
"$TRAINER" $small --devices=gpu:0 --deterministic --without-kernel=gpu:sigmoid,gpu:sigmoid_grad \
    --out="$scratch/soft" >/dev/null 2>"$scratch/err" ||
    fail "soft placement: $(cat "$scratch/err")"
grep -q 'gpu:0 has no kernel for .*sigmoid.*: the CPU computes it' "$scratch/err" ||
    fail "soft placement is not said: $(cat "$scratch/err")"
# shellcheck disable=SC2086
"$TRAINER" $small --devices=gpu:0 --without-kernel=gpu:sigmoid_grad \
    --no-soft-placement --out="$scratch/hard" >/dev/null 2>"$scratch/err"
[ $? -eq 4 ] && grep -q 'gpu:0 has no kernel for sigmoid_grad' "$scratch/err" ||
    fail "--no-soft-placement: $(cat "$scratch/err")"

# What cannot be.
refuse() { # exit code, words, options...
    local expected=$1 words=$2 code
    shift 2
    "$TRAINER" --quiet --replace --out="$scratch/refused" "$@" >/dev/null 2>"$scratch/err"
    code=$?
    if [ $code -ne "$expected" ] || ! grep -q -- "$words" "$scratch/err"; then
        fail "$*: exit code $code, expected $expected and '$words': $(cat "$scratch/err")"
    fi
}
refuse 4 'there is no such device' --devices=gpu:99
refuse 2 'homes=gpu: none of the devices is a GPU' --devices=cpu:0 --homes=gpu
refuse 2 'links=collective: workers share a device' --devices=gpu:0,gpu:0 --links=collective
refuse 2 'links=collective: the strategy makes no mean' \
    --devices=gpu:0 --links=collective --strategy=async-apply
refuse 2 'links=collective: the strategy makes no mean' \
    --devices=gpu:0 --links=collective --strategy='async-apply until epoch 1; ssp'
refuse 2 'links=collective: the shards are in the host' --devices=gpu:0 --links=collective --homes=cpu
refuse 2 'there is no operation lnr (did you mean lrn?)' --devices=gpu:0 --without-kernel=gpu:lnr
refuse 2 'expected operations of GPUs' --devices=gpu:0 --without-kernel=lrn
refuse 2 'simulate=20ms: found gpu:0, expected CPU devices alone' --devices=cpu:0,gpu:0 --simulate=20ms
refuse 4 'tf32' --devices=cpu:0 --precision=tf32

# A GPU that fails (the stand-in's n-th call does): one line that names it, exit code 4, what there is to go
# on from.
if "$TRAINER" devices | grep -q 'stand-in'; then
    # shellcheck disable=SC2086
    train good $small --devices=gpu:0 --epochs=1
    # Whether a GPU does at once what is queued, or not before somebody waits for it.
    for where in gpu:0,gpu:0 "gpu:0,gpu:1 --shards=2" "gpu:0,gpu:0 --homes=cpu" "gpu:0,cpu:0 --prefetch=0" \
        "gpu:0,gpu:1 --strategy=local-sgd"; do
        # shellcheck disable=SC2086
        train late $small --deterministic --devices=$where
        # shellcheck disable=SC2086
        STANDIN_EAGER=1 train early $small --deterministic --devices=$where
        same late early
    done
    # A mean that never ends, and a GPU that is gone: its GPUs, in time.
    STANDIN_HANG=3 refuse 4 'gpu:0,gpu:1: ncclReduce(.*: not done on gpu:0 after 1\.6 s' \
        --devices=gpu:0,gpu:1 --timeout=2
    STANDIN_HANG=1 refuse 4 \
        'gpu:0,gpu:1: ncclCommInitRankConfig(.*: not done on gpu:0 .*--links=copies does without' \
        --devices=gpu:0,gpu:1 --timeout=1
    STANDIN_BREAK=3 refuse 4 'gpu:1,gpu:0: ncclReduce(.*: remote process exited' \
        --devices=gpu:1,gpu:0 --shards=2
    for n in 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987; do
        # shellcheck disable=SC2086
        STANDIN_FAIL=$n timeout 60 "$TRAINER" --quiet $small --devices=gpu:0 \
            --replace --out="$scratch/failed" >/dev/null 2>"$scratch/err"
        code=$?
        [ $code -eq 0 ] && continue # fewer calls than that
        if [ $code -ne 4 ] || [ "$(wc -l <"$scratch/err")" -ne 1 ] || ! grep -q 'gpu' "$scratch/err"; then
            fail "call $n fails: exit code $code: $(cat "$scratch/err")"
        fi
    done
    # The line says what there is to go on from, whoever the call fails under: the last ones of a run are the
    # store's, as it is read.
    few="--dataset=digits:take=64 --model=mlp:hidden=10 --epochs=1 --devices=gpu:0 --deterministic"
    said=0
    for ((n = 800; n > 0 && said < 8; n -= 5)); do
        # shellcheck disable=SC2086
        STANDIN_FAIL=$n timeout 60 "$TRAINER" --quiet $few --replace --out="$scratch/failed" \
            >/dev/null 2>"$scratch/err" && continue
        said=$((said + 1))
        grep -Eq '^trainer: gpu:0: [a-zA-Z_]+[^:]*: .* \(code [0-9]+, [a-z_]+\.c:[0-9]+\).*; '\
'(there is no checkpoint yet|the earlier run in .* stays)' \
            "$scratch/err" ||
            fail "call $n fails: $(cat "$scratch/err")"
    done
    [ $said -eq 8 ] || fail "$said of the last calls fail, expected 8"
    # shellcheck disable=SC2086
    STANDIN_FAIL=6000 timeout 60 "$TRAINER" --quiet $small --epochs=1000 --devices=gpu:0 \
        --checkpoint-every=0.001 --replace --out="$scratch/failed" >/dev/null 2>"$scratch/err"
    steps=$(sed -n \
        "s|^trainer: gpu:0: .*; go on from update \([0-9]*\) with: trainer --resume=$scratch/failed\$|\1|p" \
        "$scratch/err")
    [ -n "$steps" ] || fail "no checkpoint is named: $(cat "$scratch/err")"
    train failed --resume="$scratch/failed" --epochs=$((${steps:-0} / 20 + 1))
    at_least "$(value failed steps | head -n 1)" "${steps:-0}" ||
        fail "gone on from update $steps: $(value failed steps | head -n 1) steps"
fi
[ $failures -eq 0 ]
