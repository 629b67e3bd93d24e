#!/bin/bash
# tests/runner counts what passes, fails, hangs and skips, and says so by its exit code: a runner that cannot
# fail proves nothing.
set -u
tests=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tests,build/tests}/{base,store}
cp "$tests/runner" "$tree/tests/runner"
touch "$tree/trainer"
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

make_test() { # file, body
    printf '#!/bin/bash\n%s\n' "$2" >"$tree/$1"
    chmod +x "$tree/$1"
}

expect() { # exit code, last line, then lines that must be there as patterns; the arguments of tests/runner
    # come from $names
    local want=$1 last=$2 output code
    shift 2
    # shellcheck disable=SC2086 # several names
    output=$(TEST_SECONDS=1 "$tree/tests/runner" "$tree/build" "$tree/trainer" $names 2>&1)
    code=$?
    [ $code -eq "$want" ] || fail "exit code $code, expected $want: $output"
    [ "$(tail -n 1 <<<"$output")" = "$last" ] || fail "last line of \"$output\", expected \"$last\""
    for line; do grep -Eqx -e "$line" <<<"$output" || fail "no line $line in: $output"; done
}

names=
expect 1 "0 passed, 1 failed, 0 skipped"
make_test build/tests/base/good 'exit 0'
make_test build/tests/base/good.o 'exit 1' # not a test
make_test build/tests/other 'exit 1' # nor what is in no folder
make_test tests/setup.sh 'exit 1'
# shellcheck disable=SC2016 # for the test to expand
make_test tests/store/script.sh \
    '[ "$TRAINER" = "'"$tree"'/trainer" ] && [ "$BUILD" = "'"$tree"'/build" ] && [ "$PWD" = "'"$tree"'" ]'
expect 0 "2 passed, 0 failed, 0 skipped" 'ok   base/good \([0-9]+\.[0-9] s, [0-9]+\.[0-9] s of work\)' \
    'ok   store/script \(.*\)'
make_test build/tests/base/bad 'echo first; echo "words of it" >&2; exit 3'
expect 1 "2 passed, 1 failed, 0 skipped" 'FAIL base/bad: exit code 3 .*' '     \| first' '     \| words of it'
names="base/good"
expect 0 "1 passed, 0 failed, 0 skipped"
names="store/hangs store/crashes"
make_test build/tests/store/hangs 'sleep 30'
# shellcheck disable=SC2016 # for the test to expand
make_test build/tests/store/crashes 'kill -SEGV $$'
expect 1 "0 passed, 2 failed, 0 skipped" 'FAIL store/hangs: took more than 1 s.*' \
    'FAIL store/crashes: exit code 139 .*'
names="store/skips"
make_test build/tests/store/skips 'echo more; echo "no GPU here"; exit 77'
expect 1 "0 passed, 1 failed, 0 skipped" 'FAIL store/skips: skipped itself, .*: no GPU here'
printf '# a comment\nbase/other: no GPU here\nstore/skips: no disk\n' >"$tree/tests/skips.txt"
expect 1 "0 passed, 1 failed, 0 skipped"
echo 'store/skips: no GPU*' >>"$tree/tests/skips.txt"
expect 0 "0 passed, 0 failed, 1 skipped" 'skip store/skips: no GPU here'

# The longest begin first, in their order; and each of them is there.
names=
rm -r "$tree"/{tests,build/tests}/{base,store}
mkdir -p "$tree"/{tests,build/tests}/base
for name in a b c; do make_test tests/base/$name.sh "echo $name >>'$tree/begun'"; done
make_test build/tests/base/b "echo 'program b' >>'$tree/begun'"
printf '# a comment\nbase/c\nbase/gone\nbase/b\n' >"$tree/tests/longest"
TEST_JOBS=1 expect 0 "4 passed, 0 failed, 0 skipped"
[ "$(tr '\n' ' ' <"$tree/begun")" = 'c b program b a ' ] || fail "begun in this order: $(cat "$tree/begun")"
while read -r name; do
    [[ $name == '#'* ]] || [ -e "$tests/$name.sh" ] || [ -e "$tests/$name.c" ] ||
        fail "tests/longest: there is no $name"
done <"$tests/longest"

[ $failures -eq 0 ]
