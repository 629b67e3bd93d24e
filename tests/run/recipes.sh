#!/bin/bash
# What a model trains well with: trainer list says it, a run, a comparison and a cluster take it where nothing
# else is typed, a resumed run keeps what it has, and with it every model learns from every embedded data set
# that fits it. One that does not fit is refused in a line that names both.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

recipe() { # model: its options, as listed
    "$TRAINER" list model/"$1" | sed -n '/^  trains well with: /,$p' | sed 's/^  trains well with://' |
        tr -s ' \n' ' ' | sed 's/;.*//'
}

says() { # model, option: the recipe's value
    recipe "$1" | tr ' ' '\n' | sed -n "s/^--$2=//p"
}

summary() { sed -n "s/^  \"$2\": \\(.*\\),\$/\\1/p" "$1/summary.json" | tr -d '"'; }

good() {
    "$TRAINER" "$@" >out 2>err || fail "trainer $*: exit code $?: $(cat err)"
}

models=$("$TRAINER" list models | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
[ "$(wc -w <<<"$models")" -ge 5 ] || fail "only these models are listed: $models"
tiny="--dataset=digits:take=64 --epochs=1 --devices=cpu:0 --threads=1"

# --- taken where nothing else is typed, shown, kept ---
for model in $models; do
    for option in optimizer schedule batch epochs; do
        [ -n "$(says "$model" $option)" ] || fail "list $model: no --$option in: $(recipe "$model")"
    done
    wanted="$(says "$model" optimizer), $(says "$model" schedule), $(says "$model" batch)"
    good --model="$model" $tiny --replace --out=run
    found="$(summary run optimizer), $(summary run schedule), $(summary run batch)"
    [ "$found" = "$wanted" ] || fail "$model: ran with $found, expected $wanted"
    tr '\n' ' ' <out | tr -s ' ' | grep -q " batch $(says "$model" batch) x 1 = $(says "$model" \
        batch), 1 epoch, $(says "$model" optimizer), $(says "$model" schedule), seed 1 " ||
        fail "$model: its first lines do not say what it runs with: $(cat out)"
    good --model="$model" $tiny --optimizer=adagrad --batch=16 --quiet --replace --out=typed
    found="$(summary typed optimizer), $(summary typed schedule), $(summary typed batch)"
    [ "$found" = "adagrad, $(says "$model" schedule), 16" ] ||
        fail "$model: ran with $found where --optimizer=adagrad --batch=16 was typed"
    good --resume=typed --epochs=2 --quiet --replace --out=more
    found="$(summary more optimizer), $(summary more schedule), $(summary more batch)"
    [ "$found" = "adagrad, $(says "$model" schedule), 16" ] ||
        fail "$model: went on with $found, expected what it began with"
done
[ "$(says cnn optimizer)" != "$(says mlp optimizer)" ] ||
    fail "cnn and mlp have one optimizer: this proves little"
good --model=cnn $tiny --clip=3 --replace --out=run
{ grep -qx "with --decay=$(says cnn decay), as cnn's recipe has it" out && grep -qx 'with --clip=3' out; } ||
    fail "cnn: what is the recipe's and what was typed: $(cat out)"
good --model=cnn $tiny --decay=0.25 --replace --out=run
grep -qx 'with --decay=0.25' out || fail "cnn: typed against its recipe: $(cat out)"

# --- numbers to predict ---
awk 'BEGIN {
    srand(7)
    print "a,b,c,y"
    for (i = 0; i < 400; i++) {
        a = rand(); b = rand(); c = rand()
        print a "," b "," c "," 1000 + 300 * a - 200 * b + 100 * c
    }
}' >numbers.csv
for model in mlp softmax 'layers:dense 32 relu; dense'; do
    good --model="$model" --dataset=csv:file=numbers.csv,target=y --devices=cpu:0,cpu:1 --threads=1 --quiet \
        --replace --out=values
    awk -v r2="$(summary values test_r2)" 'BEGIN { exit !(r2 > 0.95) }' ||
        fail "$model: R2 $(summary values test_r2) of a sum of three numbers"
done
instead=$("$TRAINER" list model/mlp | tr -s ' \n' ' ' | sed -n 's/.*; to predict numbers, --optimizer=//p')
for option in '' --optimizer=adagrad; do
    good --model=mlp --dataset=csv:file=numbers.csv,target=y --epochs=1 --devices=cpu:0 $option --quiet \
        --replace --out=values
    wanted=${option#*=}
    [ "$(summary values optimizer)" = "${wanted:-${instead% }}" ] ||
        fail "mlp predicts numbers with $(summary values optimizer), expected ${wanted:-$instead}"
done

# --- a comparison, and a cluster whose worker is told nothing ---
good bench --model=cnn --dataset=digits:take=64 --epochs=1 --devices=cpu:0 --threads=1 --strategies=sync \
    --repeats=1 --out=bench
[ "$(summary bench/sync/1 optimizer)" = "$(says cnn optimizer)" ] ||
    fail "bench: ran with $(summary bench/sync/1 optimizer)"
tr '\n' ' ' <out | tr -s ' ' | grep -q "^cnn on digits:take=64: 1 epoch, batch $(says cnn \
    batch) per worker, $(says cnn optimizer), $(says cnn schedule), " ||
    fail "bench says: $(head -n 2 out)"
new_cluster 2 1
for task in 1 0; do
    start ps$task "$TRAINER" --job=ps --task=$task $hosts --model=cnn $tiny --replace --out=run
done
start w0 "$TRAINER" --job=worker --task=0 $hosts --devices=cpu:0
ends 0 ps0 ps1 w0
[ "$(summary run optimizer)" = "$(says cnn optimizer)" ] ||
    fail "a cluster: ran with $(summary run optimizer)"

# --- every model learns from every embedded data set that fits it ---
learns() { # model, data set, least accuracy, more options...
    local model=$1 data=$2 least=$3
    shift 3
    good --model="$model" --dataset="$data" --devices=cpu:0,cpu:1 --quiet --replace --out=learnt "$@"
    awk -v least="$least" '$1 == "Test-Accuracy:" { exit !($2 >= least) }' out ||
        fail "$model on $data $*: $(head -n 1 out), expected $least or more"
}
for model in $models; do
    takes_images=$("$TRAINER" list model/"$model" | grep '^  takes images of ')
    [ -n "$takes_images" ] || learns "$model" iris 0.85
    # The plain kernels and the sanitizers take too long for the convolutions of all digits.
    [ -z "$slow" ] && { [ -z "$takes_images" ] || grep -qa 'onednn:conv2d_bias' "$TRAINER"; } || continue
    learns "$model" digits 0.7
done
[ -n "$slow" ] || ! grep -qa 'onednn:conv2d_bias' "$TRAINER" || learns \
    "keras:file=$tests/../models/keras/cnn.json" digits 0.7 --strategy=async-lockfree --epochs=12

# --- what does not fit ---
refused() { # the one line, options...
    local line=$1 code
    shift
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq 2 ] && [ "$(cat err)" = "trainer: $line" ] ||
        fail "trainer $*: exit code $code, '$(cat err)', expected '$line'"
    [ ! -e none ] || fail "trainer $*: left a folder"
}
for model in $models; do
    "$TRAINER" list model/"$model" | grep -q '^  takes images of ' || continue
    refused "$model: found 4 measurements per example of iris, expected an image" \
        --model="$model" --dataset=iris --out=none
    refused "$model: found 4 measurements per example of iris:take=40, expected an image" \
        describe --model="$model" --dataset=iris:take=40
done
printf '%s\n' {1,2,3,4}{,0},2,3,4,5,{a,b} >five.csv
printf '%s\n' {1,2,3,4}{,0},2,3,4,{a,b} >four.csv
refused "cnn: found 5 numbers per example of csv:file=five.csv, expected an image, \
or the pixels of a square one" \
    --model=cnn --dataset=csv:file=five.csv --out=none
refused "lenet: found images of 2x2 from csv:file=four.csv, expected 4x4 or more" \
    --model=lenet --dataset=csv:file=four.csv --out=none
refused "alexnet: found images of 24x3 from --input=24x3x3, expected 4x4 or more" describe --model=alexnet \
    --input=24x3x3

[ $failures -eq 0 ]
