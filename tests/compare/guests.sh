#!/bin/bash
# What others can do to a sweep: who only connects keeps no lane out, also where the host has few descriptors;
# a machine whose disk is full gives its run back and goes, and is not blamed where the host's disk is full; a
# lane that is stuck in the middle of a file does not keep Ctrl-C waiting.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

settings=(--dataset=digits --model=mlp:hidden=100 --threads=1 --epochs=1 --vary='batch=16,32,64')
lane=(--devices=cpu:0 --threads=1 --no-shared-memory --start-timeout=30)
listening() { grep -q 'machines join this sweep' "$1.err"; }
host() { # options...: a sweep that computes nothing itself
    start host "$TRAINER" sweep "${settings[@]}" --no-shared-memory --devices=none \
        --listen=127.0.0.1:"$port" "$@"
}
statuses() { cut -d, -f2 "$1/sweep.csv" | tr '\n' ' '; }

# --- many who only connect, and one lane ---
cat >crowd.py <<'PYTHON'
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) for _ in range(int(sys.argv[2]))]
print("here", flush=True)
time.sleep(60)
PYTHON
for few in true 'ulimit -n 40'; do
    port=$(free_ports 1)
    start host bash -c "$few && "'exec "$@"' host "$TRAINER" sweep "${settings[@]}" \
        --no-shared-memory --devices=none --listen=127.0.0.1:"$port" --out="crowd$few"
    wait_until listening host
    start crowd python3 crowd.py "$port" 300
    wait_until grep -q here crowd.out
    start lane "$TRAINER" sweep --join=127.0.0.1:"$port" "${lane[@]}"
    ends 0 lane host
    signal 9 crowd
    finish crowd
    [ "$(statuses "crowd$few")" = 'status finished finished finished ' ] ||
        fail "a crowd: $few: $(cat "crowd$few/sweep.csv")"
done

# --- a machine whose disk is full ---
full() { # name, command...
    local name=$1
    shift
    start "$name" bash -c 'ulimit -f 20; trap "" XFSZ; exec "$@"' full "$@"
}
port=$(free_ports 1)
host --out=machine
wait_until listening host
full bad "$TRAINER" sweep --join=127.0.0.1:"$port" "${lane[@]}"
ends 3 bad
says bad 'cannot be written: File too large'
says host '^trainer: lost: .*File too large; run 1 of 3 goes to another lane$'
start good "$TRAINER" sweep --join=127.0.0.1:"$port" "${lane[@]}"
ends 0 good host
[ "$(statuses machine)" = 'status finished finished finished ' ] ||
    fail "a full machine: $(cat machine/sweep.csv)"

# --- a host whose disk is full ---
port=$(free_ports 1)
full host "$TRAINER" sweep "${settings[@]}" --no-shared-memory --devices=none --listen=127.0.0.1:"$port" \
    --out=full
start good "$TRAINER" sweep --join=127.0.0.1:"$port" "${lane[@]}"
ends 3 host
ends 5 good
says host '^trainer: full/1/.*not written: File too large'
says good 'the sweep cannot go on'
! grep -q lost host.err || fail "a full host: $(cat host.err)"
run 0 sweep --resume=full --devices=cpu:0
[ "$(statuses full)" = 'status finished finished finished ' ] ||
    fail "a host that was full: $(cat full/sweep.csv)"

# --- a run is lost too often: its lane goes before it has sent it back, three times ---
cat >between.py <<'PYTHON'
"""Between a lane and the host: hands on all, but of what the lane sends after a run (frame ENDED) the
header alone. Then it waits, or, told so, ends the connection."""
import select, socket, struct, sys
ENDED = 18
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
lane, _ = listener.accept()
host = socket.create_connection(("127.0.0.1", int(sys.argv[2])), 30)
left = bytearray()
while True:
    for one in select.select([lane, host], [], [])[0]:
        some = one.recv(65536)
        if not some:
            sys.exit(0)
        if one is host:
            lane.sendall(some)
            continue
        left += some
        while len(left) >= 64:
            kind, bytes = struct.unpack("<H", left[6:8])[0], struct.unpack("<Q", left[12:20])[0]
            if kind == ENDED:
                host.sendall(left[:64])
                if sys.argv[3] == "end":
                    sys.exit(0)
                print("stuck", flush=True)
                while host.recv(65536):
                    pass
                sys.exit(0)
            if len(left) < 64 + bytes:
                break
            host.sendall(left[:64 + bytes])
            del left[:64 + bytes]
PYTHON
between() { # what it does: sets $door
    door=$(free_ports 1)
    start between python3 between.py "$door" "$port" "$1"
    wait_until grep -q up between.out
    start stuck "$TRAINER" sweep --join=127.0.0.1:"$door" "${lane[@]}"
}
port=$(free_ports 1)
host --out=lost
wait_until listening host
for _ in 1 2 3; do
    between end
    ends 0 between
    ends 5 stuck
done
start good "$TRAINER" sweep --join=127.0.0.1:"$port" "${lane[@]}"
ends 0 good host
[ "$(grep -c 'run 1 of 3 goes to another lane' host.err)" -eq 2 ] || fail "lost three times: $(cat host.err)"
says host '^trainer: lost: .*; run 1 of 3 has failed: it was lost too often$'
[ "$(statuses lost)" = 'status failed finished finished ' ] || fail "lost three times: $(cat lost/sweep.csv)"

# --- Ctrl-C while a lane is stuck in the middle of a frame ---
port=$(free_ports 1)
host --timeout=60 --out=stuck
wait_until listening host
between wait
wait_until grep -q stuck between.out
signal INT host
SECONDS=0
ends 130 host
[ $SECONDS -lt 20 ] || fail "Ctrl-C took $SECONDS s"
! grep -q lost host.err || fail "interrupted: $(cat host.err)"
finish between
ends 5 stuck
exit $((failures > 0))
