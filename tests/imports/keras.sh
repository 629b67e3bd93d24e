#!/bin/bash
# Networks of Keras' files, without Keras: what trainer export writes comes back as the same weights, bit for
# bit, and the same figures, as a model, as first weights, and by trainer import; what a file may say that is
# not here is named; a damaged file is an error of one line. imports/clients asks Keras itself.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
few="--batch=32 --quiet"
small="--dataset=digits:take=256 $few"

run() { # exit code, arguments...
    local wanted=$1
    shift
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq "$wanted" ] || fail "$*: exit code $code, expected $wanted: $(cat err)"
}
refused() { # exit code, pattern of the one line, arguments...
    run "$1" "${@:3}"
    grep -Eqx "trainer: $2" err && [ "$(wc -l <err)" -eq 1 ] || fail "${*:3}: said $(cat err), expected: $2"
}

# --- configurations: what is here, by name ---
model() { # file, class, layers as JSON...
    local file=$1 class=$2 IFS=,
    shift 2
    printf '{"class_name": "%s", "config": {"name": "net", "layers": [%s]}}' "$class" "$*" >"$file"
}
layer() { # class, name, settings as JSON, inbound_nodes
    printf '{"class_name": "%s", "config": {"name": "%s"%s}%s}' "$1" "$2" "${3:+, $3}" \
        "${4:+, \"inbound_nodes\": $4}"
}
input() { layer InputLayer in "\"batch_input_shape\": [null, ${1:-8, 8, 1}]" "${2-[]}"; }
kernel='"filters": 4, "kernel_size": [3, 3]'
dense=$(layer Dense out '"units": 10, "activation": "softmax"')
flat=$(layer Flatten flat)
says() { # pattern, layers behind the input...
    model net.json Sequential "$(input)" "${@:2}" "$flat" "$dense"
    refused 3 "net\.json: $1" describe --model=keras:file=net.json --dataset=digits
}
says 'layer rnn: found LSTM, expected one of Dense, Conv2D, .*, Softmax' "$(layer LSTM rnn '"units": 3')"
says 'layer c: found data_format channels_first, expected channels_last' \
    "$(layer Conv2D c "$kernel"', "data_format": "channels_first"')"
says 'layer c: found dilation_rate 2x2, expected 1x1' "$(layer Conv2D c "$kernel"', "dilation_rate": [2, 2]')"
says 'layer c: found groups 2, expected 1' "$(layer Conv2D c "$kernel"', "groups": 2')"
says 'layer c: Conv2D: padding=causal: .*valid.*same.*' "$(layer Conv2D c "$kernel"', "padding": "causal"')"
says 'layer c: Conv2D: filters=-4: .*' "$(layer Conv2D c '"filters": -4, "kernel_size": [3, 3]')"
says 'layer c: Conv2D: stride=1x2x3: .*' "$(layer Conv2D c "$kernel"', "strides": [1, 2, 3]')"
says 'layer c: found no window, expected .*' "$(layer Conv2D c '"filters": 4')"
says 'layer c: found the activation selu, expected linear or one of relu, .*' \
    "$(layer Conv2D c "$kernel"', "activation": "selu"')"
# Code is no name; nor is a layer that has weights of its own.
says 'layer d: found the activation of an anonymous function, expected linear or one of relu, .*' \
    "$flat" "$(layer Dense d '"units": 3, "activation": {"value": ["4wEA", null, null]}')"
says 'layer d: found the activation of an anonymous function, expected linear or one of relu, .*' "$flat" \
    "$(layer Dense d '"units": 3, "activation": {"class_name": "__lambda__", "config": {"value": "4wEA"}}')"
says 'layer d: found the activation PReLU, expected linear or one of relu, .*' "$flat" \
    "$(layer Dense d '"units": 3, "activation": {"class_name": "PReLU", "config": {"name": "p"}}')"
says 'layer n: found axis 1, expected the last one' "$(layer BatchNormalization n '"axis": [1]')"
says 'layer n: found scale false, expected true' "$(layer LayerNormalization n '"axis": [3], "scale": false')"
says 'layer d: found noise_shape 8x1, expected null' "$(layer Dropout d '"rate": 0.5, "noise_shape": [8, 1]')"
# Neither of the two.
says 'layer r: found max_value 6, expected null' "$(layer ReLU r '"max_value": 6.0, "negative_slope": 0.1')"
says 'layer r: found max_value 5, expected null or 6' "$(layer ReLU r '"max_value": 5')"
says 'layer a: found 1 inputs, expected 2 or more' "$(layer Add a)"
# Keras has it along the last axis.
for shape in '8, 8' '8, 8, 1' 'null, null, 1'; do
    model net.json Sequential "$(input "$shape")" "$(layer Dense d '"units": 5')" "$flat" "$dense"
    refused 3 'net\.json: layer d: found Dense along the last of [23] axes of an example, expected '\
'examples of one axis, as behind Flatten' describe --model=keras:file=net.json --dataset=digits
done
# Files of Keras 3 say whose class it is.
own() { # module and registered name as JSON, in a layer
    layer Dense d '"units": 5' | sed "s/^{/{\"module\": $1, \"registered_name\": $2, /"
}
says 'layer d: found my>Dense, expected a class of Keras itself' "$flat" "$(own null '"my>Dense"')"
says 'layer d: found Dense of mine\.layers, expected a class of Keras itself' \
    "$flat" "$(own '"mine.layers"' '"Dense"')"
says 'layer d: found Dense of keras_hub, expected a class of Keras itself' "$flat" "$(own '"keras_hub"' null)"
while read -r module registered; do
    model net.json Sequential "$(input)" "$flat" "$(own "$module" "$registered")" "$dense"
    run 0 describe --model=keras:file=net.json --dataset=digits
done <<'CLASSES'
"keras.layers" null
"keras.src.layers.core.dense" "Dense"
"tf_keras.src.layers" "Dense"
null null
CLASSES
model net.json Sequential "$(input)" "$flat" "$dense"
sed -i 's/^{/{"module": null, "registered_name": "my>Sequential", /' net.json
refused 3 'net\.json: found a model of class my>Sequential, expected Sequential or Functional of Keras '\
'itself' describe --model=keras:file=net.json --dataset=digits
model net.json Sequential "$(input)" "$(input)" "$dense"
refused 3 'net\.json: layer in: found another input, expected one in all' describe --model=keras:file=net.json
functional() { # pattern, nodes of `a`, other layers...
    model net.json Functional "$(input '8, 8, 1')" "$(layer ReLU r '' '[[["in", 0, 0, {}]]]')" \
        "$(layer Add a '' "$2")" "${@:3}"
    refused 3 "net\.json: $1" describe --model=keras:file=net.json
}
functional 'layer a: found the input q, expected an earlier layer' '[[["r", 0, 0, {}], ["q", 0, 0, {}]]]'
functional 'layer a: found what layer r gives when it is used again, expected layers used once' \
    '[[["r", 1, 0, {}], ["in", 0, 0, {}]]]'
functional 'layer a: it is used 2 times, expected once' \
    '[[["r", 0, 0, {}], ["in", 0, 0, {}]], [["r", 0, 0, {}], ["in", 0, 0, {}]]]'
functional 'layer a: found an argument that is not a layer.s, expected layers alone' \
    '[{"args": [{"class_name": "Other", "config": {}}], "kwargs": {}}]'
functional 'layer inner: found no model of Keras, expected class_name, and config with layers' \
    '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' "$(layer Functional inner '' '[[["a", 0, 0, {}]]]')"
inner() { # class, name, layers as JSON..., nodes
    local IFS=,
    layer "$1" "$2" "\"layers\": [${*:3:$#-3}]" "${!#}"
}
functional 'layer inner: found no layers' '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' \
    "$(inner Sequential inner '[[["a", 0, 0, {}]]]')"
functional 'layer inner: found 2 inputs, expected 1' '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' \
    "$(inner Sequential inner "$flat" '[[["a", 0, 0, {}], ["r", 0, 0, {}]]]')"
functional 'layer inner: it is used 2 times, expected once' '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' \
    "$(inner Sequential inner "$flat" '[[["a", 0, 0, {}]], [["r", 0, 0, {}]]]')"
functional 'layer in2: found another input, expected one in all' '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' \
    "$(inner Functional inner "$(input '8, 8, 1')" "$(layer InputLayer in2 '' '[]')" '[[["a", 0, 0, {}]]]')"
# A layer of another model is not one of this one.
functional 'layer far: found the input a, expected an earlier layer' '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' \
    "$(inner Functional inner "$(input '8, 8, 1')" "$(layer ReLU far '' '[[["a", 0, 0, {}]]]')" \
        '[[["a", 0, 0, {}]]]')"
two() { # outputs
    inner Functional inner "$(input '8, 8, 1')" "$(layer ReLU p '' '[[["in", 0, 0, {}]]]')" '[[["a", 0, 0, {}]]]' |
        sed "s/\"name\": \"inner\"/&, \"output_layers\": [$1]/"
}
for outputs in '0 ' '2 ["p", 0, 0], ["in", 0, 0]'; do
    functional "layer inner: found ${outputs%% *} outputs, expected 1" \
        '[[["r", 0, 0, {}], ["in", 0, 0, {}]]]' "$(two "${outputs#* }")"
done
deep=$flat
for depth in {1..9}; do deep=$(inner Sequential "m$depth" "$deep" ''); done
says 'layer m1: found more than 1000 models in all or 8 within each other' "$deep"
printf '{"class_name": "Functional"' >net.json
refused 3 'net\.json: JSON line 1, column 28: .*' describe --model=keras:file=net.json
printf '{"class_name": "Other", "config": {"layers": []}}' >net.json
refused 3 'net\.json: found a model of class Other, expected Sequential or Functional' \
    describe --model=keras:file=net.json
refused 2 'keras: found no file, expected keras:file=FILE' describe --model=keras
refused 2 'net\.txt: expected a name that ends with one of .*\.h5.*' describe --model=keras:file=net.txt
refused 3 'none\.h5: .*' describe --model=keras:file=none.h5

# --- a configuration becomes a network ---
model net.json Sequential "$(input)" \
    "$(layer Conv2D conv2d "$kernel"', "activation": "swish", "use_bias": false, "padding": "same"')" \
    "$(layer BatchNormalization bn '"axis": -1, "momentum": 0.8, "epsilon": 0.001')" \
    "$(layer Activation act '"activation": "linear"')" "$(layer ReLU slope '"negative_slope": 0.25')" \
    "$(layer GlobalAveragePooling2D gap '"keepdims": true')" \
    "$flat" "$(layer Dense dense '"units": 7, "activation": "leaky_relu"')" \
    "$(layer Dense slopes '"units": 6, "activation": {"module": "keras.layers", "class_name": "LeakyReLU",
        "config": {"name": "slopes", "negative_slope": 0.3}, "registered_name": null}')" "$dense"
# shellcheck disable=SC2086
run 0 $small --model=keras:file=net.json --epochs=1 --out=read
grep -Fq '"model": "layers:input 8x8x1; conv2d = conv 4 3x3 same no_bias silu; '\
'bn = batch_norm momentum=0.8 epsilon=0.001; leaky_relu 0.25; global_avgpool; reshape 1x1x-1; flatten; '\
'dense_0 = dense 7; leaky_relu 0.2; slopes = dense 6; leaky_relu 0.3; out = dense 10 softmax"' \
    read/summary.json || fail "net.json: $(grep '"model"' read/summary.json)"
rm net.json # the run has the network
run 0 --resume=read --epochs=2 --quiet

# Of a model that is a layer its layers stand in its place. Keras 2 counts a first call of those with an input.
of_inner() { # number of the call, version
    model net.json Functional "$(input '8, 8, 1')" \
        "$(inner Functional base "$(input '8, 8, 1')" "$(layer Conv2D twin "$kernel" '[[["in", 0, 0, {}]]]')" \
            "$(layer ReLU r '' '[[["twin", 0, 0, {}]]]')" '[[["in", 0, 0, {}]]]')" \
        "$(layer GlobalAveragePooling2D gap '' "[[[\"base\", $1, 0, {}]]]")" \
        "$(inner Sequential body "$(layer Dense twin '"units": 6')" "$(inner Sequential deep \
            "$(layer Dense twin '"units": 5')" '')" '[[["gap", 0, 0, {}]]]')" \
        "$(layer Dense out '"units": 10' '[[["body", 0, 0, {}]]]')"
    sed -i "s/}\$/, \"keras_version\": \"$2\"}/" net.json
}
for call in '0 3.15.0' '1 2.15.0'; do
    of_inner $call
    # shellcheck disable=SC2086
    run 0 $small --model=keras:file=net.json --epochs=1 --out=inner --replace
    grep -Fq '"model": "layers:input 8x8x1; twin = conv 4 3x3; relu; global_avgpool; twin_0 = dense 6; '\
'twin_1 = dense 5; out = dense 10"' inner/summary.json || fail "of $call: $(grep '"model"' inner/summary.json)"
done
# Layers that work in training alone, and one that brings pixels to what they are here, are left out.
flips=$(inner Sequential flips "$(layer RandomFlip flip '"mode": "horizontal"')" \
    "$(layer RandomZoom zoom '"height_factor": 0.1')" '')
model net.json Sequential "$(input)" "$flips" "$(layer Rescaling scaled '"scale": 0.00392156862745098, "offset": 0')" \
    "$(layer Conv2D c "$kernel")" "$(layer GaussianNoise noise '"stddev": 0.1')" "$flat" "$dense"
# shellcheck disable=SC2086
run 0 $small --model=keras:file=net.json --epochs=1 --out=left
grep -Fq '"model": "layers:input 8x8x1; c = conv 4 3x3; flatten; out = dense 10 softmax"' left/summary.json ||
    fail "left out: $(grep '"model"' left/summary.json)"
scaled='found Rescaling by 0\.00784313725490196[0-9]* and -1, expected 1/255 and 0, once, of the input: '\
'pixels are from 0 to 1 here'
says "layer r: $scaled" "$(layer Rescaling r '"scale": 0.00784313725490196, "offset": -1')"
says 'layer r: found Rescaling by 0\.003921568[0-9]* and 0, expected 1/255 and 0, once, of the input: .*' \
    "$(layer Conv2D c "$kernel")" "$(layer Rescaling r '"scale": 0.00392156862745098')"
says 'layer r: found Rescaling by 0\.25 and 0, .*' "$(layer Rescaling r '"scale": 0.25, "offset": 0')"
says 'layer r: found Rescaling by 1x2 and 0, .*' "$(layer Rescaling r '"scale": [1, 2]')"
pixels='"scale": 0.00392156862745098'
says 'layer r: found Rescaling by .* and 0\.5x0, .*' "$(layer Rescaling r "$pixels"', "offset": [0.5, 0]')"
says 'layer r: found Rescaling by .* and 0, .*, once, .*' "$(layer Rescaling s "$pixels")" \
    "$(layer Rescaling r "$pixels")"

of_inner 1 3.15.0
refused 3 'net\.json: layer gap: found what layer base gives when it is used again, expected layers used once' \
    describe --model=keras:file=net.json
run 0 evaluate --checkpoint=read

# --- Keras 2 has another hard_sigmoid; what is not trainable there is said, with what keeps it as it is ---
hard=$(layer Dense hard '"units": 9, "activation": "hard_sigmoid"')
for version in '"2.15.0"' '"3.1.0"' null; do
    printf '{"keras_version": %s, "class_name": "Sequential", "config": {"layers": [%s, %s, %s]}}' \
        "$version" "$(input 64)" "$hard" "$dense" >net.json
    case $version in
    *2.*) refused 3 \
        'net\.json: layer hard: found hard_sigmoid of Keras 2, min\(max\(0\.2 x \+ 0\.5, 0\), 1\), '\
'expected that of Keras 3, .*' \
        describe --model=keras:file=net.json --dataset=digits ;;
    *) run 0 describe --model=keras:file=net.json --dataset=digits ;;
    esac
done

# --- what it does not fit ---
model net.json Sequential "$(input '28, 28, 1')" "$flat" "$dense"
refused 2 'layers: the network takes examples of \[28, 28, 1\], the data set has \[64\] \(digits\)' \
    --model=keras:file=net.json --dataset=digits
model net.json Sequential "$(input 4)" "$dense"
refused 2 'layers: layer 1 .*: the network has 10 outputs, expected 3, one per class or value of the data set: '\
'end with dense, or take a file.s network with head=fit \(iris\)' \
    --model=keras:file=net.json --dataset=iris
run 0 --model=keras:file=net.json,head=fit --dataset=iris --epochs=1 --out=iris --quiet
model net.json Sequential "$(input 4)" "$(layer Dense end '"units": 1, "activation": "sigmoid"')"
run 0 --model=keras:file=net.json,head=fit --dataset=iris --epochs=1 --out=iris --quiet --replace
grep -Fq '"layers:input 4; end = dense"' iris/summary.json ||
    fail "head=fit of a sigmoid: $(grep '"model"' iris/summary.json)"
refused 3 'net.json: found no weights, expected some for weights=same' \
    --model=keras:file=net.json,weights=same,head=fit --dataset=iris
refused 3 'net\.json: found a network without weights, expected some' import net.json --out=none
refused 2 'import: expected --out=DIR' import net.json
[ ! -e none ] || fail "import left a folder of what it could not do"

# --- there and back ---
grep -q TRAINER_HDF5=1 "$BUILD/flags" ||
    { [ $failures -eq 0 ] && echo "no libhdf5 in this build" && exit 77; exit 1; }
# --- a number that is not finite is said with its file ---
run 0 --model=mlp:hidden=3 --dataset=digits --epochs=1 --out=damaged --quiet
run 0 export --replace --checkpoint=damaged damaged.h5
run 0 export --replace --checkpoint=damaged damaged.npz
python3 - <<'PYTHON'
import struct, zipfile
archive = zipfile.ZipFile("damaged.npz")
name = [name for name in archive.namelist() if "bias" in name][-1]
last = archive.read(name)[-8:]
whole = open("damaged.h5", "rb").read()
assert whole.count(last) == 1, name
open("damaged.h5", "wb").write(whole.replace(last, last[:4] + struct.pack("<f", float("inf"))))
PYTHON
refused 3 'damaged\.h5: model_weights/[a-z_0-9]+/.*bias.*: row 10, number 1 \(from 1\): found inf, '\
'expected a finite float32' \
    import damaged.h5 --out=none

sequence='conv 6 3x3 same stride=2 no_bias; batch_norm; leaky_relu 0.2; pad 1x2; avgpool 2 same; '\
'conv 8 2x3 valid gelu; silu; maxpool 2x1; elu 0.7; dropout 0.3
    flatten; reshape 4x4; flatten; dense 20 tanh; batch_norm; dense 12 sigmoid; dense'
branches='a = conv 4 3x3 same relu; b = conv 6 1x1 same silu; concat a b; c = conv 10 3x3 same; '\
'd = concat a b; add c d; global_avgpool; dense; softmax'
mobile='conv 4 3x3 same relu6; layer_norm epsilon=0.01; x = depthwise 3x3 2 same stride=2 hard_swish; '\
'hard_sigmoid; multiply x; depthwise 2x2 no_bias; global_maxpool; dense 9; layer_norm tanh; dense'
things='embedding 17 3; flatten; dense'
# shellcheck disable=SC2013 # names
for name in $(sed -n 's/^LAYER(\([a-z_0-9]*\), [^"]*"[A-Z].*/\1/p' "$root/src/graph/layers.def"); do
    grep -Eq "(^|[ ;])$name([ ;]|$)" <<<"$sequence;$branches;$mobile;$things" ||
        fail "no network here has a layer $name"
done
equal() { # what, files...
    cmp "$2" "$3" >differs 2>&1 || fail "$1: $(cat differs)"
}
awk 'BEGIN {
    print "a,b,c,kind"
    for (i = 0; i < 120; i++) print i % 17 "," i * 7 % 17 "," i * i % 17 "," substr("xyz", i % 3 + 1, 1)
}' >things.csv
for name in sequence branches mobile things cnn mlp; do
    case $name in sequence | branches | mobile | things) model=layers:${!name} ;; *) model=$name ;; esac
    [ $name = things ] && data=csv:file=things.csv,standardize=0 || data=digits:take=256
    # shellcheck disable=SC2086
    run 0 --dataset=$data $few --model="$model" --epochs=2 --out=$name
    run 0 export --replace --checkpoint=$name $name.npz
    run 0 evaluate --checkpoint=$name
    cp out figures
    for suffix in h5 keras; do
        run 0 export --replace --checkpoint=$name $name.$suffix
        run 0 import $name.$suffix --dataset="$data" --out=back --replace
        run 0 evaluate --checkpoint=back
        equal "$name.$suffix: other figures than before" figures out
        run 0 export --replace --checkpoint=back back.npz
        equal "$name.$suffix: other weights than before" $name.npz back.npz
        run 0 export --replace --checkpoint=back back.$suffix
        run 0 import back.$suffix --dataset="$data" --out=again --replace
        run 0 export --replace --checkpoint=again again.npz
        equal "$name.$suffix: other weights after two ways" $name.npz again.npz
    done
    # As a model: it trains on as the run does that takes the same weights; a run that goes on needs no file.
    # shellcheck disable=SC2086
    for weights in same fresh; do
        run 0 --dataset=$data $few --model="keras:file=$name.h5,weights=$weights" --epochs=1 --out=one \
            --replace --threads=1 --devices=cpu:0
        model=$(sed -n 's/^ *"model": "\(.*\)",$/\1/p' one/summary.json)
        [[ $weights = same ]] && from=--weights=$name || from=--seed=1
        run 0 --dataset=$data $few --model="$model" "$from" --epochs=1 --out=other --replace --threads=1 \
            --devices=cpu:0
        equal "keras:file=$name.h5,weights=$weights: another run than the one of its text" \
            one/model.safetensors other/model.safetensors
    done
done
for name in sequence mobile; do # which only Keras 3 has
    grep -qa "$([ $name = mobile ] && echo 3.0.0 || echo 2.15.0)" $name.h5 ||
        fail "$name.h5 is of another Keras"
done
for suffix in h5 keras; do # as many bytes, of a model that Keras saved with its layers fixed
    python3 - sequence.$suffix fixed.$suffix <<'PYTHON'
import re, sys, zipfile
def fixed(data):
    data, places = re.subn(rb'"dtype": ?"float32"', lambda m: b'"trainable":false'.ljust(len(m[0])), data)
    assert places > 5
    return data
if sys.argv[1].endswith(".h5"):
    open(sys.argv[2], "wb").write(fixed(open(sys.argv[1], "rb").read()))
else:
    with zipfile.ZipFile(sys.argv[1]) as given, zipfile.ZipFile(sys.argv[2], "w") as made:
        for name in given.namelist():
            made.writestr(name, fixed(given.read(name)) if name == "config.json" else given.read(name))
PYTHON
    run 0 import fixed.$suffix --dataset=digits:take=256 --out=back --replace
    grep -qx "trainer: fixed.$suffix: 7 layers are not trainable there, the last one .*; here they are, \
unless --freeze names them" \
        err || fail "import: said $(cat err)"
    # shellcheck disable=SC2086
    run 0 $small --model=keras:file=fixed.$suffix --freeze=dense3 --epochs=1 --out=back --replace
    [ ! -s err ] || fail "with --freeze: said $(cat err)"
done
run 0 import sequence.keras --dataset=digits:take=256 --out=back --replace
[ ! -s err ] || fail "import of what ends with a softmax: said $(cat err)"
# shellcheck disable=SC2086
run 0 --resume=back --epochs=1 --quiet
python3 - <<'PYTHON'
import zipfile
with zipfile.ZipFile("sequence.keras") as given, zipfile.ZipFile("logits.keras", "w") as made:
    for name in given.namelist():
        made.writestr(name, given.read(name).replace(b'"softmax"', b'"linear"'))
PYTHON
run 0 import logits.keras --dataset=digits:take=256 --out=back --replace
grep -qx 'trainer: logits.keras: it does not end with a softmax; here one follows, also in what is exported' \
    err || fail "import of logits: said $(cat err)"

# --- damaged files: exit code 3 and one line, or what it still says; never a crash ---
bytes=$(wc -c <sequence.h5)
head -c -40 sequence.h5 >bad.h5
refused 3 "bad\.h5: found $((bytes - 40)) bytes, expected $bytes, as its superblock says" \
    describe --model=keras:file=bad.h5 --dataset=digits
for ((i = 0; i < 40; i++)); do
    suffix=h5
    [ $((i % 3)) -eq 0 ] && suffix=keras
    size=$(wc -c <sequence.$suffix)
    cp sequence.$suffix bad.$suffix
    at=$(((i * 7919 + i * i * 31) % (i % 2 ? 3000 : size)))
    if [ $((i % 5)) -eq 0 ]; then
        truncate -s "$at" bad.$suffix
    else
        printf '\xff\xff\xff\x7f' | dd of=bad.$suffix bs=1 seek="$at" conv=notrunc status=none
    fi
    "$TRAINER" describe --model=keras:file=bad.$suffix --dataset=digits >out 2>err
    code=$?
    case $code in
    0) ;;
    3) [ "$(wc -l <err)" -eq 1 ] && grep -q '^trainer: bad\.' err ||
        fail "byte $at of $bytes of sequence.$suffix: $(cat err)" ;;
    *) fail "byte $at of sequence.$suffix: exit code $code: $(cat err)" ;;
    esac
done
[ $failures -eq 0 ]
