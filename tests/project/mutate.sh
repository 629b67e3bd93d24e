#!/bin/bash
# tests/mutate, on a small tree of its own: what it says of a bug that is found, of one that is not, and of
# entries that fit no longer, and that it leaves the tree as it was. Then that the entries of tests/mutations
# can be read.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
need make
need cc
cd "$scratch" || exit 1
mkdir -p tree/tests/sums tree/src
cp "$tests/mutate" tree/tests/
cat >tree/Makefile <<'MAKE'
$(B)/tests/%: tests/%.c src/sum.c
	@mkdir -p $(@D)
	@cc -o $@ $^
MAKE
cat >tree/src/sum.c <<'C'
int sum(int a, int b);
int sum(int a, int b) {
    return a + b;
}

/* a + c */
C
cat >tree/tests/sums/sum.c <<'C'
int sum(int a, int b);
int main(void) {
    return sum(2, 2) != 4;
}
C
echo 'int main(void) { return 1; }' >tree/tests/sums/broken.c
echo 'int main(void) { return 77; }' >tree/tests/sums/none.c
cat >tree/tests/mutations <<'TEXT'
# a comment

bug found
test sums/sum
file src/sum.c
-     return a + b;
- }
+     return a - b;
+ }

bug blind
test sums/sum
file src/sum.c
- a + b
+ a * b

bug endless
test sums/sum
seconds 1
file src/sum.c
- return a + b;
+ for (;;) a++;

bug moved
test sums/sum
file src/sum.c
- a - b
+ a + b

bug twice
test sums/sum
quick
file src/sum.c
- a +
+ a -

bug gone
test sums/sum
file src/total.c
- a + b

bug wrong
test sums/sum
file src/sum.c
- return a + b;
+ return a +;

bug broken
test sums/broken
file src/sum.c
- a + b
+ a - b

bug none
test sums/none
file src/sum.c
- a + b
+ a - b
TEXT
cp -r tree before

mutate() { # exit code expected, arguments...; what it prints, without times, is in out
    local expected=$1 code
    shift
    timeout 100 tree/tests/mutate "$@" >said 2>&1
    code=$?
    [ $code -eq "$expected" ] || fail "mutate $*: exit code $code, expected $expected: $(cat said)"
    sed -E 's/ \([0-9.]+ s\)//; s/; [0-9]+ s$//; s/  +/ /' said >out
}

is() { # what is tested, the lines expected
    [ "$(cat out)" = "$2" ] || fail "$1: found
$(cat out)
expected
$2"
}

mutate 1
is "all" 'caught found: sums/sum
SURVIVED blind: sums/sum passes
caught endless: sums/sum
does not fit moved: the old text is 0 times in src/sum.c
does not fit twice: the old text is 2 times in src/sum.c
does not fit gone: there is no src/total.c
does not build wrong: '"$(sed -n 's/^does not build *wrong ([0-9.]* s): //p' said)"'
broken broken: sums/broken fails as it is: no words
skipped none: no words
2 caught, 1 survived, 3 no longer fit, 1 do not build, 1 whose test fails as it is, 1 skipped'
grep -q '^does not build .*error' said || fail "what does not build: $(cat said)"
mutate 0 found
is "one" 'caught found: sums/sum
1 caught, 0 survived, 0 no longer fit'
mutate 1 --quick
is "--quick" 'does not fit twice: the old text is 2 times in src/sum.c
0 caught, 0 survived, 1 no longer fit'
mutate 0 --in="$scratch/copy" 'f*'
mutate 0 --in="$scratch/copy" --words endless
is "a copy that stays" 'caught endless: sums/sum took more than 1 s
1 caught, 0 survived, 0 no longer fit'
cmp -s copy/src/sum.c tree/src/sum.c || fail "the copy was left with a bug in it"
for part in 1 2 3; do
    mutate 0 --part=$part/3 found endless none
    cat out
done >parts
cp parts out
is "--part" 'caught found: sums/sum
caught endless: sums/sum
2 caught, 0 survived, 0 no longer fit
skipped none: no words
0 caught, 0 survived, 0 no longer fit, 1 skipped
0 caught, 0 survived, 0 no longer fit'
mutate 1 --fit
is "--fit" 'does not fit moved: the old text is 0 times in src/sum.c
does not fit twice: the old text is 2 times in src/sum.c
does not fit gone: there is no src/total.c
6 fit, 3 no longer fit'
mutate 1 nothing
is "no such entry" 'tests/mutate: nothing: no entry of tests/mutations has this name'
printf 'bug a\ntest sums/sum\nfile src/sum.c\n* b\n' >>tree/tests/mutations
mutate 1 --list
grep -q "mutations:[0-9]*: '\* b': not understood$" out || fail "a line that is none: $(cat out)"
cp before/tests/mutations tree/tests/
diff -r tree before || fail "the tree was changed"

"$tests/mutate" --list >out 2>&1 || fail "tests/mutations: $(cat out)"
[ "$(wc -l <out)" -ge 100 ] || fail "tests/mutations has $(wc -l <out) entries, expected 100 or more"
[ $failures -eq 0 ]
