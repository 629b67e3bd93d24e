#!/bin/bash
# A worker that gets SIGTERM finishes the step in hand, says that it goes, and ends with 0; the others go on
# whatever --on-loss says, and no batch is computed twice or never: under strategies with rounds and without,
# with one parameter server and with two, and also where the leader takes no notice before the worker is gone.
# Other processes that get it have the leader end the run, and nothing is lost either.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
epochs=150
[ -z "$slow" ] || epochs=8
settings="--dataset=digits --model=mlp:hidden=20 --batch=16 --threads=1"
wanted=$((epochs * 1437)) # examples

start_all() { # parameter servers, options...: and three workers
    local servers=$1 i
    shift
    rm -rf run
    new_cluster $servers 3
    for ((i = servers - 1; i >= 0; i--)); do
        start ps$i "$TRAINER" --job=ps --task=$i $hosts --replace --out=run --timeout=30 \
            --on-loss=stop $settings "$@"
    done
    for i in 0 1 2; do start_worker $i --timeout=30; done
    wait_until is_training
}

# In rounds the last one is mostly not full, so the sum is that of one process only where nothing is
# counted twice.
all_is_done() { # label
    summary_is "$1" 'lost_workers, lost_batches, interrupted, [w["lost"] for w in per_worker]' \
        '(0, 0, False, [False, False, False])' \
        "-(-$wanted // 16) == steps, examples == 16 * steps, steps == sum(w['steps'] for w in per_worker)" \
        '(True, True, True)' '0 < per_worker[1]["steps"] < per_worker[0]["steps"]' True
}

left_in_order() { # label, parameter servers
    local i
    for ((i = 0; i < $2; i++)); do ends 0 ps$i; done
    ends 0 w0 w2
    says w1 '^trainer: left, as it was asked to$'
    [ -z "$(results_of w1)" ] || fail "$1: the one that left has results: $(results_of w1)"
    says ps0 "^trainer: left: worker 1 \($came_from cpu:0\) after [0-9]+ steps, as it was asked to$"
    ! grep -q 'lost:' ps0.err || fail "$1: the leader says: $(grep lost: ps0.err)"
    all_is_done "$1"
}

leave() { # parameter servers, label, options...
    start_all "$1" "${@:3}" --epochs=$epochs
    signal TERM w1
    ends 0 w1
    left_in_order "$2" "$1"
}
leave 1 sync --strategy=sync
leave 1 async --strategy=async-lockfree
leave 1 compressed --strategy=ssp --compress=top-k:share=0.1
leave 2 "two servers" --strategy=sync
leave 2 local-sgd --strategy=local-sgd:every=8

# The leader stands still: the worker is gone when it wakes up, in the middle of what it sends there.
start_all 1 --strategy=async-locked --epochs=$epochs
signal STOP ps0
signal TERM w1
ends 0 w1
signal CONT ps0
left_in_order "a leader that stands still" 1

# --- all that are to go ---

# A run that was ended so can go on from where it was.
goes_on() { # label
    local kept
    summary_is "$1" 'interrupted, lost_workers, lost_batches' '(True, 0, 0)' 'examples == 16 * steps' True
    kept=$(look examples run)
    [ "$kept" -gt 0 ] && [ "$kept" = "$(look summary run examples)" ] ||
        fail "$1: its checkpoint has $kept examples, the run $(look summary run examples)"
    run 0 evaluate --checkpoint=run
}
start_all 1 --strategy=async-lockfree --epochs=1000000
signal TERM w0 ps0 w1 w2
ends 0 w0 w1 w2
ends 130 ps0
goes_on "all at once"

# The last worker goes: there is nobody left, and what they did is kept.
start_all 1 --strategy=async-lockfree --epochs=1000000
signal TERM w0 w1 w2
ends 0 w0 w1 w2
ends 5 ps0
says ps0 '^trainer: every worker was lost or has left; to go on from update [0-9]+, '\
'start all processes again, the leader with --resume=run$'
run 0 --resume=run --epochs=1 --quiet

# A process with a part of the weights asks the leader, which writes a checkpoint while it is there.
start_all 2 --strategy=sync --epochs=1000000
signal TERM ps1
ends 130 ps1 ps0
says ps1 'the parameter server 0 .* ended: interrupted after [0-9]+ examples'
ends 5 w0 w1 w2
goes_on "a second parameter server"

rm -rf run
new_cluster 0 2
for i in 0 1; do start_worker $i $settings --epochs=1000000 --out=run --timeout=30; done
wait_until is_training
signal TERM w1
ends 130 w0 w1
says w1 'ended: interrupted after [0-9]+ examples'
goes_on mirrored

[ $failures -eq 0 ]
