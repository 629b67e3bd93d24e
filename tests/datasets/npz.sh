#!/bin/bash
# Training on NumPy's arrays, from files made by Python's own library: that an archive trains as the same
# examples do in other formats, bit for bit, that all verbs take it, and that what is damaged or hostile is
# one line with code 3.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

refused() { # exit code, words, data set
    timeout 20 "$TRAINER" --dataset="$3" --epochs=1 --quiet --out=never >out 2>err
    local code=$?
    [ $code -eq "$1" ] || fail "$3: exit code $code, expected $1: $(cat err)"
    grep -qF -- "$2" err || fail "$3: no \"$2\" in: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "$3: not one line: $(cat err)"
}

same() { same_weights "$2" "$1" "$2"; }

train() { # folder, data set, options...
    local out=$1 dataset=$2
    shift 2
    good --dataset="$dataset" --devices=cpu:0,cpu:1 --strategy=sync --batch=8 --epochs=2 \
        --quiet --replace --out="$out" "$@"
    [ ! -s err ] || fail "$dataset: $(cat err)"
}

cat >make.py <<'PYTHON'
import os, random, struct, sys, zipfile
from npz_files import npy, npz
r = random.Random(1)

# --- images, as mnist's own files and as Keras packs them ---
def part(count):
    labels = [i % 10 for i in range(count)]
    r.shuffle(labels)
    return (bytes(min(255, 20 * l + r.randrange(60)) * (p % 28 > 2 * l) for l in labels for p in range(784)),
            labels)
def idx(name, magic, dims, data):
    with open("data/mnist/" + name, "wb") as file:
        file.write(struct.pack(f">{1 + len(dims)}I", magic, *dims) + data)
os.makedirs("data/mnist")
train, test = part(200), part(50)
for name, (pixels, labels) in (("train", train), ("t10k", test)):
    idx(name + "-images-idx3-ubyte", 0x803, (len(labels), 28, 28), pixels)
    idx(name + "-labels-idx1-ubyte", 0x801, (len(labels),), bytes(labels))
def arrays(label=lambda l: npy((len(l),), bytes(l), "|u1"), image=lambda n, p: npy((n, 28, 28), p, "|u1")):
    return {"x_test": image(50, test[0]), "x_train": image(200, train[0]), "y_train": label(train[1]),
            "y_test": label(test[1])}
npz("mnist.npz", **arrays())
npz("packed.npz", zipfile.ZIP_DEFLATED, **arrays())
npz("narrow.npz", zipfile.ZIP_DEFLATED, wide=False, **arrays())
npz("stream.npz", zipfile.ZIP_DEFLATED, stream=True, wide=False, **arrays())
npz("wide-stream.npz", zipfile.ZIP_STORED, stream=True, **arrays())
npz("onehot.npz",
    **arrays(lambda l: npy((len(l), 10), [float(c == k) for k in l for c in range(10)], ">f8", 2)))
npz("column.npz", **arrays(lambda l: npy((len(l), 1), [k * 3 - 7 for k in l], ">i8", 3)))
def fortran(n, p):
    return npy((n, 28, 28),
               bytes(p[784 * i + 28 * y + x] for x in range(28) for y in range(28) for i in range(n)), "|u1",
               1, True)
npz("fortran.npz", zipfile.ZIP_DEFLATED, **arrays(image=fortran))
scaled = struct.unpack("f", struct.pack("f", 1 / 255))[0]
def floats(n, p): # as the program scales bytes
    return npy((n, 28, 28, 1), [struct.unpack("f", struct.pack("f", b * scaled))[0] for b in p], "<f4")
npz("floats.npz", **arrays(image=floats))
for name, data in arrays().items():
    open(name + ".npy", "wb").write(data)
with zipfile.ZipFile("comment.npz", "w") as archive:
    for name, data in arrays().items():
        archive.writestr(name + ".npy", data)
    archive.writestr("notes.txt", "no array")
    archive.comment = b"PK\5\6 and more" * 9

# --- a table, as CSV and as an array ---
rows = [[r.randrange(1000) / 8, r.randrange(1000) / 8, r.randrange(3)] for _ in range(60)]
open("table.csv", "w").write("".join(f"{a},{b},{c * 5 - 3}\n" for a, b, c in rows))
numbers = [v for a, b, _ in rows for v in (a, b)]
for name, dtype in (("f4", "<f4"), ("f8", ">f8"), ("f2", "<f2")):
    npz(f"table-{name}.npz", data=npy((60, 2), numbers, dtype),
        target=npy((60,), [c * 5 - 3 for *_, c in rows], "<i2"))
npz("odd.npz", a=npy((1,), [0]), b=npy((1,), [0]))
npz("cut.npz", **{name: npy((1,), [0]) for name in ("X", "y", "X_test", "y_test")})
open("rows.csv", "w").write("".join(f"{a},{b}\n" for a, b, _ in rows[:5]))
some = npy((5, 2), numbers[:10], ">f8")
open("rows.npy", "wb").write(some)
npz("rows.npz", zipfile.ZIP_DEFLATED, y=npy((1,), [0]), x=some)
open("first.npy", "wb").write(npy((2,), numbers[:2]))
open("three.npy", "wb").write(npy((4, 3), range(12)))
open("scaled.npy", "wb").write(floats(50, test[0]))
npz("color.npz", x_train=npy((40, 4, 4, 3), bytes(r.randrange(256) for _ in range(40 * 48)), "|u1"),
    y_train=npy((40,), [i % 2 for i in range(40)], "|u1"))
open("sideways.npy", "wb").write(npy((5, 3, 4, 4), bytes(240), "|u1"))
PYTHON
python3 make.py || fail "no files"

# --- the same images, the same bits ---
train mnist mnist --data-dir=data
for name in mnist packed narrow stream wide-stream onehot column fortran floats comment; do
    train "run-$name" "npz:file=$name.npz"
    same mnist "run-$name"
done
train files npz:x=x_train.npy,y=y_train.npy,x_test=x_test.npy,y_test=y_test.npy
same mnist files
train convolved mnist:take=16 --data-dir=data --model=cnn --epochs=1
train convolved-arrays npz:file=mnist.npz,take=16 --model=cnn --epochs=1 # [N, H, W]: one channel
same convolved convolved-arrays
good evaluate --checkpoint=run-column --part=test
cp out test-of-column
good evaluate --checkpoint=mnist --data-dir=data
diff out test-of-column >&2 || fail "another result of the test"

# --- the same table, the same split, the same bits ---
train csv csv:file=table.csv,split_seed=3,test=0.3
for name in f4 f8 f2; do
    train "table-$name" "npz:file=table-$name.npz,x=data,y=target,split_seed=3,test=0.3"
    same csv "table-$name"
done
train other npz:file=table-f4.npz,x=data,y=target,split_seed=4,test=0.3
cmp -s other/model.safetensors table-f4/model.safetensors && fail "split_seed changes nothing"
good predict --checkpoint=csv rows.csv
cp out csv.out
good predict --checkpoint=table-f8 rows.csv
diff out csv.out >&2 || fail "predicts otherwise than with csv"

# --- rows of arrays are predicted as the same rows of a table, images as those of the data set ---
for file in rows.npy rows.npz; do
    good predict --checkpoint=csv $file
    diff out csv.out >&2 || fail "$file: predicted otherwise than as a table"
done
good predict --checkpoint=csv first.npy
[ "$(cat out)" = "$(head -n 1 csv.out)" ] || fail "one row alone: $(cat out)"
good predict --checkpoint=csv --format=csv rows.npy rows.npz
[ "$(cut -d, -f1 out | tr '\n' ' ')" = "file $(printf 'rows.npy %.0s' 1 2 3 4 5)$(
    printf 'rows.npz %.0s' 1 2 3 4 5)" ] || fail "two files of arrays: $(cat out)"
for run in mnist convolved; do
    good evaluate --checkpoint=$run --data-dir=data
    right=$(sed -n 's/^Test-Accuracy: //p' out)
    good predict --checkpoint=$run --format=csv x_test.npy
    python3 - "$right" <<'PYTHON' || fail "$run: the images are predicted otherwise than they are tested"
import csv, sys
labels = open("y_test.npy", "rb").read()[-50:]
said = [int(row["prediction"]) for row in csv.DictReader(open("out"))]
exit(len(said) != 50 or f"{sum(a == b for a, b in zip(said, labels)) / 50:.4f}" != sys.argv[1])
PYTHON
done
good predict --checkpoint=convolved --format=csv x_test.npy
sed -n '1,2s/^[^,]*,//p' out >first.out
python3 - <<'PYTHON'
images = open("x_test.npy", "rb").read()
header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (28, 28), }".ljust(117) + b"\n"
open("image.npy", "wb").write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header +
                              images[-50 * 784:-49 * 784])
open("text.npy", "w").write("1,2\n")
PYTHON
good predict --checkpoint=convolved --format=csv image.npy
diff <(sed 's/^[^,]*,//' out) first.out >&2 || fail "one image alone"
"$TRAINER" predict --checkpoint=mnist scaled.npy >out 2>err
grep -q '^trainer: scaled.npy: numbers from 0 to 1, but the network was trained on pixels' err ||
    fail "pixels from 0 to 1: $(cat err)"
wrong_array() { # words, checkpoint, file
    "$TRAINER" predict --checkpoint="$2" "$3" >out 2>err
    [ $? -eq 3 ] && [ "$(cat err)" = "trainer: $1" ] || fail "$3: exit code $?: $(cat err)"
}
wrong_array 'three.npy: found <f4 [4, 3], expected rows that are examples [2] of the network' csv three.npy
wrong_array 'text.npy: found no array as NumPy saves it (no magic at its beginning)' csv text.npy
wrong_array 'odd.npz: found a, b, expected one array, or one called x' csv odd.npz
train color npz:file=color.npz --model=softmax
wrong_array 'sideways.npy: found |u1 [5, 3, 4, 4], expected rows that are examples [4, 4, 3] of the network' \
    color sideways.npy
train plain npz:file=table-f4.npz,x=data,y=target,standardize=0
train plain-csv csv:file=table.csv,standardize=0
same plain plain-csv

# --- everything else ---
train held npz:file=mnist.npz,take=150 --validation=0.2
train held-mnist mnist:take=150 --validation=0.2 --data-dir=data
same held held-mnist
train whole npz:file=packed.npz,take=160
train half npz:file=packed.npz,take=160 --epochs=1
good --resume=half --devices=cpu:0,cpu:1 --epochs=2 --quiet
same half whole
good show --dataset=npz:file=mnist.npz --inline --count=2
cp out npz.out
good show --dataset=mnist --data-dir=data --inline --count=2
diff <(sed 1d out) <(sed 1d npz.out) >&2 || fail "shows other examples"
"$TRAINER" show --dataset=npz:file=table-f4.npz,x=data,y=target --inline >out 2>err && fail "shows a table"
grep -q 'are not images' err || fail "a table: $(cat err)"

# --- over the bridge ---
port=$((15000 + $$ % 15000))
cluster="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))"
options="--dataset=npz:file=packed.npz --strategy=sync --batch=8 --epochs=2 --quiet"
# shellcheck disable=SC2086 # several words
{
    timeout 100 "$TRAINER" --job=ps --task=0 $cluster $options --replace --out=bridge >ps.out 2>&1 &
    ps=$!
    for task in 0 1; do
        timeout 100 "$TRAINER" --job=worker --task=$task $cluster $options --devices=cpu:0 \
            >worker$task.out 2>&1 &
    done
}
wait $ps || fail "the parameter server: $(cat ps.out)"
wait
same mnist bridge

# --- names ---
refused 2 'npz: found no file, expected npz:file=FILE.npz, or npz:x=FILE.npy,y=FILE.npy' npz
refused 2 'found only x=, expected x= and y=' npz:file=mnist.npz,x=x_train
refused 2 'found only y_test=, expected x_test= and y_test=' npz:file=mnist.npz,y_test=y_test
refused 2 'found only x=, expected x= and y=' npz:x=x_train.npy
refused 2 'table-f4.npz: found data, target, expected x_train and y_train, or '\
'npz:file=table-f4.npz,x=data,y=target' \
    npz:file=table-f4.npz
refused 2 'odd.npz: found a, b, expected x_train and y_train, or npz:file=FILE,x=NAME,y=NAME' npz:file=odd.npz
refused 2 'cut.npz: found X, y, X_test, y_test, expected x_train and y_train, or '\
'npz:file=cut.npz,x=X,y=y,x_test=X_test,y_test=y_test' npz:file=cut.npz
refused 2 'mnist.npz: found no array "images", expected one of x_test, x_train, y_train, y_test' \
    npz:file=mnist.npz,x=images,y=y_train
refused 2 'x_train.npy: one array (.npy), expected npz:x=FILE.npy,y=FILE.npy' npz:file=x_train.npy
refused 3 'mnist.npz: a zip archive, expected an array (npz:file=FILE takes it)' npz:x=mnist.npz,y=y_train.npy
refused 3 'none.npz: No such file or directory' npz:file=none.npz
refused 3 '.: a folder, expected a file' npz:file=.
mkfifo pipe
refused 3 'pipe: a pipe or device, expected a file' npz:file=pipe
: >empty
refused 3 'empty: found an empty file' npz:file=empty
refused 3 'table.csv: found no zip archive, or one that is cut (no end record)' npz:file=table.csv

# --- what is damaged or hostile: each a file and its words ---
cat >hostile.py <<'PYTHON'
import struct, zipfile
from npz_files import npy, npz
x, y = npy((4, 2), range(8)), npy((4,), [0, 1, 0, 1], "<i4")
def case(words, name, **arrays):
    method = arrays.pop("method", zipfile.ZIP_STORED)
    npz(name + ".npz", method, **{"x_train": x, "y_train": y, **arrays})
    print(f"{name}.npz\t{words}")
def patched(words, name, edit, method=zipfile.ZIP_STORED):
    npz("base.npz", method, wide=False, x_train=x, y_train=y)
    data = bytearray(open("base.npz", "rb").read())
    end = data.rindex(b"PK\5\6")
    entry = struct.unpack_from("<I", data, end + 16)[0]
    data = edit(data, entry, end) or data
    open(name + ".npz", "wb").write(data)
    print(f"{name}.npz\t{words}")
def put(form, at_entry, *values):
    return lambda data, entry, end: struct.pack_into(form, data, entry + at_entry, *values)
def both(form, local, at_entry, *values):
    def edit(data, entry, end):
        struct.pack_into(form, data, local, *values)
        struct.pack_into(form, data, entry + at_entry, *values)
    return edit

# numbers
inf, nan = float("inf"), float("nan")
case("nan.npz: x_train: row 2, number 1 (from 1): found nan, expected a finite float32", "nan",
     x_train=npy((4, 2), [0, 1, nan, 3, 4, 5, 6, 7]))
case("inf.npz: x_train: row 4, number 2 (from 1): found inf, expected a finite float32", "inf",
     x_train=npy((4, 2), [0, 1, 2, 3, 4, 5, 6, -inf], ">f2"))
case("wide.npz: x_train: row 1, number 2 (from 1): found inf, or what is too large, expected a finite "
     "float32", "wide", x_train=npy((4, 2), [0, 1e39, 2, 3, 4, 5, 6, 7], "<f8"))
case("objects.npz: x_train: found Python objects (dtype object)", "objects",
     x_train=npy((4, 2), b"\x80\x04N." * 8, "|O"))
case("few.npz: y_train: found 3 rows, expected 4, one for each example of few.npz: x_train", "few",
     y_train=npy((3,), [0, 1, 0], "<i4"))
case("one.npz: y_train: found one class, 7, in all 3 training rows, expected at least two", "one",
     y_train=npy((4,), [7] * 4, "<i4"))
case("float.npz: y_test: found <f4 [2], expected integers (astype('int64')), or one row of 0 and 1 per "
     "example", "float", x_test=npy((2, 2), range(4)), y_test=npy((2,), [0, 1]))
case("cube.npz: y_train: found <f4 [4, 1, 1], expected integers (astype('int64')), or one row of 0 and 1 per "
     "example", "cube", y_train=npy((4, 1, 1), [0, 1, 0, 1]))
case("two.npz: y_test: row 2 (from 1): found 2 columns with a 1, expected one", "two",
     y_train=npy((4, 2), [0, 1, 1, 0, 0, 1, 1, 0], "|u1"), x_test=npy((2, 2), range(4)),
     y_test=npy((2, 2), [0, 1, 1, 1], "|u1"))
case("counts.npz: y_train: row 1, column 2 (from 1): found 2, expected 0 or 1", "counts",
     y_train=npy((4, 2), [0, 2, 1, 0, 0, 1, 1, 0], "|u1"))
case("half.npz: y_test: row 1, column 2 (from 1): found 0.5, expected 0 or 1", "half",
     y_train=npy((4, 2), [0, 0, 1, 1, 0, 1, 1, 0], "|u1"), x_test=npy((2, 2), range(4)),
     y_test=npy((2, 2), [0, .5, 1, 0]))
case("endless.npz: y_train: row 3, number 1 (from 1): found inf, expected a finite float32", "endless",
     y_train=npy((4,), [0, .5, inf, 0]))
case("narrow.npz: y_test: found 1 columns, expected 2 as in narrow.npz: y_train", "narrow",
     y_train=npy((4, 2), [0, .5, 1, 0, 0, 1, 1, 0]), x_test=npy((2, 2), range(4)), y_test=npy((2,), [0, .5]))
case("above.npz: y_train: row 3 (from 1): found a class above 9223372036854775807", "above",
     y_train=npy((4,), [0, 1, 2**63, 1], "<u8"))
case(": found class 2, expected one of the 3 of the training part; another split_seed= splits otherwise, "
     "x_test= and y_test= name rows to test", "alone", y_train=npy((4,), [0, 1, 2, 3], "<i4"))
case("new.npz: y_test: row 2 (from 1): found class 5, expected one of the 2 of the training part", "new",
     x_test=npy((2, 2), range(4)), y_test=npy((2,), [0, 5], "|u1"))
case("shapes.npz: x_test: found <f4 [2, 3], expected examples as in shapes.npz: x_train, <f4 [4, 2]",
     "shapes", x_test=npy((2, 3), range(6)), y_test=npy((2,), [0, 1], "|u1"))

for name, data in (("nan-x", npy((4, 2), [0, 1, 2, 3, 4, nan, 6, 7])), ("y", y)):
    open(name + ".npy", "wb").write(data)

# sizes
case("huge.npz: x_train: found 32 bytes of items, expected 4000000000", "huge",
     x_train=npy((1000000000,), range(8)))
case("huge-packed.npz: x_train: found 160 bytes in the directory, expected 4000000128 for <f4 [1000000000]",
     "huge-packed", x_train=npy((1000000000,), range(8)), method=zipfile.ZIP_DEFLATED)
case("dims.npz: x_train: shape: found size 9223372036854775808, expected 1 to 2147483647", "dims",
     x_train=npy((2**63,), range(8)))
case("many.npz: x_train: found shape [2147483647, 2147483647, 2147483647], more than can be addressed",
     "many", x_train=npy((2**31 - 1,) * 3, range(8)))
case("bomb.npz: x_train: found 100000128 bytes packed into", "bomb",
     x_train=npy((10000, 10000), bytes(10**8), "|u1"), method=zipfile.ZIP_DEFLATED)
case("long.npz: x_train: found a header of 200000 bytes, expected at most 65536", "long",
     x_train=b"\x93NUMPY\2\0" + struct.pack("<I", 200000) + b" " * 200000, method=zipfile.ZIP_DEFLATED)
case("nested.npz: x_train: a zip archive, expected an array", "nested", x_train=open("nan.npz", "rb").read(),
     method=zipfile.ZIP_DEFLATED)
case("bzip2.npz: x_train: packed by method 12, expected stored (0) or deflated (8)", "bzip2",
     method=zipfile.ZIP_BZIP2)

# the archive
patched('crc.npz: x_train: found CRC-32', "crc", both("<I", 14, 16, 12345))
patched('crc-packed.npz: x_train: found CRC-32', "crc-packed", both("<I", 14, 16, 12345),
        zipfile.ZIP_DEFLATED)
patched('member "x_train.npy": its header has other sizes or another CRC-32', "crc-two", put("<I", 16, 12345))
patched('member "x_train.npy": its header has another method', "method", put("<H", 10, 8))
patched('member "y_train.npy": its header has another name', "name", put("<7s", 46, b"y_train"))
patched('x_train: encrypted, expected an array that is not', "encrypted", both("<H", 6, 8, 1))
patched('member "x_train.npy": longer than the archive', "longer", put("<I", 20, 10**9))
patched('member "x_train.npy": no sizes of 64 bits where they are said to be', "absent64",
        put("<I", 20, 2**32 - 1))
patched('member "x_train.npy": no header where it is said to begin', "begin", put("<I", 42, 17))
patched('found a directory of 65534 members', "count",
        lambda d, e, end: struct.pack_into("<H", d, end + 10, 65534))
patched('found a directory of 2 members in', "place",
        lambda d, e, end: struct.pack_into("<I", d, end + 16, 2**31))
patched('bytes more than its 1 members', "fewer", lambda d, e, end: struct.pack_into("<H", d, end + 10, 1))
patched('found no zip archive, or one that is cut', "cut", lambda d, e, end: d[:-9])
def overlap(data, entry, end): # the second member is the first one again, by another name of the same length
    second = entry + 46 + len("x_train.npy")
    data[second + 46:second + 47] = b"x"
    data[second + 16:second + 28] = data[entry + 16:entry + 28]
    data[second + 42:second + 46] = data[entry + 42:entry + 46]
patched('member "x_train.npy": overlaps another one', "overlap", overlap)
def twice(data, entry, end):
    second = entry + 46 + len("x_train.npy")
    data[second + 46:second + 47] = b"x"
    at = data.index(b"y_train.npy")
    data[at:at + 1] = b"x"
patched('member "x_train.npy": two of that name', "twice", twice)
def enormous(data, entry, end): # 2^63 bytes, said in 64 bits everywhere
    extra = struct.pack("<HHQQ", 1, 16, 2**63, 100)
    local = data[:30 + 11]
    struct.pack_into("<II", local, 18, 2**32 - 1, 2**32 - 1)
    struct.pack_into("<H", local, 28, len(extra))
    body = bytes(100)
    central = data[entry:entry + 46 + 11]
    struct.pack_into("<II", central, 20, 2**32 - 1, 2**32 - 1)
    struct.pack_into("<H", central, 30, len(extra))
    start = local + extra + body
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(central + extra), len(start), 0)
    return start + central + extra + tail
patched('member "x_train.npy": stored, with two different sizes', "enormous", enormous)
def locator(data, entry, end):
    data[end:end] = struct.pack("<4sIQI", b"PK\6\7", 0, 2**63, 1)
    struct.pack_into("<H", data, end + 20 + 10, 65535)
patched('the zip64 end record is not where it is said', "locator", locator)
PYTHON
python3 hostile.py >cases || fail "no hostile files"
[ "$(wc -l <cases)" -ge 36 ] || fail "only $(wc -l <cases) hostile files"
while IFS=$'\t' read -r file words; do refused 3 "$words" "npz:file=$file"; done <cases

refused 3 'nan-x.npy: row 3, number 2 (from 1): found nan' \
    npz:x=nan-x.npy,y=y.npy,x_test=nan-x.npy,y_test=y.npy

# A cut archive is one line.
size=$(stat -c %s packed.npz)
for ((cut = 1; cut < size; cut += size / 40)); do
    head -c "$cut" packed.npz >some.npz
    refused 3 'some.npz: ' npz:file=some.npz
done
[ ! -e never ] || fail "a refused data set left a run"
[ $failures -eq 0 ]
