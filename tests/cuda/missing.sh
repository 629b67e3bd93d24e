#!/bin/bash
# What a user sees of a library that the GPU's backend loads when it first needs it, and that is missing,
# broken or too old: one line and exit code 4; and whatever needs it not, goes on without. A copy of the
# stand-in's program does not find the stand-in's libraries beside it, but in a folder of the build that is
# empty but for what is put there here; so this is a test of the stand-in's build alone.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
libraries=${BUILD:-build}/tests/standin
[ -f "$libraries/libcudnn.so.0" ] || { echo "no stand-in here"; exit 77; }
loaded=$(cd "${BUILD:-build}" && pwd)/tests/loaded
rm -rf "$loaded" && mkdir "$loaded" || exit 1
trap 'rm -rf "$scratch" "$loaded"' EXIT

run() { # options...
    "$scratch/trainer" --quiet --dataset=digits:take=64 --epochs=1 --out="$scratch/run" --replace "$@" \
        >"$scratch/out" 2>"$scratch/err"
}
good() { run "$@" || fail "$*: exit code $?: $(cat "$scratch/err")"; }
bad() { # the one line, as a pattern; options...
    local words=$1 code
    shift
    run "$@"
    code=$?
    [ $code -eq 4 ] || fail "$*: exit code $code, expected 4"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "$*: not one line: $(cat "$scratch/err")"
    grep -Eq "^trainer: $words\$" "$scratch/err" || fail "$*: expected '$words', found: $(cat "$scratch/err")"
}

cp "$TRAINER" "$scratch/trainer" || exit 1
absent='cannot open shared object file: No such file or directory'
blas='expected cuBLAS of CUDA 0 \(in the CUDA toolkit, or Python.s nvidia-cublas\)'
dnn='expected cuDNN 0 for CUDA 0 \(package libcudnn0-cuda-0, or Python.s nvidia-cudnn-cu0\)'

# Without any: all but training on a GPU.
"$scratch/trainer" devices | grep -q '^gpu:1 ' || fail "devices: $("$scratch/trainer" devices)"
good --model=cnn --devices=cpu:0
bad "gpu:0: libcublasLt.so.0: $absent; $blas" --model=mlp --devices=gpu:0
bad "gpu:[01]: libcublasLt.so.0: $absent; $blas" --model=mlp --devices=gpu:0,gpu:1 --strategy=async-lockfree
good --model=mlp --devices=gpu:0 --without-kernel=gpu:matmul,gpu:dense

# With the first: all but convolutions.
cp "$libraries/libcublasLt.so.0" "$loaded" || exit 1
good --model=mlp --devices=gpu:0,gpu:1
bad "gpu:1: libcudnn.so.0: $absent; $dnn" --model=cnn --devices=gpu:1

# Without the one that makes means, by copies: it is said, and it is an error only for who asked for it.
nccl="gpu:0: libnccl.so.0: $absent"
"$scratch/trainer" --quiet --explain --dataset=digits:take=64 --epochs=1 --out="$scratch/run" \
    --replace --devices=gpu:0,gpu:1 >"$scratch/out" 2>"$scratch/err" ||
    fail "no NCCL: exit code $?: $(cat "$scratch/err")"
grep -q "^mean of a round: copies, in roster order ($nccl" "$scratch/out" ||
    fail "no NCCL: it is not said: $(cat "$scratch/out")"
bad "$nccl; expected NCCL 0 for CUDA 0 \(package libnccl0, or Python.s nvidia-nccl-cu0\)" \
    --devices=gpu:0,gpu:1 --links=collective
good --devices=gpu:0,gpu:1 --links=copies
good --devices=gpu:0,gpu:1 --deterministic
cp "$libraries/libnccl.so.0" "$loaded" || exit 1
good --devices=gpu:0,gpu:1 --links=collective

# One that is no library says so, though it is not the first place that is looked in; one that is older than
# the program says what it lacks.
echo "not a library" >"$loaded/libcudnn.so.0"
bad "gpu:0: $loaded/libcudnn.so.0: (file too short|invalid ELF header); $dnn" --model=cnn --devices=gpu:0
echo 'int cudnnCreate(void) { return 0; }' >"$scratch/old.c"
if "${CC:-cc}" -shared -fPIC -o "$loaded/libcudnn.so.0" "$scratch/old.c"; then
    bad "gpu:0: $loaded/libcudnn.so.0: undefined symbol: cudnn[A-Za-z]*; $dnn" --model=cnn --devices=gpu:0
else
    fail "no C compiler"
fi
rm "$loaded/libcudnn.so.0"
mkdir "$scratch/elsewhere" && cp "$libraries/libcudnn.so.0" "$scratch/elsewhere" || exit 1
LD_LIBRARY_PATH=$scratch/elsewhere good --model=cnn --devices=gpu:0,gpu:1

[ $failures -eq 0 ]
