#!/bin/bash
# What people read: the pages of help, the lists, the first lines of a run and the tables of bench fit
# terminals of any width and 80 columns elsewhere, say the same words at each width, and break none. Options
# stand in groups, the rare ones behind --help=all. The examples work as they are typed.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
export TERM=xterm
cd "$scratch" || exit 1

cat >widths.py <<'PYTHON'
import re, subprocess, sys, terminal

trainer, plugins = sys.argv[1], sys.argv[2:]
widths = [60, 80, 100, 160]
failures = 0

def fail(*words):
    global failures
    failures += 1
    print(*words)

def on_terminal(columns, command, code=0):
    """All that the command shows on a terminal so wide, without what is drawn in place."""
    ended, shown = terminal.on_terminal(columns, command)
    if ended != code:
        fail(f"{command}: exit code {ended}: {shown}")
    return re.sub(r"\r[^\r\n]*\033\[K|\r", "", shown.decode())

def in_pipe(command):
    child = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    if child.returncode != 0:
        fail(f"{command}: exit code {child.returncode}")
    return child.stdout.decode()

def check_lines(what, text, columns):
    """None is longer, unless it is a single word (with what is typed before it in the same column)."""
    for line in text.split("\n"):
        if len(line) > columns and len(line.split()) > 1:
            fail(f"{what}, {columns} columns: {len(line)}: {line}")

def words(text):
    return [word for word in re.sub(r" \\\n", " ", text).split() if word != "#"]

def check_page(arguments):
    what = " ".join(arguments)
    pages = {columns: on_terminal(columns, [trainer] + arguments)
             for columns in (widths if len(arguments) == 1 else [60, 160])}
    piped = in_pipe([trainer] + arguments)
    for columns, page in pages.items():
        check_lines(what, page, columns)
        if words(page) != words(piped):
            fail(f"{what}: other words in {columns} columns: {page}")
    check_lines(what, piped, 80)
    if piped != pages.get(80, piped):
        fail(f"{what}: not 80 columns in a pipe")
    return pages

# --- pages of help, and lists ---
grown = 0
program = on_terminal(80, [trainer, "--help"])
commands = re.findall(r"^  ([a-z]+) ", program[program.index("commands:"):program.index("plug-ins:")], re.M)
if "train" not in commands or len(commands) < 8:
    fail(f"commands: {commands}")
pages = [["--help"], ["--help=all"], ["help"], ["list"]] + [["list", name] for name in plugins]
pages += [[command, help] for command in commands for help in ("--help", "--help=all")]
for page in pages:
    shown = check_page(page)
    if max(map(len, shown[160].split("\n"))) > 100:
        grown += 1
    if shown[60] == shown[160] and max(map(len, shown[160].split("\n"))) > 60:
        fail(f"{' '.join(page)}: the same in 60 and in 160 columns")
if grown < 15:
    fail(f"only {grown} pages use more than 100 columns")

# --- groups, and what is rare ---
for command, first in ("train", "What to train"), ("bench", "What to train"):
    usual, whole = in_pipe([trainer, command, "--help"]), in_pipe([trainer, command, "--help=all"])
    options = lambda page: re.findall(r"^  --([a-z-]+)", page, re.M)
    few, rest = options(usual), [name for name in options(whole) if name not in options(usual)]
    if not set(few) < set(options(whole)):
        fail(f"{command} --help=all does not show {set(few) - set(options(whole))}")
    for name in "model", "dataset", "epochs", "batch", "devices", "slots", "quiet", "slow":
        if name not in few:
            fail(f"{command} --help: no --{name}")
    for name in "shard-by", "kernels", "prefetch", "data-sharding":
        if name not in rest:
            fail(f"{command}: --{name} is not behind --help=all")
    if "default on" in whole: # --no-X is explained by what it does, not by what X does
        fail(f"{command} --help=all: an option that is on: {whole}")
    if f"shows {len(rest)} more options" not in " ".join(usual.split()) or "more options" in whole:
        fail(f"{command} --help: does not say that {len(rest)} are left out: {usual}")
    groups = [g for g in re.findall(r"^([A-Z][a-z ]+):$", usual, re.M)]
    wanted = ["What to train", "How to share", "On which devices", "What to keep", "Cluster", "Experiments"]
    if groups != [g for g in wanted if g in groups] or len(groups) < 5:
        fail(f"{command} --help: groups {groups}, expected {wanted}")
if ("  --slots=N               gradients that a worker may have under way (default 2)\n" not in
    in_pipe([trainer, "train", "--help"])):
    fail("--slots does not read without its name: " + in_pipe([trainer, "train", "--help"]))
if "(default 2; 1 to 1024)" not in " ".join(in_pipe([trainer, "train", "--help=all"]).split()):
    fail("train --help=all: no ranges")

# --- the first lines of a run ---
run = [trainer, "--dataset=digits:take=64", "--model=mlp:hidden=20,activation=relu",
       "--optimizer=adam:rate=0.01,beta1=0.9", "--schedule=cosine:end=0.1", "--devices=cpu:0,cpu:1",
       "--average=0.9", "--clip=5", "--data-sharding=split", "--epochs=1", "--print-every=0", "--replace",
       "--out=run"]
in_pipe(run) # so that all say that there was one before
said = {columns: on_terminal(columns, run) for columns in widths}
piped = in_pipe(run)
begin = lambda text: text[:text.index("logs, model and checkpoint")]
for columns, text in said.items():
    check_lines("the first lines", text, columns)
    if words(begin(text).replace("trainer: ", "")) != words(begin(piped).replace("trainer: ", "")):
        fail(f"the first lines, {columns} columns: {text} instead of {piped}")
check_lines("the first lines, a pipe", begin(piped), 80)
if begin(said[60]).count("\n") <= begin(said[160]).count("\n") or max(map(len, said[160].split("\n"))) <= 80:
    fail(f"the first lines do not grow: {said[60]}{said[160]}")
if not re.search(r"^logs, model and checkpoint go to run$", piped, re.M):
    fail(f"where the files are is not one line: {piped}")

# --- rows that other programs read, too: folded on a terminal only; --explain has times that differ ---
for rows in (["devices"], ["describe", "--model=alexnet", "--input=24x24x3"],
             ["--model=lenet", "--dataset=digits:take=64", "--epochs=1", "--explain", "--quiet", "--replace",
              "--out=run"]):
    shown = {columns: on_terminal(columns, [trainer] + rows)
             for columns in widths if columns >= 80 or "--explain" not in rows}
    piped = in_pipe([trainer] + rows)
    names = lambda text: sorted(re.sub(r"(?<![a-z])[0-9][0-9.]*|[,:]", "", text[:text.index("instructions")]
                                       if "instructions" in text else text).split())
    for columns, text in shown.items():
        check_lines(rows[0], text, columns)
        if names(text) != names(piped) and "--explain" not in rows or re.search(r" $", text, re.M):
            fail(f"{rows[0]}, {columns} columns: {text} instead of {piped}")
        for word in ("onednn:", "reference:") if "--explain" in rows else ():
            if text.count(word) != piped.count(word):
                fail(f"{rows[0]}, {columns} columns: {text.count(word)} of {piped.count(word)} kernels: "
                     f"{text}")
    longest = max(map(len, piped.split("\n"))) # of devices, the processor's name decides
    if (longest <= 80 and rows != ["devices"] or
        (shown[min(shown)].count("\n") > piped.count("\n")) != (longest > min(shown))):
        fail(f"{rows[0]}: not folded in {min(shown)} columns, or not whole in a pipe: "
             f"{shown[min(shown)]}{piped}")

# --- the one line of an error, too, but for names with blanks that must stay ---
wrong = "--resume=" + "/no/such folder" * 9
error = on_terminal(60, [trainer, wrong], 3)
check_lines("an error", error, 60)
if words(error)[1:3] != ["/no/such", "folder/no/such"] or error.count("\n") < 3:
    fail(f"an error in 60 columns: {error}")
wrong = wrong.replace("such folder", "such  folder")
if on_terminal(60, [trainer, wrong], 3).count("\n") != 1:
    fail("blanks in a file's name did not stay")

# --- the tables of bench ---
bench = [trainer, "bench", "--dataset=digits:take=64", "--model=mlp:hidden=20",
         "--strategies=sync,async-lockfree:apply=worker", "--devices=cpu:0,cpu:1", "--threads=1",
         "--repeats=1", "--epochs=1", "--target-accuracy=0.99", "--quiet", "--replace", "--out=compared"]
tables = {columns: on_terminal(columns, bench) for columns in widths}
tables[80.5] = in_pipe(bench)
titles = (r"examples/s +sd|x one|x all|to target|accuracy +sd|cost +sd|compute +input +exchange "
          r"+waiting|stale +p99 +max|updates|lost|dropped")
for columns, text in tables.items():
    check_lines("bench", text, int(columns))
    found = re.findall(titles, "\n".join(line for line in text.split("\n") if line.startswith(" " * 10)))
    if len(found) != 11:
        fail(f"bench, {columns} columns: titles {found}: {text}")
    blocks = text.count("\nsync ")
    if blocks != (4 if columns == 60 else 2):
        fail(f"bench, {columns} columns: {blocks} blocks: {text}")
    if (len(re.findall(r"^async-lockfree:apply=worker +[0-9]", text, re.M)) == blocks) != (columns >= 100):
        fail(f"bench, {columns} columns: the long name: {text}")
sys.exit(failures > 0)
PYTHON
# shellcheck disable=SC2046 # several names
python3 widths.py "$TRAINER" $(cd "$root" && basename -s .c strategies/*.c models/*.c datasets/*.c \
    src/store/optimizers/*.c src/store/schedules/*.c src/outputs/*.c src/exports/*.c | tr _ -) || failures=1

# --- examples, each page's in a folder of its own; MNIST is a few made-up digits ---
mkdir bin
ln -s "$TRAINER" bin/trainer
cat >mnist.py <<'PYTHON'
import os, random, struct, zlib
random.seed(1)
os.makedirs("data/mnist")
for prefix, count in (("train", 300), ("t10k", 50)):
    labels = bytes(i % 10 for i in range(count))
    images = b"".join(bytes(200 if x // 3 == label else random.randrange(40) for x in range(28)
                            for y in range(28)) for label in labels)
    open(f"data/mnist/{prefix}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, count, 28, 28) +
                                                               images)
    open(f"data/mnist/{prefix}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, count) + labels)

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
rows = b"".join(b"\0" + images[i * 28:i * 28 + 28] for i in range(28))
open("digit.png", "wb").write(b"\x89PNG\r\n\x1a\n" +
                              chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                              chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
python3 mnist.py || exit 1
ran=0
examples() { # the page, as arguments: runs what stands under "examples:", a line at a time as it is typed
    local folder line typed=
    folder=$(mktemp -d examples.XXXXXX)
    cp digit.png "$folder"
    while IFS= read -r line; do
        typed+=${typed:+$'\n'}$line
        [[ $line == *\\ ]] && continue
        # For less time, and without a server: the last value of an option counts.
        case $typed in
        *'trainer bench'*) typed+=' --repeats=1 --epochs=1 --quiet' ;;
        *'trainer sweep --resume'* | *'trainer ensemble --resume'*) ;;
        *'trainer sweep --join'*) typed='trainer sweep --join=127.0.0.1:1 --start-timeout=0.1' ;;
        *'trainer sweep'*--listen*)
            typed=${typed%%--listen*}'--listen=127.0.0.1:0 --runs=2 --epochs=2 --quiet' ;;
        *'trainer ensemble'*) typed+=' --epochs=2 --quiet' ;;
        *'trainer sweep'*) typed+=' --runs=2 --epochs=2 --quiet' ;;
        *'trainer fetch'*) typed=${typed/fetch/fetch --from=http://127.0.0.1:9/none} ;;
        *'trainer show'*) ;;
        *cifar10*) typed+=' --explain=nothing' ;;
        esac
        (
            cd "$folder" && TRAINER_DATA=$scratch/data PATH=$scratch/bin:$PATH timeout 120 bash -c "$typed"
        ) >"$folder/out" 2>"$folder/err"
        case $?:$typed in
        0:*) ;;
        [25]:*'trainer fetch'*) grep -q 'cannot download\|127.0.0.1' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        5:*'trainer probe 127.0.0.1'*) grep -q '127.0.0.1:2222: not connected' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        3:*'trainer probe'*) grep -q 'cluster.key: No such file' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        5:*'trainer sweep --join'*) grep -q '127.0.0.1:1: not connected' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        3:*'trainer show'*cifar10*) grep -q 'cifar10 is not in ' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        2:*'trainer export'*onnx*)
            grep -q 'protobuf-c-compiler' "$folder/err" || fail "$* example: $typed: $(cat "$folder/err")" ;;
        2:*'trainer show'*)
            grep -q 'libpng-dev' "$folder/err" || fail "$* example: $typed: $(cat "$folder/err")" ;;
        2:*cifar10*) grep -q 'explain=nothing: expected 0 or 1' "$folder/err" ||
            fail "$* example: $typed: $(cat "$folder/err")" ;;
        *) fail "$* example: $typed: $(cat "$folder/err")" ;;
        esac
        ran=$((ran + 1))
        typed=
    done < <("$TRAINER" "$@" | sed -n '/^examples:$/,/^$/{/^  /p}')
}
examples --help
for command in $("$TRAINER" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    examples "$command" --help
done
[ $ran -ge 30 ] || fail "only $ran lines of examples"

[ $failures -eq 0 ]
