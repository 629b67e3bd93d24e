#!/bin/bash
# A sweep over several processes: its folder is that of one process, whoever trains a run, also when one of
# them or the host is killed; who has other data is refused, and so are peers that are none.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
: "${BUILD:?expected the build folder}"

settings=(--dataset=digits --model=mlp:hidden=100 --threads=1 --quiet)
columns() { cut -d, -f1-6,8- "$1/sweep.csv"; } # all but the seconds
same_table() { # what is tested, two folders
    [ "$(columns "$2")" = "$(columns "$3")" ] ||
        fail "$1: other tables: $(diff "$2/sweep.csv" "$3/sweep.csv")"
}
files() { (cd "$1" && find . -type f | LC_ALL=C sort); }
where=. # its folder
host() { # name, options...: a sweep that computes nothing itself
    local name=$1
    shift
    start "$name" env -C "$where" "$TRAINER" sweep --quiet --devices=none --listen=127.0.0.1:"$port" \
        --timeout=20 "$@"
}
join() { # name, options...
    local name=$1
    shift
    start "$name" env -C "$where" "$TRAINER" sweep --join=127.0.0.1:"$port" --devices=cpu:0 --threads=1 \
        --timeout=20 --start-timeout=30 --out="of-$name" "$@"
}

# --- two machines ---
outputs=csv,tensorboard
! grep -q TRAINER_PROTOBUF=0 "$BUILD/flags" || outputs=csv,prometheus # two files in any build
random=("${settings[@]}" --vary=optimizer.rate=log:0.001..1 --vary='batch=16,32' --runs=5 --epochs=9
    --outputs=$outputs)
run 0 sweep "${random[@]}" --devices=cpu:0 --out=alone
cp out alone.out
port=$(free_ports 1)
join first # which waits for the host, as the other one does, so that it finds something to do
join second --quiet
host host "${random[@]}" --out=both
ends 0 host first second
same_table 'two machines' alone both
[ "$(files alone | sed 's/events.out.*//')" = "$(files both | sed 's/events.out.*//')" ] ||
    fail "two machines: other files: $(diff <(files alone) <(files both))"
for n in 1 2 3 4 5; do same_weights 'two machines' alone/$n both/$n; done
ls -d of-* 2>/dev/null && fail 'runs were left on the machines that had them'
[ ! -s second.err ] || fail "--quiet: $(cat second.err)"
tr -d '\\\n' <host.out | grep -Eq 'trainer .* --devices=cpu:0 +--threads=1' ||
    fail "the machine of the best run: $(cat host.out)"
[ "$(head -n 6 host.out | awk '{ $6 = ""; print }')" = \
    "$(head -n 6 alone.out | awk '{ $6 = ""; print }')" ] || fail "two machines: printed $(cat host.out)"

# --- runs that go on elsewhere: at rungs, and after one machine was killed, one interrupted, and the host
# killed ---
# Slow, so that there is always something left to do when a process is killed.
halving=("${settings[@]}" --model=mlp:hidden=200-100 --method=halving --vary=optimizer.rate=log:0.001..1
    --runs=9 --epochs=9 --batch=16)
run 0 sweep "${halving[@]}" --devices=cpu:0 --out=whole
ended() { [ "$(cut -d, -f2 halved/sweep.csv 2>/dev/null | grep -c 'stopped\|finished')" -ge "$1" ]; }
is_running() { grep -q '^[0-9]*,running' halved/sweep.csv; }
port=$(free_ports 1)
host host "${halving[@]}" --slow=cpu:0=5x --out=halved
join killed
wait_until ended 2
signal STOP killed # so that it has a run in hand when it is killed
sleep 0.1
wait_until is_running
signal 9 killed
finish killed
wait_until grep -q 'goes to another lane' host.err
join interrupted
wait_until ended 5
wait_until is_running
signal INT interrupted
ends 130 interrupted
join left
wait_until compgen -G 'of-left/joined/1/[1-9]/*' >in-hand # a folder for each lane, in which runs have theirs
wait_until is_running
signal 9 host
finish host
ends 5 left
says left "^trainer: the sweep at 127.0.0.1:$port: .*closed by the peer"
says host "^trainer: lost: $came_from.*closed by the peer.*; run [1-9] of 9 goes to another lane\$"
says host '^trainer: lost: .*interrupted'
host host --resume=halved
join last
ends 0 host last
says last 'run [1-9] of 9: trained on cpu:0$'
same_table 'killed and resumed' whole halved
finished=$(awk -F, '$2 == "finished" { print $1; exit }' whole/sweep.csv)
same_weights 'killed and resumed' "whole/$finished" "halved/$finished"

# --- the host has lanes of its own; a run that fails on another machine is a row; with a key, where this
# build can encrypt ---
"$TRAINER" keygen key >out
secret=(--secret-file=key)
"$TRAINER" sweep "${secret[@]}" --join=127.0.0.1:1 --start-timeout=0.1 2>&1 |
    grep -q 'this build cannot encrypt' && secret=()
port=$(free_ports 1)
# Those who join wait for the host, whose own lane is slow, so that the other one finds something to do.
[ ${#secret[@]} -eq 0 ] || join unknown
join other "${secret[@]}"
start host "$TRAINER" sweep "${settings[@]}" --method=grid --vary=optimizer.rate=0.1,1e6,0.2,0.3 --epochs=3 \
    --devices=cpu:0 --listen=127.0.0.1:"$port" --slow=cpu:0=20x --out=failing "${secret[@]}"
if [ ${#secret[@]} -gt 0 ]; then
    ends 5 unknown
    says unknown \
        'expects encryption, with the key of its --secret-file|does not hold the key|closed by the peer'
fi
ends 0 host other
[ "$(cut -d, -f1,2 failing/sweep.csv | tr '\n' ' ')" = \
    'run,status 1,finished 2,failed 3,finished 4,finished ' ] ||
    fail "a failed run: $(cat failing/sweep.csv)"

cat >peer.py <<'PYTHON'
import socket, struct, sys
from frames import frame
def header(bytes, type=15, version=int(sys.argv[3]), payload=b""):
    return frame(bytes, type, version, payload)

text = lambda words: struct.pack("<I", len(words)) + words
with socket.create_connection(("127.0.0.1", int(sys.argv[2])), 30) as s:
    hello = text(b"0") + text(b"cpu:0") + struct.pack("<d", 1.0)
    s.sendall({"http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "half": header(9)[:7],
               "huge": header(4 << 30),
               "version": header(8, version=99), "type": header(8, type=77),
               "worker": header(8, 1, payload=bytes(8)),
               "hello": header(64, payload=b"\xff" * 64), "program": header(len(hello), payload=hello),
               "silent": b""}[sys.argv[1]])
    if sys.argv[1] == "half":
        s.shutdown(socket.SHUT_WR)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
PYTHON
version=$(sed -n 's/.*FRAME_VERSION = \([0-9]*\).*/\1/p' "$root/src/bridge/frame.h")

# --- other data, or none; the sweep goes on with the right one ---
mkdir -p ours theirs none
for i in {1..40}; do echo "$((i % 7)),$((i % 5)),$((i % 3)),$((i % 2))"; done >ours/data.csv
sed 3s/^3/6/ ours/data.csv >theirs/data.csv
cmp -s ours/data.csv theirs/data.csv && fail 'the data is the same'
port=$(free_ports 1)
where=ours host host --dataset=csv:file=data.csv,header=no --model=softmax --epochs=1 --vary=batch=4,8 \
    --out=../data
where=theirs join other
ends 5 other
start silent python3 peer.py silent "$port" "$version" # it takes its time
says other 'has other examples in csv:file=data.csv'
says host 'refused: .* has other examples in csv:file=data.csv'
head -n 30 ours/data.csv >theirs/data.csv
where=theirs join other
ends 5 other
says host 'refused: .* has [0-9]+ examples of 3 features in csv:file=data.csv.*, the sweep has [0-9]+ of 3'
where=none join other
ends 3 other
says other 'data.csv'
says host 'refused: .*data.csv'

# --- peers that are none ---
peer_says() { # kind, words of the host
    start peer python3 peer.py "$1" "$port" "$version"
    ends 0 peer
    says host "refused: 127.0.0.1:[0-9]+.*$2"
}
peer_says http 'expected a trainer peer, found "GET / HT"'
peer_says half '7 of 64 bytes'
peer_says huge "a lane's hello of 4294967296 bytes"
peer_says version 'speaks version 99'
peer_says type 'a frame of type 77'
peer_says worker "a hello, expected a lane's hello"
peer_says hello "a lane's hello of 64 bytes"
peer_says program 'has trainer 0, the sweep has'
ends 0 silent
says host "refused: 127.0.0.1:[0-9]+: waited 5 s for a lane's hello, found 0 bytes"
where=ours join right
ends 0 host right
[ "$(cut -d, -f2 data/sweep.csv | tr '\n' ' ')" = 'status finished finished ' ] ||
    fail "the right data: $(cat data/sweep.csv)"

# --- what does not fit together ---
refused_with 2 '--batch: expected none beside --join: the sweep at 127.0.0.1:1 has its own' \
    sweep --join=127.0.0.1:1 --batch=3
refused_with 2 '--join: "here" has no port, expected host:port' sweep --join=here
refused_with 2 '--vary: expected none beside --join.*' sweep --join=127.0.0.1:1 --vary=batch=3
refused_with 5 'the sweep at 127.0.0.1:1: not connected after 0.3 s: Connection refused' \
    sweep --join=127.0.0.1:1 --start-timeout=0.3 --devices=cpu:0
run 5 sweep --join=127.0.0.1:1 --start-timeout=1.5 --devices=cpu:0,cpu:1
[ "$(grep -c 'waiting for the sweep at 127.0.0.1:1$' err)" = 1 ] || fail "nobody listens yet: $(cat err)"
refused_with 2 '--devices=none: expected --listen too.*' sweep --vary=batch=3 --devices=none --out=refused
refused_with 2 '--vary=dataset: expected one data set.*' sweep --vary='dataset=digits|iris' \
    --listen=127.0.0.1:0 --out=refused
refused_with 2 '.*127.0.0.1.*' sweep --vary=batch=3 --listen=127.0.0.1 --out=refused
[ ! -e refused ] || fail 'a sweep that could not start made a folder'
run 5 sweep --vary=batch=3 --devices=none --listen=127.0.0.1:0 --start-timeout=0.3 --out=nobody
grep -q 'no machine has joined for 0.3 s (--start-timeout); go on with: trainer sweep --resume=nobody' err ||
    fail "nobody: $(cat err)"
exit $((failures > 0))
