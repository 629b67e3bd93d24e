#!/bin/bash
# A trained network beside another data set, or a changed one: features and classes are those of its training,
# by name, and numbers are brought to the mean and deviation of its training; or it is refused.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1

# Two numbers of very different size; the label depends on both.
awk 'BEGIN {
    srand(3)
    print "a,city,b,label"
    for (i = 0; i < 300; i++) {
        a = 20 + 40 * rand(); b = 30000 + 40000 * rand()
        c = i % 3 ? (i % 3 == 1 ? "Graz" : "Linz") : "Wien"
        print a "," c "," b "," (a / 40 + b / 50000 > 2 ? "yes" : "no")
    }
}' >base.csv
awk -F, -v OFS=, '{ print $3, $2, $1, $4 }' base.csv >order.csv
sed 's/Graz/Zug/' base.csv >cities.csv
sed 's/no$/A/; s/yes$/B/' base.csv >classes.csv
awk -F, 'NR == 1 || ($1 > 36 && $1 < 48)' base.csv >part.csv
train="--devices=cpu:0 --threads=1 --quiet"
# shellcheck disable=SC2086 # several words
"$TRAINER" $train --dataset=csv:file=base.csv --out=run >/dev/null || fail "training: exit code $?"
cp -r run before

refused() { # words, options...
    local words=$1
    shift
    timeout 20 "$TRAINER" "$@" >out 2>err
    local code=$?
    [ $code -eq 2 ] || fail "$*: exit code $code"
    grep -qF "$words" err || fail "$*: found \"$(cat err)\", expected \"$words\""
}
for verb in "evaluate --checkpoint=run" "--resume=run --epochs=70"; do
    # shellcheck disable=SC2086 # several words
    {
        refused 'csv: feature 1 is "b", expected "a"' $verb --dataset=csv:file=order.csv
        refused 'csv: feature 2 is "city=Linz", expected "city=Graz"' $verb --dataset=csv:file=cities.csv
        refused 'csv: found "A" among the classes, expected "no" in its place' $verb \
            --dataset=csv:file=classes.csv
    }
done
diff -r run before || fail "a data set that was refused has changed the run"
# shellcheck disable=SC2086 # several words
"$TRAINER" $train --weights=run --dataset=csv:file=order.csv --out=next >out 2>err ||
    fail "weights of other columns: $(cat err)"
grep -qF 'run: csv: feature 1 is "b", expected "a"' err || fail "--weights: found \"$(cat err)\""

"$TRAINER" evaluate --checkpoint=run --dataset=csv:file=base.csv >out || fail "the same file: exit code $?"

# Rows whose mean is another one: as many are right as predict says.
right() { sed -n 's/^Accuracy: .* (\([0-9]*\) of \([0-9]*\))$/\1 \2/p'; }
read -r predicted rows < <("$TRAINER" predict --checkpoint=run part.csv | right)
total=0
for part in train test; do
    "$TRAINER" evaluate --checkpoint=run --dataset=csv:file=part.csv --part=$part >out 2>err ||
        fail "$part: exit code $?: $(cat err)"
    total=$(awk -v total="$total" '/^Examples/ { n = $2 } /-Accuracy/ { a = $2 }
        END { printf "%d", total + a * n + 0.5 }' out)
done
[ "$total" = "${predicted:-none}" ] ||
    fail "$total right answers of ${rows:-no} rows, predict has ${predicted:-none}"

[ $failures -eq 0 ]
