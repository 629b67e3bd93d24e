#!/bin/bash
# Going on from a checkpoint. Under sync a run that was stopped again and again, at moments that nobody
# chose, must end with the bits of the run that was left alone; with another strategy, number of workers,
# optimizer, batch or sharding no example may be lost or seen twice.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

cat >look.py <<'PYTHON'
import csv, hashlib, json, struct, sys

def parts(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return texts, {name: (e["shape"],
                          data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]])
                   for name, e in header.items()}

what, path, *names = sys.argv[1:]
if what == "weights":
    print(hashlib.sha256(repr(sorted(parts(path)[1].items())).encode()).hexdigest())
if what == "texts":
    print(*[parts(path)[0][name] for name in names])
if what == "summary":
    print(*[json.load(open(path))[name] for name in names])
if what == "whole": # steps.csv and epochs.csv go through all parts of the run as if it had been left alone
    summary = json.load(open(f"{path}/summary.json"))
    rows = list(csv.DictReader(open(f"{path}/steps.csv")))
    epochs = list(csv.DictReader(open(f"{path}/epochs.csv")))
    assert len(rows) == summary["steps"], f"{len(rows)} rows of {summary['steps']} steps"
    assert sum(int(row["examples"]) for row in rows) == summary["examples"], "rows of other examples"
    for worker in {row["worker"] for row in rows}:
        own = [row for row in rows if row["worker"] == worker]
        assert [int(row["step"]) for row in own] == list(range(1, len(own) + 1)), \
            f"worker {worker}: steps {[row['step'] for row in own]}"
        for column in "time_s", "update", "epoch":
            values = [float(row[column]) for row in own]
            assert values == sorted(values), f"worker {worker}: {column} goes back: {values}"
    assert max(int(row["update"]) for row in rows) == summary["updates"], summary["updates"]
    assert [int(row["epoch"]) for row in epochs] == list(range(1, len(epochs) + 1)), \
        [row["epoch"] for row in epochs]
    moments = [float(row["time_s"]) for row in epochs]
    assert moments == sorted(moments) and abs(moments[-1] - summary["train_seconds"]) < 1e-5 and \
        len(epochs) == int(names[0]), moments
if what == "curve": # the epochs of both runs have the same losses, wherever one of them was stopped
    curves = [[(row["epoch"], float(row["train_loss"])) for row in csv.DictReader(open(f"{run}/epochs.csv"))]
              for run in (path, names[0])]
    for one, other in zip(*curves, strict=True):
        assert one[0] == other[0] and abs(one[1] - other[1]) <= 1e-5 * abs(other[1]), \
            f"epoch {one[0]}: {one[1]}, expected {other[1]}"
PYTHON
weights() { python3 look.py weights "$1/model.safetensors"; }
texts() { python3 look.py texts "$1/checkpoint/state.safetensors" "${@:2}"; }
summary() { python3 look.py summary "$1/summary.json" "${@:2}"; }
whole() { # folder, epochs
    python3 look.py whole "$1" "$2" 2>said ||
        fail "$1: its tables are not those of one run: $(tail -n 1 said)"
}

train() { # options...
    "$TRAINER" --quiet "$@" >out 2>err || fail "trainer $*: exit code $?: $(cat err)"
}

start_and_stop() { # folder, hundredths of a second, options...; sets $code
    local folder=$1 pause=$2 tries=0 rows
    shift 2
    rows=$(wc -l 2>/dev/null <"$folder/steps.csv" || echo 1)
    $heeding "$TRAINER" --quiet "$@" >out 2>err &
    child=$!
    until [ "$(wc -l 2>/dev/null <"$folder/steps.csv" || echo 0)" -gt "$rows" ] ||
        ! kill -0 "$child" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || break
        sleep 0.02
    done
    sleep "$(printf '0.%02d' "$pause")"
    kill -INT "$child" 2>/dev/null
    wait "$child"
    code=$?
    child=
}

# --- stopped and gone on, under sync ---
middle=0 stops=0
# Epochs longer than the program takes to notice an interrupt, so that most stops fall into the middle of one.
big="--model=mlp:hidden=1200 --batch=2 --checkpoint-every=0"
grep -qa __tsan_init "$TRAINER" &&
    big="--model=mlp:hidden=20 --dataset=digits:take=320 --batch=4 --checkpoint-every=0"

stopped_again_and_again() { # name, epochs, devices, options...
    local name=$1 epochs=$2 devices=$3 tries wanted shards examples batch position
    shift 3
    train --out="alone-$name" --devices="$devices" --epochs="$epochs" "$@"
    wanted=$(weights "alone-$name")
    start_and_stop "$name" $((RANDOM % 10)) --out="$name" --devices="$devices" --epochs="$epochs" "$@"
    for ((tries = 0; code == 130 && tries < 3; tries++)); do
        stops=$((stops + 1))
        read -r position batch examples <<<"$(texts "$name" position batch examples)"
        [ $((position * batch)) -eq "$examples" ] ||
            fail "$name: $examples examples at batch $position of $batch"
        [ "$(summary "$name" interrupted examples)" = "True $examples" ] ||
            fail "$name: $(summary "$name" interrupted examples), expected True $examples"
        [ $((examples % $(epoch_examples "$@") < batch * 3)) -eq 1 ] || middle=$((middle + 1))
        [ $((tries % 2)) -eq 0 ] && shards="--shards=3 --shard-by=round-robin" || shards=
        # shellcheck disable=SC2086 # several words, or none
        start_and_stop "$name" $((RANDOM % 12)) --resume="$name" --strategy=sync --devices="$devices" $shards
    done
    [ "$code" -eq 0 ] || [ "$code" -eq 130 ] || fail "$name: exit code $code: $(cat err)"
    [ "$code" -eq 0 ] || train --resume="$name" --strategy=sync --devices="$devices"
    [ "$(weights "$name")" = "$wanted" ] ||
        fail "$name: stopped $stops times in all, not the weights of the run left alone"
    [ "$(summary "$name" examples)" = "$(summary "alone-$name" examples)" ] ||
        fail "$name: $(summary "$name" examples) examples, expected $(summary "alone-$name" examples)"
    whole "$name" "$epochs"
    python3 look.py curve "$name" "alone-$name" 2>said ||
        fail "$name: another curve than that of the run left alone: $(tail -n 1 said)"
    [ -z "$(find "$name" -name '*.csv.*')" ] ||
        fail "$name: rows of nothing that was done again: $(find "$name" -name '*.csv.*')"
}

epoch_examples() { [[ "$*" == *take=320* ]] && echo 320 || echo 1437; }

# As many epochs as take somewhat less than a second here.
# shellcheck disable=SC2086
train --out=measure --devices=cpu:0,cpu:1 --threads=1 --epochs=2 $big
epochs=$(python3 -c "import sys; print(max(4, min(40, round(1.4 / max(float(sys.argv[1]), 0.05)))))" \
    "$(summary measure train_seconds)")
# shellcheck disable=SC2086
stopped_again_and_again momentum "$epochs" cpu:0,cpu:1 --threads=1 $big --schedule=cosine:warmup=0.1
# Few rounds: more workers than cores wait long for each other on a machine that others use too.
# shellcheck disable=SC2086
stopped_again_and_again adam $((epochs / 2)) cpu:0,cpu:1,cpu:2 --threads=1 $big --batch=16 \
    --optimizer=adam --clip=0.05 --decay=0.001 --data-sharding=all
# shellcheck disable=SC2086
stopped_again_and_again split "$epochs" cpu:0,cpu:1 --threads=1 $big --optimizer=nesterov \
    --data-sharding=split
[ $stops -ge 3 ] || fail "only $stops runs could be stopped: this proves nothing"
[ $middle -ge 1 ] || fail "none of $stops stops fell into the middle of an epoch: this proves nothing"

# --- more epochs for a finished run ---
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0,cpu:1 --threads=1"
# shellcheck disable=SC2086
{
    train --out=two $small --epochs=2
    train --out=four $small --epochs=4
    train --resume=two --out=more --devices=cpu:0,cpu:1 --threads=1 --epochs=4
}
[ "$(weights more)" = "$(weights four)" ] || fail "2 epochs and 2 more: not the weights of 4"
[ "$(cut -d, -f1 more/epochs.csv | tr '\n' ,)" = "epoch,3,4," ] ||
    fail "2 epochs and 2 more: $(cat more/epochs.csv)"
[ "$(texts two epochs position)" = "2 40" ] || fail "--resume with --out changed the run that it came from"
before=$(weights two)
train --resume=two --devices=cpu:0,cpu:1
[ "$(weights two)" = "$before" ] || fail "a finished run that goes on changed its weights"
! grep -qi nan out || fail "a finished run that goes on printed: $(tr '\n' ' ' <out)"

# --- killed: what was done since the last checkpoint is done again, its rows are kept apart, and half a
#     row is cut off ---
# shellcheck disable=SC2086
train --out=killed $small --epochs=2 --target-accuracy=0.01
reached=$(summary killed target_s)
awk -F, -v OFS=, 'END { $1 += 1; $5 += 1; print; $1 += 1; $5 += 1; print; printf "%s,%s", $1 + 1, $2 }' \
    killed/steps.csv >rows
cat rows >>killed/steps.csv
tail -n 1 killed/epochs.csv | awk -F, -v OFS=, '{ $1 += 1; $2 += 1; print }' >row
cat row >>killed/epochs.csv
"$TRAINER" --resume=killed --devices=cpu:0,cpu:1 --threads=1 --epochs=3 --target-accuracy=0.01 >out 2>err ||
    fail "killed: exit code $?: $(cat err)"
whole killed 3
[ "$(cat killed/steps.csv.1)" = "$(head -n 1 killed/steps.csv; head -n 2 rows)" ] ||
    fail "killed: kept apart: $(cat killed/steps.csv.1)"
[ "$(cat killed/epochs.csv.1)" = "$(head -n 1 killed/epochs.csv; cat row)" ] ||
    fail "killed: kept apart: $(cat killed/epochs.csv.1)"
[ "$(python3 -c "print(abs($(summary killed target_s) - $reached) < 1e-6)")" = True ] &&
    ! grep 'the first with' out ||
    fail "killed: the target was reached after $(summary killed target_s) s, expected $reached"
# With fewer workers, then with more again: each goes on with its own count.
train --resume=killed --devices=cpu:0 --threads=1 --epochs=4
train --resume=killed --devices=cpu:0,cpu:1 --threads=1 --epochs=5 --log-every=0
train --resume=killed --devices=cpu:0,cpu:1 --threads=1 --epochs=6 --log-every=1
python3 - <<'PYTHON' || \
    fail "killed: another number of workers: $(cut -d, -f1,2,5 killed/steps.csv | tail -n 3)"
import csv
rows = list(csv.DictReader(open("killed/steps.csv")))
steps = {w: [int(row["step"]) for row in rows if row["worker"] == w] for w in "01"}
assert steps["0"] == [*range(1, 31), *range(31, 51), *range(61, 71)], steps["0"]
assert steps["1"] == [*range(1, 31), *range(41, 51)], steps["1"]
assert [row["epoch"] for row in csv.DictReader(open("killed/epochs.csv"))] == list("123456")
PYTHON

# --- a run is known by its folder and by what is in it ---
cp -r two known
train --resume=known/checkpoint/state.safetensors --devices=cpu:0,cpu:1 --threads=1 --epochs=3
[ "$(texts known epochs position)" = "3 60" ] ||
    fail "--resume=known/checkpoint/state.safetensors: $(texts known epochs position)"
train --resume=known/checkpoint/ --devices=cpu:0,cpu:1 --threads=1 --epochs=4
[ "$(texts known epochs position) $(weights known)" = "4 80 $(weights four)" ] ||
    fail "--resume=known/checkpoint/: $(texts known epochs position)"
"$TRAINER" --quiet --resume=known/model.safetensors --out=from --epochs=5 >out 2>err
[ $? -eq 3 ] &&
    grep -q 'known/model.safetensors: the state of the optimizer, momentum, is missing here; '\
'--weights=FILE takes the weights alone$' err || fail "--resume=model.safetensors: $(cat err)"
[ "$(ls -d known/checkpoint/* known/model.safetensors/* 2>/dev/null)" = \
    known/checkpoint/state.safetensors ] || fail "a run in a run: $(ls -R known)"

# --- a 0 that was typed is not "not given" ---
train --out=clipped $small --epochs=2 --clip=0.01
train --resume=clipped --out=still --epochs=3
train --resume=clipped --out=free --epochs=3 --clip=0
[ "$(weights still)" != "$(weights free)" ] || fail "--clip=0 did not switch off the saved clip"

# --- a target: the first epoch that has reached it, or of this part, where parts before had another ---
train --out=aims $small --epochs=1 --target-accuracy=0.999
"$TRAINER" --resume=aims --epochs=2 --target-accuracy=0.01 >out 2>err
grep -q 'epoch 2: the first of this part of the run with an accuracy of 0.01 or more' out err ||
    fail "another target: $(cat out err)"
"$TRAINER" --resume=aims --replace --out=aimed --epochs=3 >out 2>err
! grep -q 'the first' out err || fail "the same target, which was reached before: $(cat out err)"

# --- one that floats cannot have is not none ---
train --out=tiny $small --epochs=1 --clip=1e-40
train --out=unclipped $small --epochs=1
[ "$(weights tiny)" != "$(weights unclipped)" ] || fail "--clip=1e-40 is no clip"

# --- so do the settings that are no matter of where and on what it computes ---
train --out=settled $small --epochs=2 --strategy=async-lockfree --shards=3 --shard-by=tensor --slots=7 \
    --on-loss=continue --timeout=40 --kernels=reference --checkpoint-every=9 --target-accuracy=0.999
train --resume=settled --epochs=3
for setting in shards=3 shard-by=tensor slots=7 on-loss=continue timeout=40 kernels=reference \
    checkpoint-every=9 target-accuracy=0.999; do
    [ "$(texts settled "${setting%=*}")" = "${setting#*=}" ] ||
        fail "--$setting: resumed, the run has $(texts settled "${setting%=*}")"
done
[ "$(summary settled shards)" = 3 ] || fail "--shards=3: resumed with $(summary settled shards)"
train --out=usual $small --epochs=1
train --out=patient $small --epochs=1 --timeout=40 --on-loss=continue --slots=7
cmp -s usual/model.safetensors patient/model.safetensors || fail "a model has settings that are not its own"
train --out=untested $small --epochs=2 --no-test
train --resume=untested --epochs=3
[ "$(summary untested test_accuracy)" = None ] || fail "--no-test: resumed, it was tested"
train --resume=untested --epochs=4 --target-accuracy=0.999
[ "$(summary untested test_accuracy)" != None ] || fail "--target-accuracy, typed after --no-test: not tested"
train --resume=untested --epochs=5 --no-test
[ "$(texts untested target-accuracy test)" = 'nan 0' ] ||
    fail "--no-test, typed after --target-accuracy: $(texts untested target-accuracy test)"

# --- and one of a build with GPUs goes on in one without ---
python3 - usual/checkpoint/state.safetensors <<'PYTHON'
import sys, zlib
data = bytearray(open(sys.argv[1], "rb").read())
data[:] = data.replace(b'"deterministic":"0"', b'"deterministic":"1"')
at = data.index(b'"checksum":"') + len('"checksum":"')
data[at:at + 8] = b"00000000"
data[at:at + 8] = b"%08x" % zlib.crc32(data)
open(sys.argv[1], "wb").write(data)
PYTHON
[ "$(texts usual deterministic)" = 1 ] || fail "no text of --deterministic in a checkpoint"
train --resume=usual --epochs=2

# --- the precision goes on, too, until another is named; what has no bf16 says so ---
# shellcheck disable=SC2086
if "$TRAINER" --quiet --out=narrow $small --epochs=2 --precision=bf16 >out 2>err; then
    train --out=alone $small --epochs=3 --precision=bf16
    train --resume=narrow --out=wide --devices=cpu:0,cpu:1 --threads=1 --epochs=3 --precision=fp32
    train --resume=narrow --devices=cpu:0,cpu:1 --threads=1 --epochs=3
    [ "$(summary narrow precision) $(summary wide precision)" = "bf16 fp32" ] ||
        fail "precision: $(summary narrow precision), $(summary wide precision)"
    "$TRAINER" --resume=narrow --out=told --devices=cpu:0 --epochs=4 >out 2>err
    grep -q -- '--precision=bf16' out || fail "bf16 goes on and is not said: $(head -n 3 out)"
    [ "$(weights narrow)" = "$(weights alone)" ] || fail "2 epochs in bf16 and 1 more: not the weights of 3"
    "$TRAINER" --quiet --resume=narrow --out=plain --epochs=4 --kernels=reference >out 2>err
    code=$?
    [ $code -eq 4 ] && grep -q 'no bf16 without' err ||
        fail "bf16 goes on where there is none: exit code $code: $(cat err)"
else
    grep -q 'no bf16 without' err || fail "bf16: $(cat err)"
fi

# --- with something else: the position stays, the examples add up ---
goes_on() { # what, examples expected at last, options...
    local what=$1 wanted=$2 found
    shift 2
    rm -rf other
    train --resume=start --replace --out=other --epochs=4 "$@"
    found=$(summary other examples)
    [ "$found" = "$wanted" ] || fail "$what ($*): $found examples in the end, expected $wanted"
    found=$(awk -F, 'NR > 1 { sum += $8 } END { print sum + 0 }' other/steps.csv)
    [ "$found" -eq $((wanted - began)) ] ||
        fail "$what ($*): went on with $found examples, expected $((wanted - began))"
    [ "$(tail -n 1 other/epochs.csv | cut -d, -f1)" = 4 ] ||
        fail "$what ($*): epochs.csv does not end with epoch 4"
}

began=640
# shellcheck disable=SC2086
train --out=start $small --epochs=2
strategies=$("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
for strategy in $strategies async-lockfree:apply=worker; do
    goes_on "another strategy" 1280 --strategy="$strategy" --devices=cpu:0,cpu:1
done
for devices in cpu:0 cpu:0,cpu:1,cpu:2 cpu:0,cpu:1,cpu:2,cpu:3,cpu:4; do
    goes_on "another number of workers" 1280 --devices=$devices
done
for optimizer in $("$TRAINER" list optimizers | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    goes_on "another optimizer" 1280 --optimizer="$optimizer" --devices=cpu:0,cpu:1
done
goes_on "a larger batch" 1280 --batch=32 --devices=cpu:0,cpu:1
goes_on "a smaller batch" 1280 --batch=8 --devices=cpu:0,cpu:1
goes_on "split data" 1280 --data-sharding=split --devices=cpu:0,cpu:1
# shellcheck disable=SC2086
train --replace --out=start $small --epochs=2 --data-sharding=split
goes_on "shared data" 1280 --data-sharding=shared --devices=cpu:0,cpu:1
goes_on "another number of workers" 1280 --devices=cpu:0,cpu:1,cpu:2,cpu:3
goes_on "async with split data" 1280 --strategy=async-lockfree --devices=cpu:0,cpu:1

# An update of several gradients is one, also of those before the checkpoint.
# shellcheck disable=SC2086
train --replace --out=start $small --epochs=2 --strategy=adasync:k=2,adapt=none --devices=cpu:0,cpu:1
[ "$(summary start updates) $(summary start steps)" = "20 40" ] ||
    fail "means of two: $(summary start updates) updates in $(summary start steps) steps"
train --resume=start --replace --out=other --epochs=4
[ "$(summary other updates) $(summary other steps)" = "40 80" ] ||
    fail "means of two, resumed: $(summary other updates) updates in $(summary other steps) steps"

# Asynchronous workers with data of their own stop at different places; rounds must bring all of them to
# the end.
# shellcheck disable=SC2086
train --replace --out=start $small --epochs=2 --data-sharding=split --strategy=async-lockfree
python3 - <<'PYTHON'
import zlib
path = "start/checkpoint/state.safetensors"
data = bytearray(open(path, "rb").read())
for old, new in (b'"own_batches":"20,20"', b'"own_batches":"20,15"'), \
        (b'"position":"40"', b'"position":"35"'), (b'"examples":"640"', b'"examples":"560"'):
    at = data.index(old)
    data[at:at + len(old)] = new
at = data.index(b'"checksum":"') + len('"checksum":"')
data[at:at + 8] = b"00000000"
data[at:at + 8] = b"%08x" % zlib.crc32(data)
open(path, "wb").write(data)
PYTHON
for strategy in async-lockfree sync; do
    rm -rf other
    timeout 10 "$TRAINER" --quiet --resume=start --replace --out=other --epochs=3 --devices=cpu:0,cpu:1 \
        --strategy=$strategy >out 2>err
    code=$?
    [ $code -eq 0 ] ||
        fail "$strategy after workers that stopped at different places: exit code $code \
(124: after 10 s): $(cat err)"
    found=$(summary other examples 2>/dev/null || echo 0)
    if [ "$found" -lt 960 ] || [ "$found" -gt 1040 ]; then
        fail "$strategy after workers that stopped at different places: $found examples, expected 960 to 1040"
    fi
done

# --- checkpoints that do not fit ---
refused() { # words expected, options...
    local words=$1 code
    shift
    cp -r start kept
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq ${wanted:-3} ] || fail "trainer $*: exit code $code, expected ${wanted:-3}"
    if [ "$(wc -l <err)" -ne 1 ] || ! grep -Eq -e "$words" err; then
        fail "trainer $*: found: $(cat err) expected one line with: $words"
    fi
    diff -r start kept || fail "trainer $*: changed the run that it could not go on with"
    rm -rf kept
}

wanted=2 refused '--model=mlp:hidden=30: the checkpoint in start has mlp:hidden=20, expected that$' \
    --resume=start --model=mlp:hidden=30
refused 'nowhere' --resume=nowhere
mkdir empty
refused 'state.safetensors' --resume=empty
python3 - <<'PYTHON'
data = bytearray(open("start/checkpoint/state.safetensors", "rb").read())
data[len(data) // 2] ^= 1
open("start/checkpoint/state.safetensors", "wb").write(data)
PYTHON
refused 'checksum' --resume=start
truncate -s -100 start/checkpoint/state.safetensors
refused 'state.safetensors' --resume=start

# A run that is over and gone on with where it is: its result is said again, and nothing of it is touched,
# whatever else is asked for.
train --out=over --epochs=3 --print-every=0
find over -type f -exec sha256sum {} + | sort >before
"$TRAINER" --resume=over --optimizer=adam >out 2>err ||
    fail "resuming a run that is over: exit code $?: $(cat err)"
grep -q '3 of 3 epochs are done already, and nothing is changed' err ||
    fail "resuming a run that is over says: $(cat err)"
[ "$(head -n 1 out)" = "Test-Accuracy: \
$(python3 look.py summary over/summary.json test_accuracy | xargs printf '%.4f')" ] ||
    fail "resuming a run that is over prints: $(cat out)"
"$TRAINER" --resume=over --epochs=2 >out 2>err ||
    fail "resuming a run for fewer epochs: exit code $?: $(cat err)"
grep -q '3 epochs are done already, more than --epochs=2, and nothing is changed' err ||
    fail "resuming a run for fewer epochs says: $(cat err)"
find over -type f -exec sha256sum {} + | sort | cmp -s - before ||
    fail "resuming a run that is over changed it"

# One that was killed behind its last checkpoint has no model and no summary yet, or those of where it was
# interrupted before: they are written.
train --out=earlier --epochs=2 --print-every=0
mv over/model.safetensors model
cp over/summary.json summary
for left in none model.safetensors summary.json; do
    rm -f over/model.safetensors over/summary.json
    [ $left != summary.json ] || cp model over/model.safetensors
    [ $left = none ] || cp earlier/$left over
    "$TRAINER" --quiet --resume=over >out 2>err ||
        fail "killed behind its last checkpoint: exit code $?: $(cat err)"
    cmp -s model over/model.safetensors ||
        fail "killed behind its last checkpoint, with an earlier $left: has $(ls over)"
    for key in epochs examples updates test_accuracy; do
        [ "$(python3 look.py summary summary $key)" = "$(python3 look.py summary over/summary.json $key)" ] ||
            fail "killed behind its last checkpoint, with an earlier $left: \
$key is $(python3 look.py summary over/summary.json $key)"
    done
done

# The time of the first line after going on is of what was done since. A machine that others use may be
# busy just then: five tries.
before=$(python3 look.py summary over/summary.json train_seconds)
for try in 1 2 3 4 5; do
    cp -r over again
    "$TRAINER" --resume=again --epochs=4 --print-every=1 2>/dev/null |
        sed -n 's/.*AvgTime: *\([0-9.]*\)ms.*/\1/p' >times
    rm -r again
    ! awk -v before="$before" '$1 >= before * 1e3 { bad = 1 } END { exit bad || NR == 0 }' times || break
    [ $try -lt 5 ] || fail "AvgTime after going on counts what was before: $(head -n 2 times)"
done

# A table that has grown, or lost rows, since: by epochs, not by examples, and whoever reads is told.
rows() {
    for ((i = $1; i < $2; i++)); do
        echo "$((i % 7)),$((i % 11)),$([ $((i % 7)) -gt 3 ] && echo high || echo low)"
    done
}
table=(--dataset=csv:file=table.csv --devices=cpu:0 --quiet)
rows 0 200 >table.csv
"$TRAINER" "${table[@]}" --epochs=6 --out=grown >out 2>err || fail "a table: $(cat err)"
"$TRAINER" evaluate --checkpoint=grown >out 2>err && [ ! -s err ] || fail "the same table: $(cat err)"
mv table.csv narrow.csv
sed 's/^/1,/' narrow.csv >table.csv
"$TRAINER" --resume=grown --epochs=7 >out 2>err
code=$?
if [ $code -ne 3 ] ||
    ! grep -q '^trainer: grown: csv: examples \[3\] in 2 classes, expected \[2\] in 2 classes' err; then
    fail "a table with another column: exit code $code: $(cat err)"
fi
mv narrow.csv table.csv
for count in 500 100; do
    rows 0 $count >table.csv
    words="was trained on [0-9]+ examples, the training part of csv:file=table.csv has $((count * 4 / 5)) \
now: what was trained on may be among what is tested"
    "$TRAINER" evaluate --checkpoint=grown >out 2>err && grep -Eqx "trainer: the network $words" err ||
        fail "$count rows, evaluated: $(cat err)"
    "$TRAINER" --resume=grown --epochs=$((count == 500 ? 8 : 9)) "${table[@]:1}" >out 2>err &&
        grep -Eqx "trainer: grown $words" err || fail "$count rows: $(cat err)"
done
rows 0 300 >table.csv
for typed in "" "${table[0]}"; do # a leader that restarts types all of it
    cp -r grown again
    # shellcheck disable=SC2086 # none, or one
    "$TRAINER" --resume=again --epochs=10 $typed "${table[@]:1}" >out 2>err &&
        grep -q 'was trained on 80 examples, the training part of .* has 240 now' err ||
        fail "typed: '$typed': $(cat err)"
    # shellcheck disable=SC2086
    "$TRAINER" evaluate --checkpoint=grown $typed >out 2>err &&
        grep -q 'was trained on 80 examples, the training part of .* has 240 now' err ||
        fail "evaluate: typed: '$typed': $(cat err)"
    rm -r again
done
rows 0 100 >table.csv
# other parts of the same rows; of a part that is held out now run/validation says more
for part in --validation=0.2 --data-slice=1/2 --dataset=csv:file=table.csv,take=50; do
    cp -r grown again
    "$TRAINER" --resume=again --epochs=10 $part "${table[@]:1}" >out 2>err || fail "$part: $(cat err)"
    ! grep -v ' is held out now: ' err || fail "$part: $(cat err)"
    rm -r again
done
[ "$(cut -d, -f1 grown/epochs.csv | tr '\n' ' ')" = 'epoch 1 2 3 4 5 6 7 8 9 ' ] ||
    fail "a table that has changed: epochs $(cut -d, -f1 grown/epochs.csv | tr '\n' ' ')"
"$TRAINER" evaluate --checkpoint=grown >out 2>err && [ ! -s err ] || fail "the table as it is now: $(cat err)"

# A new run in the same folder: what the earlier one left must not pass for what this one, which fails, did.
"$TRAINER" --quiet --replace --out=over --model=softmax --devices=cpu:0 --fail=worker:0@step:2 \
    --on-loss=stop >out 2>err
[ $? -eq 4 ] || fail "--fail in a used folder: $(cat err)"
[ "$(texts over model steps)" = "softmax 1" ] ||
    fail "a run that failed left a checkpoint of $(texts over model steps)"
for left in summary.json model.safetensors; do
    [ -e "over/$left" ] && fail "a run that failed leaves the $left of an earlier one"
done

[ $failures -eq 0 ]
