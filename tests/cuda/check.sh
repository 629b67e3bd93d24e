#!/bin/bash
# gpu-correct, gpu-speed and gpu-accuracy from end to end, in tiny sizes, so that a machine with a GPU that comes along does not find
# them broken: on GPUs that the stand-in plays, with a report of their own. Elsewhere only that they say that there is no GPU.
set -u
: "${TRAINER:?expected the path of the program}"
: "${BUILD:?expected the build folder}"
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
scripts="tests/gpu_correct.py bench/gpu_speed.py bench/gpu_accuracy.py"
export PYTHONDONTWRITEBYTECODE=1
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

# Without a GPU: one line, exit code 4, nothing written.
for script in $scripts; do
    CUDA_VISIBLE_DEVICES=-1 STANDIN_GPUS=0 "$root/$script" --trainer="$TRAINER" --report="$scratch/none" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 4 ] || fail "$script without a GPU: exit code $code, expected 4"
    [ "$(cat "$scratch/out" "$scratch/err" | wc -l)" -eq 1 ] && grep -q 'no GPU here' "$scratch/err" || fail "$script without a GPU: $(cat "$scratch/err")"
    [ ! -e "$scratch/none" ] || fail "$script without a GPU: wrote a report"
done
for program in kernels measure matmul convolution gather vectors homes collective; do
    program=$BUILD/tests/cuda/$program
    [ -x "$program" ] || continue # a build without GPUs
    CUDA_VISIBLE_DEVICES=-1 STANDIN_GPUS=0 "$program" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 77 ] && [ "$(tail -n 1 "$scratch/out")" = "no GPU here" ] || fail "$program without a GPU: exit code $code: $(cat "$scratch/err")"
done
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { [ $failures -eq 0 ] && echo "the rest is for the stand-in" && exit 77; exit 1; }

# The stand-in's figures do not get into the real report.
"$root/tests/gpu_correct.py" --trainer="$TRAINER" --quick >"$scratch/out" 2>"$scratch/err"
code=$?
[ $code -eq 2 ] && grep -q 'expected --report' "$scratch/err" || fail "no --report: exit code $code: $(cat "$scratch/err")"

peer=$scratch/peer.py # of PyTorch's speed nothing is wanted here
printf 'import json\nprint(json.dumps(dict(examples_per_s=1000)))\n' >"$peer"
mkdir "$scratch/torch"
printf '__version__ = "0"\nclass cuda:\n    is_available = staticmethod(lambda: False)\n' >"$scratch/torch/torch.py"

run() { # script, parts of the report, options...
    local script=$1 parts=$2 code before=0
    shift 2
    [ -e "$scratch/report" ] && before=$(grep -c '^### ' "$scratch/report")
    PYTHONPATH=$scratch/torch "$root/$script" --trainer="$TRAINER" --quick --report="$scratch/report" "$@" >"$scratch/out" 2>&1
    code=$?
    [ $code -eq 0 ] || fail "$script: exit code $code: $(tail -n 20 "$scratch/out")"
    [ "$(($(grep -c '^### ' "$scratch/report") - before))" -eq "$parts" ] || fail "$script: expected $parts parts: $(cat "$scratch/report")"
}
run tests/gpu_correct.py 7
run bench/gpu_speed.py 3 --peer="$peer"
run bench/gpu_accuracy.py 3
[ "$(grep -cE '^\| (cuDNN|NCCL|version|command) \| [^ ]' "$scratch/report")" -eq 12 ] || fail "not every report says what it is of: $(cat "$scratch/report")"
[ "$(grep -c '^## .*: passed$' "$scratch/report")" -eq 3 ] || fail "not all passed: $(cat "$scratch/report")"
for word in '| GPU | stand-in' 'gpu:0,gpu:0' '| mlp | digits | 32 | bf16' '| gpu:0,gpu:1 | collective | NCCL' '| pull + push |' '| async-lockfree' 'adds=atomic | gpu:0 x1, gpu:0 x1 |'; do
    grep -qF -- "$word" "$scratch/report" || fail "no '$word' in the report"
done

# What is not here is told, and what can be done without is done: PyTorch, data sets.
"$root/bench/gpu_speed.py" --trainer="$TRAINER" --quick --report="$scratch/less" --python="$scratch/none" >"$scratch/out" 2>&1
code=$?
[ $code -eq 1 ] && [ "$(grep -c '^### ' "$scratch/less")" -eq 3 ] && grep -q "^\* nothing is compared with PyTorch: no PyTorch in $scratch/none" "$scratch/less" ||
    fail "without PyTorch: exit code $code: $(cat "$scratch/out")"
HOME=$scratch "$root/bench/gpu_accuracy.py" --trainer="$TRAINER" --report="$scratch/less" --data="$scratch/none" >"$scratch/out" 2>&1
code=$?
[ $code -eq 0 ] && [ "$(grep -c '^gpu-accuracy: left out: .*: \(mnist\|cifar10\)/ is not in .*/none (./trainer fetch' "$scratch/out")" -eq 2 ] ||
    fail "without data sets: exit code $code: $(cat "$scratch/out")"
grep -q '^## gpu-accuracy, .*: passed, as far as it went$' "$scratch/less" || fail "without data sets: $(cat "$scratch/less")"
# Who takes too long is ended with all that it has started, which would go on using the GPU beside what is measured next.
(cd "$root/bench" && python3 -c '
import sys
from gpu_report import Check
marker, sys.argv = sys.argv[1], ["test"]
print(*Check("test", "").run(["sh", "-c", f"(sleep 4; touch {marker}) & sleep 30"], 0.5))
' "$scratch/marker") >"$scratch/out" 2>&1
sleep 3.5
grep -q '^124  took more than 1 s$' "$scratch/out" && [ ! -e "$scratch/marker" ] || fail "a command that takes too long: $(cat "$scratch/out")"
# The recipe is the one that is documented; its batch is that of both workers there.
recipe=$(sed -n '/^## AlexNet on CIFAR-10$/,/^```$/p' "$root/docs/recipes.md")
for option in $(cd "$root/bench" && python3 -c 'import gpu_accuracy; print(gpu_accuracy.RECIPE)'); do
    case $option in --batch=*) option=--batch=$((${option#*=} / 2)) ;; esac
    case $recipe in *" $option "*) ;; *) fail "$option is not in docs/recipes.md" ;; esac
done

# What goes wrong gets into the report and the exit code: a program whose GPU starts from other weights, each time others where the
# same bits are promised; and calls that fail.
mkdir "$scratch/wrong"
ln -s "$BUILD/flags" "$BUILD/tests" "$scratch/wrong"
cat >"$scratch/wrong/trainer" <<WRONG
#!/bin/bash
case " \$* " in
*" --deterministic "*) set -- "\$@" --seed=\$\$ ;;
*" --devices=gpu:0 "*) set -- "\$@" --seed=7 ;;
esac
exec "$TRAINER" "\$@"
WRONG
chmod +x "$scratch/wrong/trainer"
"$root/tests/gpu_correct.py" --trainer="$scratch/wrong/trainer" --quick --report="$scratch/wrong/report" >"$scratch/out" 2>&1
code=$?
[ $code -eq 1 ] || fail "another program: exit code $code"
for words in 'first gradients of mlp on digits in fp32' 'first gradients of mlp on digits in bf16' 'left other bits' 'training curves'; do
    grep -q "^\* .*$words" "$scratch/wrong/report" || fail "another program: no '$words': $(cat "$scratch/wrong/report")"
done
STANDIN_FAIL=40 "$root/tests/gpu_correct.py" --trainer="$TRAINER" --quick --report="$scratch/bad" >"$scratch/out" 2>&1
code=$?
[ $code -eq 1 ] && grep -q 'NOT passed' "$scratch/bad" && grep -q '^### What is wrong' "$scratch/bad" || fail "calls fail: exit code $code: $(tail -n 3 "$scratch/out")"
[ $failures -eq 0 ]
