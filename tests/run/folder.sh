#!/bin/bash
# shellcheck disable=SC2086 # several words
# The folder of a run: nobody else's, and never one that has a run, unless --replace is given.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
small="--quiet --dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0"

# --- folders that the program names: one for each run, however many begin in a second, also at once ---
for seed in 1 2 3; do
    "$TRAINER" $small --epochs=1 --seed=$seed >out 2>err || fail "seed $seed: exit code $?: $(cat err)"
done
children=()
for seed in 4 5 6; do
    "$TRAINER" $small --epochs=1 --seed=$seed >out.$seed 2>&1 &
    children+=($!)
done
for one in "${children[@]}"; do wait "$one" || fail "one of three runs at once: exit code $?"; done
[ "$(find runs -name summary.json | wc -l)" -eq 6 ] || fail "six runs left $(ls runs)"
for seed in 1 2 3 4 5 6; do
    [ "$(grep -l "\"seed\": $seed," runs/*/summary.json | wc -l)" -eq 1 ] ||
        fail "the run with seed $seed is not there once"
done

# --- folders that the user names ---
$heeding "$TRAINER" $small --epochs=1000000 --out=mine >out 2>err &
child=$!
until [ -e mine/steps.csv ]; do sleep 0.02; done
sleep 0.1
kill -INT $child
wait $child
[ $? -eq 130 ] || fail "the interrupted run: $(cat err)"
child=
before=$(find mine -type f -exec cksum {} + | sort)
"$TRAINER" $small --epochs=1 --out=mine >out 2>err
[ $? -eq 3 ] || fail "a second run in its folder: $(cat err)"
grep -Eqx 'trainer: mine has a run \([0-9]+(\.[0-9])? of 1000000 epochs, [0-9.]+ %\): '\
'--resume=mine goes on with it, --replace starts anew' \
    err ||
    fail "a second run in its folder said: $(cat err)"
[ "$(find mine -type f -exec cksum {} + | sort)" = "$before" ] ||
    fail "a run that was refused changed the folder"
"$TRAINER" $small --epochs=1 --out=other >out 2>err || fail "another folder: $(cat err)"
"$TRAINER" --quiet --resume=other --out=mine --epochs=2 >out 2>err
[ $? -eq 3 ] || fail "a run that goes on in the folder of another one: $(cat err)"
[ "$(find mine -type f -exec cksum {} + | sort)" = "$before" ] ||
    fail "a run that goes on elsewhere changed the folder"
for same in mine mine/ ./mine mine/checkpoint; do
    "$TRAINER" --quiet --resume=$same --epochs=1 --devices=cpu:0 >out 2>err ||
        fail "--resume=$same: $(cat err)"
done
"$TRAINER" --resume=mine --replace --epochs=20 >out 2>err || fail "both at once: exit code $?: $(cat err)"
grep -q '^trainer: --replace replaces nothing: the run in mine goes on, as --resume says$' err ||
    fail "both at once: $(cat err)"
# Whatever does nothing is said, also by a run that has nothing left to do.
"$TRAINER" --resume=mine --replace --stop-after=30 --slots=8 --strategy=sync --port=99 >out 2>err ||
    fail "options that do nothing: exit code $?: $(cat err)"
for words in '--replace replaces nothing: ' '--stop-after=30 does nothing: the run has 20 epochs' \
    '--slots=8 does nothing under sync' '--port does nothing in one process'; do
    grep -q -e "^trainer: $words" err || fail "expected \"$words\", found: $(cat err)"
done
"$TRAINER" $small --epochs=2 --out=mine --replace >out 2>err || fail "--replace: exit code $?: $(cat err)"
grep -q '"epochs": 2' mine/summary.json || fail "--replace did not begin anew: $(cat mine/summary.json)"
[ -z "$(find mine -name '*.csv.*')" ] ||
    fail "--replace left logs of the run before: $(find mine -name '*.csv.*')"
mkdir theirs && echo notes >theirs/steps.csv
"$TRAINER" $small --epochs=1 --out=theirs >out 2>err || fail "a folder with a file: $(cat err)"
"$TRAINER" $small --epochs=1 --out=theirs --replace >out 2>err || fail "--replace there: $(cat err)"
[ "$(cat theirs/steps.csv.1)" = notes ] || fail "a file that no run wrote is gone: $(find theirs)"

# --- the same for a comparison ---
bench="bench $small --strategies=sync --repeats=1 --epochs=1 --out=compared"
"$TRAINER" $bench >out 2>err || fail "bench: exit code $?: $(cat err)"
before=$(find compared -type f -exec cksum {} + | sort)
"$TRAINER" $bench >out 2>err
[ $? -eq 3 ] || fail "a second comparison in its folder: $(cat err)"
grep -qx 'trainer: compared has a comparison: --replace starts anew' err ||
    fail "a second comparison said: $(cat err)"
[ "$(find compared -type f -exec cksum {} + | sort)" = "$before" ] ||
    fail "a comparison that was refused changed the folder"
"$TRAINER" $bench --replace >out 2>err || fail "bench --replace: exit code $?: $(cat err)"
children=()
for n in 1 2 3; do
    "$TRAINER" bench $small --strategies=sync --repeats=1 --epochs=1 >out.$n 2>&1 &
    children+=($!)
done
for one in "${children[@]}"; do wait "$one" || fail "one of three comparisons at once: exit code $?"; done
[ "$(find runs -name bench.csv | wc -l)" -eq 3 ] || fail "three comparisons left $(find runs -name bench.csv)"

# --- nor does one go into the folder of the other ---
refused_in() { # folder, words, command...
    local folder=$1 words=$2
    shift 2
    before=$(find $folder -type f -exec cksum {} + | sort)
    "$TRAINER" "$@" --out=$folder >out 2>err
    [ $? -eq 3 ] || fail "$*: not refused in $folder: $(cat err)"
    grep -qx "trainer: $words" err || fail "$*: in $folder it said: $(cat err)"
    [ "$(find $folder -type f -exec cksum {} + | sort)" = "$before" ] || fail "$*: it changed $folder"
}
"$TRAINER" sweep $small --vary=batch=16,32 --epochs=1 --out=swept >out 2>&1 || fail "sweep: $(cat out)"
"$TRAINER" ensemble $small --members=2 --epochs=1 --out=several >out 2>&1 || fail "ensemble: $(cat out)"
for replace in '' --replace; do
    other_words="a comparison needs another folder"
    for other in swept several; do
        refused_in $other \
            "$other has an\? [a-z]* ([a-z.]*), which trainer [a-z]* --resume goes on with: $other_words" \
            bench $small --strategies=sync --repeats=1 --epochs=1 $replace
    done
    refused_in compared 'compared has a comparison (bench.csv): a run needs another folder' $small \
        --epochs=1 $replace
    refused_in mine 'mine has a run: a comparison needs another folder' bench $small --strategies=sync \
        --repeats=1 --epochs=1 $replace
done

[ $failures -eq 0 ]
