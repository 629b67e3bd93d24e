#!/bin/bash
# Columns of texts that the network embeds (csv:embedding=N): what it says of a row is what plain arithmetic
# makes of its weights, also of values that training did not have; resumed, from a pack and by two processes
# it is the same network; other formats have it.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

python3 - <<'PYTHON'
import random
random.seed(1)
towns, shops = [f"town{i:02}" for i in range(12)], ["b", "a", "c"]
liked = {t: random.gauss(0, 1) for t in towns + shops}
with open("table.csv", "w") as file:
    file.write("town,age,shop,bought\n")
    for i in range(600):
        town, shop, age = random.choice(towns), random.choice(shops), random.uniform(1, 80)
        file.write(
            f"{town},{age:.1f},{shop},{'yes' if liked[town] + liked[shop] + (age - 40) / 40 > 0 else 'no'}\n")
PYTHON
table="csv:file=table.csv,embedding=3,test=0.3"
# shellcheck disable=SC2054 # commas are the program's
train=(--optimizer=adam:rate=0.02 --schedule=constant --devices=cpu:0 --quiet)
runs --dataset="$table" --model=softmax "${train[@]}" --epochs=8 --out=run
[ $code -eq 0 ] || fail "training: $(cat err)"

# --- by hand ---
printf 'town,age,shop\ntown03,30,a\ntown11,7.5,c\nNowhere,30,b\ntown03,50,nothing\nNowhere,80,nothing\n' \
    >rows.csv
runs predict --checkpoint=run --format=csv rows.csv
[ "$(cat err)" = "trainer: rows.csv: values that training did not have count as none: 4 cells" ] ||
    fail "unknown values: $(cat err)"
cat >check.py <<'PYTHON'
import array, csv, json, math, tensors
path = "run/model.safetensors"
kept = tensors.tensors(path)
data = open(path, "rb").read()
texts = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]
def rows(name):
    (shape, values) = kept[name]
    values = array.array("f", values)
    width = shape[-1]
    return [list(values[i:i + width]) for i in range(0, len(values), width)]
table, weights, bias = rows("categories/kernel"), rows("dense1/kernel"), rows("dense1/bias")[0]
words = texts["columns"].split("\t")
assert words[:4] == ["header", ".", "embedding", "3"], words
def values(name):
    at = words.index(name)
    return words[at + 3:at + 3 + int(words[at + 2])]
towns, shops = values("town"), values("shop")
assert len(towns) == 12 and len(table) == 1 + len(towns) + len(shops), (towns, shops, len(table))
assert table[0] == [0, 0, 0] and all(any(row) for row in table[1:]), table
assert texts["feature_names"].split("\t") == ["age", "town", "shop"], texts["feature_names"]
mean, deviation = (list(map(float, texts[name].split(","))) for name in ("mean", "deviation"))
assert mean[1:] == [0, 0] and deviation[1:] == [1, 1], (mean, deviation)
code = lambda list, value, before: before + list.index(value) if value in list else 0
for row, said in zip(csv.DictReader(open("rows.csv")), csv.DictReader(open("out")), strict=True):
    x = ([(float(row["age"]) - mean[0]) / deviation[0]] + table[code(towns, row["town"], 1)] +
         table[code(shops, row["shop"], 1 + len(towns))])
    assert len(x) == len(weights) == 7
    logits = [bias[c] + sum(v * weights[i][c] for i, v in enumerate(x)) for c in range(2)]
    yes = 1 / (1 + math.exp(logits[0] - logits[1]))
    assert abs(yes - float(said["probability=yes"])) < 1e-5, (row, said, yes)
PYTHON
python3 check.py >out2 2>&1 || fail "by hand: $(tail -n 1 out2)"

# --- evaluated, resumed, from a pack, with layers of one's own ---
good evaluate --checkpoint=run
grep -Eq '^Test-Accuracy: (0\.9|1)' out || fail "evaluate: $(cat out)"
runs --dataset="$table" --model=softmax "${train[@]}" --epochs=3 --out=half
runs --resume=half --epochs=8 --devices=cpu:0 --quiet
same_weights "resumed" run half
good pack "$table" table.pack
runs --dataset=pack:file=table.pack --model=softmax "${train[@]}" --epochs=8 --out=packed
same_weights "from a pack" run packed
runs predict --checkpoint=packed --format=csv rows.csv
runs --dataset="$table" --model='layers:dense' "${train[@]}" --epochs=2 --out=layers
[ $code -eq 0 ] || fail "layers: $(cat err)"
good describe --model=mlp --dataset="$table"
grep -q 'categories/kernel \[16, 3\]' out || fail "describe: $(cat out)"
runs --dataset="csv:file=table.csv,columns=town,embedding=2,test=0.3" --model=mlp:hidden=4 "${train[@]}" \
    --epochs=2 --out=town
[ $code -eq 0 ] || fail "categories alone: $(cat err)"
runs predict --checkpoint=town rows.csv
[ "$(wc -l <out)" -eq 5 ] || fail "categories alone: $(cat out err)"
good export --checkpoint=town town.npz

# --- two processes ---
repeatable= # where a build has a GPU's kernels, which are not repeatable by themselves
"$TRAINER" train --help=all | grep -q -e '^ *--deterministic' && repeatable=--deterministic
# shellcheck disable=SC2086 # none, or one
runs --dataset="$table" --model=softmax --optimizer=adam:rate=0.02 --devices=cpu:0,cpu:1 --epochs=2 \
    --quiet $repeatable --out=two
[ $code -eq 0 ] || fail "two workers: $(cat err)"
runs --hosts=localhost:3 --ps=1 --dataset="$table" --model=softmax --optimizer=adam:rate=0.02 \
    --devices=cpu:0 --epochs=2 --quiet $repeatable --out=cluster
[ $code -eq 0 ] || fail "a cluster: $(cat err)"
same_weights "a cluster" two cluster

# --- what does not fit ---
grep -v town05 table.csv >fewer.csv
refused 2 'cnn: found 3 measurements per example of csv:.*, expected an image' \
    --dataset="$table" --model=cnn --epochs=1
refused 2 'embedding' --dataset=csv:file=table.csv,embedding=1001
refused 2 \
    'csv: found 2 columns of categories with 15 codes, expected 2 with 16, what the network was trained on' \
    evaluate --checkpoint=run --dataset=csv:file=fewer.csv,embedding=3
[ $failures -eq 0 ]
