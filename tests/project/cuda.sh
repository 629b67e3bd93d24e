#!/bin/bash
# What a build says of GPUs. One without CUDA has no trace of it but the words that say what an option needs
# and what other programs call it; one with CUDA, where there is no GPU, says why, trains on the CPU as ever,
# and ends with exit code 4 when a GPU is asked for.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
export CUDA_VISIBLE_DEVICES=-1 STANDIN_GPUS=0 # none, also where there are some

bad() { # the one line, as a pattern
    local code
    "$TRAINER" "--devices=$2" "--out=$scratch/run" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 4 ] || fail "--devices=$2: exit code $code, expected 4"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "--devices=$2: more than a line: $(cat "$scratch/err")"
    grep -Eq "$1" "$scratch/err" || fail "--devices=$2: expected $1, found: $(cat "$scratch/err")"
}

"$TRAINER" devices >"$scratch/devices" || fail "trainer devices: exit code $?"
grep -q '^cpu:0 ' "$scratch/devices" || fail "no cpu:0 in: $(cat "$scratch/devices")"
if grep -q -e -DTRAINER_CUDA=1 "$BUILD/flags"; then
    why='(driver not found|no GPU found)'
    grep -Eq "^gpu: none \($why\)\$" "$scratch/devices" || fail "trainer devices: $(cat "$scratch/devices")"
    ldd "$TRAINER" | grep libcuda.so &&
        fail "the driver's library is linked, so the program does not start without"
    ldd "$TRAINER" | grep -iE 'lib(cublas|cudnn|nccl)' &&
        fail "a library is linked that is to be loaded when it is first used"
    LD_DEBUG=files LD_DEBUG_OUTPUT=$scratch/files "$TRAINER" devices >"$scratch/out" ||
        fail "trainer devices: exit code $?"
    cat "$scratch"/files.* | grep -iE 'lib(cublas|cudnn|nccl)' && fail "a library is loaded without need"
    bad "gpu:0: $why \(devices: cpu:0" gpu:0
    bad "gpu:\*: $why \(devices: cpu:0" 'cpu:0,gpu:*'
else
    nm "$TRAINER" | grep -iE 'cuda|cublas|cudnn|nccl| gpu_' && fail "symbols of CUDA in a build without"
    ldd "$TRAINER" | grep -iE 'lib(cuda|cublas|cudnn|nccl)' && fail "libraries of CUDA in a build without"
    grep -aoiE '[ -~]*(cuda|cublas|cudnn|nccl)[ -~]*' "$TRAINER" |
        grep -vE '^CUDA$|^UCS_MEMORY_TYPE_CUDA|needs a build with CUDA|^(gpu\|)?(no-)?cuda(\||$)' &&
        fail "CUDA is named in a build without"
    {
        "$TRAINER" --help=all && "$TRAINER" list && "$TRAINER" manual && "$TRAINER" completions bash
    } >"$scratch/help" || fail "no help"
    grep -i cuda "$scratch/help" && fail "CUDA in the help of a build without"
    grep -q gpu "$scratch/devices" && fail "GPUs in a build without: $(cat "$scratch/devices")"
    bad 'gpu:0: needs a build with CUDA \(devices: cpu:0' gpu:0
    for option in --homes=gpu --homes --links=copies --deterministic --precision=tf32 \
        --without-kernel=gpu:lrn --no-soft-placement; do
        for command in train bench; do
            "$TRAINER" $command "$option" "--out=$scratch/run" >"$scratch/out" 2>"$scratch/err"
            [ $? -eq 2 ] || fail "$command $option: expected exit code 2: $(cat "$scratch/err")"
            named=$option
            [ "$option" = --precision=tf32 ] || named=${option%%=*}
            [ "$(cat "$scratch/err")" = "trainer: $named: needs a build with CUDA" ] ||
                fail "$command $option: found: $(cat "$scratch/err")"
        done
    done
    "$TRAINER" --precision=tf23 >"$scratch/out" 2>"$scratch/err"
    [ "$(cat "$scratch/err")" = "trainer: --precision=tf23: expected one of auto|fp32|bf16" ] ||
        fail "--precision=tf23: $(cat "$scratch/err")"
fi
"$TRAINER" --dataset=iris --model=softmax --epochs=1 "--out=$scratch/run" >"$scratch/out" 2>&1 ||
    fail "the CPU does not train: $(cat "$scratch/out")"

[ $failures -eq 0 ]
