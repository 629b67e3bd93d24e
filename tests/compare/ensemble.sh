#!/bin/bash
# trainer ensemble: members are the runs that the same settings make alone; one member says what it says by itself; the mean of the
# probabilities and the votes are those computed from the members' own predictions; slices share no example.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small=(--dataset=iris --threads=1 --epochs=3 --quiet)

# --- members, trained with others and alone ---
good ensemble "${small[@]}" --model=mlp:hidden=8 --members=3 --devices=cpu:0,cpu:1 --out=three
good "${small[@]}" --model=mlp:hidden=8 --devices=cpu:0 --seed=3 --out=alone
same_weights 'the third member, alone' three/3 alone
good ensemble "${small[@]}" --member='model=softmax seed=5' --member='model=mlp:hidden=8 optimizer.rate=0.05' --data-sharding=split \
    --devices=cpu:0 --out=other
good "${small[@]}" --model=mlp:hidden=8 --optimizer=momentum:rate=0.05 --seed=2 --data-slice=2/2 --devices=cpu:0 --out=slice
same_weights 'a member on its slice, alone' other/2 slice
good "${small[@]}" --model=mlp:hidden=8 --optimizer=momentum:rate=0.05 --seed=2 --data-slice=1/2 --devices=cpu:0 --out=first
other_weights 'two slices' slice first
python3 - <<'PYTHON' || fail 'the slices'
import json
for member, model in (1, "softmax"), (2, "mlp:hidden=8"):
    s = json.load(open(f"other/{member}/summary.json"))
    assert s["model"] == model and s["data_slice"] == f"{member}/2" and s["data_sharding"] == "shared", s
    assert s["examples"] <= 3 * 60 + 32, s["examples"]
PYTHON

# --- one member is that member ---
good ensemble "${small[@]}" --model=mlp:hidden=8 --members=1 --devices=cpu:0 --out=one
printf '%s\n' 5.1,3.3,1.7,0.5 5.9,3.0,4.2,1.5 6.9,3.1,5.4,2.1 6.1,2.8,4.9,1.7 >flowers.csv
for folder in one one/1; do
    good predict --checkpoint=$folder --format=csv flowers.csv
    cp out "${folder/\//-}.csv"
done
cmp one.csv one-1.csv || fail 'an ensemble of one predicts something else than its member'
good evaluate --checkpoint=one
grep -E 'Test-(Accuracy|Cost):' out >all
good evaluate --checkpoint=one/1
grep -E 'Test-(Accuracy|Cost):' out | cmp - all || fail "an ensemble of one, evaluated: $(cat all) expected: $(cat out)"

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
assert [f"{float(row['test_accuracy']):.4f}" for row in rows] == [found[f"Member-{m}"] for m in (1, 2, 3)], (rows, found)
PYTHON

# --- a member that fails is left out ---
"$TRAINER" ensemble "${small[@]}" --member=model=softmax --member=optimizer.rate=1e6 --devices=cpu:0 --out=failing >out 2>err ||
    fail "failing: exit code $?: $(cat err)"
[ "$(cut -d, -f1,2 failing/ensemble.csv | tr '\n' ' ')" = 'member,status 1,finished 2,failed ' ] || fail "failing: $(cat failing/ensemble.csv)"
good evaluate --checkpoint=failing
[ "$(grep -c Member out)" -eq 1 ] || fail "failing: $(cat out)"

# --- what it does not take ---
refused 2 'member 1: momentum: unknown setting "rat"' ensemble --member=optimizer.rat=1 --out=refused
refused 2 'of NAME=VALUE' ensemble --member=softmax --out=refused
refused 2 'expected at least the 2' ensemble --members=1 --member=seed=1 --member=seed=2 --out=refused
refused 2 'expected all, or K/N' --data-slice=3/2 --out=refused
refused 3 'an ensemble needs another folder' ensemble --members=2 --out=three
refused 3 'a run needs another folder' --out=three
printf 'member,status\n1,waiting\n' >three/ensemble.csv
refused 3 'no member that is trained' evaluate --checkpoint=three
[ ! -e refused ] || fail 'an ensemble that could not start made a folder'
exit $((failures > 0))
