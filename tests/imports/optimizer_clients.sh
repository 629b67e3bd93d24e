#!/bin/bash
# A training goes on where another program began it: some epochs in Keras, then as many here and in Keras, and
# the other way round, under the optimizers that both have (CLIENTS=all: each of them, from every format). All
# of the data is one batch, so its order says nothing. The weights agree to 1e-5. Keras computes with JAX;
# Keras 2 (tf_keras) is asked where it is: in TRAINER_PYTHON, or beside the others.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
grep -q TRAINER_HDF5=1 "$BUILD/flags" || { echo "no libhdf5 in this build" && exit 77; }
# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with "keras, jax" "Keras and JAX are"

cat >ask.py <<'PYTHON'
import os, subprocess, sys
second = sys.argv[1] == "2"
if second:
    import tf_keras as keras
    O, suffix = keras.optimizers, "h5"
else:
    import keras
    O, suffix = keras.optimizers, "keras"
import numpy as np
L, trainer, random = keras.layers, os.environ["TRAINER"], np.random.default_rng(1)
whole, epochs = os.environ.get("CLIENTS") == "all", 10
one = ["--batch=48", "--quiet", "--threads=1", "--devices=cpu:0"]
x, y = random.normal(size=(48, 8, 8, 1)).astype("f4"), np.arange(48) % 4
np.savez("set.npz", x_train=x, y_train=y, x_test=x, y_test=y)

def run(*words):
    done = subprocess.run([trainer, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout + done.stderr

def net(): # of two branches with arrays of the same shapes
    i = keras.Input((8, 8, 1))
    a, b = (L.Conv2D(4, 3, padding="same", activation="relu")(i),
            L.Conv2D(4, 3, padding="same", activation="tanh")(i))
    c = L.Flatten()(L.MaxPooling2D()(L.BatchNormalization(momentum=0.8)(L.Add()([a, b]))))
    return keras.Model(
        i, L.Dense(4, activation="softmax")(L.LayerNormalization()(L.Dense(12, activation="tanh")(c))))

def fit(model):
    model.run_eagerly = True # compiling takes longer than ten steps
    model.fit(x, y, batch_size=48, epochs=epochs, shuffle=False, verbose=0)

def compare(what, model, path):
    other = keras.models.load_model(path, compile=False)
    # TensorFlow's fused batch normalisation follows another variance than Keras' own: n / (n - 1) of it
    mine, theirs = (model.trainable_weights, other.trainable_weights) if second else (model.weights,
                                                                                      other.weights)
    worst = max(abs(np.asarray(a) - np.asarray(b)).max() for a, b in zip(mine, theirs))
    print(f"Keras {keras.__version__}, {what}: {worst:.1e}")
    assert worst < 1e-5, f"{what}: weights differ by {worst}"

# --- begun in Keras; without decay of kernels, which is of biases, too, there ---
begun = {"Adam": lambda: O.Adam(0.003, beta_1=0.8),
         "nesterov": lambda: O.SGD(0.02, momentum=0.9, nesterov=True),
         "momentum": lambda: O.SGD(0.02, momentum=0.9),
         "SGD": lambda: O.SGD(0.05), "Adagrad": lambda: O.Adagrad(0.02)}
if second:
    begun |= {"legacy Adam": lambda: O.legacy.Adam(0.003),
              "legacy momentum": lambda: O.legacy.SGD(0.02, momentum=0.9),
              "legacy Adagrad": lambda: O.legacy.Adagrad(0.02)}
for name, make in begun.items():
    if not whole and name not in ("Adam", "nesterov"):
        continue
    keras.utils.set_random_seed(3)
    model = net()
    model.compile(make(), "sparse_categorical_crossentropy")
    fit(model)
    # Keras 3 forgets the optimizer's settings when it saves as .h5; so that is the last
    for saved in ("h5",) if "legacy" in name else ("keras", "h5") if whole else (suffix,):
        model.save(f"begun.{saved}")
        said = run("import", f"begun.{saved}", "--dataset=npz:file=set.npz", f"--out={saved}", "--replace")
        assert f"goes on from update {epochs}: " in said, said
        run(f"--resume={saved}", f"--epochs={epochs}", *one)
        run("export", "--replace", f"--checkpoint={saved}", f"{saved}.{suffix}")
    fit(model)
    for saved in ("h5",) if "legacy" in name else ("keras", "h5") if whole else (suffix,):
        compare(f"{name} begun there, as .{saved}", model, f"{saved}.{suffix}")

# --- begun here: what --export wrote there, and what trainer export writes of the run that goes on ---
layers = ("a = conv 4 3x3 same relu; b = conv input 4 3x3 same tanh; add a b; batch_norm; maxpool 2; "
          "flatten; dense 12 tanh; layer_norm; dense")
for optimizer in ("adam:rate=0.003,hat=1", "adam:rate=0.003", "nesterov:rate=0.02,momentum=0.8",
                  "momentum:rate=0.02", "sgd:rate=0.05", "adagrad:rate=0.02"):
    if not whole and optimizer not in ("adam:rate=0.003,hat=1", "momentum:rate=0.02"):
        continue
    run(f"--model=layers:{layers}", "--dataset=npz:file=set.npz", f"--optimizer={optimizer}",
        "--schedule=constant", f"--epochs={epochs}", *one, "--out=here", "--replace",
        f"--export=here.{suffix}")
    model = keras.models.load_model(f"here.{suffix}")
    fit(model)
    run("--resume=here", f"--epochs={2 * epochs}", *one)
    run("export", "--replace", "--checkpoint=here", f"on.{suffix}")
    compare(f"{optimizer} begun here", model, f"on.{suffix}")

# --- what is not here is left out, and said ---
if whole and not second:
    for what, optimizer in (("found RMSprop, expected one of SGD, Adam, AdamW, Adagrad", O.RMSprop()),
                            ("found amsgrad, expected none", O.Adam(amsgrad=True)),
                            ("found clipnorm, expected none", O.SGD(clipnorm=1.0)),
                            ("found a learning rate that is not a number",
                             O.SGD(O.schedules.CosineDecay(0.1, 100)))):
        model.compile(optimizer, "sparse_categorical_crossentropy")
        fit(model)
        model.save("other.keras")
        said = run("import", "other.keras", "--dataset=npz:file=set.npz", "--out=other", "--replace")
        assert f"its optimizer is left out: {what}" in said and "goes on" not in said, said
PYTHON
ask() { # Python, which Keras
    KERAS_BACKEND=jax TF_CPP_MIN_LOG_LEVEL=3 TRAINER=$TRAINER "$1" ask.py "$2" >>out 2>err ||
        fail "Keras $2: $(tail -n 3 err)"
}
ask "$python" 3
for second in ${TRAINER_PYTHON:+"$TRAINER_PYTHON"} "$python"; do
    "$second" -c "import tf_keras" 2>/dev/null && ask "$second" 2 && break
done
[ -z "${CLIENTS:-}" ] || cat out
[ $failures -eq 0 ]
