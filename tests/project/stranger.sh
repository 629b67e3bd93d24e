#!/bin/bash
# A strategy by somebody who knows only docs/strategies.md, and an output: tests/self-apply.c is copied into
# strategies/ of a copy of the sources, and with no other edit it is listed, trains, has its row in a
# comparison and passes the tests; each promise that is made false fails there by name. tests/worst.c, copied
# into src/outputs/, is told of every step. The copy takes over the objects that are built already, so only
# the new file, the tables and the programs are made.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
: "${BUILD:?expected the build folder}"
flags=$(<"$BUILD/flags") || exit 1
case $flags in
*-fsanitize=*) echo "built with a sanitizer: the build of a copy would take too long" && exit 77 ;;
esac
tree=$scratch
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for the one in the copy

# --- a copy of the sources, with what is built of them; times are kept, so that it counts as built ---
copy_tree() {
    local folder
    for folder in Makefile src strategies models datasets tests cuda; do
        if [ -e "$root/$folder" ]; then cp -a "$root/$folder" "$tree/" || exit 1; fi
    done
    mkdir "$tree/build" || exit 1
    for folder in flags flags.cuda proto tables src strategies models datasets cuda; do
        if [ -e "$BUILD/$folder" ]; then cp -a "$BUILD/$folder" "$tree/build/" || exit 1; fi
    done
    for folder in engine strategies; do
        mkdir -p "$tree/build/tests/$folder" &&
            cp -a "$BUILD/tests/$folder"/*.[od] "$tree/build/tests/$folder/" || exit 1
    done
    # The dependencies name objects in the build folder, whatever that was.
    for folder in src strategies models datasets tests cuda; do
        [ ! -e "$tree/build/$folder" ] ||
            find "$tree/build/$folder" -name '*.d' -exec sed -i "1s#^[^:]*/$folder/#build/$folder/#" {} + ||
            exit 1
    done
    cd "$tree" || exit 1
}

setting() { # pattern: the first word of the flags that it matches, without what stands before its =
    grep -Eo -m 1 -e "$1" <<<"$flags" | head -n 1 | sed 's/^[^=]*=//'
}

build() { # what...: with the compiler and the flags of $BUILD
    local werror=0
    case $flags in *-Werror*) werror=1 ;; esac
    make -j2 CC="${flags%% -std=*}" WERROR=$werror MARCH="$(setting '-march=[^ ]+')" \
        ONEDNN="$(setting '-DTRAINER_ONEDNN=[01]')" CURL="$(setting '-DTRAINER_CURL=[01]')" \
        TLS="$(setting '-DTRAINER_TLS=[01]')" CUDA="$(setting '-DTRAINER_CUDA=[01]')" \
        STB="$(setting '-DTRAINER_STB=[01]')" TURBO="$(setting '-DTRAINER_TURBO=[01]')" \
        PROTOBUF="$(setting '-DTRAINER_PROTOBUF=[01]')" PNG="$(setting '-DTRAINER_PNG=[01]')" \
        HDF5="$(setting '-DTRAINER_HDF5=[01]')" "$@" >log 2>&1 || { cat log && exit 1; }
}

programs="strategies/strategies strategies/reads engine/training"
copy_tree
cp "$root/tests/self-apply.c" strategies/ || exit 1
cp "$root/tests/worst.c" src/outputs/ || exit 1
# shellcheck disable=SC2086,SC2046 # several names
build all $(printf 'build/tests/%s ' $programs)

# --- it is there ---
./trainer list >out || fail "list: exit code $?"
grep -q '^  self-apply  ' out || fail "not listed: $(cat out)"
./trainer --strategy=self-apply --out=run >out 2>err || fail "training failed: $(cat err)"
awk '/^Test-Accuracy: / { found = $2 >= 0.85 } END { exit !found }' out || fail "not trained: $(cat out)"
./trainer --outputs=csv,worst --epochs=2 --log-every=1 --out=told --quiet >out 2>err ||
    fail "with an output of its own: $(cat err)"
highest=$(awk -F, 'NR > 1 && $6 > most { most = $6 } END { printf "%.4f", most }' told/steps.csv)
[ "$(printf '%.4f' "$(cat told/worst.txt)")" = "$highest" ] ||
    fail "the output found $(cat told/worst.txt), steps.csv has $highest"
[ ! -e run/worst.txt ] || fail "an output that was not chosen was told"
./trainer bench --strategies=all --repeats=1 --epochs=2 --out=compared >out 2>err ||
    fail "bench failed: $(cat err)"
[ "$(grep -c '^self-apply ' out)" -eq 2 ] || fail "not in the two tables of bench: $(cat out)"
grep -Eq '^self-apply,1,[0-9]+,0,' compared/runs.csv ||
    fail "no run of its own: $(cut -c1-60 compared/runs.csv)"

# --- it passes; the long one meanwhile ---
cp build/tests/strategies/strategies kept && { ./kept >kept.out 2>&1 & } && child=$!
for name in strategies/reads engine/training; do
    "build/tests/$name" >out 2>&1 || fail "$name: $(head -n 20 out)"
done

# --- a false promise fails, by name; an edit of one line makes it so ---
false_promise() { # test, edit, words of the complaint
    local codes
    sed "$2" "$root/tests/self-apply.c" >strategies/self-apply.c
    [ "$(diff "$root/tests/self-apply.c" strategies/self-apply.c | grep -c '^>')" -eq 1 ] ||
        fail "$2: not an edit of one line"
    build "build/tests/$1"
    "build/tests/$1" 2>&1 | head -n 1 >out # which ends it early
    codes=("${PIPESTATUS[@]}")
    [ "${codes[0]}" -ne 0 ] || fail "$1 passes with $2"
    grep -q "self-apply.*$3" out || fail "$1 with $2: expected self-apply ... $3, found: $(cat out)"
}
false_promise strategies/strategies 's/\.whole_reads = true,/& .lock_free = true,/' 'locks taken'
false_promise strategies/reads 's/= strategy_read_locked/= strategy_read_racy/' 'torn'
false_promise engine/training 's/= strategy_bytes_changed/= strategy_bytes_none/' 'bytes'

wait "$child" || fail "strategies/strategies: $(head -n 20 kept.out)"
child=

# --- docs/strategies.md shows this file: each line of its C is a line of it ---
shown=$(awk '/^```/ { c = $0 == "```c"; next } c' "$root/docs/strategies.md")
[ -n "$shown" ] || fail "docs/strategies.md shows nothing of a strategy"
while IFS= read -r line; do
    grep -Fqx -e "$line" "$root/tests/self-apply.c" ||
        fail "docs/strategies.md shows a line that the file has not: $line"
done <<<"$shown"

[ $failures -eq 0 ]
