#!/bin/bash
# trainer show: a PNG decodes to the very pixels of the examples, an augmented one to a cut of what stands
# beside it; the numbers of the confusion matrix are those of `trainer evaluate`; in a terminal there are
# colours, in a pipe letters.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
unset NO_COLOR
export TERM=xterm

checked() { # what, then a program of look.py
    python3 look.py "${@:2}" >seen 2>&1 || fail "$1: $(tail -n 3 seen)"
}

cat >look.py <<'PYTHON'
"""look.py WHAT ARGUMENTS...: looks at pictures. A picture is a list of rows, a row bytes of red,
green, blue."""
import gzip, itertools, json, os, re, struct, subprocess, sys, terminal, zlib

def decode(path): # 8 bits, three colours, no interlacing
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed, header = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], (
            "a wrong checksum")
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colours, _, _, interlaced = header
    assert (depth, colours, interlaced) == (8, 2, 0), header
    raw, step, rows, above = zlib.decompress(packed), 3 * width, [], bytes(3 * width)
    for y in range(height):
        kind, line = raw[y * (step + 1)], bytearray(raw[y * (step + 1) + 1:(y + 1) * (step + 1)])
        if kind == 1:
            for c in range(3):
                line[c::3] = bytes(v & 255 for v in itertools.accumulate(line[c::3]))
        elif kind == 2:
            line = bytearray((v + b) & 255 for v, b in zip(line, above))
        for x in range(step if kind > 2 else 0):
            a, b, c = line[x - 3] if x >= 3 else 0, above[x], above[x - 3] if x >= 3 else 0
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = (line[x] + ((a + b) // 2 if kind == 3 else paeth)) & 255
        rows.append(bytes(line))
        above = line
    return rows

def enlarged(picture, times):
    wide = [b"".join(row[3 * x:3 * x + 3] * times for x in range(len(row) // 3)) for row in picture]
    return [row for row in wide for _ in range(times)]

def find(sheet, picture): # where it stands: (row, column) of each place
    if not joined or joined[0] is not sheet:
        joined[:] = [sheet, b"".join(sheet)]
    places, step = [], len(sheet[0])
    place = joined[1].find(picture[0])
    while place >= 0:
        y, at = divmod(place, step)
        if at % 3 == 0 and y + len(picture) <= len(sheet) and \
                all(sheet[y + k][at:at + len(row)] == row for k, row in enumerate(picture)):
            places.append((y, at // 3))
        place = joined[1].find(picture[0], place + 1)
    return places
joined = [] # the sheet that was searched last, and all its bytes

def digits(first, count): # (pixels, label) of the embedded ones
    rows = gzip.open(os.path.join(os.environ["ROOT"], "datasets/embedded/digits.csv.gz"), "rt").read().split()
    numbers = [list(map(int, row.split(","))) for row in rows[first:first + count]]
    return [([b"".join(bytes([round(255 * v / 16)]) * 3 for v in n[8 * y:8 * y + 8]) for y in range(8)],
             n[64]) for n in numbers]

def images(path): # of CIFAR-10's files, the first 100
    data = open(path, "rb").read()
    records = [data[i * 3073:(i + 1) * 3073] for i in range(100)]
    return [[bytes(r[1 + 1024 * c + 32 * y + x] for x in range(32) for c in range(3)) for y in range(32)]
            for r in records]

def on_terminal(columns, command):
    code, shown = terminal.on_terminal(columns, command)
    assert code == 0, shown
    return shown.decode().replace("\r\n", "\n")

def cells(line): # of a line in colours: (upper, lower) of each column, None where there is no block
    upper = lower = None
    out = []
    for code, letter in re.findall("\033\\[([0-9;]*)m|(.)", line):
        if letter:
            out.append((upper, lower) if letter == "\u2580" else None)
        elif code == "0":
            upper = lower = None
        elif code.startswith("38;2;"):
            upper = bytes(map(int, code[5:].split(";")))
        else:
            assert code.startswith("48;2;"), code
            lower = bytes(map(int, code[5:].split(";")))
    return out

def matrix(path): # a printed confusion matrix
    lines = open(path).read().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("label"))
    rows = []
    for line in lines[start + 1:]:
        if not line:
            break
        rows.append(list(map(int, line.split()[1:])))
    assert len(rows) == len(rows[0]), rows
    return rows

def tensor(path, name):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + length])[name]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    return entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])

what, arguments = sys.argv[1], sys.argv[2:]
if what == "digits": # PICTURE: the first 12 of the test part, in their order
    sheet = decode(arguments[0])
    places = [find(sheet, enlarged(picture, 14)) for picture, _ in digits(1437, 12)]
    assert all(len(place) == 1 for place in places), places
    assert places == sorted(places), places
elif what == "stored": # PICTURE: 30 different images of the training part
    sheet = decode(arguments[0])
    found = [place for image in images("data/cifar10/data_batch_1.bin")
             for place in find(sheet, enlarged(image, 4))]
    assert len(found) == 30, len(found)
elif what == "cut": # PICTURE: a cut of 24x24 beside each of 10 images, half of them mirrored
    sheet = decode(arguments[0])
    mirrored, corners = 0, set()
    count = 0
    for image in images("data/cifar10/data_batch_1.bin"):
        for y, x in find(sheet, enlarged(image, 4)):
            count += 1
            left = x + 4 * 32 + 6
            seen = [b"".join(sheet[y + 4 * k][3 * (left + 4 * j):3 * (left + 4 * j) + 3] for j in range(24))
                    for k in range(24)]
            assert enlarged(seen, 4) == [row[3 * left:3 * (left + 96)] for row in sheet[y:y + 96]], (
                "no squares of equal pixels")
            turned = [b"".join(row[3 * j:3 * j + 3] for j in reversed(range(24))) for row in seen]
            places, back = find(image, seen), find(image, turned)
            assert places or back, "no cut of what stands beside it"
            mirrored += not places
            corners.update(places or back)
    assert count == 10 and 0 < mirrored < 10 and len(corners) > 5, (count, mirrored, corners)
elif what == "filters": # PICTURE MODEL: the units of a dense layer on digits
    sheet = decode(arguments[0])
    shape, weights = tensor(arguments[1], "dense1/kernel")
    full = 3 * (sum(w * w for w in weights) / len(weights)) ** 0.5
    def colour(weight):
        share = max(-1, min(1, weight / full))
        end = (178, 24, 43) if share > 0 else (33, 102, 172)
        return [e + (1 - abs(share)) * (255 - e) for e in end]
    for unit in range(shape[1]): # 6 in a row, each 14 times as large, 12 pixels between them
        top = min(y for y, row in enumerate(sheet) if row[3 * 15:3 * 18] == b"\xcd" * 9) + 1 # a frame's edge
        y0, x0 = top + unit // 6 * (112 + 12), 16 + unit % 6 * (112 + 12)
        for i in range(64):
            at, row = 3 * (x0 + 14 * (i % 8) + 5), sheet[y0 + 14 * (i // 8) + 5]
            expected = colour(weights[i * shape[1] + unit])
            assert all(abs(row[at + c] - expected[c]) <= 0.51 for c in range(3)), (unit, i, row[at:at + 3],
                                                                                   expected)
elif what == "confusion":
    # PRINTED EVALUATED PICTURE...: sums; the matrix's cells; the pictures of the wrong ones
    rows = matrix(arguments[0])
    said = dict(re.findall(r"(\S+): ([0-9.]+)", open(arguments[1]).read()))
    total, right = sum(map(sum, rows)), sum(row[i] for i, row in enumerate(rows))
    assert total == int(said["Examples"]), (total, said)
    assert f"{right / total:.4f}" == next(said[k] for k in said if k.endswith("-Accuracy")), (right, total,
                                                                                              said)
    assert f"{right} of {total}" in open(arguments[0]).readline()
    if len(arguments) > 2:
        sheet, labels = decode(arguments[2]), [label for _, label in digits(1437, 360)]
        assert [sum(row) for row in rows] == [labels.count(i) for i in range(10)], rows
        found = {}
        for picture, label in digits(1437, 360):
            if find(sheet, enlarged(picture, 14)):
                found[label] = found.get(label, 0) + 1
        wrong = {i: sum(row) - row[i] for i, row in enumerate(rows) if sum(row) > row[i]}
        assert found == wrong, (found, wrong)
elif what == "cells": # PICTURE PRINTED: the matrix's colours, 56 pixels a cell
    sheet, rows = decode(arguments[0]), matrix(arguments[1])
    left, top = 16 + 12 + 8, len(sheet) - 16 - 560
    for i, row in enumerate(rows):
        for j, count in enumerate(row):
            share = count / sum(row)
            strength, end = (share, (33, 102, 172)) if i == j else (share ** 0.5, (178, 24, 43))
            pixel = sheet[top + 56 * i + 2][3 * (left + 56 * j + 2):][:3]
            assert all(abs(pixel[c] - (255 + (end[c] - 255) * strength)) <= 0.51 for c in range(3)), (i, j,
                                                                                                      pixel)
elif what == "terminal":
    # on one of 60 columns: six digits in a row, in their colours; NO_COLOR, dumb and narrow ones
    command = [os.environ["TRAINER"], "show", "--dataset=digits", "--part=test", "--count=8", "--inline"]
    lines = on_terminal(60, command).split("\n")
    start = next(i for i, line in enumerate(lines) if "\u2580" in line)
    for k, (picture, _) in enumerate(digits(1437, 6)):
        for line in range(4):
            row = cells(lines[start + line])
            assert len(row) == 6 * 9 - 1, len(row)
            for x in range(8):
                expected = tuple(picture[2 * line + half][3 * x:3 * x + 3] for half in range(2))
                assert row[9 * k + x] == expected, (k, line, x, row[9 * k + x], expected)
    assert not [line for line in lines if len(re.sub("\033\\[[0-9;]*m", "", line)) > 60], lines
    assert not [line for line in lines if "\033" in line and not line.endswith("\033[0m")], (
        "colours are not taken back")
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        plain = on_terminal(60, ["env", f"{name}={value}", *command])
        assert "\033" not in plain and "\u2580" not in plain and "@" in plain, plain
    narrow = on_terminal(30, [os.environ["TRAINER"], "show", "--dataset=cifar10:take=100", "--data-dir=data",
                              "--count=2", "--inline"])
    wide = [re.sub("\033\\[[0-9;]*m", "", line) for line in narrow.split("\n")]
    assert max(map(len, wide)) <= 30 and "\u2580" in narrow, wide
else:
    sys.exit(f"{what}?")
PYTHON
export ROOT=$root TRAINER

# A hundred images, over and over, so that whole files stay small in every other way.
python3 - <<'PYTHON'
import os, random
os.makedirs("data/cifar10")
for name in "data_batch_1", "test_batch":
    r = random.Random(name)
    with open(f"data/cifar10/{name}.bin", "wb") as file:
        file.write(b"".join(bytes([i % 10]) + r.randbytes(3072) for i in range(100)) * 100)
PYTHON
cifar=cifar10:take=100

# --- what is no picture ---
refused 2 'show: expected --dataset=NAME or --checkpoint=DIR' show
printf 'a,b,kind\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n2,3,x\n' >table.csv
refused 3 'nowhere: No such file' show --checkpoint=nowhere --numbers
"$TRAINER" --quiet --dataset=iris --epochs=2 --out=iris >out 2>err || fail "iris: $(cat err)"
"$TRAINER" --quiet --dataset=digits --model=mlp:hidden=20 --epochs=3 --out=digits >out 2>err ||
    fail "digits: $(cat err)"
for data in iris csv:file=table.csv; do
    refused 2 "${data%%:*}: .* are not images; expected a data set of images" show --dataset=$data --inline
done
refused 2 'iris: not a data set of images, .*--only=confusion' show --checkpoint=iris --inline
refused 2 '--part=validation: there are no such examples' show --checkpoint=digits --part=validation --numbers
refused 2 '--part=validation: .*--checkpoint' show --dataset=digits --part=validation --inline
refused 2 'expected --checkpoint=DIR' show --dataset=digits --numbers
refused 2 '--inline writes no pictures' show --dataset=digits --inline --out=x.png
refused 2 '--numbers prints the confusion matrix' show --checkpoint=digits --numbers --only=wrong

# --- as numbers ---
for part in test train; do
    "$TRAINER" evaluate --checkpoint=digits --part=$part >evaluated 2>err || fail "evaluate: $(cat err)"
    good show --checkpoint=digits --numbers --part=$part
    awk 'length > 80 { exit 1 }' out || fail "more than 80 columns: $(cat out)"
    mv out numbers-$part
    checked "the matrix of the $part part" confusion numbers-$part evaluated
done
"$TRAINER" evaluate --checkpoint=iris >evaluated 2>err || fail "evaluate: $(cat err)"
good show --checkpoint=iris --numbers
checked "the matrix of iris" confusion out evaluated
good show --checkpoint=iris --inline --only=confusion
checked "the matrix of iris" confusion out evaluated

# --- in a terminal, and in a pipe ---
good show --dataset=digits --part=test --count=3 --inline
cp out piped
cat >expected <<'END'
digits: 3 of 360 test examples

END
cmp -s <(head -n 2 out) expected || fail "in a pipe: $(cat out)"
[ "$(sed -n 7,8p out)" = "$(awk 'NR > 1437 && NR < 1441 { printf "%s%-9s", sep, $65 } END { print "" }' FS=, \
    <(gzip -dc "$root/datasets/embedded/digits.csv.gz") | sed 's/ *$//')
#0       #1       #2" ] || fail "words in a pipe: $(cat out)"
for arguments in "--dataset=digits" "--dataset=$cifar --data-dir=data --count=2" "--checkpoint=digits"; do
    # shellcheck disable=SC2086 # several words
    good show $arguments --inline
    ! LC_ALL=C grep -nv '^[ -~]*$' out || fail "show $arguments in a pipe: not ASCII"
    awk 'length > 80 { exit 1 }' out || fail "show $arguments: more than 80 columns: $(cat out)"
done
checked "on a terminal" terminal
[ -z "$(ls ./*.png digits/*.png 2>/dev/null)" ] ||
    fail "--inline and --numbers wrote $(ls ./*.png digits/*.png)"

# --- PNG ---
if grep -q -e -DTRAINER_PNG=0 "$BUILD/flags"; then
    refused 2 'show: without --inline or --numbers: this build cannot write PNG: .*libpng-dev' \
        show --dataset=digits
    refused 2 'this build cannot write PNG' show --checkpoint=digits
    [ $failures -eq 0 ]
    exit
fi
good show --dataset=digits --part=test --count=12
grep -Eq '^digits.png: [0-9]+ x [0-9]+ pixels$' out || fail "said: $(cat out)"
checked "digits" digits digits.png
cp digits.png kept.png
refused 3 'digits.png already exists: --replace' show --dataset=digits
cmp -s digits.png kept.png || fail "a refused picture was written"
good show --dataset=digits --replace
cmp -s digits.png kept.png && fail "--replace replaced nothing"
refused 3 'nowhere/x.png' show --dataset=digits --out=nowhere/x.png
good show --dataset=$cifar,augment=none --data-dir=data --count=30 --out=stored.png
checked "stored images" stored stored.png
for what in "a" "b" "c --seed=2" "d --epoch=2"; do
    # shellcheck disable=SC2086 # several words
    good show --dataset=$cifar,augment=none,crop=24,flip=1 --data-dir=data --count=10 \
        --out="${what%% *}.png" ${what#?}
    checked "augmented images ($what)" cut "${what%% *}.png"
done
cmp -s a.png b.png || fail "two pictures with one seed differ"
cmp -s a.png c.png && fail "another seed makes the same picture"
cmp -s a.png d.png && fail "another epoch makes the same picture"

good show --checkpoint=digits --count=1000
[ "$(cut -d: -f1 out | tr '\n' ' ')" = "digits/filters.png digits/confusion.png digits/wrong.png " ] ||
    fail "said: $(cat out)"
"$TRAINER" evaluate --checkpoint=digits >evaluated 2>err
checked "wrong.png" confusion numbers-test evaluated digits/wrong.png
checked "confusion.png" cells digits/confusion.png numbers-test
good show --checkpoint=digits --only=filters --count=20 --out=units.png
checked "filters" filters units.png digits/model.safetensors
refused 3 'digits/filters.png already exists' show --checkpoint=digits/checkpoint
good show --checkpoint=digits/model.safetensors --count=1000 --replace
[ "$(cut -d: -f1 out | tr '\n' ' ')" = "digits/filters.png digits/confusion.png digits/wrong.png " ] ||
    fail "said: $(cat out)"
good show --checkpoint=digits --out=elsewhere --only=all
[ -s elsewhere/wrong.png ] || fail "no elsewhere/wrong.png"
# A run that takes the folder over takes the pictures of the earlier one away.
"$TRAINER" --quiet --epochs=1 --out=digits --replace >out 2>err || fail "$(cat err)"
[ -z "$(ls digits/*.png 2>/dev/null)" ] || fail "after --replace there is $(ls digits/*.png)"

[ $failures -eq 0 ]
