#!/bin/bash
# shellcheck disable=SC2086 # several words
# The validation part, the best epoch by it, and the early end.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1 \
    --strategy=sync --optimizer=momentum:rate=0.1"

cat >look.py <<'PYTHON'
import csv, hashlib, json, struct, sys

def parts(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return texts, {n: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
                   for n, e in header.items()}

what, path, *rest = sys.argv[1:]
if what == "weights":
    print(hashlib.sha256(repr(sorted((n, t) for n, t in parts(path)[1].items()
                                     if ":" not in n)).encode()).hexdigest())
if what == "texts":
    print(*[parts(path)[0].get(name, "none") for name in rest])
if what == "best": # by epochs.csv: the first of the highest accuracy, of those the one with the least loss
    rows = list(csv.DictReader(open(path)))
    best = None
    for row in rows:
        key = (float(row["validation_accuracy"]), -float(row["validation_loss"]))
        if best is None or key > best[0]: best = (key, int(row["epoch"]))
    print(best[1], len(rows))
if what == "column":
    print(*[row[rest[0]] for row in csv.DictReader(open(path))])
PYTHON
look() { python3 look.py "$@"; }

train() { # options...; what it prints is in out, its first lines unfolded
    "$TRAINER" "$@" >printed 2>err || fail "trainer $*: exit code $?: $(cat err)"
    sed ':a; N; $!ba; s/\n  */ /g' printed >out
}

# --- held out: counted, judged by, never trained on ---
train $small --epochs=3 --validation=0.25 --out=held
grep -q '240 train, 80 validation, 360 test examples' out || fail "the first lines: $(cat out)"
[ "$(look texts held/checkpoint/state.safetensors validation examples)" = "0.25 720" ] ||
    fail "3 epochs of 240 examples: $(look texts held/checkpoint/state.safetensors validation examples)"
! look column held/epochs.csv validation_accuracy | grep -q nan ||
    fail "no validation accuracy: $(cat held/epochs.csv)"
train $small --epochs=3 --out=plain
[ "$(look column plain/epochs.csv validation_accuracy)" = "nan nan nan" ] ||
    fail "a validation accuracy without one: $(cat plain/epochs.csv)"
[ ! -e plain/checkpoint/best ] || fail "a best epoch without a validation part"
train $small --epochs=3 --validation=0.25 --out=other --strategy=async-lockfree --devices=cpu:0
# what evaluate says of the parts is what the run saw; without a validation part there is none
for part in validation test; do
    train evaluate --checkpoint=held --part=$part
    awk -F, -v OFS= "NR == 4 { printf \"%.4f\\n\", \$$([ $part = validation ] && echo 8 || echo 5) }" \
        held/epochs.csv >wanted
    [ "$(sed -n 's/.*-Accuracy: //p' out)" = "$(cat wanted)" ] ||
        fail "evaluate --part=$part: $(cat out), expected $(cat wanted)"
done
train evaluate --checkpoint=held --part=train
grep -qx 'Examples: 240' out || fail "evaluate --part=train counts what was held out: $(cat out)"
"$TRAINER" evaluate --checkpoint=plain --part=validation >out 2>err
[ $? -eq 2 ] && grep -q 'the training held none out' err ||
    fail "evaluate of a part that is not there: $(cat err)"

# more is held out now: what the epochs are judged by is not new to the network, and that is said
for share in 0.5 0.25 0.1; do
    train --resume=held --validation=$share --epochs=4 --out=more-$share
    said=$(grep -c "held held out 0.25 for validation, and $share is held out now" err)
    [ "$said" = $([ $share = 0.5 ] && echo 1 || echo 0) ] || fail "--validation=$share: $(cat err)"
done

# --- the best epoch: that of epochs.csv, kept with all that a checkpoint has ---
train $small --epochs=12 --validation=0.25 --out=best
read -r epoch epochs <<<"$(look best best/epochs.csv)"
[ "$epochs" = 12 ] || fail "12 epochs: $(cat best/epochs.csv)"
state=best/checkpoint/best/state.safetensors
[ "$(look texts $state best_epoch epochs_done)" = "$epoch $epoch" ] ||
    fail "the best epoch is $epoch: $(look texts $state best_epoch epochs_done)"
grep -q "best by validation: epoch $epoch, .* (test .*), in best/checkpoint/best" out ||
    fail "the best epoch is not said: $(cat out)"
train $small --epochs=$epoch --validation=0.25 --out=until
[ "$(look weights $state)" = "$(look weights until/checkpoint/state.safetensors)" ] ||
    fail "the best checkpoint has not the weights of epoch $epoch"
train evaluate --checkpoint=best/checkpoint/best
"$TRAINER" --resume=best/checkpoint/best >out 2>err
[ $? -eq 2 ] && grep -q 'expected --out=FOLDER' err || fail "going on in checkpoint/best: $(cat err)"
train --resume=best/checkpoint/best --out=again --epochs=12 --devices=cpu:0,cpu:1 --threads=1
[ "$(look weights again/checkpoint/state.safetensors)" = \
    "$(look weights best/checkpoint/state.safetensors)" ] ||
    fail "going on from the best epoch ends elsewhere"

"$TRAINER" $small --early-stop=2 --validation=0 --out=none >out 2>err
[ $? -eq 2 ] &&
    grep -qx 'trainer: --early-stop=2: found --validation=0, expected a part to judge the epochs by' err ||
    fail "--early-stop without a validation part: $(cat err)"
"$TRAINER" --resume=best --epochs=2 --out=less >out 2>err
[ $? -eq 2 ] && grep -qx 'trainer: --epochs=2: best has done 12 epochs, expected as many or more' err ||
    fail "fewer epochs elsewhere: $(cat err)"

# --- the early end: as many epochs after the best as were asked for, also when it is interrupted by --epochs
# and goes on ---
train $small --epochs=200 --early-stop=3 --out=early
grep -q '288 train, 32 validation' out || fail "--early-stop holds out a tenth: $(cat out)"
read -r epoch epochs <<<"$(look best early/epochs.csv)"
[ "$epochs" = $((epoch + 3)) ] || fail "the best of $epochs epochs is $epoch: $(cat early/epochs.csv)"
grep -q "ended early; best by validation: epoch $epoch," out || fail "the early end is not said: $(cat out)"
before=$(look weights early/model.safetensors)
train --resume=early --devices=cpu:0,cpu:1 --threads=1
grep -q 'epochs ago, and --early-stop=' err || fail "an early end goes on: $(cat err)"
[ "$(look weights early/model.safetensors)" = "$before" ] || fail "a run that ended early changed its weights"
train $small --epochs=$((epoch + 1)) --early-stop=3 --out=two
train --resume=two --epochs=200 --devices=cpu:0,cpu:1 --threads=1
[ "$(look weights two/model.safetensors)" = "$before" ] || fail "an early end in two parts is another one"

[ $failures -eq 0 ]
