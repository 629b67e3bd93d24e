#!/bin/bash
# What a checkpoint says of itself is looked at before anything is counted from it: settings pass the checks
# of their options, counts have to be counts, and what prediction needs has to be usable. Else one line with
# the file's name, and exit code 3. First the words, then every text with values that none or few of them can
# have: whatever a command makes of them, it ends as it should, and soon.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
: "${BUILD:?expected the build folder}"
stride=4
case $(<"$BUILD/flags") in *-fsanitize=* | *TRAINER_CUDA=1*) stride=17 ;; esac
cd "$scratch" || exit 1

cat >texts.py <<'PYTHON'
"""texts.py words TRAINER TABLE | texts.py sweep TRAINER STRIDE CHECKPOINT..."""
import json, struct, subprocess, sys, zlib

def change(source, texts, path="changed"):
    """A checkpoint like `source` with other texts (None: without one), and the right checksum."""
    data = open(source, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    for name, text in texts.items():
        header["__metadata__"].pop(name, None)
        if text is not None:
            header["__metadata__"][name] = text
    header["__metadata__"]["checksum"] = "00000000"
    packed = json.dumps(header, separators=(",", ":")).encode()
    packed += b" " * (-(8 + len(packed)) % 64)
    whole = struct.pack("<Q", len(packed)) + packed + data[8 + length:]
    at = whole.index(b'"checksum":"') + 12
    with open(path, "wb") as file:
        file.write(whole[:at] + b"%08x" % zlib.crc32(whole) + whole[at + 8:])
    return header["__metadata__"]

COMMANDS = {"resume": ["--quiet", "--resume=changed", "--out=next", "--replace", "--devices=cpu:0,cpu:1",
                       "--threads=1"],
            "evaluate": ["evaluate", "--checkpoint=changed"],
            "predict": ["predict", "--checkpoint=changed", "flower.csv"]}

def run(command):
    try:
        ran = subprocess.run([trainer] + COMMANDS[command], stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=20)
        return ran.returncode, ran.stderr.decode()
    except subprocess.TimeoutExpired:
        return "none after 20 s", ""

def check(what, code, said):
    global wrong, tried
    tried += 1
    lines = said.count("\n")
    if code not in (0, 3) or code == 3 and not (lines == 1 and said.startswith("trainer: changed: ")):
        wrong += 1
        print(f"{what}: exit code {code}, expected 3 and one line on the file: {said}")
        return False
    return True

trainer, wrong, tried = sys.argv[2], 0, 0
if sys.argv[1] == "words":
    for line in open(sys.argv[3]):
        command, source, name, value, words = line.rstrip("\n").split("|")
        change(f"{source}/checkpoint/state.safetensors", {name: value})
        code, said = run(command)
        if check(f"{command}, {name}={value}", code, said) and words not in said:
            wrong += 1
            print(f"{command}, {name}={value}: exit code {code}, said: {said} expected: {words}")
else:
    values = ["", "x", "nan", "-1", "-9223372036854775808", "9223372036854775807", "1e400", "1,-5", "1\t2"]
    for source in sys.argv[4:]:
        names = sorted(change(source, {}))
        for n, name in enumerate(names):
            for v, value in enumerate(values):
                if name == "checksum" or (n * len(values) + v) % int(sys.argv[3]):
                    continue
                change(source, {name: value})
                for command in ("resume", "evaluate" if v % 2 else "predict"):
                    check(f"{source}: {command}, {name}={value!r}", *run(command))
print(f"{tried} tried")
sys.exit(wrong > 0)
PYTHON

"$TRAINER" --quiet --dataset=iris:standardize=1 --model=mlp:hidden=5 --devices=cpu:0,cpu:1 --threads=1 \
    --epochs=2 --data-sharding=split --average=0.9 --out=run >out 2>err ||
    fail "trainer: exit code $?: $(cat err)"
printf '5.1,3.3,1.7,0.5\n' >flower.csv
# Of version 0.1: "sharding", by its number; there one stream for all (0), here one for each worker (1).
shared=$tests/checkpoints/iris-momentum old=$tests/checkpoints/digits-adam

# command|checkpoint|text|value|words in the one line
cat >table <<TABLE
resume|run|position|-1|position=-1: expected 0 or more batches
resume|run|position|-9223372036854775808|position=-9223372036854775808: expected 0 or more batches
resume|$shared|position|-9223372036854775808|position=-9223372036854775808: expected 0 or more batches
resume|$old|own_batches|-50,-50|own_batches=-50,-50: expected whole numbers
resume|run|position|9223372036854775807|position=9223372036854775807: expected at most 1000000000000 batches
resume|run|position|1000000000001|position=1000000000001: expected at most 1000000000000 batches
resume|run|position|12 |position=12 : expected a whole number
resume|run|position||position=: expected a whole number
resume|run|own_batches|-5,3|own_batches=-5,3: expected whole numbers
resume|run|own_batches|5,x|own_batches=5,x: expected whole numbers
resume|run|own_batches|5,|own_batches=5,: expected whole numbers
resume|run|own_batches|9223372036854775807,9223372036854775807|expected whole numbers
resume|run|own_batches|600000000000,600000000000|at most 1000000000000 together
resume|run|version|-1|version=-1: expected 0 or more updates
resume|run|steps|-3|steps=-3: expected 0 or more steps
resume|run|examples|1.5|examples=1.5: expected a whole number
resume|run|workers|0|workers=0: expected 1 to 1000000 workers
resume|run|epochs_done|nan|epochs_done=nan: expected a number, 0 to 2000000 epochs
resume|run|epochs_done|1e300|epochs_done=1e300: expected 0 to 2000000 epochs
resume|run|epochs_done|9|epochs_done=9: expected at most its epochs
resume|run|final_cost|1e308|final_cost=1e308: expected at most 1e+300
resume|run|final_cost|inf|final_cost=inf: expected a number
resume|run|train_seconds|-1|train_seconds=-1: expected
resume|run|train_seconds|nan|train_seconds=nan: expected a number
resume|run|epochs|nan|epochs=nan: expected a whole number
resume|run|epochs|0|epochs=0: expected 1 to 1000000 epochs
resume|run|batch|0|batch=0: expected 1 to 1000000 examples
resume|run|clip|nan|clip=nan: expected a number
resume|run|clip|-1|clip=-1: expected 0
resume|run|decay|-1|decay=-1: expected 0
resume|run|average|2|average=2: expected 0 to 1
resume|run|seed|x|seed=x: expected a whole number
resume|run|seed|-1|seed=-1: expected 1 or more
resume|run|seed|4294967296|seed=4294967296: expected at most 4294967295
resume|run|precision|fp8|precision=fp8: expected one of
resume|run|data-sharding|3|data-sharding=3: expected one of
resume|$old|sharding|3|data-sharding=3: expected one of
resume|$old|sharding|1x|data-sharding=1x: expected one of
resume|$old|sharding|-1|data-sharding=-1: expected one of
resume|run|model|cnnn|model "cnnn": unknown
resume|run|model|mlp:hidden=0|hidden=0: expected widths
resume|run|dataset|minst|dataset "minst": unknown
resume|run|strategy|snyc|strategy "snyc": unknown
resume|run|optimizer|sgd:rate=-1|sgd: rate=-1: expected 0
resume|run|schedule|cosine:end=nan|cosine: end=nan: expected a number
resume|$old|dataset|digits:take=5000|found take=5000, expected at most 1437
resume|$old|batch|100000|batch=100000: expected at most 320, the training examples of digits
evaluate|$old|model|mlp:hidden=1000000-1000000|dense1/kernel is [64, 10] here, [64, 1000000] in the model
evaluate|run|model|cnnn|model "cnnn": unknown
evaluate|run|model|mlp:hidden=0|hidden=0: expected widths
evaluate|run|dataset|minst|dataset "minst": unknown
evaluate|run|classes|4294967299|no usable "classes"
evaluate|run|classes|3x|no usable "classes"
evaluate|run|classes|-3|no usable "classes"
evaluate|run|shape|0|no usable "shape"
evaluate|run|shape|-4|no usable "shape"
evaluate|run|shape|4x|no usable "shape"
evaluate|run|shape|1000000,1000000|no usable "shape"
evaluate|run|class_names|one|no usable "class_names"
predict|run|feature_names|one|no usable "feature_names"
predict|run|scale|nan|no usable "scale"
predict|run|scale|0|no usable "scale"
predict|run|scale|-1|no usable "scale"
predict|run|scale|1e39|no usable "scale"
predict|run|mean|1,2,3|no usable "mean"
predict|run|mean|1,2,3,nan|no usable "mean"
predict|run|mean|1,2,3,-inf|no usable "mean"
predict|run|deviation|1,2,3,0|no usable "deviation"
predict|run|deviation|1,2,3,-1|no usable "deviation"
predict|run|image|x|no usable "image"
TABLE
python3 texts.py words "$TRAINER" table || fail "texts that are none, or words that are others"
python3 texts.py sweep "$TRAINER" $stride run/checkpoint/state.safetensors ||
    fail "texts that are none were not taken as they should be"

[ $failures -eq 0 ]
