#!/bin/bash
# --outputs=tensorboard: TensorBoard's own reader finds every tag with the values of steps.csv and epochs.csv,
# the graph and the settings, also of a run that went on and did some steps again.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

if ! "$TRAINER" --epochs=1 --outputs=tensorboard --out=without --quiet >out 2>err &&
    grep -q 'needs a build with' err; then
    echo "no protobuf-c in this build"
    exit 77
fi

# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with tensorboard "TensorBoard is"

run() {
    "$TRAINER" --devices=cpu:0,cpu:1 --batch=64 --outputs=csv,tensorboard --scalars=5 --quiet "$@" \
        >out 2>err || fail "$*: $(cat err)"
}
run --strategy=async-lockfree --epochs=3 --out=async
run --strategy=sync --epochs=3 --out=sync
cp -r sync/checkpoint older
run --resume=sync --epochs=5
rm -r sync/checkpoint && mv older sync/checkpoint
run --resume=sync --epochs=6
[ $failures -eq 0 ] || exit 1

cat >real.py <<'PYTHON'
import sys
import event_files as plain
from tensorboard.backend.event_processing import plugin_event_accumulator as reader
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

def load(folder):
    accumulator = reader.EventAccumulator(folder, size_guidance={reader.TENSORS: 0})
    return accumulator.Reload()

def points(folder, plugin, convert):
    accumulator, found = load(folder), {}
    for tag in accumulator.Tags()[reader.TENSORS]:
        if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == plugin:
            found[tag] = [(e.step, convert(tensor_util.make_ndarray(e.tensor_proto)))
                          for e in accumulator.Tensors(tag)]
    return found

run, every, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rows, epochs = plain.check_scalars(run, every, lambda folder: points(folder, "scalars", float))
plain.check_histograms(run, rows, epochs,
                       lambda folder: points(folder, "histograms", lambda h: h.flatten().tolist()))
assert model in str(points(run, "text", lambda t: t.tolist())["config"]), "no model in the text"
settings = plugin_data_pb2.HParamsPluginData.FromString(
    load(run).SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
values = settings.session_start_info.hparams
assert (values["model"].string_value == model and values["rate"].number_value == 0.1 and
        values["workers"].number_value == 2), values
graph = load(f"{run}/worker-1").Graph()
nodes = {n.name: n for n in graph.node}
bias = nodes["dense2/bias"]
assert [d.size for d in bias.attr["_output_shapes"].list.shape[0].dim] == [10] and bias.device == "cpu:1", (
    bias)
assert all(i in nodes for n in graph.node for i in n.input), "an input that is no node"
PYTHON
for name in async sync; do
    "$python" real.py $name 5 mlp >out 2>&1 || fail "TensorBoard, $name: $(grep Error out)"
done
[ $failures -eq 0 ]
