#!/bin/bash
# The verbs beside train, and training's --weights: what one part of the program writes, the others must read
# with the same result.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

good() { # arguments...: standard output is left in the file out
    local code
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq 0 ] || fail "trainer $*: exit code $code: $(cat err)"
    [ -s err ] && fail "trainer $*: wrote to standard error: $(cat err)"
    ! LC_ALL=C grep -n '[[:cntrl:]]' out || fail "trainer $*: control characters in its output"
}

has() { grep -Eq -e "$1" out || fail "no $1 in: $(cat out)"; }

# --- help and lists ---
verbs=$("$TRAINER" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')
for verb in train evaluate predict describe devices list; do
    [[ " $verbs" == *" $verb "* ]] || fail "--help does not name $verb: $verbs"
done
for words in --help help --version "list" \
    devices $(printf '%s ' "$verbs" | sed 's/\([a-z]\+\) /\1:--help help:\1 /g'); do
    # shellcheck disable=SC2086 # several words
    good ${words/:/ }
    [ -s out ] || fail "trainer ${words/:/ }: printed nothing"
    [ "$words" = devices ] || awk 'length > 80 { exit 1 }' out ||
        fail "trainer ${words/:/ }: a line of more than 80 columns: $(awk 'length > 80' out)"
done
good train --help=all
for option in model dataset strategy devices threads epochs batch optimizer schedule decay clip seed \
    data-sharding shards shard-by kernels out resume weights; do
    has "^  --${option}[= ]"
done
good devices
has '^cpu:0 +[0-9]+ cores?, shared by the CPU devices; [^ ]'
[ "$(grep -c '^cpu:' out)" -eq "$(nproc)" ] || fail "devices: not a label a core: $(cat out)"
! grep -Evq '^[a-z]+:([0-9]+|\*)? ' out || fail "devices: $(cat out)"
good --version
[ "$(wc -l <out)" -eq 1 ] || fail "--version: $(cat out)"

# --- describe ---
good describe --model=mlp --input=784 --classes=10
has '^all .* 79510 .* 318040 bytes'
has '^dense .*\[100\] .* 78500 .*\[784, 100\]'
good describe --model=softmax --dataset=iris
has '^all .* 15 ' # 4 * 3 + 3
adds_up() {
    awk 'NR == 1 { next } $1 == "all" { exit sum != $2 } { sub(/\[[^]]*\]/, ""); sum += $2 }' out ||
        fail "describe: the rows do not add up: $(cat out)"
}
good describe
has '^all .* 7510 ' # 64 * 100 + 100 + 100 * 10 + 10
adds_up
good describe --model='layers: conv 4 3x3; pad 1; layer_norm; a = softmax; global_avgpool; dense 4; '\
'reshape 1x1x4; multiply a; norm = layer_norm; global_maxpool; dense'
adds_up
[ "$(awk 'NR > 1 { printf "%s ", $1 }' out)" = "input conv pad layer_norm softmax global_avgpool dense \
multiply layer_norm global_maxpool dense all " ] || fail "describe: the layers: $(cat out)"
has '^layer_norm .* norm/scale \[4\], norm/shift \[4\]'
good describe --model='layers: a = dense 8 relu; b = dense 8; c = add a b; dropout 0.5; concat c; dense'
[ "$(awk 'NR > 1 { printf "%s ", $1 }' out)" = "input dense relu dense add dropout concat dense all " ] ||
    fail "describe: the layers: $(cat out)"
[ -z "$(find . -newer err -type d -name runs)" ] || fail "a verb that only looks made a folder"

# --- evaluate: what training printed ---
cat >table.csv <<'CSV'
height,width,kind
1.0,100,low
1.5,120,low
0.5,90,low
1.2,130,low
0.8,105,low
5.0,900,high
5.5,950,high
4.5,870,high
5.2,990,high
4.8,910,high
CSV
number=0
for what in "--model=mlp:hidden=20 --epochs=3" "--model=softmax --epochs=3 --strategy=async-lockfree" \
    "--dataset=iris --epochs=30 --batch=20" "--dataset=iris:standardize=1 --epochs=30 --batch=20" \
    "--dataset=csv:file=table.csv,test=0.3 --batch=4 --epochs=20 --model=mlp:hidden=5,activation=tanh"; do
    number=$((number + 1))
    # shellcheck disable=SC2086
    good --quiet $what --devices=cpu:0,cpu:1 --out=run$number
    printed=$(grep '^Test-Accuracy: ' out)
    cost=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["test_cost"])' \
        run$number/summary.json)
    for file in run$number run$number/ run$number/checkpoint run$number/checkpoint/state.safetensors \
        run$number/model.safetensors; do
        good evaluate --checkpoint="$file"
        [ "$(grep '^Test-Accuracy: ' out)" = "$printed" ] ||
            fail "evaluate $file ($what): $(cat out) expected $printed"
        has "^Examples: [1-9]"
        awk -v cost="$cost" \
            '/^Test-Cost: / { apart = $2 - cost; found = 1 }
            END { exit !(found && apart < 1e-4 && apart > -1e-4) }' \
            out || fail "evaluate $file ($what): $(cat out) expected $cost"
    done
    good evaluate --checkpoint=run$number --kernels=reference
    [ "$(grep '^Test-Accuracy: ' out)" = "$printed" ] ||
        fail "evaluate with the reference kernels ($what): $(cat out) expected $printed"
done
good evaluate --checkpoint=run1 --part=train
has '^Examples: 1437$'
has '^Train-Accuracy: [01][.]'
good evaluate --checkpoint=run3 --dataset=iris:take=100 --part=train
has '^Examples: 100$'
# Other examples than those of training are said to be others, in one line; the same ones, however they are
# typed, are not.
differs() { # run, data set, what it was trained on
    "$TRAINER" evaluate --checkpoint="$1" --dataset="$2" >out 2>err ||
        fail "evaluate on $2: exit code $?: $(cat err)"
    has '^Test-Accuracy: '
    [ "$(cat err)" = "trainer: evaluated on $2, but the network was trained on $3" ] ||
        fail "evaluate on $2: said: $(cat err)"
}
differs run3 iris:standardize=1 iris
differs run4 iris iris:standardize=1
differs run5 csv:file=table.csv,test=0.5 csv:file=table.csv,test=0.3
head -n 10 table.csv >other.csv
differs run5 csv:file=other.csv,test=0.3 csv:file=table.csv,test=0.3
good evaluate --checkpoint=run3 --dataset=iris:standardize=0
good evaluate --checkpoint=run4 --dataset=iris:standardize
good evaluate --checkpoint=run5 --dataset=csv:test=0.30,file=table.csv

# --- views: beside the plain figure, by the run as by evaluate, and only of images that can be looked at
# again ---
good --quiet --dataset=digits:standardize=image --model=softmax --epochs=2 --views=flip --devices=cpu:0 \
    --out=views
printed=$(grep '^Test-Accuracy' out)
[ "$(wc -l <<<"$printed")" -eq 2 ] && grep -q '^Test-Accuracy-By-Flip: [01][.]' <<<"$printed" ||
    fail "--views=flip: $(cat out)"
# Digits are no mirror images.
[ "$(cut -d' ' -f2 <<<"$printed" | sort -u | wc -l)" -eq 2 ] || fail "--views=flip changes nothing: $printed"
python3 -c '
import json, sys
summary = json.load(open("views/summary.json"))
found = ["%.4f" % summary[name] for name in ("test_accuracy", "test_accuracy_by_views")]
sys.exit(0 if summary["views"] == "flip" and found == sys.argv[1:] else f"found {found}")' \
    $(cut -d' ' -f2 <<<"$printed") || fail "summary.json has other figures than $printed"
good evaluate --checkpoint=views --views=flip
[ "$(grep '^Test-Accuracy' out)" = "$printed" ] || fail "evaluate --views=flip: $(cat out), expected $printed"
good evaluate --checkpoint=views --views=flip+shift
has '^Test-Accuracy-By-Flip[+]Shift: [01][.]'
has '^Test-Cost-By-Flip[+]Shift: [0-9]'
good evaluate --checkpoint=views
! grep -q By- out || fail "evaluate without views: $(cat out)"
for scaled in "--quiet --epochs=1 --views=flip --out=none" "evaluate --checkpoint=run1 --views=flip"; do
    # shellcheck disable=SC2086
    "$TRAINER" $scaled >out 2>err
    [ $? -eq 2 ] && grep -q '^trainer: --views: found examples that are only scaled, expected images ' err ||
        fail "$scaled: $(cat err)"
    [ ! -e none ] || fail "$scaled: left a folder"
done

# --- predict: the three flowers ---
good --quiet --dataset=iris --model=mlp:hidden=10-10,activation=relu --batch=20 --optimizer=adam:rate=0.02 \
    --epochs=60 --strategy=sync --devices=cpu:0,cpu:1 --out=flowers
awk '$1 == "Test-Accuracy:" { exit !($2 >= 0.93) }' out ||
    fail "iris: $(cat out), expected an accuracy of 0.93 or more"
printf '5.1,3.3,1.7,0.5\n5.9,3.0,4.2,1.5\n6.9,3.1,5.4,2.1\n' >plain.csv
good predict --checkpoint=flowers plain.csv
cp out plain.out
wanted=(Setosa Versicolor Virginica)
for i in 0 1 2; do
    line=$(sed -n "$((i + 1))p" out)
    [[ $line =~ ^Prediction\ is\ \"${wanted[i]}\"\ \(([0-9]+\.[0-9])%\)$ ]] ||
        fail "flower $((i + 1)): $line, expected ${wanted[i]}"
    awk -v share="${BASH_REMATCH[1]:-0}" 'BEGIN { exit !(share > 60 && share <= 100) }' ||
        fail "flower $((i + 1)): $line"
done
[ "$(wc -l <out)" -eq 3 ] || fail "predict: $(cat out), expected three lines"
printf 'sepal_length,sepal_width,petal_length,petal_width\r\n5.1,3.3,1.7,0.5\r\n\r\n'\
'5.9,3.0,4.2,1.5\r\n6.9,3.1,5.4,2.1' |
    gzip >header.csv.gz
good predict --checkpoint=flowers/model.safetensors header.csv.gz
cmp -s out plain.out || fail "predict, with a header, line ends of two characters, compressed: $(cat out)"
good predict --checkpoint=flowers --kernels=reference plain.csv
sed 's/([0-9.]*%)//' out >a && sed 's/([0-9.]*%)//' plain.out >b
cmp -s a b || fail "predict with the reference kernels: $(cat out)"
good predict --checkpoint=flowers --top=3 plain.csv plain.csv
[ "$(wc -l <out)" -eq 6 ] || fail "predict with two files: $(cat out), expected six lines"
sed 's/^plain.csv: //' out | tr -c '0-9.\n' ' ' |
    awk '{ if ($1 + $2 + $3 < 99.8 || $1 + $2 + $3 > 100.2 || $1 < $2 || $2 < $3) exit 1 }' ||
    fail "--top=3: $(cat out)"
# What training did to the features is done to these: the network saw heights of about 1 and 5 at mean 0.
printf '1.1,110\n5.1,920\n' >two.csv
good predict --checkpoint=run5 two.csv
[ "$(cut -d'"' -f2 out | tr '\n' ,)" = "low,high," ] || fail "standardized features: $(cat out)"

# --- --weights: a start from a file ---
still="--quiet --model=mlp:hidden=20 --epochs=1 --optimizer=sgd:rate=0"
accuracy=$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' run1/summary.json)
cat >change.py <<'PYTHON'
import json, struct, sys
what, source, target = sys.argv[1:]
data = open(source, "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
texts = header.pop("__metadata__", {})
tensors = {name: (e["shape"], data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]])
           for name, e in header.items()}
kind = "F32"
if what == "missing":
    del tensors["dense2/bias"]
if what == "extra":
    tensors["dense9/kernel"] = ([2, 3], bytes(24))
if what == "shape":
    shape, values = tensors["dense1/kernel"]
    tensors["dense1/kernel"] = (shape[::-1], values)
if what == "half":
    kind = "F16"
    tensors = {name: (shape, values[::2]) for name, (shape, values) in tensors.items()}
header, data = {}, b""
for name, (shape, values) in reversed(tensors.items()):
    header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
    data += values
text = json.dumps(header).encode()
open(target, "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
for change in plain missing extra shape half; do
    python3 change.py $change run1/model.safetensors $change.safetensors
done
for file in run1/model.safetensors run1/checkpoint/state.safetensors plain.safetensors; do
    # shellcheck disable=SC2086
    good $still --weights=$file --replace --out=started
    grep -q "\"test_accuracy\": $accuracy," started/summary.json ||
        fail "--weights=$file: $(cat out) expected $accuracy"
    python3 - <<'PYTHON' || fail "--weights=$file: not the weights of the file"
import json, struct
def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {n: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
            for n, e in header.items() if n != "__metadata__"}
assert tensors("started/model.safetensors") == tensors("run1/model.safetensors")
PYTHON
done
refused() { # file, words expected
    local code
    # shellcheck disable=SC2086
    "$TRAINER" $still --weights="$1" --out=refused >out 2>err
    code=$?
    [ $code -eq 3 ] || fail "--weights=$1: exit code $code, expected 3"
    if [ "$(wc -l <err)" -ne 1 ] || ! grep -Eq "$2" err; then
        fail "--weights=$1: found: $(cat err) expected one line with: $2"
    fi
    [ ! -e refused ] || fail "--weights=$1: made the folder of a run that could not start"
}
begins() { # file, words of the first lines
    rm -rf started
    # shellcheck disable=SC2086
    "$TRAINER" ${still/--quiet/} --weights="$1" --out=started >out 2>err || fail "--weights=$1: $(cat err)"
    tr -s '\n ' ' ' <out | grep -Fq "weights from $1$2 loss:" ||
        fail "--weights=$1: did not say \"$2\" but: $(head -n 8 out)"
}
begins missing.safetensors '; dense2: fresh, no bias of [10] there'
begins extra.safetensors ''
begins shape.safetensors '; dense1: fresh, its kernel is [20, 64] there, [64, 20] here'
refused half.safetensors 'half.safetensors.*F16'
refused table.csv 'table.csv'
# A model from elsewhere has no texts: it can be trained on, but nobody knows what it is of.
"$TRAINER" evaluate --checkpoint=plain.safetensors >out 2>err
code=$?
if [ $code -ne 3 ] || [ "$(wc -l <err)" -ne 1 ]; then
    fail "evaluate of a file without texts: exit code $code: $(cat err)"
fi

[ $failures -eq 0 ]
