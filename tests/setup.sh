# What the shell tests share; they source it first, it is no test. Each works in $scratch, which is its
# home too and goes with it, as does the process $child where a test names one; it sees no data sets and no
# cluster but its own. What is wrong is said by `fail`, after which the test goes on; its last line asks
# for $failures.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use the variables
: "${TRAINER:?expected the path of the program}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tests=$root/tests
scratch=$(mktemp -d) || exit 1
child=''
trap '[ -z "$child" ] || kill -9 "$child" 2>/dev/null; rm -rf "$scratch"' EXIT
unset TRAINER_DATA TF_CONFIG TRAINER_RANK TRAINER_SSH RANK WORLD_SIZE PET_NODE_RANK PMI_RANK \
    OMPI_COMM_WORLD_RANK SLURM_STEP_NODELIST
export HOME=$scratch
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1 # for `import terminal`, `import event_files`
# In front of what a script starts in the background: else it ignores Ctrl-C, and the program leaves that as
# it is.
heeding='env --default-signal=INT'
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

need() { # a command without which there is no test
    command -v "$1" >/dev/null || { echo "no $1 here"; exit 77; }
}

# The program, as a test expects it: standard output is left in out, standard error in err, the exit code
# in $code.
runs() {
    "$TRAINER" "$@" >out 2>err
    code=$?
}
good() {
    runs "$@"
    [ $code -eq 0 ] || fail "trainer $*: exit code $code: $(cat err)"
    [ ! -s err ] || fail "trainer $*: said: $(cat err)"
}
refused() { # exit code, words in the one line, arguments...
    local want=$1 words=$2
    shift 2
    runs "$@"
    [ $code -eq "$want" ] || fail "trainer $*: exit code $code, expected $want: $(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "trainer $*: expected one line, found: $(cat err)"
    grep -Eq -e "^trainer: .*$words" err || fail "trainer $*: said: $(cat err) expected: $words"
    [ ! -s out ] || fail "trainer $*: printed: $(cat out)"
}

# tests/tensors.py compares names, shapes and bytes of the model's arrays: 0 the same, 1 others, 2 no model.
compare_weights() { python3 "$tests/tensors.py" "$1/model.safetensors" "$2/model.safetensors"; }
same_weights() { # what is tested, two folders
    compare_weights "$2" "$3" || fail "$1: $2 and $3 have different weights, or none"
}
other_weights() { # what is tested, two folders
    compare_weights "$2" "$3"
    [ $? -eq 1 ] || fail "$1: $2 and $3 have the same weights, or none"
}
