#!/bin/bash
# --share: workers with parts of different sizes. Equal parts have the bits of even ones; unequal ones repeat
# themselves, in processes and from a checkpoint, too; what auto settles to, typed, repeats its run. What is
# written down counts examples. Strategies that do not weight gradients refuse it.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

few="--dataset=digits:take=300 --model=mlp:hidden=20 --batch=12 --threads=1 --quiet --replace"
three=cpu:0,cpu:1,cpu:2

# --- bits ---
run 0 $few --devices=$three --epochs=2 --out=even
run 0 $few --devices=$three --epochs=2 --share=7,7,7 --out=equal
same_weights "--share=7,7,7" even equal
run 0 $few --devices=$three --epochs=2 --share=4,1,1 --out=uneven
run 0 $few --devices=$three --epochs=2 --share=24,6,6 --prefetch=2 --out=again
same_weights "--share=24,6,6" uneven again
other_weights "--share=4,1,1" even uneven

# --- what is written down: every example of the stream once, losses by their examples ---
python3 - <<'PYTHON' || fail "--share=4,1,1: what was written down is wrong"
import csv, json
rows = list(csv.DictReader(open("uneven/steps.csv")))
assert {(r["worker"], r["examples"]) for r in rows} == {("0", "24"), ("1", "6"), ("2", "6")}, rows[0]
summary = json.load(open("uneven/summary.json"))
assert summary["share"] == "4,1,1" and summary["examples"] == sum(int(r["examples"]) for r in rows) >= 600, (
    summary["examples"])
epochs = list(csv.DictReader(open("uneven/epochs.csv")))
first = [r for r in rows if int(r["step"]) <= 9]  # 9 rounds of 36 go over 300 examples
mean = sum(float(r["loss"]) * int(r["examples"]) for r in first) / sum(int(r["examples"]) for r in first)
assert abs(mean - float(epochs[0]["train_loss"])) < 2e-5, (mean, epochs[0])
PYTHON
run 0 ${few/--quiet/} --print-every=0 --devices=$three --epochs=1 --share=4,1,1 --out=said
grep -q '^batch 24 + 6 + 6 = 36, ' out && grep -q 'with .*--share=4,1,1' out ||
    fail "the first lines: $(head -n 6 out)"

# One worker with all of it goes the same way, as far as rounding allows.
run 0 $few --dataset=digits:take=288 --devices=$three --epochs=2 --share=4,1,1 --out=parts
run 0 $few --dataset=digits:take=288 --batch=36 --devices=cpu:0 --epochs=2 --out=union
python3 - <<'PYTHON' || fail "--share=4,1,1 and one worker with the whole batch are apart"
import struct, tensors
one, other = (tensors.tensors(f"{folder}/model.safetensors") for folder in ("parts", "union"))
floats = lambda file: [x for name in sorted(file) for (x,) in struct.iter_unpack("<f", file[name][1])]
far = [abs(a - b) for a, b in zip(floats(one), floats(other))]
assert len(far) > 1000 and max(far) < 1e-5, max(far)
PYTHON

# --- statistics, random numbers, micro-batches, groups: all repeat ---
network='layers:conv 4 3x3 same; batch_norm; relu; flatten; dense 16 relu; dropout 0.2; dense'
for more in "--microbatches=2" "--clip=0.1 --average=0.9" "--dataset=digits:take=300,mixup=0.4"; do
    for out in one two; do
        run 0 $few --model="$network" $more --devices=cpu:0,cpu:1 --share=3,1 --epochs=2 --out=$out
    done
    same_weights "--share=3,1 $more" one two
done
run 0 $few --model=mlp:hidden=16-16 --devices='(cpu:0+cpu:1),(cpu:2+cpu:3)' --place='dense2=cpu:1' \
    --share=3,1 --epochs=2 --out=groups
run 0 $few --model=mlp:hidden=16-16 --devices=cpu:0,cpu:1 --share=3,1 --epochs=2 --out=single
same_weights "groups" groups single

# --- from a checkpoint: in the middle of an epoch's last round, under other shares, with other workers ---
run 0 $few --devices=$three --epochs=4 --share=4,1,1 --out=whole
run 0 $few --devices=$three --epochs=4 --stop-after=2 --share=4,1,1 --out=half
run 0 --resume=half --devices=$three --threads=1 --quiet
same_weights "--resume" whole half
for share in even 1,2,3; do
    rm -rf other
    run 0 $few --devices=$three --epochs=2 --share=4,1,1 --out=part
    run 0 --resume=part --out=other --devices=$three --threads=1 --quiet --epochs=4 --share=$share
    python3 -c \
        'import json; s = json.load(open("other/summary.json")); exit(not 1200 <= s["examples"] < 1236)' ||
        fail "--resume --share=$share: $(grep '"examples"' other/summary.json)"
done
run 0 $few --dataset=digits:take=301 --devices=cpu:0,cpu:1 --epochs=2 --share=5,1 --out=odd
run 0 --resume=odd --devices=cpu:0,cpu:1 --threads=1 --quiet --epochs=4 # from 620 on, in rounds of 20 + 4
grep -q '"examples": 1216,' odd/summary.json ||
    fail "--resume at a place that is no batch's: $(grep '"examples"' odd/summary.json)"
rm -rf other
run 0 --resume=part --out=other --devices=cpu:0,cpu:1 --threads=1 --epochs=4
grep -q -e '--share=4,1,1 was for other workers' err || fail "two workers for three weights: $(cat err)"
grep -q '"share": "even"' other/summary.json ||
    fail "two workers for three weights: $(grep share other/summary.json)"

# --- auto: what it settled to repeats it ---
run 0 ${few/--quiet/} --devices=cpu:0,cpu:1 --slow=cpu:1=4x --epochs=2 --share=auto --out=auto
grep -q 'measuring the workers' err || fail "--share=auto: said $(cat err)"
share_of() {
    python3 -c 'import json, sys; print(json.load(open(f"{sys.argv[1]}/summary.json"))["share"])' "$1"
}
share=$(share_of auto)
[[ $share =~ ^([0-9]+),([0-9]+)$ ]] && [ $((BASH_REMATCH[1] + BASH_REMATCH[2])) -eq 24 ] ||
    fail "--share=auto came to $share"
run 0 $few --devices=cpu:0,cpu:1 --epochs=2 --share="$share" --out=typed
same_weights "--share=auto, then $share" auto typed
run 0 --resume=auto --devices=cpu:0,cpu:1 --threads=1 --quiet --epochs=4
run 0 --resume=typed --devices=cpu:0,cpu:1 --threads=1 --quiet --epochs=4
same_weights "--share=auto, resumed" auto typed

# --- every strategy takes it or refuses it, by its trait ---
for strategy in $(names_of strategies); do
    timeout $limit "$TRAINER" $few --strategy="$strategy" --devices=$three --share=4,1,1 --epochs=2 \
        --out=one >out 2>err
    code=$?
    case $strategy in
    sync | backup)
        [ $code -eq 0 ] || fail "$strategy: exit code $code: $(cat err)"
        python3 -c 'import json; s = json.load(open("one/summary.json")); exit(
            not 600 <= s["examples"] < 636 or not s["final_cost"] < s["first_cost"])' ||
            fail "$strategy: $(grep -E 'examples"|_cost' one/summary.json)"
        ;;
    *) [ $code -eq 2 ] && grep -q 'does not weight gradients by their examples' err ||
        fail "$strategy: exit code $code: $(cat err)" ;;
    esac
done
run 0 $few --strategy='backup until epoch 1; sync' --devices=$three --share=4,1,1 --epochs=2 --out=one
refused_with 2 "--share=4,1,1: --strategy=async-apply does not .*" $few \
    --strategy='sync until epoch 1; async-apply' --devices=$three --share=4,1,1
refused_with 2 '--share=4,1: found 2 weights, expected 3, one for each worker' $few --devices=$three \
    --share=4,1
refused_with 2 '--share=4,x: expected even, auto, or a whole number above 0 for each worker, as in 3,1' $few \
    --devices=$three --share=4,x
refused_with 2 '--share=4,1,1: expected --data-sharding=shared, .*' $few --devices=$three --share=4,1,1 \
    --data-sharding=split
refused_with 2 '--share=4,1,1: found --on-loss=continue, expected stop: under --strategy=sync .*' $few \
    --devices=$three --share=4,1,1 --on-loss=continue

# --- processes ---
run 0 $few --devices=cpu:0,cpu:1 --epochs=2 --share=3,1 --out=alone
for servers in 0 1 2; do
    for share in 3,1 auto; do
        new_cluster $servers 2
        rm -rf pair
        for ((s = 0; s < servers; s++)); do
            start ps$s "$TRAINER" --job=ps --task=$s $hosts $few --share=$share --epochs=2 --out=pair
        done
        for w in 0 1; do
            options="--job=worker --task=$w --devices=cpu:$w --threads=1 --quiet"
            [ $servers -gt 0 ] || options+=" ${few/--quiet/} --share=$share --epochs=2 --out=pair"
            [ $servers -gt 0 ] || [ $w -gt 0 ] || options+=" --slow=cpu:1=4x"
            start w$w "$TRAINER" $hosts $options
        done
        ends 0 w0 w1
        for ((s = 0; s < servers; s++)); do ends 0 ps$s; done
        if [ $share = auto ]; then
            share=$(share_of pair)
            run 0 $few --devices=cpu:0,cpu:1 --epochs=2 --share="$share" --out=alone
        fi
        same_weights "$servers parameter servers, --share=$share" alone pair
    done
    run 0 $few --devices=cpu:0,cpu:1 --epochs=2 --share=3,1 --out=alone
done
[ $failures -eq 0 ]
