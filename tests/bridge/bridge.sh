#!/bin/bash
# The bridge: one parameter server and workers as processes of their own, on this machine. That a run over it
# is the run of one process, who is refused and in which words, and that whatever is killed, interrupted or
# sends rubbish, every process ends by itself, with the exit code and the name of who is to blame.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

start_ps() { start ps "$TRAINER" --job=ps --task=0 $hosts --replace --out=run "$@"; }

start_cluster() { # workers, options for all...: a new cluster, which writes to run/
    local workers=$1 w
    shift
    new_cluster 1 "$workers"
    rm -rf run
    start_ps "$@"
    for ((w = 0; w < workers; w++)); do start_worker $w "$@"; done
}

# --- the four lines of the reference: one parameter server, three workers ---
new_cluster 1 3
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
summary_is "four" "(devices, [w['device'] for w in per_worker])" \
    "('cpu:0,cpu:0,cpu:0', ['cpu:0', 'cpu:0', 'cpu:0'])"
summary_is "four" 'rows == steps > 0 and steps == sum(w["steps"] for w in per_worker)' True
summary_is "four" 'all(w["steps"] > 0 and not w["lost"] for w in per_worker)' True
summary_is "four" 'sorted(w["name"][:8] for w in per_worker)' "['worker 0', 'worker 1', 'worker 2']"
summary_is "four" 'any("(process " in w["name"] for w in per_worker)' True # they share memory
for w in 0 1 2; do
    steps=$(look summary run "per_worker[$w]['steps']")
    lines=$(grep -c '^Step: ' w$w.out)
    [ "$lines" -eq $((steps / 5)) ] ||
        fail "four: w$w printed $lines lines for $steps steps, expected one in 5"
done
! grep '^Step: ' ps.out || fail "four: the parameter server printed steps"

# --- every strategy and variant; what has rounds has the bits of a run in one process ---
for strategy in $(for name in $(names_of strategies); do variants_of "$name"; done); do
    start_cluster 2 --quiet $small --epochs=1 --strategy="$strategy"
    ends 0 ps w0 w1
    same_results ps w0 w1
    summary_is "$strategy" '(rows, steps, examples)' '(20, 20, 320)'
    case $strategy in sync* | local-sgd*)
        "$TRAINER" --quiet $small --epochs=1 --strategy="$strategy" --devices=cpu:0,cpu:1 --threads=1 \
            --replace --out=alone >alone.out ||
            fail "$strategy in one process: exit code $?"
        same_weights "$strategy" run alone
        ;;
    esac
done

# --- other ways to name the cluster; a worker with two devices is two in the roster ---
new_cluster 1 2
rm -rf run
# Whose examples depend on the place in the roster.
short="$small --epochs=1 --strategy=sync --data-sharding=split --quiet"
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
"$TRAINER" $short --devices=cpu:0,cpu:1,cpu:2 --threads=1 --replace --out=alone >alone.out ||
    fail "three devices in one process: exit code $?"
same_weights "two devices" run alone

# --- what the training is, is said at the parameter server alone: its workers build what it has ---
first_loss() { awk -F , '$2 == 0 && $5 == 1 { print $6 }' "$1/steps.csv"; } # of worker 0
new_cluster 1 2
decayed="$small --epochs=1 --quiet --strategy=sync --decay=0.1 --clip=0.5 --shards=3 --shard-by=round-robin \
    --average=0.9 --optimizer=adam"
start_ps $decayed
for w in 0 1; do
    start worker$w "$TRAINER" --job=worker --task=$w $hosts --devices=cpu:0 --threads=1 --quiet
done
ends 0 ps worker0 worker1
same_results ps worker0 worker1
"$TRAINER" $decayed --devices=cpu:0,cpu:1 --threads=1 --replace --out=alone >alone.out ||
    fail "--decay in one process: exit code $?"
same_weights "what the workers were not told" run alone
[ "$(first_loss run)" = "$(first_loss alone)" ] ||
    fail "--decay at the parameter server: the first loss is $(first_loss run), in one process $(first_loss \
        alone)"

# --- faults: the parameter server puts them in, and says which never came; a worker says that it puts in
# none ---
start_cluster 2 --quiet $small --epochs=1 --strategy=async-lockfree
ends 0 ps w0 w1
! grep -H 'never reached' ps.err w?.err || fail "no fault was asked for"
new_cluster 1 2
start_ps $small --epochs=1 --quiet --strategy=async-lockfree --fail=worker:1@step:5000
start_worker 0 --quiet
start_worker 1 --quiet --fail=worker:1@step:3 --slow=cpu:0=2x
ends 0 ps w0 w1
says ps '^trainer: --fail=worker:1@step:5000 was never reached: that worker took [0-9]+ steps?$'
says w1 '^trainer: --slow=cpu:0=2x --fail=worker:1@step:3 does nothing at a worker: '\
'the parameter server puts faults in$'
[ "$(cat ps.err w0.err w1.err | wc -l)" -eq 2 ] || fail "faults: $(cat ps.err w0.err w1.err)"

# --- what is asked of a worker's devices is looked at there ---
if "$TRAINER" train --help=all | grep -q -- --without-kernel; then
    start_worker 0 $small --without-kernel=gpu:nosuch
    ends 2 w0
    says w0 'there is no operation nosuch'
fi

VERSION=$(sed -n 's/.*FRAME_VERSION = \([0-9]*\).*/\1/p' "$root/src/bridge/frame.h")
export VERSION
cat >peer.py <<'PYTHON'
import os, resource, socket, sys, time
from frames import frame
# A peer that is none: says what its first word names, and stays until it is thrown out.
what, port = sys.argv[1], int(sys.argv[2])

def header(bytes, type=1, version=int(os.environ["VERSION"]), payload=b""):
    return frame(bytes, type, version, payload)

def connect(): # as soon as somebody listens
    until = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 30)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)

if what == "crowd": # so many that most of them are thrown out, without a word; none of them says one
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = [connect() for i in range(min(1000, most - 20))]
    crowd[-1].settimeout(10)
    try:
        assert crowd[-1].recv(1) == b""
    except ConnectionResetError:
        pass
    print("there", flush=True)
    time.sleep(60)

with connect() as s:
    s.sendall({"http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "half": header(9)[:7],
               "huge": header(4 << 30),
               "version": header(8, version=99), "type": header(8, type=77),
               "other": header(8, 6, payload=bytes(8)),
               "hello": header(64, payload=b"\xff" * 64), "damaged": header(64) + b"\xff" * 64, "silent": b"",
               "begun": header(64) + bytes(7)}[what])
    if what == "half":
        s.shutdown(socket.SHUT_WR)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
PYTHON

# --- in any order, with guests that are silent, or half-spoken; who is missing is named ---
short="$small --epochs=1"
new_cluster 1 2
rm -rf run
start_worker 0 $short --print-every=1
sleep 0.3
start_ps $short
start peer python3 peer.py silent "$port"
start begun python3 peer.py begun "$port"
wait_until grep -q 'waiting for worker 1' w0.err
ends 0 peer begun
says ps 'refused: 127.0.0.1:[0-9]+: no byte of a hello for 5 s'
says ps 'refused: 127.0.0.1:[0-9]+: only 71 bytes of a hello in 5 s'
start_worker 1 $short
ends 0 ps w0 w1
for name in ps w0; do says $name "waiting for worker 1 \\(127.0.0.1:$((port + 2))\\)"; done
! grep -q 'waiting for worker 0' w0.err || fail "w0: was told to wait for itself"
time_of_steps=$(awk -F 'AvgTime: *' \
    '/^Step:/ { sum += $2; steps++ } END { print int(steps > 0 ? sum : 9999) }' w0.out)
[ "$time_of_steps" -lt 3000 ] ||
    fail "w0: its steps took $time_of_steps ms: waiting for the others was counted"

start_cluster 1 $short --start-timeout=0.5 # alone, it works
ends 0 ps w0
new_cluster 1 2
start_ps $short --start-timeout=1
start_worker 0 $short --start-timeout=1
ends 5 ps w0
for name in ps w0; do says $name "waiting for worker 1 \\(127.0.0.1:$((port + 2))\\)"; done
new_cluster 1 1
start_worker 0 $short --start-timeout=0.5
ends 5 w0
says w0 "the parameter server 127.0.0.1:$port: not connected"

# --- refused: the words name both values, and the run works with the right one ---
new_cluster 1 2
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
refused '--model mlp:hidden=21, .* has mlp:hidden=20' \
    --dataset=digits:take=320 --batch=16 --model=mlp:hidden=21
refused "worker 1 \\($came_from\\) has --batch 8, the parameter server has 16" \
    --dataset=digits:take=320 --batch=8 --model=mlp:hidden=20
refused '--dataset digits:take=300.* has digits:take=320' \
    --dataset=digits:take=300 --batch=16 --model=mlp:hidden=20
start again "$TRAINER" --job=worker --task=0 $hosts $short --devices=cpu:0,cpu:1 --start-timeout=1
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
new_cluster 1 2
start_ps $short
start_worker 0 $short
sleep 0.5
start again "$TRAINER" --job=worker --task=0 $hosts $short --devices=cpu:0,cpu:1 --start-timeout=1
ends 5 again # so the first one is there
signal 9 w0
wait_until grep -Eq "worker 0 \\($came_from cpu:0\\) has gone again" ps.err
finish w0
for w in 0 1; do start_worker $w $short; done
ends 0 ps w0 w1

# --- peers that are none ---
new_cluster 1 2
rm -rf run
start_ps $short
start_worker 0 $short
peer_says() { # kind, words of the parameter server
    start peer python3 peer.py "$1" "$port"
    ends 0 peer
    says ps "refused: 127.0.0.1:[0-9]+: $2"
}
peer_says http 'expected a trainer peer, found "GET / HT"'
peer_says half '.*7 of 64 bytes of a hello'
peer_says huge 'a hello of 4294967296 bytes'
peer_says version 'speaks version 99'
peer_says type 'a frame of type 77'
peer_says other 'a gradient, expected a hello'
peer_says hello 'a hello of 64 bytes'
peer_says damaged 'a hello arrived damaged: checksum [0-9a-f]{8}, expected 00000000'
start_worker 1 $short
ends 0 ps w0 w1
same_results ps w0 w1

# --- more of them than the process may have open: they are dropped, not the run ---
new_cluster 1 2
rm -rf run
# shellcheck disable=SC2016 # for the inner shell
start ps bash -c 'ulimit -n 40 && exec "$@"' ps "$TRAINER" --job=ps --task=0 $hosts --replace --out=run $short
start peer python3 peer.py crowd "$port"
wait_until test -s peer.out
for w in 0 1; do start_worker $w $short; done
ends 0 ps w0 w1
same_results ps w0 w1
signal 9 peer
finish peer

# --- what listens is no parameter server: a worker says so; one that is silent is tried until there is
# one ---
new_cluster 1 1
rm -rf run
keep_port "$port"
start_worker 0 $short
wait_until grep -qx \
    "trainer: what listens at 127.0.0.1:$port has said nothing for 5 s, expected the settings of the \
parameter server 0: is it one?" \
    w0.err
leave_port
start_ps $short
ends 0 ps w0
[ "$(grep -c 'has said nothing' w0.err)" -eq 1 ] || fail "a silent listener: $(cat w0.err)"
new_cluster 1 1
start other python3 -c 'import socket, sys
guest = socket.create_server(("127.0.0.1", int(sys.argv[1]))).accept()[0]
guest.sendall(b"SSH-2.0-another\r\n" + bytes(100))
guest.recv(1)' "$port"
start_worker 0 $short
ends 5 w0
says w0 "^trainer: the parameter server 127.0.0.1:$port: expected a trainer peer, found \"SSH-2.0-\"?"
finish other

# --- a port in use, a host that is none ---
keep_port "$port"
start_ps $short
ends 4 ps
says ps "port $port is in use"
! grep -q 'waits for' ps.err || fail "port in use: it says that it waits: $(cat ps.err)"
leave_port
hosts="--ps-hosts=no-such-host.invalid:$port --worker-hosts=127.0.0.1:$((port + 1))"
start_ps $short
ends 2 ps
says ps "host 'no-such-host.invalid' does not resolve"
start_worker 0 $short --start-timeout=1
ends 5 w0
says w0 "host 'no-such-host.invalid' does not resolve"

# --- a worker is killed in the middle ---
start_cluster 3 $endless --strategy=sync
wait_until is_training
signal 9 w1
began=$SECONDS
finish w1
ends 5 ps w0 w2
[ $((SECONDS - began)) -le $((2 * timeout + 3)) ] ||
    fail "killed worker: the others took $((SECONDS - began)) s to end"
for name in ps w0 w2; do says $name "worker 1 \\($came_from cpu:0\\)"; done

for strategy in sync async-lockfree; do
    start_cluster 3 $long --strategy=$strategy --on-loss=continue --timeout=$timeout
    wait_until is_training
    signal 9 w1
    finish w1
    [ "$code" -eq 137 ] || fail "$strategy: it was over before a worker could be killed"
    ends 0 ps w0 w2
    same_results ps w0 w2
    says ps "lost: worker 1 \\($came_from cpu:0\\).*; the others go on"
    summary_is "killed worker, $strategy" 'lost_workers, [w["lost"] for w in per_worker]' \
        '(1, [False, True, False])'
    summary_is "killed worker, $strategy" "$good" True
done

# --- a worker stands still: no word from it is a loss, too ---
start_cluster 3 $endless --strategy=sync
wait_until is_training
signal STOP w1
ends 5 ps w0 w2
signal 9 w1
finish w1
for name in ps w0 w2; do says $name "worker 1 \\($came_from cpu:0\\)"; done

# --- Ctrl-C at a worker is a loss like another ---
start_cluster 2 $long --strategy=async-lockfree --on-loss=continue --timeout=$timeout
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
examples=$(look examples run)
says ps \
    "interrupted after $examples examples; to go on, start all processes again, the leader with --resume=run"
for w in 0 1; do
    says w$w "the parameter server 127.0.0.1:$port ended: interrupted after $examples examples"
done

resume() { # options of the ps...
    start_ps --quiet --resume=run --timeout=$timeout "$@"
    for w in 0 1; do start_worker $w $small --timeout=$timeout; done
}
touch mark
is_newer() { [ run/checkpoint/state.safetensors -nt mark ]; }
resume --checkpoint-every=0.1
wait_until is_newer
signal 9 ps
finish ps
began=$SECONDS
ends 5 w0 w1
[ $((SECONDS - began)) -le 3 ] ||
    fail "killed parameter server: the workers took $((SECONDS - began)) s to end"
for w in 0 1; do says w$w "the parameter server 127.0.0.1:$port"; done
! find /dev/shm -name '*trainer*' | grep . || fail "killed parameter server: it left memory"
later=$(look examples run)
[ "$later" -gt "$examples" ] ||
    fail "killed parameter server: $later examples in its checkpoint, expected more than $examples"
passes=$((later / 320 + 2))
resume --epochs=$passes
ends 0 ps w0 w1
same_results ps w0 w1
summary_is "resumed" examples $((passes * 320))

# --- anybody, at any moment ---
kills=${KILLS:-4}
[ -z "$slow" ] || kills=${KILLS:-0}
for ((k = 0; k < kills; k++)); do
    strategy=$(shuf -n 1 -e sync async-lockfree local-sgd)
    loss=$(shuf -n 1 -e stop continue)
    victim=$(shuf -n 1 -e ps w0 w1 w2)
    moment=0.$((RANDOM % 5))$((RANDOM % 10))
    label="kill $k ($victim after $moment s, $strategy, $loss)"
    start_cluster 3 --quiet $small --epochs=400 --strategy="$strategy" --on-loss="$loss" --timeout=2 \
        --start-timeout=1 --checkpoint-every=0.02
    kill_one "$label" "$victim" $moment ps w0 w1 w2
done


# --- what is wrong with the leader's options is said before anybody is waited for ---
new_cluster 1 2
refused_with 2 '--slow: "cpu:0=1ms", expected a device and a factor.*' $hosts --job=ps --task=0 \
    --slow=cpu:0=1ms --out=wrong
refused_with 3 'nowhere.safetensors: .*' $hosts --job=ps --task=0 --weights=nowhere.safetensors --out=wrong
[ $failures -eq 0 ]
