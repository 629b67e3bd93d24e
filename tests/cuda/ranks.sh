#!/bin/bash
# Mirrored clusters whose processes have GPUs of their own, which add the gradients of a round by NCCL: all
# processes end with the same bits, up to rounding those of copies; whoever is killed, stands still or
# diverges is named by the others, and nobody hangs; and where one of them cannot, all make copies, with
# words, or --links=collective is refused in one line. On the stand-in, which gives each process GPUs of its
# own and adds from the last rank to the first. Skips itself on real GPUs.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no GPU here that counts"; exit 77; }
mkdir meet
export STANDIN_NCCL=$scratch/meet

# Each process writes to a folder of its own. device_N: what process N computes on, if not what all do.
start_all() { # processes, devices, options...; sets $all
    local count=$1 devices=$2 i own
    shift 2
    new_cluster 0 $count
    rm -rf run out?
    all=''
    for ((i = 0; i < count; i++)); do
        own=device_$i
        start_worker $i --devices="${!own:-$devices}" \
            --replace --out=$([ $i -eq 0 ] && echo run || echo out$i) "$@"
        all+="w$i "
    done
}

added_by() { # pattern, names...
    local pattern=$1 name
    shift
    for name; do says "$name" "^trainer: the mean of a round: $pattern\$"; done
}
nccl() { echo "NCCL [0-9.]+, over $1 devices of $2 processes"; }

# Two folders with models, and how far they may be apart.
near() { # label, folder, folder
    python3 -IS - "$2/model.safetensors" "$3/model.safetensors" <<'PYTHON' || fail "$1: weights of $2 and $3"
import struct, sys
def floats(path):
    data = open(path, "rb").read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    return struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])
one, other = map(floats, sys.argv[1:])
apart = max(abs(a - b) for a, b in zip(one, other))
print(f"{apart:g} apart")
sys.exit(len(one) != len(other) or not apart <= 1e-5)
PYTHON
}

received() { look summary run wire_received; }

# 63 batches: with two or four workers the last round is not whole.
few="--dataset=digits:take=336 --model=mlp:hidden=20 --batch=16 --epochs=3 --checkpoint-every=0"
trains_alike() { # label, processes, devices of each, options...
    local label=$1 count=$2 devices=$3 i commas=${3//[!,]/} copied summed
    shift 3
    start_all $count $devices $few --links=copies "$@"
    ends 0 $all
    added_by "copies, in roster order \\(worker 0 .*: --links=copies\\)" $all
    copied=$(received)
    mv run copies
    start_all $count $devices $few "$@"
    ends 0 $all
    added_by "$(nccl $((count * (${#commas} + 1))) $count)" $all
    same_results $all
    for ((i = 1; i < count; i++)); do same_weights "$label" run out$i/worker-$i; done
    near "$label" run copies
    # At the leader: what of the gradients of its slice it gets, its own process's sum alone.
    summed=$(received)
    [ $((summed * 4)) -lt $((copied * 3)) ] ||
        fail "$label: $summed bytes received with NCCL, $copied with copies"
    rm -r copies
}
trains_alike "two processes" 2 gpu:1
trains_alike "two processes, clipped, Adam" 2 gpu:0 --clip=0.5 --optimizer=adam:rate=0.003
trains_alike "three processes" 3 gpu:0
trains_alike "two processes of two GPUs" 2 gpu:0,gpu:1
trains_alike "one strategy after the other" 2 gpu:0 \
    --strategy='sync until epoch 1; local-sgd:every=2 until epoch 2; sync'
[ -z "$(ls meet)" ] || fail "left behind: $(ls meet)"

# --- one is killed, stands still, is cut off, or diverges: all others end, and name it ---
is_named() { # number, names...
    local victim=$1 name
    shift
    for name; do says "$name" "127.0.0.1:$((port + victim))|worker $victim "; done
}
for victim in 0 1; do
    start_all 3 gpu:0 $endless --checkpoint-every=0.1
    wait_until is_training
    signal 9 w$victim
    began=$SECONDS
    finish w$victim
    ends 5 ${all/w$victim /}
    [ $((SECONDS - began)) -le $((3 * timeout + 5)) ] ||
        fail "killed $victim: the others ended after $((SECONDS - began)) s"
    is_named $victim ${all/w$victim /}
done
start_all 2 gpu:0 $endless
wait_until is_training
signal STOP w1
ends 5 w0
is_named 1 w0
signal 9 w1
finish w1
# A collective that never ends, at one: it goes on saying that it lives, so that nobody is to blame but it.
export STANDIN_HANG=12
start_all 2 gpu:0 $endless
wait_until is_training
unset STANDIN_HANG
for name in w0 w1; do
    finish $name
    [ "$code" -eq 4 ] || [ "$code" -eq 5 ] || fail "$name: exit code $code: $(cat $name.err)"
done
grep -Eq 'ncclReduce\(.*: not done after |nothing but heartbeats for' w0.err w1.err ||
    fail "hangs: $(tail -n 2 w0.err w1.err)"
# NCCL finds out that a rank is gone.
export STANDIN_BREAK=5
start_all 2 gpu:0 $endless
for name in w0 w1; do
    finish $name
    [ "$code" -eq 4 ] || [ "$code" -eq 5 ] || fail "$name: exit code $code: $(cat $name.err)"
done
unset STANDIN_BREAK
grep -q 'gpu:0: ncclReduce(.*): remote process exited or there was a network error' w0.err w1.err ||
    fail "broken: $(cat w0.err w1.err)"
start_all 2 gpu:0 $endless --optimizer=sgd:rate=1000000 --decay=1
ends 6 w0
finish w1
says w0 'the loss is (nan|infinite) at step [0-9]+'
[ "$code" -eq 5 ] || [ "$code" -eq 6 ] || fail "diverged: exit code $code: $(cat w1.err)"
rm -f meet/*

# --- one is killed, and comes back: the next session has a communicator of its own ---
new_cluster 0 2
rm -rf run out?
again="--devices=gpu:0 $few --epochs=300 --checkpoint-every=0.05 --timeout=$timeout --restart-wait=30"
start_worker 0 $again --out=run
start_worker 1 $again --out=out1
wait_until is_training
signal 9 w1
finish w1
start_worker 1 $again --out=out1
ends 0 w0 w1
[ "$(grep -c '^trainer: the mean of a round: NCCL ' w0.err)" -eq 2 ] || fail "came back: $(cat w0.err)"
rm -f meet/*

# --- one that cannot: copies, in words; and refused where it was asked for ---
falls_back() { # pattern of the words, options...
    local why=$1
    shift
    start_all 2 gpu:0 $few "$@"
    ends 0 $all
    added_by "copies, in roster order \\($why\\)" $all
}
device_1=cpu:0 falls_back "worker 1 \\($came_from cpu:0\\): its device has no memory of its own"
STANDIN_MACHINE=here falls_back \
    "worker 0 \\($came_from gpu:0\\) and worker 1 \\($came_from gpu:0\\) are on one device"
falls_back "worker 0 \\($came_from gpu:0\\): --deterministic promises roster order" --deterministic
falls_back "the strategy makes no mean of all workers' gradients" --strategy=async-lockfree
falls_back "with --workers they come and go" --workers=2..
falls_back "--compress is for what the bridge sends" --compress=top-k
TRAINER_SECRET=$(printf "%064d" 7) falls_back "it would not be encrypted"
device_0=gpu:0 device_1=cpu:0
start_all 2 '' $few --links=collective
ends 2 w1 # before it meets the others, who wait for another one
says w1 '^trainer: --links=collective: cpu:0: it has no memory of its own$'
signal 9 w0
finish w0
unset device_0 device_1
start_all 2 gpu:0 $few --links=collective --deterministic
ends 2 $all
says w0 '^trainer: --links=collective: gpu:0: --deterministic promises roster order$'
export STANDIN_MACHINE=here
start_all 2 gpu:0 $few --links=collective
unset STANDIN_MACHINE
for name in $all; do
    finish $name
    [ "$code" -eq 2 ] || [ "$code" -eq 5 ] || fail "one device: $name: exit code $code: $(cat $name.err)"
done
grep -Eq '^trainer: .*--links=collective: worker 0 .* and worker 1 .* are on one device$' w0.err w1.err ||
    fail "one device: $(cat w0.err w1.err)"
start_all 2 gpu:0 $few --links=collective
ends 0 $all
added_by "$(nccl 2 2)" $all
[ $failures -eq 0 ]
