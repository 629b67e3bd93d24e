# What the tests of trainer report share; they source it instead of setup.sh. It leads to $scratch.
# shellcheck shell=bash
# shellcheck source=tests/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
need python3
cd "$scratch" || exit 1
small="--quiet --dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --threads=1"
without='' # what `report` has to say, in a line, that the page is made without

train() { # options...
    # shellcheck disable=SC2086 # several words
    "$TRAINER" $small "$@" >printed 2>err || fail "train $*: exit code $?: $(cat err)"
}

report() { # the page that it has to make, arguments...
    local page=$1
    shift
    rm -f "$page"
    "$TRAINER" report "$@" >out 2>err || fail "report $*: exit code $?: $(cat err)"
    [ "$(cat out)" = "The report is in $page" ] || fail "report $*: printed: $(cat out)"
    if [ -n "$without" ]; then
        [[ "$(cat err)" == "trainer: the page is made without $without: "* && $(wc -l <err) -eq 1 ]] ||
            fail "report $*: does not say that it is without $without: $(cat err)"
    elif [ -s err ]; then
        fail "report $*: wrote to standard error: $(cat err)"
    fi
    [ -s "$page" ] || fail "report $*: no $page"
}

refused() { # exit code, pattern of the one line, arguments...
    local want=$1 line=$2 code
    shift 2
    "$TRAINER" report "$@" >out 2>err
    code=$?
    [ $code -eq "$want" ] || fail "report $*: exit code $code, expected $want: $(cat err)"
    [ -s out ] && fail "report $*: printed: $(cat out)"
    # shellcheck disable=SC2053 # the line is a pattern
    [[ "$(cat err)" == $line ]] || fail "report $*: found: $(cat err) expected: $line"
}
