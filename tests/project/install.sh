#!/bin/bash
# `make install`: into a folder below DESTDIR or straight into PREFIX go the program, the library with its
# header, the manual page and the completions, and nothing else; the program runs from any folder without the
# sources, a program of another folder is built with the library, and `make uninstall` takes all of it away
# and nothing else.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for this one

# Program and library count as made, whatever they were built with.
version=$("$TRAINER" --version | awk '{print $2}')
made=("B=$BUILD" "PROGRAM=$TRAINER" -o "$TRAINER")
for file in libtrainer.a libtrainer.so libtrainer.so.0 "libtrainer.so.$version"; do
    made+=(-o "$BUILD/library/$file")
done
install_by() {
    make -C "$root" -s "${made[@]}" "$@" >"$scratch/log" 2>&1 || fail "make $*: $(cat "$scratch/log")"
}
files() { (cd "$1" && find . -type f ! -name 'libtrainer.so*' | sort); }
expect_files() { # folder, files
    [ "$(files "$1")" = "$2" ] || fail "$1: expected $2, found: $(files "$1")"
}

mkdir "$scratch/a folder" "$scratch/elsewhere" || exit 1
install_by install DESTDIR="$scratch/a folder"
installed="bin/trainer
include/trainer.h
lib/libtrainer.a
lib/pkgconfig/trainer.pc
share/bash-completion/completions/trainer
share/fish/vendor_completions.d/trainer.fish
share/man/man1/trainer.1
share/zsh/site-functions/_trainer"
links="libtrainer.so libtrainer.so.0 libtrainer.so.$version"
# shellcheck disable=SC2001
expect_files "$scratch/a folder" "$(sed 's:^:./usr/local/:' <<<"$installed")"
[ "$(stat -c %a "$scratch/a folder/usr/local/bin/trainer")" = 755 ] ||
    fail "$(stat -c %a "$scratch/a folder/usr/local/bin/trainer")"
cmp -s "$TRAINER" "$scratch/a folder/usr/local/bin/trainer" || fail "another program was installed"

install_by install PREFIX="$scratch/opt"
touch "$scratch/opt/bin/other"
# shellcheck disable=SC2001
expect_files "$scratch/opt" "./bin/other
$(sed 's:^:./:' <<<"$installed")"
"$TRAINER" manual | cmp -s - "$scratch/opt/share/man/man1/trainer.1" || fail "another manual page"
bash -c '. "$1" && complete -p trainer' bash "$scratch/opt/share/bash-completion/completions/trainer" \
    >"$scratch/log" || fail "completions: $(cat "$scratch/log")"
[ "$(stat -c %a "$scratch/opt/share/man/man1/trainer.1")" = 644 ] ||
    fail "the manual page: $(stat -c %a "$scratch/opt/share/man/man1/trainer.1")"
if command -v man >/dev/null && command -v groff >/dev/null; then
    MANPATH=$scratch/opt/share/man man trainer 2>"$scratch/log" | grep -q 'one neural network' ||
        fail "man trainer: $(cat "$scratch/log")"
fi

# --- from another folder, found on the PATH ---
cd "$scratch/elsewhere" || exit 1
PATH=$scratch/opt/bin:$PATH
[ "$(trainer --version)" = "$("$TRAINER" --version)" ] || fail "another version: $(trainer --version)"
trainer --quiet --dataset=digits:take=320 --model=mlp:hidden=20 --epochs=1 --out=run >out 2>err ||
    fail "training: exit code $?: $(cat err)"
grep -q '^Test-Accuracy: ' out || fail "not trained: $(cat out)"
[ "$(ls)" = "$(printf 'err\nout\nrun')" ] || fail "left $(ls)"

# --- a program that uses the library, shared and static ---
[ "$(cd "$scratch/opt/lib" && echo libtrainer.so*)" = "$links" ] ||
    fail "the shared library: $(ls "$scratch/opt/lib")"
cp "$root/examples/first.c" .
export PKG_CONFIG_PATH=$scratch/opt/lib/pkgconfig
if command -v pkg-config >/dev/null; then
    read -ra shared < <(pkg-config --cflags --libs trainer)
    read -ra static < <(pkg-config --cflags --libs --static trainer)
else
    shared=("-I$scratch/opt/include" "-L$scratch/opt/lib" -ltrainer) static=("${shared[@]}"
        "$(sed -n 's/^Libs.private: //p' "$PKG_CONFIG_PATH/trainer.pc")")
fi
read -ra static <<<"${static[*]/-ltrainer/-l:libtrainer.a}"
gcc -std=c17 -Wall -Wextra -Wpedantic -Werror first.c "${shared[@]}" -o shared 2>err ||
    fail "with the shared library: $(cat err)"
[ "$(LD_LIBRARY_PATH=$scratch/opt/lib ./shared | head -n 1)" = 'add=5, mul=6, pow=15625' ] ||
    fail "the program with the shared library"
# Of these the flags are missing.
if ! nm "$scratch/opt/lib/libtrainer.a" | grep -Eq '__(asan|tsan|ubsan)'; then
    gcc -std=c17 first.c "${static[@]}" -o static 2>err || fail "with the static library: $(cat err)"
    [ "$(./static | head -n 1)" = 'add=5, mul=6, pow=15625' ] || fail "the program with the static library"
fi
printf '#include <trainer.h>\nint main() { return trainer_version()[0] == 0; }\n' >plain.cc
! command -v g++ >/dev/null || g++ -Wall -Wextra -Werror -c plain.cc -I"$scratch/opt/include" -o plain.o \
    2>err || fail "from C++: $(cat err)"
rm -f first.c shared static plain.cc plain.o err

# --- again over itself, and away ---
install_by install PREFIX="$scratch/opt"
install_by uninstall PREFIX="$scratch/opt"
expect_files "$scratch/opt" ./bin/other
install_by uninstall PREFIX="$scratch/opt" # there is nothing left to remove
install_by uninstall DESTDIR="$scratch/a folder"
expect_files "$scratch/a folder" ''
[ -z "$(find "$scratch/a folder" "$scratch/opt" -name 'libtrainer*')" ] ||
    fail "the library stays: $(find "$scratch/opt" -name 'libtrainer*')"

# --- a place that cannot be had ---
touch "$scratch/wall"
make -C "$root" -s "${made[@]}" install PREFIX="$scratch/wall" >"$scratch/log" 2>&1 &&
    fail "installed into a file"
grep -q wall "$scratch/log" || fail "the place is not named: $(cat "$scratch/log")"

[ $failures -eq 0 ]
