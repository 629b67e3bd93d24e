#!/bin/bash
# --average end to end: what is tested is what is kept, what evaluate and predict take, and what a resumed run
# goes on with.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

good() { # arguments...: standard output is left in the file out
    "$TRAINER" "$@" >out 2>err || fail "trainer $*: exit code $?: $(cat err)"
}

train() { # folder, more...
    local out=$1
    shift
    good --dataset=digits:take=480 --model=mlp:hidden=16 --batch=16 --optimizer=momentum:rate=0.05 \
        --epochs=4 --devices=cpu:0,cpu:1 --threads=1 --quiet --replace --out="$out" "$@"
}

accuracy() { sed -n 's/^Test-Accuracy: //p' out; }

same() { # file, prefix, file, prefix: are the tensors under these prefixes the same bits, and is there any
    python3 - "$@" <<'PY'
import json, sys
def tensors(path, prefix):
    data = open(path, 'rb').read()
    length = int.from_bytes(data[:8], 'little')
    found = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        vector, colon, rest = name.rpartition(':')
        if name != '__metadata__' and vector == prefix:
            begin, end = entry['data_offsets']
            found[rest] = data[8 + length + begin:8 + length + end]
    return found
a, b = tensors(*sys.argv[1:3]), tensors(*sys.argv[3:5])
sys.exit(not a or a != b)
PY
}

state=checkpoint/state.safetensors
for strategy in sync local-sgd:every=3 async-lockfree ssp; do
    train averaged --strategy=$strategy --average=0.95
    tested=$(accuracy)
    same averaged/model.safetensors '' averaged/$state average ||
        fail "$strategy: the model is not the average"
    ! same averaged/model.safetensors '' averaged/$state '' || fail "$strategy: the average is the weights"
    for path in averaged averaged/model.safetensors; do
        good evaluate --checkpoint=$path --dataset=digits
        [ "$tested" = "$(accuracy)" ] ||
            fail "$strategy: training says $tested, evaluate of $path: $(cat out)"
    done
    good --resume=averaged --devices=cpu:0,cpu:1 --quiet # all epochs are done: it only tests
    [ "$tested" = "$(accuracy)" ] || fail "$strategy: training says $tested, resumed and tested: $(cat out)"
done

for strategy in sync local-sgd:every=3; do
    train averaged --strategy=$strategy --average=0.95
    train plain --strategy=$strategy
    same averaged/$state '' plain/$state '' || fail "$strategy: other weights with an average beside them"
    ! same plain/$state average plain/$state average || fail "$strategy: an average that nobody asked for"
    same plain/model.safetensors '' plain/$state '' || fail "$strategy: the model is not the weights"

    # In two parts; the decay is the checkpoint's.
    train parts --strategy=$strategy --average=0.95 --epochs=2
    good --resume=parts --epochs=4 --devices=cpu:0,cpu:1 --threads=1 --quiet
    for vector in '' average momentum; do
        same averaged/$state "$vector" parts/$state "$vector" ||
            fail "$strategy, resumed: another ${vector:-weight}"
    done

    # An average that begins later begins with the weights there are; one that is given up is gone.
    train late --strategy=$strategy --epochs=4
    good --resume=late --replace --out=later --average=0.95 --epochs=4 --devices=cpu:0,cpu:1 --quiet
    same later/$state average later/$state '' || fail "$strategy: the average does not begin with the weights"
    good --resume=parts --average=0 --epochs=5 --devices=cpu:0,cpu:1 --quiet
    ! same parts/$state average parts/$state average || fail "$strategy: --average=0 keeps an average"
    same parts/model.safetensors '' parts/$state '' ||
        fail "$strategy, --average=0: the model is not the weights"
done
train once --average=0.95
train given --average=0.95 --weights=once/model.safetensors --optimizer=sgd:rate=0
same given/model.safetensors '' once/model.safetensors '' ||
    fail "--weights: the average does not begin with them"

# --- over the bridge ---
# A port that nobody has and that the kernel gives to nobody who connects.
free_port() {
    python3 - <<'PY'
import random, socket
while True:
    port = random.randrange(15000, 30000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            print(port)
            break
        except OSError:
            pass
PY
}
port=$(free_port)
cluster="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))"
options="--dataset=digits:take=480 --model=mlp:hidden=16 --batch=16 --optimizer=momentum:rate=0.05 \
    --epochs=4 --quiet"
# shellcheck disable=SC2086 # several words
for strategy in sync local-sgd:every=3; do
    train once --strategy=$strategy --average=0.95
    timeout 100 "$TRAINER" --job=ps --task=0 $cluster $options --strategy=$strategy --average=0.95 \
        --replace --out=bridge >ps.out 2>&1 &
    ps=$!
    for task in 0 1; do
        timeout 100 "$TRAINER" --job=worker --task=$task $cluster $options --strategy=$strategy \
            --devices=cpu:0 --threads=1 >worker$task.out 2>&1 &
    done
    wait $ps || fail "the parameter server: $(cat ps.out)"
    wait
    same once/model.safetensors '' bridge/model.safetensors '' ||
        fail "$strategy: another average over the bridge"
done

"$TRAINER" --average=1.5 >out 2>err
{ [ $? -eq 2 ] && grep -q -- '--average=1.5: expected 0 to 1' err; } || fail "--average=1.5: $(cat err)"
[ $failures -eq 0 ]
