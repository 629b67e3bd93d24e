#!/bin/bash
# The command line: help, version, list, and one line on standard error with exit code 2 for every slip.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1 # should one of the bad ones below run, its output goes here

good() { # pattern that standard output must have, arguments...
    local pattern=$1 code
    shift
    "$TRAINER" "$@" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 0 ] || fail "trainer $*: exit code $code: $(cat "$scratch/err")"
    [ -s "$scratch/err" ] && fail "trainer $*: wrote to standard error: $(cat "$scratch/err")"
    grep -Eq -e "$pattern" "$scratch/out" || fail "trainer $*: no $pattern in: $(cat "$scratch/out")"
}

bad() { # exit code, the one line, arguments...
    local want=$1 line=$2 code
    shift 2
    "$TRAINER" "$@" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq "$want" ] || fail "trainer $*: exit code $code, expected $want"
    [ -s "$scratch/out" ] && fail "trainer $*: wrote to standard output: $(cat "$scratch/out")"
    # shellcheck disable=SC2053 # the line is a pattern
    [[ "$(cat "$scratch/err")" == $line ]] || fail "trainer $*: found: $(cat "$scratch/err") expected: $line"
}

good '^trainer [0-9]+\.[0-9]+\.[0-9]+ \((with|without) oneDNN' --version
good '^  list  ' --help
good '^  train  ' help
good '^usage: trainer train ' train --help
good '^usage: trainer train ' help train
good '^  --shard-by=' help shard-by
good '^  --shard-by=' --help=all
good '^  --simulate=TIME ' bench --help=simulate
good '^  --batch=N ' --batch=x --help=batch
good '^  --vary=NAME=VALUES ' sweep --help=vary
good '^trainer sweep:$' help vary
good '^strategy ssp: ' ssp --help
good '^  --shard-by=' train --batch=0 --help=all
good '^  --batch=N ' train --batch=0 --help
good '^usage: trainer list ' list -h
good '^usage: trainer list ' help list
good '^strategies ' --help=strategy
good '^optimizer sgd:' help sgd
good '^  async-lockfree +[^ ]' list
good '^models ' list
good '^  rate=X ' list sgd
good '^  rate=X ' list optimizer/sgd
good '^optimizer sgd:' list schedules optimizers/sgd

# No help is wider than 80 columns; a row of a number or of choices says what happens without it, a number of
# a range its range.
page() { # pattern that it must have, arguments...
    local row
    good "$@"
    shift
    awk 'length > 80 { exit 1 }' "$scratch/out" || fail "trainer $*: a line of more than 80 columns"
    sed -E ':a; N; $!ba; s/\n {20,}/ /g' "$scratch/out" |
        grep -E '^  (--)?[a-z_-]+=(N|X|SECONDS|[a-z0-9-]+\|[^ ]*) ' >"$scratch/rows"
    while IFS= read -r row; do
        [[ $row =~ default|=0\|1 ]] || fail "trainer $*: no default in: $row"
        [[ $row =~ \|.*\  || $row =~ ' to '[0-9] || $row =~ ' or more' || $row == *split_seed=* ]] ||
            fail "trainer $*: no range in: $row"
    done <"$scratch/rows"
    counted=$((counted + $(wc -l <"$scratch/rows")))
}

# Every plug-in, which is a file, is listed with its line and has a page of its own.
counted=0
"$TRAINER" list >"$scratch/list"
awk 'length > 80 { exit 1 }' "$scratch/list" || fail "trainer list: a line of more than 80 columns"
names=$(cd "$root" && basename -s .c strategies/*.c models/*.c datasets/*.c src/store/optimizers/*.c \
    src/store/schedules/*.c src/bridge/compressors/*.c src/outputs/*.c src/exports/*.c \
    src/imports/readers/*.c)
for name in $names; do
    name=${name//_/-}
    grep -Eq "^  $name +[^ ].{9,}" "$scratch/list" || fail "trainer list: no line for $name"
    page "^[a-z]+ $name: [^ ].{9,}" list "$name"
done
[ "$(grep -c '^  [^ ]' "$scratch/list")" -eq "$(wc -w <<<"$names")" ] ||
    fail "trainer list: $(grep -c '^  [^ ]' "$scratch/list") lines, expected $(wc -w <<<"$names")"
for command in $("$TRAINER" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    page "^usage: trainer $command" "$command" --help=all
done
page '^The exit code is 0 ' --help
[ $counted -gt 70 ] || fail "only $counted rows of numbers and choices in all pages"
good '\(0: only that one; default 60; 0 to 1000000000\)$' train --help=all
good '^  --timeout=SECONDS +give up ' train --help

bad 2 'trainer: command "trian": unknown; did you mean "train"? (one of *)' trian
bad 2 'trainer: command "trian": unknown; did you mean "train"? (one of *)' trian --help
bad 2 'trainer: "trian": no command, plug-in or option; did you mean "train"? (trainer help lists *)' help trian
bad 2 'trainer: "foo": no command, plug-in or option; trainer help lists the commands, trainer list *' \
    help foo
bad 2 'trainer: command "mnist": unknown; did you mean --dataset=mnist\?' mnist
bad 2 'trainer: command "cnn": unknown; did you mean --model=cnn\?' cnn
bad 2 'trainer: command "sync": unknown; did you mean --strategy=sync\?' sync --epochs=1
bad 2 'trainer: "sinc": no command, plug-in or option; did you mean "sync"? (*)' help sinc
bad 2 'trainer: command "zzzz": unknown (one of *)' zzzz
bad 2 'trainer: plug-in "snyc": unknown; did you mean "sync"\?' list snyc
bad 2 'trainer: plug-in "strategy/sgd": unknown*' list strategy/sgd
bad 2 'trainer: unknown option "--btach"; did you mean --batch=1\?' --btach=1
bad 2 'trainer: unknown option "--strateg"; did you mean --strategy=...\?' train --strateg sync
bad 2 'trainer: unknown option "--quite"; did you mean --quiet\?' --quite
bad 2 'trainer: unknown option "-b"; options begin with "--"' -b
bad 2 'trainer: unknown option "--batch"*' list --batch=1
bad 2 'trainer: --batch=0: expected 1 to *' train --batch=0
bad 2 'trainer: --batch=0: expected 1 to *' --batch 0
bad 2 'trainer: --batch=0: expected 1 to *' --seed 5 --batch 0
bad 2 'trainer: --batch=many: expected a whole number, *' --batch=many
bad 2 'trainer: --batch: a value is missing, expected --batch=...' --batch
bad 2 'trainer: --batch: a value is missing, expected --batch=...' --batch --seed=1
bad 2 'trainer: train: takes no arguments, found "mnist"; did you mean --dataset=mnist\?' train mnist
bad 2 'trainer: train: takes no arguments, found "--batch=1"' train -- --batch=1
bad 2 'trainer: --no-quiet=1: takes no value, expected --no-quiet or --quiet' --no-quiet=1
bad 2 'trainer: unknown option "--no-batch"*' --no-batch
bad 2 'trainer: --batch=0: expected 1 to *' --quiet --no_quiet --log_every=1 --batch=0
bad 2 'trainer: strategy "snyc": unknown; did you mean "sync"\? (one of *)' --strategy=snyc
bad 2 'trainer: sgd: unknown setting "rat"; did you mean "rate"\?' --optimizer=sgd:rat=1

# Many runs in one process are no cluster: what is of clusters alone is refused, and in no help. Other
# machines lend their devices to a sweep, over connections of its own.
for verb in bench ensemble sweep; do
    of_clusters=' job task ps-hosts worker-hosts cluster hosts ps workers port launcher ssh overlap '
    of_clusters+='restart-wait '
    [ $verb = sweep ] || of_clusters+='secret-file tls-cert tls-key tls-ca insecure link start-timeout '
    [ $verb = sweep ] || of_clusters+='shared-memory no-shared-memory '
    for option in $of_clusters; do
        bad 2 "trainer: $verb: takes no --$option: *" $verb --dataset=nothing --$option=1
    done
    "$TRAINER" $verb --help=all | grep -oE '^  --[a-z-]+' | while read -r option; do
        [[ $of_clusters != *" ${option#--} "* ]] || echo "$option"
    done >"$scratch/shown"
    [ ! -s "$scratch/shown" ] || fail "$verb --help=all: shows $(cat "$scratch/shown")"
done

bad 2 'trainer: sweep: takes no --no-test: *' sweep --vary=batch=16,32 --no-test
bad 2 'trainer: --vary=batch=16,8,16: "16" is there twice' sweep --vary=batch=16,8,16
bad 2 'trainer: --seed=4294967295: expected at most 4294967294 with --repeats=2' bench --seed=4294967295 \
    --repeats=2

# Names that other programs have: what is to be typed instead is written out, and can be typed as it stands.
instead() { # what is typed...
    "$TRAINER" "$@" >"$scratch/out" 2>"$scratch/err"
    [ $? -eq 2 ] || fail "$*: not refused: $(cat "$scratch/err")"
    local words
    words=$(sed -n 's/^trainer: .*\(unknown\|no cluster\).*; did you mean \(--[^ ]*\)?.*/\2/p' "$scratch/err")
    [ -n "$words" ] || { fail "$*: nothing is proposed: $(cat "$scratch/err")"; return; }
    [[ $words != *alexnet* ]] || return 0 # not for four measurements
    [[ $words != *tensorboard* ]] || grep -q -e -DTRAINER_PROTOBUF=1 "$BUILD/flags" || return 0
    "$TRAINER" "$words" --quiet --replace --dataset=iris --out="$scratch/instead" \
        >"$scratch/out" 2>"$scratch/err" || fail "$words, proposed for $*: $(cat "$scratch/err")"
}
for typed in --lr=0.1 --learning-rate=0.1 --learning_rate=0.1 --momentum=0.5 \
    --weight-decay=1e-4 --batch-size=16 --num-epochs=2 --workers=2 \
    --strategy={hogwild,Hogwild,project-adam,allreduce,AllReduce,ddp,downpour,ps,fedavg,stale-synchronous} \
    --batchsize=16 --early-stopping=3 --val-split=0.1 --ema=0.9 --grad-clip=1 --overwrite --hidden=10 \
    --log-interval=5 --cpu --no-cuda --print-freq=5 --scheduler=cosine --lr-scheduler=cosine \
    --gradient-accumulation-steps=2 --accumulate=2 --tensorboard --nproc_per_node=2 --local_rank=1 --strategy=ring-allreduce --schedule={StepLR,cosine-annealing} \
    --model={vgg16,dnn,logistic} --optimizer=rmsprop; do
    instead "$typed"
done
bad 2 'trainer: dataset "MNIST": unknown; did you mean "mnist"\? *' --dataset=MNIST
bad 2 'trainer: adam: unknown setting "lr"; did you mean "rate"\?' --optimizer=adam:lr=0.1
bad 2 'trainer: adam: unknown setting "0.01"; did you mean "rate=0.01"\?' --optimizer=adam:0.01
bad 2 'trainer: optimizer "adam,lr=0.1": unknown; did you mean "adam:rate=0.1"\? *' --optimizer=adam,lr=0.1
bad 2 'trainer: command "fit": unknown; did you mean trainer train\? *' fit
bad 2 'trainer: unknown option "--lr"; --help=all lists them' describe --lr=1
bad 2 'trainer: unknown option "--lr"; did you mean --optimizer=momentum:rate=0.5\?' --lr=0.5
bad 2 'trainer: --target-accuracy=0.5: found --no-test, expected the test part, whose accuracy it is' \
    --no-test --target-accuracy=0.5
bad 2 'trainer: --group=2: found 1 device, expected a multiple of 2' --group=2 --devices=cpu:0
bad 2 'trainer: unknown option "--num-epochs"; did you mean --epochs=7\?' --num-epochs=7
bad 2 'trainer: --workers=3: there is no cluster to join; did you mean --devices=cpu:0,cpu:1,cpu:2\?' \
    --workers=3
bad 2 'trainer: --workers=100: there is no cluster to join; did you mean --devices=cpu:\*\?' --workers=100
proposes() { # words, then each option for which they are proposed
    local words=$1 typed
    shift
    for typed in "$@"; do
        bad 2 "trainer: unknown option \"--*\"; did you mean $words\?*" "$typed"
    done
}
proposes --devices=gpu:0,gpu:1 --gpus=2
proposes --devices=gpu:0 --gpu=0 --num-gpus=1 --use-cuda --cuda
proposes '--devices=cpu:\*' --no-cuda --local-rank=3
proposes --devices=cpu:0,cpu:1 --nproc_per_node=2
proposes --out=foo --save=foo
proposes --hosts=HOST,HOST --nodes=2
proposes --resume=x --resume_from_checkpoint=x
proposes --print-every=10 --print-freq=10
proposes --microbatches=2 --gradient-accumulation-steps=2
proposes --outputs=csv,tensorboard --tensorboard
proposes 'trainer bench --strategies=sync,ssp' --strategies=sync,ssp
bad 2 'trainer: dataset "nope": unknown (one of *' pack nope x.pack
bad 2 "trainer: model \"resnet\": unknown; the program's sources have it as a list of layers, *" \
    --model=resnet
mkdir -p models/layers && echo 'flatten; dense' >models/layers/resnet20.txt
bad 2 'trainer: model "resnet": unknown; did you mean --model=layers:models/layers/resnet20.txt\? *' \
    --model=resnet

# The last one typed counts; --no-quiet speaks again.
run=(train --dataset=iris --epochs=1 --print-every=1)
"$TRAINER" "${run[@]}" --quiet --no-quiet --out="$scratch/spoken" 2>/dev/null | grep -q 'Step: ' ||
    fail "--no-quiet is quiet"
"$TRAINER" "${run[@]}" --no-quiet --quiet --out="$scratch/quiet" 2>/dev/null | grep -q 'Step: ' &&
    fail "--quiet is not"

for n in 1 2; do
    TRAINER_FAIL_ALLOCATION=$n bad 4 'trainer: memory: no * bytes left for *' list
done

if [ -w /dev/full ]; then
    "$TRAINER" list >/dev/full 2>"$scratch/err"
    [ $? -eq 3 ] || fail "a full disk behind standard output is not an error 3"
    grep -qx 'trainer: standard output: not written: No space left on device' "$scratch/err" ||
        fail "full: $(cat "$scratch/err")"
fi

[ $failures -eq 0 ]
