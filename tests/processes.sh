# What the scripts share that start clusters of processes (bridge/bridge.sh, cluster/servers.sh); they source
# it, it is no test.
#
# Each process runs in $scratch under a time limit: a wait that nobody ends shows as "hangs", never as a test
# that hangs. What a process NAME printed is in NAME.out and NAME.err.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2086 # the scripts use the variables; options are several words
# shellcheck source=tests/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
need python3
declare -A started=() # name -> its shell
kill_all() {
    local name
    for name in "${!started[@]}"; do kill -9 "$(pid_of "$name")" "${started[$name]}" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$scratch"
}
trap kill_all EXIT
trap 'exit 1' INT TERM
cd "$scratch" || exit 1
if grep -Eqa '__[at]san_init' "$TRAINER"; then
    slow=1 limit=120 timeout=10 last=60
else
    slow='' limit=90 timeout=2 last=5
fi # last: lines of what a process said
small="--dataset=digits:take=320 --model=mlp:hidden=20 --batch=16"
# A run of a second or so, in which a worker can be lost, and what the others are to make of it.
long="--dataset=digits --epochs=240" good='test_accuracy > 0.85'
[ -z "$slow" ] || long="$small --epochs=60" good=True
endless="$small --epochs=1000000 --timeout=$timeout"

# --- a process to its end, which may warn ---

run() { # exit code, arguments...
    local wanted=$1
    shift
    timeout $limit "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq "$wanted" ] || fail "$*: exit code $code, expected $wanted: $(cat err)"
}
refused_with() { # exit code, pattern of the whole line, arguments...
    run "$1" "${@:3}"
    grep -Eqx "trainer: $2" err && [ "$(wc -l <err)" -eq 1 ] || fail "${*:3}: said $(cat err), expected: $2"
}

# --- processes ---

pid_of() { cat "$1.pid" 2>/dev/null; } # of the program itself

# By their command lines, in the order of their numbers: of this test alone, as another one may run beside it.
processes_with() { # pattern
    local folder
    for folder in /proc/[0-9]*; do
        [ "$folder/cwd" -ef "$scratch" ] || continue
        ! tr "\0" " " 2>/dev/null <"$folder/cmdline" | grep -Eq -e "$1" || echo "${folder#/proc/}"
    done | sort -n
}

start() { # name, command...
    local name=$1
    shift
    rm -f "$name.pid"
    : >"$name.out" >"$name.err" # nobody takes the words of one before for this one's
    ( # which says by itself that it was killed, and ends with that code
        # shellcheck disable=SC2016 # for the inner shell
        timeout -k 5 $limit $heeding \
            bash -c 'echo $$ >"$0.pid.new" && mv "$0.pid.new" "$0.pid" && exec "$@"' "$name" "$@"
        exit $?
    ) >"$name.out" 2>"$name.err" </dev/null &
    started[$name]=$!
}

finish() { # name; sets $code
    wait "${started[$1]}"
    code=$?
    unset "started[$1]"
    [ $code -ne 124 ] || fail "$1: hangs; it said: $(tail -n 3 "$1.err")"
}

ends() { # code, names...
    local expected=$1 name
    shift
    for name; do
        finish "$name"
        [ "$code" -eq "$expected" ] ||
            fail "$name: exit code $code, expected $expected: $(tail -n $last "$name.err")"
    done
}

says() { # name, pattern
    grep -Eq -- "$2" "$1.err" || fail "$1: did not say \"$2\" but: $(tail -n 5 "$1.err")"
}

signal() { # which, names...: all at once
    local name tries pids=()
    for name in "${@:2}"; do
        tries=0
        until [ -s "$name.pid" ] || [ $tries -ge 500 ]; do
            tries=$((tries + 1))
            sleep 0.02
        done
        pids+=("$(pid_of "$name")")
    done
    kill "-$1" "${pids[@]}" 2>/dev/null
}

wait_until() { # command...
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt $((limit * 50)) ] || { fail "nothing happened in $limit s: $*"; break; }
        sleep 0.02
    done
}

# Listens at a port and lets nobody in: takes it away from those who want it.
keep_port() { # port
    start keep python3 -c \
        'import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("up", flush=True); time.sleep(60)' "$1"
    wait_until test -s keep.out
}

leave_port() {
    signal 9 keep
    finish keep
}

# Kills one, waits for all: they end by themselves, in order, nobody is left, and what checkpoint there is can
# be read.
kill_one() { # label, victim, seconds before, names of all...
    local label=$1 victim=$2 moment=$3 name
    shift 3
    sleep "$moment"
    signal 9 "$victim"
    for name; do
        finish "$name"
        case $code in 0 | 5 | 137) ;; *) fail "$label: $name: exit code $code: $(cat "$name.err")" ;; esac
        [ "$code" -ne 137 ] || [ "$name" = "$victim" ] || fail "$label: $name was killed, too"
        ! kill -0 "$(pid_of "$name")" 2>/dev/null || fail "$label: $name is still there"
    done
    [ ! -e run/checkpoint/state.safetensors ] || "$TRAINER" evaluate --checkpoint=run >out 2>err ||
        fail "$label: its checkpoint: $(cat err)"
}

# --- clusters ---

came_from='(127.0.0.1:[0-9]+|process [0-9]+)' # who has connected: over TCP, or over shared memory

# The first of so many ports in a row where nobody listens and that the kernel gives to nobody who connects.
# All test scripts of a user take turns through 15000 to 29999, so two that run at once never have the same.
free_ports() { # how many
    local first i taken=1 turns=/tmp/trainer-test-ports-$UID
    while [ $taken -gt 0 ]; do
        first=$(
            exec 9>>"$turns" && flock 9 || exit 1
            last=$(tail -n 1 "$turns")
            [[ $last =~ ^[0-9]{5}$ ]] && [ $((last + $1)) -lt 30000 ] || last=15000
            echo $((last + $1)) >"$turns"
            echo "$last"
        ) || { fail "no port: $turns cannot be written"; exit 1; }
        taken=0
        for ((i = 0; i < $1; i++)); do ! (: <"/dev/tcp/127.0.0.1/$((first + i))") 2>/dev/null || taken=1; done
    done
    echo "$first"
}

# The parameter servers' ports come first, then the workers'. With parameter servers only they listen; of a
# worker its address is the name. With none the workers have the weights. Every second cluster keeps to TCP.
clusters=0
new_cluster() { # parameter servers, workers; sets $port, of the first, $worker_port, $hosts
    local servers='' workers='' tcp='' i
    clusters=$((clusters + 1))
    [ $((clusters % 2)) -eq 1 ] || tcp='--no-shared-memory '
    port=$(free_ports $(($1 + $2)))
    worker_port=$((port + $1))
    for ((i = 0; i < $1; i++)); do servers+=${servers:+,}127.0.0.1:$((port + i)); done
    for ((i = 0; i < $2; i++)); do workers+=${workers:+,}127.0.0.1:$((worker_port + i)); done
    hosts="$tcp${servers:+--ps-hosts=$servers }--worker-hosts=$workers"
}

start_worker() { # task, options...
    local task=$1
    shift
    start "w$task" "$TRAINER" --job=worker --task="$task" $hosts --devices=cpu:0 --threads=1 \
        --print-every=0 "$@"
}

is_training() { [ -s run/steps.csv ] && [ "$(wc -l <run/steps.csv)" -gt 1 ]; }

# --- results ---

cat >look.py <<'PYTHON'
import csv, json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__", {})
    return texts, {name: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
                   for name, e in header.items()}

what, folder, *rest = sys.argv[1:]
# What expressions are of its members, the rows of steps.csv and the cache lines of weights, arrays apart.
if what == "summary":
    s = json.load(open(f"{folder}/summary.json"))
    s["log"] = list(csv.DictReader(open(f"{folder}/steps.csv")))
    s["rows"] = len(s["log"])
    s["lines"] = sum(-(-len(bytes) // 64) for bytes in tensors(f"{folder}/model.safetensors")[1].values())
    for expression in rest:
        print(eval(expression, s))
if what == "examples":
    print(tensors(f"{folder}/checkpoint/state.safetensors")[0]["examples"])
PYTHON
look() { python3 -IS look.py "$@"; }

summary_is() { # what is tested, then each expression and what is expected
    local label=$1 found line expressions=() i
    shift
    for ((i = 1; i < $#; i += 2)); do expressions+=("${!i}"); done
    found=$(look summary run "${expressions[@]}" 2>&1)
    while IFS= read -r line || [ $# -gt 0 ]; do
        [ $# -gt 0 ] || { fail "$label: $line"; break; }
        [ "$line" = "$2" ] || fail "$label: in summary.json $1 is $line, expected $2"
        shift 2
    done <<<"$found"
}

results_of() { grep -E '^(Test-Accuracy|Total Time|Final Cost): ' "$1.out"; }

same_results() { # names...: all print the three lines, with the same figures
    local name
    for name; do
        [ "$(results_of "$name" | wc -l)" -eq 3 ] ||
            fail "$name: expected three lines of results, found: $(tail -n 4 "$name.out")"
        [ "$(results_of "$name")" = "$(results_of "$1")" ] ||
            fail "$name: results differ from those of $1: $(results_of "$name")"
    done
}

names_of() { "$TRAINER" list "$1" | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'; }

# A strategy by itself, and with each value of each of its settings that has a list of values.
variants_of() {
    echo "$1"
    "$TRAINER" list "strategy/$1" |
        sed -n 's/^  \([a-z_-]*=[a-z0-9-]*|[a-z0-9|-]*\)\( .*\)*$/\1/p' | while IFS= read -r row; do
        tr '|' '\n' <<<"${row#*=}" | sed "s/^/$1:${row%%=*}=/"
    done
}
