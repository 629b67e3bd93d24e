#!/bin/bash
# trainer sweep: a run of it has the bits of the same settings trained alone; the same seed draws the same
# settings; the winner is chosen by validation and alone tested; a failed run is a row; one that was killed
# ends with the table of one that was not; the report ranks them.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small=(--dataset=digits:take=640 --model=mlp:hidden=20 --threads=1)

sweep() { # what is tested, options...
    local what=$1
    shift
    "$TRAINER" sweep "${small[@]}" --quiet "$@" >out 2>err || fail "$what: exit code $?: $(cat err)"
    awk 'length > 80 { exit 1 }' out || fail "$what: a line of more than 80 columns"
}
column() { # of a sweep's table: folder, names of the columns
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1] + "/sweep.csv")): print(*(row[name] for name in sys.argv[2:]))' \
        "$@"
}

# --- random, on two devices: some of it by the machine's timing, none of it in the table ---
vary=(--vary=optimizer.rate=log:0.001..1 --vary='batch=16,32,64')
sweep random "${vary[@]}" --runs=6 --epochs=3 --devices=cpu:0,cpu:1 --out=one
sweep 'one device' "${vary[@]}" --runs=6 --epochs=3 --devices=cpu:0 --out=other
[ "$(column one run status validation_accuracy test_accuracy optimizer.rate batch)" = \
    "$(column other run status validation_accuracy test_accuracy optimizer.rate batch)" ] ||
    fail "two devices and one: other tables: $(diff one/sweep.csv other/sweep.csv)"
best=$(sed -n '2s/^ *1 *\([0-9]*\).*/\1/p' out)
head -n 1 out | grep -q ' accuracy ' && grep -q '^accuracy is that of the validation part, at each' out &&
    ! grep -q validation_ out || fail "its figure has two names: $(cat out)"
grep -q "^Run $best: [0-9,]* examples/s, computing takes [0-9]* % of the time" out ||
    fail "it does not say where the time of the best run went: $(cat out)"
command=$(sed -n '/^To train it again:/,/^sweep.csv/p' out | grep -v 'again:\|sweep.csv' | tr -d '\\\n')
# shellcheck disable=SC2086 # several words
"$TRAINER" ${command#*trainer} --quiet --out=again >out 2>err || fail "$command: $(cat err)"
same_weights 'the best run, alone' "other/$best" again
python3 - "$best" <<'PYTHON' || fail 'the best run is not the first by validation, or others were tested'
import csv, json, math, sys
rows = list(csv.DictReader(open("other/sweep.csv")))
best = max(rows, key=lambda row: (float(row["validation_accuracy"]), -int(row["run"])))
assert best["run"] == sys.argv[1], (best, sys.argv)
for row in rows:
    assert math.isnan(float(row["test_accuracy"])) == (row != best), row
    assert json.load(open(f"other/{row['run']}/summary.json"))["test_accuracy"] is None
    epochs = list(csv.DictReader(open(f"other/{row['run']}/epochs.csv")))
    assert max(float(e["validation_accuracy"]) for e in epochs) - float(row["validation_accuracy"]) < 1e-5, (
        row)
    assert all(e["test_accuracy"] == "nan" for e in epochs)
PYTHON
"$TRAINER" evaluate --checkpoint="other/$best/checkpoint/best/state.safetensors" >out ||
    fail 'the best one cannot be evaluated'
[ "$(sed -n 's/Test-Accuracy: //p' out)" = \
    "$(printf '%.4f' "$(column other test_accuracy | grep -v nan)")" ] ||
    fail "tested: $(column other test_accuracy), evaluate: $(cat out)"

# --- a run that fails is a row; a grid takes all ---
sweep failing --method=grid --vary=optimizer.rate=0.1,1e6 --vary=batch=32,64 --epochs=1 --devices=cpu:0 \
    --out=failing
[ "$(column failing status optimizer.rate batch | sort | tr '\n' ';')" = \
    'failed 1e6 32;failed 1e6 64;finished 0.1 32;finished 0.1 64;' ] ||
    fail "failing: $(cat failing/sweep.csv)"
[ "$(column failing reason | grep -c .)" -eq 2 ] || fail "failing: no reasons: $(cat failing/sweep.csv)"

# --- halving, killed three times and taken up again, against one that was left alone ---
halving=(--method=halving --vary=optimizer.rate=log:0.001..1 --runs=9 --epochs=9 --batch=16 --devices=cpu:0)
sweep halving "${halving[@]}" --out=whole
ended() { # runs that stand at a rung, or ended
    cut -d, -f2 killed/sweep.csv 2>/dev/null | grep -c 'stopped\|finished'
}
for wanted in 1 4 7; do
    if [ -e killed/sweep.csv ]; then
        "$TRAINER" sweep --resume=killed --quiet >out 2>err &
    else
        "$TRAINER" sweep "${small[@]}" "${halving[@]}" --quiet --out=killed >out 2>err &
    fi
    child=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(ended)" -lt $wanted ] || break
        sleep 0.02
    done
    { kill -9 $child && wait $child; } 2>/dev/null
    child=''
done
"$TRAINER" sweep --resume=killed >out 2>err || fail "resumed: exit code $?: $(cat err)"
[ "$(cut -d, -f1-6,8- killed/sweep.csv)" = "$(cut -d, -f1-6,8- whole/sweep.csv)" ] ||
    fail "killed and resumed: another table: $(diff killed/sweep.csv whole/sweep.csv)"
finished=$(column whole status run | sed -n 's/finished //p' | head -n 1)
same_weights 'killed and resumed' "whole/$finished" "killed/$finished"
"$TRAINER" sweep --resume=killed >twice 2>err || fail "resumed at its end: $(cat err)"
[ ! -s err ] || fail "resumed at its end: runs were repeated: $(cat err)"
cmp -s out twice || fail "resumed at its end: another table: $(diff out twice)"
# What was stopped at a rung and went on has the bits of a run that was not.
rate=$(column whole run optimizer.rate | sed -n "s/^$finished //p")
"$TRAINER" "${small[@]}" --batch=16 --epochs=9 --devices=cpu:0 --validation=0.1 \
    --optimizer=momentum:rate="$rate" --quiet --out=straight >out 2>&1
same_weights 'stopped at rungs' "whole/$finished" straight

# --- the report ---
good report whole --out=whole.html
python3 - <<'PYTHON' || fail 'the page of a sweep'
import xml.dom.minidom
page = xml.dom.minidom.parse("whole.html")
section = next(s for s in page.getElementsByTagName("section") if s.getAttribute("id") == "sweep")
rows = section.getElementsByTagName("tbody")[0].getElementsByTagName("tr")
lines = [p for p in section.getElementsByTagName("path") if p.getAttribute("class").startswith("curve")]
assert len(rows) == 9 and len(lines) == 9, (len(rows), len(lines))
shares = [float(r.getElementsByTagName("td")[1].getElementsByTagName("span")[0].firstChild.data.split()[0])
          for r in rows]
assert shares == sorted(shares, reverse=True), shares
PYTHON

# --- what it does not take ---
refused 2 'expected --vary=NAME=VALUES' sweep
refused 2 'unknown setting "rat"; did you mean "rate"' sweep --vary=optimizer.rat=1,2 --out=refused
refused 2 'two numbers, the first one smaller' sweep --vary=optimizer.rate=1..0.1 --out=refused
refused 2 'a range has no grid' sweep --method=grid --vary=optimizer.rate=0.1..1 --out=refused
refused 2 'a setting of the training' sweep --vary=out=a,b --out=refused
refused 2 'batch=0' sweep --vary=batch=0,1 --out=refused
refused 3 'a sweep needs another folder' sweep --vary=batch=16,32 --out=whole
refused 3 'a run needs another folder' --out=whole
refused 2 '--batch: expected none beside --resume' sweep --resume=whole --batch=3
refused 3 'nowhere: found no such folder, expected a folder that trainer sweep wrote' sweep --resume=nowhere
refused 3 'whole/1: found no sweep.json, expected a folder that trainer sweep wrote' sweep --resume=whole/1
refused 2 'unknown option "lr"; did you mean optimizer.rate=...?' sweep --vary=lr=0.1,0.2
refused 2 'unknown option "batch-size"; did you mean batch=...?' sweep --vary=batch-size=8,16
mkdir bad
for table in '' '"a"b"c"d"e"f"g"h' 'run,status' $'run\n1,2\n' \
    $'run,status,epochs,best_epoch,a,b,seconds,at_rungs,reason,x\n'; do
    printf '%s' "$table" >bad/sweep.csv
    refused 3 'bad/sweep.csv: ' report bad
done
for edit in 's/^3,/x3,/' 's/^3,/4,/' 's/^\(3,[a-z]*\),[0-9]*/\1,9x/' \
    's/^\(3,[a-z]*\),[0-9]*/\1,99999999999/' 's/^\(3,[a-z]*,[0-9]*\),[0-9]*/\1,-1/' \
    's/^3,[a-z]*/3,resting/'; do
    rm -rf hurt && cp -r whole hurt && sed -i "$edit" hurt/sweep.csv
    cmp -s whole/sweep.csv hurt/sweep.csv && fail "$edit changes nothing"
    refused 3 'hurt/sweep.csv: row 3 is not what a sweep writes' sweep --resume=hurt
done
refused 3 'whole has the runs of trainer sweep, expected one of them, such as whole/1; '\
'trainer sweep --resume=whole goes on with all' \
    train --resume=whole
[ ! -e refused ] || fail 'a sweep that could not start made a folder'
exit $((failures > 0))
