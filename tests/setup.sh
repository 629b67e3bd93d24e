# What the shell tests share; they source it first, it is no test. Each works in $scratch, which is its home too and goes with it, as
# does the process $child where a test names one; it sees no data sets and no cluster but its own. What is wrong is said by `fail`,
# after which the test goes on; its last line asks for $failures.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use the variables
: "${TRAINER:?expected the path of the program}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tests=$root/tests
scratch=$(mktemp -d) || exit 1
child=''
trap '[ -z "$child" ] || kill -9 "$child" 2>/dev/null; rm -rf "$scratch"' EXIT
unset TRAINER_DATA TF_CONFIG
export HOME=$scratch
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1 # for `import terminal`, `import event_files`
# In front of what a script starts in the background: else it ignores Ctrl-C, and the program leaves that as it is.
heeding='env --default-signal=INT'
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

need() { # a command without which there is no test
    command -v "$1" >/dev/null || { echo "no $1 here"; exit 77; }
}
