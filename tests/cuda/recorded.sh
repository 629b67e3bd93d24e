#!/bin/bash
# Whether a step is recorded, as how much, and why not: the first lines, --explain and summary.json say it;
# the weights are the same either way. And which algorithms failed when they were measured. Skips itself where
# no GPU is played.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no GPU here that counts"; exit 77; }
cd "$scratch" || exit 1
run='--dataset=digits:take=160 --model=mlp:hidden=20 --batch=16 --epochs=2 --deterministic --replace'

trained() { # folder, the line that is said, nodes in summary.json, why not there, options...
    local folder=$1 line=$2 nodes=$3 why=$4
    shift 4
    # shellcheck disable=SC2086
    "$TRAINER" $run --out="$folder" "$@" >out 2>err || fail "$*: exit code $?: $(cat err)"
    [ "$(grep -c 'recorded: ' out)" -eq $((${#line} > 0)) ] && grep -q -- "^$line" out ||
        fail "$*: expected '$line': $(grep 'recorded: ' out)"
    python3 - "$folder" "$nodes" "$why" \
        <<'EOF' || fail "$*: $(grep -A1 recorded_nodes "$folder/summary.json")"
import json, sys
w = json.load(open(f"{sys.argv[1]}/summary.json"))["per_worker"]
sys.exit(not all(str(one["recorded_nodes"]) == sys.argv[2] and one["not_recorded"].startswith(sys.argv[3]) and
                 bool(one["not_recorded"]) == bool(sys.argv[3]) for one in w))
EOF
}

nodes=$(sed -n 's/^graph mlp fp32 \([0-9]*\) .*/\1/p' "$tests/cuda/budgets.txt")
trained whole "recorded: a step is one graph of $nodes nodes$" "$nodes" '' --devices=gpu:0
trained two "recorded: a step is one graph of $nodes nodes$" "$nodes" '' --devices=gpu:0,gpu:1
trained cpu '' None '' --devices=cpu:0
# The first call that was refused: of a step, and of a run, which builds no batch.
invalid='gpu:0: cudaMemcpyAsync(out, in, bytes, ' run_invalid='gpu:0: cublasLtMatmul: the function failed'
STANDIN_CAPTURE=0 trained pieces "not recorded: $invalid" 0 "$invalid" --devices=gpu:0
same_weights 'recorded or not' whole pieces
trained soft 'not recorded: the CPU computes a part of it$' 0 'the CPU computes a part of it' \
    --devices=gpu:0 --without-kernel=gpu:sigmoid,gpu:sigmoid_grad

# A step of a whole matrix is one launch, too, in all of 20 steps but the first: of the one that mlp has
# beside its head.
muon=(--optimizer=muon:rate=0.02 --devices=gpu:0)
launches() { sed -n 's/^stand-in: .* launches \([0-9]*\) .*/\1/p' err; }
STANDIN_COUNTS=1 trained other "recorded: a step is one graph of $nodes nodes$" "$nodes" '' --devices=gpu:0
plain=$(launches)
STANDIN_COUNTS=1 trained muon "recorded: a step is one graph of $nodes nodes$" "$nodes" '' "${muon[@]}"
[ $(($(launches) - plain)) -eq 19 ] || fail "--optimizer=muon: $(launches) launches of graphs, $plain without"
STANDIN_CAPTURE=0 trained muon-pieces "not recorded: $invalid" 0 "$invalid" "${muon[@]}"
same_weights 'matrices, recorded or not' muon muon-pieces

# shellcheck disable=SC2086
"$TRAINER" $run --out=explained --devices=gpu:0 --explain >out 2>err ||
    fail "--explain: exit code $?: $(cat err)"
# Without the batch that a step builds.
grep -q "^recorded: a run is one graph of $((nodes - 2)) nodes$" out ||
    fail "--explain does not say that it is recorded: $(grep recorded: out)"
# shellcheck disable=SC2086
STANDIN_CAPTURE=0 "$TRAINER" $run --out=explained --devices=gpu:0 --explain >out 2>err ||
    fail "--explain: exit code $?: $(cat err)"
grep -q "^not recorded: $run_invalid" out ||
    fail "--explain does not say why it is not recorded: $(tail -n 5 out)"
# shellcheck disable=SC2086
"$TRAINER" ${run/ --deterministic/} --out=explained --devices=gpu:0 --explain >out 2>err ||
    fail "--explain: exit code $?: $(cat err)"
# In as many lines as it takes, and words are folded there.
tr -s ' \n' ' ' <out | grep -q 'algorithm [0-9] of 3, 1 failed (code 15),' ||
    fail "--explain does not say which algorithms failed: $(cat out)"
[ $failures -eq 0 ]
