#!/bin/bash
# The state of the optimizer in Keras' files, without Keras: what trainer export writes comes back bit for bit
# where the rate is a power of two, and is what Keras has; what has no counterpart on the other side is left
# out, and said. imports/optimizer_clients asks Keras itself.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
grep -q TRAINER_HDF5=1 "$BUILD/flags" || { echo "no libhdf5 in this build" && exit 77; }

run() { # exit code, arguments...
    local wanted=$1
    shift
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq "$wanted" ] || fail "$*: exit code $code, expected $wanted: $(cat err)"
}
branches='a = conv 4 3x3 same relu; b = conv 6 1x1 same silu; concat a b; conv 10 3x3 same; batch_norm; '\
'global_avgpool; layer_norm; dense'

# --- state, settings and steps come along ---
cat >state.py <<'PYTHON'
import json, struct, sys
def read(run):
    data = open(f"{run}/checkpoint/state.safetensors", "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return {name: data[8 + length:][slice(*entry["data_offsets"])] for name, entry in header.items()}, texts
(there, texts), (here, kept) = read("there"), read("here")
there = {name: values for name, values in there.items() if not name.startswith("owed")}
assert there.keys() == here.keys(), f"{here.keys()} instead of {there.keys()}"
for name in there:
    assert there[name] == here[name], f"{name}: other numbers"
    assert any(there[name]) or name.endswith(("/mean", "/variance")), f"{name}: zeros"
assert (texts["version"] == kept["version"] and int(kept["schedule_ahead"]) == -int(kept["version"]) and
        kept["schedule"] == "constant"), kept
# As Keras has it: SGD's m is -rate v
momentum = [name for name in there if name.startswith("momentum:")][-1:]
if sys.argv[1].endswith(".h5") and momentum:
    floats = struct.unpack(f"<{len(there[momentum[0]]) // 4}f", there[momentum[0]])
    rate = float(texts["optimizer"].split("rate=")[1].split(",")[0])
    assert struct.pack(f"<{len(floats)}f", *[-rate * v for v in floats]) in open(sys.argv[1], "rb").read(), (
        f"{momentum}: not as Keras has it")
PYTHON
for optimizer in sgd:rate=0.0625 momentum:rate=0.0625,momentum=0.875 nesterov:rate=0.03125,momentum=0.9 \
    adam:rate=0.002,hat=1 adagrad:rate=0.0625,epsilon=0; do
    run 0 --dataset=digits:take=256 --batch=32 --quiet --model="layers:$branches" --optimizer=$optimizer \
        --schedule=constant --epochs=1 --out=there --replace
    for suffix in h5 keras; do
        run 0 export --replace --checkpoint=there there.$suffix
        [ ! -s err ] || fail "$optimizer: export said $(cat err)"
        run 0 import there.$suffix --dataset=digits:take=256 --out=here --replace
        grep -Eqx "Its optimizer goes on from update [1-9][0-9]*: ${optimizer%%,*}.*, constant" out ||
            fail "$optimizer: import of .$suffix said $(cat out err)"
        python3 state.py there.$suffix >differs 2>&1 || fail "$optimizer, .$suffix: $(tail -n 1 differs)"
    done
done
run 0 --resume=here --epochs=1 --quiet
left() { # what is said of an exported run, settings
    run 0 --dataset=digits:take=256 --batch=32 --quiet --model=mlp:hidden=3 --epochs=1 --out=there \
        --replace --schedule=constant "${@:2}"
    run 0 export --replace --checkpoint=there left.keras
    grep -Fqx "trainer: left.keras: left out: $1" err || fail "${*:2}: export said $(cat err)"
}
goes_on() { # yes or no
    run 0 import left.keras --dataset=digits:take=256 --out=here --replace
    [ "$(grep -c 'goes on' out)" -eq "$1" ] ||
        fail "the optimizer of a run with something left out: import said $(cat out err)"
}
left "the optimizer's state, which Keras has no exact counterpart of" --optimizer=muon && goes_on 0
left "the optimizer's state, which is of the weights without --average" --average=0.5 && goes_on 0
left "the optimizer's state, as adagrad's epsilon is above 1e-6" --optimizer=adagrad:epsilon=0.1 && goes_on 0
left '--schedule=cosine, --decay=0.001, --clip=1, --label-smoothing=0.1' \
    --schedule=cosine --decay=0.001 --clip=1 --label-smoothing=0.1 && goes_on 1
left 'that weight-decay is not for biases, scales and shifts' --optimizer=adam:weight-decay=0.01 && goes_on 1
grep -qx \
    'trainer: left.keras: its weight decay goes on for kernels, not for biases, scales and shifts as there' \
    err || fail "weight decay: import said $(cat err)"
run 0 export --replace --checkpoint=there left.h5
grep -Fqx "trainer: left.h5: left out: the optimizer's state, as its weight-decay is in .keras alone" err ||
    fail "weight decay as .h5: $(cat err)"
run 0 export --replace --checkpoint=there/model.safetensors left.keras
[ ! -s err ] && goes_on 0 # a model has weights alone
run 0 --dataset=digits:take=256 --batch=32 --quiet --model=mlp:hidden=3 --epochs=1 --out=there \
    --replace --optimizer=momentum
run 0 export --replace --checkpoint=there left.h5
changed() { # what in left.h5 becomes what, of the same length; exit code, what is said
    python3 - "$1" "$2" <<'PYTHON'
import sys
data, old, new = open("left.h5", "rb").read(), *[text.encode() for text in sys.argv[1:]]
assert old in data and len(old) == len(new), old
open("changed.h5", "wb").write(data.replace(old, new))
PYTHON
    run "$3" import changed.h5 --dataset=digits:take=256 --out=here --replace
    grep -Eqx "trainer: changed\.h5: $4" err && [ "$(wc -l <err)" -eq 1 ] ||
        fail "$1 as $2: said $(cat out err), expected $4"
}
changed '"SGD"' '"Foo"' 0 'its optimizer is left out: found Foo, expected one of SGD, Adam, AdamW, Adagrad'
changed '"momentum":' '"clipnorm":' 0 'its optimizer is left out: found clipnorm, expected none'
changed '"learning_rate": 0.01' '"learning_rate": null' \
    0 'its optimizer is left out: found a learning rate that is not a number, .*'
changed '"learning_rate": 0.01' '"learning_rate": 0.00' \
    0 'its optimizer is left out: found momentum and the learning rate 0, expected one above 0'
changed '"momentum": 0.9' '"momentum": 3.0' 0 'its optimizer is left out: .*momentum=3: .*'
changed 'bias/momentum:0' 'bias/momentum/0' 0 'its optimizer is left out: .*'
run 0 export --replace --checkpoint=there left.keras
python3 - <<'PYTHON'
import zipfile
with zipfile.ZipFile("left.keras") as given, zipfile.ZipFile("changed.keras", "w") as made:
    for name in given.namelist():
        data = given.read(name)
        if name == "config.json":
            assert data.count(b'"module": "keras.optimizers"') == 1, data
            data = data.replace(b'"module": "keras.optimizers"', b'"module": "mine"')
        made.writestr(name, data)
PYTHON
run 0 import changed.keras --dataset=digits:take=256 --out=here --replace
grep -qx 'trainer: changed.keras: its optimizer is left out: found SGD of mine, expected a class of Keras '\
'itself' err ||
    fail "an optimizer of mine: import said $(cat err)"
[ $failures -eq 0 ]
