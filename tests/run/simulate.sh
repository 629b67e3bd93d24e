#!/bin/bash
# --simulate: the same seed gives the same bytes, another one another order; times are virtual and add up,
# whatever a step takes here; faults, Ctrl-C, --resume and bench; what it cannot be combined with.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
four="--devices=cpu:0,cpu:1,cpu:2,cpu:3"
few="--quiet --epochs=2 --model=softmax --optimizer=sgd:rate=0.1 --outputs=csv --replace $four"
simulated() { # options...
    # shellcheck disable=SC2086
    good $few "$@"
}
same() { # what, file, two folders
    cmp -s "$3/$2" "$4/$2" || fail "$1: $2 of $3 and $4 differ, or are not there"
}

# --- the same seed, on all cores and on one ---

core=$(taskset -pc $$ 2>/dev/null | sed -n 's/.*: \([0-9]*\).*/\1/p')
alone=${core:+taskset -c $core}
strategies="sync async-lockfree async-lockfree:apply=worker ssp:bound=2 local-sgd:every=4 easgd:period=4"
for strategy in $strategies; do
    typed="--simulate=20ms:spread=0.3 --slow=cpu:3=4x --strategy=$strategy"
    # shellcheck disable=SC2086
    {
        simulated $typed --out=one
        $alone "$TRAINER" $few $typed --out=two >out 2>err || fail "$strategy on one core: $(cat err)"
    }
    sed -i '/^  "machine"/d' one/summary.json two/summary.json # it tells the cores
    for file in model.safetensors steps.csv epochs.csv summary.json; do same "$strategy" $file one two; done
    grep -E '(,|: )-[0-9]' one/steps.csv one/summary.json && fail "$strategy: a time below 0"
done
simulated --simulate=20ms --slow=cpu:3=4x --epochs=5 --out=long
grep -E '(,|: )-[0-9]' long/steps.csv long/summary.json && fail "five epochs: a time below 0"

# Another seed is another order of those that meet, beside other weights and other data.
order() { cut -d, -f2,5,14,15 "$1/steps.csv"; }
for seed in 1 2; do simulated --simulate=20ms --seed=$seed --strategy=async-lockfree --out=seed$seed; done
cmp -s <(order seed1) <(order seed2) && fail "two seeds have the same order of steps"
simulated --simulate=20ms:spread=0.3 --seed=1 --strategy=async-lockfree --out=spread
cmp -s seed1/steps.csv spread/steps.csv && fail "a spread changes nothing"

# --- virtual times ---

simulated --simulate=10s --slow=cpu:3=4x --epochs=1 --checkpoint-every=0 --outputs=csv,report --out=slow
simulated --simulate=20ms --slow=cpu:3=4x --share=4,4,4,1 --out=shares
simulated --simulate=20ms --devices=cpu:0,cpu:1 --slow=cpu:1=4x --batch=20 --epochs=1 --share=auto --out=auto
simulated --simulate=20ms --devices=cpu:0 --epochs=1 --out=single
simulated --simulate=20ms --slow=cpu:3=4x --epochs=1 --strategy=easgd --out=free
cat >look.py <<'PYTHON'
import csv, json

def rows(folder):
    with open(f"{folder}/steps.csv") as f:
        return [{k: float(v) if k != "device" else v for k, v in row.items()} for row in csv.DictReader(f)]

def near(a, b):
    return abs(a - b) < 1e-4

# All wait for the slow worker: an update takes 40 s.
before = {}
for row in rows("slow"):
    w, step = int(row["worker"]), int(row["step"])
    phases = [row[k] for k in ("input_ms", "pull_ms", "compute_ms", "push_ms", "wait_ms")]
    assert row["compute_ms"] == (40000 if w == 3 else 10000), row
    assert row["wait_ms"] == (0 if w == 3 or step == 1 else 30000), row
    assert near(row["time_s"], 40 * (step - 1) + (40 if w == 3 else 10)), row
    assert near(sum(phases) / 1e3, row["time_s"] - before.get(w, 0)), row
    before[w] = row["time_s"]
assert len(before) == 4 and min(before.values()) > 300, before
summary = json.load(open("slow/summary.json"))
assert summary["simulate"] == "10s" and summary["threads"] == 1, summary
assert summary["train_seconds"] == max(before.values()), summary["train_seconds"]
page = open("slow/report.html").read()
assert "Simulated, with --simulate=10s: all times on this page are virtual." in page
assert " examples/s of virtual time, computing takes " in page

# A part of another size takes as much longer; one device has one thread.
assert {(r["examples"], r["compute_ms"]) for r in rows("shares")} == {
    (40, 25), (39, 24.375), (10, 25)}, [r["compute_ms"] for r in rows("shares")][:8]
assert json.load(open("single/summary.json"))["threads"] == 1

# Shares by the speeds, which are known: nobody waits but in the last round, 1000 and 250 examples/s are 1250.
auto = rows("auto")
assert json.load(open("auto/summary.json"))["share"] == "32,8"
assert {(r["worker"], r["examples"], r["compute_ms"]) for r in auto[:-2]} == {(0, 32, 32), (1, 8, 32)}, auto[:4]
assert all(r["wait_ms"] == 0 for r in auto[:-2]), [r["wait_ms"] for r in auto]

# Nobody waits for it: while it takes one step, the others take four.
steps = [0] * 4
for row in rows("free"):
    steps[int(row["worker"])] += 1
assert steps[3] in (steps[0] // 4, steps[0] // 4 + 1) and steps[0] > 8, steps
PYTHON
python3 look.py || fail "the times are wrong"

# --- faults, which nobody has to wait for ---

# shellcheck disable=SC2086
runs $few --simulate=20ms --stall=worker:1@step:5 --timeout=200 --out=stalled
[ $code -eq 5 ] || fail "a stalled worker: exit code $code: $(cat err)"
grep -q 'gave up after 200 s .* waiting for worker 1 (cpu:1), computing for 200' err ||
    fail "a stalled worker: $(cat err)"
# shellcheck disable=SC2086
runs $few --simulate=20ms --fail=worker:1@step:5 --strategy=ssp --on-loss=continue --out=failed
[ $code -eq 0 ] || fail "a worker that failed: exit code $code: $(cat err)"
grep -q 'lost: worker 1 (cpu:1) failed at step 5' err || fail "a worker that failed: $(cat err)"

# Whoever had paused waited for the one that stood still.
runs $few --simulate=20ms --stall=worker:1@step:5 --timeout=200 --strategy=async-lockfree --outputs=summary \
    --out=still
[ "$(grep -c '"waited_for": "worker 1 (cpu:1)"' still/summary.json)" -eq 3 ] ||
    fail "a stalled worker is not blamed: $(grep '"waited_for":' still/summary.json)"

# More workers than an epoch has batches: 45.
for count in 45 46; do
    "$TRAINER" --quiet --simulate=20ms --devices=cpu:1-$count --epochs=1 --out=many$count >out 2>err ||
        fail "$count workers: exit code $?: $(cat err)"
    [ $count -eq 45 ] && expected='' ||
        expected="trainer: 46 workers, but an epoch has 45 batches of 32: not all of them compute in it; a \
smaller --batch has work for all"
    [ "$(cat err)" = "$expected" ] || fail "$count workers: said $(cat err)"
done

# --- paused, interrupted, and further ---

simulated --simulate=20ms --out=whole
simulated --simulate=20ms --stop-after=1 --out=parts
good --quiet --resume=parts --simulate=20ms $four
same_weights "a pause" whole parts
refused 2 '--resume=parts: the run is simulated, expected --simulate=20ms, too' --resume=parts --epochs=9 $four
refused 2 '--simulate=10ms: the run in parts has 20ms, expected that' --resume=parts --simulate=10ms $four
good --quiet --epochs=1 --out=real
refused 2 '--simulate=10ms: the run in real is none that is simulated' --resume=real --simulate=10ms $four
cmp -s <(sort whole/steps.csv) <(sort parts/steps.csv) || fail "a pause: other times, or other steps"

# Who is slow is typed again; that nobody is, is said.
simulated --simulate=20ms --slow=cpu:3=4x --stop-after=1 --out=slowed
"$TRAINER" --quiet --resume=slowed --simulate=20ms $four >out 2>err || fail "no longer slow: exit code $?"
grep -qx 'trainer: the run had --slow=cpu:3=4x before; without it no device is slow now' err ||
    fail "a worker is no longer slow, and nobody says so: $(cat err)"

# shellcheck disable=SC2086
$heeding "$TRAINER" $few --simulate=20ms --slow=cpu:3=4x --epochs=100000 --out=broken >out 2>err &
child=$!
for ((try = 0; try < 500; try++)); do
    [ "$(wc -l 2>/dev/null <broken/steps.csv || echo 0)" -gt 1 ] && break
    sleep 0.02
done
kill -INT "$child"
wait "$child"
code=$?
child=
[ $code -eq 130 ] || fail "interrupted: exit code $code: $(cat err)"
further='trainer --resume=broken --simulate=20ms'
grep -q "^trainer: interrupted after .*; go on with: $further --slow=cpu:3=4x --devices=cpu:0,cpu:1,cpu:2,cpu:3\$" \
    err || fail "interrupted: $(cat err)"
good report broken
grep -q "$further --devices=cpu:0,cpu:1,cpu:2,cpu:3 --slow=cpu:3=4x" broken/report.html ||
    fail "the page of an interrupted run does not say how it goes on"
good --quiet --resume=broken --simulate=20ms $four --slow=cpu:3=4x --stop-after=1

# --- bench ---

for out in a b; do
    good bench --quiet --strategies=sync,async-lockfree --repeats=1 --epochs=1 --model=softmax \
        --simulate=20ms --slow=cpu:3=4x $four --out=$out
    grep -v '^bench.csv' out >bench-$out
done
same "bench" bench.csv a b
good report a --out=all.html
good report still real --out=some.html
grep -q 'Simulated: all times and speeds on this page are virtual\.' all.html || fail "the page of a bench"
"$TRAINER" bench --quiet --strategies=sync --repeats=1 --epochs=1 --simulate=20ms --fail=worker:1@step:2 \
    $four --out=half >out 2>err
[ $? -eq 4 ] || fail "a bench of which a run fails: $(cat err)"
good report half
grep -q 'Simulated: all times and speeds on this page are virtual\.' half/report.html ||
    fail "the page of a bench of which a run failed"
[ "$(tail -n 1 half/runs.csv | grep -o ',nan' | wc -l)" -eq 20 ] ||
    fail "a run that failed has figures: $(tail -n 1 half/runs.csv)"
wasted='^  examples/s: with those of the gradients that were thrown away$'
good bench --quiet --strategies=backup:1 --repeats=1 --epochs=1 --simulate=20ms:spread=0.5 $four --out=spare
grep -q "$wasted" out && ! grep -q "$wasted" bench-a || fail "what was thrown away is among the examples/s"
grep -q '1 of 2 runs are simulated' some.html || fail "the page of a simulated run and a real one"
cmp -s bench-a bench-b || fail "bench prints other tables"
grep -q '^simulated: a step takes 20 ms of virtual time; all times and speeds are virtual$' bench-a ||
    fail "bench does not say that it is simulated: $(cat bench-a)"
grep -Eq '^one device +1,600 ' bench-a || fail "one device has no batch of 32 per 20 ms: $(cat bench-a)"
grep -q 'all cores' bench-a && fail "bench compares with cores, which are not simulated"

# --- what it says first, and what it refuses ---

# shellcheck disable=SC2086
good ${few/--quiet/} --simulate=20ms:spread=0.5 --epochs=1 --out=says
said=$(tr -s '\n ' ' ' <out)
step="a step takes 20 ms of virtual time in the mean, with a deviation of 50 %"
[[ $said == *"simulated: $step; all times below are virtual"* ]] || fail "the first lines: $(cat out)"
[[ $said == *"share them"* ]] && fail "devices that are not there share cores: $(cat out)"

refused 2 '--simulate: "20", expected the time of a step from 1us to 1000s' --simulate=20
refused 2 '--simulate: "20ms,spread=1", expected' --simulate=20ms,spread=1
refused 2 '--simulate: "20ms:spread=x", expected spread from 0 to 10' --simulate=20ms:spread=x
refused 2 'found --place=auto, which measures .* expected which layers' --simulate=20ms --model=cnn \
    --devices='(cpu:0+cpu:1)' --place=auto
refused 2 'found --explain, which measures .* expected one' --simulate=20ms --explain
refused 2 'found a step of 80 s, expected less than --timeout=60' --simulate=20s --slow=cpu:3=4x $four
refused 2 '--simulate=20ms: found a cluster, expected one process' --simulate=20ms --hosts=localhost:2
refused 2 '--simulate=20ms: found a cluster, expected one process' --simulate=20ms --job=worker --task=0 \
    --worker-hosts=localhost:1,localhost:2 --start-timeout=1
refused 2 'takes no --simulate: .* real time' sweep --simulate=20ms --vary=batch=16,32
refused 2 'takes no --simulate: .* real time' ensemble --simulate=20ms --members=2
[ $failures -eq 0 ]
