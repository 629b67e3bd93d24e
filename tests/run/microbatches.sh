#!/bin/bash
# --microbatches: a batch in M parts on one device trains, bit for bit, as M devices with a part each do under
# sync; so do processes; under every strategy; from a checkpoint; when a worker is lost. It takes the memory
# of a part. A batch that cannot be divided is refused, as are processes that differ.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

few="--dataset=digits:take=192 --model=mlp:hidden=20 --threads=1 --quiet --replace"

# --- as many devices ---
for m in 2 4; do
    devices=cpu:0,cpu:1
    [ $m -eq 2 ] || devices+=,cpu:2,cpu:3
    run 0 $few --batch=8 --devices=$devices --epochs=3 --out=apart
    for more in "" "--prefetch=2"; do
        run 0 $few --batch=$((8 * m)) --microbatches=$m --devices=cpu:0 --epochs=3 $more --out=parts
        same_weights "$m micro-batches $more" apart parts
    done
done
grep -q '"microbatches": 4' parts/summary.json || fail "summary.json: $(grep batch parts/summary.json)"

# --- every strategy, with statistics and random numbers ---
network='layers:conv 4 3x3 same; batch_norm; relu; flatten; dense 16 relu; dropout 0.2; dense'
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    run 0 $few --model="$network" --strategy="$strategy" --batch=16 --microbatches=4 \
        --devices=cpu:0,cpu:1,cpu:2 --epochs=3 --out=one
    python3 -c 'import json; s = json.load(open("one/summary.json")); exit(
        s["examples"] != 576 or not s["final_cost"] < s["first_cost"])' ||
        fail "$strategy: $(grep -E 'examples"|_cost' one/summary.json)"
done

# --- from a checkpoint ---
run 0 $few --batch=16 --microbatches=4 --devices=cpu:0 --epochs=4 --out=whole
run 0 $few --batch=16 --microbatches=4 --devices=cpu:0 --epochs=2 --out=half
run 0 --resume=half --epochs=4 --devices=cpu:0 --threads=1 --quiet
same_weights "--resume" whole half
refused_with 2 '--microbatches=3: found --batch=16, expected a multiple of 3' \
    --resume=half --epochs=5 --microbatches=3
refused_with 2 '--microbatches=4: found --batch=18, expected a multiple of 4' \
    --resume=half --epochs=5 --batch=18
refused_with 2 '--microbatches=5: found --batch=32, expected a multiple of 5' --microbatches=5
python3 - <<'PYTHON'
import zlib
data = bytearray(open("half/checkpoint/state.safetensors", "rb").read().replace(b'"microbatches":"4"',
                                                                                b'"microbatches":"7"'))
at = data.index(b'"checksum":"') + len('"checksum":"')
data[at:at + 8] = b"00000000"
data[at:at + 8] = b"%08x" % zlib.crc32(data)
open("changed.safetensors", "wb").write(data)
PYTHON
refused_with 3 'changed.safetensors: --microbatches=7: found --batch=16, expected a multiple of 7' \
    --resume=changed.safetensors --epochs=5 --out=new

# --- a worker that is lost: with all parts of its batch ---
run 0 $few --batch=16 --microbatches=4 --devices=cpu:0,cpu:1,cpu:2 --epochs=3 --on-loss=continue \
    --fail=worker:1@step:2 --out=lost
[ "$(grep -cE '^  "(examples": 560|lost_batches": 1),$' lost/summary.json)" -eq 2 ] ||
    fail "a loss: $(grep -E '^  "(examples|lost_batches)"' lost/summary.json)"

# --- memory: what is computed takes what a batch of the part's size takes ---
arena() { # options...
    run 0 --dataset=digits:take=512 --model=cnn --devices=cpu:0 --epochs=1 \
        --explain --quiet --replace --out=explained "$@"
    grep -o 'arena of .* MB' out
}
small=$(arena --batch=32) parts=$(arena --batch=256 --microbatches=8) large=$(arena --batch=256)
[ "$parts" = "$small" ] && [ "$parts" != "$large" ] ||
    fail "256 examples in 8 parts: $parts, 32: $small, 256: $large"
run 0 --dataset=digits:take=512 --model=cnn --devices=cpu:0 --epochs=1 \
    --explain --quiet --replace --out=explained --batch=256 --microbatches=8
grep -qx 'cpu:0, batch 256, of which one of 8 micro-batches of 32:' out || fail "--explain: $(head -n 3 out)"

# --- processes ---
run 0 $few --batch=16 --microbatches=4 --devices=cpu:0,cpu:1 --epochs=2 --out=alone
for servers in 0 1; do
    new_cluster $servers 2
    rm -rf pair
    [ $servers -eq 0 ] ||
        start ps0 "$TRAINER" --job=ps --task=0 $hosts $few --batch=16 --microbatches=4 --epochs=2 --out=pair
    for w in 0 1; do
        options="--job=worker --task=$w --devices=cpu:0 --threads=1 --quiet"
        [ $servers -eq 1 ] || options+=" ${few/--quiet/} --batch=16 --microbatches=4 --epochs=2 --out=pair"
        start w$w "$TRAINER" $hosts $options
    done
    ends 0 w0 w1
    [ $servers -eq 0 ] || ends 0 ps0
    same_weights "$servers parameter servers" alone pair
done
new_cluster 0 2
start w0 "$TRAINER" $hosts --job=worker --task=0 --devices=cpu:0 $few --batch=16 --microbatches=4 --out=pair \
    --start-timeout=5
start w1 "$TRAINER" $hosts --job=worker --task=1 --devices=cpu:0 $few --batch=16 --microbatches=2 --out=pair \
    --start-timeout=5
ends 5 w0
finish w1
[ $code -ne 0 ] || fail "a worker with other micro-batches took part"
# Whoever refused first.
grep -qh microbatches w0.err w1.err || fail "other micro-batches: $(tail -n 3 w0.err w1.err)"
[ $failures -eq 0 ]
