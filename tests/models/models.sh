#!/bin/bash
# Every model of the program's own list, trained end to end on digits; and --explain: what it says of a step,
# and that it changes nothing.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
small="--dataset=digits:take=160 --batch=8 --schedule=constant --devices=cpu:0 --threads=1"

train() { # name of the run, options...
    local name=$1 code
    shift
    "$TRAINER" --quiet --out="$scratch/$name" "$@" >"$scratch/$name.out" 2>"$scratch/$name.err"
    code=$?
    [ $code -eq 0 ] || fail "$name ($*): exit code $code: $(cat "$scratch/$name.err")"
    [ -s "$scratch/$name.err" ] && fail "$name ($*): wrote to standard error: $(cat "$scratch/$name.err")"
}

# Mean of the loss over the first and the last ten rows of steps.csv: "falls" or the two.
course() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") at = i; next } { loss[++n] = $at }
        END { for (i = 1; i <= 10; i++) { first += loss[i]; last += loss[n + 1 - i] }
              if (n >= 20 && last < 0.9 * first) print "falls"; else print n, first / 10, last / 10 }' \
        "$scratch/$1/steps.csv"
}

losses() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") at = i; next } { print $at }' \
        "$scratch/$1/steps.csv"
}

models=$("$TRAINER" list models | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p')
[ "$(wc -w <<<"$models")" -ge 5 ] || fail "only these models are listed: $models"
for model in $models; do
    # shellcheck disable=SC2086 # several words
    train "$model" $small --model="$model" --optimizer=adam:rate=0.003 --epochs=2
    [ "$(course "$model")" = falls ] || fail "$model: the loss does not fall: $(course "$model")"
    "$TRAINER" describe --model="$model" --dataset=digits >"$scratch/out" 2>&1 ||
        fail "describe $model: $(cat "$scratch/out")"
    "$TRAINER" evaluate --checkpoint="$scratch/$model/checkpoint" >"$scratch/out" 2>&1 ||
        fail "evaluate $model: $(cat "$scratch/out")"
    # Equal losses come from equal weights.
    # shellcheck disable=SC2086
    train "$model-explained" $small --model="$model" --optimizer=adam:rate=0.003 --epochs=1 --explain
    [ "$(losses "$model" | head -n 20)" = "$(losses "$model-explained")" ] ||
        fail "$model: --explain changed the losses"
    grep -q 'multiply-adds' "$scratch/$model.out" && fail "$model: explained without being asked"
done

# --- what --explain says ---
said() {
    grep -Eq -- "$2" "$scratch/$1.out" || fail "$1: --explain does not say '$2': $(cat "$scratch/$1.out")"
}
said alexnet-explained '^cpu:0, batch 8:$'
said alexnet-explained '^operation +result +implementation +type +MB +ms +share +GFLOP/s$'
said alexnet-explained '^conv2d \+ bias \+ relu conv1/kernel +\[8, 8, 8, 64\] '
said alexnet-explained '^matmul \+ bias dense3/kernel +\[8, 10\] '
said alexnet-explained '^lrn_grad \+ relu_grad '
said alexnet-explained '^conv2d_pool_grad_kernel conv1/kernel +\[5, 5, 1, 64\] '
said alexnet-explained '^conv2d_grad_x conv2/kernel '
said alexnet-explained '^reduce_sum conv2/bias +\[64\] '
said alexnet-explained \
    '^[0-9]+ instructions, [0-9]+ multiply-adds, arena of [0-9.]+ MB, [0-9.]+ ms, [0-9.]+ GFLOP/s$'
! grep -Eq '^conv2d_grad_x .*conv1' "$scratch/alexnet-explained.out" ||
    fail "the first layer's data gradient is computed"
# shellcheck disable=SC2086
train plain $small --model=lenet --epochs=1 --kernels=reference --explain
said plain '^conv2d \+ bias \+ relu conv2/kernel .* reference:conv2d_bias '
! grep -q 'onednn:' "$scratch/plain.out" || fail "--kernels=reference: $(grep onednn: "$scratch/plain.out")"
if grep -qa 'onednn:conv2d_bias' "$TRAINER"; then
    said alexnet-explained 'conv2/kernel .* onednn:[a-z_0-9]+:[a-z0-9_]+'
    ! grep -E '^(conv2d|matmul) .*reference:' "$scratch/alexnet-explained.out" | grep -vq '\[1, 1\]' ||
        fail "not by oneDNN: $(grep -E '^(conv2d|matmul).*reference:' "$scratch/alexnet-explained.out")"
fi
# The shares add up, and the table's steps are as many as it says.
awk '$NF == "GFLOP/s" && NR == 2 { table = 1; next }
    / instructions, / {
        print (rows == $1 && sum > 99 && sum < 101) ? "right" : rows " rows, " $1 " said, " sum " %"
        exit
    }
    table { rows++; for (i = 1; i < NF + 1; i++) if ($i == "%") sum += $(i - 1) }' \
    "$scratch/alexnet-explained.out" >"$scratch/out"
[ "$(cat "$scratch/out")" = right ] || fail "--explain: $(cat "$scratch/out")"

# Every column begins where its title does, and no longer before it than the longest of its words.
for run in alexnet-explained plain; do
    awk '/^operation / {
            for (i = 1; i < 5; i++)
                at[i] = index($0,
                              i == 1 ? "operation" : i == 2 ? "result" : i == 3 ? "implementation" : "type")
            next
        }
        at[1] && / instructions, / { exit !(filled[1] && filled[2] && filled[3]) }
        at[1] {
            for (i = 2; i < 5; i++) {
                if (substr($0, at[i] - 2, 2) != "  " || substr($0, at[i], 1) == " ") { print; exit 1 }
                filled[i - 1] = filled[i - 1] || substr($0, at[i] - 3, 1) != " "
            }
        }' \
        "$scratch/$run.out" >"$scratch/out" ||
        fail "$run: columns are not below their titles: $(cat "$scratch/out")"
done

# A weight is laid out anew at most once a step in fp32; once for each direction in bf16, where that is its
# rounding too, and where oneDNN's convolutions for AVX2, and those of fast's 256 channels, want another form
# for each. Rows whose result is a weight's gradient have no weight among their operands.
reorders() { # name of the run: most reorders of one weight
    awk '/, reordered (x\+)?kernel/ && / \[8, / {
            for (i = 1; i <= NF; i++) if ($i ~ /\/kernel$/) { n[$i]++; if (n[$i] > most) most = n[$i] }
        }
        END { print most + 0 }' \
        "$scratch/$1.out"
}
most=1
grep -q avx512 /proc/cpuinfo || most=2
for model in $models; do
    [ "$model" = fast ] && allowed=2 || allowed=$most
    [ "$(reorders "$model-explained")" -le $allowed ] ||
        fail "$model: a weight is reordered $(reorders "$model-explained") times a step"
done

# --- bf16: other bits, a loss that falls, and named in --explain; or a clear line ---
refused() { # words, options...
    local words=$1
    shift
    # shellcheck disable=SC2086
    "$TRAINER" $small --model=lenet --precision=bf16 --out="$scratch/none" "$@" \
        >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 4 ] && [ "$(cat "$scratch/err")" = \
        "trainer: cpu:0: no bf16 without $words (--precision=fp32 does without)" ] ||
        fail "bf16 $*: exit code $code: $(cat "$scratch/err")"
    [ ! -e "$scratch/none" ] || fail "bf16 $*: left a folder"
}
refused "the kernels that --kernels=reference leaves out" --kernels=reference
if ! grep -qa 'onednn:conv2d_bias' "$TRAINER"; then
    refused "oneDNN, which this program was built without"
else
    export ONEDNN_MAX_CPU_ISA=AVX512_CORE # as on a processor without it
    refused "a processor with AVX512_BF16"
    unset ONEDNN_MAX_CPU_ISA
    if grep -q avx512_bf16 /proc/cpuinfo; then
        # shellcheck disable=SC2086
        train narrow $small --model=lenet --optimizer=adam:rate=0.003 --epochs=2 --precision=bf16 --explain
        [ "$(course narrow)" = falls ] || fail "bf16: the loss does not fall: $(course narrow)"
        [ "$(losses narrow)" != "$(losses lenet)" ] || fail "bf16: the losses of fp32"
        said narrow \
            '^conv2d \+ bias \+ relu conv2/kernel .* onednn:[a-z_0-9]+:[a-z0-9_]*(bf16|amx), '\
'reordered kernel +bf16 '
        said narrow '^matmul \+ bias dense3/kernel .* onednn:[a-z_0-9]+:[a-z0-9_]*(bf16|amx), .* float32 '
        [ "$(reorders narrow)" -eq 2 ] || fail "bf16: a weight is reordered $(reorders narrow) times a step"
        said narrow '^maxpool .* reference:maxpool +bf16 '
    fi
fi

"$TRAINER" bench --explain >"$scratch/out" 2>"$scratch/err"
[ $? -eq 2 ] && grep -q -- '--explain' "$scratch/err" || fail "bench --explain: $(cat "$scratch/err")"

[ $failures -eq 0 ]
