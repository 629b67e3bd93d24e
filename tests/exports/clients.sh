#!/bin/bash
# trainer export, opened by the programs that it is for: onnxruntime and Keras predict what the program itself
# says of the same examples, and NumPy computes it from the arrays that are named and turned for PyTorch.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
grep -q TRAINER_PROTOBUF=1 "$BUILD/flags" && grep -q TRAINER_HDF5=1 "$BUILD/flags" ||
    { echo "no protobuf-c or no libhdf5 in this build" && exit 77; }

# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with "keras, onnx, onnxruntime" "Keras and onnxruntime are"

small="--epochs=2 --batch=32 --quiet"
sequence='conv 6 3x3 same stride=2 no_bias; batch_norm; leaky_relu 0.2; pad 1x2; avgpool 2 same; '\
'conv 8 2x3 valid gelu; silu; maxpool 2x1; elu 0.7; dropout 0.3
    flatten; dense 20 tanh; batch_norm; dense 12 sigmoid; dense'
flattened='conv 6 3x3 relu; maxpool 2; flatten; batch_norm; dense 20 relu; dense'
branches='a = conv 4 3x3 same relu; b = conv 6 1x1 same silu; concat a b; c = conv 10 3x3 same; '\
'd = concat a b; add c d; global_avgpool; dense'
squeeze='conv 3 2x2 same; a = depthwise 3x2 2 same bias=5.5 relu6; global_avgpool; dense 4 relu; '\
'dense 6 hard_sigmoid; reshape 1x1x6; multiply a
    depthwise 2 stride=2 no_bias hard_swish; global_maxpool; dense'
seq 300 | awk '{ a = $1 * 7 % 9; b = $1 * 5 % 8; c = $1 % 9; print a "," b "," c "," (a + c) % 3 }' \
    >things.csv
awk -F, 'BEGIN { print "town,age,shop,kind" } { print "t" $1 "," $2 ",s" $3 "," $4 }' things.csv >towns.csv
# shellcheck disable=SC2086
{
    "$TRAINER" $small --dataset=digits --model=cnn --out=cnn &&
        "$TRAINER" $small --dataset=digits --model=lenet --out=lenet &&
        "$TRAINER" $small --dataset=digits --model=mlp:hidden=20-10,activation=sigmoid --out=mlp &&
        "$TRAINER" $small --dataset=digits --model=softmax --out=softmax &&
        "$TRAINER" $small --dataset=digits:take=256 --model=alexnet --out=alexnet &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$root/models/layers/resnet20.txt" \
            --out=resnet20 &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$root/models/layers/mobilenet.txt" \
            --out=mobilenet &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$squeeze" --out=squeeze &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$sequence" --out=sequence &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$branches" --out=branches &&
        "$TRAINER" $small --dataset=digits:take=256 --model="layers:$flattened" --out=flattened &&
        "$TRAINER" $small --dataset=csv:file=things.csv,standardize=0 \
            --model='layers:embedding 9 4; flatten; dense' --out=embedding &&
        "$TRAINER" $small --dataset=csv:file=towns.csv,embedding=3 --model=mlp:hidden=6 --out=towns &&
        "$TRAINER" $small --dataset=digits:take=256 \
            --model="layers:conv 4 3x3 relu; layer_norm epsilon=0.01; flatten; dense 12; layer_norm; dense" \
            --out=layer_norm
} >out 2>err || fail "runs: $(cat err)"

cat >ask.py <<'PYTHON'
import gzip, os, re, subprocess, sys
import keras, numpy as np, onnx, onnxruntime

trainer = os.environ["TRAINER"]
rows = np.array([list(map(int, line.split(",")))
                 for line in gzip.open(os.environ["ROOT"] + "/datasets/embedded/digits.csv.gz", "rt")])
things = np.loadtxt("things.csv", delimiter=",")

def said(run, examples, classes, names=None): # by the program, in percent with one decimal
    np.savetxt("rows.csv", examples, ("t%d", "%d", "s%d") if names else "%d", ",", header=names or "",
               comments="")
    out = subprocess.run([trainer, "predict", f"--checkpoint={run}", f"--top={classes}", "rows.csv"],
                         capture_output=True, text=True, check=True).stdout
    answers = [dict((int(c), float(p)) for c, p in re.findall(r'"(\d)" \(([\d.]+)%\)', line))
               for line in out.splitlines()]
    assert len(answers) == 200 and all(len(a) == classes for a in answers), out[:300]
    return np.array([[a[c] / 100 for c in range(classes)] for a in answers])

def windows(x, size, padding): # [n, c, h, w] -> [n, c, h, w, size, size]
    before = (size - 1) // 2 if padding == "same" else 0
    after = size - 1 - before if padding == "same" else 0
    x = np.pad(x, ((0, 0), (0, 0), (before, after), (before, after)))
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))

# As PyTorch's modules compute it: conv, ReLU and pool; normalisation of the row; dense and ReLU, of these.
def torch_forward(run, x):
    w = np.load(f"{run}.torch.npz")
    x = x.reshape(-1, 1, 8, 8)
    for layer in [n for n in ("conv1", "conv2") if f"{n}.weight" in w]:
        x = np.einsum("ncijkl,ockl->noij",
                      windows(x, w[f"{layer}.weight"].shape[2], "same" if run == "lenet" else "valid"),
                      w[f"{layer}.weight"])
        x = np.maximum(x + w[f"{layer}.bias"][:, None, None], 0)
        n, c, h, v = x.shape
        x = x[:, :, :h // 2 * 2, :v // 2 * 2].reshape(n, c, h // 2, 2, v // 2, 2).max((3, 5))
    x = x.reshape(len(x), -1)
    if "norm1.weight" in w:
        x = ((x - w["norm1.running_mean"]) / np.sqrt(w["norm1.running_var"] + 1e-5) * w["norm1.weight"] +
             w["norm1.bias"])
    layers = sorted({name.split(".")[0] for name in w.files if name.startswith("dense")})
    for layer in layers:
        x = x @ w[f"{layer}.weight"].T + w[f"{layer}.bias"]
        x = np.maximum(x, 0) if layer != layers[-1] else x
    return np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)

for run in ("cnn", "lenet", "mlp", "softmax", "alexnet", "resnet20", "mobilenet", "squeeze", "sequence",
            "branches", "flattened", "embedding", "towns", "layer_norm"):
    examples, scale, classes = ((things[:200, :3], 1, 3) if run in ("embedding", "towns")
                                else (rows[:200, :64], 16, 10))
    x = (examples / scale).astype(np.float32)
    subprocess.run([trainer, "export", "--replace", f"--checkpoint={run}", f"{run}.onnx"], check=True,
                   stdout=subprocess.DEVNULL)
    model = onnx.load(f"{run}.onnx")
    onnx.checker.check_model(model, full_check=True)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    if run == "towns": # the number, then the codes: from 1 on those of t0 to t8, then those of s0 to s8
        mean, deviation = (np.array(notes[name].split(","), float) for name in ("mean", "deviation"))
        x = ((np.stack([things[:200, 1], 1 + things[:200, 0], 10 + things[:200, 2]], 1) - mean) /
             deviation).astype(np.float32)
    assert (notes["class_names"].split("\t") == list("0123456789")[:classes] and
            abs(float(notes.get("scale", 1)) * scale - 1) < 1e-6), notes
    session = onnxruntime.InferenceSession(f"{run}.onnx", providers=["CPUExecutionProvider"])
    shape = session.get_inputs()[0].shape
    assert shape[0] == "N" and [o.name for o in session.get_outputs()] == ["probabilities", "logits"], shape
    probabilities, logits = session.run(None, {"x": x.reshape([-1] + shape[1:])})
    wanted = said(run, examples, classes, "town,age,shop" if run == "towns" else None)
    worst = abs(probabilities - wanted).max()
    assert worst < 1e-3, f"{run}: onnxruntime says {worst} else" # predict prints so many digits
    assert (probabilities.argmax(1) == logits.argmax(1)).all()
    one = session.run(None, {"x": x[:1].reshape([1] + shape[1:])})[0]
    assert abs(one - probabilities[:1]).max() < 1e-6, f"{run}: one example says something else than many"
    if run == "alexnet": # Keras has no layer for its LRN
        continue
    for suffix in "h5", "keras":
        subprocess.run([trainer, "export", "--replace", f"--checkpoint={run}", f"{run}.{suffix}"], check=True,
                       stdout=subprocess.DEVNULL)
        network = keras.models.load_model(f"{run}.{suffix}", compile=False)
        worst = abs(np.asarray(network(x.reshape([-1] + shape[1:]))) - probabilities).max()
        assert worst < 1e-5, f"{run}.{suffix}: Keras says {worst} else than onnxruntime"
        assert network.layers[-1].name == "probabilities" and type(network).__name__ == (
            "Functional" if run in ("resnet20", "squeeze", "branches", "towns") else "Sequential"), network
    if run == "squeeze":
        for names in "", "--names=torch":
            subprocess.run([trainer, "export", "--replace", "--checkpoint=squeeze", *names.split(),
                            f"{run}{len(names)}.npz"], check=True, stdout=subprocess.DEVNULL)
        ours, torch = np.load("squeeze0.npz"), np.load("squeeze13.npz")
        assert (ours["a/kernel"].shape == (3, 2, 3, 2) and
                (torch["a.weight"] == ours["a/kernel"].transpose(2, 3, 0, 1).reshape(6, 1, 3, 2)).all())
    if run in ("cnn", "lenet", "flattened"):
        subprocess.run([trainer, "export", "--replace", f"--checkpoint={run}", "--names=torch",
                        f"{run}.torch.npz"],
                       check=True, stdout=subprocess.DEVNULL)
        worst = abs(torch_forward(run, x) - probabilities).max()
        assert worst < 1e-5, f"{run}: PyTorch's layout says {worst} else"
PYTHON
ROOT=$root TRAINER=$TRAINER "$python" ask.py >out 2>err || fail "$(tail -n 3 err)"

# --- values come in their units, labels as their probabilities ---
cat >make.py <<'PYTHON'
import numpy as np
r = np.random.default_rng(2)
x = r.normal(size=(200, 3)).astype("f4")
np.savez("values.npz", x=x, y=np.stack([500 + 30 * x[:, 0], 0.01 * x[:, 1]], 1))
np.savez("labels.npz", x=x, y=np.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 1], 1).astype("u1"))
np.savetxt("rows.csv", x[:5], delimiter=",")
PYTHON
cat >values.py <<'PYTHON'
import re, subprocess, os
import keras, numpy as np, onnxruntime
trainer, rows = os.environ["TRAINER"], np.loadtxt("rows.csv", delimiter=",")
for run, names, close in (("values", ["outputs"], 1e-4), ("labels", ["probabilities", "logits"], 1e-3)):
    said = subprocess.run([trainer, "predict", f"--checkpoint={run}", "--top=2", "rows.csv"], check=True,
                          capture_output=True, text=True).stdout
    found = [dict(re.findall(r'"(\d)" \(?([-\de.]+)', line)) for line in said.splitlines()]
    wanted = np.array([[float(row[name]) for name in "01"]
                       for row in found]) / (100 if run == "labels" else 1)
    for suffix in "onnx", "h5", "keras":
        subprocess.run([trainer, "export", "--replace", f"--checkpoint={run}", f"{run}.{suffix}"], check=True,
                       stdout=subprocess.DEVNULL)
    session = onnxruntime.InferenceSession(f"{run}.onnx", providers=["CPUExecutionProvider"])
    assert [o.name for o in session.get_outputs()] == names, names
    notes = session.get_modelmeta().custom_metadata_map
    mean, deviation = (np.array(notes[name].split(","), float) for name in ("mean", "deviation"))
    x = ((rows - mean) / deviation).astype("f4")
    outputs = {"onnx": session.run(None, {"x": x})[0]}
    for suffix in "h5", "keras":
        network = keras.models.load_model(f"{run}.{suffix}", compile=False)
        assert network.layers[-1].name == names[0], network.layers[-1].name
        outputs[suffix] = np.asarray(network(x))
    for suffix, output in outputs.items():
        assert np.allclose(output, wanted, rtol=1e-4, atol=close), (
            f"{run}.{suffix}: {output} instead of {wanted}")
PYTHON
"$python" make.py && for run in values labels; do
    "$TRAINER" --epochs=3 --quiet --dataset=npz:file=$run.npz,x=x,y=y --model=mlp:hidden=5 --optimizer=adam \
        --out=$run >out 2>err || fail "$run: $(cat err)"
done
TRAINER=$TRAINER "$python" values.py >out 2>err || fail "$(tail -n 3 err)"
[ $failures -eq 0 ]
