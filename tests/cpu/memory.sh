#!/bin/bash
# Too little memory, of every size: the libraries below (oneDNN, libgomp) would end the process by a signal,
# an exception or an exit code of their own. One line that says what memory was missing for, and exit code 4;
# from some size on, all is well.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
: "${BUILD:?expected the build folder}"
need prlimit
flags=$(<"$BUILD/flags")
case $flags in
*-fsanitize=* | *TRAINER_CUDA=1*)
    echo "built with a sanitizer or CUDA: they take more addresses than memory"
    exit 77 ;;
esac
cd "$scratch" || exit 1
ulimit -c 0

sweep() { # options...; from the size at which the program starts, until five have been enough
    local size code enough=0 short=0 onednn=0
    for ((size = 40; size < 1000 && enough < 5; size += 5)); do
        rm -rf out
        # Libraries that are linked may fail before the program begins.
        prlimit --as=$((size << 20)) "$TRAINER" --version >said 2>err || continue
        prlimit --as=$((size << 20)) "$TRAINER" --quiet --epochs=1 --dataset=digits:take=160 --out=out "$@" \
            >said 2>err
        code=$?
        if [ $code -eq 0 ]; then
            enough=$((enough + 1))
            continue
        fi
        short=$((short + 1)) enough=0
        if [ $code -ne 4 ] || [ "$(wc -l <err)" -ne 1 ]; then
            fail "$* in $size MB: exit code $code, expected 4: $(cat err)"
        fi
        grep -q '^trainer: .*\(memory\|cannot be started\)' err || fail "$* in $size MB: said: $(cat err)"
        ! grep -q oneDNN err || onednn=$((onednn + 1))
    done
    [ $enough -eq 5 ] || fail "$*: $size MB are not enough"
    case $flags in *TRAINER_ONEDNN=1*) [ $onednn -ge 1 ] || fail "$*: oneDNN never had too little" ;; esac
    echo "$*: $short sizes were too small, $onednn of them for oneDNN"
}
sweep --model=lenet --devices=cpu:0,cpu:1 --threads=1
sweep --model=mlp:hidden=1500-1500 --devices=cpu:0 --threads=2

[ $failures -eq 0 ]
