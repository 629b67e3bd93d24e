#!/bin/bash
# Ctrl-C, SIGTERM and kill -9: the first two end a run with its checkpoint written, a second one ends it at
# once, and no kill, whenever it comes, leaves a checkpoint that cannot be read and gone on from. KILLS:
# how many kills (6). MATRIX=1: every strategy with shared data and with split data, else with one of them
# in turn.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

start() { # options...; sets $child
    $heeding "$TRAINER" "$@" >out 2>err &
    child=$!
}

wait_until() { # command...: until it is true or the run is over
    local tries=0
    until "$@" || ! kill -0 "$child" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || { fail "nothing happened in 30 s: $*"; break; }
        sleep 0.02
    done
}

finish() { # sets $code
    wait "$child" 2>/dev/null
    code=$?
    child=
}

rows() { [ "$(wc -l 2>/dev/null <"$1/steps.csv" || echo 0)" -gt "$2" ]; }
has_rows() { rows "$1" 1; }

cat >look.py <<'PYTHON'
import hashlib, json, struct, sys

def parts(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return texts, {name: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
                   for name, e in header.items() if ":" not in name}

what, folder = sys.argv[1:]
if what == "weights":
    print(hashlib.sha256(repr(sorted(parts(f"{folder}/model.safetensors")[1].items())).encode()).hexdigest())
if what == "examples":
    print(parts(f"{folder}/checkpoint/state.safetensors")[0]["examples"])
if what == "interrupted": # all that the run left says the same
    texts, saved = parts(f"{folder}/checkpoint/state.safetensors")
    summary = json.load(open(f"{folder}/summary.json"))
    assert summary["interrupted"] is True, summary
    assert summary["examples"] == int(texts["examples"]) > 0, (summary, texts)
    assert summary["updates"] == int(texts.get("updates", texts["version"])), (summary, texts)
    assert parts(f"{folder}/model.safetensors")[1] == saved, (
        "model.safetensors has not the checkpoint's weights")
    rows = open(f"{folder}/steps.csv").read().splitlines()
    assert len(rows) - 1 == summary["steps"], f"{len(rows) - 1} rows, {summary['steps']} steps"
    print(texts["examples"])
PYTHON

# --- stopped politely ---
long="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=8 --epochs=1000000 --checkpoint-every=0"

stop() { # signal, folder, options...: after the first step, or after as many as $steps
    local signal=$1 folder=$2 examples line
    shift 2
    # shellcheck disable=SC2086 # several words
    start $long --out="$folder" "$@"
    wait_until rows "$folder" "${steps:-1}"
    kill -"$signal" "$child"
    finish
    [ $code -eq 130 ] || fail "$signal, $*: exit code $code, expected 130: $(cat err)"
    examples=$(python3 look.py interrupted "$folder" 2>&1) || fail "$signal, $*: $examples"
    line="trainer: interrupted after $examples examples; go on with: trainer --resume=$folder"
    [ "$(tail -n 1 err)" = "$line" ] || fail "$signal, $*: said: $(tail -n 1 err) expected: $line"
    [[ $* != *--quiet* ]] || [ "$(wc -l <err)" -eq 1 ] ||
        fail "$signal, $*: said more than one line: $(cat err)"
    ! grep -E '^(Test-Accuracy|Total Time|Final Cost)' out ||
        fail "$signal, $*: printed results of a run that was not finished"
    "$TRAINER" evaluate --checkpoint="$folder" >out 2>err || fail "$signal, $*: its checkpoint: $(cat err)"
}

stop INT int --quiet --devices=cpu:0,cpu:1
stop TERM term --devices=cpu:0,cpu:1
stop HUP hup --devices=cpu:0,cpu:1
# A run that was broken off is not told that it learnt nothing.
steps=300 stop INT early --quiet --devices=cpu:0 --optimizer=sgd:rate=1e-9

# --- a terminal that is closed sends SIGHUP, and its shell does so again: still politely ---
# shellcheck disable=SC2086
start $long --quiet --devices=cpu:0 --out=twice
wait_until has_rows twice
kill -HUP "$child" && kill -HUP "$child"
finish
[ $code -eq 130 ] && python3 look.py interrupted twice >/dev/null 2>err ||
    fail "two SIGHUPs: exit code $code: $(cat err)"

# --- so does a wrapper, as timeout(1), which passes on what its whole group got ---
# shellcheck disable=SC2086
start $long --quiet --devices=cpu:0 --out=passed
wait_until has_rows passed
kill -INT "$child" && sleep 0.005 && kill -INT "$child"
finish
[ $code -eq 130 ] && python3 look.py interrupted passed >/dev/null 2>err ||
    fail "two SIGINTs at once: exit code $code: $(cat err)"

# --- what the parent ignored stays ignored, as under nohup ---
# shellcheck disable=SC2086
(trap '' HUP INT && exec "$TRAINER" $long --quiet --devices=cpu:0 --out=nohup >out 2>err) &
child=$!
wait_until has_rows nohup
kill -HUP "$child"
kill -INT "$child"
wait_until rows nohup $(($(wc -l <nohup/steps.csv) + 500))
kill -0 "$child" 2>/dev/null || fail "signals that the parent had ignored ended the run"
kill -TERM "$child"
finish
[ $code -eq 130 ] && python3 look.py interrupted nohup >/dev/null 2>look.err ||
    fail "nohup, then SIGTERM: exit code $code: $(cat err look.err)"

# --- a pipe that nobody reads: the training goes on, Ctrl-C ends it with its checkpoint; what it printed
# before can still be read ---
cat >blocked.py <<'PYTHON'
import os, signal, subprocess, sys, time
errors, *command = sys.argv[1:]
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT if errors == "both" else open("err", "wb"))
def rows():
    try:
        return open("blocked/steps.csv").read().count("\n")
    except FileNotFoundError:
        return 0
until = time.monotonic() + 60
while rows() < 3000 and child.poll() is None: # printed, these lines are far more than a pipe takes
    if time.monotonic() > until:
        print("after", rows(), "steps it stands still")
        break
    time.sleep(0.05)
child.send_signal(signal.SIGINT)
try:
    code = child.wait(timeout=30)
except subprocess.TimeoutExpired:
    child.kill()
    sys.exit("it waits for a reader, and Ctrl-C does not end it")
text = child.stdout.read().decode()
if (code != 130 or not text.startswith("mlp:hidden=20 (") or text.count("Step: ") < 500 or
    "logs, model and checkpoint go to blocked\n" not in text):
    sys.exit(f"exit code {code}: {text[:300]}")
PYTHON
for errors in apart both; do
    # shellcheck disable=SC2086
    rm -rf blocked
    python3 blocked.py $errors $heeding "$TRAINER" $long --devices=cpu:0 --print-every=1 --out=blocked \
        >look.out 2>&1 || fail "a pipe that nobody reads ($errors): $(cat look.out)"
    [ ! -s look.out ] || fail "a pipe that nobody reads ($errors): $(cat look.out)"
    python3 look.py interrupted blocked >/dev/null 2>err ||
        fail "a pipe that nobody reads ($errors): $(cat err)"
done
# --- nobody reads the tables of several runs: all is kept by then, and the first Ctrl-C ends the program;
#     a run that has failed ends ---
cat >stuck.py <<'PYTHON'
import os, signal, subprocess, sys, time
kept, expected, *command = sys.argv[1:]
reader, writer = os.pipe()
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(writer, True)
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE)
def stands(): # asleep, and without work for a second
    fields = [open(f"/proc/{child.pid}/stat").read().rsplit(")", 1)[1].split()[i] for i in (0, 11, 12)]
    time.sleep(1)
    return fields[0] == "S" and \
        fields == [open(f"/proc/{child.pid}/stat").read().rsplit(")", 1)[1].split()[i] for i in (0, 11, 12)]
until = time.monotonic() + 120
while kept != "-" and child.poll() is None and not (os.path.exists(kept) and stands()):
    if time.monotonic() > until:
        sys.exit(f"{kept} is not there, or its program does not stand still")
if kept != "-":
    child.send_signal(signal.SIGINT)
try:
    said = child.communicate(timeout=60)[1].decode()
except subprocess.TimeoutExpired:
    child.kill()
    sys.exit("it waits for a reader")
if child.returncode != int(expected):
    sys.exit(f"exit code {child.returncode}, expected {expected}: {said}")
PYTHON
tables="--dataset=digits:take=64 --model=softmax --devices=cpu:0 --epochs=1"
stuck() { # the file that is kept by then, exit code, command...
    python3 stuck.py "$1" "$2" $heeding "$TRAINER" "${@:3}" >look.out 2>&1 ||
        fail "nobody reads ${*:3}: $(cat look.out)"
}
# The thread sanitizer keeps a signal back while the C library writes.
# shellcheck disable=SC2086
grep -q -e -fsanitize=thread "$BUILD/flags" || {
    stuck compared/bench.csv 130 bench $tables --strategies=sync --repeats=1 --out=compared
    stuck swept/sweep.csv 130 sweep $tables --vary=batch=8,16 --out=swept
    stuck several/ensemble.csv 130 ensemble $tables --members=2 --out=several
    stuck - 4 $tables --epochs=1000 --print-every=1 --fail=worker:0@step:1500 --out=failed
}
variants=$("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
shardings=(shared split)
for strategy in $variants async-lockfree:apply=worker; do
    shardings=("${shardings[1]}" "${shardings[0]}")
    for sharding in "${shardings[0]}" ${MATRIX:+"${shardings[1]}"}; do
        stop INT "int-$strategy-$sharding" --quiet --devices=cpu:0,cpu:1,cpu:2 --strategy="$strategy" \
            --data-sharding=$sharding
    done
done

# --- a folder is one run's at a time ---
# shellcheck disable=SC2086
start $long --quiet --devices=cpu:0 --out=held
wait_until has_rows held
"$TRAINER" --quiet --epochs=1 --out=held >other.out 2>other.err
[ $? -eq 3 ] && [ "$(cat other.err)" = \
    "trainer: held: another run writes there, expected a folder of its own" ] ||
    fail "two runs in one folder: $(cat other.err)"
kill -INT "$child"
finish
python3 look.py interrupted held >look.out 2>&1 || fail "two runs in one folder: $(cat look.out)"
"$TRAINER" --quiet --resume=held --epochs=1 >out 2>err || fail "a folder that was held: $(cat err)"

# --- a second Ctrl-C: a step that takes seconds is not waited for ---
start --devices=cpu:0 --threads=1 --kernels=reference --model=mlp:hidden=3000-3000 --dataset=digits \
    --batch=1437 --epochs=1000 --out=second
wait_until grep -q 'go to second' out
sleep 0.5
kill -INT "$child"
sleep 1 # two within 0.2 s are one
kill -0 "$child" 2>/dev/null || fail "the first Ctrl-C ended a step in hand"
before=$EPOCHREALTIME
kill -INT "$child"
finish
took=$(((${EPOCHREALTIME/[.,]/} - ${before/[.,]/}) / 1000))
[ $code -eq 130 ] || fail "second Ctrl-C: exit code $code, expected 130"
[ $took -lt 3000 ] || fail "second Ctrl-C: took $took ms"
[ ! -e second/model.safetensors ] || fail "second Ctrl-C: it ended the step and wrote the model first"

# --- killed: what is on the disk is always a whole checkpoint, and no older than the last one ---
# As many epochs as take about two seconds here. Checkpoints of megabytes, so that many a kill falls into the
# writing of one.
size="--dataset=digits:take=320 --model=mlp:hidden=4000 --batch=16 --optimizer=adam"
grep -qa __tsan_init "$TRAINER" &&
    size="--dataset=digits:take=320 --model=mlp:hidden=50 --batch=4 --optimizer=adam"
same="--devices=cpu:0,cpu:1 --threads=1 --strategy=sync"
# shellcheck disable=SC2086
start --quiet $size $same --epochs=10 --out=measure
finish
epochs=$(python3 -c \
    'import json; print(max(20, min(500, round(20 / max(
        0.02, json.load(open("measure/summary.json"))["train_seconds"])))))')
# shellcheck disable=SC2086
start --quiet $size $same --epochs="$epochs" --out=alone
finish
[ $code -eq 0 ] || fail "the run left alone: exit code $code: $(cat err)"

is_newer() { [ killed/checkpoint/state.safetensors -nt mark ]; }
kills=0 last=0 most=${KILLS:-6}
touch mark
# shellcheck disable=SC2086
start --quiet $size $same --epochs="$epochs" --out=killed --checkpoint-every=0.01
while [ $kills -lt "$most" ]; do
    wait_until is_newer
    [ $((kills % 2)) -eq 0 ] || sleep "0.0$((RANDOM % 10))"
    kill -9 "$child" 2>/dev/null
    finish
    [ $code -eq 137 ] || break
    kills=$((kills + 1))
    "$TRAINER" evaluate --checkpoint=killed >out 2>err || fail "kill $kills: the checkpoint: $(cat err)"
    examples=$(python3 look.py examples killed)
    [ "$examples" -ge "$last" ] ||
        fail "kill $kills: $examples examples, expected no less than the $last of the checkpoint before"
    last=$examples
    touch mark
    # shellcheck disable=SC2086
    start --quiet --resume=killed $same --checkpoint-every=0.01
done
[ -z "$child" ] || finish
[ $code -eq 0 ] || fail "after $kills kills: exit code $code: $(cat err)"
[ $kills -ge 5 ] || [ $kills -ge "$most" ] || fail "only $kills kills: this proves little"
[ "$(python3 look.py weights killed)" = "$(python3 look.py weights alone)" ] ||
    fail "after $kills kills: not the weights of the run left alone"

[ $failures -eq 0 ]
