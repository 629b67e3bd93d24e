#!/bin/bash
# --weights and --freeze: first weights from any file, layer by layer, where name and shapes fit; frozen ones
# stay bit for bit under every strategy and optimizer, with decay, averages, checkpoints, resume and a
# cluster, and what is not frozen is trained.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

cat >same.py <<'PYTHON'
import fnmatch, sys
from tensors import tensors
patterns, before, after = sys.argv[1].split(","), tensors(sys.argv[2]), tensors(sys.argv[3])
for name in [n for n in before if ":" not in n]:
    frozen = any(fnmatch.fnmatch(name, p) or fnmatch.fnmatch(name.rsplit("/", 1)[0], p) for p in patterns)
    if name not in after or (before[name] == after[name]) != frozen:
        sys.exit(f"{name}: {'changed' if frozen else 'stayed as it was'}")
    average = after.get("average:" + name)
    if frozen and average is not None and "average:" + name not in before and average != before[name]:
        sys.exit(f"{name}: its average changed")
PYTHON
frozen() { # what, patterns, files before and after
    python3 same.py "$2" "$3" "$4" 2>why || fail "$1: $(cat why)"
}
network='layers:conv1 = conv 4 3x3 same relu; batch_norm; maxpool 2; flatten; dense 12 relu; dense'
few="--dataset=digits:take=192 --batch=16 --quiet"
# shellcheck disable=SC2086
run 0 $few --model="$network" --epochs=1 --out=base

# Every strategy, three workers; two optimizers; decay, clipping.
kept='conv1,norm*,dense1/bias'
for strategy in $("$TRAINER" list strategies | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p') \
    async-lockfree:apply=worker; do
    # shellcheck disable=SC2086
    run 0 $few --model="$network" --weights=base --freeze="$kept" --strategy="$strategy" \
        --devices=cpu:0,cpu:1,cpu:2 --epochs=1 --decay=0.01 --out=one --replace
    frozen "$strategy" "$kept" base/model.safetensors one/model.safetensors
done
for optimizer in $("$TRAINER" list optimizers | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    # shellcheck disable=SC2086
    run 0 $few --model="$network" --weights=base --freeze="$kept" --optimizer="$optimizer" --shards=3 \
        --shard-by=tensor --epochs=1 --decay=0.01 --clip=1 --average=0.9 --out=one --replace
    frozen "$optimizer" "$kept" base/model.safetensors one/checkpoint/state.safetensors
done

# The checkpoint says what is frozen; a run that goes on keeps it, or is told otherwise.
grep -q '"freeze": "conv1,norm\*,dense1/bias"' one/summary.json ||
    fail "summary.json: $(grep freeze one/summary.json)"
run 0 --resume=one --epochs=2 --quiet
frozen "--resume" "$kept" base/model.safetensors one/checkpoint/state.safetensors
run 0 --resume=one --epochs=3 --freeze=dense2 --out=other --quiet
frozen "--resume --freeze=dense2" dense2 one/checkpoint/state.safetensors other/checkpoint/state.safetensors

# A frozen batch_norm computes by its own mean and variance, as evaluation does: with all else frozen and no
# step, the loss is that of evaluation, whatever is in the batch.
# shellcheck disable=SC2086
run 0 $few --model="$network" --weights=base --freeze='conv1,norm1,dense1' --optimizer=sgd:rate=0 --epochs=1 \
    --batch=192 --devices=cpu:0 --out=still --log-every=1
run 0 evaluate --checkpoint=base --part=train
train=$(awk -F, \
    'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") at = i; next } { printf "%.4f", $at; exit }' \
    still/steps.csv)
grep -q "Train-Cost: $train" out || fail "frozen norm: loss $train in training, evaluation: $(cat out)"

run 0 --resume=one --epochs=3 --freeze=none --out=thawed --quiet
frozen "--resume --freeze=none" nothing one/checkpoint/state.safetensors thawed/checkpoint/state.safetensors

# Of a norm of which only the mean is frozen the batch still counts, and the variance follows it.
# shellcheck disable=SC2086
run 0 $few --model="$network" --weights=base --freeze=norm1/mean --epochs=1 --out=mean
frozen "--freeze=norm1/mean" norm1/mean base/model.safetensors mean/model.safetensors

refused_with 2 '--freeze: "conv9" is not a weight: expected some of conv1/kernel, conv1/bias, norm1/scale, .*' \
    --model="$network" --freeze='conv1,conv9'
refused_with 2 '--freeze: found all weights frozen, expected some to train' --model="$network" --freeze='*'

# --- first weights ---
wide='layers:conv1 = conv 4 3x3 same relu; batch_norm; maxpool 2; flatten; dense 20 relu; head = dense'
for from in base base/checkpoint base/checkpoint/state.safetensors base/model.safetensors; do
    # shellcheck disable=SC2086
    timeout $limit "$TRAINER" --dataset=digits:take=192 --batch=16 --model="$wide" --weights=$from \
        --freeze='conv1,norm1' --epochs=1 --out=wide --replace >out 2>err ||
        fail "--weights=$from: $(cat err)"
    tr '\n' ' ' <out | tr -s ' ' | grep -Fq \
        "weights from $from; dense1: fresh, its kernel is [64, 12] there, [64, 20] here; head: fresh, \
no kernel of [20, 10] there" ||
        fail "--weights=$from: said $(head -n 9 out)"
    python3 - <<'PYTHON' || fail "--weights=$from: conv1 and norm1 are not those of the file"
import sys
sys.argv = ["", "conv1,norm1", "base/model.safetensors", "wide/model.safetensors"]
source = open("same.py").read().split("for name in [n")[0]
exec(source)
sys.exit(any(before[n] != after[n] for n in before if n.split("/")[0] in ("conv1", "norm1")))
PYTHON
done
refused_with 3 \
    'base: no layer fits: found conv1/kernel \[3, 3, 1, 4\], .*, expected dense1/kernel \[64, 9\], .*' \
    --model=mlp:hidden=9 --weights=base
refused_with 2 '--resume and --weights: .*' --resume=base --weights=base

# --- a cluster: the chief alone has the file, and both have the weights ---
new_cluster 0 2
for w in 0 1; do
    weights=''
    [ $w -eq 1 ] || weights=--weights=base
    # shellcheck disable=SC2086
    start w$w "$TRAINER" $few $hosts --job=worker --task=$w --model="$network" $weights --freeze="$kept" \
        --epochs=1 --out=pair --devices=cpu:0
done
ends 0 w0 w1
frozen "mirrored" "$kept" base/model.safetensors pair/model.safetensors
frozen "mirrored, the other" "$kept" base/model.safetensors pair/worker-1/model.safetensors
[ $failures -eq 0 ]
