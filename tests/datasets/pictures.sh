#!/bin/bash
# pictures, as a user has them: PNG files of digits train to the same bits as the same numbers in a table,
# whatever the number of threads that decode; evaluate, predict, show, resume and a cluster see what training
# saw; what is too much, damaged or missing is one line.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
need python3
cd "$scratch" || exit 1

if ! "$TRAINER" predict --help | grep -q PNG; then # built without stb_image
    "$TRAINER" list datasets | grep -q '^ *pictures .*this build has no stb_image' ||
        fail "list: $("$TRAINER" list datasets)"
    "$TRAINER" --dataset=pictures:dir=. >out 2>err
    [ $? -eq 2 ] && [ "$(cat err)" = \
        'trainer: pictures: this build cannot read any: it has no stb_image (Debian: libstb-dev)' ] ||
        fail "without stb_image: $(cat err)"
    [ $failures -eq 0 ]
    exit
fi

cat >make.py <<'PYTHON'
import os, random, struct, zlib
r = random.Random(4)
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def png(path, width, height, channels, pixels):
    lines = b"".join(b"\0" + bytes(pixels[y * width * channels:(y + 1) * width * channels])
                     for y in range(height))
    kind = {1: 0, 3: 2}[channels]
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" +
                   chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
single = lambda x: struct.unpack("f", struct.pack("f", x))[0]
scale = single(1 / 255)
# digits of 8 x 8: a bright row whose place is the class. The table has them in the order of classes
# and names.
with open("table.csv", "w") as table:
    for label in range(4):
        os.makedirs(f"digits/{label}")
        for i in range(40):
            pixels = [r.randrange(200, 256) if k // 8 == 2 * label else r.randrange(90) for k in range(64)]
            png(f"digits/{label}/{i:02d}.png", 8, 8, 1, pixels)
            table.write(",".join("%.9g" % single(p * scale) for p in pixels) + f",{label}\n")
# Oblong ones of three colours, in parts: in the middle the colour of the class, at both ends that of
# another one.
for part, count in ("train", 60), ("test", 12):
    for label, name in enumerate(("blau", "grün", "rot")):
        os.makedirs(f"colours/{part}/{name}")
        for i in range(count // 3):
            width, height = (24 + i, 12) if i % 2 else (11, 23 + i)
            def pixel(x, y):
                middle = abs(2 * x - width) < 12 and abs(2 * y - height) < 12
                c = (label + (0 if middle else 1)) % 3
                return [r.randrange(150, 256) if k == c else r.randrange(100) for k in range(3)]
            png(f"colours/{part}/{name}/{i:02d}.png", width, height, 3,
                [v for y in range(height) for x in range(width) for v in pixel(x, y)])
PYTHON
python3 make.py || exit 1

train() { "$TRAINER" --devices=cpu:0 --batch=20 "$@" >out 2>err || fail "trainer $*: $(cat err)"; }
same() { same_weights "$2" "$1" "$2"; }

# --- the same bits as the same numbers in a table, for any number of threads; 8 is 8x8 ---
digits=pictures:dir=digits,size=8x8,channels=1,split_seed=5,test=0.3
train --dataset=$digits,threads=1 --model=mlp:hidden=12 --epochs=3 --out=digits-1
train --dataset=${digits/8x8/8},threads=4 --model=mlp:hidden=12 --epochs=3 --out=digits-4
train --dataset=csv:file=table.csv,standardize=0,split_seed=5,test=0.3 --model=mlp:hidden=12 --epochs=3 \
    --out=table
same digits-1 digits-4
same digits-1 table
"$TRAINER" evaluate --checkpoint=digits-1 >seen 2>err || fail "evaluate: $(cat err)"
[ ! -s err ] || fail "evaluate said: $(cat err)"
"$TRAINER" evaluate --checkpoint=digits-1 --dataset=$digits,threads=3 2>err | cmp -s - seen && [ ! -s err ] ||
    fail "evaluate with other threads: $(cat err)"
"$TRAINER" evaluate --checkpoint=table 2>err | cmp -s - seen || fail "evaluate: $(cat seen)"
"$TRAINER" evaluate --checkpoint=digits-1 --dataset=$digits,fit=squash >out 2>err
grep -q '^trainer: evaluated on pictures:.*fit=squash, but the network was trained on ' err ||
    fail "another data set: $(cat err)"

# --- resumed, validated and taken ---
train --dataset=$digits --model=mlp:hidden=12 --epochs=2 --out=first
train --resume=first --epochs=3 --out=second
same digits-1 second
train --dataset=$digits,take=30 --model=mlp:hidden=12 --epochs=1 --validation=0.2 --out=taken
"$TRAINER" evaluate --checkpoint=taken --part=validation >out 2>err || fail "validation: $(cat err)"

# --- two processes: each decodes for itself ---
new_cluster 1 1
# shellcheck disable=SC2086 # several words
{
    start worker "$TRAINER" $hosts --job-name=worker --task-index=0 --devices=cpu:0
    start server "$TRAINER" $hosts --job-name=ps --task-index=0 --batch=20 --dataset=$digits \
        --model=mlp:hidden=12 --epochs=3 --out=cluster
}
ends 0 server worker
same digits-1 cluster

# --- predict prepares a picture as training did: its middle, scaled, rounded, standardized ---
check_predict() { # run
    "$TRAINER" evaluate --checkpoint="$1" >seen 2>err || fail "evaluate $1: $(cat err)"
    "$TRAINER" predict --checkpoint="$1" --top=3 colours/test/*/*.png >rows 2>err ||
        fail "predict $1: $(cat err)"
    python3 - <<'PYTHON' || fail "$1: evaluate and predict differ: $(cat seen rows)"
import math, re
seen = dict(re.findall(r"(Test-\w+): ([0-9.]+)", open("seen").read()))
right = cost = count = 0
for line in open("rows"):
    label = line.split("/")[2]
    said = re.findall(r'"(\w+)" \(([0-9.]+)%\)', line)
    right += said[0][0] == label
    cost -= math.log(max(float(dict(said)[label]) / 100, 0.0005))
    count += 1
assert count == 12 and abs(right / count - float(seen["Test-Accuracy"])) < 1e-6, (right, seen)
assert abs(cost / count - float(seen["Test-Cost"])) < 0.004, (cost / count, seen)
PYTHON
}
for settings in fit=crop fit=squash fit=crop,standardize=image,flip=1,pad=1; do
    train --dataset=pictures:dir=colours,size=6x7,$settings --model=mlp:hidden=9 --epochs=4 --out=run
    check_predict run
    grep -aq "\"fit\":\"${settings:4:4}" run/model.safetensors || fail "$settings: not in the model"
    rm -r run
done
train --dataset=pictures:dir=colours,size=6x7 --model=mlp:hidden=9 --epochs=40 --out=run
"$TRAINER" evaluate --checkpoint=run | grep -q 'Test-Accuracy: 1' ||
    fail "the middle says the class: $("$TRAINER" evaluate --checkpoint=run)"
"$TRAINER" evaluate --checkpoint=run --dataset=pictures:dir=colours,size=6x6 >out 2>err
[ $? -eq 2 ] && grep -q 'examples \[6, 6, 3\] in 3 classes, expected \[6, 7, 3\]' err ||
    fail "another size: $(cat err)"

# --- show ---
"$TRAINER" show --dataset=pictures:dir=colours,size=8x8,flip=1 --inline >out 2>err || fail "show: $(cat err)"
grep -q '^pictures: [0-9]* of 60 training examples' out && grep -q 'gr.*n' out || fail "show: $(cat out)"

# --- one line each ---
refused() { # exit code, words, arguments...
    local want=$1 words=$2 code
    shift 2
    "$TRAINER" "$@" --epochs=1 --quiet --out=refused >out 2>err
    code=$?
    [ $code -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -Eq -e "^trainer: .*$words" err ||
        fail "$*: exit code $code, $(cat err), expected $want, $words"
    [ ! -e refused ] || fail "$*: left a folder"
}
refused 2 'pictures: found no folder, expected pictures:dir=DIR$' --dataset=pictures
refused 2 "pictures: size=32x: expected height x width, 1 to 4096 each, as in 32x32, or a square's side$" \
    --dataset=pictures:dir=digits,size=32x
refused 3 'nowhere: No such file or directory$' --dataset=pictures:dir=nowhere
grep -Eqa '__[at]san_init' "$TRAINER" || # which need more addresses themselves
    (
        ulimit -v 3000000 && refused 4 \
            'pictures: 160 pictures of 4096 x 4096 x 3 take 8\.1 GB of memory, expected at most the 3\.1 '\
'GB there are; a smaller size=HxW, take=N or trainer pack needs less$' \
            --dataset=pictures:dir=digits,size=4096x4096 && [ $failures -eq 0 ]
    ) || failures=$((failures + 1))
cp -r digits damaged && echo nothing >damaged/2/07.png && echo notes >damaged/notes.txt
refused 3 'damaged/2/07.png: no PNG, JPEG, BMP or GIF picture$' --dataset=pictures:dir=damaged
train --dataset=pictures:dir=damaged,damaged=skip --model=softmax --epochs=1 --quiet --out=skipped
[ "$(cat err)" = \
    'trainer: 1 damaged picture left out, the first is damaged/2/07.png: no PNG, JPEG, '\
'BMP or GIF picture; 1 other file or folder not used, the first is damaged/notes.txt' ] ||
    fail "skipped: $(cat err)"

[ $failures -eq 0 ]
