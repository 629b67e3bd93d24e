#!/bin/bash
# Every data set of pictures is cut out and changed by the same settings, to the same bits: the same images in
# idx files and in NumPy's, in one run or in two, with batches built ahead or not; and its tests are what
# evaluate and predict see.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

wrong() { # words, data set
    refused 2 "$1" --dataset="$2" --data-dir=data --epochs=1 --quiet --out=never
}

train() { # folder, data set, options...
    local out=$1 dataset=$2
    shift 2
    good --dataset="$dataset" --data-dir=data --model=mlp:hidden=10 --devices=cpu:0,cpu:1 --strategy=sync \
        --batch=10 --epochs=2 --quiet --replace --out="$out" "$@"
}

python3 - "$root/datasets/embedded/digits.csv.gz" <<'PY' || fail "no files"
import gzip, os, random, struct, sys, zlib
from npz_files import npy, npz
r = random.Random(1)
def part(count):
    labels = [i % 10 for i in range(count)]
    return (bytes(min(255, 20 * l + r.randrange(60)) * (p % 28 > 2 * l) for l in labels for p in range(784)),
            bytes(labels))
def idx(name, magic, dims, data):
    with open("data/mnist/" + name, "wb") as file:
        file.write(struct.pack(f">{1 + len(dims)}I", magic, *dims) + data)
os.makedirs("data/mnist")
arrays, floats = {}, {}
for name, short, (pixels, labels) in (("train", "train", part(200)), ("t10k", "test", part(50))):
    idx(name + "-images-idx3-ubyte", 0x803, (len(labels), 28, 28), pixels)
    idx(name + "-labels-idx1-ubyte", 0x801, (len(labels),), labels)
    arrays["x_" + short], arrays["y_" + short] = (npy((len(labels), 28, 28), pixels, "|u1"),
                                                  npy((len(labels),), labels, "|u1"))
npz("images.npz", **arrays)
npz("floats.npz", x_train=npy((4, 2, 2), [0.5] * 16), y_train=npy((4,), b"\0\1\0\1", "|u1"))
npz("table.npz", x_train=npy((4, 3), bytes(range(12)), "|u1"), y_train=npy((4,), b"\0\1\0\1", "|u1"))
npz("wide.npz", x_train=npy((4, 2, 2, 5), bytes(80), "|u1"), y_train=npy((4,), b"\0\1\0\1", "|u1"))
# The tests of digits: as rows, and the first ones as pictures.
rows = [line.split(",") for line in gzip.open(sys.argv[1], "rt").read().split()][-360:]
open("rows.csv", "w").writelines(",".join(row[:-1]) + "\n" for row in rows)
open("labels", "w").writelines(row[-1] + "\n" for row in rows)
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
for i, row in enumerate(rows[:5]):
    lines = b"".join(b"\0" + bytes(round(float(v) * 255 / 16) for v in row[8 * y:8 * y + 8])
                     for y in range(8))
    with open(f"digit-{i}.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
PY

# --- the same settings for all of them, which are off ---
for name in digits mnist cifar10 pictures npz; do
    good list "$name"
    for row in augment pad crop flip brightness contrast standardize cutout rotate mixup cutmix; do
        grep -q "^ *$row=" out || fail "$name has no setting $row"
    done
done
train plain digits
train off \
    digits:crop=8,pad=0,flip=0,brightness=0,contrast=1-1,cutout=0,rotate=0,standardize=none,mixup=0,cutmix=0
same_weights "settings that change nothing" plain off

# --- each of them alone changes what is trained on ---
all=pad=2,crop=24,flip=1,rotate=15,brightness=40,contrast=0.5-1.5,cutout=6,mixup=0.4,cutmix=1
for setting in pad=1,crop=8 crop=7 flip=1 rotate=15 brightness=40 contrast=0.5-1.5 cutout=3 \
    standardize=image mixup=1 cutmix=1; do
    train one "digits:take=320,$setting" --epochs=1
    train two "digits:take=320" --epochs=1
    other_weights "digits:$setting" one two
done

# --- the same images, the same bits, in one dimension or in two ---
for settings in "$all" "$all,standardize=image" augment=usual; do
    train one "mnist:$settings" --prefetch=0
    train two "npz:file=images.npz,$settings" --prefetch=2
    same_weights "arrays: $settings" one two
done
train one "npz:file=images.npz,$all" --epochs=1
good --resume=one --data-dir=data --epochs=2 --quiet
train two "npz:file=images.npz,$all"
same_weights "an interrupted run" one two

# --- what is tested, evaluated and predicted is the same ---
pictures=$("$TRAINER" predict --help | grep PNG) # or built without stb_image
for settings in crop=6,flip=0,rotate=10,mixup=0.2 \
    "pad=1,crop=9,brightness=30,contrast=0.5-1.5,standardize=image"; do
    train run "digits:$settings" --epochs=8
    tested=$(sed -n 's/^Test-Accuracy: //p' out)
    good evaluate --checkpoint=run
    [ "$tested" = "$(sed -n 's/^Test-Accuracy: //p' out)" ] ||
        fail "$settings: training says $tested, evaluate: $(cat out)"
    python3 - "$(sed -n 's/^Test-Cost: //p' out)" \
        <<'PY' || fail "$settings: evaluate's cost is not that of the training: $(cat out)"
import json, sys
sys.exit(abs(json.load(open("run/summary.json"))["test_cost"] - float(sys.argv[1])) > 1e-4)
PY
    good predict --checkpoint=run rows.csv
    right=$(sed 's/^Prediction is "\(.*\)" (.*/\1/' out | paste - labels | awk '$1 == $2' | wc -l)
    [ "$tested" = "$(awk "BEGIN { printf \"%.4f\", $right / 360 }")" ] ||
        fail "$settings: accuracy $tested, but $right of 360 predicted"
    [ "$right" -gt 180 ] || fail "$settings: only $right of 360 right"
    [ -n "$pictures" ] || continue
    head -n 5 out >rows
    good predict --checkpoint=run digit-?.png
    sed 's/^digit-[0-9]*\.png: //' out | cmp -s - rows ||
        fail "$settings: pictures and rows differ: $(cat out rows)"
done

# --- refused ---
wrong 'digits: crop=9: expected at most 8, the padded image' digits:crop=9
wrong 'digits: rotate=200: expected 0 to 180 degrees' digits:rotate=200
wrong 'digits: mixup=-1: expected 0 to 100' digits:mixup=-1
wrong 'npz: found examples \[2, 2\] of numbers, expected images \[H, W\] or \[H, W, '\
'C\] of bytes \(uint8\) to crop or change' \
    npz:file=floats.npz,crop=2
wrong 'npz: found examples \[3\] of bytes, expected images' npz:file=table.npz,standardize=0,flip=1
wrong 'npz: found examples \[3\] of numbers, expected images' npz:file=table.npz,standardize=image
wrong 'npz: found images of 5 channels, expected at most 4 to crop or change' npz:file=wide.npz,flip=1
[ $failures -eq 0 ]
