#!/bin/bash
# Every measuring program runs to its end, shortly, also under the sanitizers: what is measured is not looked
# at here. The one that measures GPUs does where the stand-in plays one.
set -u
ran=''
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
runs() { # program, arguments...
    local program=$BUILD/bench/$1
    ran+=" $1"
    shift
    "$program" "$@" >"$scratch/out" 2>"$scratch/err" ||
        fail "$program $*: exit code $?: $(tail -n 5 "$scratch/err")"
    [ -s "$scratch/out" ] || fail "$program $*: printed nothing"
}
runs step mlp 64 4 fp32
runs input 4
runs exchange 2 1000
runs wire 1
runs predict 1 softmax
gpus=0
if [ -x "$BUILD/bench/gpu_exchange" ] && STANDIN_GPUS=1 "$TRAINER" devices | grep -q '^gpu:0 .*stand-in'; then
    gpus=1
    export STANDIN_GPUS=1
    runs gpu_exchange 2 1000 5000
    for wait in spin yield block; do runs gpu_latency $wait 10; done
    runs gpu_operations mlp 64 4 fp32 2
    cp "$scratch/out" "$scratch/mlp"
    runs gpu_operations cnn 8x8x1 2 bf16 2
    cat "$scratch/mlp" >>"$scratch/out"
    for what in '"algorithm", .*"how": "replayed", "apart": .*"status": "ok"' \
        '"algorithm", .*"status": "declined"' '"taken"' '"operation", .*conv2d_grad_kernel' '"step", ' \
        '"update", .*nesterov'; do
        grep -q "$what" "$scratch/out" || fail "gpu_operations: no line with $what"
    done
    grep -vE '^\{"what": "[a-z]+", .*, "status": "[^"]+"\}$' "$scratch/out" &&
        fail "gpu_operations: no line of JSON"
    # A call that fails is told with the line it belongs to, and the others go on.
    STANDIN_FAIL=60 "$BUILD/bench/gpu_latency" spin 10 >"$scratch/out" 2>&1
    code=$?
    [ $code -eq 1 ] && [ "$(grep -c '"status": "cuda' "$scratch/out")" -eq 1 ] &&
        grep -q futex "$scratch/out" ||
        fail "gpu_latency with a call that fails: exit code $code: $(cat "$scratch/out")"
    STANDIN_FAIL=60 "$BUILD/bench/gpu_operations" mlp 64 4 fp32 2 >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 1 ] && [ "$(grep -c '"status": "gpu:0: ' "$scratch/out")" -eq 1 ] &&
        grep -q nesterov "$scratch/out" ||
        fail "gpu_operations with a call that fails: exit code $code: $(cat "$scratch/out")"
fi
# Bytes on the wire are as the formula says; signs of life may be among them, and nothing else.
(cd "$root/bench" && python3 -c '
from cluster import as_formula
assert as_formula((1000, 2000), (1000, 2000)) and as_formula((1000, 2128), (1000, 2000))
assert not as_formula((1000, 2001), (1000, 2000)) and not as_formula((936, 2000), (1000, 2000))
assert not as_formula((1000, 9000), (1000, 2000))') >"$scratch/out" 2>&1 ||
    fail "cluster.py, bytes on the wire: $(cat "$scratch/out")"
for source in "$root"/bench/*.c "$root"/bench/*.cu; do
    name=$(basename "${source%.*}")
    [[ $name == gpu_* && $gpus -eq 0 ]] || [[ " $ran " == *" $name "* ]] ||
        fail "bench/$name.c is not run here"
done

# No stage of the checks leaves this test out.
! grep -n 'project/benches' "$root/.ci/run" "$root/tests/verify" "$tests/stages.sh" ||
    fail "a stage runs without the measuring programs"

[ $failures -eq 0 ]
