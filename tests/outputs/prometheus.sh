#!/bin/bash
# metrics.prom is Prometheus' text format, whole at each moment, and says what steps.csv, epochs.csv and
# summary.json say.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1 --outputs=csv,prometheus"

cat >read.py <<'PYTHON'
import csv, json, math, re, sys

run, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "all"
family, figures = {}, {}
text = open(f"{run}/metrics.prom").read()
assert text.endswith("\n")
for line in text.split("\n")[:-1]:
    if match := re.fullmatch(r"# (HELP|TYPE) (trainer_[a-z_]+) (\S.*)", line):
        family.setdefault(match[2], []).append(match[1])
        kind = match[3]
        continue
    name, labels, value = re.fullmatch(r'(trainer_[a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? '
                                       r'(NaN|[-+.e0-9]+)', line).groups()
    assert (family[name] == ["HELP", "TYPE"] and kind in ("gauge", "counter") and
            name.endswith("_total") == (kind == "counter")), line
    labels = {key: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)
              for key, text in re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels or "")}
    key = (name.removeprefix("trainer_"), labels.get("worker"), labels.get("phase"))
    assert key not in figures, line
    figures[key] = float(value)
    if name == "trainer_run_info":
        info = labels
if part == "whole":
    sys.exit(0)
summary = json.load(open(f"{run}/summary.json"))
rows = list(csv.DictReader(open(f"{run}/steps.csv")))
epochs = list(csv.DictReader(open(f"{run}/epochs.csv")))

def same(what, found, wanted, near=1e-6):
    found = figures[found]
    assert (found == wanted or math.isnan(found) and math.isnan(wanted) or
            abs(found - wanted) <= near * abs(wanted)), f"{what}: {found}, expected {wanted}"

assert info == {"strategy": summary["strategy"], "model": summary["model"], "dataset": summary["dataset"],
                "version": info["version"]}, info
same("over", ("run_over", None, None), 1)
same("updates", ("updates_total", None, None), summary["updates"])
same("epochs", ("epochs", None, None), len(epochs))
for name in "train_loss", "test_loss", "test_accuracy", "validation_accuracy":
    same(name, (name, None, None), float(epochs[-1][name]), 1e-5)
assert rows
for w, worker in enumerate(summary["per_worker"]):
    own = [row for row in rows if row["worker"] == str(w)]
    if not own: # on a busy machine the other one may have done all
        same("no steps", ("worker_steps_total", str(w), None), 0)
        continue
    # Counters begin with the program, as counters do.
    steps, examples = (figures[f"worker_{name}_total", str(w), None] for name in ("steps", "examples"))
    assert steps == int(own[-1]["step"]) if part == "all" else 0 < steps < int(own[-1]["step"]), (
        f"{steps} steps of {own[-1]['step']}")
    assert examples == sum(int(row["examples"]) for row in own[len(own) - int(steps):]), (
        f"{examples} examples in {steps} steps")
    same("up", ("worker_up", str(w), None), 0 if worker["lost"] else 1)
    if part == "all":
        same("examples", ("worker_examples_total", str(w), None), worker["examples"])
        same("wait", ("worker_seconds_total", str(w), "wait"), worker["wait_s"], 1e-5) # ends of epochs, too
        for phase in "input", "pull", "compute", "push":
            same(phase, ("worker_seconds_total", str(w), phase),
                 sum(float(row[phase + "_ms"]) for row in own) / 1e3, 1e-4)
        same("staleness", ("worker_staleness_mean", str(w), None),
             sum(int(row["staleness"]) for row in own) / len(own))
        same("most staleness", ("worker_staleness_max", str(w), None),
             max(int(row["staleness"]) for row in own))
        same("dropped", ("worker_dropped_total", str(w), None), sum(row["update"] == "0" for row in own))
        same("loss", ("worker_loss", str(w), None), float(own[-1]["loss"]), 1e-5)
PYTHON

# --- what it says, under a strategy that drops gradients, with a worker that is lost, and with a name that
# needs care ---
for more in "--strategy=backup:backups=1 --validation=0.2" \
    "--strategy=async-lockfree --fail=worker:1@step:20"; do
    # shellcheck disable=SC2086
    "$TRAINER" --quiet $small $more --epochs=4 --out=run --replace >out 2>err || fail "$more: $(cat err)"
    python3 read.py run || fail "$more: metrics.prom"
done
odd='od"d\.csv'
{ echo a,b,label && for i in {1..40}; do echo "$i,$((i % 7)),$((i % 2))"; done; } >"$odd"
"$TRAINER" --quiet --dataset="csv:file=$odd" --batch=4 --epochs=2 --outputs=csv,prometheus --out=odd \
    >out 2>err || fail "an odd name: $(cat err)"
python3 read.py odd || fail "an odd name: metrics.prom"

# --- while the run goes on it is there, and whole; a run that goes on counts on ---
$heeding "$TRAINER" --quiet --epochs=1000000 $small --out=long >out 2>err &
child=$!
until [ -e long/metrics.prom ]; do kill -0 $child && sleep 0.02 || exit 1; done
first=$(cat long/metrics.prom)
for ((look = 0; look < 100; look++)); do
    python3 read.py long whole || fail "not whole while the run goes on"
    [ "$(cat long/metrics.prom)" = "$first" ] || [ "$look" -lt 3 ] || break
    sleep 0.05
done
[ "$(cat long/metrics.prom)" != "$first" ] || fail "the same after $look looks"
kill -INT $child
wait $child
child=
epochs=$(tail -n 1 long/epochs.csv | cut -d, -f1)
"$TRAINER" --quiet --resume=long --epochs=$((epochs + 2)) --outputs=csv,prometheus >out 2>err ||
    fail "going on: $(cat err)"
python3 read.py long later || fail "metrics.prom of a run that went on"

[ $failures -eq 0 ]
