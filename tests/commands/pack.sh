#!/bin/bash
# trainer pack, as a user has it: training, testing and going on from a pack give the bits of the data set it
# was made of; blocks are an order of their own; what is there, damaged, cut or no pack is one line; nothing
# is left of a pack that was not finished; pictures are as they were chosen.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
need python3
cd "$scratch" || exit 1

same() { same_weights "$2" "$1" "$2"; }
train() { # folder, data set, options...
    local out=$1 dataset=$2
    shift 2
    good --dataset="$dataset" --devices=cpu:0,cpu:1 --strategy=sync --batch=20 --epochs=2 \
        --quiet --out="$out" "$@"
}

# --- the same bits ---
good pack digits digits.pack
grep -qx 'digits\.pack: 1,437 training and 360 test examples, [0-9,]* bytes' out || fail "pack: $(cat out)"
train a digits --validation=0.2
train b pack:file=digits.pack --validation=0.2 --prefetch=2
same a b
good evaluate --checkpoint=a
mv out evaluated
good evaluate --checkpoint=b
cmp -s out evaluated || fail "evaluate: $(cat out), expected $(cat evaluated)"
good --resume=b --epochs=3 --quiet
good --resume=a --epochs=3 --quiet
same a b
good pack iris:standardize=1,take=90 iris.pack
train c iris:standardize=1,take=90
train d pack:file=iris.pack
same c d
head -3 "$root/datasets/embedded/iris_test.csv" | tail -2 | cut -d, -f1-4 >flowers.csv
good predict --checkpoint=c flowers.csv
mv out predicted
good predict --checkpoint=d flowers.csv
cmp -s out predicted || fail "predict: $(cat out), expected $(cat predicted)"

printf 'a,price\n%s' "$(seq -f '%g,1.5' 20)" >houses.csv
good pack csv:file=houses.csv,target=price houses.pack
train values csv:file=houses.csv,target=price --batch=4
train packed pack:file=houses.pack --batch=4
same values packed

# --- blocks: digits are one block, so this is the same set in another order, whatever computes it and from
# where it goes on ---
train e pack:file=digits.pack,order=blocks
train f pack:file=digits.pack,order=blocks --epochs=1 --prefetch=1
good --resume=f --epochs=2 --quiet
same e f
train g pack:file=digits.pack
other_weights "order=blocks" e g

# --- two processes: each maps the file ---
single=("--dataset=pack:file=digits.pack,order=blocks" --batch=20 --epochs=2 --quiet)
good "${single[@]}" --devices=cpu:0 --out=single
new_cluster 1 1
# shellcheck disable=SC2086 # several words
{
    start worker "$TRAINER" $hosts --job-name=worker --task-index=0 --devices=cpu:0
    start server "$TRAINER" $hosts --job-name=ps --task-index=0 "${single[@]}" --out=cluster
}
ends 0 server worker
same single cluster

# --- what is there stays ---
cp digits.pack kept
refused 3 'digits\.pack already exists: --replace replaces it$' pack iris digits.pack
cmp -s digits.pack kept || fail "a pack was replaced"
good pack iris digits.pack --replace
cmp -s digits.pack kept && fail "--replace replaced nothing"
mv kept digits.pack

# --- usage ---
refused 2 'found 1 argument, expected DATASET FILE' pack digits
refused 2 'found 2 arguments, expected one FILE to check' pack --check a b
refused 2 'is a pack already, expected another data set' pack pack:file=digits.pack again.pack
refused 2 'expected pack:file=FILE' --dataset=pack --epochs=1 --out=never
refused 3 'nowhere/x\.pack\.part: cannot be written: No such file or directory' pack digits nowhere/x.pack
refused 3 'no\.csv' pack csv:file=no.csv never.pack
ls ./*.part never* 2>/dev/null && fail "something is left of a pack that could not be made"

# --- damage: found by --check, and by the training that uses it ---
good pack --check digits.pack
grep -q '^digits\.pack: as it was written: 1,437 training' out || fail "check: $(cat out)"
python3 - <<'PYTHON'
good = open("digits.pack", "rb").read()
def write(name, data):
    open(name, "wb").write(data)
write("damaged.pack", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
write("cut.pack", good[:-100])
write("later.pack", good[:8] + b"\3" + good[9:])
PYTHON
for verb in "pack --check damaged.pack" "--dataset=pack:file=damaged.pack --epochs=1 --out=never --quiet"; do
    # shellcheck disable=SC2086 # words
    refused 3 'damaged\.pack: damaged: bytes 4096 to [0-9]* have the check sum' $verb
done
refused 3 'cut\.pack: found [0-9]* bytes, expected [0-9]*$' pack --check cut.pack
refused 3 'later\.pack: found a pack of version 3, expected 2' pack --check later.pack
refused 3 'flowers\.csv: not a pack, expected a file that trainer pack wrote' pack --check flowers.csv

# --- a disk that is full leaves nothing ---
(
    ulimit -f 60 && trap '' XFSZ &&
        refused 3 'full\.pack: not written: File too large' pack digits full.pack && exit $failures
) || fail "a full disk"
ls full.pack* 2>/dev/null && fail "half a pack is left"

# --- pictures: less memory than they take; and what was chosen of them stays ---
if "$TRAINER" predict --help | grep -q PNG; then
    python3 - <<'PYTHON'
import os, struct
for label in "ab":
    os.makedirs(f"pictures/{label}")
    for i in range(40):
        pixels = bytes((i * 5 + k) % 256 for k in range(3 * 16))
        head = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + 48, 0, 0, 54, 40, 4, 4, 1, 24, 0, 0, 0, 0, 0, 0)
        open(f"pictures/{label}/{i}.bmp", "wb").write(head + pixels)
PYTHON
    good pack pictures:dir=pictures,size=8x8,flip=1 pictures.pack
    train h pictures:dir=pictures,size=8x8,flip=1
    train i pack:file=pictures.pack
    same h i
    # 80 pictures of 1500x1500 are 540 MB; sanitizers and CUDA take more addresses than that.
    case $(<"$BUILD/flags") in
    *-fsanitize=* | *TRAINER_CUDA=1*) ;;
    *)
        (
            ulimit -v 420000 && refused 4 'or trainer pack needs less' \
                --dataset=pictures:dir=pictures,size=1500x1500,threads=1 --epochs=1 --out=never &&
                exit $failures
        ) || fail "these pictures fit into little memory"
        ;;
    esac
    # Ctrl-C
    $heeding "$TRAINER" pack pictures:dir=pictures,size=2000x2000,threads=1 interrupted.pack >out 2>err &
    child=$!
    sleep 0.3
    kill -INT $child
    wait $child
    [ $? -eq 130 ] || fail "interrupted: $(cat err)"
    child=''
    ls interrupted* 2>/dev/null && fail "something is left after Ctrl-C"
fi
[ $failures -eq 0 ]
