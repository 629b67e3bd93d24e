#!/bin/bash
# Everything that can be typed wrong, and every file that can be missing or in the way: one line on standard error that names the
# culprit, the exit code, and nothing written. (test_command_line covers how the words are read; this, what they mean.)
set -u
: "${TRAINER:?expected the path of the program}"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
unset TRAINER_DATA
export HOME=$scratch
cd "$scratch" || exit 1
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

tree() { find . ! -name out ! -name err | sort; }

# A row: exit code | words in the one line, as a pattern | what is typed.
check() {
    local want=$1 pattern=$2 typed=$3 code
    # shellcheck disable=SC2086 # several words
    "$TRAINER" $typed >out 2>err
    code=$?
    [ "$code" -eq "$want" ] || fail "trainer $typed: exit code $code, expected $want: $(cat err)"
    [ -s out ] && fail "trainer $typed: wrote to standard output: $(head -n 3 out)"
    [ "$(wc -l <err)" -eq 1 ] || fail "trainer $typed: expected one line on standard error, found: $(cat err)"
    grep -Eq -e "^trainer: .*($pattern)" err || fail "trainer $typed: said: $(cat err) expected: $pattern"
    ! LC_ALL=C grep -q '[[:cntrl:]]' err || fail "trainer $typed: control characters on standard error"
    [ "$(tree)" = "$before" ] || { fail "trainer $typed: wrote $(diff <(echo "$before") <(tree) | grep '^>')"; before=$(tree); }
}

"$TRAINER" --quiet --dataset=digits:take=320 --model=mlp:hidden=20 --epochs=1 --out=run >out 2>err || fail "trainer: exit code $?: $(cat err)"
echo text >file
printf '1,2,3\n4,5,6\n' >three.csv
printf '5.1,3.3,1.7,0.5\n5.9,3.0,x,1.5\n' >word.csv
printf 'a,b,kind\n1,2,x\n3,4,y\n5,oops,x\n' >bad.csv
printf '' >nothing.csv
mkdir -p data/mnist short/mnist wall
for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    printf '\0\0\10\1\0\0\0\1\0\0\0\0\0\0\0\0' >"data/mnist/$name" # the magic number of labels
done
printf '\0\0\10\3\0\0\0\2\0\0\0\34\0\0\0\34' >short/mnist/train-images-idx3-ubyte # promises two images and has none
for name in train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do cp "data/mnist/$name" short/mnist; done
mkdir wall/steps.csv
head -c 1000 /dev/urandom >noise.safetensors
before=$(tree)

while IFS='|' read -r code pattern typed; do
    [ -n "$code" ] && check "$code" "${pattern//¦/|}" "$typed"
done <<'TABLE'
2|command "trian": unknown|trian
2|unknown option "--bacth"; did you mean "--batch"|--bacth=3
2|unknown option "-q"|-q
2|takes no arguments, found "digits"|train digits
2|takes no arguments, found "cpu"|devices cpu
2|--batch=0: expected 1|--batch=0
2|--batch=-3: expected 1|--batch=-3
2|--batch=1.5: expected a whole number|--batch=1.5
2|--batch=1e3: expected a whole number|--batch=1e3
2|--batch=0x10: expected a whole number|--batch=0x10
2|--batch=: expected a whole number|--batch=
2|--batch=99999999999999999999: expected|--batch=99999999999999999999
2|--epochs=0: expected 1|--epochs=0
2|--epochs=2147483648: expected 1|--epochs=2147483648
2|--seed=0: expected 1|--seed=0
2|--threads=-1: expected 0 to 1024|--threads=-1
2|--clip=-1: expected 0|--clip=-1
2|--clip=inf: expected a number|--clip=inf
2|--decay=nan: expected a number|--decay=nan
2|--timeout=0: expected 0.1|--timeout=0
2|--slots=0: expected 1|--slots=0
2|--shards=-1: expected 0|--shards=-1
2|--shards=5000: expected 0 to 4096|--shards=5000
2|4000 shards: expected 1 to [0-9]+|--shards=4000
2|8 shards: expected 1 to 4|--shards=8 --shard-by=tensor
2|8 shards: expected 1 to 4|--shards=8 --shard-by=round-robin
2|--shard-by=size: expected one of bytes¦tensor¦round-robin|--shard-by=size
2|--data-sharding=each: expected one of|--data-sharding=each
2|--kernels=fast: expected one of auto¦reference|--kernels=fast
2|--quiet=maybe: expected 0 or 1|--quiet=maybe
2|--checkpoint-every=-1: expected 0|--checkpoint-every=-1
2|strategy "snyc": unknown; did you mean "sync"|--strategy=snyc
2|--strategy: a value is missing|--strategy=
2|sync: unknown setting "apply"|--strategy=sync:apply=worker
2|async-lockfree: apply=nobody: expected one of server¦worker|--strategy=async-lockfree:apply=nobody
2|async-lockfree.*apply|--strategy=async-lockfree:apply
2|sync:.*empty|--strategy=sync:
2|model "cnnn": unknown|--model=cnnn
2|mlp: hidden=0: expected|--model=mlp:hidden=0
2|mlp: hidden=10-: expected|--model=mlp:hidden=10-
2|mlp: hidden=-10: expected|--model=mlp:hidden=-10
2|mlp: hidden=10x: expected|--model=mlp:hidden=10x
2|mlp: activation=step: expected one of|--model=mlp:activation=step
2|dataset "minst": unknown; did you mean "mnist"|--dataset=minst
2|digits: take=-1: expected 0|--dataset=digits:take=-1
2|digits: found take=5000, expected at most 1437|--dataset=digits:take=5000
2|iris: standardize=2: expected 0 or 1|--dataset=iris:standardize=2
2|optimizer "sdg": unknown; did you mean "sgd"|--optimizer=sdg
2|sgd: rate=-1: expected 0|--optimizer=sgd:rate=-1
2|sgd: rate=nan: expected a number|--optimizer=sgd:rate=nan
2|sgd: unknown setting "momentum"|--optimizer=sgd:momentum=0.9
2|momentum: momentum=2: expected 0 to 1|--optimizer=momentum:momentum=2
2|adam: beta1=1: expected 0 to|--optimizer=adam:beta1=1
2|schedule "cosin": unknown; did you mean "cosine"|--schedule=cosin
2|cosine: end=2: expected 0 to 1|--schedule=cosine:end=2
2|warmup=-1: expected 0|--schedule=constant:warmup=-1
2|--batch=1438: expected at most 1437, the training examples of digits|--batch=1438
2|--batch=11: expected at most 10|--batch=11 --dataset=iris:take=10
2|split.*1 examples? for 2 workers|--data-sharding=split --dataset=iris:take=1 --batch=1 --devices=cpu:0,cpu:1
2|split.*2 examples for 3 workers|--data-sharding=split --dataset=iris:take=2 --batch=1 --devices=cpu:0,cpu:1,cpu:2
2|--devices: a value is missing|--devices=
2|devices: 'cpu', expected|--devices=cpu
2|devices: 'cpu:', expected|--devices=cpu:
2|devices: 'cpu:x', expected|--devices=cpu:x
2|devices: 'cpu:-1', expected|--devices=cpu:-1
2|devices: '', expected|--devices=cpu:0,,cpu:1
2|devices: '', expected|--devices=cpu:0,
2|devices: 'tpu:0', expected|--devices=tpu:0
2|devices: 'cpu:1024', expected a label of 0 to 1023|--devices=cpu:1024
4|gpu:999|--devices=gpu:999
4|gpu:999|--devices=cpu:0,gpu:999
2|--resume and --weights|--resume=run --weights=run/model.safetensors
3|mnist.*train-images-idx3-ubyte.*nowhere/mnist|--dataset=mnist --data-dir=nowhere
3|train-images-idx3-ubyte: .*0x00000801.*0x00000803|--dataset=mnist --data-dir=data
3|train-images-idx3-ubyte: |--dataset=mnist --data-dir=short
2|csv: found no file|--dataset=csv
3|nowhere.csv: No such file|--dataset=csv:file=nowhere.csv
3|bad.csv: .*row 4.*oops|--dataset=csv:file=bad.csv
3|nothing.csv: |--dataset=csv:file=nothing.csv
3|data: a folder, expected a file|--dataset=csv:file=data
3|file: a file, expected a folder|--out=file
3|file: a file, expected a folder|--out=file/below
3|wall/steps.csv|--out=wall
3|nowhere: No such file|--resume=nowhere
3|data/state.safetensors: No such file|--resume=data
3|file: |--resume=file
3|noise.safetensors: |--resume=noise.safetensors
3|nowhere: No such file|--weights=nowhere
3|noise.safetensors: |--weights=noise.safetensors
3|dense1/kernel|--weights=run/model.safetensors --model=mlp:hidden=30
2|evaluate: expected --checkpoint=DIR|evaluate
3|nowhere: No such file|evaluate --checkpoint=nowhere
2|takes no arguments, found "run"|evaluate run
2|--part=all: expected one of test¦train|evaluate --checkpoint=run --part=all
2|iris: examples \[4\] in 3 classes, expected \[64\] in 10 classes|evaluate --checkpoint=run --dataset=iris
2|dataset "minst": unknown|evaluate --checkpoint=run --dataset=minst
2|predict: expected --checkpoint=DIR|predict three.csv
2|predict: expected a .*CSV file|predict --checkpoint=run
2|--top=0: expected 1|predict --checkpoint=run --top=0 three.csv
3|nowhere.csv: No such file|predict --checkpoint=run nowhere.csv
3|three.csv: row 1: found 3 cells, expected 64|predict --checkpoint=run three.csv
3|nothing.csv: |predict --checkpoint=run nothing.csv
2|--input=0: expected sizes|describe --input=0
2|--input=28y28: expected sizes|describe --input=28y28
2|--classes=0: expected 1|describe --input=4 --classes=0
2|model "cnnn": unknown|describe --model=cnnn
2|plug-in "snyc": unknown; did you mean "sync"|list snyc
TABLE

# Each step multiplies the weights by about -1e9. A rate that makes the loss infinite or no number: exit code 6, whoever the worker was, and no weights that are of no use.
for strategy in sync async-lockfree async-lockfree:apply=worker; do
    "$TRAINER" --quiet --strategy=$strategy --devices=cpu:0,cpu:1 --dataset=digits:take=320 --model=softmax \
        --optimizer=sgd:rate=1e6 --decay=1000 --out=diverged >out 2>err
    code=$?
    [ $code -eq 6 ] || fail "$strategy, a rate of 1e6: exit code $code, expected 6: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "$strategy, a rate of 1e6: $(cat err), expected one line"
    grep -Eq '^trainer: worker [01] \(cpu:[01]\): the loss is .*learning rate 1e\+06' err || fail "$strategy, a rate of 1e6: $(cat err)"
    [ ! -s out ] || fail "$strategy, a rate of 1e6: printed $(cat out)"
    [ ! -e diverged/model.safetensors ] || fail "$strategy, a rate of 1e6: left a model"
    rm -rf diverged
done

# A folder that may not be written to (root may write everywhere).
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 555 locked
    before=$(tree)
    check 3 'locked/run: .*Permission denied' --out=locked/run
fi

[ $failures -eq 0 ]
