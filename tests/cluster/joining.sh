#!/bin/bash
# Real processes that join a training: one worker begins, a second one joins, the first is killed, and another
# process comes in its place; all end with 0, with the same results, and no batch is missing but the one in
# the hands of who was killed. Mirrored, two hold the weights, and the third one joins, is killed, comes again
# and leaves. Then what --workers refuses, each with one line; and who asks whether a training is there is
# answered while it may be joined, too.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
epochs=80 # with fewer it may be over before a worker is killed
settings="--dataset=digits --model=mlp:hidden=20 --batch=16 --threads=1 --epochs=$epochs --slow=cpu:0=3x"
wanted=$(((epochs * 1437 + 15) / 16)) # batches

has_stepped() { grep -q "^[^,]*,$1," run/steps.csv; } # worker
has_said() { grep -Eq -- "$2" "$1.err"; }

# steps.csv has each step of each worker once, and all batches but those that were lost.
every_step='all(sorted(int(r["step"]) for r in log if r["worker"] == w) == list(range(1, '\
'1 + sum(r["worker"] == w for r in log))) for w in "012")'
counted="0 <= $wanted - steps <= lost_batches <= 2 or ($wanted, steps, lost_batches), rows == steps, \
$every_step"
# Where parts have other sizes: all examples, but what was lost and what the last round has more. What is left
# of who has gone makes rounds in which not everybody has a batch.
shared="-48 < $((epochs * 1437)) - examples <= 48 or examples, rows == steps, \
len({(r['worker'], r['step']) for r in log}) == rows"

join_all() { # label, parameter servers, options of theirs...
    local label=$1 servers=$2 others=
    shift 2
    rm -rf run
    new_cluster "$servers" 2
    start ps0 "$TRAINER" --job=ps --task=0 $hosts --workers=1..2 --replace --out=run \
        --timeout=30 $settings "$@"
    for ((i = 1; i < servers; i++)); do
        others+=" ps$i"
        start ps$i "$TRAINER" --job=ps --task=$i $hosts --workers=1..2 --timeout=30 $settings "$@"
    done
    start_worker 0 --timeout=30
    wait_until is_training
    start_worker 1 --timeout=30
    wait_until has_said ps0 '^trainer: joined: worker 1 '
    run 0 probe 127.0.0.1:$port --timeout=10
    grep -Eq "parameter server 0 of $servers, training" out || fail "$label: probe: $(cat out)"
    signal 9 w0
    finish w0
    wait_until has_said ps0 '^trainer: lost: worker 0 '
    start_worker 0 --timeout=30
    wait_until has_said ps0 '^trainer: joined: worker 0 '
    ends 0 w0 w1 ps0 $others
    says ps0 '^trainer: the parameter server 127.0.0.1:[0-9]+ waits for 1 of 2 workers$'
    says ps0 "^trainer: joined: worker 1 \($came_from cpu:0\), from its step 1 on, after [0-9]+ updates; \
2 of 2 workers are there$"
    says ps0 "^trainer: joined: worker 0 \($came_from cpu:0\), from its step [0-9]+ on, \
after [0-9]+ updates; 2 of 2 workers are there$"
    [ "$(results_of w0)" = "$(results_of ps0)" ] && [ "$(results_of w1)" = "$(results_of ps0)" ] ||
        fail "$label: other results"
    grep -q '1 worker lost; 2 workers joined' ps0.out || fail "$label: the last line: $(tail -n 1 ps0.out)"
    sed 's/<[^>]*>//g' run/report.html >page
    grep -Fqx "$(tail -n 1 ps0.out)" page && grep -Eq \
        '^2 workers joined: worker 1 .* after [0-9,]+ updates?, worker 0 .* after [0-9,]+ updates\.$' page ||
        fail "$label: the report says: $(grep joined page)"
    summary_is "$label" 'lost_workers, [w["lost"] for w in per_worker]' '(1, [False, False])' \
        '[j["worker"] for j in joins], joins[0]["step"], joins[1]["step"] > 1' '([1, 0], 1, True)' \
        "$counted" '(True, True, True)' \
        'test_accuracy > 0.85' True
}
join_mirrored() { # label, what is counted, options of all...
    local label="mirrored, $1" counts=$2
    shift 2
    rm -rf run
    new_cluster 0 3
    hosts+=" --workers=2..3 --timeout=30 $settings $*"
    for i in 0 1; do start_worker $i --replace --out=run; done
    wait_until is_training
    start_worker 2 --fail=worker:2@step:5
    wait_until has_said w0 '^trainer: joined: worker 2 '
    says w2 '^trainer: --slow=cpu:0=3x --fail=worker:2@step:5 does nothing at a worker: '\
'the leader puts faults in$'
    wait_until has_stepped 2
    signal 9 w2
    finish w2
    wait_until has_said w0 '^trainer: lost: worker 2 '
    start_worker 2
    wait_until has_said w0 '^trainer: joined: worker 2 .*, from its step ([2-9]|[1-9][0-9]+)'
    signal TERM w2
    ends 0 w2 w0 w1
    says w2 '^trainer: left, as it was asked to$'
    ! grep -q 'waiting for the process 0' w0.err || fail "$label: the leader waits for itself: $(cat w0.err)"
    same_results w0 w1
    same_weights "$label" run run/worker-1
    [ ! -e run/worker-2 ] || fail "$label: who holds no weights has written $(ls run/worker-2)"
    grep -q '1 worker lost; 2 workers joined' w0.out || fail "$label: the last line: $(tail -n 1 w0.out)"
    summary_is "$label" '[j["worker"] for j in joins], lost_workers' '([2, 2], 1)' \
        "$counts" '(True, True, True)'
}

join_all sync 1 --strategy=sync
join_all async 1 --strategy=async-lockfree
join_all local-sgd 1 --strategy=local-sgd:every=8
join_all "sync, 2 servers" 2 --strategy=sync
join_all "async, 3 servers" 3 --strategy=async-lockfree
join_mirrored shares "$shared" --strategy=sync --share=auto
says w0 '^trainer: joined: worker 2 .* 3 of 3 workers are there, batch ([0-9]+ \+ [0-9]+ \+ [0-9]+|16 x 3)$'
join_mirrored async "$counted" --strategy=async-apply --compress=bf16

# --- --batch-total: one, two, one; each update has as many examples, but for those of who leaves ---
rm -rf run
new_cluster 1 2
total=${settings/--batch=16/--batch-total=33}
start ps0 "$TRAINER" --job=ps --task=0 $hosts --workers=1..2 --replace --out=run --timeout=30 $total
start_worker 0 --timeout=30
wait_until is_training
start_worker 1 --timeout=30
wait_until has_said ps0 '^trainer: joined: worker 1 .*; 2 of 2 workers are there, batch 17 \+ 16$'
signal TERM w0
ends 0 w0
wait_until has_said ps0 '^trainer: 1 of 2 workers are there, batch 33 x 1$'
ends 0 w1 ps0
summary_is "--batch-total" 'batch_total, lost_workers, lost_batches, updates >= '$((epochs * 1437 / 33)) \
    '(33, 0, 0, True)' 'sorted({int(r["examples"]) for r in log if int(r["step"]) > 1})' '[16, 17, 33]'
python3 - <<'PYTHON' || fail "--batch-total: the updates are not of 33 examples"
import collections, csv
updates = collections.Counter()
for row in csv.DictReader(open("run/steps.csv")):
    updates[row["update"]] += int(row["examples"])
smaller = sorted(examples for examples in updates.values() if examples != 33)
# What it was assigned, now and later.
assert len(smaller) <= 8 and 2 * sum(smaller) == 33 * len(smaller), smaller
PYTHON

# --- what is refused ---

usage() { refused_with 2 "$@"; }
new_cluster 1 2
one="$hosts --job=ps --task=0"
usage '--workers=1..3: the cluster has 2 workers, expected 3' $one --workers=1..3
usage '--workers=3..: the cluster has 2 workers, expected at least 3' $one --workers=3..
usage '--workers=0..2: expected LEAST..MOST, as in 2..8, or all' $one --workers=0..2
usage '--workers=2..1: expected LEAST..MOST, as in 2..8, or all' $one --workers=2..1
usage '--workers=two: expected LEAST..MOST, as in 2..8, or all' $one --workers=two
usage '--workers=1.. 2: expected LEAST..MOST, as in 2..8, or all' $one '--workers=1.. 2'
usage '--workers=1..2: found --data-sharding=split, expected shared: .*' $one --workers=1..2 \
    --data-sharding=split
usage '--workers=1..2: there is no cluster to join; did you mean --devices=cpu:0\?' --workers=1..2

# Who holds the weights is said to every mirrored process.
rm -rf run
new_cluster 0 4
start_worker 0 --workers=2.. --replace --out=run --timeout=30 $settings
wait_until has_said w0 'waits for the first 2 of 4 workers$'
run 2 $hosts --job=worker --task=3 --timeout=30
grep -q '^trainer: --workers=all: the leader has 2\.\., expected the same in every mirrored process$' err ||
    fail "--workers left out: $(cat err)"
signal INT w0
ends 130 w0

new_cluster 0 2
run 2 $hosts --job=worker --task=0 --workers=1.. --links=collective --replace --out=run $settings
if "$TRAINER" train --help=all | grep -q -e '^  --links='; then
    found='--links=collective: found --workers=1\.\., expected all of them from the start'
else
    found='--links: needs a build with CUDA'
fi
grep -q "^trainer: $found\$" err || fail "a collective: $(cat err)"

# A worker with two devices has two places elsewhere; here its number is one place.
rm -rf run
new_cluster 1 2
start ps0 "$TRAINER" --job=ps --task=0 $hosts --workers=1.. --replace --out=run --timeout=30 $settings
run 5 --job=worker --task=0 $hosts --devices=cpu:0,cpu:1
grep -q 'is worker 0 with 2 devices, expected one, with --workers=1\.\.' err || fail "two devices: $(cat err)"
signal INT ps0
ends 130 ps0

[ $failures -eq 0 ]
