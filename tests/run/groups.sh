#!/bin/bash
# Workers of several devices: a placed network trains, bit for bit, as one on a device per worker, alone,
# resumed and over processes; under every strategy, here, in a comparison and at a parameter server; the lost
# worker of a group hangs nobody. What is placed is said; what is wrong with groups and places, too. Whatever
# names a worker names its whole group.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

wrong() { # words of the one line, arguments...
    run 2 $few "${@:2}"
    grep -Fq -e "$1" err && [ "$(wc -l <err)" -eq 1 ] && return
    fail "${*:2}: said $(cat err), expected: $1"
}
few="--dataset=digits:take=96 --model=mlp:hidden=20-15 --threads=1 --kernels=reference --batch=16 --epochs=2 \
    --replace"
place="dense[12]=cpu:0,dense3=cpu:1"
pairs='(cpu:0+cpu:1),(cpu:2+cpu:3)'

named() { # folder: its files name two workers by their groups
    python3 - "$1" <<'PYTHON' || fail "$1: a worker has another name"
import csv, json, sys
groups = ["cpu:0+cpu:1", "cpu:2+cpu:3"]
summary = json.load(open(f"{sys.argv[1]}/summary.json"))
assert summary["devices"] == ",".join(f"({g})" for g in groups), summary["devices"]
assert [w["device"] for w in summary["per_worker"]] == groups, summary["per_worker"]
assert summary["members"][:2] == [w["name"] for w in summary["per_worker"]] == [f"worker {i} ({g})"
                                                                                for i, g in enumerate(groups)]
assert ({(int(r["worker"]), r["device"]) for r in csv.DictReader(open(f"{sys.argv[1]}/steps.csv"))} ==
        set(enumerate(groups)))
PYTHON
}

# --- the same bits ---
run 0 $few --quiet --devices=cpu:0,cpu:1 --out=single
run 0 $few --devices="$pairs" --place="$place" --out=placed --microbatches=1
same_weights "groups" single placed
named placed
grep -Fqx 'sync, 2 workers ((cpu:0+cpu:1),(cpu:2+cpu:3) x1), 1 shard' out ||
    fail "first lines: $(head -n 4 out)"
grep -Fqx \
    'trainer: dense1, dense2 on cpu:0; dense3 on cpu:1; 2.0 kB cross in each forward and backward pass' err ||
    fail "what lies where: $(cat err)"
run 0 report placed
grep -Fq 'worker 1 (cpu:2+cpu:3)' placed/report.html && grep -Fq -- "--devices=&#39;$pairs&#39;" \
    placed/report.html || fail "the report names no group: $(grep -o -- '--devices[^<]*' placed/report.html)"
# A large network.
run 0 --dataset=digits:take=8 --model=layers:$tests/../models/layers/resnet56.txt --batch=4 --epochs=1 \
    --kernels=reference --devices='(cpu:0+cpu:1)' --place='conv2[0-9]=cpu:1' --explain --replace --out=many
for file in err out; do
    grep -Eq '^(trainer: )?conv1 to norm19 on cpu:0; conv20 to dense1 on cpu:1; '\
'[0-9.]+ kB cross in each forward and backward pass$' \
        $file || fail "what lies where ($file): $(grep cross $file)"
done
run 0 $few --model='layers:flatten; a/b = dense 5; a/c = dense' \
    --devices='(cpu:0+cpu:1)' --place='a/c=cpu:1' --epochs=1 --out=nested
grep -Fq 'trainer: a/b on cpu:0; a/c on cpu:1; ' err || fail "layers of layers: $(cat err)"
run 0 $few --quiet --devices=cpu:0,cpu:1,cpu:2,cpu:3 --group=2 --place="$place" --epochs=1 --out=half
run 0 --resume=half --epochs=2 --threads=1 --kernels=reference --devices="$pairs" --place="dense2=cpu:3" \
    --quiet
same_weights "--group, resumed in another place" single half
run 0 $few --devices="$pairs" --place="$place" --explain --epochs=1 --out=explained
grep -Eq '^from cpu:0 to cpu:1: node [0-9]+ \(.*\), 0.001 MB$' out || fail "--explain: $(cat out)"

# --- every strategy, and a worker that fails ---
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    run 0 $few --quiet --strategy="$strategy" --devices="$pairs" --place="$place" --microbatches=2 \
        --epochs=4 --out=one
    python3 -c 'import json; s = json.load(open("one/summary.json")); exit(s["examples"] != 384)' ||
        fail "$strategy: $(grep 'examples"' one/summary.json)"
done
# ssp: both come to step 2.
run 0 $few --quiet --strategy=ssp:bound=1 --on-loss=continue --devices="$pairs" --place="$place" \
    --fail=worker:1@step:2 --slow=cpu:3=2x --out=lost
grep -Fq 'trainer: lost: worker 1 (cpu:2+cpu:3)' err || fail "a lost worker: $(cat err)"
run 0 bench $few --quiet --repeats=1 --devices="$pairs" --place="$place" --epochs=1 --out=compared
named compared/sync/1
python3 - "$("$TRAINER" list strategies | grep -c '^  [a-z]')" \
    <<'PYTHON' || fail "bench: $(cat compared/bench.csv)"
import csv, sys
rows = list(csv.DictReader(open("compared/bench.csv")))
assert all(row["failed"] == "0" and row["workers"] == ("1" if row["baseline"] == "1" else "2")
           for row in rows)
for row in rows:
    devices = f"cpu:0 x{row['threads']}" if row["baseline"] == "1" else "cpu:0+cpu:1 x1, cpu:2+cpu:3 x1"
    assert row["devices"] == devices, row
assert len([row for row in rows if row["baseline"] == "0"]) >= int(sys.argv[1]), "a strategy is missing"
PYTHON

# --- places by measured times ---
run 0 $few --devices="$pairs" --place=auto --out=auto
same_weights "--place=auto" single auto
grep -Eq '^trainer: placed by measured times, [0-9.]+ ms expected per batch' err ||
    fail "--place=auto: $(cat err)"
python3 -c 'import json; s = json.load(open("auto/summary.json")); print(s["place"])
exit(not 0 < s["batch_expected_s"] < 1 or s["batch_compute_s"] <= 0)' >list ||
    fail "--place=auto: $(grep batch_ auto/summary.json)"
run 0 $few --devices="$pairs" --place="$(cat list)" --out=again
same_weights "the places that auto chose ($(cat list))" single again

# --- a name that is too long is shortened where it is shown alone ---
nine='(cpu:0+cpu:1+cpu:2+cpu:3+cpu:4+cpu:5+cpu:6+cpu:7+cpu:8)'
run 0 $few --quiet --devices="$nine" --place='dense2=cpu:3' --slow=cpu:3=2x --epochs=1 --out=nine
python3 - "$nine" <<'PYTHON' || fail "a large group: $(grep -E '"(devices?|slow)"' nine/summary.json)"
import json, sys
summary = json.load(open("nine/summary.json"))
exit(summary["devices"] != sys.argv[1] or summary["per_worker"][0]["device"] != "cpu:0+...+cpu:8")
PYTHON
run 0 $few --quiet --devices='(cpu:0-8)' --place='dense2=cpu:3' --slow=cpu:3-4=2x --epochs=1 --out=range
same_weights "a group that is written as a range" nine range
run 0 report nine
grep -Fq -- "--devices=&#39;$nine&#39;" nine/report.html ||
    fail "a large group cannot be repeated: $(grep -o -- '--devices[^<]*' nine/report.html)"

# --- Ctrl-C while devices are measured: at once, not after it ---
start measured "$TRAINER" --dataset=digits --model=layers:$tests/../models/layers/resnet56.txt --batch=128 \
    --kernels=reference --threads=1 --devices='(cpu:0+cpu:1)' --place=auto --out=measured
wait_until grep -qs "measuring the devices" measured.err
signal INT measured
ends 130 measured
grep -Fqx 'trainer: interrupted while devices were measured' measured.err ||
    fail "Ctrl-C: $(cat measured.err)"

# --- processes ---
new_cluster 0 2
places=("$place" auto)
for w in 0 1; do
    start w$w "$TRAINER" $hosts --job=worker --task=$w $few --devices='(cpu:0+cpu:1)' --place="${places[w]}" \
        --out=pair
done
ends 0 w0 w1
same_weights "two processes" single pair
grep -q 'placed by measured times, ' w1.err || fail "a worker of a cluster places by itself: $(cat w1.err)"
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    new_cluster 1 2
    start ps "$TRAINER" $hosts --job=ps --task=0 $few --strategy="$strategy" --epochs=1 --out=far
    for w in 0 1; do
        start w$w "$TRAINER" $hosts --job=worker --task=$w --threads=1 --kernels=reference \
            --devices='(cpu:0+cpu:1)' --place="$place"
    done
    ends 0 ps w0 w1
    python3 -c 'import json; s = json.load(open("far/summary.json")); exit(
        s["examples"] != 96 or [w["device"] for w in s["per_worker"]] != 2 * ["cpu:0+cpu:1"])' ||
        fail "$strategy at a parameter server: $(grep -E '"(examples|device)"' far/summary.json)"
done

# --- what is wrong ---
wrong "'(cpu:0+cpu:1),cpu:2', expected groups of equal size" --devices='(cpu:0+cpu:1),cpu:2' --place="$place"
wrong "found groups of 2 without --place" --devices='(cpu:0+cpu:1)'
wrong "found workers of one device, expected groups" --devices=cpu:0 --place="$place"
wrong "--place=auto: found workers of one device, expected groups" --devices=cpu:0 --place=auto
wrong "--group=2: found 3 devices, expected a multiple of 2" \
    --devices=cpu:0,cpu:1,cpu:2 --group=2 --place="$place"
wrong "--group=3: found groups of 2" --devices="$pairs" --group=3 --place="$place"
wrong "--place: 'conv*=cpu:0', but the model has no weights in a layer 'conv*', expected dense1, " \
    --devices="$pairs" --place='conv*=cpu:0'
wrong "--place: 'dense1', expected LAYER=DEVICE" --devices="$pairs" --place=dense1
wrong "--place: 'dense1=cpu:7', expected a device of --devices=$pairs" --devices="$pairs" --place=dense1=cpu:7
run 2 bench $few --devices="$pairs" --place="dense1=cpu:7" --out=none
grep -Fq "expected a device of --devices=$pairs" err && [ ! -e none ] || fail "bench: $(cat err)"
wrong "--slow: no worker is on cpu:9" --devices="$pairs" --place="$place" --slow=cpu:9=2x
[ $failures -eq 0 ]
