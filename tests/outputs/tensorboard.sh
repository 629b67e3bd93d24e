#!/bin/bash
# --outputs=tensorboard: every tag with the values of steps.csv and epochs.csv, also of a run that goes on and
# does some steps again, as a plain reader finds them (tests/event_files.py). outputs/tensorboard_reader does
# the same with TensorBoard's own.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
processes=()
cd "$scratch" || exit 1

if ! "$TRAINER" --epochs=1 --outputs=tensorboard --out=without --quiet >out 2>err &&
    grep -q 'needs a build with' err; then
    grep -q '^trainer: --outputs=tensorboard: tensorboard needs a build with protobuf-c '\
'.*libprotobuf-c-dev protobuf-c-compiler' \
        err ||
        fail "a build without protobuf-c: $(cat err)"
    [ -e without ] && fail "a build without protobuf-c makes a folder"
    exit $((failures > 0))
fi

check() { # what, run, every how many steps
    python3 "$tests/event_files.py" "$2" "$3" >out 2>&1 || fail "$1: $(tail -n 3 out)"
}
one_file() { # what, folder: one of each run
    [ "$(find "$2" -name 'events.*' | wc -l)" -eq 3 ] || fail "$1: $(find "$2" -name '*events*')"
}

run() {
    "$TRAINER" --devices=cpu:0,cpu:1 --batch=64 --outputs=csv,tensorboard --scalars=5 --quiet "$@" \
        >out 2>err || fail "$*: $(cat err)"
}

run --strategy=async-lockfree --epochs=3 --out=async
check "a run" async 5

# Of two workers one is so slow that its gradients are far more than 64 updates old.
run --strategy=async-locked --shards=1 --batch=1 --epochs=1 --slow=cpu:1=100x --out=aged
python3 - >out 2>&1 <<'PYTHON' || fail "gradients that are old: $(tail -n 1 out)"
import csv, event_files, json, math
ages = sorted(int(row["staleness"]) for row in csv.DictReader(open("aged/steps.csv")))
found = json.load(open("aged/summary.json"))["staleness"]
assert found["max"] == ages[-1] > 70, (found, ages[-1])
for name, share in ("p50", 0.5), ("p99", 0.99):
    age = ages[math.ceil(share * len(ages)) - 1]
    assert age <= found[name] <= age * 33 / 32, f"{name} is {found[name]}, expected {age}"
(_, histogram), = event_files.read("aged")["staleness/shard-0"]
assert histogram[-3] <= ages[-1] < histogram[-2], f"{histogram} of ages up to {ages[-1]}"
PYTHON

# Pictures, where there is libpng: filters of the first epoch and the last one, what was wrong in the end.
python3 - "$(grep -c TRAINER_PNG=1 "$BUILD/flags")" >out 2>&1 <<'PYTHON' || fail "pictures: $(tail -n 1 out)"
import event_files, struct, sys
tags = event_files.read("async")
found = tags.get("filters", [])
assert [step for step, _ in found] == ([1, 3] if sys.argv[1] == "1" else []), [step for step, _ in found]
for tag, step in ("wrong", 3), ("confusion", 3), ("examples", 1):
    assert [at for at, _ in tags.get(tag, [])] == ([step] if found else []), f"{tag}: {tags.get(tag)}"
    found += tags.get(tag, [])
for _, (width, height, png) in found:
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (width, height), (
        width, height, png[:24])
PYTHON

# A run that goes on; then from an older checkpoint, after a kill in the middle of a record: some steps are
# done again.
run --strategy=sync --epochs=3 --out=sync
cp -r sync/checkpoint older
run --resume=sync --epochs=5
check "a run that went on" sync 5
rm -r sync/checkpoint && mv older sync/checkpoint
last=$(find sync/worker-0 -name '*tfevents*' | sort | tail -n 1)
truncate -s -7 "$last"
torn=$(stat -c %s "$last")
run --resume=sync --epochs=6
[ "$(stat -c %s "$last")" -lt "$torn" ] || fail "half a record is left in $last"
check "a run that did steps again" sync 5
[ "$(tail -n 1 sync/epochs.csv | cut -d, -f1)" = 6 ] ||
    fail "it did not end with epoch 6: $(tail -n 1 sync/epochs.csv)"

# A folder that is used again has the new run's files only.
cp -r async again
run --strategy=sync --epochs=2 --out=again --replace
check "a run that replaces" again 5
one_file "a run that replaces" again

# What is there while the first epoch goes on; a run that is interrupted has not succeeded.
$heeding "$TRAINER" --devices=cpu:0 --batch=1 --slow=cpu:0=200x --outputs=tensorboard --scalars=1 \
    --out=watched --quiet >out 2>err &
child=$!
python3 - >found 2>&1 <<'PYTHON' || fail "a run that is watched: $(tail -n 1 found) $(cat err)"
import event_files, os, time
for _ in range(800):
    time.sleep(0.05)
    if os.path.isdir("watched/worker-0") and "step/loss" in event_files.read("watched/worker-0"):
        break
assert "step/loss" in event_files.read("watched/worker-0"), "no steps"
assert "epoch/test_loss" not in event_files.read("watched"), "an epoch is over already"
PYTHON
kill -INT $child
wait $child
child=''
python3 -c 'import event_files; assert "_hparams_/session_end_info" not in event_files.read("watched")' \
    2>/dev/null ||
    fail "a run that was interrupted has succeeded"

# Nothing but epochs.
"$TRAINER" --epochs=2 --devices=cpu:0 --outputs=tensorboard --scalars=0 --histograms=0 --out=few \
    --quiet >out 2>err || fail "few: $(cat err)"
python3 - <<'PYTHON' || fail "--scalars=0 --histograms=0: $(cat out)"
import event_files
main, worker = event_files.read("few"), event_files.read("few/worker-0")
assert len(main["epoch/test_loss"]) == 2 and not any(t.startswith("weights") for t in main), list(main)
assert list(worker) == ["graph"], list(worker)
PYTHON

# The network of TensorFlow's multi-worker examples, with Adam, on two processes that TF_CONFIG names: the
# chief writes for both.
# --- the waits of an epoch have those at its ends, which no step has: together they are the summary's share ---
"$TRAINER" --simulate=20ms:spread=0.3 --devices=cpu:0-19 --strategy=async-apply --model=softmax --epochs=3 \
    --optimizer=sgd:rate=0.05 --outputs=csv,tensorboard --histograms=0 --out=waits --quiet >out 2>&1 ||
    fail "a run that waits: $(cat out)"
python3 - >out 2>&1 <<'PYTHON' || fail "waits at the ends of epochs: $(tail -n 1 out)"
import csv, event_files, json
shares = [value for _, value in event_files.read("waits")["epoch/wait_share"]]
ends = [float(row["time_s"]) for row in csv.DictReader(open("waits/epochs.csv"))]
took = [end - begin for end, begin in zip(ends, [0.0] + ends)]
found = sum(share * seconds for share, seconds in zip(shares, took)) / ends[-1]
wanted = json.load(open("waits/summary.json"))["wait_share"]
assert len(shares) == 3 and wanted > 0.02 and abs(found - wanted) < 1e-5, (found, wanted)
PYTHON

ports=$(python3 -c 'import socket
held = [socket.socket() for _ in range(2)]
for s in held: s.bind(("localhost", 0))
print(", ".join(f"\"localhost:{s.getsockname()[1]}\"" for s in held))')
for task in 1 0; do
    TF_CONFIG='{"cluster": {"worker": ['$ports']}, "task": {"type": "worker", "index": '$task'}}' timeout 60 \
        "$TRAINER" --model=cnn --optimizer=adam:rate=0.002 --dataset=digits:take=320 --batch=16 --epochs=3 \
        --outputs=csv,tensorboard --scalars=5 --out="mirrored.$task" --quiet >"out.$task" 2>&1 &
    processes[task]=$!
done
for task in 1 0; do
    wait "${processes[task]}" || fail "two processes, $task: exit code $?: $(cat "out.$task")"
done
python3 - <<'PYTHON' || fail "two processes"
import csv, event_files
main, rows = event_files.read("mirrored.0"), list(csv.DictReader(open("mirrored.0/epochs.csv")))
assert [step for step, _ in main["epoch/test_loss"]] == [1, 2, 3] == [int(row["epoch"]) for row in rows], (
    main["epoch/test_loss"])
assert all(abs(value - float(row["test_loss"])) < 1e-5
           for (_, value), row in zip(main["epoch/test_loss"], rows)), rows
for worker in "worker-0", "worker-1":
    tags = event_files.read(f"mirrored.0/{worker}")
    assert len(tags["step/loss"]) >= 4 and "graph" in tags, list(tags)
PYTHON
[ "$(cat out.0)" != "" ] && [ -z "$(find mirrored.1 -name '*tfevents*' 2>/dev/null)" ] ||
    fail "the process that is not the chief wrote: $(find mirrored.1)"
[ $failures -eq 0 ]
