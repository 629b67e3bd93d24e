#!/bin/bash
# --hosts: processes started over ssh, which a script plays that runs the command here. Their lines have the
# host in front, the key goes by standard input and stands on no command line, one failure ends all with its
# exit code unless the run goes on without that process, and nobody is left behind: neither after Ctrl-C nor
# when the one that has started them is killed.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
common="$small --threads=1 --devices=cpu:0"
cat >ssh.sh <<'SSH'
#!/bin/sh
# ssh HOST COMMAND, here; says what it was given.
echo "$*" >>"$SSH_LOG"
[ "$1" != "unreachable" ] || { echo "ssh: connect to host $1: no route" >&2; exit 255; }
exec sh -c "$2"
SSH
chmod +x ssh.sh
export SSH_LOG=$scratch/ssh.log TRAINER_SSH=$scratch/ssh.sh
all_are_gone() { # label, folder: of whose runs nobody is left
    local tries=0
    while [ -n "$(processes_with "--out=$2( |\$)")" ]; do
        tries=$((tries + 1))
        [ $tries -lt $((limit * 10)) ] ||
            { fail "$1: left behind: $(processes_with "--out=$2( |\$)")"; return; }
        sleep 0.1
    done
}
first_port() { echo --port="$(free_ports 4)"; }

# --- the same weights as of typed addresses ---
new_cluster 1 2
start ps "$TRAINER" $common $hosts --epochs=2 --job=ps --task=0 --out=typed
start_worker 0
start_worker 1
ends 0 ps w0 w1
run 0 $common --epochs=2 --hosts=127.0.0.1,localhost:2 --ps=1 $(first_port) --out="over 'ssh'"
mv "over 'ssh'" over # as a word of a shell
same_weights "over ssh" typed over
grep -q '^127.0.0.1: trainer: the parameter server 127.0.0.1:[0-9]* waits for 2 workers, started by --hosts$' err ||
    fail "no line of the ps: $(cat err)"
grep -q '^localhost\[1\]: trainer: worker 1 of 2, started by --hosts, with 1 device' err ||
    fail "no line of a worker: $(cat err)"
grep -q '^127.0.0.1: Test-Accuracy: ' out && grep -q '^localhost\[0\]: Test-Accuracy: ' out ||
    fail "results: $(cat out)"
[ "$(cut -d' ' -f1 ssh.log | sort | tr '\n' ' ')" = '127.0.0.1 localhost localhost ' ] ||
    fail "started: $(cat ssh.log)"
run 0 $common --epochs=1 --hosts=127.0.0.1 --out=one
grep -q ', by ' err && fail "one process is no cluster: $(cat err)"

# --- without ssh on this machine; the key by standard input ---
"$TRAINER" keygen key >/dev/null || exit 1
: >ssh.log
if "$TRAINER" $common --epochs=1 --worker-hosts="127.0.0.1:$(free_ports 1)" \
    --job=worker --task=0 --secret-file=key --start-timeout=0.1 2>&1 | grep -q 'cannot encrypt'; then
    tls=''
else
    tls=1
    TRAINER_SSH='' run 0 $common --epochs=1 --hosts=localhost:2 --ps=1 $(first_port) --secret-file=key \
        --out=here
    grep -q 'all that they send is encrypted' err && [ ! -s ssh.log ] ||
        fail "without ssh: $(cat err ssh.log)"
    run 0 $common --epochs=1 --hosts=localhost:2 --ps=1 $(first_port) --secret-file=key --out=keyed
    grep -q 'all that they send is encrypted' err || fail "with a key: $(cat err)"
    TRAINER_SECRET=$(cat key) run 0 $common --epochs=1 --hosts=localhost:2 --ps=1 $(first_port) --out=variable
    grep -q 'all that they send is encrypted' err || fail "with a key in the environment: $(cat err)"
    ! grep -qi "$(tr -d '\n' <key)" ssh.log || fail "the key stands on a command line"
    # by hand
    port=$(first_port) port=${port#*=}
    start ps env TRAINER_SECRET=- RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        bash -c '"$@" <key' _ "$TRAINER" $common --epochs=1 --ps=1 --out=hand
    start w0 env TRAINER_SECRET="$(cat key)" RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$TRAINER" $common --epochs=1 --ps=1
    ends 0 ps w0
    # Machines that others can reach have a key of their own in each run, which nobody has typed.
    address=$(python3 -c \
        'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); '\
's.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' \
        2>/dev/null)
    if [ -n "$address" ] && [ "$address" != 127.0.0.1 ]; then
        run 0 $common --epochs=1 --hosts="$address:2" --ps=1 $(first_port) --out=drawn
        grep -q 'all that they send is encrypted' err || fail "at $address: $(cat err)"
    fi
fi

# --- who fails ---
# A reader that goes away ends nothing, and is no error.
"$TRAINER" $common --epochs=20 --hosts=localhost:2 --ps=1 $(first_port) --print-every=1 --out=gone 2>err |
    head -n 1 >out
found=("${PIPESTATUS[@]}")
if [ "${found[0]}" -ne 0 ] || [ ! -e gone/summary.json ]; then
    fail "--hosts, whose reader goes away: exit code ${found[0]}: $(cat err)"
fi
# A terminal gets lines that fit it.
cat >narrow.py <<'PYTHON'
import re, sys
from terminal import on_terminal
code, shown = on_terminal(72, sys.argv[1:])
lines = shown.decode().splitlines()
wide = [line for line in lines if len(line) > 72]
if code != 0 or wide or not any(line.startswith("localhost[1]: trainer: worker ") for line in lines):
    sys.exit(f"exit code {code}, lines of more than 72 columns: {wide}, of: {lines}")
# What a process has divided by itself fits: it knows how much is left for it.
first = [line.startswith("localhost[0]: mlp:") for line in lines].index(True)
if not (lines[first + 1] + ":").startswith("localhost["):
    sys.exit(f"divided twice: {lines[first:first + 3]}")
# What has no room is left out of the lines of steps and epochs: each is one line.
rows = [line for line in lines if "Step: " in line or ": Epoch " in line]
if len(rows) < 3 or not all(re.search(r"(Cost: \d+\.\d{4}|\d %|\d m?s)$", row) for row in rows):
    sys.exit(f"not one line each: {rows} of {lines}")
PYTHON
python3 narrow.py "$TRAINER" $common --epochs=1 --hosts=localhost:2 --ps=1 $(first_port) --out=narrow \
    --print-every=5 \
    >look.out 2>&1 || fail "--hosts on a terminal: $(cat look.out)"
# The process that fails by itself says how the run ended, whoever ends first; nobody went on without it.
for n in 1 2 3; do
    run 4 $common --epochs=1000000 --hosts=localhost:2 $(first_port) --fail=worker:1@step:50 --out=failed$n
    ! grep 'went on without' err || fail "a run that ended by a worker: $(cat err)"
done
run 2 $common --hosts=localhost:2 --ps=1 --dataset=nothing --out=wrong
grep -Eq '^trainer: localhost\[[01]\]: process [01] ended with exit code 2$' err ||
    fail "a wrong option: $(cat err)"
run 255 $common --epochs=1000000 --hosts=localhost,unreachable --ps=1 $(first_port) --out=far
grep -qx 'trainer: unreachable: process 1 was not started, or its connection broke (ssh: 255)' err ||
    fail "unreachable: $(cat err)"
all_are_gone unreachable far
refused 2 '\-\-hosts: "a:0": found "0" processes, expected 1 to 1024' --hosts=a:0
refused 2 '\-\-ps=2: --hosts has places for 2 processes, expected one more at least' --hosts=a,b --ps=2
refused 4 'not started: No such file or directory' --hosts=localhost:2 --ssh=/nothing/here

limit=30
endless_run() { # folder, options...
    start all "$TRAINER" $common --epochs=1000000 --hosts=localhost:3 --ps=1 $(first_port) --out="$1" "${@:2}"
    wait_until bash -c '[ -s "$0" ] && [ "$(wc -l <"$0")" -gt 50 ]' "$1/steps.csv" # of all
}
endless_run killed --strategy=sync
kill -9 "$(processes_with 'TRAINER_RANK=2|--out=killed' | tail -n 1)" # the last one that was started
finish all
[ $code -eq 137 ] || [ $code -eq 5 ] || fail "one was killed: exit code $code: $(tail -n 5 all.err)"
all_are_gone "one was killed" killed

# A worker that the strategy can be without ends nothing, and is no failure.
start all "$TRAINER" $common --epochs=${slow:+200}${slow:-1000} --hosts=localhost:3 --ps=1 $(first_port) \
    --out=lost --strategy=async-apply
wait_until bash -c '[ -s lost/steps.csv ] && [ "$(wc -l <lost/steps.csv)" -gt 50 ]'
kill -9 "$(processes_with 'TRAINER_RANK=2|--out=lost' | tail -n 1)"
ends 0 all
says all '^trainer: localhost\[2\]: process 2 was ended by signal 9; the others go on if the leader does$'
says all '^localhost\[0\]: trainer: lost: worker 1 .*; the others go on'
! grep -Eq 'left:|interrupted' all.err || fail "one was lost, and others ended: $(cat all.err)"

endless_run interrupted
signal INT all
ends 130 all
grep -q '^localhost\[0\]: trainer: interrupted after [0-9]* examples' all.err ||
    fail "Ctrl-C: $(tail -n 5 all.err)"
all_are_gone Ctrl-C interrupted
[ -e interrupted/checkpoint/state.safetensors ] || fail "Ctrl-C: no checkpoint"

# The workers would have left a run whose leader hears of it a second later.
cat >late_ssh <<'SH'
#!/bin/sh
case $2 in
*TRAINER_RANK=0*) (cat; sleep 1) | sh -c "$2" ;;
*) exec sh -c "$2" ;;
esac
SH
chmod +x late_ssh
endless_run late --ssh=./late_ssh
signal INT all
ends 130 all
grep -q '^localhost\[0\]: trainer: interrupted after [0-9]* examples' all.err ||
    fail "Ctrl-C, a late leader: $(tail -n 5 all.err)"
all_are_gone "Ctrl-C, a late leader" late

# The leader's machine is reached later than the user's patience lasts.
cat >slow_ssh <<'SH'
#!/bin/sh
case $2 in *TRAINER_RANK=0*) sleep 0.3 ;; esac
exec sh -c "$2"
SH
chmod +x slow_ssh
for i in 1 2 3 4 5 6; do # it begins when its input has ended: which of the two is first differs
    start all "$TRAINER" $common --epochs=1000000 --hosts=localhost:3 --ps=1 $(first_port) --out=slow$i \
        --ssh=./slow_ssh
    sleep 0.15
    signal INT all
    ends 130 all
    all_are_gone "Ctrl-C, a slow ssh, $i" slow$i
done

# Lines that come faster than somebody reads them.
cat >slowly.py <<'PYTHON'
import sys, time
while sys.stdin.buffer.read1(2048):
    time.sleep(0.02)
PYTHON
mkfifo lines
python3 slowly.py <lines &
start all bash -c 'exec "$0" "$@" >lines' "$TRAINER" $common --epochs=1000000 --hosts=localhost:3 \
    --ps=1 $(first_port) --print-every=1 --out=chatty
wait_until bash -c '[ -s chatty/steps.csv ]'
sleep 0.5
signal INT all
ends 130 all
all_are_gone "Ctrl-C, many lines" chatty

# What fails on the way has its exit code.
endless_run broken --checkpoint-every=0
rm -rf broken/checkpoint
touch broken/checkpoint
signal INT all
ends 3 all
grep -q '^localhost\[0\]: trainer: broken/checkpoint: a file, expected a folder' all.err ||
    fail "Ctrl-C, no checkpoint: $(tail -n 5 all.err)"
all_are_gone "Ctrl-C, no checkpoint" broken

endless_run orphans
signal 9 all
finish all
all_are_gone "the one that started them was killed" orphans
[ -e orphans/checkpoint/state.safetensors ] || fail "orphans: no checkpoint"

[ $failures -eq 0 ]
