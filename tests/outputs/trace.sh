#!/bin/bash
# trace.json: what a viewer of traces opens; its spans add up to the steps of steps.csv, waits lie within
# them, and arrows lead from a push to the step of the shard that it made and on to a pull that saw it. Only
# the steps that were asked for are there.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1 \
    --epochs=4 --outputs=csv,trace"

cat >read.py <<'PYTHON'
import bisect, csv, json, sys

run, first, every, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
before = {}
text = open(f"{run}/trace.json").read()
trace = json.loads(text) # of a run that has ended, JSON for everybody
assert trace["displayTimeUnit"] == "ns", list(trace)
events = trace["traceEvents"]
rows = {(int(row["worker"]), int(row["step"])): row for row in csv.DictReader(open(f"{run}/steps.csv"))}
slices = [e for e in events if e["ph"] == "X"]
end = lambda e: e["ts"] + e["dur"]
near = 0.01 # us; times have three decimals

def within(inner, outer):
    return outer["ts"] - near <= inner["ts"] and end(inner) <= end(outer) + near

# --- steps: whole, in order, and as long as steps.csv says ---
phases = {}
for e in slices:
    if e["pid"] == 1 and e["name"] != "wait":
        assert phases.setdefault((e["tid"], e["args"]["step"]),
                                 {}).setdefault(e["name"], e) is e, f"twice: {e}"
waited = {}
for e in slices:
    if e["pid"] == 1 and e["name"] == "wait":
        waited.setdefault((e["tid"], e["args"]["step"]), []).append(e)
for (worker, step), found in phases.items():
    assert list(found) == ["input", "pull", "compute", "push"], (
        f"step {step} of worker {worker}: {list(found)}")
    chain = list(found.values())
    assert all(abs(end(a) - b["ts"]) < near for a, b in zip(chain, chain[1:])), (
        f"step {step} of worker {worker} has gaps")
    row = rows[worker, step]
    took = 1e3 * sum(float(row[name]) for name in ("input_ms", "pull_ms", "compute_ms", "push_ms", "wait_ms"))
    assert abs(end(chain[3]) - chain[0]["ts"] - took) < 0.05, (
        f"step {step} of worker {worker}: {end(chain[3]) - chain[0]['ts']} us, expected {took}")
    assert abs(end(chain[3]) - 1e6 * float(row["time_s"])) < 1.1, (
        f"step {step} of worker {worker} ends at {end(chain[3])} us, expected {row['time_s']} s")
    waits = sum(e["dur"] for e in waited.get((worker, step), []) if within(e, chain[1]) or
                within(e, chain[3]))
    if parts == 1:
        assert abs(waits - 1e3 * float(row["wait_ms"])) < 0.05, (
            f"step {step} of worker {worker} waits {waits} us, expected {row['wait_ms']} ms")
if parts == 1:
    wanted = {key for key in rows if key[1] <= first or every and key[1] % every == 0}
    assert set(phases) == wanted, f"steps {sorted(set(phases) ^ wanted)}"
for e in slices:
    if e["name"] == "wait":
        assert e["args"]["at"] and e["args"]["for"], e

# --- arrows ---
flows = {}
for e in events:
    if e["ph"] in "stf":
        assert e["ph"] not in flows.setdefault(e["id"], {}), f"twice: {e}"
        flows[e["id"]][e["ph"]] = e
kind = {"s": (1, "push"), "t": (3, "step"), "f": (1, "pull")}
tracks = {}
for e in sorted(slices, key=lambda e: e["ts"]):
    tracks.setdefault((e["pid"], e["tid"], e["name"]), []).append(e)
begins = {track: [e["ts"] for e in of] for track, of in tracks.items()}
whole = 0
def slice_of(e): # the one that the arrow's end lies in; those of one name on one track do not overlap
    track = (e["pid"], e["tid"], kind[e["ph"]][1])
    last = bisect.bisect_right(begins[track], e["ts"] + near)
    return next((s for s in reversed(tracks[track][max(0, last - 3):last]) if e["ts"] <= end(s) + near), None)
for id, flow in flows.items():
    for ph, e in flow.items():
        pid, name = kind[ph]
        assert e["pid"] == pid and slice_of(e), f"an arrow without a {name}: {e}"
    if parts == 1 and "s" in flow and "t" in flow:
        assert flow["s"]["ts"] <= flow["t"]["ts"] + near, flow
    if len(flow) == 3:
        whole += 1
        step, pull = slice_of(flow["t"]), slice_of(flow["f"])
        assert end(pull) - flow["f"]["ts"] < 0.02 + near, f"an arrow that does not end with {pull}: {flow}"
        assert pull["args"]["version"] >= step["args"]["version"] and end(pull) >= end(step) - near, (
            f"an arrow from {step} to {pull}")
steps = [e for e in slices if e["name"] == "step"]
assert (parts > 1 or not steps or
        whole >= 0.5 * len({(e["args"]["worker"], e["args"]["step"]) for e in steps})), (
            f"{whole} whole arrows, {len(steps)} steps of shards")

# --- tracks have names, and none has two things at once that do not lie within one another ---
named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
for pid, tid in {(e["pid"], e["tid"]) for e in slices}:
    assert (pid, tid) in named, f"no name for track {tid} of {pid}"
    stack = []
    for e in sorted((e for e in slices if (e["pid"], e["tid"]) == (pid, tid)),
                    key=lambda e: (e["ts"], -e["dur"])):
        while stack and end(stack[-1]) <= e["ts"] + near:
            stack.pop()
        assert not stack or within(e, stack[-1]), f"{e} begins within {stack[-1]}"
        stack.append(e)
print(len(phases), len(steps), whole)
PYTHON

# --- every strategy ---
for strategy in $("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p') \
    async-lockfree:apply=worker; do
    # shellcheck disable=SC2086
    "$TRAINER" --quiet $small --strategy="$strategy" --shards=2 --trace=first:10,every:7 --out=run \
        --replace >out 2>err || fail "$strategy: $(cat err)"
    read -r found steps whole <<<"$(python3 read.py run 10 7 1)" || fail "$strategy: trace.json"
    [ "${found:-0}" -ge 20 ] || fail "$strategy: ${found:-no} steps"
    case $strategy in
    local-sgd | easgd | gossip) ;;
    *) [ "${steps:-0}" -ge 20 ] && [ "${whole:-0}" -ge 10 ] ||
        fail "$strategy: ${steps:-no} steps of shards, ${whole:-no} arrows" ;;
    esac
done

# --- none but those asked for, and nothing at all ---
# shellcheck disable=SC2086
"$TRAINER" --quiet $small --trace=first:2 --out=run --replace >out 2>err || fail "two steps: $(cat err)"
[ "$(python3 read.py run 2 0 1 | cut -d' ' -f1)" = 4 ] || fail "not the first two steps of two workers"
for wrong in first first: first:-1 last:3 first:1,; do
    # shellcheck disable=SC2086
    "$TRAINER" --quiet $small --trace=$wrong --out=wrong >out 2>err
    [ $? -eq 2 ] && grep -q "^trainer: --trace=$wrong: expected first:N, every:N or both" err ||
        fail "--trace=$wrong: $(cat err)"
done

# --- killed, and gone on with: what was written is whole, and goes on ---
$heeding "$TRAINER" --quiet $small --epochs=1000000 --trace=first:1000000 --checkpoint-every=0.05 --out=long \
    >out 2>err &
child=$!
until [ -e long/checkpoint/state.safetensors ]; do kill -0 $child && sleep 0.02 || exit 1; done
sleep 0.3
kill -KILL $child
wait $child 2>/dev/null
child=
python3 - long/trace.json <<'PYTHON' || fail "not whole after a kill"
import json, sys
text = open(sys.argv[1]).read()
json.loads(text[:text.rindex("\n")].rstrip(",\n") + "]") # a viewer leaves out a line that is torn
PYTHON
epochs=$(tail -n 1 long/epochs.csv | cut -d, -f1)
"$TRAINER" --quiet --resume=long --epochs=$((epochs + 3)) --outputs=csv,trace --trace=first:30 >out 2>err ||
    fail "going on: $(cat err)"
python3 read.py long 0 0 2 >found || fail "trace.json of a run that went on"
[ "$(cut -d' ' -f1 found)" -ge 40 ] || fail "a run that went on has $(cat found)"

[ $failures -eq 0 ]
