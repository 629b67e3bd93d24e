#!/bin/bash
# Training on augmented images end to end, on files made here: that evaluate and predict see what the tests of
# the training saw, that the same seed gives the same weights however batches are built, in one run, in two,
# and over the bridge.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

good() { # arguments...: standard output is left in the file out
    "$TRAINER" "$@" >out 2>err || fail "trainer $*: exit code $?: $(cat err)"
}

refused() { # exit code, words, arguments...
    local code=$1 words=$2
    shift 2
    "$TRAINER" "$@" >out 2>err
    [ $? -eq "$code" ] || fail "trainer $*: another exit code than $code: $(cat err)"
    grep -qF -- "$words" err || fail "trainer $*: no \"$words\" in: $(cat err)"
}

# Each class has a colour and stripes of its own; a hundred images, over and over, so that whole files stay
# small in every other way.
python3 - <<'PY'
import os, random, struct, zlib
os.makedirs('data/cifar10')
def images(seed):
    r, records = random.Random(seed), []
    for _ in range(100):
        label = r.randrange(10)
        records.append((label, bytes(min(255, max(0, 20 * label * (channel + 1) % 256 +
                                                  60 * (i // (label + 1) % 2) + r.randrange(-90, 90)))
                                     for channel in range(3) for i in range(1024))))
    return records
def write(name, records):
    with open(f'data/cifar10/{name}.bin', 'wb') as file:
        file.write(b''.join(bytes([label]) + pixels for label, pixels in records) * 100)
write('data_batch_1', images(1))
test = images(2)
write('test_batch', test)
with open('images.csv', 'w') as file:
    for _, pixels in test:
        file.write(','.join(str(pixels[1024 * channel + i]) for i in range(1024) for channel in range(3)) +
                   '\n')
def png(path, pixels):
    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    lines = b''.join(b'\0' +
                     bytes(pixels[1024 * channel + 32 * y + x] for x in range(32) for channel in range(3))
                     for y in range(32))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 32, 32, 8, 2, 0, 0, 0)) +
                   chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b''))
for i in range(5):
    png(f'picture-{i}.png', test[i][1])
names = 'airplane automobile bird cat deer dog frog horse ship truck'.split()
with open('labels', 'w') as file:
    file.writelines(names[label] + '\n' for label, _ in test)
PY

train() { # folder, data set's settings, more...
    local out=$1 settings=$2
    shift 2
    good --data-dir=data --dataset="cifar10:take=320,$settings" --model=mlp:hidden=8 --batch=16 \
        --optimizer=sgd:rate=0.05 --devices=cpu:0,cpu:1 --epochs=2 --quiet --replace --out="$out" "$@"
}

# --- what is tested, evaluated and predicted is the same ---
plain=augment=none \
    chains="$plain augment=usual augment=distnet $plain,whiten=1,crop=31,standardize=image \
        $plain,pad=4,crop=20,flip=1,cutout=8,standardize=image \
        $plain,crop=20,brightness=30,contrast=0.5-1.5" \
    epochs=3 least=12
pictures=$("$TRAINER" predict --help | grep PNG) # or built without stb_image
# Every run is tested on 10,000 images, which takes a sanitizer long.
grep -Eqa '__[at]san_init' "$TRAINER" &&
    chains="augment=distnet,crop=12 $plain,whiten=1 $plain,pad=4,crop=20,brightness=30,contrast=0.5-1.5" \
        epochs=2 least=4
for settings in $chains; do
    train run "$settings" --epochs=$epochs
    tested=$(sed -n 's/^Test-Accuracy: //p' out)
    good evaluate --checkpoint=run --data-dir=data
    [ "$tested" = "$(sed -n 's/^Test-Accuracy: //p' out)" ] ||
        fail "$settings: training says $tested, evaluate: $(cat out)"
    good predict --checkpoint=run images.csv
    right=$(sed 's/^Prediction is "\(.*\)" (.*/\1/' out | paste - labels | awk '$1 == $2' | wc -l)
    [ "$tested" = "$(awk "BEGIN { printf \"%.4f\", $right / 100 }")" ] ||
        fail "$settings: accuracy $tested, but $right of 100 predicted"
    if [ -n "$pictures" ]; then
        head -n 5 out >rows
        good predict --checkpoint=run picture-?.png
        sed 's/^picture-[0-9]*\.png: //' out | cmp -s - rows ||
            fail "$settings: pictures and rows differ: $(cat out rows)"
    fi
    [ "$right" -gt $least ] || fail "$settings: only $right of 100 right"
done
refused 2 "examples [32, 32, 3] in 10 classes, expected [20, 20, 3]" evaluate --checkpoint=run \
    --data-dir=data --dataset=cifar10:take=1,augment=none
printf '1,2,3\n' >short.csv
refused 3 "short.csv" predict --checkpoint=run short.csv
sed '1s/^[0-9]*/256/' images.csv >wrong.csv
refused 3 "wrong.csv: found 256, expected bytes of images, 0 to 255" predict --checkpoint=run wrong.csv
sed '1s/^[0-9]*/0.5/' images.csv >wrong.csv
refused 3 "wrong.csv: found 0.5, expected bytes of images, 0 to 255" predict --checkpoint=run wrong.csv

# --- the same seed, the same pixels; nothing is tested, which is most of the work of such a run ---
all=augment=distnet,crop=8,cutout=4,rotate=20,mixup=0.4,cutmix=1
train once "$all" --no-test --prefetch=0
train again "$all" --no-test --prefetch=3
same_weights "batches built ahead" once again
train first "$all" --no-test --epochs=1
good --resume=first --data-dir=data --no-test --epochs=2 --quiet
same_weights "an interrupted run" once first
train other "$all" --no-test --seed=2
other_weights "another seed" once other
train other "${all/cutout=4/cutout=3}" --no-test
other_weights "another cutout" once other
train other "$all,whiten=1" --no-test
other_weights "whitened images" once other

# --- over the bridge ---
# A port that nobody has and that the kernel gives to nobody who connects.
free_port() {
    python3 - <<'PY'
import random, socket
while True:
    port = random.randrange(15000, 30000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            print(port)
            break
        except OSError:
            pass
PY
}
port=$(free_port)
cluster="--ps-hosts=127.0.0.1:$port --worker-hosts=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))"
options="--data-dir=data --dataset=cifar10:take=320,$all --model=mlp:hidden=8 --batch=16 \
    --optimizer=sgd:rate=0.05 --epochs=2 --no-test --quiet"
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
same_weights "over the bridge: $(cat ps.out worker*.out)" once bridge

# --- refused ---
refused 2 'augment=foo: expected one of none|distnet' --data-dir=data --dataset=cifar10:augment=foo
refused 2 'cifar10: crop=33: expected at most 32, the padded image' --data-dir=data --dataset=cifar10:crop=33
refused 3 'cifar10: found no data_batch_2.bin (nor data_batch_2.bin.gz)' \
    --data-dir=data --dataset=cifar10
refused 3 'cifar10: found no data_batch_2.bin (nor data_batch_2.bin.gz)' \
    --data-dir=data --dataset=cifar10:take=2147483647
truncate -s 30726927 data/cifar10/test_batch.bin
refused 3 'found 30726927 bytes, expected 30730000' --data-dir=data --dataset=cifar10:take=1
[ $failures -eq 0 ]
