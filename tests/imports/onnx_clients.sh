#!/bin/bash
# ONNX files of other programs: models that the onnx package ships, with random weights, against onnxruntime;
# and what PyTorch exports: its logits, and the gradients of its first step. tests/imports/onnx.c compares;
# the program trains on.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
grep -q TRAINER_PROTOBUF=1 "$BUILD/flags" || { echo "no protobuf-c in this build" && exit 77; }
tool=$BUILD/tests/imports/onnx
[ -x "$tool" ] || { echo "no $tool, expected it to be built" && exit 1; }

# PyTorch is too large for the environment of the others: TRAINER_PYTHON may name a Python that has it, and
# what they have.
# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
if [ -n "${TRAINER_PYTHON:-}" ]; then
    python=$TRAINER_PYTHON
else
    python_with "onnx, onnxruntime" "onnx and onnxruntime are"
fi

cat >packaged.py <<'PYTHON'
import os, subprocess, sys
import numpy as np, onnx, onnxruntime
from onnx import numpy_helper

folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
random = np.random.default_rng(1)

# Its weights are nodes that fill a shape: random ones instead, of a size that keeps values in bounds.
def filled(name):
    model = onnx.load(os.path.join(folder, f"light_{name}.onnx"))
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in [n for n in model.graph.node if n.op_type == "ConstantOfShape"]:
        shape = tuple(shapes[node.input[0]])
        scale = np.sqrt(2 / max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.1
        values = random.standard_normal(shape) * scale if len(shape) > 1 else random.uniform(0.5, 1.5, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        model.graph.node.remove(node)
    return model

for name in "squeezenet", "resnet50":
    model = filled(name)
    softmax = model.graph.node[-1]
    assert softmax.op_type == "Softmax", softmax
    value = onnx.helper.make_tensor_value_info(softmax.input[0], onnx.TensorProto.FLOAT, None)
    model.graph.output.append(value)
    onnx.save(model, f"{name}.onnx")
    session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    x = random.standard_normal(given.shape).astype(np.float32)
    session.run([softmax.input[0]], {given.name: x})[0].reshape(1, -1).tofile("logits")
    np.ascontiguousarray(x.transpose(0, 2, 3, 1)).tofile("x")
    done = subprocess.run([sys.argv[1], f"{name}.onnx", "x", "none", "logits", "1"], capture_output=True,
                          text=True)
    assert done.returncode == 0, f"{name}: {done.stderr}"

for name, words in (("bvlc_alexnet", "found group 2, expected 1, or 96 as it has channels"),
                    ("shufflenet", "node n4: found group 4, expected 1, or 24 as it has channels")):
    path = os.path.join(folder, f"light_{name}.onnx")
    done = subprocess.run([os.environ["TRAINER"], "describe", f"--model=onnx:file={path}"],
                          capture_output=True, text=True)
    assert done.returncode == 3 and words in done.stderr, done
PYTHON
TRAINER=$TRAINER "$python" packaged.py "$tool" >out 2>err || fail "$(tail -n 3 err)"

if ! "$python" -c 'import torch' 2>/dev/null; then
    [ $failures -eq 0 ] || exit 1
    echo "no PyTorch here: expected TRAINER_PYTHON=... with one"
    exit 77
fi
cat >torches.py <<'PYTHON'
import copy, inspect, os, subprocess, sys, warnings
import torch, torch.nn as nn, torch.nn.functional as F

warnings.filterwarnings("ignore")
torch.manual_seed(3)
BATCH = 8

class Block(nn.Module):
    def __init__(self, given, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(given, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.short = nn.Sequential(nn.Conv2d(given, channels, 1, stride, bias=False),
                                   nn.BatchNorm2d(channels)) if given != channels else nn.Sequential()

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.short(x))

def stage(given, channels, stride):
    return nn.Sequential(Block(given, channels, stride), Block(channels, channels, 1),
                         Block(channels, channels, 1))

class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv2(F.max_pool2d(torch.tanh(self.conv1(x)), 2))), 2)
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x.view(x.size(0), -1))))))

networks = {
    # as torchvision has AlexNet, for small images
    "mlp": ((1, 28, 28), nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.GELU(), nn.LayerNorm(100),
                                       nn.Linear(100, 50), nn.SiLU(), nn.Linear(50, 10))),
    "lenet": ((1, 28, 28), LeNet()),
    "alexnet": ((3, 32, 32), nn.Sequential(
        nn.Conv2d(3, 64, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 96, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), nn.Conv2d(96, 64, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Dropout(0.0), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 64), nn.LeakyReLU(0.1),
        nn.Linear(64, 10))),
    "resnet20": ((3, 32, 32), nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
                                            nn.ReLU(), stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2),
                                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))),
}

# The exporter that takes less time.
older = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}

# Batch norm stays by itself only in networks that are exported for training.
def export(network, x, file, how):
    norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    for m in norms: # what the exporter runs must not change the statistics
        m.momentum = 0.0
    if norms:
        torch.onnx.export(network.train(), (x,), file, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, **older)
    else:
        torch.onnx.export(network.eval(), (x,), file, **how)

for name, (shape, network) in networks.items():
    for m in network.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5), nn.init.normal_(m.bias), nn.init.normal_(
                m.running_mean, 0, 0.1), nn.init.uniform_(m.running_var, 0.5, 2)
    x, labels = torch.randn(BATCH, *shape), torch.randint(10, (BATCH,))
    export(network, x, f"{name}.onnx", {} if name in ("mlp", "lenet") else older)
    with torch.no_grad():
        network.eval()(x).numpy().tofile("logits")
    F.cross_entropy(network.train()(x), labels).backward()
    changes = copy.deepcopy(network)
    with torch.no_grad():
        for change, weight in zip(changes.parameters(), network.parameters()):
            change.copy_(weight.grad)
    export(changes, x, f"{name}.gradients.onnx", older)
    x.permute(0, 2, 3, 1).contiguous().numpy().tofile("x")
    labels.int().numpy().tofile("labels")
    done = subprocess.run([sys.argv[1], f"{name}.onnx", "x", "labels", "logits", str(BATCH),
                           f"{name}.gradients.onnx"], capture_output=True, text=True)
    assert done.returncode == 0, f"{name}: {done.stderr}"
PYTHON
"$python" torches.py "$tool" >out 2>err || fail "$(tail -n 3 err)"
[ $failures -eq 0 ]
