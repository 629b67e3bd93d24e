#!/bin/bash
# trainer export: the arrays of .npz and .safetensors are the model's, bit for bit, and for PyTorch turned as
# it has them; an ONNX file has its operations and weights; what cannot be written is one line, and leaves no
# file. exports/clients asks the programs themselves.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

export_to() { # expected exit code, arguments...
    local wanted=$1
    shift
    "$TRAINER" export "$@" >out 2>err
    code=$?
    [ $code -eq "$wanted" ] || fail "export $*: exit code $code, expected $wanted: $(cat err)"
}
refused() { # exit code, pattern, arguments...
    export_to "$1" "${@:3}"
    grep -qx "trainer: $2" err && [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ] ||
        fail "export ${*:3}: said $(cat out err), expected: $2"
}
small="--dataset=digits:take=128 --epochs=1 --batch=32 --quiet"
for model in cnn mlp:hidden=12 alexnet; do
    # shellcheck disable=SC2086
    "$TRAINER" $small --model=$model --average=0.5 --out="${model%%:*}" >out 2>err ||
        fail "$model: $(cat err)"
done
# Between an image and a dense layer, what has weights of its own.
flattened='conv 4 3x3 relu; flatten; batch_norm; layer_norm tanh; dense 6 relu; batch_norm; dense'
# shellcheck disable=SC2086
"$TRAINER" $small "--model=layers:$flattened" --out=flattened >out 2>err || fail "flattened: $(cat err)"

cat >read.py <<'PYTHON'
import ast, json, struct, sys, zipfile

def safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return {name: (entry["shape"], data[8 + length:][slice(*entry["data_offsets"])])
            for name, entry in header.items()}, texts

def npz(path):
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            data = archive.read(name)
            assert data[:8] == b"\x93NUMPY\x01\x00" and name.endswith(".npy"), name
            length = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:10 + length].decode())
            assert (10 + length) % 64 == 0 and header["descr"] == "<f4" and not header["fortran_order"], (
                header)
            arrays[name[:-4]] = (list(header["shape"]), data[10 + length:])
    return arrays

def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)

def same(found, wanted):
    assert list(found) == list(wanted), f"{list(found)}, expected {list(wanted)}"
    for name in wanted:
        assert found[name] == tuple(wanted[name]), (
            f"{name}: other numbers, or {found[name][0]} instead of {wanted[name][0]}")

run = sys.argv[1]
model, texts = safetensors(f"{run}/model.safetensors")
same(npz(f"{run}.npz"), model)
again, kept = safetensors(f"{run}.safetensors")
same(again, model)
assert kept["class_names"] == texts["class_names"] and kept["model"] == texts["model"], kept

# PyTorch: [out, in]; kernels OIHW; what follows an image takes it as channels, rows, columns.
names = {"kernel": "weight", "bias": "bias", "scale": "weight", "shift": "bias", "mean": "running_mean",
         "variance": "running_var"}
torch = {}
images = json.loads(sys.argv[2]) # channels of the image that a layer's row was, by its name
for name, (shape, data) in model.items():
    layer, what = name.split("/")
    values = floats(data)
    if what == "kernel" and len(shape) == 4:
        h, w, i, o = shape
        shape = [o, i, h, w]
        values = [values[((y * w + x) * i + c) * o + k] for k in range(o) for c in range(i) for y in range(h)
                  for x in range(w)]
    elif what == "kernel" or (layer in images and what != "bias"):
        i, *o = shape
        o, channels = (o or [1])[0], images.get(layer, 1)
        order = [p * channels + c for c in range(channels) for p in range(i // channels)]
        shape = shape[::-1]
        values = [values[at * o + k] for k in range(o) for at in order]
    torch[f"{layer}.{names[what]}"] = (shape, struct.pack(f"<{len(values)}f", *values))
same(npz(f"{run}.torch.npz"), torch)
same(safetensors(f"{run}.torch.safetensors")[0], torch)
PYTHON
for run in cnn mlp alexnet flattened; do
    for suffix in npz safetensors; do
        export_to 0 --checkpoint=$run $run.$suffix
        [ "$(cat out)" = "The network is in $run.$suffix" ] || fail "$run.$suffix: printed $(cat out)"
        export_to 0 --checkpoint=$run --names=torch $run.torch.$suffix
    done
    case $run in
    cnn) images='{"dense1": 32}' ;;
    alexnet) images='{"dense1": 64}' ;;
    flattened) images='{"norm1": 4, "layer_norm1": 4, "dense1": 4}' ;;
    *) images='{}' ;;
    esac
    python3 read.py $run "$images" >out 2>&1 || fail "$run: $(tail -n 1 out)"
done
[ -z "$(find . -name '*.part')" ] || fail "left behind: $(find . -name '*.part')"

# --- what cannot be ---
suffixes='\.h5, \.keras, \.npz, \.onnx, \.safetensors'
for name in net net.pb .onnx/net net.; do
    refused 2 "$name: expected a name that ends with one of $suffixes" --checkpoint=cnn $name
done
refused 2 'export: expected --checkpoint=DIR' net.npz
refused 2 'export: found 0 files, expected one to write' --checkpoint=cnn
refused 2 'export: found 2 files, expected one to write' --checkpoint=cnn a.npz b.npz
refused 3 'nowhere.*' --checkpoint=nowhere net.npz
refused 3 'nowhere/net.npz.*: cannot be written: No such file or directory' --checkpoint=cnn nowhere/net.npz
[ ! -e net.npz ] || fail "a file was made of nothing"
# An order that PyTorch's layers do not have: two images side by side, an image beside a row, a row as an
# image, classes that were an image.
said="found [a-z]* of an image's numbers, which PyTorch has in another order (channels first): \
--names=torch cannot say it"
for layers in 'a = conv 4 3x3; b = flatten; c = conv a 5 3x3; d = flatten; concat b d; dense' \
    'a = flatten; b = dense 144; c = conv input 4 3x3; flatten; add b; dense' \
    'dense 64; reshape 4x4x4; conv 2 3x3; flatten; dense' 'conv 4 3x3; reshape 6x24; flatten; dense' \
    'conv 5 8x7; flatten'; do
    # shellcheck disable=SC2086
    "$TRAINER" $small "--model=layers:$layers" --replace --out=other >out 2>err || fail "$layers: $(cat err)"
    refused 3 "net.npz: [a-z0-9]*: $said" --checkpoint=other --names=torch net.npz
    export_to 0 --checkpoint=other --replace other.npz
done
[ ! -e net.npz ] || fail "a network in an order that PyTorch has not became a file"
if "$TRAINER" export --checkpoint=cnn net.h5 >out 2>err; then
    refused 2 '--names=torch: \.h5 files have layouts of their own; expected \.npz or \.safetensors' \
        --checkpoint=cnn --names=torch net.h5
    refused 3 'alexnet.h5: lrn1: found lrn, which Keras has no layer for' --checkpoint=alexnet alexnet.h5
    [ ! -e alexnet.h5 ] || fail "a network that Keras cannot have became a file"
    # libhdf5 is loaded when such a file is written, not before; where it cannot be, that is said before
    # anything is learnt.
    library=$(sed -n 's/.*TRAINER_HDF5_FILE=\([^ ]*\).*/\1/p' "$BUILD/flags")
    mkdir broken && echo "no library" >"broken/$library" && export LD_LIBRARY_PATH=$PWD/broken
    for suffix in h5 keras; do
        refused 3 "other.$suffix: .*$library: .*; expected the libhdf5 that the program was built with \
(libhdf5-dev)" \
            --checkpoint=cnn other.$suffix
    done
    # shellcheck disable=SC2086
    "$TRAINER" $small --out=unlearnt --export=other.h5 >out 2>err
    [ $? -eq 3 ] && [ ! -e unlearnt ] && [ "$(wc -l <err)" -eq 1 ] ||
        fail "--export without libhdf5: $(cat out err)"
    export_to 0 --checkpoint=cnn other.safetensors
    unset LD_LIBRARY_PATH
else
    grep -q '^trainer: net.h5: \.h5 needs a build with libhdf5 (apt-get install libhdf5-dev, then make)$' \
        err || fail "a build without libhdf5: $(cat err)"
fi
if ! "$TRAINER" export --checkpoint=cnn net.onnx >out 2>err; then
    grep -q \
        '^trainer: net.onnx: \.onnx needs a build with protobuf-c .*libprotobuf-c-dev protobuf-c-compiler' \
        err || fail "a build without protobuf-c: $(cat err)"
    [ ! -e net.onnx ] || fail "a file was made of nothing"
    exit $((failures > 0))
fi

# --- at the end of a run, what `trainer export` writes of it; the suffix is looked at before anything is
# learnt ---
# shellcheck disable=SC2086
"$TRAINER" $small --model=cnn --out=exported --export=exported.onnx >out 2>err || fail "--export: $(cat err)"
export_to 0 --checkpoint=exported again.onnx
cmp -s exported.onnx again.onnx || fail "--export wrote something else than trainer export"
# shellcheck disable=SC2086
"$TRAINER" $small --out=wrong --export=net.pb >out 2>err
[ $? -eq 2 ] && [ ! -e wrong ] || fail "--export=net.pb: $(cat out err)"
# shellcheck disable=SC2086
"$TRAINER" $small --out=unsaid --model=cnn --export=nowhere/net.onnx >out 2>err
[ $? -eq 3 ] && [ ! -e unsaid ] &&
    grep -qx 'trainer: --export=nowhere/net.onnx: there is no folder nowhere' err ||
    fail "--export into a folder that is not there: $(cat out err)"
# A network that the format cannot say is refused before the training, in the words of trainer export.
without_keras='layers:conv 4 3x3; lrn; flatten; dense'
# shellcheck disable=SC2086
"$TRAINER" $small --out=unsaid "--model=$without_keras" >out 2>err || fail "a network with lrn: $(cat err)"
for file in unsaid.h5 unsaid.keras; do
    refused 3 "$file: lrn1: found lrn, which Keras has no layer for" --checkpoint=unsaid $file
    # shellcheck disable=SC2086
    "$TRAINER" $small --out=unlearnt "--model=$without_keras" --export=$file >said 2>why
    [ $? -eq 3 ] && [ ! -s said ] && [ ! -e unlearnt ] && cmp -s err why ||
        fail "--export=$file of what Keras cannot say: $(cat said why)"
done
rm -r unsaid
long=$(printf 'n%.0s' {1..250}).onnx # with the suffix of a file that is not whole yet: too long
# shellcheck disable=SC2086
"$TRAINER" $small --out=unsaid --model=cnn --export="$long" >out 2>err
[ $? -eq 3 ] && [ -e unsaid/model.safetensors ] &&
    grep -q '; the run is kept: trainer export --checkpoint=unsaid FILE writes it$' err ||
    fail "--export that cannot be written: $(cat out err)"
# What is there stays, unless --replace is typed; also where only the end of a run would write it.
mkdir folder.npz
echo precious >mine.npz
refused 3 'folder.npz: a folder, expected a file' --checkpoint=cnn --replace folder.npz
refused 3 'mine.npz already exists: --replace replaces it' --checkpoint=cnn mine.npz
# shellcheck disable=SC2086
"$TRAINER" $small --out=unmade --export=mine.npz >out 2>err
[ $? -eq 3 ] && [ ! -e unmade ] && grep -qx 'trainer: mine.npz already exists: --replace replaces it' err ||
    fail "--export to a file that is there: $(cat out err)"
[ "$(cat mine.npz)" = precious ] || fail "mine.npz was replaced unasked"
# shellcheck disable=SC2086
"$TRAINER" $small --out=made --replace --export=mine.npz >out 2>err || fail "--replace --export: $(cat err)"
export_to 0 --checkpoint=made again.npz
cmp -s mine.npz again.npz || fail "--replace --export wrote something else than trainer export"
for own in inside=inside inside/=inside ./within=within "$PWD/beside=beside"; do # as the shell completes them
    rm -rf inside within beside
    # shellcheck disable=SC2086
    "$TRAINER" $small --out="${own%=*}" --model=cnn --export="${own#*=}/net.onnx" >out 2>err &&
        [ -e "${own#*=}/net.onnx" ] ||
        fail "--out=${own%=*}, --export into it: $(cat out err)"
done
for wrong in inner/sub inner2; do
    # shellcheck disable=SC2086
    "$TRAINER" $small --out=inner --model=cnn --export=$wrong/net.onnx >out 2>err
    [ $? -eq 3 ] && [ ! -e inner ] || fail "--out=inner --export=$wrong/net.onnx: $(cat out err)"
done

[ $failures -eq 0 ]
