#!/bin/bash
# What outputs leave when a run is killed at any moment, or its disk or folder goes: nothing unreadable, one
# line for each that cannot go on, and a training that ends well. KILLS: how many moments (4).
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
kills=${KILLS:-4}
all=$("$TRAINER" list outputs | sed -n 's/^  \([a-z]*\) .*/\1/p')
chosen=
for name in $all; do # those that this build has
    "$TRAINER" --quiet --outputs="$name" --dataset=digits:take=64 --epochs=1 --replace --out=none \
        >/dev/null 2>err
    grep -q 'needs a build with' err || chosen+=${chosen:+,}$name
done
small="--quiet --dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1 \
    --outputs=$chosen"

cat >readable.py <<'PYTHON'
import csv, json, os, struct, sys

run, over = sys.argv[1], sys.argv[2] == "over"

def table(name):
    text = open(f"{run}/{name}").read()
    assert not over or text.endswith("\n"), name
    rows = list(csv.reader(text[:text.rindex("\n") + 1].splitlines()))
    assert all(len(row) == len(rows[0]) for row in rows), name
    return rows

def events(path):
    """Whole records; what a kill cut off is at the end, and a reader takes it for what is still to come."""
    data, at, count = open(path, "rb").read(), 0, 0
    while at + 12 <= len(data):
        length, = struct.unpack("<Q", data[at:at + 8])
        if at + 16 + length > len(data):
            break
        at, count = at + 16 + length, count + 1
    assert count >= 1 and (not over or at == len(data)), path

for folder, folders, names in os.walk(run):
    for name in names:
        assert not over or not name.endswith(".part"), name # killed: of a checkpoint
        if "tfevents" in name:
            events(os.path.join(folder, name))
steps, epochs = table("steps.csv"), table("epochs.csv")
for worker in "0", "1":
    own = [int(row[4]) for row in steps[1:] if row[1] == worker]
    assert own == sorted(set(own)), f"steps of worker {worker} are there twice"
assert [int(row[0]) for row in epochs[1:]] == sorted({int(row[0]) for row in epochs[1:]}), (
    "epochs are there twice")
if os.path.exists(f"{run}/trace.json"):
    text = open(f"{run}/trace.json").read()
    ended = text.endswith("\n]}\n")
    json.loads(text if ended else text[:text.rindex("\n")].rstrip(",\n") + "]")
if os.path.exists(f"{run}/metrics.prom"):
    assert open(f"{run}/metrics.prom").read().endswith("\n")
if over:
    json.load(open(f"{run}/summary.json"))
PYTHON

# --- killed, and gone on with ---
for ((kill = 1; kill <= kills; kill++)); do
    rm -rf run
    # shellcheck disable=SC2086
    "$TRAINER" $small --epochs=1000000 --checkpoint-every=0.02 --trace=first:1000,every:50 --out=run \
        >out 2>err &
    child=$!
    until [ -e run/checkpoint/state.safetensors ]; do kill -0 $child && sleep 0.01 || exit 1; done
    sleep 0.$((RANDOM % 4))$((RANDOM % 10))$((RANDOM % 10))
    kill -KILL $child
    wait $child 2>/dev/null
    child=
    python3 readable.py run killed || fail "killed: $(ls run)"
    epochs=$(tail -n 1 run/epochs.csv | cut -d, -f1)
    "$TRAINER" --quiet --resume=run --epochs=$((${epochs//epoch/0} + 2)) --outputs="$chosen" >out 2>err ||
        fail "going on after kill $kill: $(cat err)"
    [ ! -s err ] || fail "going on after kill $kill: $(cat err)"
    python3 readable.py run over || fail "gone on after kill $kill: $(ls run)"
done

# --- a disk that fills while the run goes on: files beyond a limit, which the checkpoint stays below ---
# shellcheck disable=SC2086
prlimit --fsize=40000 "$TRAINER" $small --epochs=60 --checkpoint-every=0 --trace=first:10000 --out=full \
    >out 2>err || fail "a full disk: exit code $?: $(cat err)"
[ "$(grep -c '^Test-Accuracy: ' out)" -eq 1 ] || fail "a full disk: $(cat out)"
for name in csv trace; do
    [ "$(grep -c "File too large; the training goes on without $name\$" err)" -eq 1 ] ||
        fail "a full disk: not one line for $name: $(cat err)"
done
! grep -v '; the training goes on without [a-z]*$' err || fail "a full disk: more is said"
[ "$(sort err | uniq -d | wc -l)" -eq 0 ] || fail "a full disk: said twice: $(cat err)"
python3 readable.py full over || fail "a full disk: $(ls -l full)"

# --- a folder that goes away while the run goes on: the checkpoint makes it anew ---
# shellcheck disable=SC2086
$heeding "$TRAINER" $small --epochs=1000000 --checkpoint-every=0 --out=gone >out 2>err &
child=$!
until [ -e gone/epochs.csv ] && [ "$(wc -l <gone/epochs.csv)" -gt 3 ]; do
    kill -0 $child && sleep 0.02 || exit 1
done
rm -r gone
sleep 1.2
kill -0 $child 2>/dev/null || fail "the folder went, and so did the training: $(cat err)"
kill -INT $child
wait $child
code=$?
child=
[ $code -eq 130 ] || fail "interrupted without its folder: exit code $code: $(cat err)"
[ "$(grep -c '^trainer: interrupted after .*; go on with: trainer --resume=gone$' err)" -eq 1 ] ||
    fail "the folder is gone: $(cat err)"
! grep -v -e '; the training goes on without [a-z]*$' -e '^trainer: interrupted' err ||
    fail "the folder is gone: more is said"
"$TRAINER" --quiet --resume=gone --epochs=1 --outputs="$chosen" >out 2>err ||
    fail "going on in a folder that was gone: $(cat err)"

# --- a folder that cannot be written to, and a file in the way: an error before anything is learnt ---
for file in steps.csv metrics.prom trace.json; do
    case $file in metrics.prom) name=prometheus ;; trace.json) name=trace ;; *) name=csv ;; esac
    rm -rf taken && mkdir -p taken/$file/x
    # shellcheck disable=SC2086
    "$TRAINER" ${small%--outputs=*} --outputs=$name --epochs=1 --out=taken >out 2>err
    [ $? -eq 3 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "^trainer: taken/$file" err ||
        fail "$file is a folder: $(cat err)"
done

[ $failures -eq 0 ]
