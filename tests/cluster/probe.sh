#!/bin/bash
# trainer probe: who is there answers, before the training and during it, and takes no notice; who is not, or
# is no host of a cluster, or has another key, is exit code 5 and a line, in time.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

answers() { # pattern of the answer, address, options...: soon
    local pattern=$1
    shift
    wait_until bash -c '"$0" probe "${@:2}" >probe.out 2>probe.err && grep -Eqx -- "$1" probe.out' \
        "$TRAINER" "$1: $pattern" "$@"
    [ ! -s probe.err ] || fail "probe $*: also said $(cat probe.err)"
}

# --- a parameter server: before all have come, and during the training ---
new_cluster 1 2
start ps "$TRAINER" --job=ps --task=0 $hosts $small --epochs=1000000 --out=run
answers "parameter server 0 of 1, waiting for worker 0 \(127.0.0.1:$worker_port\), worker 1 \(.*\)" \
    "127.0.0.1:$port"
start_worker 0
answers "parameter server 0 of 1, waiting for worker 1 \(.*\)" "127.0.0.1:$port"
# More than are guests of one address at a time.
for ((i = 0; i < 40; i++)); do
    "$TRAINER" probe "127.0.0.1:$port" >out 2>err || fail "the ${i}th: $(cat err)"
done
start_worker 1
answers 'parameter server 0 of 1, training: epoch [0-9]+ of 1000000, step [0-9]+' "127.0.0.1:$port"
first=$(sed 's/.*step //' probe.out)
wait_until bash -c '"$0" probe "$1" >probe.out && [ "$(sed "s/.*step //" probe.out)" -gt "$2" ]' \
    "$TRAINER" "127.0.0.1:$port" "$first"
# Is told why it has to wait.
start w2 "$TRAINER" --job=worker --task=1 $hosts --devices=cpu:0 --start-timeout=1
ends 5 w2
says w2 'comes too late: all workers have come'
refused 5 "127.0.0.1:$worker_port: " probe "127.0.0.1:$worker_port" --timeout=0.3 # a worker does not listen
signal INT ps
ends 130 ps
ends 5 w0 w1
! grep -q refused ps.err || fail "the ps noticed: $(grep refused ps.err)"
refused 5 "127.0.0.1:$port: " probe "127.0.0.1:$port" --timeout=0.3

# --- mirrored processes are asked each; who is here and waits itself is not waited for ---
new_cluster 0 3
for i in 0 1; do start_worker $i $small; done
for i in 0 1; do
    answers "process $i of 3, waiting for the process 2 \(127.0.0.1:$((port + 2))\)" "127.0.0.1:$((port + i))"
done
signal INT w0
ends 130 w0
finish w1
for ((i = 0; i < 6; i++)); do # which of its halves ends first differs
    new_cluster 0 2
    start_worker 0 $small
    wait_until grep -q 'waits for 2 workers' w0.err
    signal INT w0
    ends 130 w0
    ! grep 'training went on' w0.err || fail "mirrored: nothing had begun"
done
new_cluster 0 2
for i in 0 1; do start_worker $i $small --epochs=1000000 --out=mirrored; done
answers 'process 1 of 2, training: epoch [0-9]+ of 1000000, step [0-9]+' "127.0.0.1:$((port + 1))"
answers 'process 0 of 2, training: .*' "127.0.0.1:$port"
signal INT w0
finish w0
finish w1

# --- who is no host ---
port=$(free_ports 1)
keep_port "$port" # and says nothing
refused 5 "127.0.0.1:$port: no byte of an answer for 0.5 s" probe "127.0.0.1:$port" --timeout=0.5
leave_port
refused 2 'probe: expected one HOST:PORT, found 0' probe
refused 2 '"localhost": expected host:port' probe localhost

# --- with a key: only its holders are answered ---
"$TRAINER" keygen key >/dev/null && "$TRAINER" keygen other >/dev/null || exit 1
new_cluster 1 1
start ps "$TRAINER" --job=ps --task=0 $hosts $small --epochs=1 --out=keyed --secret-file=key
wait_until grep -q -e waits -e 'cannot encrypt' ps.err
if grep -q waits ps.err; then
    answers 'parameter server 0 of 1, waiting for worker 0 .*' "127.0.0.1:$port" --secret-file=key
    TRAINER_SECRET=$(cat key) answers 'parameter server 0 of 1, waiting for worker 0 .*' "127.0.0.1:$port"
    refused 5 "127.0.0.1:$port" probe "127.0.0.1:$port" --timeout=2
    refused 5 "127.0.0.1:$port: does not accept the key" probe "127.0.0.1:$port" --secret-file=other \
        --timeout=2
fi
signal INT ps
finish ps

[ $failures -eq 0 ]
