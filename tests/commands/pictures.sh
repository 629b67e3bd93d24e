#!/bin/bash
# trainer predict on pictures: a digit written as PNG gets the class and the probabilities that its row of
# bytes gets, however it is written down; colour goes to a network that was trained on colour; what is no
# picture is one line.
set -u
data=${TRAINER_DATA:-}
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

cat >make.py <<'PYTHON'
"""make.py DATA: idx files in data/mnist (the first of DATA/mnist, or else made up), a table, and
pictures of them."""
import gzip, os, random, struct, sys, zlib

SIDE = 28

def png(path, width, height, kind, rows, depth=8, end=True):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    data += chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b"")
    open(path, "wb").write(data)

def rows(image, width):
    return [image[i:i + width] for i in range(0, len(image), width)]

random.seed(5)
source = os.path.join(sys.argv[1], "mnist") if sys.argv[1] else ""
os.makedirs("data/mnist")
prefixes = {"train": 1000, "t10k": 300}
for prefix, count in prefixes.items():
    path = os.path.join(source, prefix)
    if os.path.exists(f"{path}-images-idx3-ubyte.gz"):
        images = gzip.open(f"{path}-images-idx3-ubyte.gz").read()[16:16 + count * SIDE * SIDE]
        labels = gzip.open(f"{path}-labels-idx1-ubyte.gz").read()[8:8 + count]
    else: # a bright block whose place is the class, in noise
        labels = bytes(random.randrange(10) for i in range(count))
        images = bytearray(random.randrange(12) for i in range(count * SIDE * SIDE))
        for i, label in enumerate(labels):
            for y in range(11):
                for x in range(5):
                    images[(i * SIDE + 3 + label // 5 * 12 + y) * SIDE + 1 + label % 5 * 5 +
                           x] = random.randrange(200, 256)
    open(f"data/mnist/{prefix}-images-idx3-ubyte",
         "wb").write(struct.pack(">IIII", 0x803, count, SIDE, SIDE) + images)
    open(f"data/mnist/{prefix}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, count) + labels)

os.makedirs("few/mnist") # the test part: its first 20
for prefix, count in {"train": 1000, "t10k": 20}.items():
    for kind, head, each in (("images-idx3", 16, SIDE * SIDE), ("labels-idx1", 8, 1)):
        whole = open(f"data/mnist/{prefix}-{kind}-ubyte", "rb").read()[:head + count * each]
        open(f"few/mnist/{prefix}-{kind}-ubyte", "wb").write(whole[:4] + struct.pack(">I", count) + whole[8:])
open("labels", "w").write(" ".join(map(str, labels[:20])))

table = open("digits.csv", "w")
for i in range(20): # of the test part
    image = images[i * SIDE * SIDE:(i + 1) * SIDE * SIDE]
    table.write(",".join(map(str, image)) + "\n")
    png(f"digit-{i:02d}.png", SIDE, SIDE, 0, rows(image, SIDE))
    if i > 0:
        continue
    png("colour.png", SIDE, SIDE, 2, rows([v for v in image for c in range(3)], 3 * SIDE))
    png("opaque.PNG", SIDE, SIDE, 6, rows([v for v in image for v in (v, v, v, 255)], 4 * SIDE))
    png("sixteen", SIDE, SIDE, 0, rows([v for v in image for v in (v, v * 7 % 256)], 2 * SIDE), 16)
    gzip.open("packed.png.gz", "wb").write(open("digit-00.png", "rb").read())
    big = [[v for v in row for k in range(10)] for row in rows(image, SIDE) for k in range(10)]
    png("big.png", 10 * SIDE, 10 * SIDE, 0, big)
    whole = open("digit-00.png", "rb").read()
    open("cut.png", "wb").write(whole[:-20])
    open("damaged.png", "wb").write(whole[:80] + bytes([whole[80] ^ 1]) + whole[81:])
    open("line\nend.png", "wb").write(whole)
    png("reversed.png", SIDE, SIDE, 0, rows([255 - v for v in image], SIDE))
    # grey, with a dark pencil.
    png("paper.png", SIDE, SIDE, 0, rows([165 - v * 150 // 255 for v in image], SIDE))
    tight = [200 if (x in (0, 27)) != (y in (0, 27)) and (8 < x < 20 or 8 < y < 20) else 0
             for y in range(SIDE) for x in range(SIDE)]
    png("tight.png", SIDE, SIDE, 0, rows(tight, SIDE)) # cut so closely that the light figure is at the border
    png("pencil.png", SIDE, SIDE, 0, rows([90 + v * 150 // 255 for v in image], SIDE)) # light, on a board
png("huge.png", 20000, 20000, 0, [[0]])

# colour: 4x4 pixels, three classes by the channel that is bright
with open("colours.csv", "w") as table, open("colour-rows.csv", "w") as unlabelled:
    for i in range(90):
        image = [random.randrange(200, 256) if k % 3 == i % 3 else random.randrange(120) for k in range(48)]
        table.write(",".join(map(str, image)) + "," + ["red", "green", "blue"][i % 3] + "\n")
        if i < 6:
            unlabelled.write(",".join(map(str, image)) + "\n")
            png(f"patch-{i}.png", 4, 4, 2, rows(image, 12))
PYTHON
python3 make.py "$data" || exit 1
train() {
    "$TRAINER" --quiet --devices=cpu:0,cpu:1 --batch=20 "$@" >out 2>err || fail "trainer $*: $(cat err)"
}
train --data-dir=data --dataset=mnist --model=mlp:hidden=30 --epochs=3 --out=digits

if ! "$TRAINER" predict --help | grep -q PNG; then # built without stb_image
    refused 3 'digit-00.png: a picture, which this build cannot read: it has no stb_image$' \
        predict --checkpoint=digits digit-00.png
    [ $failures -eq 0 ]
    exit
fi

# --- as the row of bytes: the same line, with all probabilities ---
good predict --checkpoint=digits --top=10 digits.csv
mv out rows
good predict --checkpoint=digits --top=10 digit-??.png
sed 's/^digit-[0-9]*\.png: //' out >lines
cmp -s lines rows || fail "pictures and rows of bytes differ: $(diff lines rows | head -n 4)"
[ "$(cut -d: -f1 out)" = "$(printf 'digit-%02d.png\n' {0..19})" ] ||
    fail "several pictures: $(cut -c1-40 out)"
[ "$(sort -u rows | wc -l)" -gt 10 ] || fail "the rows do not differ: this proves nothing"
# As `evaluate` saw them, whose examples are the bytes of the data set: accuracy, and cost (shares are printed
# to 0.1 %).
"$TRAINER" evaluate --checkpoint=digits --data-dir=few >seen 2>err || fail "evaluate: $(cat err)"
python3 - <<'PYTHON' || fail "evaluate and predict differ: $(cat seen)"
import math, re
seen = dict(re.findall(r"(Test-\w+): ([0-9.]+)", open("seen").read()))
labels = open("labels").read().split()
lines = [re.findall(r'"(\d)" \(([0-9.]+)%\)', line) for line in open("rows")]
right = sum(line[0][0] == label for line, label in zip(lines, labels))
cost = sum(-math.log(max(float(dict(line)[label]) / 100, 0.0005))
           for line, label in zip(lines, labels)) / len(lines)
assert len(lines) == 20 and abs(right / 20 - float(seen["Test-Accuracy"])) < 1e-6, (right, seen)
assert abs(cost - float(seen["Test-Cost"])) < 0.02, (cost, seen)
PYTHON
head -n 1 rows >first
for picture in digit-00.png colour.png opaque.PNG sixteen packed.png.gz; do
    good predict --checkpoint=digits --top=10 $picture
    cmp -s out first || fail "$picture: $(cat out) expected $(cat first)"
done
good predict --checkpoint=digits --top=10 digits.csv digit-00.png
[ "$(wc -l <out)" -eq 21 ] && [ "$(tail -n 1 out)" = "digit-00.png: $(cat first)" ] ||
    fail "a table and a picture: $(tail -n 1 out)"
# More than one batch, and a table in between; what is wrong with some does not concern the others.
pictures=$(for i in {1..15}; do echo digit-??.png; done)
# shellcheck disable=SC2086
good predict --checkpoint=digits --top=10 $pictures digits.csv digit-01.png
{ for i in {1..15}; do cat rows; done; cat rows; sed -n 2p rows; } >wanted
sed 's/^digit[^ ]*: //' out | cmp -s - wanted ||
    fail "many pictures: $(wc -l <out) lines, $(sed 's/^digit[^ ]*: //' out | diff - wanted |
    head -n 3)"
runs predict --checkpoint=digits --top=10 digit-00.png cut.png nowhere.png digit-01.png damaged.png \
    digit-02.png
[ $code -eq 3 ] && [ "$(grep -c '^trainer: ' err) $(wc -l <err)" = "3 3" ] ||
    fail "three of six are wrong: exit code $code: $(cat err)"
sed 's/^digit-[0-9]*\.png: //' out | cmp -s - <(head -n 3 rows) || fail "three of six are right: $(cat out)"
good predict --checkpoint=digits $'line\nend.png' digit-01.png
[ "$(head -n 1 out | cut -d' ' -f1)" = "line?end.png:" ] || fail "a name with a line's end: $(cat out)"

# Ten times as large: the same class, nearly as probable (the edges are a little softer).
good predict --checkpoint=digits big.png
python3 - <<'PYTHON' || fail "ten times as large: $(cat out) expected $(cut -d, -f1 first)"
import re
parts = [re.match(r'Prediction is ("[^"]*") \(([0-9.]+)%\)', open(name).read()).groups()
         for name in ("out", "first")]
assert parts[0][0] == parts[1][0] and abs(float(parts[0][1]) - float(parts[1][1])) < 20, parts
PYTHON

# --- colours the other way round: said of that picture, which is predicted all the same ---
reversed() { # checkpoint, pictures that are, how the network was trained, how they are, further pictures...
    local checkpoint=$1 pictures=$2 trained=$3 lit=$4
    shift 4
    # shellcheck disable=SC2086 # several pictures
    runs predict --checkpoint=$checkpoint $pictures "$@"
    [ $code -eq 0 ] && [ "$(grep -c '^\([a-z0-9.-]*: \)*Prediction is ' out)" -eq \
        "$(echo $pictures "$@" | wc -w)" ] || fail "reversed: exit code $code: $(cat out err)"
    for picture in $pictures; do
        echo "trainer: $picture: $lit, but the network was trained on pictures that are $trained"
    done | cmp -s - err ||
        fail "$checkpoint, $pictures: said: $(cat err)"
}
reversed digits 'reversed.png paper.png' 'light on dark' 'dark on light' pencil.png tight.png digit-01.png
reversed digits reversed.png 'light on dark' 'dark on light'
# Which is older than that, and says nothing.
good predict --checkpoint="$tests/checkpoints/digits-adam" reversed.png
python3 - <<'PYTHON'
import os
os.makedirs("ink/mnist")
for prefix in ("train", "t10k"): # the same digits, dark on light
    whole = open(f"data/mnist/{prefix}-images-idx3-ubyte", "rb").read()
    open(f"ink/mnist/{prefix}-images-idx3-ubyte", "wb").write(whole[:16] + bytes(255 - v for v in whole[16:]))
    open(f"ink/mnist/{prefix}-labels-idx1-ubyte",
         "wb").write(open(f"data/mnist/{prefix}-labels-idx1-ubyte", "rb").read())
PYTHON
train --data-dir=ink --dataset=mnist --model=softmax --epochs=1 --out=ink-run
reversed ink-run digit-00.png 'dark on light' 'light on dark' reversed.png
good predict --checkpoint=ink-run reversed.png paper.png

# --- digits, whose white is 16 ---
train --epochs=5 --out=small
python3 - <<'PYTHON'
import random, struct, zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
random.seed(3)
values = [random.choice([0, 0, 16, 16]) for i in range(64)] # 0 and 255 in the picture, so nothing is rounded
open("small.csv", "w").write(",".join(map(str, values)) + "\n")
data = b"".join(b"\0" + bytes(v * 255 // 16 for v in values[8 * y:8 * y + 8]) for y in range(8))
open("small.png", "wb").write(b"\x89PNG\r\n\x1a\n" +
                              chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) +
                              chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
PYTHON
good predict --checkpoint=small --top=10 small.csv
mv out wanted
good predict --checkpoint=small --top=10 small.png
cmp -s out wanted || fail "digits: $(cat out) expected $(cat wanted)"

# Pixels from 0 to 1, where training had them from 0 to 16; whole ones may be those of a dark picture.
for number in 0.5 1 2.5; do
    sed "s/\<16\>/$number/g" small.csv >dark.csv
    runs predict --checkpoint=small dark.csv
    [ "$(cat err)" = "$([ $number != 0.5 ] || echo 'trainer: dark.csv: numbers from 0 to 1, but the network '\
'was trained on pixels from 0 to 16')" ] || fail "numbers of $number: $(cat err)"
done

# --- colour, standardized as in training ---
train --dataset=csv:file=colours.csv,standardize=1 --model=mlp:hidden=10 --epochs=20 --out=colours
good predict --checkpoint=colours --top=3 colour-rows.csv
mv out rows
good predict --checkpoint=colours --top=3 patch-?.png
sed 's/^patch-[0-9]\.png: //' out >lines
cmp -s lines rows || fail "colour: $(diff lines rows | head -n 4)"
[ "$(cut -d'"' -f2 lines | tr '\n' ,)" = "red,green,blue,red,green,blue," ] || fail "colour: $(cat out)"

# --- a JPEG: 20 x 12 pixels with little red and green at the left and above, and the same pixels as PNG ---
python3 - "$tests" <<'PYTHON'
import re, struct, sys, zlib
text = open(sys.argv[1] + "/jpeg_sample.h").read()
open("sample.jpg", "wb").write(bytes(int(byte, 16) for byte in re.findall(r"0x([0-9a-f]{2})\b", text)))
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
data = b"".join(b"\0" + bytes(v for x in range(20) for v in (12 * x, 20 * y, 99)) for y in range(12))
open("sample.png", "wb").write(b"\x89PNG\r\n\x1a\n" +
                               chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 12, 8, 2, 0, 0, 0)) +
                               chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))
PYTHON
good predict --checkpoint=colours --top=3 sample.jpg sample.png
python3 - <<'PYTHON' || fail "a JPEG: $(cat out)"
import re
lines = [dict(re.findall(r'"(\w+)" \(([0-9.]+)%\)', line)) for line in open("out")]
assert len(lines) == 2 and all(len(line) == 3 and abs(float(line[c]) - float(lines[0][c])) < 2
                               for line in lines for c in line), lines
PYTHON

# --- no picture, or none for this network ---
printf 'GIF89a\1\1' >cat.gif
printf 'nothing\n' >cat.jpg
: >empty.png
mkdir folder.png
refused 3 'cut.png: the PNG ends too early, after [0-9]+ bytes$' predict --checkpoint=digits cut.png
refused 3 'damaged.png: damaged PNG: the check sum of chunk IDAT is wrong$' \
    predict --checkpoint=digits damaged.png
refused 3 'huge.png: 20000 x 20000 pixels, expected at most 67108864 together$' \
    predict --checkpoint=digits huge.png
refused 3 'cat.jpg: no PNG, JPEG, BMP or GIF picture$' predict --checkpoint=digits cat.jpg
refused 3 'empty.png: no PNG, JPEG, BMP or GIF picture$' predict --checkpoint=digits empty.png
refused 3 'cat.gif: no PNG, JPEG, BMP or GIF picture$' predict --checkpoint=digits cat.gif
printf 'GIF89a\1\0\1\0\0\0\0' >cat.gif
printf 'BM\106\0\0\0\0\0\0\0\66\0\0\0' >cat.bmp
printf 'RIFF\32\0\0\0WEBPVP8L' >cat.webp
printf 'II*\0\10\0\0\0\0\0\0\0' >cat.tiff
printf 'so\0 so' >cat.doc
refused 3 'cat.gif: the GIF ends too early, after 13 bytes$' predict --checkpoint=digits cat.gif
refused 3 'cat.bmp: the BMP ends too early, after 14 bytes$' predict --checkpoint=digits cat.bmp
refused 3 'cat.webp: a WebP picture, expected a PNG, JPEG, BMP or GIF picture, or a CSV file$' \
    predict --checkpoint=digits cat.webp
refused 3 'cat.tiff: a TIFF picture, expected a PNG, JPEG, BMP or GIF picture, or a CSV file$' \
    predict --checkpoint=digits cat.tiff
refused 3 'cat.doc: neither text nor a picture of a known kind, expected a PNG, JPEG, BMP or GIF picture, '\
'or a CSV file$' \
    predict --checkpoint=digits cat.doc
refused 3 'folder.png: a folder, expected a file$' predict --checkpoint=digits folder.png
refused 3 'digits: a folder, expected a file$' predict --checkpoint=digits digits
refused 3 'nowhere.png: No such file' predict --checkpoint=digits nowhere.png
train --dataset=iris --epochs=1 --out=flowers
refused 3 'digit-00.png: a picture, but the network takes rows of a table, 4 numbers that begin with '\
'sepal_length$' \
    predict --checkpoint=flowers digit-00.png
for i in {1..30}; do echo "$i,$((i * 7 % 5)),$((i % 2))"; done >two.csv
train --dataset=csv:file=two.csv --epochs=1 --out=oblong
refused 3 'digit-00.png: a picture, but the network takes examples \[2\]$' \
    predict --checkpoint=oblong digit-00.png

[ $failures -eq 0 ]
