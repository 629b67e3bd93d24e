#!/bin/bash
# shellcheck disable=SC2086 # several words
# A run that fails keeps what it has learnt: until the last step that all took, the error says so, and going
# on from there leads, under sync, to the bits of the run that did not fail. An earlier run that was to be
# replaced stays until there is something new.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--quiet --dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --threads=1 \
    --optimizer=momentum:rate=0.1"
two="--devices=cpu:0,cpu:1 --threads=1"

cat >look.py <<'PYTHON'
import csv, hashlib, json, struct, sys

what, folder, *rest = sys.argv[1:]
data = open(f"{folder}/checkpoint/state.safetensors", "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
texts = header.pop("__metadata__")
if what == "weights":
    print(hashlib.sha256(
        repr(sorted((n, data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]])
                    for n, e in header.items())).encode()).hexdigest())
if what == "texts":
    print(*[texts.get(name, "none") for name in rest])
if what == "rows":
    print(len(list(csv.DictReader(open(f"{folder}/steps.csv")))))
PYTHON
look() { python3 look.py "$@"; }

fails() { # code, words, options...
    local code=$1 words=$2
    shift 2
    "$TRAINER" "$@" >out 2>err
    [ $? -eq "$code" ] || fail "$*: expected exit code $code: $(cat err)"
    grep -Eq "$words" err || fail "$*: expected $words: $(cat err)"
}
tells_time() { [ "$(grep -c ' examples/s, computing takes [0-9]* % of the time' out)" -eq "$1" ]; }

# --- sync: the last round that all took ---
"$TRAINER" $small --epochs=6 --out=whole $two >out 2>err || fail "the whole run: $(cat err)"
for step in 2 25 47; do
    fails 4 "^trainer: worker 1 .* failed at step $step, as --fail asked; go on from update $((step - 1)) \
with: trainer --resume=broken$" \
        $small --epochs=6 --out=broken $two --fail=worker:1@step:$step --checkpoint-every=0 --replace
    [ "$(look texts broken position steps version)" = \
        "$((2 * (step - 1))) $((2 * (step - 1))) $((step - 1))" ] ||
        fail "failed at step $step: position, steps and version are $(look texts broken position steps \
            version)"
    [ "$(look rows broken)" = $((2 * (step - 1))) ] || fail "failed at step $step: $(look rows broken) rows"
    "$TRAINER" --quiet --resume=broken $two >out 2>err || fail "going on from step $step: $(cat err)"
    [ "$(look weights broken)" = "$(look weights whole)" ] ||
        fail "failed at step $step: other weights than the run that did not fail"
done

# --- a worker that falls silent, and every strategy ---
fails 5 'gave up after 1 s.*; go on from update 9 with: trainer --resume=silent$' \
    $small --epochs=6 --out=silent $two --stall=worker:1@step:10 --timeout=1 --checkpoint-every=0
"$TRAINER" --quiet --resume=silent $two >out 2>err || fail "going on after a silence: $(cat err)"
[ "$(look weights silent)" = "$(look weights whole)" ] ||
    fail "a silence: other weights than the run that did not fail"
for strategy in $("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    step=5 # of the faster one of the two, which comes to it, when two gradients may be under way
    [ $strategy != local-sgd ] || step=30 # where nothing is learnt before the first average
    fails 4 '; go on from update [0-9]+ with: trainer --resume=one( --slow=cpu:0=20x)?$' $small --epochs=6 --out=one \
        --replace $two --strategy=$strategy --on-loss=stop --slow=cpu:0=20x --fail=worker:1@step:$step \
        --checkpoint-every=0
    read -r steps position update <<<"$(look texts one steps position version)"
    grep -q "go on from update $update with" err ||
        fail "$strategy: the checkpoint is of update $update: $(cat err)"
    [ "$steps" -ge 1 ] && [ "$position" -eq "$steps" ] || fail "$strategy: $steps steps, position $position"
    "$TRAINER" --quiet --resume=one $two >out 2>err || fail "$strategy: going on: $(cat err)"
done

# --- what one lost worker took along is computed again, once the run has failed without the other ---
for strategy in async-apply ssp; do
    fails 4 '; go on from update [0-9]+ with: trainer --resume=both$' $small --epochs=2 --out=both --replace \
        $two --strategy=$strategy --on-loss=continue --fail=worker:0@step:9,worker:1@step:5
    "$TRAINER" --quiet --resume=both $two >out 2>err || fail "$strategy, both lost: going on: $(cat err)"
    [ "$(look texts both position steps)" = '40 40' ] ||
        fail "$strategy, both lost: position and steps are $(look texts both position steps)"
done

# --- where the time went, also of a run that fails; not where no step was taken ---
fails 4 'go on from update 8' ${small#--quiet} --epochs=6 --out=told $two --fail=worker:1@step:9 \
    --checkpoint-every=0
tells_time 1 && tail -n 1 out | grep -q ' examples/s, ' || fail "a run that fails ends with: $(tail -n 1 out)"
fails 4 'there is no checkpoint yet' ${small#--quiet} --epochs=6 --out=untold $two --fail=worker:1@step:1
tells_time 0 || fail "a run that has not stepped ends with: $(tail -n 1 out)"

# --- nothing was learnt yet: there is nothing to keep ---
fails 4 'there is no checkpoint yet$' $small --epochs=6 --out=first $two --fail=worker:0@step:1 \
    --checkpoint-every=0
[ ! -e first/checkpoint ] || fail "a checkpoint of nothing: $(find first)"
fails 4 'there is no checkpoint yet \(--checkpoint-every=SECONDS\)$' $small --epochs=6 --out=second $two \
    --fail=worker:0@step:1

# --- an earlier run stays until the new one has a checkpoint ---
state() { find earlier -type f -exec cksum {} + | sort; }
"$TRAINER" $small --epochs=2 --out=earlier --devices=cpu:0 >out 2>err || fail "the earlier run: $(cat err)"
fails 3 "^trainer: earlier has a run \(2 of 2 epochs, [0-9.]+ %\): --resume=earlier goes on with it, \
--replace starts anew$" \
    $small --epochs=2 --out=earlier --devices=cpu:0
before=$(state)
fails 4 '; the earlier run in earlier stays$' $small --epochs=6 --out=earlier --replace $two \
    --fail=worker:0@step:1 --checkpoint-every=0
[ "$(state)" = "$before" ] ||
    fail "a run that came to nothing changed the one that it was to replace: $(find earlier)"
"$TRAINER" $small --epochs=100000 --out=earlier --replace --devices=cpu:0 --checkpoint-every=0 >out 2>err &
child=$!
until [ "$(wc -l 2>/dev/null <earlier/epochs.csv || echo 0)" -gt 3 ]; do sleep 0.02; done
[ -e earlier/summary.json ] && [ -e earlier/model.safetensors ] ||
    fail "the earlier run is gone before the new one has a checkpoint"
kill -9 $child
wait $child 2>/dev/null
child=
"$TRAINER" --quiet --resume=earlier --epochs=3 --devices=cpu:0 >out 2>err ||
    fail "the earlier run after a kill: $(cat err)"
[ "$(look texts earlier position)" = 60 ] ||
    fail "the earlier run did not go on after a kill: $(look texts earlier position)"
"$TRAINER" $small --epochs=1 --out=earlier --replace --devices=cpu:0 >out 2>err ||
    fail "--replace: $(cat err)"
[ "$(look texts earlier position)" = 20 ] || fail "--replace did not replace"
[ -z "$(find earlier -name '*.replaced')" ] || fail "--replace left $(find earlier -name '*.replaced')"

[ $failures -eq 0 ]
