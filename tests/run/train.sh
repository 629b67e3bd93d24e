#!/bin/bash
# Training, walked from the program's own lists: every strategy in every variant, on several devices, data
# sets and cuts of the weights, every optimizer and schedule; then what must not change the weights, compared
# bit for bit.
#
# A run leaves its folder in $scratch; what is expected of it goes into one list, which one reader checks at
# the end.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16"

train() { # name of the run, options...
    local name=$1 code
    shift
    "$TRAINER" --quiet --out="$scratch/$name" "$@" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 0 ] || fail "$name ($*): exit code $code: $(cat "$scratch/err")"
    [ -s "$scratch/err" ] && fail "$name ($*): wrote to standard error: $(cat "$scratch/err")"
    [ "$(cut -d: -f1 "$scratch/out" | tr '\n' ,)" = "Test-Accuracy,Total Time,Final Cost," ] ||
        fail "$name ($*): printed: $(cat "$scratch/out")"
}

expect() { echo "$*" >>"$scratch/expected"; }

names_of() { "$TRAINER" list "$1" | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'; }

# A strategy by itself, and with each value of each of its settings that has a list of values.
variants_of() {
    echo "$1"
    "$TRAINER" list "strategy/$1" |
        sed -n 's/^  \([a-z_-]*=[a-z0-9-]*|[a-z0-9|-]*\)\( .*\)*$/\1/p' | while IFS= read -r row; do
        tr '|' '\n' <<<"${row#*=}" | sed "s/^/$1:${row%%=*}=/"
    done
}

# --- the defaults: a good network ---
grep -qa __tsan_init "$TRAINER" && few="--epochs=2 --dataset=digits:take=320" || few=
(
    cd "$scratch" || exit 1
    # shellcheck disable=SC2086 # several words, or none
    "$TRAINER" $few >out 2>err
) || fail "trainer: exit code $?: $(cat "$scratch/err")"
folder=$(echo "$scratch"/runs/*-mlp-sync)
[ -d "$folder" ] || fail "trainer: no folder runs/<time>-mlp-sync"
grep -Eq "runs/[0-9]{8}-[0-9]{6}-mlp-sync" "$scratch/out" ||
    fail "trainer: does not say where the results are: $(cat "$scratch/out")"
[ -n "$few" ] || expect accuracy "${folder#"$scratch/"}" 0.85

# --- every strategy on every list of devices ---
strategies=$(for name in $(names_of strategies); do variants_of "$name"; done)
[ "$(wc -w <<<"$strategies")" -ge 4 ] || fail "only these strategies are listed: $strategies"
cuts=("--shards=1" "--shards=3 --shard-by=bytes" "--shards=1" "--shards=3 --shard-by=tensor"
    "--shards=3 --shard-by=round-robin")
number=0
for strategy in $strategies; do
    for devices in cpu:0 cpu:0,cpu:1 cpu:0,cpu:1,cpu:2 'cpu:*'; do
        for data in "--dataset=digits:take=320 --batch=16" "--dataset=iris --batch=8"; do
            number=$((number + 1))
            # shellcheck disable=SC2086 # several words
            train "walk$number" $data ${cuts[number % 5]} --model=mlp:hidden=20 --strategy="$strategy" \
                --devices="$devices" --epochs=1
            [[ $data == *iris* ]] && examples=120 batches=15 || examples=320 batches=20
            expect counts "walk$number" "$examples" "$batches"
        done
    done
    for sharding in shared split all; do
        # shellcheck disable=SC2086
        train "$sharding-$strategy" $small --strategy="$strategy" --devices=cpu:0,cpu:1 --epochs=2 \
            --data-sharding=$sharding
        [ $sharding = all ] && passes=4 || passes=2
        expect counts "$sharding-$strategy" $((320 * passes)) $((20 * passes))
    done
    [ -n "$few" ] || train "learns-$strategy" --strategy="$strategy" --devices=cpu:0,cpu:1
    [ -n "$few" ] || expect accuracy "learns-$strategy" 0.85
done

# --- every optimizer and schedule; clipping and decay ---
for optimizer in $(names_of optimizers); do
    # shellcheck disable=SC2086
    train "$optimizer" $small --optimizer="$optimizer:rate=0.02" --epochs=4 --strategy=sync \
        --devices=cpu:0,cpu:1
    expect learns "$optimizer"
    for schedule in $(names_of schedules); do
        # shellcheck disable=SC2086
        train "$optimizer-$schedule" $small --optimizer="$optimizer:rate=0.02" \
            --schedule="$schedule:warmup=0.25" --devices=cpu:0 --epochs=2
        expect rates "$optimizer-$schedule" "$schedule" 0.02
    done
done
# shellcheck disable=SC2086
train still $small --optimizer=sgd:rate=0 --devices=cpu:0 --epochs=1
# shellcheck disable=SC2086
train clipped $small --optimizer=sgd:rate=1 --clip=0.001 --devices=cpu:0 --epochs=1
expect distance still clipped 0.02 # 20 steps of rate 1 and norm 0.001
# shellcheck disable=SC2086
train free $small --optimizer=sgd:rate=0.02 --devices=cpu:0 --epochs=1
# shellcheck disable=SC2086
train decayed $small --optimizer=sgd:rate=0.02 --decay=10 --devices=cpu:0 --epochs=1
expect smaller decayed free
# shellcheck disable=SC2086
train reference $small --optimizer=sgd:rate=0.02 --kernels=reference --devices=cpu:0 --epochs=1
expect near reference free

# --- momenta of units that have died become 0, not subnormal numbers, with which everything is slow ---
train dead --dataset=digits:take=480 --model=mlp:hidden=50 --optimizer=adam:rate=0.5 --batch=4 \
    --devices=cpu:0,cpu:1 --epochs=40
dead=$(tail -c +9 "$scratch/dead/checkpoint/state.safetensors" | od -An -v -tx4 -w4 | grep -v '[08]0000000' |
    grep -cE '^ [08]0[0-7]')
[ "$dead" -eq 0 ] || fail "a checkpoint has $dead subnormal numbers"

# --- what the weights must not depend on ---
sync="$small --epochs=2 --strategy=sync --optimizer=momentum:rate=0.05"
for devices in cpu:0 cpu:0,cpu:1 cpu:0,cpu:1,cpu:2; do
    # shellcheck disable=SC2086
    train "first-$devices" $sync --devices=$devices --threads=1
    # shellcheck disable=SC2086
    train "again-$devices" $sync --devices=$devices --threads=1
    expect same "first-$devices" "again-$devices"
    for by in bytes tensor round-robin; do
        # shellcheck disable=SC2086
        train "$by-$devices" $sync --devices=$devices --threads=1 --shards=3 --shard-by=$by
        expect same "first-$devices" "$by-$devices"
    done
    for ahead in 0 1 4; do
        # shellcheck disable=SC2086
        train "ahead$ahead-$devices" $sync --devices=$devices --threads=1 --prefetch=$ahead
        expect same "first-$devices" "ahead$ahead-$devices"
    done
done
# shellcheck disable=SC2086
train another $sync --devices=cpu:0 --threads=1 --seed=2
expect different first-cpu:0 another
expect different first-cpu:0 first-cpu:0,cpu:1
# One worker whose next step has its last update in it is serial training, whatever the strategy.
for strategy in async-apply async-lockfree:apply=worker; do
    grep -qx "$strategy" <<<"$strategies" || continue
    # shellcheck disable=SC2086
    train "serial-$strategy" $sync --strategy=$strategy --devices=cpu:0 --threads=1
    expect same first-cpu:0 "serial-$strategy"
done

cat >"$scratch/check.py" <<'PYTHON'
import array, csv, json, math, os, struct, sys
scratch, failures = sys.argv[1], 0

def fail(words):
    global failures
    failures += 1
    print(words)

def weights(run):
    data = open(f"{scratch}/{run}/model.safetensors", "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {name: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
            for name, e in header.items() if name != "__metadata__"}

def summary(run):
    return json.load(open(f"{scratch}/{run}/summary.json"))

def rows(run):
    return list(csv.DictReader(open(f"{scratch}/{run}/steps.csv")))

def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for name in a
                         for x, y in zip(array.array("f", a[name]), array.array("f", b[name]))))

def kernels(a):
    return {name: values for name, values in a.items() if name.endswith("/kernel")}

def check(what, run, rest):
    s = summary(run)
    label = f"{run} ({s['strategy']}, {s['devices']}, {s['dataset']}): "
    if what == "accuracy" and not s["test_accuracy"] >= float(rest[0]):
        fail(label + f"test accuracy {s['test_accuracy']}, expected {rest[0]} or more")
    if what == "counts":
        examples, batches = int(rest[0]), int(rest[1])
        if s["examples"] != examples or s["steps"] != batches:
            fail(label + f"{s['examples']} examples in {s['steps']} steps, expected {examples} in {batches}")
        rounds = -(-batches // s["workers"])
        wanted = {"sync": rounds, "async-apply": batches, "async-locked": batches, "async-lockfree": batches}
        name = s["strategy"].split(":")[0]
        if s["updates"] != wanted.get(name, s["updates"]):
            fail(label + f"{s['updates']} updates, expected {wanted[name]}")
        if len(rows(run)) != batches:
            fail(label + f"{len(rows(run))} rows in steps.csv, expected {batches}")
        if s["lost_updates"] and "apply=worker" not in s["strategy"]:
            fail(label + f"{s['lost_updates']} lost updates")
    if what == "learns":
        loss = [float(row["loss"]) for row in rows(run)]
        if not sum(loss[-8:]) < 0.98 * sum(loss[:8]):
            fail(label + f"loss {sum(loss[:8]) / 8} at first, {sum(loss[-8:]) / 8} at last")
    if what == "rates":
        schedule, rate = rest[0], float(rest[1])
        found = [float(row["learning_rate"]) for row in rows(run)]
        total = len(found)
        warm = 0.25 * total
        shape = {"constant": lambda p: 1, "cosine": lambda p: 0.5 + 0.5 * math.cos(math.pi * p),
                 "step": lambda p: 0.1 ** math.floor(p / 0.333)}.get(schedule)
        for i, value in enumerate(found):
            if i < warm:
                wanted = rate * (i + 1) / (warm + 1)
            elif shape:
                wanted = rate * shape((i - warm) / (total - warm))
            else:
                continue
            if abs(value - wanted) > 1e-5 * rate:
                fail(label + f"{schedule}: rate {value} at step {i + 1} of {total}, expected {wanted}")
                break
    if what == "distance":
        other, most = rest[0], float(rest[1])
        moved = distance(weights(run), weights(other))
        if not 0 < moved <= most * 1.001:
            fail(label + f"{other} is {moved} away, expected more than 0, at most {most}")
    if what == "smaller":
        zero = {name: bytes(len(values)) for name, values in kernels(weights(run)).items()}
        here, there = distance(zero, weights(run)), distance(zero, weights(rest[0]))
        if not here < 0.5 * there: # (1 - 0.02 * 10) ** 20 = 0.01
            fail(label + f"the weights have norm {here}, expected far less than {there}")
    if what == "near":
        moved, far = distance(weights(run), weights(rest[0])), distance(weights("still"), weights(run))
        if not moved <= 1e-4 * far:
            fail(label + f"{rest[0]} is {moved} away of {far}, expected 1e-4 of that at most")
    if what in ("same", "different") and (weights(run) == weights(rest[0])) != (what == "same"):
        fail(label + f"expected {what} weights as {rest[0]}")

for line in open(f"{scratch}/expected"):
    what, run, *rest = line.split()
    if os.path.exists(f"{scratch}/{run}/summary.json"):
        check(what, run, rest)
    else:
        fail(f"{run}: no summary.json")
sys.exit(failures > 0)
PYTHON
python3 "$scratch/check.py" "$scratch" || failures=$((failures + 1))
[ $failures -eq 0 ]
