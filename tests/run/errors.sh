#!/bin/bash
# Everything that can be typed wrong, and every file that can be missing or in the way: one line on
# standard error that names the culprit, the exit code, and nothing written. (commands/command_line covers
# how the words are read; this, what they mean; run/sweeps, what fails in the middle.)
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
rows=0

tree() { find . -path ./logs -prune -o ! -name out ! -name err -print | sort; }

# A run that began leaves its logs, and nothing that looks like a result; a checkpoint only if it says so.
check_logs() {
    local left
    left=$(cd logs && find . -mindepth 1 ! -name steps.csv ! -name epochs.csv ! -path './checkpoint*')
    [ -z "$left" ] || fail "$1: left $left"
    [ "$(grep -c 'go on from update [0-9]* with: trainer --resume=logs$' err)" -eq \
        "$(find logs -name state.safetensors | wc -l)" ] ||
        fail "$1: left $(find logs), and said: $(cat err)"
    ! grep -vhq '^[^,]*\(,[^,]*\)\{5,15\}$' logs/*.csv || fail "$1: half a row in $(head -n 3 logs/*.csv)"
    rm -rf logs
}

# A row: exit code | words in the one line, as a pattern | what is typed. --out=logs: the run begins
# before it fails.
check() {
    local want=$1 pattern=$2 typed=$3 code
    rows=$((rows + 1))
    # shellcheck disable=SC2086 # several words
    "$TRAINER" $typed >out 2>err
    code=$?
    [ "$code" -eq "$want" ] || fail "trainer $typed: exit code $code, expected $want: $(cat err)"
    [ -s out ] && fail "trainer $typed: wrote to standard output: $(head -n 3 out)"
    [ "$(wc -l <err)" -eq 1 ] || fail "trainer $typed: expected one line on standard error, found: $(cat err)"
    grep -Eq -e "^trainer: .*($pattern)" err || fail "trainer $typed: said: $(cat err) expected: $pattern"
    ! LC_ALL=C grep -q '[[:cntrl:]]' err || fail "trainer $typed: control characters on standard error"
    [ ! -d logs ] || check_logs "trainer $typed"
    [ "$(tree)" = "$before" ] ||
        { fail "trainer $typed: wrote $(diff <(echo "$before") <(tree) | grep '^>')"; before=$(tree); }
}

"$TRAINER" --quiet --dataset=digits:take=320 --model=mlp:hidden=20 --epochs=1 --out=run >out 2>err ||
    fail "trainer: exit code $?: $(cat err)"
echo text >file
printf '1,2,3\n4,5,6\n' >three.csv
printf '5.1,3.3,1.7,0.5\n5.9,3.0,x,1.5\n' >word.csv
printf 'a,b,kind\n1,2,x\n3,4,y\n5,oops,x\n' >bad.csv
printf '' >nothing.csv
yes 1 | head -n 64 | paste -sd, >flat.csv
printf 'a,b,kind\n1,2,x\n3,,y\n5,6,x\n' >missing.csv
printf '1,2,x\n3,4\n5,6,y\n' >ragged.csv
printf '1,2,x\n3,4,y,5\n' >longer.csv
printf 'a,b,kind\n' >header.csv
printf '1,2,x\n3,4,y\n5,6,x\n' >two.csv
{
    echo a,b,price
    for ((i = 0; i < 400; i++)); do echo "$((i % 9)),$((i % 7)),$((100000 + 37 * i))"; done
} >houses.csv
echo 'dense 10' >net.txt
printf "no network at all, whatever its name says" >net.onnx
printf '1,2,x\n3,4,z\n' >third.csv
printf '1,2,x\n3,4,x\n5,6,x\n' >one.csv
printf '1,2,x\n3,"4,y\n' >quote.csv
printf '1,2,x\n3,nan,y\n' >nan.csv
printf '1,2,x\n3,4\0,y\n' >zero.csv
printf 'x,when,kind\n1,2024-01-02,a\n2,2024-01-03,b\n' >dates.csv
printf 'x,price,kind\n1,"1,234.50",a\n2,"2,345.50",b\n' >prices.csv
printf '1,234;5;a\n2,345;1;b\n' >commas.csv
{ echo id,x,kind && for i in {0..59}; do echo "n$i,$i,$((i % 2))"; done; } >ids.csv

# Folders of data sets in each of which one thing is wrong.
number() { printf "\\x$(printf %02x $(($1 >> 8)))\\x$(printf %02x $(($1 & 255)))"; }
images() {
    printf '\0\0\10\3\0\0'; number "$1"; printf '\0\0'; number "$2"; printf '\0\0'; number "$3"
    head -c $(($1 * $2 * $3)) /dev/zero
}
labels() { printf '\0\0\10\1\0\0'; number "$1"; printf '\1%.0s' $(seq "$1"); }
mnist() { # folder: good files of three examples each
    mkdir -p "$1/mnist"
    images 3 28 28 | tee "$1/mnist/train-images-idx3-ubyte" >"$1/mnist/t10k-images-idx3-ubyte"
    labels 3 | tee "$1/mnist/train-labels-idx1-ubyte" >"$1/mnist/t10k-labels-idx1-ubyte"
}
for name in good gone empty header magic short long size more label packed cut emptypack; do mnist $name; done
train=mnist/train-images-idx3-ubyte numbers=mnist/train-labels-idx1-ubyte
rm gone/mnist/t10k-labels-idx1-ubyte
: >empty/$train
head -c 15 good/$train >header/$train
labels 8 >magic/$train
head -c 2000 good/$train >short/$train
printf x >>long/$train
images 3 14 56 >size/$train
labels 4 >more/$numbers
printf '\12' | dd of=label/$numbers bs=1 seek=9 conv=notrunc status=none
gzip -n packed/$train cut/$train emptypack/$train
printf '\377\377\377\377' | dd of=packed/$train.gz bs=1 seek=20 conv=notrunc status=none
truncate -s -6 cut/$train.gz
: >emptypack/$train.gz
for name in none few odd class; do
    mkdir -p $name/cifar10
    for n in 1 2 3 4 5; do truncate -s 30730000 $name/cifar10/data_batch_$n.bin; done
    truncate -s 30730000 $name/cifar10/test_batch.bin
done
rm none/cifar10/data_batch_3.bin
: >few/cifar10/data_batch_1.bin
truncate -s -1 odd/cifar10/test_batch.bin
printf '\13' | dd of=class/cifar10/data_batch_1.bin bs=1 seek=3073 conv=notrunc status=none

mkdir -p data wall
mkdir wall/steps.csv
state=run/checkpoint/state.safetensors
head -c 4000 $state >cut.safetensors
head -c 7 $state >stub.safetensors
: >empty.safetensors
cp $state flipped.safetensors
printf '\377' | dd of=flipped.safetensors bs=1 seek=5000 conv=notrunc status=none
cp $state header.safetensors
printf 'm' | dd of=header.safetensors bs=1 seek=60 conv=notrunc status=none
head -c 1000 /dev/urandom >noise.safetensors
printf '\002\0\0\0\0\0\0\0{}' >none.safetensors
gzip -c $state >packed.safetensors
yes '' | head -c 67108865 | gzip >bomb.csv.gz
printf '1,2,Basel\n3,4,Bern\n5,6,Z\374rich\n' >latin.csv
mkdir linked
echo precious >victim
ln -s ../victim linked/steps.csv
before=$(tree)

# A rate of 1e6 with a decay of 1000 multiplies the weights by about -1e9 a step: the loss is soon
# infinite or no number.
while IFS='|' read -r code pattern typed; do
    [ -n "$code" ] && check "$code" "${pattern//¦/|}" "$typed"
done <<'TABLE'
2|command "trian": unknown|trian
2|unknown option "--bacth"; did you mean --batch=3|--bacth=3
2|unknown option "-q"|-q
2|takes no arguments, found "digits"; did you mean --dataset=digits\?|train digits
2|takes no arguments, found "run"; did you mean --resume=run\?|train run
2|command "two.csv": unknown; did you mean --dataset=csv:file=two.csv\?|two.csv
2|command "net.txt": unknown; did you mean --model=layers:net.txt\?|net.txt
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
2|--loss=mse: digits has one class per example, expected cross-entropy$|--loss=mse
2|--loss=categorical_crossentropy: did you mean --loss=cross-entropy\? \(one of auto|--loss=categorical_crossentropy
2|--loss=BCE: did you mean --loss=binary-cross-entropy\?|--loss=BCE
2|--loss=hinge: expected one of auto.cross-entropy|--loss=hinge
2|--label-smoothing=1: expected 0 to 0.99|--label-smoothing=1
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
2|--strategy=ssp:bound=1,sync: found several strategies, expected one; did you mean trainer bench --strategies=ssp:bound=1,sync\?|--strategy=ssp:bound=1,sync
2|--strategy: a value is missing|--strategy=
2|sync: unknown setting "apply"|--strategy=sync:apply=worker
2|async-lockfree: apply=nobody: expected one of server¦worker|--strategy=async-lockfree:apply=nobody
2|async-lockfree.*apply|--strategy=async-lockfree:apply
2|sync:.*empty|--strategy=sync:
2|--staleness=divide: gradients are never stale under --strategy=sync: expected --staleness=ignore|--staleness=divide
2|--staleness=divide: gradients are never stale under --strategy=easgd:period=3: expected --staleness=ignore|--staleness=divide --strategy=easgd:period=3
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
2|sgd: unknown setting "rat"; did you mean "rate"|--optimizer=sgd:rat=1
2|sgd: unknown setting "0.1"; did you mean "rate=0.1"|--optimizer=sgd:0.1
2|power-sgd: unknown setting "4"; did you mean "rank=4"|--compress=power-sgd:4
2|async-lockfree: unknown setting "worker"; did you mean "apply=worker"|--strategy=async-lockfree:worker
2|ssp: bound=-1: expected 0 to 1000000 steps|--strategy=ssp:-1
2|mlp: unknown setting "hiden"; did you mean "hidden"|--model=mlp:hiden=3
2|digits: unknown setting "tkae"; did you mean "take"|--dataset=digits:tkae=3
2|constant: unknown setting "warm"; did you mean "warmup"|--schedule=constant:warm=3
2|model "mpl": unknown; did you mean "mlp"|--model=mpl
2|model "resnet": unknown; the program's sources have it as a list of layers, models/layers/resnet20.txt, for --model=layers:FILE \(one of|--model=resnet
2|model "mobilenet": unknown; .* models/layers/mobilenet.txt, for|--model=mobilenet
2|mlp: hidden=10,20,30: expected widths .*; did you mean hidden=10-20-30\?|--model=mlp:hidden=10,20,30,activation=relu
2|mlp: hidden=10,x: expected widths .* as in 10-10 \(digits\)|--model=mlp:hidden=10,x
2|sgd: unknown setting "momentum"|--optimizer=sgd:momentum=0.9
2|momentum: momentum=2: expected 0 to 1|--optimizer=momentum:momentum=2
2|adam: beta1=1: expected 0 to|--optimizer=adam:beta1=1
2|schedule "cosin": unknown; did you mean "cosine"|--schedule=cosin
2|cosine: end=2: expected 0 to 1|--schedule=cosine:end=2
2|warmup=-1: expected 0|--schedule=constant:warmup=-1
2|--batch=1438: expected at most 1437, the training examples of digits|--batch=1438
2|digits: found 1 training example, expected at least the default batch of 32; --batch=N makes it smaller|--dataset=digits:take=1
2|digits: found 20 training examples, expected at least the default batch of 32; --batch=N makes it smaller|--dataset=digits:take=20
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
3|mnist is not in nowhere/mnist, .*: trainer fetch mnist |--dataset=mnist --data-dir=nowhere
3|mnist: found no t10k-labels-idx1-ubyte .*gone/mnist|--dataset=mnist --data-dir=gone
3|empty/mnist/train-images-idx3-ubyte: found 0 bytes, expected a header of 16|--dataset=mnist --data-dir=empty
3|train-images-idx3-ubyte: found 15 bytes, expected a header of 16|--dataset=mnist --data-dir=header
3|train-images-idx3-ubyte: magic 0x00000801, expected 0x00000803|--dataset=mnist --data-dir=magic
3|train-images-idx3-ubyte: found 1984 bytes after the header, expected 2352|--dataset=mnist --data-dir=short
3|train-images-idx3-ubyte: found 2353 bytes after the header, expected 2352|--dataset=mnist --data-dir=long
3|train-images-idx3-ubyte: found images of 14 x 56, expected 28 x 28|--dataset=mnist --data-dir=size
3|train-labels-idx1-ubyte: found 4 labels, expected 3, one for each image of .*train-images|--dataset=mnist --data-dir=more
3|train-labels-idx1-ubyte: found label 10 in example 2 .*, expected 0 to 9|--dataset=mnist --data-dir=label
3|train-images-idx3-ubyte.gz: damaged gzip data|--dataset=mnist --data-dir=packed
3|train-images-idx3-ubyte.gz: the gzip data ends too early, expected its end mark|--dataset=mnist --data-dir=cut
3|train-images-idx3-ubyte.gz: found 0 bytes, expected a header of 16|--dataset=mnist --data-dir=emptypack
2|--batch=4: expected at most 3, the training examples of mnist|--dataset=mnist --data-dir=good --batch=4
2|mnist: found take=4, expected at most 3|--dataset=mnist:take=4 --data-dir=good --batch=1
3|cifar10: found no data_batch_3.bin .*none/cifar10|--dataset=cifar10 --data-dir=none
3|data_batch_1.bin: found 0 bytes, expected 30730000|--dataset=cifar10 --data-dir=few
3|test_batch.bin: found 30729999 bytes, expected 30730000|--dataset=cifar10:take=1 --data-dir=odd
3|data_batch_1.bin: found label 11 in record 2 .*, expected 0 to 9|--dataset=cifar10:take=1 --data-dir=class
2|csv: found no file|--dataset=csv
3|nowhere.csv: No such file|--dataset=csv:file=nowhere.csv
3|bad.csv: row 4, column 2 "b": found "oops", expected a number|--dataset=csv:file=bad.csv
3|missing.csv: row 3, column 2 "b": found an empty cell, expected a number|--dataset=csv:file=missing.csv
3|ragged.csv: row 2: found 2 cells, expected 3|--dataset=csv:file=ragged.csv
3|longer.csv: row 2: found 4 cells, expected 3|--dataset=csv:file=longer.csv
3|nan.csv: row 2, column 2: found "nan", a missing value, expected a number; missing=mean fills such cells in, missing=drop|--dataset=csv:file=nan.csv
3|prices.csv: row 2, column 2 "price": found "1,234.50", expected a number or a category; write numbers as 1234.5, categories=price takes texts|--dataset=csv:file=prices.csv
3|dates.csv: row 2, column 2 "when": found the date "2024-01-02", expected a number or a category; ignore=when leaves|--dataset=csv:file=dates.csv
3|ids.csv: row 2, column 1 "id": found "n0", and another value in each row, .* an identifier; ignore=id leaves|--dataset=csv:file=ids.csv
3|commas.csv: found "1,234", which may have a decimal comma or thousands apart; decimal=comma or decimal=point|--dataset=csv:file=commas.csv
2|two.csv: found ignore=a, expected the number of one of its 3 columns, 1 to 3, as it has no header|--dataset=csv:file=two.csv,ignore=a,2
2|bad.csv: found the label in columns=a,kind, expected other columns|--dataset=csv:file=bad.csv,columns=a,kind
2|bad.csv: found no column to learn from|--dataset=csv:file=bad.csv,ignore=a,b
2|csv: missing=zero: expected one of error¦mean¦drop|--dataset=csv:file=two.csv,missing=zero
3|quote.csv: row 2, column 2: found the end of the file, expected a closing quote|--dataset=csv:file=quote.csv
3|zero.csv: found a 0 byte at offset 9, expected text|--dataset=csv:file=zero.csv
3|nothing.csv: .*expected|--dataset=csv:file=nothing.csv
3|header.csv: .*expected|--dataset=csv:file=header.csv
3|one.csv: found one class, "x", in all [0-9]+ training rows, expected at least two|--dataset=csv:file=one.csv
3|third.csv: row 2, column 3: found "z", expected one of the 2 labels of the training part|--dataset=csv:file=two.csv,test_file=third.csv
3|ragged.csv: row 2: found 2 cells, expected 3|--dataset=csv:file=two.csv,test_file=ragged.csv
2|two.csv: found label=9, expected the number of one of its 3 columns, 1 to 3|--dataset=csv:file=two.csv,label=9
2|bad.csv: found label=sort, expected the name or number of one of its 3 columns, 1 to 3$|--dataset=csv:file=bad.csv,label=sort
2|bad.csv: found label=knid, expected .*; did you mean "kind"\?|--dataset=csv:file=bad.csv,label=knid
2|csv: unknown setting "fiel"; did you mean "file"|--dataset=csv:fiel=two.csv
2|csv: unknown setting "two.csv"; did you mean "file=two.csv"|--dataset=csv:two.csv
2|pictures: unknown setting "data"; did you mean "dir=data"|--dataset=pictures:data
2|csv: unknown setting "no/such.csv"; did you mean "file=no/such.csv"|--dataset=csv:no/such.csv
2|step: unknown setting "10"; its settings are |--schedule=step:10
2|dataset "two.csv": unknown; did you mean --dataset=csv:file=two.csv|--dataset=two.csv
2|dataset "data": unknown; did you mean --dataset=pictures:dir=data|--dataset=data
2|model "net.txt": unknown; did you mean --model=layers:net.txt|--model=net.txt
3|houses.csv: row [0-9]+, column 3 "price": found "[0-9]+", expected one of the .* labels of the training part; target=price predicts it as a number|--dataset=csv:file=houses.csv
3|net.onnx: expected a run.s folder or a .safetensors file; `trainer import` makes a run of a Keras or ONNX file|--resume=net.onnx
2|csv: header=maybe: expected one of auto¦yes¦no|--dataset=csv:file=two.csv,header=maybe
3|data: a folder, expected a file|--dataset=csv:file=data
3|file: a file, expected a folder|--out=file
3|file: a file, expected a folder|--out=file/below
3|wall/steps.csv|--out=wall
3|/proc/run: cannot create this folder|--out=/proc/run
3|empty.safetensors: |--resume=empty.safetensors
3|stub.safetensors: |--resume=stub.safetensors
3|cut.safetensors: |--resume=cut.safetensors
3|flipped.safetensors: .*checksum.*, expected|--resume=flipped.safetensors
3|header.safetensors: |--resume=header.safetensors
3|flipped.safetensors: .*checksum.*, expected|evaluate --checkpoint=flipped.safetensors
3|cut.safetensors: |evaluate --checkpoint=cut.safetensors
3|flipped.safetensors: .*checksum.*, expected|predict --checkpoint=flipped.safetensors three.csv
2|--model=lenet: the checkpoint in run has mlp:hidden=20, expected that$|--resume=run --model=lenet
2|--model=softmax: the checkpoint in run has mlp:hidden=20, expected that$|--resume=run --model=softmax
3|run/model.safetensors: no layer fits: found dense1/kernel \[64, 20\], .*, expected dense1/kernel \[64, 10\], dense1/bias \[10\]$|--weights=run/model.safetensors --model=softmax
3|packed.safetensors: a gzip file, expected one that is not packed|--resume=packed.safetensors
3|packed.safetensors: a gzip file, expected one that is not packed|--weights=packed.safetensors
3|packed.safetensors: a gzip file, expected one that is not packed|evaluate --checkpoint=packed.safetensors
3|bomb.csv.gz: more than 67108864 bytes when unpacked|--dataset=csv:file=bomb.csv.gz
3|latin.csv: row 3, column 3: found "Z.rich", expected a name in UTF-8|--dataset=csv:file=latin.csv
3|linked/steps.csv: cannot be written: a symbolic link, expected a file|--out=linked
2|--model=mlp:hidden=30: the checkpoint in run has mlp:hidden=20, expected that$|--resume=run --model=mlp:hidden=30
2|iris: examples \[4\] in 3 classes, expected \[64\] in 10 classes, what the network was trained on$|--resume=run --dataset=iris
2|--model=mlp:hidden=20-7: the checkpoint in run has mlp:hidden=20, expected that$|--resume=run --model=mlp:hidden=20-7
3|model.safetensors: no layer fits: found dense1/kernel \[64, 20\], .*, expected dense1/kernel \[64, 30\], |--weights=run/model.safetensors --model=mlp:hidden=30
6|worker 0 \(cpu:0\): the loss is (nan¦infinite) at step [0-9]+, learning rate 1e\+06|--quiet --devices=cpu:0 --dataset=digits:take=320 --model=softmax --optimizer=sgd:rate=1e6 --schedule=constant --decay=1000 --out=logs
6|worker [01] \(cpu:[01]\): the loss is (nan¦infinite) at step [0-9]+, learning rate 1e\+06|--quiet --devices=cpu:0,cpu:1 --dataset=digits:take=320 --model=softmax --optimizer=sgd:rate=1e6 --schedule=constant --decay=1000 --out=logs
6|worker [01] \(cpu:[01]\): the loss is (nan¦infinite) at step [0-9]+, learning rate 1e\+06|--quiet --devices=cpu:0,cpu:1 --strategy=async-lockfree --dataset=digits:take=320 --model=softmax --optimizer=sgd:rate=1e6 --schedule=constant --decay=1000 --out=logs
6|worker [01] \(cpu:[01]\): the loss is (nan¦infinite) at step [0-9]+, learning rate 1e\+06|--quiet --devices=cpu:0,cpu:1 --strategy=async-lockfree:apply=worker --dataset=digits:take=320 --model=softmax --optimizer=sgd:rate=1e6 --schedule=constant --decay=1000 --out=logs
4|worker 1 \(cpu:1\) failed at step 3, as --fail asked|--quiet --devices=cpu:0,cpu:1 --fail=worker:1@step:3 --dataset=iris --out=logs
2|--fail: worker 7, expected 0 to 1|--quiet --devices=cpu:0,cpu:1 --fail=worker:7@step:3
2|--stall=server: this strategy has no servers|--quiet --devices=cpu:0,cpu:1 --stall=server
2|--fail: "worker:one", expected worker:1@step:50|--quiet --fail=worker:one
2|--slow: no worker is on cpu:9|--quiet --devices=cpu:0,cpu:1 --slow=cpu:9=3x
3|nowhere: No such file or folder, expected a run.s folder|--resume=nowhere
3|data: no checkpoint in it, expected data/checkpoint/state.safetensors|--resume=data
3|data: no checkpoint in it, expected data/checkpoint/state.safetensors|evaluate --checkpoint=data
3|file: |--resume=file
3|noise.safetensors: |--resume=noise.safetensors
3|nowhere: no such file, expected a run's folder, or a file that ends with .safetensors, .h5, .keras or .onnx|--weights=nowhere
3|two.csv: found another kind of file, expected a run's folder, or a file that ends with .safetensors, .h5, .keras or .onnx|--weights=two.csv
3|noise.safetensors: |--weights=noise.safetensors
3|none.safetensors: no layer fits: found no weights, expected dense1/kernel \[64, 10\], dense1/bias \[10\]$|--weights=none.safetensors --model=softmax
2|evaluate: expected --checkpoint=DIR|evaluate
3|nowhere: No such file or folder, expected a run.s folder|evaluate --checkpoint=nowhere
2|takes no arguments, found "run"; did you mean --checkpoint=run\?|evaluate run
2|--part=all: expected one of test¦train|evaluate --checkpoint=run --part=all
2|iris: examples \[4\] in 3 classes, expected \[64\] in 10 classes|evaluate --checkpoint=run --dataset=iris
2|dataset "minst": unknown|evaluate --checkpoint=run --dataset=minst
2|predict: expected --checkpoint=DIR$|predict three.csv
2|predict: expected --checkpoint=DIR; did you mean --checkpoint=run\?|predict run three.csv
2|predict: expected a .*CSV file|predict --checkpoint=run
2|--top=0: expected 1|predict --checkpoint=run --top=0 three.csv
3|nowhere.csv: No such file|predict --checkpoint=run nowhere.csv
3|three.csv: row 1: found 3 cells, expected 64|predict --checkpoint=run three.csv
3|nothing.csv: |predict --checkpoint=run nothing.csv
2|--format=json: expected one of text¦csv|predict --checkpoint=run --format=json flat.csv
2|--input=0: expected sizes|describe --input=0
2|--input=28y28: expected sizes|describe --input=28y28
2|--classes=0: expected 1|describe --input=4 --classes=0
2|model "cnnn": unknown|describe --model=cnnn
2|plug-in "snyc": unknown; did you mean "sync"|list snyc
2|strategy "snyc": unknown; did you mean "sync"|bench --strategies=snyc
2|unknown option "--checkpiont"; did you mean --checkpoint=run|evaluate --checkpiont=run
2|--job=woker: there is no cluster|--job=woker
TABLE

[ "$(<victim)" = precious ] || fail "what a link points to is now: $(head -n 2 victim)"

# Results that nobody can read any more.
if [ -w /dev/full ]; then
    for typed in list devices --help "train --help" --version "describe --input=4" \
        "evaluate --checkpoint=run" "predict --checkpoint=run flat.csv" \
        "--quiet --dataset=iris --epochs=1 --out=logs" \
        "--dataset=iris --epochs=1 --print-every=1 --out=logs"; do
        rows=$((rows + 1))
        # shellcheck disable=SC2086 # several words
        "$TRAINER" $typed >/dev/full 2>err
        code=$?
        [ $code -eq 3 ] || fail "trainer $typed >/dev/full: exit code $code, expected 3"
        [ "$(tail -n 1 err | grep -c ': No space left on device$')" -eq 1 ] ||
            fail "trainer $typed >/dev/full: $(cat err)"
        [ "$(grep -Evc '^(trainer: |epoch [0-9]+/)' err)" -eq 0 ] ||
            fail "trainer $typed >/dev/full: $(cat err)"
        rm -rf logs
    done
fi

# A folder that may not be written to (root may write everywhere).
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 555 locked
    before=$(tree)
    check 3 'locked/run: .*Permission denied' --out=locked/run
fi

# A fault that was put in where no step ever is: the run is fine, and says that it was not put to the test.
"$TRAINER" --quiet --devices=cpu:0,cpu:1 --dataset=iris --epochs=1 \
    --fail=worker:1@step:500,worker:0@step:600 --stall=worker:0@step:900 --out=logs >out 2>err ||
    fail "faults that never came: exit code $?: $(cat err)"
for fault in fail=worker:1@step:500 fail=worker:0@step:600 stall=worker:0@step:900; do
    grep -q "^trainer: --$fault was never reached: that worker took [1-9] steps\?\$" err ||
        fail "nothing is said of --$fault: $(cat err)"
done
[ "$(grep -vc 'nothing was learnt' err)" -eq 3 ] || fail "faults that never came: $(cat err)"
"$TRAINER" --quiet --devices=cpu:0,cpu:1 --strategy=async-lockfree --dataset=iris --epochs=20 \
    --fail=worker:1@step:1 --replace --out=logs >out 2>err ||
    fail "a fault that came: exit code $?: $(cat err)"
! grep 'never reached' err || fail "a fault that came is said not to have come"
missed() { # fault, why it did not come, options...: the run ends well, and says so of this fault alone
    local expected="trainer: --$1 was never reached: $2"
    shift 2
    "$TRAINER" --quiet --devices=cpu:0,cpu:1 --dataset=iris --epochs=2 --out=logs "$@" >out 2>err ||
        fail "$*: exit code $?: $(cat err)"
    [ "$(grep 'never reached' err)" = "$expected" ] || fail "$*: expected \"$expected\", found: $(cat err)"
}
missed fail=worker:1@step:5 'that worker was lost at step 3' --fail=worker:1@step:3,worker:1@step:5 \
    --batch=8 --on-loss=continue --replace
"$TRAINER" --quiet --devices=cpu:0,cpu:1 --dataset=iris --epochs=2 --strategy=async-lockfree --replace \
    --out=logs >out 2>err || fail "exit code $?: $(cat err)"
# logs is over already
missed fail=worker:0@step:1 'that worker took 0 steps' --fail=worker:0@step:1 --resume=logs
missed stall=server:0 'there was no step to take' --stall=server:0 --resume=logs
missed stall=server 'there was no step to take' --stall=server --resume=logs

# --- a setting that comes to another one with so few workers is said ---
for said in 'backup:9|with 2 workers backups=9 is as backups=1' 'backup:1|' \
    'adasync:k=3|with 2 workers k=3 is as k=2' 'adasync:k=2|'; do
    "$TRAINER" --devices=cpu:0,cpu:1 --dataset=iris --epochs=1 --strategy="${said%|*}" --replace --out=logs \
        >out 2>err || fail "$said: exit code $?: $(cat err)"
    [ "$(grep '^with [0-9]* workers' out)" = "${said#*|}" ] || fail "$said: $(cat out)"
done

echo "$rows rows"
[ $rows -ge 170 ] || fail "only $rows rows"

[ $failures -eq 0 ]
