#!/bin/bash
# Names of layers that meet those that an export makes: each file opens in the program that it is for,
# predicts what the program itself says, also after an import, and has the names that somebody gave where the
# format can have them.
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

cat >ask.py <<'PYTHON'
import gzip, os, re, subprocess
import keras, numpy as np, onnx, onnxruntime

trainer = os.environ["TRAINER"]
rows = np.array([list(map(int, line.split(",")))[:64]
                 for line in gzip.open(os.environ["ROOT"] + "/datasets/embedded/digits.csv.gz", "rt")][:40])
np.savetxt("rows.csv", rows, "%d", ",")
x = (rows / 16).astype(np.float32)

def run(*words):
    done = subprocess.run([trainer, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout

def said(folder): # in percent with one decimal
    lines = run("predict", f"--checkpoint={folder}", "--top=10", "rows.csv").splitlines()
    answers = [dict(re.findall(r'"(\d)" \(([\d.]+)%\)', line)) for line in lines]
    return np.array([[float(a[str(c)]) / 100 for c in range(10)] for a in answers])

def of_onnx(file):
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert [v.name for v in session.get_inputs()] == ["x"], file
    assert [v.name for v in session.get_outputs()] == ["probabilities", "logits"], file
    shape = session.get_inputs()[0].shape
    weights = [t.name for t in model.graph.initializer]
    nodes = [n.name for n in model.graph.node]
    return session.run(None, {"x": x.reshape([-1] + shape[1:])})[0], nodes, weights

def of_keras(file):
    model = keras.models.load_model(file, compile=False)
    shape = model.input_shape
    return np.asarray(model(x.reshape([-1, *shape[1:]]))), [layer.name for layer in model.layers]

def same(found, wanted, what):
    assert abs(found - wanted).max() < 1e-3, f"{what}: says {abs(found - wanted).max()} else"

# Layers; those that keep their names everywhere; names in .keras, and in .h5 where they are others.
networks = (
    ("logits = dense", ["logits"], ["logits", "probabilities"]),
    ("x = dense", ["x"], ["x", "probabilities"]),
    ("x = conv 4 3x3; logits = conv 3 1x1 gelu; flatten; dense", ["x", "logits"],
     ["reshape1", "x", "logits", "gelu1", "reshape2", "dense1", "probabilities"]),
    ("outputs = dense 9; probabilities = dense", ["outputs", "probabilities"],
     ["outputs", "probabilities", "probabilities_1"]),
    ("probabilities_1 = dense 9; probabilities = dense", ["probabilities", "probabilities_1"],
     ["probabilities_1", "probabilities", "probabilities_2"]),
    ("relu1 = dense 5; relu; dense", ["relu1", "dense1"], ["relu1", "relu1_1", "dense1", "probabilities"]),
    ("relu; placeholder1 = dense", ["placeholder1"], ["relu1", "placeholder1", "probabilities"]),
    ("placeholder1 = dense 4; add1 = dense input 4; add placeholder1 add1; dense",
     ["placeholder1", "add1", "dense1"],
     ["placeholder1_1", "placeholder1", "add1", "add1_1", "dense1", "probabilities"]),
    ("reshape1 = conv 4 3x3; relu; flatten; dense", ["reshape1", "dense1"],
     ["reshape1_1", "reshape1", "relu1", "reshape2", "dense1", "probabilities"]),
    ("network = dense 5; top_level_model_weights = dense", ["network", "top_level_model_weights"],
     ["network", "top_level_model_weights", "probabilities"],
     ["network", "top_level_model_weights_1", "probabilities"]),
    ("a = dense 8 relu; a/b = dense 7; a.b = dense 6; a_b = dense 5; a/kernel = dense",
     ["a", "a/b", "a.b", "a_b", "a/kernel"],
     ["a", "relu1", "a_b_1", "a_b_2", "a_b", "a_kernel", "probabilities"]),
    ("_ = dense 8; _a- = dense 7; layer_ = dense", ["_", "_a-", "layer_"],
     ["layer__1", "layer_a-", "layer_", "probabilities"]),
    ("conv1 = conv 4 3x3; batch_norm; norm1 = layer_norm; conv 3 3x3; flatten; dense1 = batch_norm; dense",
     ["conv1", "norm2", "norm1", "conv2", "dense1"],
     ["reshape1", "conv1", "norm2", "norm1", "conv2", "reshape2", "dense1", "dense1_1", "probabilities"]))

for layers, kept, in_keras, *in_h5 in networks:
    run("--dataset=digits:take=64", "--batch=32", "--epochs=1", "--quiet", "--replace", "--out=net",
               f"--model=layers:{layers}")
    wanted = said("net")
    for suffix in "onnx", "keras", "h5":
        run("export", "--replace", "--checkpoint=net", f"net.{suffix}")
        run("import", "--replace", "--out=again", f"net.{suffix}")
        same(said("again"), wanted, f"{layers}: net.{suffix}, imported,")
    found, nodes, weights = of_onnx("net.onnx")
    same(found, wanted, f"{layers}: onnxruntime")
    assert set(kept) <= set(nodes) and len(nodes) == len(set(nodes)), f"{layers}: nodes {nodes}"
    assert set(kept) <= {name.rsplit("/", 1)[0] for name in weights}, f"{layers}: weights {weights}"
    for file, names in ("net.keras", in_keras), ("net.h5", in_h5[0] if in_h5 else in_keras):
        found, layers_there = of_keras(file)
        same(found, wanted, f"{layers}: {file} in Keras")
        assert layers_there == names, f"{layers}: {file} has {layers_there}, expected {names}"
PYTHON
ROOT=$root TRAINER=$TRAINER "$python" ask.py >out 2>err || fail "$(tail -n 3 err)"
[ $failures -eq 0 ]
