#!/bin/bash
# Workers of several devices: a placed network trains, bit for bit, as one on a device per worker, alone, resumed and over processes;
# under every strategy; the lost worker of a group hangs nobody. What is placed is said; what is wrong with groups and places, too.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

wrong() { # words of the one line, arguments...
    run 2 $few "${@:2}"
    grep -Fq -e "$1" err && [ "$(wc -l <err)" -eq 1 ] && return
    fail "${*:2}: said $(cat err), expected: $1"
}
few="--dataset=digits:take=96 --model=mlp:hidden=20-15 --threads=1 --kernels=reference --batch=16 --epochs=2 --replace"
place="dense[12]=cpu:0,dense3=cpu:1"
pairs='(cpu:0+cpu:1),(cpu:2+cpu:3)'

# --- the same bits ---
run 0 $few --quiet --devices=cpu:0,cpu:1 --out=single
run 0 $few --devices="$pairs" --place="$place" --out=placed --microbatches=1
same_weights "groups" single placed
grep -Fqx 'sync, 2 workers ((cpu:0+cpu:1),(cpu:2+cpu:3) x1), 1 shard' out || fail "first lines: $(head -n 4 out)"
grep -Fqx 'trainer: dense1, dense2 on cpu:0; dense3 on cpu:1; 2.1 kB cross in each forward and backward pass' err || fail "what lies where: $(cat err)"
run 0 $few --quiet --devices=cpu:0,cpu:1,cpu:2,cpu:3 --group=2 --place="$place" --epochs=1 --out=half
run 0 --resume=half --epochs=2 --threads=1 --kernels=reference --devices="$pairs" --place="dense2=cpu:3" --quiet
same_weights "--group, resumed in another place" single half
run 0 $few --devices="$pairs" --place="$place" --explain --epochs=1 --out=explained
grep -Eq '^from cpu:0 to cpu:1: node [0-9]+ \(.*\), 0.001 MB$' out || fail "--explain: $(cat out)"

# --- every strategy, and a worker that fails ---
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    run 0 $few --quiet --strategy="$strategy" --devices="$pairs" --place="$place" --microbatches=2 --epochs=4 --out=one
    python3 -c 'import json; s = json.load(open("one/summary.json")); exit(s["examples"] != 384)' || fail "$strategy: $(grep 'examples"' one/summary.json)"
done
run 0 $few --quiet --strategy=async-lockfree --devices="$pairs" --place="$place" --fail=worker:1@step:2 --out=lost
grep -q '^trainer: lost: worker 1' err || fail "a lost worker: $(cat err)"

# --- processes ---
new_cluster 0 2
for w in 0 1; do
    start w$w "$TRAINER" $hosts --job=worker --task=$w $few --devices='(cpu:0+cpu:1)' --place="$place" --out=pair
done
ends 0 w0 w1
same_weights "two processes" single pair

# --- what is wrong ---
wrong "'(cpu:0+cpu:1),cpu:2', expected groups of equal size" --devices='(cpu:0+cpu:1),cpu:2' --place="$place"
wrong "found groups of 2 without --place" --devices='(cpu:0+cpu:1)'
wrong "found workers of one device, expected groups" --devices=cpu:0 --place="$place"
wrong "--group=2: found 3 devices, expected a multiple of 2" --devices=cpu:0,cpu:1,cpu:2 --group=2 --place="$place"
wrong "--group=3: found groups of 2" --devices="$pairs" --group=3 --place="$place"
wrong "--place: 'conv*=cpu:0', but the model has no weights in a layer 'conv*'" --devices="$pairs" --place='conv*=cpu:0'
wrong "--place: 'dense1', expected LAYER=DEVICE" --devices="$pairs" --place=dense1
wrong "--place: 'dense1=cpu:7', expected a device of --devices=$pairs" --devices="$pairs" --place=dense1=cpu:7
run 2 bench --dataset=digits --devices="$pairs" --place="$place"
grep -q 'found groups of 2, expected workers of one device to compare' err || fail "bench: $(cat err)"
[ $failures -eq 0 ]
