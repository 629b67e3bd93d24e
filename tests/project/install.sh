#!/bin/bash
# `make install`: into a folder below DESTDIR or straight into PREFIX go the program, its manual page and its completions, and nothing
# else; it runs from any folder without the sources, and `make uninstall` takes them away and nothing else.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for this one

# The program counts as made, whatever it was built with.
install_by() { make -C "$root" -s -o "$TRAINER" PROGRAM="$TRAINER" "$@" >"$scratch/log" 2>&1 || fail "make $*: $(cat "$scratch/log")"; }
files() { (cd "$1" && find . -type f | sort); }
expect_files() { # folder, files
    [ "$(files "$1")" = "$2" ] || fail "$1: expected $2, found: $(files "$1")"
}

mkdir "$scratch/a folder" "$scratch/elsewhere" || exit 1
install_by install DESTDIR="$scratch/a folder"
installed='bin/trainer
share/bash-completion/completions/trainer
share/fish/vendor_completions.d/trainer.fish
share/man/man1/trainer.1
share/zsh/site-functions/_trainer'
# shellcheck disable=SC2001
expect_files "$scratch/a folder" "$(sed 's:^:./usr/local/:' <<<"$installed")"
[ "$(stat -c %a "$scratch/a folder/usr/local/bin/trainer")" = 755 ] || fail "$(stat -c %a "$scratch/a folder/usr/local/bin/trainer")"
cmp -s "$TRAINER" "$scratch/a folder/usr/local/bin/trainer" || fail "another program was installed"

install_by install PREFIX="$scratch/opt"
touch "$scratch/opt/bin/other"
# shellcheck disable=SC2001
expect_files "$scratch/opt" "./bin/other
$(sed 's:^:./:' <<<"$installed")"
"$TRAINER" manual | cmp -s - "$scratch/opt/share/man/man1/trainer.1" || fail "another manual page"
bash -c '. "$1" && complete -p trainer' bash "$scratch/opt/share/bash-completion/completions/trainer" >"$scratch/log" || fail "completions: $(cat "$scratch/log")"
[ "$(stat -c %a "$scratch/opt/share/man/man1/trainer.1")" = 644 ] || fail "the manual page: $(stat -c %a "$scratch/opt/share/man/man1/trainer.1")"
if command -v man >/dev/null && command -v groff >/dev/null; then
    MANPATH=$scratch/opt/share/man man trainer 2>"$scratch/log" | grep -q 'one neural network' || fail "man trainer: $(cat "$scratch/log")"
fi

# --- from another folder, found on the PATH ---
cd "$scratch/elsewhere" || exit 1
PATH=$scratch/opt/bin:$PATH
[ "$(trainer --version)" = "$("$TRAINER" --version)" ] || fail "another version: $(trainer --version)"
trainer --quiet --dataset=digits:take=320 --model=mlp:hidden=20 --epochs=1 --out=run >out 2>err || fail "training: exit code $?: $(cat err)"
grep -q '^Test-Accuracy: ' out || fail "not trained: $(cat out)"
[ "$(ls)" = "$(printf 'err\nout\nrun')" ] || fail "left $(ls)"

# --- again over itself, and away ---
install_by install PREFIX="$scratch/opt"
install_by uninstall PREFIX="$scratch/opt"
expect_files "$scratch/opt" ./bin/other
install_by uninstall PREFIX="$scratch/opt" # there is nothing left to remove
install_by uninstall DESTDIR="$scratch/a folder"
expect_files "$scratch/a folder" ''

# --- a place that cannot be had ---
touch "$scratch/wall"
make -C "$root" -s -o "$TRAINER" PROGRAM="$TRAINER" install PREFIX="$scratch/wall" >"$scratch/log" 2>&1 && fail "installed into a file"
grep -q wall "$scratch/log" || fail "the place is not named: $(cat "$scratch/log")"

[ $failures -eq 0 ]
