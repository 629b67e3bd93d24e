#!/bin/bash
# bench/demo: both strategies train, and the table at the end says what their files say. ./demo: installs,
# builds, and runs it.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1

# Which the demo replaces.
"$TRAINER" --quiet --epochs=1 --out=runs/demo-sync >out 2>err || fail "an earlier run: $(cat err)"
"$root/bench/demo" "$TRAINER" >out 2>err || fail "exit code $?: $(cat err)"
[ "$(grep -c '^Test-Accuracy: ' out)" -eq 2 ] || fail "expected two accuracies: $(cat out)"
LC_ALL=C tail -n 3 out | awk '
    NR == 1 {
        if ($0 !~ /^strategy +accuracy +time +waiting +every step$/) { print "heading: " $0; wrong = 1 }
        next
    }
    {
        if ($1 != (NR == 2 ? "async-lockfree" : "sync")) { print "row " NR ": " $0; wrong = 1 }
        folder = "runs/demo-" $1
        while ((getline line <(folder "/summary.json")) > 0) {
            split(line, part, "[\":, ]+")
            if (line ~ /^  "/) said[$1, part[2]] = part[3]
        }
        if (sprintf("%.4f", said[$1, "test_accuracy"]) != $2) {
            print "accuracy " $2 ", expected " said[$1, "test_accuracy"]
            wrong = 1
        }
        if (sprintf("%.2f", said[$1, "train_seconds"]) != $3) {
            print "time " $3 ", expected " said[$1, "train_seconds"]
            wrong = 1
        }
        if (sprintf("%.0f", 100 * said[$1, "wait_share"]) != $5) {
            print "waiting " $5 ", expected " said[$1, "wait_share"]
            wrong = 1
        }
        if ($2 < 0.85) { print "not trained: " $0; wrong = 1 }
        rows = 0
        while ((getline line <$7) > 0) rows++
        if (rows != said[$1, "steps"] + 1) {
            print $7 ": " rows " lines, expected " said[$1, "steps"] " and a heading"
            wrong = 1
        }
    }
    END { exit NR != 3 || wrong }' || fail "the table: $(tail -n 3 out)"
grep -q '^async-lockfree, 2 workers (cpu:0 .*, cpu:1 ' out || fail "not on two devices: $(cat out)"

# --- a program that fails ends it there, with its code; it was given what the first line of each run
# shows ---
printf '#!/bin/sh\necho "$*" >>given\necho "trainer: no" >&2\nexit 4\n' >broken && chmod +x broken
"$root/bench/demo" ./broken >out 2>err
[ $? -eq 4 ] || fail "a program that fails with 4: not passed on"
[ "$(cat err)" = "trainer: no" ] || fail "a program that fails: $(cat err)"
[[ $(cat given) == "--strategy=async-lockfree --devices=cpu:0,cpu:1 "* && $(wc -l <given) -eq 1 ]] ||
    fail "given: $(cat given)"
[ "$(cat out)" = "./broken --strategy=async-lockfree --devices=cpu:0,cpu:1" ] || fail "said: $(cat out)"

# --- ./demo, from any folder: what is missing, make, the demo of the program, in this order; the first that
# fails ends it ---
mkdir -p "a tree/tests" "a tree/bench" fakes && cp "$root/demo" "a tree/" || exit 1
for step in "a tree/tests/install-missing" fakes/make "a tree/bench/demo"; do
    printf '#!/bin/sh\necho "${0##*/}" $(for word; do case $word in -*) ;; *) echo "$word" ;; esac; '\
'done) >>"$CALLS"\n[ "${0##*/}" != "$FAILING" ] || exit 3\n' \
        >"$step"
    chmod +x "$step"
done
export CALLS=$scratch/calls
demo_calls() { # which step fails, the code of all, the steps expected
    : >calls
    FAILING=$1 PATH=$scratch/fakes:$PATH "a tree/demo" >out 2>err
    [ $? -eq "$2" ] || fail "./demo, with $1 failing: another exit code than $2: $(cat err)"
    [ "$(cat calls)" = "$3" ] || fail "./demo, with $1 failing: $(cat calls)"
}
demo_calls nothing 0 'install-missing
make
demo ./trainer'
demo_calls install-missing 3 install-missing
demo_calls make 3 'install-missing
make'
demo_calls demo 3 'install-missing
make
demo ./trainer'

[ $failures -eq 0 ]
