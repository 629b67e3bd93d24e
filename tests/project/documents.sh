#!/bin/bash
# Every command of README.md and docs/ that starts with ./trainer runs, in a short form, and ends with exit
# code 0, or with the one that the comment behind it names ("exit code 5").
#
# The shell blocks of a document run from top to bottom as they stand, in an empty folder. Its ./trainer is
# the script below: it takes out what makes a command long (epochs, examples, repetitions, tests) and what
# this machine does not have (GPUs, bf16), runs the program, and notes the exit code. A process of a cluster
# goes to the background there, as in a terminal of its own; all of a block end before the next block begins.
# Left out are blocks that build: they are followed by tests/bare-machine and project/stranger. The data sets
# are noise in the right format, so accuracies mean nothing here.
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

# --- data, pictures, tables ---
python3 - <<'PYTHON'
import os, random, struct, zlib
from npz_files import npy, npz
r = random.Random(1)
os.makedirs("data/mnist"), os.makedirs("data/cifar10"), os.makedirs("files")
for part, count in ("train", 320), ("t10k", 100):
    with open(f"data/mnist/{part}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, count, 28, 28) + r.randbytes(count * 784))
    with open(f"data/mnist/{part}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
for part in "data_batch_1", "test_batch": # these are as long as the official ones, or they are refused
    with open(f"data/cifar10/{part}.bin", "wb") as file:
        file.write(b"".join(bytes([i % 10]) + r.randbytes(3072) for i in range(100)) * 100)
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def png(path, side, channels):
    lines = b"".join(b"\0" + r.randbytes(side * channels) for _ in range(side))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8,
                                                                     0 if channels == 1 else 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
png("files/digit.png", 60, 1)
png("files/cat.png", 100, 3)
png("files/flower.png", 40, 3)
for name in "daisy", "rose":
    os.makedirs(f"files/flowers/{name}")
    for i in range(30):
        png(f"files/flowers/{name}/{i:03d}.png", 30, 3)
with open("files/table.csv", "w") as file:
    file.write("length,width,species\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(100)))
with open("files/houses.csv", "w") as file:
    file.write("rooms,area,price\n" +
               "".join(f"{i % 7},{i % 31},{1000 * (i % 7) + 50 * (i % 31)}\n" for i in range(100)))
pixels, classes = npy((100, 28, 28), r.randbytes(78400), "|u1"), npy((100,), [i % 10 for i in range(100)],
                                                                     "|u1")
npz("files/mnist.npz", x_train=pixels, y_train=classes, x_test=pixels, y_test=classes)
npz("files/houses.npz", x_train=npy((100, 2), range(200)), y_train=npy((100,), [3 * i for i in range(100)]),
    x_test=npy((10, 2), range(20)), y_test=npy((10,), [3 * i for i in range(10)]))
npz("files/table.npz", data=npy((100, 2), range(200)), target=npy((100,), [i % 3 for i in range(100)], "<i8"))
for name, data in (("images", pixels), ("labels", classes)):
    with open(f"files/{name}.npy", "wb") as file:
        file.write(data)
PYTHON
mkdir served && cp "$root"/datasets/embedded/iris_*.csv served/ || exit 1

# --- what this machine and this build have ---
export PROGRAM=$TRAINER TRAINER_DATA=$scratch/data
GPUS=$("$TRAINER" devices | grep -Ec '^gpu:[0-9]')
"$TRAINER" --precision=bf16 --dataset=digits:take=32 --epochs=1 --quiet --out=bf16 >out 2>err && BF16=1 ||
    BF16=''
PICTURES=$("$TRAINER" predict --help | grep PNG)
PNG=$(grep -e -DTRAINER_PNG=1 "$BUILD/flags")
UCX=1
"$TRAINER" --job=worker --task=0 --ps-hosts=127.0.0.1:1 --worker-hosts=127.0.0.1:2 --link=ucx \
    --start-timeout=0.1 >out 2>err
tail -n 1 err | grep -Eq 'this build has no UCX|libucp' && UCX=''
ABSENT=''
for option in --homes --links --deterministic; do
    "$TRAINER" train --help | grep -q -e "^ *$option" || ABSENT+=" $option"
done
SERVER=''
if "$TRAINER" --help | grep -q '^  fetch '; then
    # For as long as the documents take, not for one command.
    limit=600 start server python3 "$tests/serve.py" served log
    wait_until test -s server.out
    SERVER=http://127.0.0.1:$(cat server.out)/good
fi
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export GPUS BF16 UCX PICTURES PNG ABSENT SERVER

cat >shortened <<'SHORTENED'
#!/bin/bash
# ./trainer, as the documents call it. Notes: in $NOTES, for each command, N.typed, N.out, N.err, and at its
# end N.code.
set -u
note=$(mktemp "$NOTES/XXXXXX")
echo "${TF_CONFIG:+TF_CONFIG='$TF_CONFIG' }./trainer $*" >"$note.typed"
echo "${EXPECTED:-0}" >"$note.expected"
verb=train cluster=${TF_CONFIG:-}${RANK:-} job='' dataset='' epochs='' repeats=''
case ${1:-} in [a-z]*) verb=$1 && shift ;; esac
case " $*" in *" --resume="*) last=2 ;; *) last=1 ;; esac

short_dataset() { # only the data sets that need files are long
    local settings
    case $1 in
    mnist*) settings=take=320 ;;
    cifar10*) settings=take=320,crop=8 ;; # there are always 10,000 images to test on
    *) echo "$1" && return ;;
    esac
    [[ $1 == *:* ]] && settings+=,$(sed -E 's/(^|,)(take|crop)=[0-9]+//g; s/^,//' <<<"${1#*:}")
    echo "${1%%:*}:${settings%,}"
}

command=()
for option; do
    case $option in
    --dataset=*) dataset=1 option=--dataset=$(short_dataset "${option#*=}") ;;
    --epochs=*) epochs=1 option=--epochs=$last ;;
    --repeats=*) repeats=1 option=--repeats=1 ;;
    --model=alexnet) [ "$verb" = train ] || option=--model=softmax ;; # a comparison tests a dozen of them
    --job=* | --job_name=*) cluster=1 job=${option#*=} ;;
    --cluster=* | --ps-hosts=* | --ps_hosts=* | --join=*) cluster=1 ;;
    --listen=*) cluster=1 command+=(--devices=none) ;; # who joins is to find something to do
    --precision=bf16) [ -n "$BF16" ] || continue ;;
    --link=ucx) [ -n "$UCX" ] || continue ;;
    --devices=gpu*) [ "$GPUS" -ge 2 ] || option=--devices=cpu:0,cpu:1 ;;
    esac
    [[ " $ABSENT " == *" ${option%%=*} "* ]] || command+=("$option")
done
case $verb in
bench)
    [ -n "$dataset" ] || command+=(--dataset=digits:take=320)
    [ -n "$epochs" ] || command+=(--epochs=1)
    [ -n "$repeats" ] || command+=(--repeats=1)
    ;;
ensemble)
    [[ -n "$epochs" || $* == *--resume=* ]] || command+=(--epochs=1)
    ;;
sweep)
    [[ $* == *--resume=* || $* == *--join=* ]] || command+=(--runs=2)
    [[ -n "$epochs" || $* == *--resume=* || $* == *--join=* ]] || command+=(--epochs=1)
    ;;
pack) [[ ${1:-} == -* ]] || command[0]=$(short_dataset "$1") ;;
show) [ -n "$PNG" ] || [[ $* == *--inline* || $* == *--numbers* ]] || verb=skipped ;;
predict) [ -n "$PICTURES" ] || [[ $* != *.png* ]] || verb=skipped ;;
fetch)
    case ${1:-} in mnist | cifar10 | iris) command[0]=iris ;; esac # the one that a server here has
    command+=(--from="$SERVER" --data-dir=fetched)
    [ -n "$SERVER" ] || verb=skipped
    ;;
esac
[ -n "$PICTURES" ] || [[ $* != *--dataset=pictures:* ]] || verb=skipped
command -v openssl >/dev/null || [[ $* != *--tls-cert=* ]] || verb=skipped
# The 10,000 images to test on would take nearly all of the time.
[ "$verb" != train ] || [[ $* != *cifar10* && $* != *--resume=*alexnet* ]] || command+=(--no-test)
[[ "$verb" != train || -n "$epochs$cluster${EXPECTED:-}" || $* == *--resume=* ]] || command+=(--epochs=1)
[ "$verb" = train ] || command=("$verb" "${command[@]}")

run() {
    local code=0
    [ "$verb" = skipped ] ||
        timeout -k 5 "$LIMIT" "$PROGRAM" "${command[@]}" >"$note.out" 2>"$note.err" </dev/null || code=$?
    echo "${command[*]}" >"$note.ran"
    echo $code >"$note.ended" && mv "$note.ended" "$note.code"
}
if [ -n "$cluster" ]; then run & else run; fi
SHORTENED
chmod +x shortened

# The shell blocks of a document that call ./trainer, `settle` behind each; a JSON block is the
# file cluster.json.
commands_of() { # file
    awk '
        /^ *```/ && !kind { kind = substr($0, index($0, "```") + 3); block = ""; next }
        /^ *```/ {
            if (kind == "json") print "cat >cluster.json <<\"JSON\"\n" block "JSON"
            else if (kind == "sh" && block ~ /\.\/trainer/ && block !~ /(^|[ ;&\n])make[ ;\n]/)
                print block "settle"
            kind = ""
            next
        }
        kind {
            if (kind == "sh" && match($0, /#.*exit code [0-9]+/)) {
                code = substr($0, RSTART, RLENGTH); sub(/.* /, "", code)
                $0 = "EXPECTED=" code " " $0
            }
            block = block $0 "\n"
        }' "$1"
}

# Every address of the document becomes one of this machine, with a free port.
with_free_ports() { # of the script from standard input
    local script address addresses port
    script=$(cat)
    mapfile -t addresses \
        < <(grep -Eo '\b([a-z]|localhost|[0-9]+(\.[0-9]+){3}):[0-9]{4,5}\b' <<<"$script" | sort -u)
    if [ ${#addresses[@]} -gt 0 ]; then
        port=$(free_ports ${#addresses[@]}) || exit 1
        for address in "${addresses[@]}"; do
            script=$(sed -E "s/\b${address//./\\.}\b/@:$port/g" <<<"$script")
            port=$((port + 1))
        done
    fi
    sed 's/@:/127.0.0.1:/g' <<<"$script"
}

run_document() { # file, folder to run in; prints what is wrong, and at the end how many commands there were
    local file=$1 note notes name count=0
    name=${file#"$root"/}
    mkdir -p "$2/notes" && cd "$2" && cp -R "$scratch"/files/* . && ln -s "$root/models" . &&
        cp "$scratch/shortened" trainer || exit 1
    notes=$PWD/notes
    {
        echo 'settle() { for note in "$NOTES"/*.typed; do until [ -e "${note%.typed}.code" ]; '\
'do sleep 0.02; done; done; }'
        commands_of "$file" | with_free_ports
    } >script
    NOTES=$notes LIMIT=$limit bash script >script.out 2>script.err </dev/null ||
        echo "$name: $(tail -n 1 script.err)"
    for note in "$notes"/*.typed; do
        [ -e "$note" ] || continue
        note=${note%.typed} count=$((count + 1))
        cmp -s "$note.code" "$note.expected" ||
            printf '%s: exit code %s, expected %s, of %s\n    run as %s: %s\n' "$name" "$(cat "$note.code")" \
                "$(cat "$note.expected")" "$(cat "$note.typed")" "$(cat "$note.ran")" \
                "$(tail -n 3 "$note.err")"
    done
    grep -Hn '^ *\(TF_CONFIG=.* \)\?trainer ' "$file" /dev/null &&
        echo "$name: a command starts with trainer, not ./trainer"
    echo $count >count
}

# --- a command that is wrong is found ---
cat >wrong.md <<'WRONG'
```sh
./trainer list strategies
./trainer --no-such-option
./trainer --dataset=nothing    # ends with exit code 2
```
WRONG
(run_document "$scratch/wrong.md" wrong) >wrong.out
[ "$(cat wrong/count)" = 3 ] &&
    [ "$(grep -c 'exit code 2, expected 0, of ./trainer --no-such-option' wrong.out)" -eq 1 ] &&
    [ "$(grep -c '^[^ ]*: ' wrong.out)" -eq 1 ] || fail "a wrong document: $(cat wrong.out)"

# --- all documents, at once ---
n=0 runs=()
mapfile -t documents < <(find "$root/README.md" "$root/docs" -name '*.md' | sort)
for document in "${documents[@]}"; do
    (run_document "$document" "document.$n") >"document.$n.out" 2>&1 &
    runs[n]=$! n=$((n + 1))
done
wait "${runs[@]}"
for ((n = 0; n < ${#documents[@]}; n++)); do
    [ ! -s "document.$n.out" ] || fail "$(cat "document.$n.out")"
    case ${documents[n]} in
    */README.md | */cluster.md | */recipes.md)
        [ "$(cat "document.$n/count")" -ge 5 ] || fail "${documents[n]}: fewer than five commands" ;;
    esac
done
[ -z "$SERVER" ] || { signal 9 server && finish server; }

# --- links lead somewhere; lines are short, except in tables and in what programs print ---
for document in "${documents[@]}"; do
    name=${document#"$root"/}
    while IFS= read -r link; do
        case $link in http*://* | '#'*) continue ;; esac
        [ -e "$(dirname "$document")/${link%%#*}" ] || fail "$name: a link to $link, which is not there"
    done < <(grep -Eo '\]\([^)]+\)' "$document" | sed 's/^](//; s/)$//')
    awk '/^ *```/ { kind = kind ? "" : substr($0, index($0, "```") + 3) "text"; next }
         length($0) > 110 && !/^\|/ && (!kind || kind == "shtext") { print NR ": " $0; long = 1 }
         END { exit long }' "$document" >out || fail "$name has long lines: $(cat out)"
done

# --- summary.json has the keys of its tables in docs/files.md, in their order ---
"$TRAINER" --dataset=iris --epochs=1 --quiet --out=summarized >out 2>err || fail "a run: $(cat err)"
python3 - "$root/docs/files.md" <<'PYTHON' || fail "summary.json is not as docs/files.md says"
import json, re, sys
section = open(sys.argv[1]).read().split("\n## summary.json\n")[1].split("\n## ")[0]
tables, optional = [], set()
for line in section.splitlines():
    if line.startswith("| key |"):
        tables.append([])
    elif line.startswith("| `"):
        keys, words = line.split("|")[1:3]
        tables[-1] += re.findall("`([^`]*)`", keys)
        if words.startswith(" only with "):
            optional |= set(tables[-1][-keys.count("`") // 2:])
summary = json.load(open("summarized/summary.json"))
nested = list(summary["strategies"][0]) + list(summary["staleness"])
wrong = 0
for what, said, found in (("summary.json", tables[0] + tables[1], list(summary)),
                          ("per_worker", tables[2], list(summary["per_worker"][0]))):
    wanted = [key for key in said if key in found or key not in optional]
    if found != wanted:
        wrong = 1
        print(what, "lacks", set(wanted) - set(found), "and adds", set(found) - set(wanted))
        print("first in another order:", next(((f, w) for f, w in zip(found, wanted) if f != w), None))
exit(wrong or len(tables) != 3 or any(f"`{key}`" not in section for key in nested))
PYTHON

# --- NOTICE names every library that the program is linked with, and every file that is embedded in it ---
for thing in $(readelf -d "$TRAINER" | sed -n 's/.*(NEEDED).*\[\(lib[^.]*\)\..*/\1/p') \
    $(cd "$root/datasets/embedded" && ls ./*.csv*); do
    case $thing in libasan | libubsan | libtsan) continue ;; esac # a sanitizer's
    tr ' ,' '\n\n' <"$root/NOTICE" | grep -Fqx "${thing#./}" || fail "NOTICE does not name $thing"
done

[ $failures -eq 0 ]
