#!/bin/bash
# Networks that Keras itself has made and saved, in each of its formats: imported, exported again and loaded
# by Keras, they predict the same to 1e-5; with all layers that both have, and residual networks as
# keras.applications builds them. CLIENTS=all takes every network in every pair of formats; else the larger
# ones, by one format on the way in and the other on the way back.
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
import os, subprocess
import keras, numpy as np
from keras import layers as L
trainer, random = os.environ["TRAINER"], np.random.default_rng(1)

def head(x, classes=4):
    return L.Dense(classes, activation="softmax")(L.Flatten()(x))

def block(x, filters, stride): # as in keras.applications.resnet
    shortcut = x
    if stride > 1 or x.shape[-1] != filters:
        shortcut = L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(filters, 1, strides=stride)(x))
    x = L.Activation("relu")(
        L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(filters // 2, 1, strides=stride)(x)))
    x = L.Activation("relu")(
        L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(filters // 2, 3, padding="SAME")(x)))
    x = L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(filters, 1)(x))
    return L.Activation("relu")(L.Add()([shortcut, x]))

def resnet():
    x = i = keras.Input((16, 16, 3))
    x = L.ZeroPadding2D(((3, 3), (3, 3)), name="conv1_pad")(x)
    x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(8, 7, strides=2)(x)))
    x = L.MaxPooling2D(3, strides=2)(L.ZeroPadding2D(1)(x))
    for filters, stride in (16, 1), (16, 1), (32, 2):
        x = block(x, filters, stride)
    return keras.Model(i, L.Dense(4, activation="softmax",
                                  name="predictions")(L.GlobalAveragePooling2D(name="avg_pool")(x)))

def branches():
    i = keras.Input((16, 16, 3))
    a, b = (L.Conv2D(4, 3, padding="same", activation="silu")(i),
            L.Conv2D(6, (1, 2), padding="same", use_bias=False)(i))
    c = L.Concatenate()([L.LeakyReLU()(b), a])
    d = L.Concatenate(axis=1)([L.AveragePooling2D(2, padding="same")(c),
                               L.MaxPooling2D(3, strides=2, padding="same")(c)])
    return keras.Model(i, head(L.Add()([d, L.ELU(0.5)(d), L.ReLU(negative_slope=0.1)(d)])))

def kept():
    i = keras.Input((16, 16, 3))
    x = L.GlobalAveragePooling2D(keepdims=True)(L.Conv2D(5, 3, strides=(2, 1))(i))
    return keras.Model(i, L.Softmax()(L.Dense(4)(L.Reshape((-1,))(L.Activation("tanh")(x)))))

def sequential(*layers, shape=(16, 16, 3)):
    return keras.Sequential([keras.Input(shape), *layers, L.Dense(4, activation="softmax")])

def mobile(): # as in keras.applications.mobilenet
    x = i = keras.Input((16, 16, 3))
    x = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(x)))
    x = L.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, strides=2, use_bias=False)(x)))
    x = L.Activation("hard_silu")(
        L.Conv2D(6, 1)(L.DepthwiseConv2D((1, 2), depth_multiplier=2, padding="same")(x)))
    x = L.Multiply()([x, L.Activation("hard_sigmoid")(x)])
    return keras.Model(i, L.Dense(4, activation="softmax")(L.GlobalMaxPooling2D()(x)))

def transfer(): # a head on another network, of which a part is frozen; models within models
    i = keras.Input((18, 18, 3))
    x = y = L.BatchNormalization(trainable=False)(L.Conv2D(5, 3, name="same", trainable=False)(i))
    x = L.Add()([y, L.BatchNormalization()(L.Conv2D(5, 3, padding="same", activation="relu")(x))])
    base = keras.Model(i, x, name="base")
    deep = keras.Sequential([keras.Input((5,)), L.Dense(6, name="same"), L.BatchNormalization()])
    body = keras.Sequential([keras.Input((5,)), L.Dense(5), deep, L.Dense(5, activation="tanh")])
    other = keras.Sequential([keras.Input((5,)), L.Dense(5, name="same")])
    i = keras.Input((16, 16, 3))
    x = L.GlobalAveragePooling2D()(base(L.ZeroPadding2D()(i), training=False))
    return keras.Model(i, L.Dense(4, activation="softmax")(body(other(x))))

networks = {
    "mobile": mobile,
    "transfer": transfer,
    "dense": lambda: sequential(L.Dense(9, activation="sigmoid"), L.Dense(8, activation="leaky_relu"),
                                L.Activation("linear"), L.Dropout(0.5), shape=(12,)),
    "lenet": lambda: sequential(L.Conv2D(6, 5, activation="relu", padding="same"), L.MaxPooling2D(),
                                L.Conv2D(8, 5, activation="relu"), L.MaxPooling2D(), L.Flatten()),
    "norms": lambda: sequential(L.Conv2D(6, 3), L.BatchNormalization(momentum=0.8), L.ReLU(),
                                L.BatchNormalization(scale=False), L.BatchNormalization(center=False),
                                L.BatchNormalization(scale=False, center=False),
                                L.LayerNormalization(epsilon=0.01), L.BatchNormalization(),
                                L.GlobalAveragePooling2D(), L.LayerNormalization()),
    "activations": lambda: sequential(L.Flatten(), *[
        L.Dense(7, activation=a) for a in ("gelu", "swish", "elu", "tanh", "softmax",
                                           L.LeakyReLU(negative_slope=0.3), L.ReLU(6.0))]),
    # in .h5 files, more names in a group than one node of a tree holds
    "named": lambda: sequential(*[L.Dense(5, name=f"größe {i}") for i in range(50)], shape=(12,)),
    "pools": lambda: sequential(L.ZeroPadding2D(((1, 0), (2, 1))), L.AveragePooling2D((2, 3), strides=1),
                                L.MaxPooling2D(3, padding="same"), L.Flatten()),
    "reshaped": lambda: sequential(L.Reshape((8, 8, 12)), L.Conv2D(4, (3, 1), strides=2), L.Flatten(),
                                   L.BatchNormalization()),
    "logits": lambda: keras.Sequential([keras.Input((12,)), L.Dense(6, activation="relu"), L.Dense(4)]),
    "branches": branches, "kept": kept, "resnet": resnet}

def run(*words):
    done = subprocess.run([trainer, *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stderr

whole = os.environ.get("CLIENTS") == "all"
for name, make in networks.items():
    if not whole and name not in ("mobile", "transfer", "norms", "activations", "named", "pools", "branches",
                                  "resnet"):
        continue
    keras.utils.clear_session()
    network = make()
    for weight in network.weights: # nothing is at its first value, and variances are above 0
        weight.assign(random.uniform(0.5, 1.5, weight.shape) * (1 if "variance" in weight.path else 0.4) -
                      (0 if "variance" in weight.path else 0.4))
    x = random.uniform(0, 1, (48, *network.input_shape[1:])).astype(np.float32)
    np.savez("set.npz", x_train=x, y_train=np.arange(48) % 4, x_test=x, y_test=np.arange(48) % 4)
    wanted = np.asarray(network(x))
    if name == "logits":
        wanted = np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True)
    for suffix in "h5", "keras":
        network.save(f"{name}.{suffix}")
        run("import", f"{name}.{suffix}", "--dataset=npz:file=set.npz", f"--out={name}-{suffix}")
        for back in ("h5", "keras") if whole else ("h5" if suffix == "keras" else "keras",):
            run("export", "--replace", f"--checkpoint={name}-{suffix}", f"back.{back}")
            worst = abs(np.asarray(keras.models.load_model(f"back.{back}", compile=False)(x)) - wanted).max()
            assert worst < 1e-5, f"{name}.{suffix}: {worst} else than before, as .{back}"
    open(f"{name}.json", "w").write(network.to_json())
    run("describe", f"--model=keras:file={name}.json", "--dataset=npz:file=set.npz")
    run(f"--resume={name}-keras", "--epochs=1", "--batch=8", "--quiet")

# As in Keras' tutorial of images: what works in training alone, or brings pixels to what they are here, is
# left out.
network = keras.Sequential([
    keras.Input((16, 16, 3)), keras.Sequential([L.RandomFlip("horizontal"), L.RandomRotation(0.1)]),
    L.Rescaling(1 / 255), L.Conv2D(4, 3, activation="relu"), L.GaussianNoise(0.1), L.Flatten(),
    L.Dense(4, activation="softmax")])
x = random.integers(0, 256, (48, 16, 16, 3)).astype(np.uint8)
np.savez("set.npz", x_train=x, y_train=np.arange(48) % 4, x_test=x, y_test=np.arange(48) % 4)
wanted = np.asarray(network(x.astype(np.float32), training=False))
for suffix in "h5", "keras":
    network.save(f"tutorial.{suffix}")
    words = run("import", f"tutorial.{suffix}", "--dataset=npz:file=set.npz", f"--out=tutorial-{suffix}")
    assert words == (f"trainer: tutorial.{suffix}: left out: random_flip, random_rotation, gaussian_noise (in "
                     "training alone), rescaling (pixels are from 0 to 1 here)\n"), words
    run("export", "--replace", f"--checkpoint=tutorial-{suffix}", "back.keras")
    worst = abs(np.asarray(keras.models.load_model("back.keras", compile=False)(x / np.float32(255))) -
                wanted).max()
    assert worst < 1e-5, f"tutorial.{suffix}: {worst} else than before"

# What is not here, though it looks as if.
@keras.saving.register_keras_serializable("my")
class Dense(L.Dense):
    pass

def twice():
    i, body = keras.Input((12,)), sequential(L.Dense(3), shape=(12,))
    return keras.Model(i, L.Add()([body(i), body(i)]))

others = {
    "it is used 2 times, expected once": twice(),
    "of an anonymous function": sequential(L.Dense(3, activation=lambda x: x * x), shape=(12,)),
    "found Dense along the last of 2 axes": sequential(L.Dense(3), L.Flatten(), shape=(4, 3)),
    "found my>Dense, expected": sequential(Dense(3), shape=(12,))}
np.savez("set.npz", x_train=np.ones((48, 12), np.float32), y_train=np.arange(48) % 4,
         x_test=np.ones((48, 12), np.float32), y_test=np.arange(48) % 4)
for words, network in others.items():
    for suffix in "h5", "keras":
        network.save(f"other.{suffix}")
        done = subprocess.run([trainer, "import", f"other.{suffix}", "--dataset=npz:file=set.npz",
                               "--out=other"], capture_output=True, text=True)
        assert done.returncode == 3 and words in done.stderr, f"{words}: {suffix}: {done}"
PYTHON
TRAINER=$TRAINER "$python" ask.py >out 2>err || fail "$(tail -n 3 err)"
[ $failures -eq 0 ]
