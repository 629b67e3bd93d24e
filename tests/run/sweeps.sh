#!/bin/bash
# What fails in the middle, at every place where it can: each byte of a checkpoint changed, a checkpoint cut
# anywhere, each call that brings something to the disk, each size at which a file may grow no more, each
# request for memory. Always one line on standard error, the exit code, nothing half-written; a checkpoint
# that was there before can still be read, and a run that ends well is whole. SWEEP=1 takes every place; else
# every few, fewer under a sanitizer.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
: "${BUILD:?expected the build folder}"
need python3
need prlimit
slow=''
case $(<"$BUILD/flags") in *-fsanitize=* | *TRAINER_CUDA=1*) slow=1 ;; esac
fail_nth=$(cd "$BUILD" && pwd)/tests/fail_nth
cd "$scratch" || exit 1

# The second where a run takes longer: with a sanitizer, or with CUDA, whose libraries take a tenth of a
# second to load.
stride() { echo "${SWEEP:-${slow:+$2}}" | grep . || echo "$1"; } # usual, slow

# --- any one byte of a checkpoint, and any length ---
small=(--quiet --dataset=iris --model=softmax --devices=cpu:0,cpu:1 --threads=1 --epochs=1)
"$TRAINER" "${small[@]}" --out=start >out 2>err || fail "trainer: exit code $?: $(cat err)"
cat >damage.py <<'PYTHON'
import subprocess, sys

trainer, source, stride = sys.argv[1], sys.argv[2], int(sys.argv[3])
whole = open(source, "rb").read()
wrong = tried = 0

def refused(what, data):
    global wrong, tried
    tried += 1
    with open("damaged", "wb") as file:
        file.write(data)
    ran = subprocess.run([trainer, "evaluate", "--checkpoint=damaged"], stdin=subprocess.DEVNULL,
                         capture_output=True)
    lines = ran.stderr.split(b"\n")
    if ran.returncode != 3 or ran.stdout or len(lines) != 2 or not lines[0].startswith(b"trainer: damaged: "):
        wrong += 1
        print(f"{what}: exit code {ran.returncode}, expected 3: {ran.stdout} {ran.stderr}")

for at in range(0, len(whole), stride):
    changed = bytearray(whole)
    changed[at] ^= 1 << at // stride % 8
    refused(f"byte {at} changed", changed)
for length in range(0, len(whole), 4 * stride):
    refused(f"cut to {length} bytes", whole[:length])
refused("a byte more", whole + b"\0")
print(f"{tried} damaged checkpoints of {len(whole)} bytes")
sys.exit(wrong > 0)
PYTHON
python3 damage.py "$TRAINER" start/checkpoint/state.safetensors "$(stride 7 61)" ||
    fail "a damaged checkpoint was not refused as it should be"

# --- a disk that fails ---

# After a run that failed: one line, nothing half-written. What it could not do any more is not there or is
# what it was before. An output that cannot go on has a line of its own, and is no failure of the run.
check_left() { # what, exit code, exit code expected, folder
    local what=$1 folder=$4 without
    without=$(grep -c '^trainer: .*; the training goes on without [a-z]*$' err)
    sed -i '/^trainer: .*; the training goes on without [a-z]*$/d' err
    [ "$without" -le 2 ] || fail "$what: $without lines of outputs"
    if [ "$2" -eq 0 ] && [ "$without" -gt 0 ] && [ ! -s err ]; then
        check_whole "$what" "$folder"
        return
    fi
    [ "$2" -eq "$3" ] || fail "$what: exit code $2, expected $3: $(cat err)"
    [ ! -s out ] || fail "$what: wrote to standard output: $(cat out)"
    if [ "$(wc -l <err)" -ne 1 ] || ! grep -q '^trainer: ' err; then
        fail "$what: $(cat err), expected one line"
    fi
    check_whole "$what" "$folder"
}

check_whole() { # what, folder
    local file
    file=$(find "$2" -name '*.part' 2>/dev/null)
    [ -z "$file" ] || fail "$1: left $file"
    for file in "$2"/checkpoint/state.safetensors "$2"/model.safetensors; do
        [ ! -e "$file" ] || "$TRAINER" evaluate --checkpoint="$file" >/dev/null 2>said ||
            fail "$1: left $file: $(cat said)"
    done
    for file in "$2"/steps.csv* "$2"/epochs.csv*; do
        [ ! -s "$file" ] || whole_rows "$file" || fail "$1: $file: not all rows are whole"
    done
    [ ! -e "$2/summary.json" ] || [ "$(tail -c 2 "$2/summary.json")" = "}" ] ||
        fail "$1: half a $2/summary.json"
}

whole_rows() { # file
    [ -z "$(tail -c 1 "$1")" ] && awk -F, 'NR == 1 { cells = NF } NF != cells { exit 1 }' "$1"
}
# A new run, with checkpoints on its way, and one that goes on.
new_run() { rm -rf new; }
resumed_run() { rm -rf resumed && cp -r start resumed; }
# shellcheck disable=SC2034 # by their names
new=("${small[@]}" --checkpoint-every=0.001 --out=new) resumed=(--quiet --resume=resumed --devices=cpu:0,cpu:1
    --threads=1 --epochs=2)

# A limit counts for standard error as well, but not for a pipe. What the thread sanitizer writes before main
# begins is killed where it may write nothing; a byte will do.
least=0
! grep -q -e '-fsanitize=[^ ]*thread' "$BUILD/flags" || least=1
fail_sizes() { # new|resumed|bare
    local kind=$1 bytes step code tries=0 options
    step=$((25 * $(stride 8 20)))
    declare -n options=$kind
    for ((bytes = least; bytes < 100000; bytes += step)); do
        "${kind}_run"
        prlimit --fsize="$bytes" "$TRAINER" "${options[@]}" 2>&1 >/dev/null | cat >err
        code=${PIPESTATUS[0]}
        [ "$code" -ne 0 ] || [ -s err ] || break
        tries=$((tries + 1))
        check_left "$kind run, files of $bytes bytes at most" "$code" 3 "$kind"
    done
    [ "$code" -eq 0 ] || fail "$kind run with files as large as they come: exit code $code: $(cat err)"
    check_whole "$kind run with files of $bytes bytes at most" "$kind"
    echo "$kind run: $tries limits below $bytes bytes"
}
bare_run() { rm -rf bare; }
# shellcheck disable=SC2034 # by its name
bare=("${small[@]}" --log-every=0 --out=bare)
: >out
fail_sizes new
fail_sizes resumed
fail_sizes bare

# --- memory ---
yes 1 | head -n 4 | paste -sd, >flower.csv

# A request that failed and was not missed would be followed by one that is.
fail_requests() { # folder that it may write to, command...
    local folder=$1 n code failed=0 fine=0 step
    shift
    step=$(stride 3 29)
    for ((n = 1; n < 3000 && fine < 5; n += step)); do
        [ "$folder" != new ] || new_run
        [ "$folder" != resumed ] || resumed_run
        TRAINER_FAIL_ALLOCATION=$n "$TRAINER" "$@" >out 2>err
        code=$?
        if [ $code -eq 0 ]; then
            fine=$((fine + 1))
            continue
        fi
        [ $fine -eq 0 ] || fail "trainer $*: request $((n - step)) failed, and nobody said so"
        fine=0 failed=$((failed + 1))
        check_left "trainer $*: request $n" $code 4 "$folder"
        grep -q '^trainer: .*memory' err || fail "trainer $*: request $n: $(cat err)"
    done
    [ $fine -eq 5 ] || fail "trainer $*: $n requests, and no end"
    [ $failed -ge 1 ] || fail "trainer $*: no request for memory failed"
    echo "trainer $1: $failed requests failed"
}
fail_requests new "${small[@]}" --out=new
fail_requests resumed "${resumed[@]}"
fail_requests none evaluate --checkpoint=start
fail_requests none predict --checkpoint=start flower.csv
fail_requests none describe --model=softmax --input=4
fail_requests none list
fail_requests none devices

# --- each call; last, because not every kernel asks ---
own=0 # that the thread sanitizer makes before main begins: a listing writes nothing
"$fail_nth" report 500 once "$TRAINER" list >out 2>err && read -r own what <report
fail_calls() { # new|resumed, once|full
    local kind=$1 how=$2 n calls what code failed=0 step options
    step=$([ $how = once ] && stride 1 9 || stride 3 13)
    declare -n options=$kind
    for ((n = own + 1; n < 500; n += step)); do
        "${kind}_run"
        "$fail_nth" report "$n" "$how" "$TRAINER" "${options[@]}" >out 2>err
        code=$?
        if [ $code -eq 77 ]; then
            cat err
            [ $failures -eq 0 ] && exit 77
            exit 1
        fi
        read -r calls what <report
        [ "$calls" -ge "$n" ] || break
        failed=$((failed + 1))
        if [ "$what" = folder ] && [ $code -eq 0 ]; then # it was there already
            check_whole "$kind run, call $n fails ($how)" $kind
        else
            check_left "$kind run, call $n fails ($how)" $code 3 $kind
        fi
    done
    [ $code -eq 0 ] || fail "$kind run of which no call failed: exit code $code: $(cat err)"
    check_whole "$kind run of which no call failed" $kind
    [ $((failed * step)) -ge 20 ] || fail "$kind run: only $failed calls failed"
    echo "$kind run, $how: each of $((failed * step)) calls failed, every $step tried"
}
for how in once full; do
    fail_calls new $how
    fail_calls resumed $how
done

[ $failures -eq 0 ]
