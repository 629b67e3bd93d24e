#!/bin/bash
# --schedule-pipeline: however micro-batches go through the devices of a group, a run leaves the bits of one
# on a device per worker, under every strategy and over processes. What is in memory at a time, and how long
# the stages idle, is said. What is no pipeline is refused; a worker that fails hangs nobody.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

few="--dataset=digits:take=96 --model=mlp:hidden=20-15 --threads=1 --kernels=reference --batch=24 \
    --microbatches=3 --epochs=2 --replace"
three="--devices=(cpu:0+cpu:1+cpu:2) --place=dense2=cpu:1,dense3=cpu:2"
pairs="--devices=(cpu:0+cpu:1),(cpu:2+cpu:3) --place=dense[23]=cpu:1"

# --- the same bits, what is said ---
run 0 $few --quiet --devices=cpu:0 --out=single
for schedule in gpipe 1f1b; do
    run 0 $few $three --schedule-pipeline=$schedule --out=$schedule
    same_weights "$schedule" single $schedule
    [ "$(grep -Ec 'while it computes, the stages of the pipeline idle [0-9.]+ % of the time, equal ones would 40.0 %' \
        out)" -eq 1 ] ||
        fail "$schedule, last lines: $(tail -n 5 out)"
    python3 - $schedule <<'PYTHON' || fail "$schedule: summary.json"
import json, sys
s = json.load(open(sys.argv[1] + "/summary.json"))
exit(not (s["schedule_pipeline"] == sys.argv[1] and 0 <= s["pipeline_idle"] < 1 and
          s["pipeline_idle_equal"] == 0.4))
PYTHON
done
grep -Eq '^trainer: pipeline by 1f1b: of 3 micro-batches at most 3 on cpu:0 \([0-9.]+ kB\), '\
'2 on cpu:1 \([0-9.]+ kB\), 1 on cpu:2 \([0-9.]+ kB\) at a time; equal stages would idle 40.0 % of the '\
'time$' \
    err ||
    fail "first lines: $(cat err)"
grep -Eq '^trainer: cpu:0 has 6[0-9] % of the multiply-adds, the other stages wait for it; '\
'the matmul of dense1 alone has 6[0-9] %, so no cut makes them equal$' \
    err ||
    fail "first lines: $(cat err)"
run 0 $few $three --schedule-pipeline=1f1b --explain --epochs=1 --out=explained
grep -q '^pipeline by 1f1b: of 3 micro-batches at most 3 on cpu:0' out || fail "--explain: $(cat out)"

# --- every strategy, and a worker that fails ---
run 0 $few --quiet --devices=cpu:0,cpu:1 --out=two
run 0 $few --quiet $pairs --schedule-pipeline=1f1b --prefetch=1 --out=grouped
same_weights "two groups" two grouped
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    run 0 $few --quiet --strategy="$strategy" $pairs --schedule-pipeline=1f1b --epochs=3 --out=one
    python3 -c 'import json; s = json.load(open("one/summary.json")); exit(s["examples"] != 288)' ||
        fail "$strategy: $(grep 'examples"' one/summary.json)"
done
# ssp: both come to step 2.
run 0 $few --quiet --strategy=ssp:bound=1 --on-loss=continue $pairs --schedule-pipeline=gpipe \
    --fail=worker:1@step:2 --out=lost
grep -q '^trainer: lost: worker 1' err || fail "a lost worker: $(cat err)"

# --- a comparison: its baseline is one device, which has no stages ---
run 0 bench $few --quiet --repeats=1 --strategies=sync $pairs --schedule-pipeline=1f1b --epochs=1 \
    --out=compared
python3 - <<'PYTHON' || fail "bench: $(cat compared/bench.csv)"
import csv
rows = list(csv.DictReader(open("compared/bench.csv")))
assert {row["baseline"] for row in rows} == {"0", "1"} and all(row["failed"] == "0" for row in rows)
PYTHON

# --- a network that no cut makes equal: AlexNet for CIFAR-10, whose pictures are black here ---
mkdir cifar10
for file in cifar10/data_batch_{1..5}.bin cifar10/test_batch.bin; do truncate -s 30730000 $file; done
run 0 --data-dir=. --dataset=cifar10:take=8 --model=alexnet --batch=8 --microbatches=4 --threads=1 \
    --epochs=1 --no-test --devices='(cpu:0+cpu:1)' --place='dense*=cpu:1' --schedule-pipeline=1f1b \
    --out=unequal
grep -Fqx 'trainer: cpu:0 has 94 % of the multiply-adds, the other stages wait for it; '\
'the conv2d of conv2 alone has 83 %, so no cut makes them equal' \
    err ||
    fail "AlexNet's first lines: $(cat err)"

# --- processes ---
new_cluster 1 2
start ps0 "$TRAINER" $hosts --job=ps --task=0 $few --out=pair
for w in 0 1; do
    start w$w "$TRAINER" $hosts --job=worker --task=$w --devices='(cpu:0+cpu:1)' --place='dense[23]=cpu:1' \
        --schedule-pipeline=gpipe --threads=1 --kernels=reference
done
ends 0 w0 w1 ps0
same_weights "two processes" two pair
grep -q '^trainer: while it computes, the stages of the pipeline idle [0-9.]* % of the time, equal ones would 25.0 %$' w1.err ||
    fail "a worker's end: $(cat w1.err)"

# --- what is wrong ---
refused_with 2 '--schedule-pipeline: found --microbatches=1, expected 2 or more for the devices to work at' \
    $few $three --schedule-pipeline=1f1b --microbatches=1
refused_with 2 \
    "--schedule-pipeline=gpipe: found workers of one device, expected groups, \
as in --devices='\(cpu:0\+cpu:1\)'" \
    $few --devices=cpu:0 --schedule-pipeline=gpipe
refused_with 2 \
    'a pipeline by 1f1b: cpu:1 and cpu:0 would wait for each other, for node [0-9]+ \(.*\), '\
'whose value goes from cpu:0 to cpu:1; expected .*' \
    $few --quiet --devices='(cpu:0+cpu:1)' --place='dense2=cpu:1,dense3=cpu:0' --schedule-pipeline=1f1b
[ $failures -eq 0 ]
