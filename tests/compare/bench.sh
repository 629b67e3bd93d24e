#!/bin/bash
# trainer bench: a row for every variant of every registered strategy and for both baselines, figures that
# agree with the runs' own, rows for what failed, what an interrupt leaves, and one line for what it does not
# take. Nothing here depends on speed.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1"

bench() { # exit code expected, options...
    local want=$1 code
    shift
    # shellcheck disable=SC2086 # several words
    "$TRAINER" bench $small "$@" >out 2>err
    code=$?
    [ $code -eq "$want" ] || fail "bench $*: exit code $code, expected $want: $(cat err)"
    ! LC_ALL=C grep -n '[[:cntrl:]]' out err || fail "bench $*: control characters in its output"
    awk 'length > 80 && NF > 1 { exit 1 }' out ||
        fail "bench $*: a line of more than 80 columns: $(awk 'length > 80' out)"
}

refused() { # pattern of the one line, options...
    local line=$1
    shift
    bench 2 --out=refused "$@"
    [ -s out ] && fail "bench $*: wrote to standard output: $(cat out)"
    # shellcheck disable=SC2053 # the line is a pattern
    [[ "$(cat err)" == $line ]] || fail "bench $*: found: $(cat err) expected: $line"
    [ ! -e refused ] || fail "bench $*: made a folder for runs that could not start"
}

cat >look.py <<'PYTHON'
# look.py FOLDER REPEATS RUNS: bench.csv and runs.csv against the summaries of the runs; prints the names of
# the rows.
import csv, json, math, os, re, statistics, sys
folder, repeats, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def near(found, wanted, what):
    found = float(found)
    if wanted is None or (isinstance(wanted, float) and math.isnan(wanted)):
        assert math.isnan(found), f"{what}: {found}, expected nan"
    else:
        assert abs(found - wanted) <= 1e-8 * max(1, abs(wanted)), f"{what}: {found}, expected {wanted}"

rows = list(csv.DictReader(open(f"{folder}/bench.csv")))
logged = list(csv.DictReader(open(f"{folder}/runs.csv")))
assert all(None not in row and None not in row.values() for row in rows + logged), "rows of unequal length"
assert len(logged) == runs, f"{len(logged)} rows in runs.csv, expected {runs}"
order = [row["strategy"] for row in rows]
assert [row["strategy"] for row in logged] == (order * repeats)[:runs], "not repeat by repeat"
one = rows[0]
for row in rows:
    name = row["strategy"]
    mine = [r for r in logged if r["strategy"] == name]
    done = []
    for r in mine:
        path = f"{folder}/{re.sub('[^A-Za-z0-9._=]', '-', name)}/{r['repeat']}/summary.json"
        assert int(r["seed"]) == 1 + mine.index(r) == int(r["repeat"]), r
        if r["exit_code"] != "0":
            assert r["error"] and r["examples_per_s"] == "nan", r
            continue
        s = json.load(open(path))
        done.append(s)
        assert s["seed"] == int(r["seed"]) and s["interrupted"] is False, s
        for key in ("examples_per_s", "train_seconds", "target_s", "test_accuracy", "test_cost", "final_cost",
                    "compute_share", "input_share", "pull_share", "push_share", "wait_share", "updates",
                    "lost_updates", "dropped", "bytes_moved", "lost_workers"):
            near(r[key], s[key], f"{name}, run {r['repeat']}, {key}")
        for key in ("mean", "p99", "max"):
            near(r[f"staleness_{key}"], s["staleness"][key], f"{name}, staleness {key}")
        if row["baseline"] == "0":
            assert s["strategy"] == name, s
        assert s["workers"] == int(row["workers"]) and s["threads"] == int(row["threads"]), s
    assert int(row["runs"]) == len(done) and int(row["failed"]) == len(mine) - len(done), row
    for key in ("examples_per_s", "train_seconds", "test_accuracy", "test_cost", "final_cost"):
        values = [s[key] for s in done]
        near(row[key], statistics.mean(values) if values else None, f"{name}, mean {key}")
        near(row[f"{key}_sd"], statistics.stdev(values) if len(values) > 1 else None, f"{name}, sd {key}")
    for key in ("compute_share", "wait_share", "updates", "lost_updates", "dropped", "bytes_moved"):
        near(row[key], statistics.mean(s[key] for s in done) if done else None, f"{name}, {key}")
    near(row["staleness_mean"], statistics.mean(s["staleness"]["mean"] for s in done) if done else None,
         f"{name}, staleness")
    near(row["staleness_max"], max((s["staleness"]["max"] for s in done), default=None),
         f"{name}, oldest gradient")
    reached = [s["target_s"] for s in done if s["target_s"] is not None]
    near(row["target_s"], statistics.mean(reached) if reached else None, f"{name}, target")
    assert int(row["target_runs"]) == len(reached), row
    near(row["speedup_one"], float(row["examples_per_s"]) / float(one["examples_per_s"]), f"{name}, speed-up")
    if len(rows) > 1 and rows[1]["baseline"] == "1":
        near(row["speedup_all"], float(row["examples_per_s"]) / float(rows[1]["examples_per_s"]),
             f"{name}, speed-up, all cores")
    for key in ("waited_at_share", "waited_for_share"):
        assert not float(row[key]) > 1 + 1e-9, row
    if done and row["baseline"] == "0":
        assert re.search("one device|examples/s", row["sentence"]), row["sentence"]
print("\n".join(order))
PYTHON

look() { python3 look.py "$@" >names 2>look.err || fail "$*: $(tail -n 1 look.err)"; }

# --- all: every variant, as the lists say them ---
cores=$(nproc)
baselines="one device"
[ "$cores" -le 1 ] || baselines="one device
one device, all cores"
bench 0 --epochs=1 --repeats=2 --target-accuracy=0.01 --out=all
count=$(wc -l <all/bench.csv)
look all 2 $((2 * (count - 1)))
[ "$(head -n "$(wc -l <<<"$baselines")" names)" = "$baselines" ] ||
    fail "all: the baselines are not first: $(cat names)"
for name in $("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    grep -Eqx "$name(:.*)?" names || fail "all: no row for $name: $(cat names)"
done
sed ':a; N; $!ba; s/\n  */ /g' out >sentences # unfolded
while IFS= read -r name; do
    [ "$(grep -Ec "^$name( |$)" out)" -eq 2 ] || fail "all: $name has not two rows of figures: $(cat out)"
    grep -qx "$name" <<<"$baselines" || grep -q "^$name: .*one device" sentences ||
        fail "all: no sentence about $name: $(cat out)"
done <names
[ "$(sort names | uniq -d | wc -l)" -eq 0 ] || fail "all: a strategy is there twice: $(cat names)"
[ "$(grep -c '^trainer: run [0-9]* of [0-9]*: ' err)" -eq $((2 * (count - 1))) ] ||
    fail "all: not a line a run: $(cat err)"
grep -q '  to target: seconds of training until the accuracy is 1 %' out ||
    fail "all: the target is not explained: $(cat out)"
tail -n 1 out | grep -qx 'bench.csv, runs.csv and all runs are in all' ||
    fail "all: does not say where the files are: $(tail -n 1 out)"
! grep -q ' never ' out || fail "an accuracy of 1 % is not reached: $(cat out)"

# Same seed, same data: one worker of a repeatable strategy trains to the same bits as the baseline.
bench 0 --epochs=1 --repeats=1 --strategies=sync --devices=cpu:0 --quiet --out=alone
[ ! -s err ] || fail "quiet: wrote to standard error: $(cat err)"
look alone 1 $((1 + $(wc -l <<<"$baselines")))
python3 - <<'PYTHON' || fail "one worker is not the baseline: $(cat alone/bench.csv)"
import csv
rows = list(csv.DictReader(open("alone/bench.csv")))
assert rows[0]["test_cost"] == rows[-1]["test_cost"] and float(rows[0]["test_cost"]) > 0
assert rows[0]["test_accuracy_sd"] == "nan"
assert all(row["devices"] == f"cpu:0 x{row['threads']}" for row in rows), [row["devices"] for row in rows]
PYTHON

# --- a list: commas between strategies, and inside one ---
bench 0 --quiet --epochs=1 --repeats=1 \
    --strategies="sync,local-sgd:every=4,outer=nesterov,outer_rate=0.5,async-lockfree" --out=list
look list 1 $((3 + $(wc -l <<<"$baselines")))
[ "$(tail -n 3 names | tr '\n' ' ')" = "sync local-sgd:every=4,outer=nesterov,outer_rate=0.5 async-lockfree " ] ||
    fail "a list became: $(cat names)"
[ -s "list/local-sgd-every=4-outer=nesterov-outer_rate=0.5/1/summary.json" ] || fail "a list: folders: $(ls list)"
grep -qx "local-sgd:every=4,outer=nesterov,outer_rate=0.5" out ||
    fail "a name that is too long has no line of its own: $(cat out)"

# --- runs that fail: a row that says so, and the others go on; in rounds, so that the worker surely comes to
# its step ---
bench 4 --quiet --epochs=1 --repeats=2 --strategies=sync,local-sgd --fail=worker:1@step:3 --out=failing
look failing 2 $((2 * (2 + $(wc -l <<<"$baselines"))))
grep -Eq "^sync +failed$" out || fail "no row for what failed: $(cat out)"
grep -q "^local-sgd: failed in 2 of 2 runs: worker 1" out || fail "no sentence about what failed: $(cat out)"
grep -q "^trainer: sync, repeat 1: worker 1" err ||
    fail "the first failure is not the one reported: $(cat err)"
bench 6 --quiet --epochs=3 --repeats=1 --strategies=sync --optimizer=sgd:rate=1e6 --decay=1000 --out=diverged
look diverged 1 $((1 + $(wc -l <<<"$baselines")))
grep -Eq '^one device +failed$' out || fail "diverged: $(cat out)"
bench 0 --quiet --epochs=1 --repeats=2 --strategies=sync --fail=worker:1@step:3 --on-loss=continue \
    --out=going-on
grep -q '2 workers lost in 2 runs' going-on/bench.csv || fail "lost workers are not told: $(cat out)"

# --- a folder that was used before: nothing of the earlier comparison is left to be mixed up, nothing else is
# touched ---
bench 0 --quiet --epochs=1 --repeats=2 --strategies=sync,local-sgd --out=used
mkdir -p used/sync/3 used/mine/1 used/ssp/1
for file in used/notes.txt used/sync/notes.txt used/sync/2/plot.svg used/sync/3/steps.csv \
    used/mine/1/steps.csv used/ssp/1/summary.json; do
    echo mine >$file
done
sed -i '$ a .. 2\nmine/../mine 1\n/ 1' used/.runs
echo mine >2
# shellcheck disable=SC2086
"$TRAINER" bench $small --strategies=backup --dataset=nothing --out=used >out 2>err &&
    fail "a comparison that cannot start"
[ -s used/bench.csv ] && [ -s used/sync/2/summary.json ] ||
    fail "a comparison that cannot start took the earlier one away"
bench 0 --epochs=1 --repeats=1 --strategies=backup --replace --out=used
grep -qx 'trainer: used had an earlier comparison, which this one replaces' err ||
    fail "used: not told: $(cat err)"
look used 1 $((1 + $(wc -l <<<"$baselines")))
wanted=$(printf '%s\n' .runs backup/1 bench.csv mine/1 notes.txt one-device/1 runs.csv ssp/1 sync/2 sync/3 \
    sync/notes.txt)
[ "$cores" -le 1 ] || wanted+=$'\n'one-device--all-cores/1
found=$(cd used && find . -mindepth 1 -maxdepth 2 \( ! -type d -o -path './*/*' \) | sed 's,^\./,,' | sort)
[ "$found" = "$(sort <<<"$wanted")" ] || fail "used: left $found"
[ "$(ls -A used/sync/2)" = plot.svg ] || fail "used: left $(ls -A used/sync/2)"
for file in used/notes.txt used/sync/notes.txt used/sync/2/plot.svg used/sync/3/steps.csv \
    used/mine/1/steps.csv used/ssp/1/summary.json 2; do
    [ "$(cat $file)" = mine ] || fail "used: $file was touched"
done
rm used/backup/1/summary.json # as when it was killed
bench 0 --quiet --epochs=1 --repeats=1 --strategies=sync --replace --out=used
[ ! -e used/backup ] || fail "used: left of a run that was killed: $(find used/backup)"
# shellcheck disable=SC2086
"$TRAINER" bench $small --epochs=1 --repeats=999 --strategies=sync --replace --out=used >out 2>err &
child=$!
tries=0
until grep -q ' 999$' used/.runs || [ $tries -ge 1500 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
kill -9 $child
wait $child 2>/dev/null
child=
[ $tries -lt 1500 ] && [ ! -e used/bench.csv ] ||
    fail "killed: the table of the earlier comparison is still there"

# --- interrupted: what is finished stays ---
has_rows() { [ "$(wc -l 2>/dev/null <stopped/runs.csv || echo 0)" -gt 3 ]; }
# shellcheck disable=SC2086
$heeding "$TRAINER" bench $small --epochs=100 --repeats=1000 --strategies="sync,async-lockfree" \
    --out=stopped >out 2>err &
child=$!
tries=0
until has_rows || ! kill -0 $child 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 1500 ] || { fail "nothing happened in 30 s"; break; }
    sleep 0.02
done
kill -INT $child
wait $child
code=$?
child=
[ $code -eq 130 ] || fail "interrupted: exit code $code, expected 130: $(cat err)"
finished=$(($(wc -l <stopped/runs.csv) - 1))
[ $finished -ge 3 ] || fail "interrupted: only $finished runs are left"
look stopped 1000 $finished
[ "$(tail -n 1 err)" = \
    "trainer: interrupted after $finished of $((1000 * (2 + $(wc -l <<<"$baselines")))) runs; a comparison \
cannot be resumed: --out=stopped --replace starts it anew" ] ||
    fail "interrupted: said: $(tail -n 1 err)"
grep -Eq '^one device +[0-9]' out || fail "interrupted: no table of what is finished: $(cat out)"
grep -q 'only [0-9]* of 1000 runs' stopped/bench.csv || fail "interrupted: not told: $(cat out)"
! grep failed out || fail "interrupted: the run in hand counts as failed: $(cat out)"

"$TRAINER" --resume=stopped >out 2>err && fail "a comparison's folder was resumed"
grep -qx 'trainer: stopped has the runs of trainer bench, expected one of them, such as stopped/one-device/1' \
    err || fail "a comparison's folder: $(cat err)"
"$TRAINER" evaluate --checkpoint=stopped/sync >out 2>err && fail "a contender's folder was evaluated"
grep -qx 'trainer: stopped/sync has several runs, expected one of them, such as stopped/sync/1' err ||
    fail "a contender's folder: $(cat err)"

# --- what it does not take ---
refused 'trainer: bench: takes no --strategy: expected --strategies=*' --strategy=sync
for option in resume weights; do
    refused "trainer: bench: takes no --$option: every run of a comparison starts *" --$option=all
done
refused 'trainer: bench: takes no --checkpoint-every: *' --checkpoint-every=1
refused 'trainer: bench: takes no --print-every: *' --print-every 5
refused 'trainer: bench: takes no --print-every: *' --print_every=5
refused 'trainer: bench: takes no arguments, found "sync"' sync
refused 'trainer: strategy "snyc": unknown; did you mean "sync"\? (one of *)' --strategies="sync,snyc"
refused 'trainer: strategy "hogwild": unknown; did you mean async-lockfree:apply=worker\? (one of *)' \
    --strategies="sync,hogwild"
refused 'trainer: async-lockfree: unknown setting "aply"; did you mean "apply"\?' \
    --strategies="async-lockfree:aply=worker"
refused 'trainer: --strategies: "sync" is there twice' --strategies="sync,async-lockfree,sync"
for list in "sync," ",sync" "sync,,ssp"; do
    refused "trainer: --strategies=$list: found an empty name, expected names separated by commas" \
        --strategies="$list"
done
refused 'trainer: strategy "1": unknown; did you mean ssp:bound=0,ssp:bound=1,ssp:bound=2\?' \
    --strategies="sync,ssp:bound=0,1,2,backup"
refused 'trainer: --repeats=0: expected 1 to *' --repeats=0
refused 'trainer: unknown option "--repeat"; did you mean --repeats=2\?' --repeat=2
refused 'trainer: unknown option "--btach"; did you mean --batch=2\?' --btach=2
refused 'trainer: --batch=1000: expected at most 320, *' --batch=1000
refused 'trainer: model "mpl": unknown; did you mean "mlp"\? *' --model=mpl
refused 'trainer: --slow: *cpu:9*' --slow=cpu:9=3x
# --- many devices are a range ---
"$TRAINER" bench --dataset=iris --model=softmax --epochs=1 --repeats=1 --strategies=sync --devices=cpu:0-9 \
    --out=many >many.out 2>many.err || fail "ten devices: $(cat many.err)"
grep -q 'cpu:0-9 x1; 1 run each, seed 1$' many.out || fail "ten devices: $(head -n 4 many.out)"
"$TRAINER" bench --help >out || fail "bench --help: exit code $?"
for option in strategies repeats out epochs target-accuracy; do
    [ "$(grep -Ec "^  --$option=" out)" -eq 1 ] || fail "bench --help: not one line for --$option: $(cat out)"
done
! grep -E '^  --(strategy|resume|weights|checkpoint-every|print-every)=' out ||
    fail "bench --help shows what it does not take"

# --- files that cannot be written ---
touch file
# shellcheck disable=SC2086
"$TRAINER" bench $small --epochs=1 --strategies=sync --out=file/below >out 2>err
code=$?
if [ $code -ne 3 ] || [ -s out ] || [ "$(wc -l <err)" -ne 1 ]; then
    fail "a folder that cannot be made: exit code $code: $(cat out err)"
fi

[ $failures -eq 0 ]
