#!/bin/bash
# Checkpoints that an earlier program wrote can be gone on with. Those in tests/checkpoints were written in
# the middle of an epoch by the program of commit ba56849, which then went on with each in the ways below; the
# weights it came to are kept beside it. This program must come to the same.
#
# To the same bits it does on the machine and with the compiler that wrote them. On others it may be a few
# units in the last place off: the loss takes exponentials, which glibc computes for whole vectors, up to 4
# units off, by the width that the program is compiled for. After some fifty steps that made 2.4e-7 (gcc and
# clang, AVX-512 and SSE2), where weights reach 1; ten times as much is let through. A moment that is lost, a
# batch that is another, or a rate that is a step off make more than 1e-4. tests/equal compares bits.
#
# KEEP=1 writes down what this program comes to, as what is expected from now on.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

cat >compare.py <<'PYTHON'
import array, sys
from tensors import tensors

def floats(path):
    return {name: (shape, array.array("f", values)) for name, (shape, values) in tensors(path).items()}

expected, found = map(floats, sys.argv[1:])
if {n: t[0] for n, t in expected.items()} != {n: t[0] for n, t in found.items()}:
    sys.exit("other tensors")
apart, name = max((max(abs(a - b) for a, b in zip(expected[n][1], found[n][1])), n) for n in expected)
if not apart <= 2.4e-6:
    sys.exit(f"{name} is {apart:.2g} from what the earlier program came to")
print("to the same bits" if apart == 0 else f"{apart:.1e} apart")
PYTHON

goes_on() { # checkpoint, way, examples at the end, options...
    local checkpoint=$tests/checkpoints/$1 expected=$tests/checkpoints/$1/$2.safetensors name="$1, $2" \
        examples=$3 found
    shift 3
    rm -rf run
    timeout 60 "$TRAINER" --quiet --resume="$checkpoint" --replace --out=run --kernels=reference \
        --threads=1 "$@" >out 2>err ||
        { fail "$name: exit code $?: $(cat err)"; return; }
    found=$(sed -n 's/^ *"examples": \([0-9]*\),.*/\1/p' run/summary.json | head -n 1)
    [ "$found" = "$examples" ] || fail "$name: $found examples at the end, expected $examples"
    [ -z "${KEEP:-}" ] || cp run/model.safetensors "$expected"
    found=$(python3 compare.py "$expected" run/model.safetensors 2>&1) || { fail "$name: $found"; return; }
    echo "$name: $found"
}

tests_as() { # checkpoint, accuracy
    local found
    found=$(timeout 60 "$TRAINER" evaluate --checkpoint="$tests/checkpoints/$1" 2>&1)
    grep -qx "Test-Accuracy: $2" <<<"$found" || fail "$1: evaluate says '$found', expected an accuracy of $2"
}

# momentum, moving average, three shards; written under sync by two workers
tests_as iris-momentum 0.4667
goes_on iris-momentum as-it-was 1440 --devices=cpu:0,cpu:1
goes_on iris-momentum elsewhere 1440 --devices=cpu:0,cpu:1,cpu:2 --strategy=local-sgd:every=3 --shards=2
# Adam, clipping, decay, a half of the data for each of two workers; written under local-sgd
tests_as digits-adam 0.3222
goes_on digits-adam as-it-was 2560 --devices=cpu:0,cpu:1
goes_on digits-adam elsewhere 2592 --devices=cpu:0,cpu:1,cpu:2 --strategy=sync --shards=3
# nesterov, a rate that follows a cosine, moving average, all of the data for each of two workers; written
# under async-apply
tests_as softmax-nesterov 0.8333
goes_on softmax-nesterov alone 8650 --devices=cpu:0
goes_on softmax-nesterov elsewhere 17300 --devices=cpu:0,cpu:1 --strategy=sync --shard-by=round-robin \
    --shards=2
# Two workers under async-apply never come to the same weights; but each takes its own batches up where it
# left them, at 29 and 16 of 173.
timeout 60 "$TRAINER" --quiet --resume="$tests/checkpoints/softmax-nesterov" --replace --out=run \
    --devices=cpu:0,cpu:1 --threads=1 >out 2>err ||
    fail "softmax-nesterov, as it was: exit code $?: $(cat err)"
found=$(sed -n 's/^      "steps": \([0-9]*\),/\1/p' run/summary.json | tr '\n' ' ')
[ "$found" = "144 157 " ] ||
    fail "softmax-nesterov, as it was: the workers took $found steps, expected 144 157"

[ $failures -eq 0 ]
