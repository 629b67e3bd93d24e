#!/bin/bash
# The bridge: one parameter server and workers as processes of their own, on this machine. That a run over it is the run of one
# process, who is refused and in which words, and that whatever is killed, interrupted or sends rubbish, every process ends by
# itself, with the exit code and the name of who is to blame.
#
# Each process runs in $scratch under a time limit: a wait that nobody ends shows as "hangs", never as a test that hangs.
# shellcheck disable=SC2086 # options are several words
set -u
: "${TRAINER:?expected the path of the program}"
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
scratch=$(mktemp -d) || exit 1
declare -A started=() # name -> its shell
kill_all() {
    local name
    for name in "${!started[@]}"; do kill -9 "$(pid_of "$name")" "${started[$name]}" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$scratch"
}
trap kill_all EXIT
trap 'exit 1' INT TERM
unset TRAINER_DATA TF_CONFIG
export HOME=$scratch
cd "$scratch" || exit 1
failures=0
if grep -Eqa '__[at]san_init' "$TRAINER"; then slow=1 limit=120 patience=10; else slow='' limit=40 patience=2; fi
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16"
# A run of a second or so, in which a worker can be lost, and what the others are to make of it.
long="--dataset=digits --epochs=120" good='test_accuracy > 0.85'
[ -z "$slow" ] || long="$small --epochs=60" good=True
endless="$small --epochs=1000000 --timeout=$patience"

fail() {
    echo "$*"
    failures=$((failures + 1))
}

# --- processes ---

pid_of() { cat "$1.pid" 2>/dev/null; } # of the program itself

start() { # name, command...: the name is also that of its .out and .err
    local name=$1
    shift
    rm -f "$name.pid"
    ( # which says by itself that it was killed, and ends with that code
        # shellcheck disable=SC2016 # for the inner shell
        timeout -k 5 $limit bash -c 'echo $$ >"$0.pid.new" && mv "$0.pid.new" "$0.pid" && exec "$@"' "$name" "$@"
        exit $?
    ) >"$name.out" 2>"$name.err" </dev/null &
    started[$name]=$!
}

finish() { # name; sets $code
    wait "${started[$1]}"
    code=$?
    unset "started[$1]"
    [ $code -ne 124 ] || fail "$1: hangs; it said: $(tail -n 3 "$1.err")"
}

ends() { # code, names...
    local expected=$1 name
    shift
    for name; do
        finish "$name"
        [ "$code" -eq "$expected" ] || fail "$name: exit code $code, expected $expected: $(tail -n 5 "$name.err")"
    done
}

says() { # name, pattern
    grep -Eq -- "$2" "$1.err" || fail "$1: did not say \"$2\" but: $(tail -n 5 "$1.err")"
}

signal() { # which, name
    local tries=0
    until [ -s "$2.pid" ] || [ $tries -ge 500 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    kill "-$1" "$(pid_of "$2")" 2>/dev/null
}

wait_until() { # command...
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt $((limit * 50)) ] || { fail "nothing happened in $limit s: $*"; break; }
        sleep 0.02
    done
}

# --- clusters ---

# A port that nobody has and that the kernel gives to nobody who connects.
free_port() {
    python3 - <<'PYTHON'
import random, socket
while True:
    port = random.randrange(15000, 30000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            print(port)
            break
        except OSError:
            pass
PYTHON
}

# Only the parameter server listens; of a worker its address is the name.
new_cluster() { # workers; sets $port and $hosts
    local workers='' w
    port=$(free_port)
    for ((w = 0; w < $1; w++)); do workers+=${workers:+,}127.0.0.1:$((port + 1 + w)); done
    hosts="--ps-hosts=127.0.0.1:$port --worker-hosts=$workers"
}

start_ps() { start ps "$TRAINER" --job=ps --task=0 $hosts --out=run "$@"; }

start_worker() { # task, options...
    local task=$1
    shift
    start "w$task" "$TRAINER" --job=worker --task="$task" $hosts --devices=cpu:0 --threads=1 --print-every=0 "$@"
}

start_cluster() { # workers, options for all...: a new cluster, which writes to run/
    local workers=$1 w
    shift
    new_cluster "$workers"
    rm -rf run
    start_ps "$@"
    for ((w = 0; w < workers; w++)); do start_worker $w "$@"; done
}

is_training() { [ -s run/steps.csv ] && [ "$(wc -l <run/steps.csv)" -gt 1 ]; }

cat >look.py <<'PYTHON'
import csv, json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__", {})
    return texts, {name: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
                   for name, e in header.items()}

what, folder, *rest = sys.argv[1:]
if what == "summary": # what an expression of its members is
    s = json.load(open(f"{folder}/summary.json"))
    s["rows"] = len(list(csv.reader(open(f"{folder}/steps.csv")))) - 1
    print(eval(rest[0], s))
if what == "same" and tensors(f"{folder}/model.safetensors")[1] != tensors(f"{rest[0]}/model.safetensors")[1]:
    sys.exit(f"{folder} and {rest[0]} have different weights")
if what == "examples":
    print(tensors(f"{folder}/checkpoint/state.safetensors")[0]["examples"])
PYTHON

summary_is() { # what is tested, expression, expected
    local found
    found=$(python3 look.py summary run "$2" 2>&1)
    [ "$found" = "$3" ] || fail "$1: in summary.json $2 is $found, expected $3"
}

results_of() { grep -E '^(Test-Accuracy|Total Time|Final Cost): ' "$1.out"; }

same_results() { # names...: all print the three lines, with the same figures
    local name
    for name; do
        [ "$(results_of "$name" | wc -l)" -eq 3 ] || fail "$name: expected three lines of results, found: $(tail -n 4 "$name.out")"
        [ "$(results_of "$name")" = "$(results_of "$1")" ] || fail "$name: results differ from those of $1: $(results_of "$name")"
    done
}

names_of() { "$TRAINER" list "$1" | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'; }

# A strategy by itself, and with each value of each of its settings that has a list of values.
variants_of() {
    echo "$1"
    "$TRAINER" list "strategy/$1" | sed -n 's/^  \([a-z_-]*=[a-z0-9-]*|[a-z0-9|-]*\)\( .*\)*$/\1/p' | while IFS= read -r row; do
        tr '|' '\n' <<<"${row#*=}" | sed "s/^/$1:${row%%=*}=/"
    done
}

# --- the four lines of the reference: one parameter server, three workers ---
new_cluster 3
four="${hosts/ps-hosts/ps_hosts} --epochs=2"
four=${four/worker-hosts/worker_hosts}
[ -z "$slow" ] || four+=" --dataset=digits:take=320"
start ps "$TRAINER" --job_name="ps" --task_index=0 $four --out=run
for w in 0 1 2; do
    start w$w "$TRAINER" --job_name="worker" --task_index=$w $four --devices=cpu:0 --threads=1 --print-every=5
done
ends 0 ps w0 w1 w2
same_results ps w0 w1 w2
summary_is "four" 'len(per_worker), workers, lost_workers' '(3, 3, 0)'
summary_is "four" 'rows == steps > 0 and steps == sum(w["steps"] for w in per_worker)' True
summary_is "four" 'all(w["steps"] > 0 and not w["lost"] for w in per_worker)' True
summary_is "four" 'sorted(w["name"][:8] for w in per_worker)' "['worker 0', 'worker 1', 'worker 2']"
for w in 0 1 2; do
    steps=$(python3 look.py summary run "per_worker[$w]['steps']")
    lines=$(grep -c '^Step: ' w$w.out)
    [ "$lines" -eq $((steps / 5)) ] || fail "four: w$w printed $lines lines for $steps steps, expected one in 5"
done
! grep '^Step: ' ps.out || fail "four: the parameter server printed steps"

# --- every strategy and variant; what has rounds has the bits of a run in one process ---
for strategy in $(for name in $(names_of strategies); do variants_of "$name"; done); do
    start_cluster 2 --quiet $small --epochs=1 --strategy="$strategy"
    ends 0 ps w0 w1
    same_results ps w0 w1
    summary_is "$strategy" '(rows, steps, examples)' '(20, 20, 320)'
    case $strategy in sync* | local-sgd*)
        "$TRAINER" --quiet $small --epochs=1 --strategy="$strategy" --devices=cpu:0,cpu:1 --threads=1 --out=alone >alone.out ||
            fail "$strategy in one process: exit code $?"
        python3 look.py same run alone 2>err || fail "$strategy: $(cat err)"
        ;;
    esac
done

# --- other ways to name the cluster; a worker with two devices is two in the roster ---
new_cluster 2
rm -rf run
short="$small --epochs=1 --strategy=sync --data-sharding=split --quiet" # whose examples depend on the place in the roster
cat >cluster.json <<JSON
{"ps": ["127.0.0.1:$port"], "chief": ["127.0.0.1:$((port + 1))"], "worker": ["127.0.0.1:$((port + 2))"]}
JSON
start ps "$TRAINER" $short --cluster=cluster.json --job=ps --task=0 --out=run
start w0 "$TRAINER" $short --cluster=cluster.json --job=chief --task=0 --devices=cpu:0,cpu:1 --threads=1
TF_CONFIG="{\"cluster\": $(cat cluster.json), \"task\": {\"type\": \"worker\", \"index\": 0}}" \
    start w1 "$TRAINER" $short --devices=cpu:0 --threads=1
ends 0 ps w0 w1
same_results ps w0 w1
summary_is "two devices" 'len(per_worker), rows == steps == 21' '(3, True)'
summary_is "two devices" '[w["name"][:8] for w in per_worker]' "['worker 0', 'worker 0', 'worker 1']"
"$TRAINER" $short --devices=cpu:0,cpu:1,cpu:2 --threads=1 --out=alone >alone.out || fail "three devices in one process: exit code $?"
python3 look.py same run alone 2>err || fail "two devices: $(cat err)"

cat >peer.py <<'PYTHON'
import socket, struct, sys, time
# A peer that is none: says what its first word names, and stays until it is thrown out.
what, port = sys.argv[1], int(sys.argv[2])

def connect(): # as soon as somebody listens
    until = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 30)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)

with connect() as s:
    header = lambda bytes, type=1, version=1: struct.pack("<4sHHIQ", b"TRNR", version, type, 0, bytes)
    s.sendall({"http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "half": header(9)[:7], "huge": header(4 << 30),
               "version": header(8, version=99), "type": header(8, type=77), "other": header(8, type=6) + bytes(8),
               "hello": header(64) + b"\xff" * 64, "silent": b""}[what])
    if what == "half":
        s.shutdown(socket.SHUT_WR)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
PYTHON

# --- in any order, with a silent guest; who is missing is named ---
short="$small --epochs=1"
new_cluster 2
rm -rf run
start_worker 0 $short --print-every=1
sleep 0.3
start_ps $short
start peer python3 peer.py silent "$port"
wait_until grep -q 'waiting for worker 1' w0.err
ends 0 peer
says ps 'refused: 127.0.0.1:[0-9]+: no byte of a hello for 5 s'
start_worker 1 $short
ends 0 ps w0 w1
for name in ps w0; do says $name "waiting for worker 1 \\(127.0.0.1:$((port + 2))\\)"; done
! grep -q 'waiting for worker 0' w0.err || fail "w0: was told to wait for itself"
time_of_steps=$(awk -F 'AvgTime: *' '/^Step:/ { sum += $2; steps++ } END { print int(steps > 0 ? sum : 9999) }' w0.out)
[ "$time_of_steps" -lt 3000 ] || fail "w0: its steps took $time_of_steps ms: waiting for the others was counted"

start_cluster 1 $short --start-timeout=0.5 # alone, it works
ends 0 ps w0
new_cluster 2
start_ps $short --start-timeout=1
start_worker 0 $short --start-timeout=1
ends 5 ps w0
for name in ps w0; do says $name "waiting for worker 1 \\(127.0.0.1:$((port + 2))\\)"; done
new_cluster 1
start_worker 0 $short --start-timeout=0.5
ends 5 w0
says w0 "the parameter server 127.0.0.1:$port: not connected"

# --- refused: the words name both values, and the run works with the right one ---
new_cluster 2
rm -rf run
start_ps $short
start_worker 0 $short
refused() { # pattern, options of a worker 1 that is another...
    local pattern=$1
    shift
    start_worker 1 "$@"
    ends 5 w1
    says w1 "$pattern"
    says ps "refused: .*$pattern"
}
refused '--model mlp:hidden=21, .* has mlp:hidden=20' --dataset=digits:take=320 --batch=16 --model=mlp:hidden=21
refused '--batch 8, .* has 16' --dataset=digits:take=320 --batch=8 --model=mlp:hidden=20
refused '--dataset digits:take=300.* has digits:take=320' --dataset=digits:take=300 --batch=16 --model=mlp:hidden=20
start again "$TRAINER" --job=worker --task=0 $hosts $short --devices=cpu:0,cpu:1
ends 5 again
says again 'worker 0, which has come already'
right=$hosts
hosts+=,127.0.0.1:$((port + 3))
start_worker 2 $short
ends 5 w2
says w2 'worker 2, .* workers 0 to 1'
hosts=$right
start_worker 2 $short
ends 2 w2
says w2 '--task=2'
kill -0 "$(pid_of ps)" 2>/dev/null || fail "the parameter server did not go on waiting"
start_worker 1 $short
ends 0 ps w0 w1
same_results ps w0 w1

# --- killed while it waits, and started again ---
new_cluster 2
start_ps $short
start_worker 0 $short
sleep 0.5
start again "$TRAINER" --job=worker --task=0 $hosts $short --devices=cpu:0,cpu:1
ends 5 again # so the first one is there
signal 9 w0
wait_until grep -Eq 'worker 0 \(127.0.0.1:[0-9]+ cpu:0\) has gone again' ps.err
finish w0
for w in 0 1; do start_worker $w $short; done
ends 0 ps w0 w1

# --- peers that are none ---
new_cluster 2
rm -rf run
start_ps $short
start_worker 0 $short
peer_says() { # kind, words of the parameter server
    start peer python3 peer.py "$1" "$port"
    ends 0 peer
    says ps "refused: 127.0.0.1:[0-9]+: $2"
}
peer_says http 'expected a trainer peer, found "GET / HT"'
peer_says half '.*7 of 20 bytes of a hello'
peer_says huge 'a hello of 4294967296 bytes'
peer_says version 'speaks version 99'
peer_says type 'a frame of type 77'
peer_says other 'a gradient, expected a hello'
peer_says hello 'a hello of 64 bytes'
start_worker 1 $short
ends 0 ps w0 w1
same_results ps w0 w1

# --- a port in use, a host that is none ---
start keep python3 -c 'import socket, sys, time; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("up", flush=True); time.sleep(60)' "$port"
wait_until test -s keep.out
start_ps $short
ends 4 ps
says ps "port $port is in use"
signal 9 keep
finish keep
hosts="--ps-hosts=no-such-host.invalid:$port --worker-hosts=127.0.0.1:$((port + 1))"
start_ps $short
ends 2 ps
says ps "host 'no-such-host.invalid' does not resolve"
start_worker 0 $short --start-timeout=1
ends 2 w0
says w0 "host 'no-such-host.invalid' does not resolve"

# --- a worker is killed in the middle ---
start_cluster 3 $endless --strategy=sync
wait_until is_training
signal 9 w1
began=$SECONDS
finish w1
ends 5 ps w0 w2
[ $((SECONDS - began)) -le $((2 * patience + 3)) ] || fail "killed worker: the others took $((SECONDS - began)) s to end"
for name in ps w0 w2; do says $name 'worker 1 \(127.0.0.1:[0-9]+ cpu:0\)'; done

for strategy in sync async-lockfree; do
    start_cluster 3 $long --strategy=$strategy --on-loss=continue --timeout=$patience
    wait_until is_training
    signal 9 w1
    finish w1
    [ "$code" -eq 137 ] || fail "$strategy: it was over before a worker could be killed"
    ends 0 ps w0 w2
    same_results ps w0 w2
    says ps 'lost: worker 1 \(127.0.0.1:[0-9]+ cpu:0\).*; the others go on'
    summary_is "killed worker, $strategy" 'lost_workers, [w["lost"] for w in per_worker]' '(1, [False, True, False])'
    summary_is "killed worker, $strategy" "$good" True
done

# --- a worker stands still: no word from it is a loss, too ---
start_cluster 3 $endless --strategy=sync
wait_until is_training
signal STOP w1
ends 5 ps w0 w2
signal 9 w1
finish w1
for name in ps w0 w2; do says $name 'worker 1 \(127.0.0.1:[0-9]+ cpu:0\)'; done

# --- Ctrl-C at a worker is a loss like another ---
start_cluster 2 $long --strategy=async-lockfree --on-loss=continue --timeout=$patience
wait_until is_training
signal INT w0
ends 130 w0
ends 0 ps w1
says ps 'lost: worker 0 '
summary_is "Ctrl-C at a worker" "lost_workers, $good" '(1, True)'

# --- Ctrl-C at the parameter server, then kill -9 of it, then it goes on from the checkpoint ---
start_cluster 2 $endless --strategy=sync --checkpoint-every=0.1
wait_until is_training
signal INT ps
ends 130 ps
ends 5 w0 w1
examples=$(python3 look.py examples run)
says ps "interrupted after $examples examples; go on with: trainer --resume=run"
for w in 0 1; do says w$w "the parameter server 127.0.0.1:$port ended: interrupted after $examples examples"; done

resume() { # options of the ps...
    start_ps --quiet --resume=run --timeout=$patience "$@"
    for w in 0 1; do start_worker $w $small --timeout=$patience; done
}
touch mark
is_newer() { [ run/checkpoint/state.safetensors -nt mark ]; }
resume --checkpoint-every=0.1
wait_until is_newer
signal 9 ps
finish ps
began=$SECONDS
ends 5 w0 w1
[ $((SECONDS - began)) -le 3 ] || fail "killed parameter server: the workers took $((SECONDS - began)) s to end"
for w in 0 1; do says w$w "the parameter server 127.0.0.1:$port"; done
later=$(python3 look.py examples run)
[ "$later" -gt "$examples" ] || fail "killed parameter server: $later examples in its checkpoint, expected more than $examples"
passes=$((later / 320 + 2))
resume --epochs=$passes
ends 0 ps w0 w1
same_results ps w0 w1
summary_is "resumed" examples $((passes * 320))

# --- anybody, at any moment ---
kills=0
[ -n "$slow" ] || kills=20
for ((k = 0; k < kills; k++)); do
    strategy=$(shuf -n 1 -e sync async-lockfree local-sgd)
    loss=$(shuf -n 1 -e stop continue)
    victim=$(shuf -n 1 -e ps w0 w1 w2)
    moment=0.$((RANDOM % 5))$((RANDOM % 10))
    label="kill $k ($victim after $moment s, $strategy, $loss)"
    start_cluster 3 --quiet $small --epochs=400 --strategy="$strategy" --on-loss="$loss" --timeout=2 --start-timeout=1 --checkpoint-every=0.02
    sleep $moment
    signal 9 "$victim"
    for name in ps w0 w1 w2; do
        finish $name
        case $code in 0 | 5 | 137) ;; *) fail "$label: $name: exit code $code: $(cat $name.err)" ;; esac
        [ "$code" -ne 137 ] || [ $name = "$victim" ] || fail "$label: $name was killed, too"
        ! kill -0 "$(pid_of $name)" 2>/dev/null || fail "$label: $name is still there"
    done
    [ ! -e run/checkpoint/state.safetensors ] || "$TRAINER" evaluate --checkpoint=run >out 2>err || fail "$label: its checkpoint: $(cat err)"
done

[ $failures -eq 0 ]
