#!/bin/bash
# --compress: fewer bytes, and the network learns; the same bits every time, over several parameter servers
# too, and from a checkpoint on, which has what the workers owe. Under every strategy. In one process it
# does nothing, and says so. MATRIX=1: two compressors with each number of parameter servers, else one of
# them in turn.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

task="--dataset=digits --model=mlp:hidden=40 --batch=32 --threads=1 --kernels=reference --quiet --timeout=20"

cluster() { # parameter servers, options...: trains in run/
    local servers=$1 i names=''
    shift
    new_cluster "$servers" 2
    for ((i = servers - 1; i >= 0; i--)); do
        start ps$i "$TRAINER" --job=ps --task=$i $hosts \
            --replace --out=$([ $i -eq 0 ] && echo run || echo elsewhere) $task "$@"
        names+=" ps$i"
    done
    for i in 0 1; do
        if [ "$servers" -gt 0 ]; then
            start w$i "$TRAINER" --job=worker --task=$i $hosts --threads=1 --kernels=reference \
                --quiet --timeout=20
        else
            start w$i "$TRAINER" --job=worker --task=$i $hosts --replace --out=run $task "$@"
        fi
        names+=" w$i"
    done
    ends 0 $names
}
number() {
    python3 -c 'import json, sys; print(eval(sys.argv[2], json.load(open(sys.argv[1] + "/summary.json"))))' \
        "$@"
}
bytes() { number run 'wire_sent + wire_received'; }

# --- fewer bytes, and it learns; the first epoch's weights go whole, and those of each epoch ---
cluster 1 --epochs=8 --strategy=sync
mv run plain
all=$(number plain 'wire_sent + wire_received')
for case in "bf16 0.6 0.85" "fp16 0.6 0.85" "top-k:share=0.1 0.35 0.8" "1-bit 0.2 0.8" \
    "power-sgd:rank=2 0.4 0.85"; do
    read -r name share good <<<"$case"
    cluster 1 --epochs=8 --strategy=sync --compress=$name
    python3 -c 'import sys; exit(not 0.02 < float(sys.argv[1]) / float(sys.argv[2]) < float(sys.argv[3]))' \
        "$(bytes)" "$all" $share ||
        fail "$name: $(bytes) bytes, $all without, expected $share of them at most"
    python3 -c 'import sys; exit(float(sys.argv[1]) < float(sys.argv[2]))' "$(number run test_accuracy)" \
        $good ||
        fail "$name: $(number run test_accuracy), without $(number plain test_accuracy)"
    [ "$(number run compress)" = "$name" ] || fail "summary.json: compress: $(number run compress)"
done
for name in $("$TRAINER" list | sed -n '/^compressors/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'); do
    [[ " none bf16 fp16 top-k 1-bit power-sgd " == *" $name "* ]] || fail "$name is not tested"
done

# --- the same bits: again, and from a checkpoint in the middle; over several parameter servers ---
pair=(top-k:share=0.05 1-bit)
for servers in 1 2 0; do
    pair=("${pair[1]}" "${pair[0]}")
    for name in "${pair[0]}" ${MATRIX:+"${pair[1]}"}; do
        what="$servers parameter servers, $name"
        cluster $servers --epochs=4 --optimizer=adam:rate=0.003 --average=0.9 --compress=$name
        rm -rf whole && mv run whole
        cluster $servers --epochs=4 --optimizer=adam:rate=0.003 --average=0.9 --compress=$name
        same_weights "$what, again" whole run
        cluster $servers --epochs=4 --optimizer=adam:rate=0.003 --average=0.9 --compress=$name --stop-after=2
        python3 - <<'PYTHON' || fail "$what: the checkpoint does not have what is owed"
import json, struct
file = open("run/checkpoint/state.safetensors", "rb")
header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
# In all slices.
owed = [header[key]["data_offsets"] for key in header if key.startswith("owed:") and key.endswith("kernel")]
rest = file.read()
exit(len(owed) != 2 or not all(any(rest[begin:end]) for begin, end in owed))
PYTHON
        rm -rf half && mv run half
        new_cluster $servers 2
        names=''
        for ((i = servers - 1; i >= 0; i--)); do
            more="--resume=half"
            [ $i -eq 0 ] ||
                more="$task --epochs=4 --optimizer=adam:rate=0.003 --average=0.9 \
                    --compress=$name --out=elsewhere --replace"
            start ps$i "$TRAINER" --job=ps --task=$i $hosts $more --quiet --threads=1 --kernels=reference \
                --timeout=20
            names+=" ps$i"
        done
        for i in 0 1; do
            more=
            [ "$servers" -gt 0 ] ||
                more="$task --epochs=4 --optimizer=adam:rate=0.003 --average=0.9 \
                    --compress=$name --replace --out=run"
            [ "$servers" -gt 0 ] || [ $i -gt 0 ] || more="--resume=half"
            start w$i "$TRAINER" --job=worker --task=$i $hosts $more --threads=1 --kernels=reference \
                --quiet --timeout=20
            names+=" w$i"
        done
        ends 0 $names
        same_weights "$what, in two parts" whole half
    done
done

# --- every strategy ---
for strategy in $(names_of strategies) async-lockfree:apply=worker; do
    cluster 1 --epochs=2 --strategy=$strategy --compress=1-bit
    [ "$(number run examples)" -eq $((2 * $(number plain examples) / 8)) ] ||
        fail "$strategy: $(number run examples) examples"
done

# --- one process ---
"$TRAINER" --quiet --dataset=iris --epochs=1 --compress=top-k:0.01 --out=alone >out 2>err ||
    fail "alone: exit code $?: $(cat err)"
grep -Fqx 'trainer: --compress=top-k:share=0.01 does nothing in one process, which sends nothing' err ||
    fail "alone: $(cat err)"
refused_with 2 'compressor "lzma": unknown \(one of .*\)' --compress=lzma
[ $failures -eq 0 ]
