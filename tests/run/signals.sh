#!/bin/bash
# Ctrl-C, SIGTERM and kill -9 at moments that nobody chose: while a run opens, computes, tests, writes a
# checkpoint, or ends. Whatever is then on the disk can be read and gone on from, or the program says that
# there is nothing yet; and a run that was stopped again and again ends, under sync, with the bits of one that
# was left alone. KILLS=N is how often each signal is sent.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
kills=${KILLS:-4}
cd "$scratch" || exit 1

# The data behind a safetensors file's header, which has times in it.
weights() {
    local header
    header=$(od -An -tu8 -N8 "$1/model.safetensors")
    tail -c +$((header + 9)) "$1/model.safetensors" | cksum
}

net="--quiet --dataset=digits:take=320 --model=mlp:hidden=300 --batch=16 --optimizer=adam"
same="--devices=cpu:0,cpu:1 --threads=1"
# The latest moment for a signal, in hundredths of a second, by how long a run takes to open; as many epochs
# as take longer.
began=${EPOCHREALTIME/[.,]/}
# shellcheck disable=SC2086 # several words, here and below
"$TRAINER" $net $same --epochs=2 --out=measure >out 2>err || fail "trainer: exit code $?: $(cat err)"
latest=$((40 + 3 * (${EPOCHREALTIME/[.,]/} - began) / 10000))
seconds=$(sed -n 's/^Total Time: \(.*\)s$/\1/p' out)
epochs=$(awk -v s="$seconds" -v l="$latest" \
    'BEGIN {
        if (s < 0.01) s = 0.01
        n = int(5 * l / 100 / s)
        if (n < 2) n = 2
        if (n > 2000) n = 2000
        print n
    }')
# shellcheck disable=SC2086
"$TRAINER" $net $same --epochs="$epochs" --out=alone >out 2>err || fail "trainer: exit code $?: $(cat err)"
wanted=$(weights alone)

# What must hold after a signal. Sets $go_on: there is a checkpoint.
check_left() { # signal
    go_on=
    if [ -e stopped/checkpoint/state.safetensors ]; then
        go_on=1
        "$TRAINER" evaluate --checkpoint=stopped >/dev/null 2>said || fail "$1: the checkpoint: $(cat said)"
        return
    fi
    "$TRAINER" --resume=stopped >/dev/null 2>said
    [ $? -eq 3 ] || fail "$1: --resume without a checkpoint: $(cat said)"
    grep -Eqx 'trainer: stopped: (no checkpoint in it.*|No such file or folder, expected .*)' said ||
        fail "$1: --resume without a checkpoint: $(cat said)"
}

stop_often() { # signal, exit code
    local signal=$1 wanted_code=$2 n code ended=0 early=0 none=0 line
    rm -rf stopped
    go_on=
    for ((n = 0; (n < kills || ended == 0) && failures < 10; n++)); do
        touch mark
        # shellcheck disable=SC2086
        if [ -n "$go_on" ]; then
            $heeding "$TRAINER" --quiet --resume=stopped $same --checkpoint-every=0.05 >out 2>err &
        else
            $heeding "$TRAINER" $net $same --epochs="$epochs" --checkpoint-every=0.05 --out=stopped \
                >out 2>err &
        fi
        child=$!
        sleep "$(awk -v r=$((RANDOM % (latest * 10))) 'BEGIN { print r / 1000 }')"
        [ $n -ge "$kills" ] || kill -"$signal" "$child" 2>/dev/null # after so many the run may end
        wait "$child" 2>/dev/null
        code=$?
        child=
        if [ $code -eq 0 ]; then
            ended=$((ended + 1))
            [ "$(weights stopped)" = "$wanted" ] ||
                fail "$signal: a run that went on ended with other weights than the run left alone"
            rm -rf stopped
            go_on=
            continue
        fi
        line=$(cat err)
        if [ -z "$line" ] && [ "$signal" != KILL ]; then # it came before the program had done anything
            early=$((early + 1))
            line=$(find stopped -newer mark 2>/dev/null)
            [ -z "$line" ] || fail "$signal: ended at once, having written $line"
            [ $code -eq $((128 + $(kill -l "$signal"))) ] || fail "$signal: exit code $code, and no words"
        elif [ $code -ne "$wanted_code" ]; then
            fail "$signal: exit code $code, expected $wanted_code: $line"
        elif [ "$signal" != KILL ]; then
            [[ $line =~ \
            ^trainer:\ interrupted\ after\ [0-9]+\ examples\;\ go\ on\ with:\ trainer\ --resume=stopped$ ]] ||
                fail "$signal: said: $line"
            [ -e stopped/checkpoint/state.safetensors ] || fail "$signal: no checkpoint after: $line"
        fi
        check_left "$signal"
        [ -n "$go_on" ] || none=$((none + 1))
        [ -z "$(find stopped -name '*.part' 2>/dev/null)" ] || [ "$signal" = KILL ] ||
            fail "$signal: left $(find stopped -name '*.part')"
    done
    echo "$signal: sent $kills times, $early before the program did anything, $none times before a first \
checkpoint; $ended runs ended, with the bits of the one left alone"
}

stop_often INT 130
stop_often TERM 130
stop_often KILL 137
[ $failures -eq 0 ]
