#!/bin/bash
# gpu-facts from end to end, in tiny sizes, so that a machine with a GPU that comes along does not find it
# broken: on GPUs that the stand-in plays. Each of its stages crashes once, while those before and after it go
# on. Elsewhere only that it says that there is no GPU.
set -u
# shellcheck source=tests/gpu_facts.sh
. "$(dirname "$0")/../gpu_facts.sh"

# --- without a GPU: what the machine is, and that it has none ---
mkdir "$scratch/nothing"
printf '#!/bin/sh\nexit 9\n' >"$scratch/nothing/nvidia-smi" # the real one does not ask what is visible
chmod +x "$scratch/nothing/nvidia-smi"
CUDA_VISIBLE_DEVICES=-1 STANDIN_GPUS=0 PATH=$scratch/nothing:$PATH "$facts" --build="$BUILD" \
    --report="$scratch/none" --python="$scratch/none" >"$scratch/out" 2>&1
code=$?
[ $code -eq 4 ] && grep -q 'no GPU here' "$scratch/out" &&
    grep -q '"name": "CPU"' "$scratch/none/facts.jsonl" ||
    fail "without a GPU: exit code $code: $(cat "$scratch/out")"
[ "$(grep -c '^gpu-facts: .*, at ' "$scratch/out")" -eq 1 ] ||
    fail "without a GPU: more than one stage: $(cat "$scratch/out")"
for program in kernels measure matmul convolution gather vectors homes collective; do
    program=$BUILD/tests/cuda/$program
    [ -x "$program" ] || continue # a build without GPUs
    CUDA_VISIBLE_DEVICES=-1 STANDIN_GPUS=0 "$program" >"$scratch/out" 2>"$scratch/err"
    code=$?
    [ $code -eq 77 ] && [ "$(tail -n 1 "$scratch/out")" = "no GPU here" ] ||
        fail "$program without a GPU: exit code $code: $(cat "$scratch/err")"
done
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' ||
    { [ $failures -eq 0 ] && echo "the rest is for the stand-in" && exit 77; exit 1; }

# --- all of it, with time for the build of what is not built yet ---
usual=$limit limit=250
run all
limit=$usual
[ $code -eq 0 ] || fail "exit code $code: $(tail -n 50 "$scratch/all.out")"
for stage in "${stages[@]}"; do
    [ "$(verdict_of all "$stage")" = ok ] ||
        fail "$stage: '$(verdict_of all "$stage")': $(cat "$scratch/all/summary.txt")"
done
for words in 'stand-in for a GPU' '| mlp | fp32 | .* | 10.5 ' '| 1000 | yes | spin |' \
    '| futex: from wake to awake |' '| pull + push |' '| cnn | bf16 | conv2d_bias ' \
    '| unfold + cublaslt:.* | taken |' '| nesterov | mlp |' '| mlp | digits | 32 | tf32 |' \
    '| the same bits twice: mlp .* | ok |' '| cuda/vectors | ok |' '--links=collective | NCCL ' \
    '| async-lockfree |' '| gemm<float, 8> | 2 | 1002.5 |' '| racecheck | alexnet | gpu:0 | 0 errors |' \
    '| mlp | 1 | .*--dataset=digits'; do
    grep -q -e "$words" "$scratch/all/report.md" || fail "no '$words' in the report"
done
python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$scratch/all/facts.jsonl" ||
    fail "facts.jsonl is no JSON"
# The page can be made from the folder anywhere, and again.
"$root/bench/gpu_report.py" "$scratch/all" --page "$scratch/page" >"$scratch/out" ||
    fail "gpu_report.py: $(cat "$scratch/out")"
cmp -s "$scratch/page" "$scratch/all/report.md" && cmp -s "$scratch/out" "$scratch/all/summary.txt" ||
    fail "gpu_report.py makes another page, or summary"
"$root/bench/gpu_report.py" "$scratch/nothing" >"$scratch/out" 2>&1 && fail "gpu_report.py of no report"
[ "$(wc -l <"$scratch/out")" -eq 1 ] || fail "gpu_report.py of no report: $(cat "$scratch/out")"

# --- stages that crash ---
fails crash 'SIGSEGV\|not run' environment latencies tests workers sanitizer
fails crash 'SIGSEGV\|not run' build operations speed profile accuracy
# Of several runs each stage is that of the last one that came to it: one of some stages mends those, and
# leaves the others.
run some --stages=latencies,operations,profile
[ $code -eq 0 ] || fail "--stages: exit code $code: $(tail -n 30 "$scratch/some.out")"
[ "$(grep -c '^gpu-facts: [a-z]*, at ' "$scratch/some.out")" -eq 5 ] ||
    fail "--stages: $(grep '^gpu-facts: ' "$scratch/some.out")"
mkdir "$scratch/two"
"$root/bench/gpu_report.py" "$scratch/crash-build" "$scratch/some" >"$scratch/two/summary.txt" ||
    fail "gpu_report.py of two runs"
for stage in environment build latencies operations tests profile; do
    [ "$(verdict_of two $stage)" = ok ] || fail "two runs: $stage: $(verdict_of two $stage)"
done
for stage in speed accuracy; do
    [ "$(verdict_of two $stage)" = wrong ] || fail "two runs: $stage: $(verdict_of two $stage)"
done

# --- ended from outside: what was found is kept, and nothing is left that uses the GPU ---
breaks hang operations
for signal in TERM KILL; do
    PATH=$scratch/tools:$PATH "$facts" --cuda=standin --build="$BUILD" --report="$scratch/$signal" \
        --seconds=250 --python="$scratch/tools/python" --through="$scratch/through" >"$scratch/out" 2>&1 &
    child=$!
    for ((i = 0; i < 600; i++)); do
        grep -q "operations, at" "$scratch/out" && pgrep -f "touch '$scratch/marker'" >/dev/null && break
        sleep 0.1
    done
    kill -$signal $child
    wait $child
    code=$?
    grep -q '"what": "graph"' "$scratch/$signal/facts.jsonl" && grep -q '^latencies  *ok' \
        "$scratch/$signal/summary.txt" && grep -q '"what": "futex' "$scratch/$signal/log.txt" ||
        fail "SIG$signal: not all is kept: $(ls -la "$scratch/$signal")"
    if [ $signal = KILL ]; then # what is left is ours to end
        # shellcheck disable=SC2046 # several
        kill -KILL -- $(pgrep -f "touch '$scratch/marker'") "-$(tail -n 1 "$scratch/leaders")"
        continue
    fi
    [ $code -eq 1 ] && grep -q 'operations: ended by SIGTERM' "$scratch/TERM/summary.txt" ||
        fail "SIGTERM: exit code $code: $(cat "$scratch/out")"
    pgrep -f "touch '$scratch/marker'" && fail "SIGTERM: what was running still is"
done

# --- what is wrong is told: a GPU that starts from other weights, each time others where the same bits are
# promised; calls that fail ---
cat >"$scratch/through" <<'END'
#!/bin/bash
stage=$1
shift
case "$stage $* " in
tests*" --deterministic "*) exec "$@" --seed=$$ ;;
tests*--devices=gpu:0\ *) exec "$@" --seed=7 ;;
tests*gpu_parity.py*" gpu:0 "*) exec "$@" --seed=7 ;;
esac
exec "$@"
END
run wrong --through="$scratch/through"
[ $code -eq 1 ] || fail "another program: exit code $code"
told=('first gradients of mlp on digits in fp32' 'left other bits' 'training curves')
# Else the CPU has none to compare with.
grep -q TRAINER_ONEDNN=0 "$BUILD/flags" || told+=('first gradients of mlp on digits in bf16')
for words in "${told[@]}"; do
    grep -q "^  tests: .*$words" "$scratch/wrong/summary.txt" ||
        fail "another program: no '$words': $(cat "$scratch/wrong/summary.txt")"
done
STANDIN_FAIL=40 run calls
[ $code -eq 1 ] && grep -q 'NOT as it should be' "$scratch/calls/summary.txt" ||
    fail "calls fail: exit code $code: $(tail -n 3 "$scratch/calls.out")"

# --- the page of the documentation is the one that is made ---
(
    cd "$root/bench" && python3 -c 'import gpu_report; print(gpu_report.INTRODUCTION, end="")'
) >"$scratch/introduction"
cmp -s "$scratch/introduction" \
    <(head -c "$(wc -c <"$scratch/introduction")" "$root/docs/measurements/gpu-report.md") ||
    fail "docs/measurements/gpu-report.md begins otherwise"

# --- the recipes are those that are documented; a batch is that of both workers there ---
(cd "$root/bench" && python3 -c 'import gpu_facts
for model, options in gpu_facts.RECIPES.items(): print(f"--model={model}", options)') >"$scratch/recipes"
while read -r options; do
    model=${options%% *}
    recipe=$(sed -n "/trainer ${model}/,/^\`\`\`/p" "$root/docs/recipes.md")
    for option in $options; do
        case $option in --batch=*) option=--batch=$((${option#*=} / 2)) ;; esac
        case $recipe in *" $option "*) ;; *) fail "$option is not in docs/recipes.md" ;; esac
    done
done <"$scratch/recipes"
[ "$(wc -l <"$scratch/recipes")" -ge 2 ] || fail "no recipes"
[ $failures -eq 0 ]
