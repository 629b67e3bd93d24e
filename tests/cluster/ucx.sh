#!/bin/bash
# Clusters over UCX, with real processes: as many bits as over any other link, nothing listens where other
# machines could reach it, who is killed is named, one side without it keeps to TCP and both say so, and what
# it cannot do is refused in a line. And --link in general.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

# --- links of any build ---
refused_with 2 '--link=shm contradicts --no-shared-memory' --link=shm --no-shared-memory
new_cluster 1 1
run 5 --job=worker --task=0 --ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$worker_port --link=shm \
    --start-timeout=0.3
tail -n 1 err | grep -q \
    'after 0.3 s: no process of this machine and user shares memory there, which --link=shm expects$' ||
    fail "nobody shares memory: $(cat err)"
refused_with 2 '--link=ucx: the lanes of a sweep have no use for it, expected auto or tcp' \
    sweep --vary=batch=16,32 --devices=none --listen=127.0.0.1:$port --link=ucx

# --- memory or nothing ---
start ps "$TRAINER" --job=ps --task=0 --ps-hosts=127.0.0.1:$port \
    --worker-hosts=127.0.0.1:$worker_port $small --epochs=2 --link=shm --out=run
hosts="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$worker_port"
start_worker 0 --link=tcp
ends 5 w0
says w0 'came over TCP, the parameter server has --link=shm'
start_worker 0 --link=shm
ends 0 ps w0

# --- UCX ---
"$TRAINER" --job=worker --task=0 $hosts --link=ucx --start-timeout=0.1 >out 2>err
code=$?
reason=$(tail -n 1 err)
case $reason in
'trainer: this build has no UCX: install its headers (libucx-dev), then make again')
    [ $code -eq 2 ] || fail "without UCX: exit code $code" ;;
'trainer: libucp.so.0: '*'; expected UCX 1.13 or later (libucx0)')
    [ $code -eq 4 ] || fail "without UCX: exit code $code" ;;
*) reason='' ;;
esac
if [ -n "$reason" ]; then
    echo "no UCX here: $reason"
    exit $((failures > 0 ? 1 : 77))
fi

# Whatever listens in this process, UCX's ports too, listens at a loopback address.
listens_at_loopback() { # name, how many there are at least, and at most
    python3 - "$(pid_of "$1")" "$2" "$3" <<'PYTHON'
import os, sys
fds = f"/proc/{sys.argv[1]}/fd"
mine = set()
for fd in os.listdir(fds):
    try:
        mine.add(os.readlink(f"{fds}/{fd}"))
    except OSError:
        pass
found = []
for file in ("tcp", "tcp6"):
    for row in list(open(f"/proc/{sys.argv[1]}/net/{file}"))[1:]:
        columns = row.split()
        if columns[3] == "0A" and f"socket:[{columns[9]}]" in mine:
            found.append(columns[1])
at_loopback = all(address.split(":")[0].endswith("7F") for address in found)
if not int(sys.argv[2]) <= len(found) <= int(sys.argv[3]) or not at_loopback:
    sys.exit(f"listens at {found}")
PYTHON
}

listeners='1 1' # its own
for transport in '' tcp; do # UCX's own shared memory, without ports; its TCP
    hosts="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$worker_port,127.0.0.1:$((worker_port + 1)) \
        --link=ucx"
    if [ -n "$transport" ]; then export UCX_TLS=$transport listeners='2 99'; fi
    for victim in w1 ps; do
        rm -rf run
        start ps "$TRAINER" --job=ps --task=0 $hosts $endless --out=run
        start_worker 0 --timeout=$timeout
        start_worker 1 --timeout=$timeout
        wait_until is_training
        listens_at_loopback ps $listeners >out 2>&1 || fail "ucx $transport: $(cat out)"
        [ "$victim" = ps ] && left='w0 w1' || left='ps w0'
        signal 9 $victim
        ends 137 $victim
        ends 5 $left
        [ "$victim" = ps ] ||
            says ps "worker 1 \\(127.0.0.1:[0-9]+ cpu:0\\): the connection was closed by the peer"
        [ "$victim" = w1 ] ||
            says w0 "the parameter server 127.0.0.1:$port: the connection was closed by the peer"
    done
done

# A process that stands still is named in time, as over any other link; Ctrl-C ends the others.
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts $endless --out=run
for i in 0 1; do start_worker $i; done
wait_until is_training
signal STOP w1
ends 5 ps
says ps "worker 1 \\(127.0.0.1:[0-9]+ cpu:0\\)"
signal 9 w1
ends 137 w1
ends 5 w0
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts $endless --out=run
for i in 0 1; do start_worker $i; done
wait_until is_training
signal INT ps
ends 130 ps
ends 5 w0 w1
unset UCX_TLS

# --- UCX has nothing faster than TCP between them ---
stays='UCX has neither RDMA nor shared memory to'
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts $small --epochs=2 --no-shared-memory --out=run
for i in 0 1; do start_worker $i --no-shared-memory; done
ends 0 ps w0 w1
[ "$(grep -c "^trainer: $stays 127.0.0.1:[0-9]*: the connection stays on TCP$" ps.err)" -eq 2 ] ||
    fail "the ps does not say that both stay: $(cat ps.err)"
says w1 "$stays the parameter server 0 \(127.0.0.1:$port\): the connection stays on TCP$"
new_cluster 0 2
rm -rf run
for i in 0 1; do start_worker $i $small --epochs=2 --link=ucx --no-shared-memory --out=run; done
ends 0 w0 w1
says w0 "$stays 127.0.0.1:[0-9]+: the connection stays on TCP$"
new_cluster 1 2

# --- one side alone has it ---
hosts="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$worker_port"
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts $small --epochs=2 --link=ucx --out=run
start_worker 0
ends 0 ps w0
says ps '127.0.0.1:[0-9]+|process [0-9]+ has no --link=ucx: the connection stays on TCP'
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts $small --epochs=2 --out=run
start_worker 0 --link=ucx
ends 0 ps w0
says w0 "the parameter server 0 \\(127.0.0.1:$port\\) has no --link=ucx: the connection stays on TCP"

# --- what it cannot do ---
"$TRAINER" keygen key >out 2>&1
run 2 --job=worker --task=0 $hosts --link=ucx --secret-file=key
tail -n 1 err |
    grep -qx 'trainer: UCX does not encrypt, and there is a key: expected another --link, or no key' ||
    fail "with a key: $(cat err)"
run 2 --job=worker --task=0 --ps-hosts=192.0.2.1:1 --worker-hosts=192.0.2.1:2 --link=ucx --start-timeout=1
tail -n 1 err | grep -q 'is not an address of this machine alone: expected --secret-file=FILE' ||
    fail "another machine: $(cat err)"

# --- who is ready before the connection has gone over is not held for ready: each start is another order ---
for i in 1 2 3 4 5 6; do
    new_cluster 0 3 # every other one without shared memory
    case $hosts in *--no-shared-memory*) export UCX_TLS=tcp ;; *) unset UCX_TLS ;; esac
    for w in 2 0 1; do
        start_worker $w --workers=2..3 --link=ucx --timeout=20 --start-timeout=20 --dataset=iris \
            --model=softmax --epochs=400 --replace --out=joined
    done
    ends 0 w0 w1 w2
    ! grep -h 'lost:' w0.err w1.err w2.err || fail "joined over UCX, start $i: somebody was lost"
done

exit $((failures > 0))
