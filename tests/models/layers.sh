#!/bin/bash
# --model=layers: end to end. The networks of models/layers that are models in C, too, learn the same weights;
# a run keeps the network, so that everything that follows works without the file; a worker of a cluster gets
# it; what is wrong is one line with its place.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
cd "$scratch" || exit 1
small="--dataset=digits:take=96 --batch=8 --threads=1 --schedule=constant --optimizer=momentum:rate=0.01 \
    --decay=0.0005"

# --- the same weights ---
for model in alexnet cnn lenet; do
    for as in "$model" "layers:$root/models/layers/$model.txt"; do
        # shellcheck disable=SC2086 # several words
        "$TRAINER" $small --quiet --model="$as" --devices=cpu:0,cpu:1 --epochs=2 \
            --out="same-$model-${as%%:*}" >out 2>err ||
            fail "$as: exit code $?: $(cat err)"
    done
    same_weights "$model and its text" "same-$model-$model" "same-$model-layers"
done

# --- a network that learns; then its file is gone ---
cat >net.txt <<'NET'
# a stem and a branch
stem = conv 8 3x3 same relu   # kept for later
conv 8 3x3 same
batch_norm
add stem gelu
avgpool 2
layer_norm
flatten; dense 32 leaky_relu
dropout 0.2
dense softmax
NET
text='layers:stem = conv 8 3x3 same relu; conv 8 3x3 same; batch_norm; add stem gelu; avgpool 2; '\
'layer_norm; flatten; dense 32 leaky_relu; dropout 0.2; dense softmax'
go=(--dataset=digits --batch=16 --devices=cpu:0 --threads=1 --optimizer=adam:rate=0.003 --schedule=constant)
"$TRAINER" "${go[@]}" --model=layers:net.txt --epochs=4 --out=whole >out 2>err ||
    fail "net.txt: exit code $?: $(cat err)"
! grep -v '^epoch [0-9]*/4 ' err || fail "net.txt: $(cat err)" # progress, where the machine is slow
head -n 3 out | tr -s '\n ' ' ' | grep -qF \
    'layers:stem = conv 8 3x3 same relu; conv 8 3x3 same; batch_norm; add stem gelu; ... (10 layers) (' ||
    fail "the first line: $(head -n 1 out)"
python3 -c 'import json, sys; assert json.load(open("whole/summary.json"))["model"] == sys.argv[1]' "$text" ||
    fail "summary.json has another text"
accuracy=$(sed -n 's/Test-Accuracy: //p' out)
awk "BEGIN { exit !($accuracy > 0.8) }" || fail "it learns little: $accuracy"
"$TRAINER" "${go[@]}" --model="$text" --epochs=4 --out=inline >out 2>err || fail "inline: $(cat err)"
same_weights "the text on the command line" whole inline
"$TRAINER" "${go[@]}" --model=layers:net.txt --epochs=2 --out=part >out 2>err || fail "two epochs: $(cat err)"
mv net.txt moved.txt
"$TRAINER" --resume=part --epochs=4 --devices=cpu:0 --threads=1 >out 2>err ||
    fail "resumed without the file: $(cat err)"
same_weights "a resumed run" whole part
"$TRAINER" evaluate --checkpoint=whole >out 2>err || fail "evaluate: $(cat err)"
grep -q "$accuracy" out || fail "evaluate finds another accuracy than $accuracy: $(cat out)"
seq -s, 64 | sed 's/[0-9]*/3/g' >row.csv
"$TRAINER" predict --checkpoint=whole/model.safetensors row.csv >out 2>err || fail "predict: $(cat err)"
"$TRAINER" describe --model=layers:moved.txt --dataset=digits >out 2>err || fail "describe: $(cat err)"
grep -q 'stem/kernel \[3, 3, 1, 8\], stem/bias \[8\]' out || fail "describe: $(cat out)"
"$TRAINER" report whole --out=page.html >out 2>err || fail "report: $(cat err)"
grep -qF -- "--model=&#39;$text&#39;" page.html || fail "the report's command lacks the network"
for output in prometheus tensorboard; do
    [ $output = prometheus ] || grep -q TRAINER_PROTOBUF=1 "$BUILD/flags" || continue
    "$TRAINER" "${go[@]}" --model="$text" --epochs=1 --outputs="$output" --out="$output" >out 2>err ||
        fail "$output: $(cat err)"
done

# --- an embedding of things by number; one beyond its vocabulary ends the run, here and where it predicts ---
seq 400 | awk '{ a = $1 * 7 % 9; b = $1 % 8; print a "," b "," ((a * 5 % 3 + b) % 2 ? "odd" : "even") }' \
    >things.csv
things=(--dataset=csv:file=things.csv,standardize=0 --batch=16 --devices=cpu:0 --threads=1
    --optimizer=adam:rate=0.03 --schedule=constant)
"$TRAINER" "${things[@]}" --model='layers:embedding 9 6; flatten; dense 16 tanh; dense' \
    --epochs=12 --out=things >out 2>err || fail "embedding: $(cat err)"
accuracy=$(sed -n 's/Test-Accuracy: //p' out)
awk "BEGIN { exit !($accuracy > 0.95) }" || fail "embedding: it learns little: $accuracy"
echo 8,9 >beyond.csv
"$TRAINER" predict --checkpoint=things beyond.csv >out 2>err
[ $? -eq 3 ] && grep -q 'embedding: found 9, expected whole numbers from 0 to 8' err ||
    fail "embedding, predicting: $(cat err)"
"$TRAINER" "${things[@]}" --model='layers:embedding 8 6; flatten; dense' --out=beyond >out 2>err
[ $? -eq 3 ] && grep -q 'embedding: found 8, expected whole numbers from 0 to 7' err ||
    fail "embedding, training: $(cat err)"

# --- a long one: what is kept and sent is bounded, what is shown is short ---
"$TRAINER" --dataset=digits:take=64 --model="layers:$root/models/layers/resnet20.txt" --batch=16 --epochs=6 \
    --devices=cpu:0 --optimizer=nesterov:rate=0.05 --threads=1 --out=resnet >out 2>err ||
    fail "resnet20: exit code $?: $(cat err)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") at = i; next }
    NR <= 4 { first += $at }
    { last = $at + before; before = $at }
    END { exit !(last / 2 < 0.8 * first / 3) }' resnet/steps.csv || fail "resnet20: the loss does not fall"
longest=$(grep -v ' examples/s, computing ' out | wc -L) # of that line the times decide how long it is
[ "$longest" -lt 200 ] || fail "resnet20: a line of $longest characters"
"$TRAINER" evaluate --checkpoint=resnet >out 2>err || fail "resnet20, evaluated: $(cat err)"

# --- a cluster: one process has the file, the other is told ---
new_cluster 1 1
start ps "$TRAINER" $hosts --job=ps --task=0 "${go[@]}" --model=layers:moved.txt --epochs=2 --out=cluster
start worker "$TRAINER" $hosts --job=worker --task=0 --devices=cpu:0 --threads=1
ends 0 ps worker
"$TRAINER" evaluate --checkpoint=cluster >out 2>err || fail "cluster, evaluated: $(cat err)"
python3 -c 'import json, sys; assert json.load(open("cluster/summary.json"))["model"] == sys.argv[1]' \
    "$text" || fail "cluster: another text"
new_cluster 1 1
start ps "$TRAINER" $hosts --job=ps --task=0 "${go[@]}" --model=layers:moved.txt --epochs=2 --out=refused \
    --timeout=2 --start-timeout=5
start worker "$TRAINER" $hosts --job=worker --task=0 --devices=cpu:0 --threads=1 --model=cnn
finish ps
ends 5 worker
says worker '--model'

# --- what is wrong ---
wrong() { # exit code, words, model
    "$TRAINER" --model="$3" --dataset=digits --epochs=1 --out=wrong >out 2>err
    local code=$?
    [ $code -eq "$1" ] || fail "$3: exit code $code, expected $1"
    [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$2" err || fail "$3: $(cat err)"
    [ ! -e wrong ] || fail "$3: left a folder"
}
printf 'dense 5\n\n  conv 3 3x3 strid=2\n' >bad.txt
printf 'dense 5\0\n' >zero.txt
head -c 2000000 /dev/zero | tr '\0' '\n' >large.txt
for ((i = 0; i < 900; i++)); do echo 'dense 100 normal deviation=0.123456'; done >long.txt
: >empty.txt
wrong 3 'bad.txt: line 3, column 14: conv: unknown setting "strid"; did you mean "stride"?' layers:bad.txt
wrong 3 'zero.txt: line 1, column 8: found byte 0x00' layers:zero.txt
wrong 3 'empty.txt: found no layer' layers:empty.txt
wrong 3 'large.txt: ' layers:large.txt
wrong 3 'characters without comments, expected fewer than ' layers:long.txt
wrong 3 'none/such.txt: No such file' layers:none/such.txt
wrong 3 './: ' layers:./
wrong 2 'layers: line 1, column 1: unknown layer "dens"; did you mean "dense"?' layers:dens
wrong 2 'layers: line 1, column 9: dense: "b" is not a setting' 'layers:dense 3 b; dense'
wrong 2 'layers: layer 2 (dense): found [32, 8, 8, 1], expected [batch, numbers]: flatten it first' \
    'layers:conv 1 1x1 relu; dense'
wrong 2 'layers: layer 1 (dense 7): the network has 7 outputs, expected 10, one per class or value' 'layers:dense 7'
"$TRAINER" --model='layers:conv 3 2x2; flatten; dense' --dataset=iris --out=wrong >out 2>err
[ $? -eq 2 ] && grep -q 'found 4 measurements per example of iris, expected an image' err ||
    fail "measurements: $(cat err)"
[ $failures -eq 0 ]
