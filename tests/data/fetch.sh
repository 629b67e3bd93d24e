#!/bin/bash
# trainer fetch, against a server of our own that cuts, lies, stalls and forgets: whatever happens, a file has
# its name only when it is the right one, and what came is not asked for again. A build without libcurl says
# what to put where instead.
set -u
data=${TRAINER_DATA:-}
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
server=''
trap 'for p in $server $child; do { kill -9 "$p"; wait "$p"; } 2>/dev/null; done; rm -rf "$scratch"' EXIT
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export HOME=$scratch/home
mkdir "$HOME"
cd "$scratch" || exit 1

# --- what a missing data set says ---
"$TRAINER" --dataset=mnist >out 2>err
[ $? -eq 3 ] || fail "mnist, missing: $(cat err)"
if grep -q -e -DTRAINER_CURL=0 "$BUILD/flags"; then
    grep -q '^trainer: mnist is not in .*: trainer fetch mnist says where to download it, and where' err || fail "without libcurl: $(cat err)"
    "$TRAINER" --help | grep -q '^  fetch ' || fail "without libcurl there is no fetch: $("$TRAINER" --help)"
    lacks='trainer: fetch: this build cannot download: it needs libcurl .*libcurl4-openssl-dev libssl-dev'
    "$TRAINER" fetch mnist cifar10 >out 2>err
    [ $? -eq 2 ] && grep -q "^$lacks" err && [ "$(wc -l <err)" -eq 1 ] || fail "without libcurl: $(cat err)"
    grep -qx "mnist: download these files, and put them in $HOME/.cache/trainer/mnist" out ||
        fail "without libcurl: $(cat out)"
    for file in {train,t10k}-{images-idx3,labels-idx1}-ubyte.gz; do
        grep -Eqx "  https://[^ ]*/$file" out || fail "without libcurl: no $file: $(cat out)"
    done
    grep -qx "cifar10: download this archive, and unpack it in $HOME/.cache/trainer/cifar10" out ||
        fail "without libcurl: $(cat out)"
    grep -Eqx '  https://[^ ]*/cifar-10-binary.tar.gz' out || fail "without libcurl: $(cat out)"
    [ ! -e "$HOME/.cache" ] || fail "without libcurl: made a folder"
    "$TRAINER" fetch mnits >out 2>err
    [ $? -eq 2 ] && grep -q '"mnits": unknown; did you mean "mnist"' err || fail "without libcurl: $(cat err)"
    "$TRAINER" fetch iris --data-dir=here --from=http://server/folder >out 2>err
    [ "$(cat out)" = "iris: download these files, and put them in here/iris
  http://server/folder/iris_training.csv
  http://server/folder/iris_test.csv" ] || fail "without libcurl: $(cat out)"
    [ $failures -eq 0 ]
    exit
fi
grep -q '^trainer: mnist is not in [^ ]*/mnist: trainer fetch mnist downloads it (--data-dir=DIR ' err || fail "mnist, missing: $(cat err)"

# --- what there is nothing to download of ---
"$TRAINER" fetch digits >out 2>err
[ $? -eq 2 ] &&
    grep -qx 'trainer: fetch: "digits": nothing to download: .*; embedded (one of cifar10, iris, mnist)' \
        err || fail "fetch digits: $(cat err)"
"$TRAINER" fetch digit >out 2>err
[ $? -eq 2 ] && grep -qx 'trainer: fetch: "digit": unknown (one of cifar10, iris, mnist)' err ||
    fail "fetch digit: $(cat err)"
"$TRAINER" fetch >out 2>err
[ $? -eq 2 ] &&
    grep -qx 'trainer: fetch: expected the name of a data set (one of cifar10, iris, mnist)' err ||
    fail "fetch: $(cat err)"

# --- the server ---
mkdir served
cp "$tests"/../datasets/embedded/iris_*.csv served
: >log
python3 "$tests/serve.py" served log >port &
server=$!
tries=0
until [ -s port ]; do
    sleep 0.05
    tries=$((tries + 1))
    [ $tries -lt 400 ] || { echo "the server does not start"; exit 1; }
done
at=http://127.0.0.1:$(cat port)
place=$HOME/.cache/trainer/iris

# --- a line now and then where there is no terminal: looked at in the end, as it takes more than ten
# seconds ---
mkdir -p slow/iris
cp served/iris_test.csv slow/iris
timeout 60 "$TRAINER" fetch iris --from="$at/drip=1950" --data-dir=slow >slow.out 2>slow.err &
slow=$!
until [ -s log ] || [ $tries -ge 400 ]; do
    sleep 0.05
    tries=$((tries + 1))
done

fetch() { # mode, further options...: sets $code; standard output in out, standard error in err, requests in
    # log
    local mode=$1
    shift
    : >log
    timeout 60 "$TRAINER" fetch iris --from="$at/$mode" "$@" >out 2>err
    code=$?
}
anew() { rm -rf "$HOME/.cache"; }
is_right() { # what was done
    cmp -s served/iris_training.csv "$place/iris_training.csv" && cmp -s served/iris_test.csv \
        "$place/iris_test.csv" || fail "$1: not the files: $(ls "$place") $(cat err)"
    [ "$(ls "$place")" = "$(printf 'iris_test.csv\niris_training.csv')" ] ||
        fail "$1: left more: $(ls "$place")"
    [ "$code" -eq 0 ] || fail "$1: exit code $code: $(cat err)"
    [ "$(tail -n 1 out)" = "iris is in $place" ] || fail "$1: said: $(cat out)"
}
asked() { # what was done, then the requests expected
    local what=$1
    shift
    [ "$(cat log)" = "$(printf '%s\n' "$@")" ] ||
        fail "$what: asked for $(tr '\n' ';' <log), expected $(printf '%s;' "$@")"
}
refused() { # what, exit code, words in the one line; no file that a reader would take
    [ "$code" -eq "$2" ] || fail "$1: exit code $code, expected $2: $(cat err)"
    [ "$(grep -cv ' bytes are here already$' err)" -eq 1 ] || fail "$1: expected one line, found: $(cat err)"
    grep -Eq "^trainer: .*$3" err || fail "$1: said: $(cat err) expected: $3"
    [ -s out ] && fail "$1: printed: $(cat out)"
    [ -z "$(find "$place" -name '*.csv' 2>/dev/null)" ] || fail "$1: left $(ls "$place")"
}
part() { # bytes of it: what an earlier call left
    anew
    mkdir -p "$place"
    head -c "$1" served/iris_training.csv >"$place/iris_training.csv.part"
}
part_bytes() { # what was done, bytes expected in the part that was left; -: none
    local found=-
    [ ! -e "$place/iris_training.csv.part" ] || found=$(wc -c <"$place/iris_training.csv.part")
    [ "$found" = "$2" ] || fail "$1: left $found bytes, expected $2"
}

# --- a good one ---
fetch good
is_right "good"
asked "good" "good iris_training.csv -" "good iris_test.csv -"
grep -qx 'iris_training.csv: 2,194 bytes, SHA-256 matches' out || fail "good: $(cat out)"
[ ! -s err ] || fail "good: said: $(cat err)"
fetch none # nobody is asked
is_right "there already"
asked "there already"
[ "$(grep -c ': present, SHA-256 matches$' out)" -eq 2 ] || fail "there already: $(cat out)"
fetch redirect --data-dir=given/deep
[ $code -eq 0 ] && cmp -s served/iris_test.csv given/deep/iris/iris_test.csv || fail "--data-dir: $(cat err)"
asked "redirect" "redirect iris_training.csv -" "good iris_training.csv -" "redirect iris_test.csv -" \
    "good iris_test.csv -"
TRAINER_DATA=$scratch/environment fetch good
cmp -s served/iris_test.csv environment/iris/iris_test.csv || fail "TRAINER_DATA: $(cat err)"

# --- what is there is not the right one: one byte changed, or damaged gzip data ---
anew
mkdir -p "$place"
sed 's/6.4/6.5/' served/iris_training.csv >"$place/iris_training.csv"
cp "$place/iris_training.csv" changed
fetch good --quiet
[ $code -eq 0 ] && cmp -s served/iris_training.csv "$place/iris_training.csv" ||
    fail "changed file: $(cat err)"
cmp -s changed "$place/iris_training.csv.1" || fail "changed file: not kept: $(ls "$place")"
grep -q 'iris_training.csv: not the published file; kept under another name$' err ||
    fail "changed file: $(cat err)"
anew
mkdir -p "$place"
gzip -c served/iris_training.csv >"$place/iris_training.csv.gz"
fetch good
asked "packed by hand" "good iris_test.csv -"
head -c 500 "$place/iris_training.csv.gz" >cut.gz
mv cut.gz "$place/iris_training.csv.gz"
fetch good
asked "packed by hand, cut" "good iris_training.csv -"
[ $code -eq 0 ] && [ -e "$place/iris_training.csv.gz.1" ] && [ ! -e "$place/iris_training.csv.gz" ] ||
    fail "packed by hand, cut: $(ls "$place")"

# --- cut connections ---
anew
fetch cut=1000
is_right "cut"
asked "cut" "cut iris_training.csv -" "cut iris_training.csv 1000" "cut iris_training.csv 2000" \
    "cut iris_test.csv -"
anew
fetch nolength=1500
is_right "cut, without a length"
asked "cut, without a length" "nolength iris_training.csv -" "nolength iris_training.csv 1500" \
    "nolength iris_test.csv -"
anew
fetch once=700
is_right "cut once"
anew
fetch cut=0
refused "cut before the first byte" 5 'iris_training.csv: '
part_bytes "cut before the first byte" -
[ ! -e "$HOME/.cache" ] || fail "cut before the first byte: left $(find "$HOME/.cache")"
mkdir -p "$HOME/.cache/trainer"
fetch cut=0
[ "$(find "$HOME/.cache")" = "$(printf '%s\n' "$HOME/.cache" "$HOME/.cache/trainer")" ] ||
    fail "a folder that was there: $(find "$HOME/.cache")"
fetch cut=0 --data-dir=vain//below/
[ ! -e vain ] || fail "--data-dir: left $(find vain)"
mkdir -p vain/iris
touch vain/mine
fetch cut=0 --data-dir=vain
[ -d vain/iris ] && [ -e vain/mine ] || fail "what was there before is gone: $(find vain)"
fetch cut=10
refused "cut again and again" 5 'iris_training.csv: the connection was cut 20 times$'
part_bytes "cut again and again" 200
fetch good
is_right "cut again and again, then not"
asked "cut again and again, then not" "good iris_training.csv 200" "good iris_test.csv -"
grep -q 'iris_training.csv: 200 bytes are here already$' err || fail "resumed: said $(cat err)"
anew
fetch cutall=1000
refused "cut, no ranges" 5 'the connection was cut'
part_bytes "cut, no ranges" 1000
fetch norange
is_right "no ranges"
asked "no ranges" "norange iris_training.csv 1000" "norange iris_test.csv -"
anew
fetch close
refused "no head" 5 'iris_training.csv: '
part_bytes "no head" -

# --- what an earlier call left ---
part 2194
fetch good
is_right "a whole part"
asked "a whole part" "good iris_test.csv -"
part 2194
printf x >>"$place/iris_training.csv.part"
fetch good
is_right "a part that is too long"
part 100
printf x >>"$place/iris_training.csv.part" # not of this file
fetch good
is_right "a wrong part"
asked "a wrong part" "good iris_training.csv 101" "good iris_training.csv -" "good iris_test.csv -"
part 100
fetch shifted
refused "a range from elsewhere" 5 'bytes from 99 on, expected those from 100 on'
part_bytes "a range from elsewhere" 100
part 100
fetch silent # found out by the sum; begun anew
is_right "a range from elsewhere, not said"
part 1000
fetch short
refused "resumed, a byte less" 3 '2193 bytes, expected 2194'
part_bytes "resumed, a byte less" 1000

# --- not the right file ---
for mode in wrong long short; do
    anew
    fetch $mode
    words='iris_training.csv: SHA-256 [0-9a-f]{64}, '\
'expected c4c7652b14da06ba63b37f9f47d2e9aa4edced85701c9f8fce37501a1ca792e4$'
    [ $mode = wrong ] || words='iris_training.csv: 219[35] bytes, expected 2194$'
    refused $mode 3 "$words"
    part_bytes $mode -
done

# --- no file, no server ---
anew
fetch none
refused "404" 3 "none/iris_training.csv: HTTP status 404, expected 200$"
part_bytes "404" -
fetch loop
refused "a ring of redirections" 5 'edirect'
fetch elsewhere
refused "to a file of this machine" 5 'elsewhere/iris_training.csv: '
timeout 60 "$TRAINER" fetch iris --from=http://nowhere.invalid/ >out 2>err
code=$?
refused "a host that does not resolve" 5 'nowhere.invalid/iris_training.csv: .*nowhere.invalid'
timeout 60 "$TRAINER" fetch iris --from=http://127.0.0.1:1/ >out 2>err
code=$?
refused "nobody listens" 5 '127.0.0.1:1/iris_training.csv: '
for words in 'ftp://127.0.0.1' 'served' 'file:///etc'; do
    timeout 60 "$TRAINER" fetch iris --from="$words" >out 2>err
    code=$?
    refused "--from=$words" 2 'expected an address that begins with http'
done
for words in 'fetch' 'fetch irsi' 'fetch iris csv' 'fetch --timeout=0 iris'; do
    # shellcheck disable=SC2086 # several words
    "$TRAINER" $words >out 2>err
    code=$?
    refused "$words" 2 ''
done

# --- a server that is silent ---
for mode in dumb stall=300; do
    anew
    before=$SECONDS
    fetch $mode --timeout=1
    words='stall=300/iris_training.csv: nothing came for 1 s, after 300 bytes; '\
'the same command goes on from there$'
    [ $mode = dumb ] && words='dumb/iris_training.csv: '
    refused $mode 5 "$words"
    [ $((SECONDS - before)) -le 20 ] || fail "$mode: took $((SECONDS - before)) s"
done

# --- a disk that is full (bash counts in units of 1024 bytes), and no right to write ---
anew
: >log
(ulimit -f 1 && exec timeout 60 "$TRAINER" fetch iris --from="$at/good" >out 2>err)
code=$?
refused "a full disk" 3 'iris_training.csv.part: cannot be written: '
part_bytes "a full disk" 1024
fetch good
is_right "a full disk, then room"
asked "a full disk, then room" "good iris_training.csv 1024" "good iris_test.csv -"
anew
mkdir -p "$place/iris_training.csv"
fetch good
[ $code -eq 3 ] && grep -q '^trainer: .*/iris_training.csv: cannot be read: Is a directory$' err &&
    [ -d "$place/iris_training.csv" ] ||
    fail "a folder in a file's place: exit code $code: $(cat err)"
anew
mkdir -p "$HOME/.cache"
echo >"$HOME/.cache/trainer"
fetch good
refused "a file in the way" 3 'a file, expected a folder'
rm -rf "$HOME/.cache"
mkdir -p "$place/iris_training.csv.part"
fetch good
refused "a folder in the way" 3 'iris_training.csv.part: cannot be written: '
anew

# --- Ctrl-C, kill -9, and two at once ---
start() {
    : >log
    $heeding "$TRAINER" fetch iris --from="$at/drip=400" >out 2>err &
    child=$!
    tries=0
    until [ "$(wc -c 2>/dev/null <"$place/iris_training.csv.part" || echo 0)" -ge 405 ]; do
        sleep 0.05
        tries=$((tries + 1))
        [ $tries -lt 400 ] || { fail "nothing came: $(cat err)"; break; }
    done
}
finish() {
    wait "$child" 2>/dev/null
    code=$?
    child=
}
# What is amiss here is amiss with any server.
anew
python3 - "$TRAINER" <<'PYTHON' >out 2>err
import fcntl, os, subprocess, sys
folder = os.path.expanduser("~/.cache/trainer/mnist")
os.makedirs(folder)
with open(folder + "/train-images-idx3-ubyte.gz.part", "wb") as part:
    fcntl.flock(part, fcntl.LOCK_EX)
    sys.exit(subprocess.run([sys.argv[1], "fetch", "mnist", "--timeout=5"]).returncode)
PYTHON
code=$?
refused "mnist, held by another" 3 'train-images-idx3-ubyte.gz.part: another process is writing it$'
for signal in INT TERM KILL; do
    anew
    start
    if [ $signal = INT ]; then
        mv out kept.out && mv err kept.err
        fetch good
        refused "two at once" 3 'iris_training.csv.part: another process is writing it$'
        mv kept.out out && mv kept.err err
    fi
    kill -$signal "$child"
    finish
    if [ $signal = KILL ]; then
        [ $code -eq 137 ] || fail "$signal: exit code $code"
    else
        refused $signal 130 \
            'interrupted after [0-9]* bytes of .*iris_training.csv.part; the same command goes on from there$'
    fi
    left=$(wc -c <"$place/iris_training.csv.part")
    [ "$left" -ge 405 ] || fail "$signal: left $left bytes"
    fetch good
    is_right "$signal, then again"
    asked "$signal, then again" "good iris_training.csv $left" "good iris_test.csv -"
done

# --- on a terminal: one line that is drawn again and again, and cleared at the end ---
anew
python3 - "$TRAINER" "$at/drip=2100" >seen <<'PYTHON'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "fetch", "iris", "--from=" + sys.argv[2]])
seen = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    if seen.count(b"\r") > 8:
        os.kill(pid, 2)
os.waitpid(pid, 0)
print(repr(seen))
PYTHON
grep -Eq 'iris_training.csv  9[0-9] %  2,1[0-9]{2} bytes  [0-9,]+ bytes/s  [0-9]+ s left' seen ||
    fail "on a terminal: $(cat seen)"

# --- archives that are not what they should be: nothing is left of them ---
python3 - <<'PYTHON'
import io, tarfile
for name, members in {"wrong": ["data_batch_1.bin"], "without": ["readme.html"], "nothing": []}.items():
    with tarfile.open(f"served/{name}.tar.gz", "w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for member in members:
            about = tarfile.TarInfo(f"cifar-10-batches-bin/{member}")
            about.size = 1000
            archive.addfile(about, io.BytesIO(bytes(1000)))
PYTHON
head -c 100 served/wrong.tar.gz >served/half.tar.gz
yes | head -c 2000 >served/text.tar.gz
while IFS='|' read -r name words; do
    cp "served/$name.tar.gz" served/cifar-10-binary.tar.gz
    timeout 60 "$TRAINER" fetch cifar10 --from="$at/good" --data-dir=bad >out 2>err
    code=$?
    refused "archive: $name" 3 "$words"
    [ ! -e bad ] || fail "archive: $name: left $(find bad)"
done <<'TABLE'
wrong|data_batch_1.bin: SHA-256 541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53, expected cee91656[0-9a-f]{56}$
without|cifar-10-binary.tar.gz.part: no data_batch_1.bin in it$
nothing|cifar-10-binary.tar.gz.part: no data_batch_1.bin in it$
half|cifar-10-binary.tar.gz.part: damaged or cut gzip data$
text|cifar-10-binary.tar.gz.part: a header without its checksum, expected a tar archive$
TABLE

# --- the real ones, where they are ---
if [ -n "$data" ] && [ -e "$data/mnist/train-images-idx3-ubyte.gz" ]; then
    cp "$data"/mnist/*.gz served
    timeout 120 "$TRAINER" fetch mnist --from="$at/once=5000000" --data-dir=real >out 2>err ||
        fail "mnist: $(cat err)"
    [ "$(grep -c 'SHA-256 matches' out)" -eq 4 ] || fail "mnist: $(cat out)"
    "$TRAINER" --quiet --dataset=mnist:take=100 --epochs=1 --data-dir=real --out=run >out 2>err ||
        fail "mnist, fetched: $(cat err)"
    gunzip real/mnist/t10k-labels-idx1-ubyte.gz # as some keep it: right all the same
    timeout 120 "$TRAINER" fetch mnist --from="$at/none" --data-dir=real >out 2>err ||
        fail "mnist, one unpacked: $(cat err)"
else
    echo "mnist is not in TRAINER_DATA: not fetched" >&2
fi
if [ -n "$data" ] && [ -e "$data/cifar10/test_batch.bin.gz" ]; then
    python3 - "$data/cifar10" served/cifar-10-binary.tar.gz <<'PYTHON'
import gzip, io, sys, tarfile
names = ["batches.meta.txt"] + [f"data_batch_{i}.bin" for i in (1, 4, 3, 5, 2)] + ["test_batch.bin"]
with tarfile.open(sys.argv[2], "w:gz", compresslevel=0, format=tarfile.USTAR_FORMAT) as archive:
    folder = tarfile.TarInfo("cifar-10-batches-bin")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    archive.addfile(folder)
    for name in names:
        packed = name.endswith(".bin")
        data = (gzip.open(f"{sys.argv[1]}/{name}.gz") if packed else open(f"{sys.argv[1]}/{name}",
                                                                          "rb")).read()
        member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
PYTHON
    timeout 120 "$TRAINER" fetch cifar10 --from="$at/once=100000000" --data-dir=real >out 2>err ||
        fail "cifar10: $(cat err)"
    [ "$(ls real/cifar10)" = "$(printf 'data_batch_%d.bin\n' 1 2 3 4 5; echo test_batch.bin)" ] ||
        fail "cifar10: $(ls real/cifar10)"
    for file in real/cifar10/*; do
        gzip -dc "$data/cifar10/$(basename "$file").gz" | cmp -s - "$file" || fail "cifar10: $file differs"
    done
    timeout 120 "$TRAINER" fetch cifar10 --from="$at/none" --data-dir="$data" >out 2>err ||
        fail "cifar10, packed one by one: $(cat err)"
    # The archive was all there, but no room to unpack it.
    rm real/cifar10/*
    cp served/cifar-10-binary.tar.gz real/cifar10/cifar-10-binary.tar.gz.part
    : >log
    (
        ulimit -f 20000 &&
            exec timeout 120 "$TRAINER" fetch cifar10 --from="$at/good" --data-dir=real >out 2>err
    )
    code=$?
    [ $code -eq 3 ] && grep -q 'data_batch_1.bin.part: cannot be written: ' err ||
        fail "cifar10, no room to unpack: exit code $code: $(cat err)"
    [ "$(ls real/cifar10)" = cifar-10-binary.tar.gz.part ] ||
        fail "cifar10, no room to unpack: left $(ls real/cifar10)"
    asked "cifar10, no room to unpack" "good cifar-10-binary.tar.gz $(wc -c <served/cifar-10-binary.tar.gz)"
    # No room for the archive.
    rm real/cifar10/*
    (
        ulimit -f 100000 &&
            exec timeout 120 "$TRAINER" fetch cifar10 --from="$at/good" --data-dir=real >out 2>err
    )
    code=$?
    [ $code -eq 3 ] && grep -q 'cifar-10-binary.tar.gz.part: cannot be written: ' err ||
        fail "cifar10, full disk: exit code $code: $(cat err)"
    timeout 120 "$TRAINER" fetch cifar10 --from="$at/good" --data-dir=real >out 2>err ||
        fail "cifar10, then room: $(cat err)"
    # One file damaged: the archive is all there, only that one is unpacked again.
    printf x >>real/cifar10/data_batch_3.bin
    timeout 120 "$TRAINER" fetch cifar10 --from="$at/good" --data-dir=real >out 2>err ||
        fail "cifar10, one damaged: $(cat err)"
    [ "$(grep -c '^data_batch_3.bin: 30,730,000 bytes' out)" -eq 1 ] ||
        fail "cifar10, one damaged: $(cat out)"
else
    echo "cifar10 is not in TRAINER_DATA: not fetched" >&2
fi

wait $slow || fail "slowly: exit code $?: $(cat slow.err)"
grep -Eqx 'trainer: iris_training.csv  [0-9]+ %  [0-9,]+ bytes  [0-9,]+ bytes/s  [0-9]+ s left' slow.err ||
    fail "slowly: said: $(cat slow.err)"

[ $failures -eq 0 ]
