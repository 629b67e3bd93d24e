#!/bin/bash
# shellcheck disable=SC2086 # several words
# A run that diverges ends with code 6, and its last good checkpoint stays; one that has learnt nothing
# says so.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0"

fails() { # code, words, options...
    local code=$1 words=$2
    shift 2
    "$TRAINER" "$@" >out 2>err
    [ $? -eq "$code" ] || fail "$*: expected exit code $code: $(cat out err)"
    grep -Eq "$words" err || fail "$*: expected $words: $(cat err)"
}

# --- rates that are far too high: whatever becomes of the loss, it is no success ---
for rate in 1e4 1e6; do
    for strategy in sync async-lockfree; do
        fails 6 '^trainer: .*(a smaller rate|not finite|nan|infinite)' $small --epochs=20 \
            --optimizer=sgd:rate=$rate --strategy=$strategy --out=high --replace
    done
done
fails 6 '^trainer: training diverged: the loss was .* in the first steps and is ' $small --epochs=1 \
    --optimizer=sgd:rate=1e6 --out=short

# --- what was good before stays, and is named ---
"$TRAINER" --quiet $small --epochs=2 --optimizer=sgd:rate=0.1 --out=good >out 2>err ||
    fail "a good run: $(cat err)"
before=$(cksum <good/checkpoint/state.safetensors)
fails 6 '; go on from update 40 with: trainer --resume=good$' \
    --resume=good --optimizer=sgd:rate=1e6 --epochs=20
[ "$(cksum <good/checkpoint/state.safetensors)" = "$before" ] ||
    fail "a run that diverged replaced its last good checkpoint"

fails 6 '; good, which it went on from, is as it was$' --resume=good --optimizer=sgd:rate=1e6 --epochs=20 \
    --out=elsewhere
# The rate rises with the warm-up; each epoch until then is the best one.
fails 6 '; its best epoch, [0-9]+, is in risen/checkpoint/best$' $small \
    --model=mlp:hidden=20,activation=relu --epochs=100 --validation=0.1 \
    --optimizer=sgd:rate=1e5 --schedule=cosine:warmup=0.99 --out=risen
[ -s risen/checkpoint/best/state.safetensors ] || fail "no best epoch: $(find risen)"

# --- the logs of a run that left no checkpoint stay beside those of the next one ---
rows=$(wc -l <short/steps.csv)
"$TRAINER" --quiet $small --epochs=1 --out=short >out 2>err || fail "a run after one that failed: $(cat err)"
[ "$(wc -l <short/steps.csv.1)" -eq "$rows" ] || fail "the logs of a run that failed are gone: $(ls short)"

# --- weights that are not finite are no network: refused where they are read, with the name of the first ---
"$TRAINER" --quiet $small --epochs=1 --out=bad >out 2>err || fail "a run: $(cat err)"
python3 - bad <<'PYTHON'
import json, struct, sys, zlib
for name in ("checkpoint/state.safetensors", "model.safetensors"):
    path = f"{sys.argv[1]}/{name}"
    data = bytearray(open(path, "rb").read())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    begin = 8 + length + header["dense1/bias"]["data_offsets"][0]
    data[begin:begin + 4] = struct.pack("<f", float("nan"))
    digits = data.index(b'"checksum":"') + len('"checksum":"')
    data[digits:digits + 8] = b"00000000"
    data[digits:digits + 8] = b"%08x" % zlib.crc32(data)
    open(path, "wb").write(data)
PYTHON
printf '0,%.0s' $(seq 63) >row.csv
echo 0 >>row.csv
for command in "evaluate --checkpoint=bad" "predict --checkpoint=bad row.csv" "--resume=bad --epochs=2" \
    "$small --weights=bad/model.safetensors --out=new"; do
    fails 3 'dense1/bias has numbers that are not finite: its training diverged$' $command
done

# --- nothing was learnt: said at the end, with what to try ---
"$TRAINER" $small --epochs=5 --optimizer=sgd:rate=1e-9 --out=nothing >out 2>err ||
    fail "a run that learns nothing: $(cat err)"
grep -q '^trainer: nothing was learnt: .* try another --optimizer or rate (now sgd:rate=1e-9), '\
'--model=mlp:hidden=20,activation=relu, or more --epochs$' \
    err || fail "a run that learnt nothing said: $(cat err)"
"$TRAINER" $small --epochs=6 --optimizer=sgd:rate=30 --out=risen >out 2>err ||
    fail "a run whose loss goes up: $(cat err)"
grep -q '^trainer: nothing was learnt: .*; the loss is [0-9.]*, where guessing has 2.30: a smaller rate '\
'than sgd:rate=30 may help$' err || fail "a run whose loss went up said: $(cat err)"
for i in $(seq 400); do echo "$((i % 9)),$((i * 7 % 11)),$((i * i % 23))"; done >values.csv
"$TRAINER" --dataset=csv:file=values.csv,target=3 --epochs=20 --devices=cpu:0 --optimizer=sgd:rate=1e-9 \
    --out=values >out 2>err || fail "values that nobody learns: $(cat err)"
grep -q 'nothing was learnt: R2 on the test part is .*, and a constant prediction scores 0; try another ' err ||
    fail "values that nobody learns: $(cat err)"
"$TRAINER" $small --epochs=1 --optimizer=sgd:rate=1e-9 --out=few >out 2>err ||
    fail "a run of few updates: $(cat err)"
! grep -q 'nothing was learnt' err || fail "a run of few updates said: $(cat err)"
for i in $(seq 100); do
    echo "$((i % 5 == 0)),$((i % 7)),$([ $((i % 5)) -eq 0 ] && echo rare || echo usual)"
done >table.csv
"$TRAINER" --dataset=csv:file=table.csv --epochs=100 --quiet --devices=cpu:0 --out=sure >out 2>err ||
    fail "a table of 100 rows: $(cat err)"
{ grep -qx 'Test-Accuracy: 1.0000' out && [ ! -s err ]; } ||
    fail "20 rows of which all are right: $(cat out err)"
"$TRAINER" $small --epochs=20 --out=something >out 2>err || fail "a run that learns: $(cat err)"
! grep -q 'nothing was learnt' err || fail "a run that learnt said: $(cat err)"

[ $failures -eq 0 ]
