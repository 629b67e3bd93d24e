#!/bin/bash
# Several strategies in one run, one after the other, as a user meets them: the lines, the files, stopping
# and going on at any place, a cluster over TCP, and what compares such runs. tests/run/pairs.c has every
# pair of strategies.
# shellcheck disable=SC2015,SC2046,SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

cat >look.py <<'PYTHON'
import csv, json, struct, sys

def texts(run):
    data = open(f"{run}/checkpoint/state.safetensors", "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]

what, run, *names = sys.argv[1:]
if what == "strategies":
    print(*[f"{s['strategy']}@{s['from_epoch']}"
            for s in json.load(open(f"{run}/summary.json"))["strategies"]])
if what == "texts":
    print(*[texts(run)[name] for name in names])
if what == "rates": # the first one of an epoch
    rate = max(float(row["learning_rate"])
               for row in csv.DictReader(open(f"{run}/steps.csv")) if row["epoch"] == names[0])
    print(rate)
    sys.exit(not float(names[1]) <= rate <= float(names[2]))
if what == "reached": # the first epoch with that accuracy by the validation part
    rows = csv.DictReader(open(f"{run}/epochs.csv"))
    print(next((row["epoch"] for row in rows if float(row["validation_accuracy"]) >= float(names[0])),
               "never"))
PYTHON
look() { python3 look.py "$@"; }
strategies() { # folder, expected
    [ "$(look strategies "$1")" = "$2" ] ||
        fail "$1: the strategies were $(look strategies "$1"), expected $2"
}
train() {
    "$TRAINER" --dataset=iris --model=mlp:hidden=10 --batch=4 --devices=cpu:0,cpu:1 --threads=1 "$@" \
        >out 2>err || fail "trainer $*: exit code $?: $(cat err)"
}
resume() {
    "$TRAINER" --devices=cpu:0,cpu:1 --threads=1 "$@" >out 2>err ||
        fail "trainer $*: exit code $?: $(cat err)"
}

# --- what is said ---
outputs=csv,report,trace,tensorboard
if ! "$TRAINER" --epochs=1 --outputs=tensorboard --out=without --quiet >out 2>err &&
    grep -q 'needs a build with' err; then
    outputs=csv,report,trace
fi
train --out=said --epochs=4 --strategy='async-locked until epoch 1; sync until epoch 3; ssp:bound=0' \
    --outputs=$outputs
strategies said 'async-locked@1 sync@2 ssp:bound=0@4'
grep -qx 'sync from epoch 2 on (async-locked until epoch 1)' out ||
    fail "said: no line when sync begins: $(cat out)"
grep -qx 'ssp:bound=0 from epoch 4 on (sync until epoch 3)' out ||
    fail "said: no line when ssp begins: $(cat out)"
[ "$(grep -c ' on (.* until epoch' out)" -eq 2 ] || fail "said: not two changes: $(cat out)"
grep -q 'Strategies: async-locked; from epoch 2 on, where a dashed line is, sync; from epoch 4 on' \
    said/report.html || fail "report: no strategies"
[ "$(grep -c 'class="mark"' said/report.html)" -eq 8 ] ||
    fail "report: $(grep -c 'class="mark"' said/report.html) dashed lines, expected 2 in each of 4 curves"
grep -q 'sync from epoch 2 on' said/trace.json || fail "trace.json has no change"
[ $outputs = csv,report,trace ] || grep -qa 'sync from epoch 2 on' said/events.out.tfevents.* ||
    fail "TensorBoard is not told of a change"
train --out=one --epochs=1 --strategy=sync
strategies one 'sync@1'

# --- a change is no change where the strategy stays ---
train --out=alone --epochs=4 --strategy=sync
train --out=same --epochs=4 --strategy='sync until epoch 1; sync until epoch 3; sync'
same_weights "sync until epoch 1; sync until epoch 3; sync" alone same

# --- stopped at a change, before one and behind one, and gone on ---
phased='sync until epoch 1; local-sgd:every=2 until epoch 3; sync'
train --out=whole --epochs=4 --schedule=cosine --strategy="$phased"
for stop in 1 2 3; do
    train --out=stopped --replace --epochs=4 --schedule=cosine --strategy="$phased" --stop-after=$stop
    [ "$(look texts stopped phase_ends)" = "$([ $stop -lt 3 ] && echo 1 || echo 1,3)" ] ||
        fail "stopped after $stop: phase_ends $(look texts stopped phase_ends)"
    resume --resume=stopped
    same_weights "stopped after $stop" whole stopped
    strategies stopped 'sync@1 local-sgd:every=2@2 sync@4'
    grep -qx "goes on under $([ $stop -lt 3 ] && echo 'local-sgd:every=2, number 2' ||
        echo 'sync, number 3') of these strategies" out ||
        fail "stopped after $stop: $(cat out)"
done
# --- each part under the strategy that was typed for it: all of them are told ---
train --out=parts --epochs=2 --strategy=sync
resume --resume=parts --epochs=4 --strategy=async-locked
grep -Eqx 'goes on from parts: update [0-9]+, 2.0 of 4 epochs; so far sync' out ||
    fail "the second part: $(cat out)"
strategies parts 'sync@1 async-locked@3'
resume --resume=parts --epochs=5
strategies parts 'sync@1 async-locked@3'
resume --resume=parts --epochs=7 --strategy='ssp until epoch 6; sync'
strategies parts 'sync@1 async-locked@3 ssp@6 sync@7'
run 0 report parts
grep -q 'sync, then async-locked, then ssp, then sync on ' parts/report.html ||
    fail "report: the title: $(grep -o '[^>]* on cpu[^<]*' parts/report.html)"
resume --resume=parts --epochs=8 --strategy=sync --out=apart
strategies apart 'sync@1 async-locked@3 ssp@6 sync@7'
run 0 report apart
grep -q "sync until epoch 2; async-locked until epoch 5; ssp until epoch 6; sync&#39;" apart/report.html ||
    fail "report: how to repeat it: $(grep -o 'trainer --model[^<]*' apart/report.html)"

# The first steps of local-sgd are those of the training: who goes on has taken them, and who comes to
# it later.
train --out=whole --replace --epochs=4 --strategy=local-sgd:every=4,sync_steps=6
train --out=stopped --replace --epochs=4 --strategy=local-sgd:every=4,sync_steps=6 --stop-after=2
resume --resume=stopped
same_weights "the first steps of local-sgd, gone on" whole stopped
train --out=whole --replace --epochs=2 --strategy='sync until epoch 1; local-sgd:every=4'
train --out=later --epochs=2 --strategy='sync until epoch 1; local-sgd:every=4,sync_steps=6'
same_weights "the first steps of local-sgd, behind those of sync" whole later
# Under another list it begins with the first strategy whose epoch has not passed.
train --out=other --epochs=4 --strategy=sync --stop-after=2 --optimizer=sgd:rate=0.1 --schedule=cosine
resume --resume=other --strategy='async-locked until epoch 2; ssp until epoch 3; sync'
strategies other 'sync@1 ssp@3 sync@4'
# Two workers' updates were half as many under sync; the schedule is halfway down all the same.
look rates other 3 0.04 0.055 >rate || fail "other: the rate goes on at $(cat rate)"
look rates other 4 0.01 0.02 >rate || fail "other: the rate of the last epoch begins at $(cat rate)"

# --- interrupted at moments that nobody chose ---
often='sync until epoch 2; sync until epoch 4; sync until epoch 6; sync until epoch 8; sync'
often_run="--dataset=digits --model=mlp:hidden=100 --batch=4 --epochs=10 --devices=cpu:0,cpu:1 --threads=1 \
    --print-every=0"
[ -z "$slow" ] || often_run="$often_run --dataset=digits:take=320"
"$TRAINER" --quiet $often_run --strategy="$often" --out=calm >out 2>err || fail "calm: $(cat err)"
for pause in 0.05 0.12 0.2; do
    rm -rf hit
    timeout -s INT $pause "$TRAINER" --quiet $often_run --strategy="$often" --out=hit >out 2>err
    for ((tries = 0; tries < 4; tries++)); do
        [ -e hit/checkpoint ] || break
        timeout -s INT $pause "$TRAINER" --quiet --resume=hit >out 2>err
        code=$?
        [ $code -eq 0 ] || [ $code -eq 124 ] || [ $code -eq 130 ] || fail "hit: exit code $code: $(cat err)"
    done
    [ -e hit/checkpoint ] || continue
    "$TRAINER" --quiet --resume=hit >out 2>err || fail "hit: $(cat err)"
    strategies hit 'sync@1 sync@3 sync@5 sync@7 sync@9'
    same_weights "interrupted and gone on" calm hit
done

# --- accuracy and plateau, by the validation part ---
train --out=good --epochs=8 --strategy='async-locked until 0.6; sync' --optimizer=sgd:rate=0.05
[ "$(look texts good validation)" = 0.1 ] ||
    fail "until 0.6: validation=$(look texts good validation), expected 0.1 as none was given"
reached=$(look reached good 0.6)
[ "$reached" != never ] && [ "$reached" -lt 8 ] || fail "until 0.6: reached in epoch $reached of 8"
strategies good "async-locked@1 sync@$((reached + 1))"
grep -q "^sync from epoch $((reached + 1)) on (async-locked until accuracy 0.6: " out ||
    fail "until 0.6: $(cat out)"
# Nothing is learnt: the first epoch is the best one, and stays it.
still='sync until plateau 2; async-locked until plateau 3; sync'
train --out=flat --epochs=8 --strategy="$still" --optimizer=sgd:rate=1e-30
strategies flat 'sync@1 async-locked@4 sync@7'
train --out=flat2 --epochs=8 --strategy="$still" --optimizer=sgd:rate=1e-30 --stop-after=5
resume --resume=flat2
strategies flat2 'sync@1 async-locked@4 sync@7'
# Met at once: left out.
train --out=passed --epochs=3 --strategy='sync until plateau 1; ssp until epoch 2; async-locked' \
    --optimizer=sgd:rate=1e-30
strategies passed 'sync@1 async-locked@3'
refused 2 'found --validation=0, expected a part to judge' \
    --dataset=iris --validation=0 --strategy='sync until 0.9; ssp'
printf 'a,y\n%s' "$(seq 40 | sed 's/.*/&,&.5/')" >numbers.csv
refused 2 'found "until accuracy 0.9", but .* has numbers to predict' \
    --dataset=csv:file="$scratch/numbers.csv",target=y --strategy='sync until 0.9; ssp'

# --- a cluster over TCP: the bits of one process ---
mixed='local-sgd:every=3 until epoch 1; sync until epoch 2; local-sgd:every=2'
cluster_run="--dataset=iris --model=mlp:hidden=10 --batch=4 --epochs=3 --threads=1 --timeout=20"
"$TRAINER" --quiet $cluster_run --devices=cpu:0,cpu:1 --strategy="$mixed" --replace --out=alone >out 2>err ||
    fail "alone: $(cat err)"
for servers in 2 0; do
    new_cluster $servers 2
    rm -rf run elsewhere
    for ((i = servers - 1; i >= 0; i--)); do
                start ps$i "$TRAINER" --job=ps --task=$i $hosts \
                    --out=$([ $i -eq 0 ] && echo run || echo elsewhere) $cluster_run --strategy="$mixed"
    done
    for i in 1 0; do
                start_worker $i --out=$([ $servers -eq 0 ] && echo run || echo elsewhere) $cluster_run \
                    --strategy="$mixed"
    done
    ends 0 $([ $servers -eq 0 ] || echo ps0 ps1) w0 w1
    same_weights "$servers parameter servers" run alone
done

# --- side by side ---
bench() {
    "$TRAINER" bench --dataset=iris --model=mlp:hidden=10 --epochs=2 --repeats=1 \
        --quiet --devices=cpu:0,cpu:1 "$@" >out 2>err
}
bench --strategies='sync,async-locked until epoch 1; ssp:bound=1' --out=compared || fail "bench: $(cat err)"
grep -q '^async-locked until epoch 1; ssp:bound=1,' compared/bench.csv ||
    fail "bench.csv: $(cut -d, -f1 compared/bench.csv)"
bench --strategies='sync,async-locked until 0.9; sync' --out=refused &&
    fail "bench takes a validation part from one of two"
grep -q 'expected --validation=0.1 or so, for all' err || fail "bench: $(cat err)"
"$TRAINER" sweep --dataset=iris --epochs=2 --vary='strategy=sync|sync until epoch 1; ssp' \
    --quiet --out=swept >out 2>err || fail "sweep: $(cat err)"
grep -q 'sync until epoch 1; ssp' swept/sweep.csv || fail "sweep.csv: $(cat swept/sweep.csv)"
refused 2 'strategy.bound: found several strategies' sweep --dataset=iris --vary=strategy.bound=1,2 \
    --strategy='ssp until epoch 1; sync' --out=swept2

[ $failures -eq 0 ]
