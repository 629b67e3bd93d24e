#!/bin/bash
# trainer ensemble: members are the runs that the same settings make alone; one member says what it says by
# itself; the mean of the probabilities, or of values, and the votes are those computed from the members' own
# predictions; slices share no example; one that was killed ends as one that was not.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small=(--dataset=iris --threads=1 --epochs=3 --quiet)

# --- members, trained with others and alone ---
good ensemble "${small[@]}" --model=mlp:hidden=8 --members=3 --devices=cpu:0,cpu:1 --out=three
best=$(sed -n 's/^ *\([0-9]\) *\([0-9.]*\) %.*/\2 \1/p' out | sort -k1,1nr -k2,2n | head -n 1 | cut -d' ' -f2)
grep -q "^Member $best: [0-9,]* examples/s, computing takes [0-9]* % of the time" out ||
    fail "it does not say where the time of its best member went: $(cat out)"
good "${small[@]}" --model=mlp:hidden=8 --devices=cpu:0 --seed=3 --out=alone
same_weights 'the third member, alone' three/3 alone
good ensemble "${small[@]}" --member='model=softmax seed=5' \
    --member='model=mlp:hidden=8 optimizer.rate=0.05' --data-sharding=split --devices=cpu:0 --out=other
good "${small[@]}" --model=mlp:hidden=8 --optimizer=momentum:rate=0.05 --seed=2 --data-slice=2/2 \
    --devices=cpu:0 --out=slice
same_weights 'a member on its slice, alone' other/2 slice
good "${small[@]}" --model=mlp:hidden=8 --optimizer=momentum:rate=0.05 --seed=2 --data-slice=1/2 \
    --devices=cpu:0 --out=first
other_weights 'two slices' slice first
python3 - <<'PYTHON' || fail 'the slices'
import json
for member, model in (1, "softmax"), (2, "mlp:hidden=8"):
    s = json.load(open(f"other/{member}/summary.json"))
    assert s["model"] == model and s["data_slice"] == f"{member}/2" and s["data_sharding"] == "shared", s
    assert s["examples"] <= 3 * 60 + 32, s["examples"]
PYTHON

# --- a run that is in a member's folder already is said ---
mkdir found
good train "${small[@]}" --model=softmax --out=found/2
"$TRAINER" ensemble "${small[@]}" --model=softmax --members=2 --devices=cpu:0 --out=found >out 2>err &&
    [ "$(cat err)" = 'trainer: member 2 of 2: found/2 had a run, which it went on with' ] ||
    fail "a member's folder that had a run: $(cat err)"

# --- one member is that member ---
good ensemble "${small[@]}" --model=mlp:hidden=8 --members=1 --devices=cpu:0 --out=one
printf '%s\n' 5.1,3.3,1.7,0.5 5.9,3.0,4.2,1.5 6.9,3.1,5.4,2.1 6.1,2.8,4.9,1.7 >flowers.csv
for folder in one one/1; do
    good predict --checkpoint=$folder --format=csv flowers.csv
    cp out "${folder/\//-}.csv"
done
runs predict --checkpoint=one/1 --combine=vote flowers.csv
grep -qx 'trainer: --combine=vote does nothing for a single network' err ||
    fail "votes of a single network: $(cat err)"
cmp one.csv one-1.csv || fail 'an ensemble of one predicts something else than its member'
good evaluate --checkpoint=one
grep -E 'Test-(Accuracy|Cost):' out >all
good evaluate --checkpoint=one/1
grep -E 'Test-(Accuracy|Cost):' out | cmp - all ||
    fail "an ensemble of one, evaluated: $(cat all) expected: $(cat out)"

# --- means and votes, from what each member says ---
for member in three/1 three/2 three/3 three; do
    good predict --checkpoint=$member --format=csv flowers.csv
    cp out "${member/\//-}.csv"
done
good predict --checkpoint=three --format=csv --combine=vote flowers.csv
cp out votes.csv
python3 - <<'PYTHON' || fail 'the mean or the votes'
import csv
def read(name):
    rows = list(csv.reader(open(name + ".csv")))
    first = len(rows[0]) - 3
    return [[float(cell) for cell in row[first:]] for row in rows[1:]]
members = [read(f"three-{m}") for m in (1, 2, 3)]
mean, votes = read("three"), read("votes")
assert len(mean) == len(votes) == 4
for row in range(4):
    says = [max(range(3), key=lambda c: member[row][c]) for member in members]
    for c in range(3):
        assert abs(mean[row][c] - sum(member[row][c] for member in members) / 3) < 2e-6, (row, c, mean[row])
        assert abs(votes[row][c] - says.count(c) / 3) < 1e-6, (row, c, votes[row], says)
PYTHON
good evaluate --checkpoint=three
python3 - <<'PYTHON' || fail "evaluate: $(cat out)"
import csv
found = dict(line.split(": ") for line in open("out").read().splitlines())
rows = list(csv.DictReader(open("three/ensemble.csv")))
assert [f"{float(row['test_accuracy']):.4f}" for row in rows] == [found[f"Member-{m}"] for m in (1, 2, 3)], (
    rows, found)
PYTHON

# --- a member that fails is left out ---
"$TRAINER" ensemble "${small[@]}" --member=model=softmax --member=optimizer.rate=1e6 --devices=cpu:0 \
    --out=failing >out 2>err ||
    fail "failing: exit code $?: $(cat err)"
[ "$(cut -d, -f1,2 failing/ensemble.csv | tr '\n' ' ')" = 'member,status 1,finished 2,failed ' ] ||
    fail "failing: $(cat failing/ensemble.csv)"
good evaluate --checkpoint=failing
[ "$(grep -c Member out)" -eq 1 ] || fail "failing: $(cat out)"

# --- values: their mean, and its RMSE from what the members predict ---
python3 - <<'PYTHON'
import random
r = random.Random(5)
for name, rows in ("houses.csv", 120), ("more.csv", 40):
    with open(name, "w") as file:
        file.write("rooms,area,price\n")
        for _ in range(rows):
            rooms, area = r.randint(1, 7), r.uniform(20, 200)
            file.write(f"{rooms},{area:.1f},{30000 * rooms + 900 * area + r.gauss(0, 5000):.0f}\n")
PYTHON
good ensemble --dataset=csv:file=houses.csv,test_file=more.csv,target=price --model=mlp:hidden=8 \
    --optimizer=adam:rate=0.01 --threads=1 --epochs=5 --quiet --members=3 --devices=cpu:0,cpu:1 --out=prices
cp out printed
for member in prices/1 prices/2 prices/3 prices; do
    "$TRAINER" predict --checkpoint=$member --format=csv more.csv >"${member/\//-}.csv" 2>"${member/\//-}.err" ||
        fail "predict $member: $(cat "${member/\//-}.err")"
    good evaluate --checkpoint=$member
    cp out "${member/\//-}.out"
done
python3 - <<'PYTHON' || fail "the mean of values, or its RMSE: $(cat prices.out printed)"
import csv, re
def predicted(name): return [float(row["prediction"]) for row in csv.DictReader(open(name + ".csv"))]
def figures(name):
    return {k: float(v) for k, v in (line.split(": ") for line in open(name + ".out").read().splitlines())}
price = [float(row["price"]) for row in csv.DictReader(open("more.csv"))]
members, mean, found = [predicted(f"prices-{m}") for m in (1, 2, 3)], predicted("prices"), figures("prices")
assert len(mean) == len(price) == 40
for of_all, own in zip(mean, zip(*members)):
    assert abs(of_all - sum(own) / 3) < 2e-5 * abs(of_all), (of_all, own)
def rmse(values): return (sum((v - p) ** 2 for v, p in zip(values, price)) / len(price)) ** 0.5
assert abs(found["Test-RMSE"] / rmse(mean) - 1) < 1e-4, (found, rmse(mean))
rows = list(csv.DictReader(open("prices/ensemble.csv")))
for m, row in enumerate(rows, 1):
    assert (found[f"Member-{m}"] == figures(f"prices-{m}")["Test-RMSE"] ==
            float(f"{float(row['test_rmse']):.6g}")), (m, row, found)
for name in "prices", "prices-1":
    said = open(name + ".err").read()
    assert re.fullmatch(r"trainer: RMSE: [0-9.]+, MAE: [0-9.]+, R2: [0-9.]+ \(40 rows\)\n", said), said
    assert abs(float(said.split()[2][:-1]) / figures(name)["Test-RMSE"] - 1) < 1e-4, (said, figures(name))
assert "Test-MAE" in found and "Test-R2" in found and "Test-Accuracy" not in found, found
assert f"{found['Test-RMSE']:g}" in open("printed").read().replace("\n", " ")
PYTHON
refused 2 '--combine=vote: expected mean' predict --checkpoint=prices --combine=vote more.csv

# --- killed when one member was trained, it goes on with the others ---
four=(--dataset=digits:take=480 --model=mlp:hidden=20 --threads=1 --epochs=400 --quiet --members=4
    --devices=cpu:0)
good ensemble "${four[@]}" --out=whole
cp out whole.out
for ((try = 0; try < 5; try++)); do # on a busy machine it may be over before it can be killed
    rm -rf killed
    "$TRAINER" ensemble "${four[@]}" --checkpoint-every=0.05 --out=killed >out 2>err &
    child=$!
    for ((i = 0; i < 1200; i++)); do
        ! grep -q '^2,finished' killed/ensemble.csv 2>/dev/null || break
        sleep 0.02
    done
    { kill -9 $child && wait $child; } 2>/dev/null
    child=''
    [ "$(grep -c finished killed/ensemble.csv)" -eq 4 ] || break
done
[ "$(grep -c finished killed/ensemble.csv)" -lt 4 ] || fail 'it was over five times before it could be killed'
touch -d '1 hour ago' killed/1/summary.json
good ensemble --resume=killed --quiet
timeless() { awk '/^Member/, /\.$/ { next } { $4 = ""; sub("killed", "whole"); print }' "$1"; }
[ "$(timeless out)" = "$(timeless whole.out)" ] ||
    fail "killed and resumed: printed $(cat out)"
[ "$(cut -d, -f1-3,5- killed/ensemble.csv)" = "$(cut -d, -f1-3,5- whole/ensemble.csv)" ] ||
    fail "killed and resumed: another table: $(diff killed/ensemble.csv whole/ensemble.csv)"
for member in 1 2 3 4; do same_weights 'killed and resumed' whole/$member killed/$member; done
[ -z "$(find killed/1/summary.json -mmin -30)" ] || fail 'a member that was trained was trained again'
refused 2 '--batch: expected none beside --resume: the ensemble in killed has its own' \
    ensemble --resume=killed --batch=3
refused 3 'killed/1: found no ensemble.json, expected a folder that trainer ensemble wrote' \
    ensemble --resume=killed/1
refused 2 '--members: expected none beside --resume' ensemble --resume=killed --members=3
sed -i 's/^3,finished/3,resting/' killed/ensemble.csv
refused 3 'killed/ensemble.csv: row 3 is not what an ensemble writes' ensemble --resume=killed

# --- what it does not take ---
refused 2 'member 1: momentum: unknown setting "rat"' ensemble --member=optimizer.rat=1 --out=refused
refused 2 'member 2: found the data set digits, expected iris as the first one' \
    ensemble --member=dataset=iris --member=dataset=digits --out=refused
refused 2 'of NAME=VALUE' ensemble --member=softmax --out=refused
refused 2 'expected at least the 2' ensemble --members=1 --member=seed=1 --member=seed=2 --out=refused
refused 2 'expected all, or K/N' --data-slice=3/2 --out=refused
refused 3 'an ensemble needs another folder' ensemble --members=2 --out=three
refused 3 'a run needs another folder' --out=three
printf 'member,status\n1,waiting\n' >three/ensemble.csv
refused 3 'no member that is trained' evaluate --checkpoint=three
[ ! -e refused ] || fail 'an ensemble that could not start made a folder'
exit $((failures > 0))
