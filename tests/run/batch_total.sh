#!/bin/bash
# --batch-total: as many examples in each update whatever the number of workers is. Parts that divide have the
# bits of --batch with the part; one, two, three and four workers go the same way, example for example, as far
# as rounding allows; a resumed run keeps the total with other workers, to the example; in processes it has
# the bits of threads. What it refuses it refuses with one line.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

few="--dataset=digits:take=300 --model=mlp:hidden=20 --threads=1 --quiet --replace"
devices=(none cpu:0 cpu:0,cpu:1 cpu:0,cpu:1,cpu:2 cpu:0,cpu:1,cpu:2,cpu:3)

# --- bits: parts that divide ---
run 0 $few --batch=10 --devices=${devices[2]} --epochs=2 --out=parts
run 0 $few --batch-total=20 --devices=${devices[2]} --epochs=2 --out=total
same_weights "--batch-total=20 of two" parts total
run 0 $few --batch=10 --devices=${devices[1]} --epochs=2 --out=parts
run 0 $few --batch-total=10 --devices=${devices[1]} --epochs=2 --out=total
same_weights "--batch-total=10 of one" parts total
run 0 $few --batch-total=20 --devices=${devices[3]} --epochs=2 --out=again1
run 0 $few --batch-total=20 --devices=${devices[3]} --epochs=2 --prefetch=2 --out=again2
same_weights "--batch-total=20 of three" again1 again2

# --- one to four workers: the same examples in the same updates, also in the last one, which goes over the
# end ---
for w in 1 2 3 4; do run 0 $few --batch-total=64 --devices=${devices[w]} --epochs=3 --out=w$w; done
python3 - <<'PYTHON' || fail "--batch-total=64: one to four workers are apart"
import csv, json, struct, tensors
def floats(folder):
    file = tensors.tensors(f"{folder}/model.safetensors")
    return [x for name in sorted(file) for (x,) in struct.iter_unpack("<f", file[name][1])]
one = floats("w1")
for w in (1, 2, 3, 4):
    summary = json.load(open(f"w{w}/summary.json"))
    rows = list(csv.DictReader(open(f"w{w}/steps.csv")))
    updates = {}
    for row in rows:
        updates[row["update"]] = updates.get(row["update"], 0) + int(row["examples"])
    # 900 / 64, rounded up.
    assert set(updates.values()) == {64} and len(updates) == summary["updates"] == 15, (w, updates)
    assert summary["examples"] == 960 and summary["batch_total"] == 64 and summary["batch"] == 64 // w, (
        w, summary["examples"])
    sizes = {64 // w, -(-64 // w)}
    assert {int(row["examples"]) for row in rows} == sizes, (w, rows[0])
    far = max(abs(a - b) for a, b in zip(one, floats(f"w{w}")))
    assert len(one) > 1000 and far < 1e-5, (w, far)
PYTHON
run 0 ${few/--quiet/} --print-every=0 --batch-total=20 --devices=${devices[3]} --epochs=1 --out=said
grep -q '^batch 7 + 7 + 6 = 20, ' out && grep -q 'with .*--batch-total=20' out ||
    fail "the first lines: $(head -n 6 out)"
run 0 report said
grep -o -e '--batch[a-z-]*=[0-9]*' said/report.html | sort -u |
    tr '\n' ' ' | grep -qx -e '--batch-total=20 ' ||
    fail "the report's command: $(grep -o -e '--batch[a-z-]*=[0-9]*' said/report.html)"
run 0 $few --batch-total=24 --share=3,1 --devices=${devices[2]} --epochs=1 --out=shares
cut -d, -f2,8 shares/steps.csv | sort -u | tr '\n' ' ' | grep -q '^0,18 1,6 ' ||
    fail "--share=3,1: $(head -n 3 shares/steps.csv)"
run 0 $few --batch-total=20 --strategy=async-lockfree --devices=${devices[3]} --epochs=2 --out=async
# Each has its own part, whoever comes to how many.
awk -F, 'NR > 1 { rows++; wrong += $8 != ($2 < 2 ? 7 : 6) } END { exit !(rows > 0 && wrong == 0) }' \
    async/steps.csv || fail "async-lockfree: $(cut -d, -f2,8 async/steps.csv | sort | uniq -c)"

# --- from a checkpoint with other workers ---
run 0 $few --batch-total=20 --devices=${devices[1]} --epochs=4 --out=whole
run 0 $few --batch-total=20 --devices=${devices[2]} --epochs=4 --stop-after=2 --out=half
run 0 --resume=half --devices=${devices[3]} --threads=1 --quiet
python3 - <<'PYTHON' || \
    fail \
        "--resume with three workers instead of two: $(grep -E '"(examples|updates|batch)' half/summary.json)"
import json, struct, tensors
summary = json.load(open("half/summary.json"))
assert summary["batch_total"] == 20 and summary["updates"] == 60 and summary["examples"] == 1200, (
    summary["updates"])
floats = lambda file: [x for name in sorted(file) for (x,) in struct.iter_unpack("<f", file[name][1])]
one, other = (floats(tensors.tensors(f"{folder}/model.safetensors")) for folder in ("whole", "half"))
assert max(abs(a - b) for a, b in zip(one, other)) < 1e-5
PYTHON
# In the middle of what would be a batch of others: 301 examples in parts of 10, then of 5.
rm -rf odd
run 0 $few --dataset=digits:take=301 --strategy=async-apply --batch-total=20 --devices=${devices[2]} \
    --epochs=4 --stop-after=1 --out=odd
run 0 --resume=odd --strategy=sync --devices=${devices[3]} --threads=1 --quiet
# 310, then 45 times 20.
grep -q '"examples": 1210,' odd/summary.json ||
    fail "--resume between batches: $(grep '"examples"' odd/summary.json)"
run 0 --resume=odd --batch=8 --epochs=5 --devices=${devices[1]} --threads=1 --quiet
grep -q '"batch_total": 0,' odd/summary.json || fail "--resume --batch: $(grep batch odd/summary.json)"

# 304 is in the middle of what two workers take, 6 and 6: they go on from there, 75 times 12.
rm -rf odd
run 0 $few --dataset=digits:take=301 --strategy=async-apply --batch-total=12 --devices=${devices[3]} \
    --epochs=4 --stop-after=1 --out=odd
run 0 --resume=odd --strategy=sync --devices=${devices[2]} --threads=1 --quiet
grep -q '"examples": 1204,' odd/summary.json ||
    fail "--resume in a batch of others: $(grep '"examples"' odd/summary.json)"

# --- processes ---
run 0 $few --batch-total=20 --devices=${devices[3]} --epochs=2 --out=three
run 0 $few --batch-total=20 --devices=${devices[2]} --epochs=2 --out=two
for servers in 0 1 2; do
    for workers in 2 3; do
        new_cluster $servers $workers
        rm -rf apart
        settings="$few --batch-total=20 --epochs=2 --out=apart"
        for ((s = 0; s < servers; s++)); do start ps$s "$TRAINER" --job=ps --task=$s $hosts $settings; done
        [ $servers -gt 0 ] && settings="--threads=1 --quiet"
        for ((w = 0; w < workers; w++)); do
            start w$w "$TRAINER" --job=worker --task=$w --devices=cpu:$w $hosts $settings
        done
        for ((w = 0; w < workers; w++)); do ends 0 w$w; done
        for ((s = 0; s < servers; s++)); do ends 0 ps$s; done
        same_weights "$servers parameter servers, $workers workers" \
            apart $([ $workers -eq 2 ] && echo two || echo three)
    done
done

# From a checkpoint of other batches, where the updates of 45 end at 930 and not at 900: all servers'
# schedules know.
settings="$few --schedule=cosine --epochs=3"
for folder in threads apart; do
    run 0 $settings --batch=10 --devices=${devices[2]} --stop-after=1 --out=$folder
done
run 0 --resume=threads --batch-total=45 --devices=${devices[2]} --threads=1 --quiet
new_cluster 2 2
start ps0 "$TRAINER" --job=ps --task=0 $hosts --resume=apart --batch-total=45 --threads=1 --quiet
start ps1 "$TRAINER" --job=ps --task=1 $hosts $settings --batch-total=45
for w in 0 1; do start w$w "$TRAINER" --job=worker --task=$w --devices=cpu:$w $hosts --threads=1 --quiet; done
ends 0 w0 w1 ps0 ps1
same_weights "--resume --batch-total=45, 2 parameter servers" apart threads

# --- what is refused ---
refused_with 2 '--batch=8 and --batch-total=20: expected one of them, .*' $few --batch=8 --batch-total=20
refused_with 2 '--batch-total=2: found 3 workers, expected an example for each' $few --batch-total=2 \
    --devices=${devices[3]}
refused_with 2 '--batch-total=4: found 3 workers, expected an example of each micro-batch for each' $few \
    --batch-total=4 --microbatches=2 --devices=${devices[3]}
refused_with 2 '--microbatches=3: found --batch-total=20, expected a multiple of 3' $few --batch-total=20 \
    --microbatches=3
refused_with 2 '--batch-total=301: expected at most 300, the training examples of digits' $few \
    --batch-total=301
refused_with 2 \
    '--batch-total=20: found 3 workers, expected a multiple of that: parts of different sizes need '\
'--data-sharding=shared' \
    $few --batch-total=20 --data-sharding=split --devices=${devices[3]}
refused_with 2 '--batch-total=20: expected a multiple of 3, .*: --strategy=local-sgd does not weight .*' \
    $few --batch-total=20 --strategy=local-sgd --devices=${devices[3]}
refused_with 2 '--batch-total=20: found --on-loss=continue and 3 workers, .*' $few --batch-total=20 \
    --on-loss=continue --devices=${devices[3]}
refused_with 3 'half: --batch-total=20: expected a multiple of 3, .*' \
    --resume=half --epochs=5 --strategy=local-sgd --devices=${devices[3]}
run 0 $few --batch-total=20 --strategy=local-sgd --devices=${devices[2]} --epochs=1 --out=local
[ $failures -eq 0 ]
