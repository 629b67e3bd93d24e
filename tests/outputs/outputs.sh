#!/bin/bash
# What a run leaves: the columns and types of its tables, times that add up, a summary that agrees with them,
# and what is printed: results on standard output, the rest on standard error, nothing but text in either.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

cat >check.py <<'PYTHON'
import csv, json, math, re, sys

def table(run, name, columns):
    text = open(f"{run}/{name}", newline="").read()
    assert text.endswith("\n") and "\r" not in text and '"' not in text, f"{name}: not plain lines"
    lines = text.splitlines()
    assert lines[0] == columns, f"{name}: {lines[0]}, expected {columns}"
    names = columns.split(",")
    for number, line in enumerate(lines[1:], 2):
        assert line.count(",") == len(names) - 1, f"{name}: line {number}: {line}"
    return list(csv.DictReader(lines))

WHOLE, REAL = r"[0-9]+", r"[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?"
STEPS = {"time_s": REAL, "worker": WHOLE, "device": r"[a-z]+:[0-9]+", "epoch": WHOLE, "step": WHOLE,
         "loss": REAL, "learning_rate": REAL,
         "examples": WHOLE, "input_ms": REAL, "pull_ms": REAL, "compute_ms": REAL, "push_ms": REAL,
         "wait_ms": REAL,
         "staleness": WHOLE, "update": WHOLE, "wire_bytes": WHOLE}
EPOCHS = {"epoch": WHOLE, "time_s": REAL, "train_loss": REAL, "test_loss": REAL, "test_accuracy": REAL,
          "examples_per_s": REAL,
          "validation_loss": "nan", "validation_accuracy": "nan"}
TIMES = ["input_ms", "pull_ms", "compute_ms", "push_ms", "wait_ms"]
SUMMARY = {"program": str, "model": str, "dataset": str, "batch": int, "batch_total": int,
           "microbatches": int, "optimizer": str, "schedule": str, "decay": float, "loss": str,
           "label_smoothing": float, "clip": float,
           "average": float, "seed": int, "freeze": str, "validation": float, "early_stop": int, "views": str,
           "strategy": str, "data_sharding": str, "share": str, "data_slice": str, "compress": str,
           "group": int, "place": str, "schedule_pipeline": str, "kernels": str, "precision": str,
           "simulate": str,
           "strategies": list, "machine": str, "devices": str,
           "workers": int, "threads": int, "shards": int, "shard_bytes": list, "homes": str,
           "server_bytes": list, "server_imbalance": (float, int, type(None)), "faults": str, "epochs": float,
           "steps": int, "updates": int, "examples": int, "train_seconds": float, "examples_per_s": float,
           "metric": str, "test_accuracy": float, "test_top5": float,
           "test_cost": float, "test_accuracy_by_views": type(None), "first_cost": float, "final_cost": float,
           "target_s": type(None), "best_epoch": int, "best_accuracy": type(None),
           "best_test_accuracy": type(None), "staleness": dict, "shard_staleness": list, "wait_share": float,
           "pull_share": float, "push_share": float,
           "compute_share": float, "input_share": float, "pipeline_idle": type(None),
           "pipeline_idle_equal": type(None), "batch_expected_s": type(None), "batch_compute_s": float,
           "lost_updates": int, "dropped": int, "lost_workers": int,
           "lost_batches": int, "joins": list, "bytes_moved": int, "cluster_ps": int, "cluster_workers": int,
           "wire_sent": int, "wire_received": int, "interrupted": bool, "diverged": str,
           "learnt_nothing": str, "members": list, "per_worker": list}

def types(rows, wanted):
    for row in rows:
        for name, pattern in wanted.items():
            assert re.fullmatch(pattern, row[name]), f"{name}: {row[name]} in {row}"

def read(run):
    rows = table(run, "steps.csv", ",".join(STEPS))
    types(rows, STEPS)
    epochs = table(run, "epochs.csv", ",".join(EPOCHS))
    types(epochs, EPOCHS)
    summary = json.load(open(f"{run}/summary.json"),
                        parse_constant=lambda word: sys.exit(f"summary.json: {word}"))
    return rows, epochs, summary

def array_bytes(run): # of the model's arrays
    data = open(f"{run}/model.safetensors", "rb").read()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    return [e["data_offsets"][1] - e["data_offsets"][0]
            for name, e in header.items() if name != "__metadata__"]

def check_summary(run, s):
    assert list(s) == list(SUMMARY), f"summary.json: {list(s)}"
    for name, kind in SUMMARY.items():
        fits = isinstance(s[name], kind) or kind is float and isinstance(s[name], int)
        assert fits and (kind is bool or not isinstance(s[name], bool)), f"summary.json: {name}: {s[name]}"
    sizes = [-(-size // 64) * 64 for size in array_bytes(run)]
    assert len(s["shard_bytes"]) == s["shards"] and sum(s["shard_bytes"]) == sum(sizes), (s["shard_bytes"],
                                                                                          sizes)
    assert s["strategies"] == [{"strategy": s["strategy"], "from_epoch": 1}], s["strategies"]
    assert sum(s["server_bytes"]) in (0, sum(sizes)) and len(s["server_bytes"]) <= s["shards"], (
        s["server_bytes"])
    assert len(s["per_worker"]) == s["workers"] and sum(w["steps"] for w in s["per_worker"]) == s["steps"], (
        s["per_worker"])
    assert list(s["staleness"]) == ["mean", "p50", "p99", "max"], s["staleness"]
    shards = s["shard_staleness"]
    assert len(shards) == s["shards"] and all(list(shard) == list(s["staleness"]) for shard in shards), shards
    assert max(shard["max"] for shard in shards) == s["staleness"]["max"], shards
    if s["dropped"] == 0:
        assert abs(sum(shard["mean"] for shard in shards) / len(shards) -
                   s["staleness"]["mean"]) < 1e-6 * (1 + s["staleness"]["mean"]), shards
    shares = sum(s[name] for name in SUMMARY if name.endswith("_share"))
    assert abs(shares - 1) < 1e-6, f"the shares add up to {shares}"
    assert (s["interrupted"] is False and
            s["staleness"]["p50"] <= s["staleness"]["p99"] <= s["staleness"]["max"]), s
    assert math.isclose(s["examples_per_s"], s["examples"] / s["train_seconds"], rel_tol=1e-3), s

def check_run(run, train_examples, batch):
    rows, epochs, s = read(run)
    check_summary(run, s)
    by_worker = {w: [row for row in rows if int(row["worker"]) == w] for w in range(s["workers"])}
    assert len(rows) == s["steps"] and sum(int(row["examples"]) for row in rows) == s["examples"], (len(rows),
                                                                                                    s)
    assert math.isclose(s["epochs"], s["examples"] / train_examples), s
    assert {row["examples"] for row in rows} == {str(batch)}, "batches of other sizes"
    devices = s["devices"].split(",")
    for w, own in by_worker.items(): # one that came too late to get a batch has no row
        assert {row["device"] for row in own} <= {devices[w]}, f"worker {w}: devices"
        assert [int(row["step"]) for row in own] == list(range(1, len(own) + 1)), f"worker {w}: steps"
        times = [float(row["time_s"]) for row in own]
        assert times == sorted(times) and min(times, default=1) > 0, f"worker {w}: times"
        assert [int(row["epoch"]) for row in own] == sorted(int(row["epoch"]) for row in own), (
            f"worker {w}: epochs")
    stale = [int(row["staleness"]) for row in rows]
    updates = sorted(int(row["update"]) for row in rows)
    if s["strategy"] == "sync":
        assert set(stale) == {0} and s["staleness"] == {"mean": 0, "p50": 0, "p99": 0, "max": 0}, (
            "sync is stale")
        assert s["updates"] == max(len(own) for own in by_worker.values()), s["updates"]
        assert all(row["update"] == row["step"] for row in rows), "sync: updates"
        assert s["bytes_moved"] == 0, "sync copies"
    else:
        assert max(stale) == s["staleness"]["max"], (max(stale), s["staleness"])
        # One shard, an update a gradient.
        if (s["updates"] == s["steps"] and "apply=worker" not in s["strategy"] and
            "sharded" not in s["strategy"] and "adasync" not in s["strategy"]):
            assert math.isclose(sum(stale) / len(stale), s["staleness"]["mean"], rel_tol=1e-6,
                                abs_tol=1e-9), s["staleness"]
            assert updates == list(range(1, s["updates"] + 1)), "not one number an update"
    firsts = [float(own[0]["loss"]) for own in by_worker.values() if own]
    assert math.isclose(s["first_cost"], sum(firsts) / len(firsts), rel_tol=1e-5), s["first_cost"]
    assert [w["device"] for w in s["per_worker"]] == devices, s["per_worker"]
    last = epochs[-1]
    assert [int(row["epoch"]) for row in epochs] == list(range(1,
                                                               round(s["epochs"]) + 1)), "epochs.csv: epochs"
    assert math.isclose(float(last["test_accuracy"]), s["test_accuracy"], abs_tol=1e-6), (last, s)
    assert math.isclose(float(last["test_loss"]), s["test_cost"], rel_tol=1e-5), (last, s)
    assert math.isclose(float(last["time_s"]), s["train_seconds"], rel_tol=1e-3, abs_tol=2e-6), (last, s)
    moments = [float(row["time_s"]) for row in epochs]
    assert moments == sorted(moments) and max(float(row["time_s"]) for row in rows) <= moments[-1] + 1e-3, (
        "epochs.csv: times")
    finals = [float(own[-1]["loss"]) for own in by_worker.values() if own]
    assert math.isclose(s["final_cost"], sum(finals) / len(finals), rel_tol=1e-5), s["final_cost"]
    # An epoch is what was assigned between two boundaries, give or take a batch a worker.
    for number, row in enumerate(epochs, 1):
        losses = [float(r["loss"]) for r in rows if int(r["epoch"]) == number]
        assert (abs(float(row["train_loss"]) - sum(losses) / len(losses)) < 0.2 * float(row["train_loss"]) +
                0.1), (row, sum(losses) / len(losses))

def check_times(run): # between steps of one epoch, so that no pause lies between them
    rows, _, s = read(run)
    for w in range(s["workers"]):
        own = [row for row in rows if int(row["worker"]) == w]
        pairs = [(a, b) for a, b in zip(own, own[1:]) if a["epoch"] == b["epoch"]]
        passed = sum(float(b["time_s"]) - float(a["time_s"]) for a, b in pairs) * 1e3
        parts = sum(float(b[name]) for _, b in pairs for name in TIMES)
        if len(pairs) < 20 or not -0.01 * passed <= passed - parts <= 0.01 * passed + 0.2:
            return (f"worker {w}: {passed} ms passed between its {len(pairs)} rows, its five times add up to "
                    f"{parts}")
    # What a worker does at a step or epoch boundary, coming to rest and waking up, is in the totals but in
    # no row.
    for name in TIMES:
        rows_s = sum(float(row[name]) for row in rows) / 1e3
        total_s = sum(worker[name[:-3] + "_s"] for worker in s["per_worker"])
        if (total_s < rows_s * 0.99 - 1e-4 or name in ("compute_ms", "push_ms") and
            total_s > rows_s * 1.01 + 1e-4):
            return f"{name}: {rows_s} s in the rows, {total_s} s in summary.json"
    for worker in s["per_worker"]:
        assert (len(worker["waited_for_each"]) == len(s["members"]) and
                max(worker["waited_for_each"]) == worker["waited_for_s"]), worker
    for worker in s["per_worker"]:
        parts = sum(worker[name[:-3] + "_s"] for name in TIMES)
        if abs(parts - s["train_seconds"]) > 1e-3 * s["train_seconds"]:
            return f"{worker['name']}: its times add up to {parts} s of {s['train_seconds']}"
    return ""

def check_thin(run, every):
    rows, _, s = read(run)
    assert len(rows) > 0 and all(int(row["step"]) % every == 0 for row in rows), (
        "a row that was not asked for")
    per = s["steps"] // s["workers"]
    assert s["steps"] % s["workers"] == 0 and len(rows) == s["workers"] * (per // every), (
        f"{len(rows)} rows of {s['steps']} steps")

def check_lines(run, every, path):
    rows, _, s = read(run)
    lines = open(path).read().splitlines()
    prefix = r"Worker (?P<worker>\d+): " if s["workers"] > 1 else "(?P<worker>)"
    pattern = prefix + (r"Step: (?P<step>\d+),  Epoch: (?P<epoch>[ \d]\d),  Batch: (?P<batch>[ \d]{2}\d) of "
                        r"(?P<batches>[ \d]{2}\d),  "
                        r"Cost: (?P<cost>\d+\.\d{4}),  AvgTime: (?P<average>\d+\.\d\d)ms")
    found = [re.fullmatch(pattern, line) for line in lines if "Step: " in line]
    assert all(found), ("a line that is not one: "
                        f"{[line for line in lines if 'Step: ' in line and not re.fullmatch(pattern, line)]}")
    wanted = [row for row in rows if int(row["step"]) % every == 0]
    assert len(found) == len(wanted) > 3, f"{len(found)} lines, expected {len(wanted)}"
    for match in found:
        same = [row for row in wanted if row["update"] == match["step"] and
                row["worker"] == (match["worker"] or "0")]
        assert len(same) == 1, f"no row for {match[0]}"
        assert abs(float(same[0]["loss"]) - float(match["cost"])) < 6e-5 + 1e-5 * float(match["cost"]), (
            same, match[0])
        assert (int(same[0]["epoch"]) == int(match["epoch"]) and
                1 <= int(match["batch"]) <= int(match["batches"])), (same, match[0])
    check_record(run, s, lines)

def check_record(run, s, lines): # settings, then steps and epochs, then figures, then the sentence
    epochs = list(csv.DictReader(open(f"{run}/epochs.csv")))
    first = next(i for i, line in enumerate(lines) if re.match(r"(Worker \d+: )?Step: |Epoch ", line))
    assert (lines[first - 1] == f"logs, model and checkpoint go to {run}" and
            f" on {s['dataset']} (" in lines[0]), lines[:first]
    middle = [line for line in lines[first:-4] if "Step: " not in line]
    assert len(middle) == len(epochs), f"{len(middle)} lines of {len(epochs)} epochs: {middle}"
    for number, (line, row) in enumerate(zip(middle, epochs), 1):
        wanted = (rf"Epoch {number}/{len(epochs)}  loss {float(row['train_loss']):.4f}  test "
                  rf"{100 * float(row['test_accuracy']):.2f} %  [\d,]+ examples/s  [\d.]+ m?s")
        wanted += r"  \(ETA [\d.]+ m?s\)" if number < len(epochs) else ""
        assert re.fullmatch(wanted, line), f"{line}, expected {wanted}"
    assert lines[-4] == f"Test-Accuracy: {s['test_accuracy']:.4f}", lines[-4]
    assert re.fullmatch(r"Total Time: \d+\.\d\ds",
                        lines[-3]) and abs(float(lines[-3][12:-1]) - s["train_seconds"]) < 0.0051, lines[-3]
    assert lines[-2] == f"Final Cost: {s['final_cost']:.4f}", lines[-2]
    assert lines[-1].startswith(f"{round(s['examples_per_s']):,} examples/s, computing takes "
                                f"{100 * s['compute_share']:.0f} % of the time"), lines[-1]

what, run, *rest = sys.argv[1:]
try:
    if what == "run":
        check_run(run, int(rest[0]), int(rest[1]))
    if what == "times":
        words = check_times(run)
        assert not words, words
    if what == "thin":
        check_thin(run, int(rest[0]))
    if what == "lines":
        check_lines(run, int(rest[0]), rest[1])
except AssertionError as error:
    sys.exit(str(error))
PYTHON

train() { # folder, options...
    local folder=$1
    shift
    "$TRAINER" --replace --out="$folder" "$@" >out 2>err || fail "$*: exit code $?: $(cat err)"
}

check() { # what, folder, ...
    local words
    words=$(python3 check.py "$@" 2>&1) || fail "$*: $words"
}

plain() { # files: text without control characters
    ! LC_ALL=C grep -Hn '[[:cntrl:]]' "$@" | head -n 3 | cat -v | grep . || fail "control characters in $*"
}

# --- the tables and the summary, for every strategy ---
files="run/checkpoint/state.safetensors run/epochs.csv run/model.safetensors run/report.html \
run/steps.csv run/summary.json "
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16"
for strategy in $("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p') \
    async-lockfree:apply=worker; do
    for devices in cpu:0 cpu:0,cpu:1,cpu:2; do
        # shellcheck disable=SC2086 # several words
        train run $small --epochs=3 --strategy="$strategy" --devices=$devices --print-every=5
        check run run 320 16
        [ "$strategy" != sync ] || check lines run 5 out
        plain run/steps.csv run/epochs.csv run/summary.json out err
        [ "$(find run -type f | sort | tr '\n' ' ')" = "$files" ] ||
            fail "$strategy: found $(find run -type f), expected $files"
    done
done

# --- what stands where ---
# shellcheck disable=SC2086
train said $small --epochs=2 --devices=cpu:0,cpu:1 --seed=7 --strategy=sync
for words in '20' '320 train, 360 test' 'sync' 'cpu:0' 'cpu:1' '16 x 2 = 32' 'seed 7' 'said'; do
    grep -q -e "$words" out || fail "standard output does not say $words: $(cat out)"
done
grep -qx 'loss: mean cross entropy, without L2' out || fail "it is not said what the loss is: $(cat out)"
! grep -v '^epoch [0-9]*/' err ||
    fail "more than progress is on standard error, where nothing went wrong: $(cat err)"
unfolded() { tr '\n' ' ' <out | tr -s ' '; }
train many --dataset=iris --batch=1 --epochs=1 --devices="$(seq -s, -f cpu:%g 0 2 118)" --threads=1
unfolded | grep -q '60 workers (cpu:0 x1, cpu:2 x1, .* x1, \.\.\. 60 in all), 1 shard' ||
    fail "not all of 60 workers are told: $(cat out)"
train threads --dataset=iris --epochs=1 --devices=cpu:0 --threads=$(($(nproc) + 1))
unfolded | grep -q 'more threads than cores: they share them' || fail "threads share cores: $(cat out)"
train devices --dataset=iris --epochs=1 --batch=1 --devices="$(seq -s, -f cpu:%g 0 "$(nproc)")"
unfolded | grep -q 'more devices than cores: they share them' || fail "devices share cores: $(cat out)"
# shellcheck disable=SC2086
train quiet $small --epochs=2 --devices=cpu:0,cpu:1 --quiet --print-every=1
[ "$(cut -d: -f1 out | tr '\n' ,)" = "Test-Accuracy,Total Time,Final Cost," ] ||
    fail "--quiet printed: $(cat out)"
[ ! -s err ] || fail "--quiet wrote to standard error: $(cat err)"
# shellcheck disable=SC2086
train target $small --epochs=60 --devices=cpu:0 --target-accuracy=0.2 --decay=0.001 --print-every=0
python3 - <<'PYTHON' || fail "target: $(cat out)"
import csv, json, re
lines = open("out").read().splitlines()
epochs = list(csv.DictReader(open("target/epochs.csv")))
first = next(row for row in epochs if float(row["test_accuracy"]) >= 0.2)
said = [line for line in lines if "the first with an accuracy" in line]
seconds = float(first["time_s"])
took = f"{seconds:.1f} s" if seconds >= 0.0995 else f"{1e3 * seconds:.{int(seconds < 0.00995)}f} ms"
assert said == [f"epoch {first['epoch']}: the first with an accuracy of 0.2 or more "
                f"({float(first['test_accuracy']):.4f}), after {took}"], said
numbers = [int(line.split("/")[0][6:]) for line in lines if line.startswith("Epoch ")]
# The first, and each twentieth of all.
assert {1, *range(3, 61, 3)} <= set(numbers) and numbers == sorted(set(numbers)), numbers
assert len(numbers) <= 21 + json.load(open("target/summary.json"))["train_seconds"] * 10, numbers
assert "loss: mean cross entropy, with L2" in lines
PYTHON
! grep 'never reached' err || fail "a target that was reached is said not to have been"
# shellcheck disable=SC2086
train target $small --epochs=3 --devices=cpu:0 --target-accuracy=1
best=$(awk -F, 'NR > 1 && $5 > most { most = $5; epoch = $1 } END { printf "%.4f, in epoch %d", most, epoch }' \
    target/epochs.csv)
grep -qx "trainer: --target-accuracy=1 was never reached: the best was $best" err ||
    fail "a target that was never reached, the best was $best: $(cat err)"
# shellcheck disable=SC2086
train twice $small --epochs=4 --devices=cpu:0,cpu:1
# shellcheck disable=SC2086
train twice $small --epochs=2 --devices=cpu:0,cpu:1 --strategy=async-lockfree
check run twice 320 16 # nothing of the run before is left

# --- the summary says what was run: as it was typed, and where nothing was, what was taken ---
told() { # folder, then member and value in turn
    local folder=$1 found
    shift
    found=$(python3 -c 'import json, sys
s = json.load(open(sys.argv[1] + "/summary.json"))
for name, value in zip(sys.argv[2::2], sys.argv[3::2]):
    if str(s[name]) != value: print(f"{name} is {s[name]}, expected {value}")' "$folder" "$@" 2>&1)
    [ -z "$found" ] || fail "$folder/summary.json: $found"
}
told quiet program "$("$TRAINER" --version | cut -d ' ' -f 1,2)" model mlp:hidden=20 dataset digits:take=320 \
    strategy sync optimizer momentum:rate=0.1 schedule constant batch 16 decay 0 clip 0 average 0 \
    precision fp32 kernels auto data_sharding shared devices cpu:0,cpu:1 shards 1 homes cpu seed 1 faults ''
train typed --quiet --dataset=iris --model=mlp:hidden=30 --epochs=2 --batch=7 --optimizer=adam:rate=0.01 \
    --schedule=cosine --decay=0.001 --clip=3 --average=0.5 --kernels=reference --data-sharding=split \
    --strategy=sharded --shards=3 --devices=cpu:1,cpu:0 --threads=1 --seed=9 --slow=cpu:1=1.5x \
    --stall=worker:1@step:98 --fail=worker:0@step:99
told typed model mlp:hidden=30 dataset iris strategy sharded optimizer adam:rate=0.01 \
    schedule cosine batch 7 decay 0.001 clip 3 average 0.5 kernels reference data_sharding \
    split devices cpu:1,cpu:0 workers 2 threads 1 shards 3 homes cpu seed 9 \
    faults '--slow=cpu:1=1.5x --stall=worker:1@step:98 --fail=worker:0@step:99'

# --- a gradient that was dropped: its line has the updates that there were, and says so ---
# shellcheck disable=SC2086
train dropped $small --epochs=8 --strategy=backup --devices=cpu:0,cpu:1,cpu:2 --threads=1 --slow=cpu:1=20x \
    --print-every=1
python3 - <<'PYTHON' || fail "dropped: $(grep dropped out | head -n 3)"
import csv, json, re
rows = list(csv.DictReader(open("dropped/steps.csv")))
lines = [line for line in open("out") if "Step:" in line]
late = [line for line in lines if line.endswith("ms,  dropped\n")]
assert (len(late) == sum(row["update"] == "0" for row in rows) > 0 and
        len(late) <= json.load(open("dropped/summary.json"))["dropped"]), late
assert len([line for line in lines if line.endswith("ms\n")]) == len(lines) - len(late)
last = {}
for line in lines: # the updates that a worker sees never become fewer
    worker, step = re.match(r"Worker (\d): Step: (\d+),", line).groups()
    assert int(step) >= last.get(worker, 0), line
    last[worker] = int(step)
assert max(last.values()) == json.load(open("dropped/summary.json"))["updates"], last
PYTHON

# --- the final cost is of those who were there at the end ---
# shellcheck disable=SC2086
train lost $small --epochs=20 --devices=cpu:0,cpu:1 --strategy=ssp --fail=worker:1@step:5 --on-loss=continue \
    --print-every=0
python3 - <<'PYTHON' || fail "lost: $(tail -n 3 out)"
import csv, json
rows = list(csv.DictReader(open("lost/steps.csv")))
last = [row for row in rows if row["worker"] == "0"][-1]
s = json.load(open("lost/summary.json"))
lines = open("out").read().splitlines()
assert s["lost_workers"] == 1 and abs(s["final_cost"] - float(last["loss"])) < 1e-5 * s["final_cost"], (
    s["final_cost"], last)
assert f"Final Cost: {s['final_cost']:.4f}" in lines and "; 1 worker lost" in lines[-1], lines[-2:]
PYTHON

# --- shards of other sizes: the sentence says it, and the summary whose they are ---
# shellcheck disable=SC2086
train sizes $small --epochs=2 --devices=cpu:0,cpu:1 --strategy=sharded --shards=2 --shard-by=tensor \
    --print-every=0
python3 - <<'PYTHON' || fail "sizes: $(tail -n 1 out)"
import json
s = json.load(open("sizes/summary.json"))
assert s["shard_bytes"] == [5248, 896] == s["server_bytes"], (s["shard_bytes"], s["server_bytes"])
assert abs(s["server_imbalance"] - 5248 / 3072) < 1e-12, s["server_imbalance"]
line = "bytes per server: 5,248 and 896, the largest 1.71 times the mean"
assert line in open("out").read() and "B" + line[1:] + "." in open("sizes/report.html").read(), (
    "bytes per server")
assert ("; of 2 servers the largest holds 85.4 % of the weights, the smallest 14.6 %." in
        open("out").read().splitlines()[-1])
PYTHON

# --- a loss that is high but not hopeless: one line says so, also when quiet; a run that goes on from a low
# one does not ---
huge="training diverged: the loss was [0-9.]* in the first steps and is [0-9.e+]* in the last, \
where guessing has 2.30; a smaller rate than sgd:rate=100 may help"
# shellcheck disable=SC2086
train huge $small --epochs=2 --quiet --optimizer=sgd:rate=100 --devices=cpu:0 --threads=1
[ "$(grep -cx "trainer: $huge" err)" -eq 1 ] || fail "huge: said: $(cat err)"
# shellcheck disable=SC2086
train well $small --epochs=60 --quiet --devices=cpu:0 --threads=1
train well --quiet --epochs=61 --resume=well --optimizer=sgd:rate=6 --devices=cpu:0 --threads=1
python3 -c 'import json; s = json.load(open("well/summary.json")); '\
'assert s["final_cost"] > 10 * s["first_cost"], s' ||
    fail "well: its cost did not rise"
! grep -q diverged err || fail "well: said: $(cat err)"

# --- thinner ---
# shellcheck disable=SC2086
train thin $small --epochs=3 --strategy=sync --devices=cpu:0,cpu:1 --log-every=7
check thin thin 7
# shellcheck disable=SC2086
train none $small --epochs=2 --devices=cpu:0 --log-every=0 --print-every=0
[ ! -e none/steps.csv ] || fail "--log-every=0: a steps.csv"
! grep 'Step:' out || fail "--print-every=0: printed: $(cat out)"

# --- the five times; a machine that others use too may be busy just between two steps, so five tries ---
# Epochs of whole rounds of batches, so that a row's epoch is the one in which it was computed.
grep -qa __tsan_init "$TRAINER" && passes=2 || passes=15
for strategy in sync async-lockfree; do
    for devices in cpu:0 cpu:0,cpu:1; do # alone, a worker hardly waits, and the small times count
        for try in 1 2 3 4 5; do
            train times --dataset=digits:take=1408 --model=mlp:hidden=200 --batch=16 --epochs="$passes" \
                --strategy=$strategy --devices=$devices --threads=1
            words=$(python3 check.py times times 2>&1) && break
            [ $try -lt 5 ] || fail "$strategy, $devices: $words"
        done
    done
done

# --- standard output that cannot be written ---
if [ -w /dev/full ]; then
    for more in "--quiet" "--print-every=1" "--print-every=0"; do
        # shellcheck disable=SC2086
        "$TRAINER" $small --epochs=2 --replace --out=full $more >/dev/full 2>err
        code=$?
        [ $code -eq 3 ] || fail "a full disk behind standard output ($more): exit code $code, expected 3"
        tail -n 1 err | grep -q '^trainer: .*No space left on device$' ||
            fail "a full disk behind standard output ($more): said: $(cat err)"
        [ "$(wc -l <full/steps.csv) $(wc -l <full/epochs.csv) $(ls full/summary.json full/model.safetensors |
            wc -l)" = "41 3 2" ] ||
            fail "a full disk behind standard output ($more): the run was not finished: $(wc -l \
                full/*.csv) $(ls full)"
    done
fi
# A reader that goes away, at once or later, is no error of a training; its files are whole.
for more in "--quiet" "--print-every=1" "--print-every=0" "--print-every=1 --explain"; do
    for lines in 0 1; do
        rm -rf left
        # shellcheck disable=SC2086
        "$TRAINER" $small --epochs=40 --out=left $more 2>err | head -n $lines >out
        code=${PIPESTATUS[0]}
        [ $code -eq 0 ] && ! grep -qv '^epoch [0-9]*/' err ||
            fail "a reader that went away after $lines lines ($more): exit code $code: $(cat err)"
        [ "$(wc -l <left/steps.csv) $(wc -l <left/epochs.csv) $(ls left/summary.json left/model.safetensors |
            wc -l)" = "801 41 2" ] ||
            fail "a reader that went away after $lines lines ($more): the run was not finished: $(wc -l \
                left/*.csv) $(ls left)"
    done
done
# shellcheck disable=SC2086
"$TRAINER" bench $small --devices=cpu:0 --epochs=1 --strategies=sync --repeats=1 --quiet --out=left-bench \
    2>err | true
code=${PIPESTATUS[0]}
[ $code -eq 0 ] || fail "a reader of bench that went away: exit code $code: $(cat err)"
# shellcheck disable=SC2086
"$TRAINER" $small --epochs=2 --out=closed --print-every=1 >&- 2>err
code=$?
[ $code -eq 3 ] || fail "a closed standard output: exit code $code, expected 3"
! grep -qs 'Step:' closed/*.* ||
    fail "a closed standard output: its lines are in $(grep -ls 'Step:' closed/*.*)"

[ $failures -eq 0 ]
