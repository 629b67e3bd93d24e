#!/bin/bash
# A process that a run cannot do without is killed, and started again with the same command: with
# --restart-wait the others wait for it with words, all go on from the last checkpoint, and under sync the run
# ends with the bits of one that nobody disturbed. With one parameter server and with two, mirrored, and where
# a worker is the one that is missed; at a moment drawn by lot. What was lost is counted, who does not come
# back is named in time, and a run that is over, or another one, is not taken for the same.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
epochs=60
[ -z "$slow" ] || epochs=20
wait=30
settings="--dataset=digits --model=mlp:hidden=20 --batch=16 --threads=1 --strategy=sync --epochs=$epochs"
RANDOM=${SEED:-$$}
moment="RANDOM=$RANDOM"

start_server() { # task, options...: always the same command
    start "ps$1" "$TRAINER" --job=ps --task="$1" $hosts --out=run --timeout=$timeout --restart-wait=$wait \
        --checkpoint-every=0.01 "${@:2}"
}

start_again() { # name, options...
    case $1 in
    ps*) start_server "${1#ps}" "${@:2}" ;;
    *) start_worker "${1#w}" --out=run --timeout=$timeout --restart-wait=$wait \
        --checkpoint-every=0.01 "${@:2}" ;;
    esac
}

start_all() { # parameter servers, workers, options...; sets $all and $options
    local i
    rm -rf run
    new_cluster "$1" "$2"
    all='' options=("${@:3}")
    for ((i = $1 - 1; i >= 0; i--)); do all+="ps$i "; done
    for ((i = $2 - 1; i >= 0; i--)); do all+="w$i "; done
    for name in $all; do start_again $name "${options[@]}"; done
}

has_checkpoint() { [ -s run/checkpoint/state.safetensors ]; }
others() { echo ${all/$1 /}; } # without that one

# Some time after the first checkpoint.
lose() { # signal, name
    wait_until has_checkpoint
    sleep "0.0$((RANDOM % 10))"
    signal "$1" "$2"
    [ "$1" != 9 ] || finish "$2"
}

waits_for_it() { # names...
    local name
    for name; do
        wait_until grep -Eq "^trainer: lost: .*; waiting up to $wait s for it to come back$" $name.err
    done
}

undisturbed='' # the weights of the run in one process, by the number of its workers
same_bits() { # label, workers
    local devices=cpu:0,cpu:1
    [ "$undisturbed" = "$2" ] ||
        "$TRAINER" --quiet $settings --devices=$devices --replace --out=alone >alone.out 2>alone.err ||
        fail "in one process: $(cat alone.err)"
    undisturbed=$2
    same_weights "$1 ($moment)" run alone
}

lose_one() { # label, parameter servers, victim
    start_all "$2" 2 $settings
    lose 9 "$3"
    waits_for_it $(others "$3")
    start_again "$3" "${options[@]}"
    ends 0 $all
    same_bits "$1" 2
    summary_is "$1" 'examples == 16 * steps, redone_updates >= 0, lost_workers, interrupted' \
        '(True, True, 0, False)'
}
lose_one "the parameter server" 1 ps0
grep -Eq '^goes on from run: update [0-9]+, [0-9.]+ of '$epochs' epochs$' ps0.out ||
    fail "the first lines: $(head -12 ps0.out)"
lost=$(sed -nE 's/^([0-9]+) updates? since then (is|are) lost, and made again$/\1/p' ps0.out)
summary_is "the parameter server" redone_updates "${lost:-0}"

# Killed before its first checkpoint, it begins anew. What the workers knew of is counted, and computed again.
start_all 1 2 $settings --checkpoint-every=0
wait_until is_training
signal 9 ps0
finish ps0
waits_for_it w0 w1
start_again ps0 "${options[@]}"
ends 0 ps0 w0 w1
grep -qx 'starts from the beginning: no checkpoint in run yet' ps0.out ||
    fail "the first lines: $(head -12 ps0.out)"
lost=$(sed -nE 's/^([0-9]+) updates? since then (is|are) lost, and made again$/\1/p' ps0.out)
same_bits "killed before its first checkpoint" 2
summary_is "killed before its first checkpoint" "0 < redone_updates == ${lost:-0} < updates" True
"$TRAINER" report run >out 2>&1 && grep -q '<li>[0-9,]* updates\? since a checkpoint w[aer]* lost' run/report.html ||
    fail "the report does not say what was made again: $(cat out)"

# The same command of a run that is over is refused, as without --restart-wait; so is another command.
start_server 0 $settings
ends 3 ps0
says ps0 "^trainer: run has a run \($epochs of $epochs epochs, .*\): --resume=run goes on with it, \
--replace starts anew$"
rm run/model.safetensors # as if it had been killed before
start_server 0 $settings --batch=8
ends 2 ps0
says ps0 '^trainer: --batch=8: found --restart-wait and a run in run that has 16, '\
'expected the command that it was started with'
refused_with 2 "--replace and --restart-wait: expected one of them, .*" \
    --job=ps --task=0 $hosts --restart-wait=1 --out=run --replace
refused_with 2 "--restart-wait=1: expected --out=FOLDER too, .*" --job=ps --task=0 $hosts --restart-wait=1
run 0 --dataset=iris --epochs=1 --quiet --restart-wait=1 --out=one
grep -qx 'trainer: --restart-wait does nothing in one process, which waits for nobody' err ||
    fail "one process: $(cat err)"
for name in ps0 w0 w1; do start_again $name $settings; done # which has no more to do than to write its model
ends 0 ps0 w0 w1
same_bits "killed before its model" 2

lose_one "a second parameter server" 2 ps1
lose_one "the first of two" 2 ps0
lose_one "a worker that all wait for" 1 w1
lose_one "a mirrored process" 0 w1
lose_one "the mirrored process that leads" 0 w0

# Back at once, before the others have ended the session: who holds weights waits for the next one, and so
# does who joins.
start_all 0 3 $settings --workers=2..3
lose 9 w1
start_again w1 "${options[@]}"
signal 9 w2
finish w2
start_again w2 "${options[@]}"
ends 0 $all
same_weights "back at once" run run/worker-1
summary_is "back at once" 'cluster_ps, cluster_workers, interrupted' '(0, 3, False)'

# Twice, and with others that are killed while they wait.
start_all 1 2 $settings
lose 9 ps0
waits_for_it w0 w1
signal 9 w1
finish w1
start_again ps0 "${options[@]}"
wait_until grep -q 'waits for 2 workers' ps0.err
signal 9 ps0
finish ps0
for name in ps0 w1; do start_again $name "${options[@]}"; done
ends 0 ps0 w0 w1
same_bits "twice" 2

# Nobody waits for anybody: every batch still is computed once for the run that is kept.
start_all 1 2 $settings --strategy=async-lockfree
lose 9 ps0
waits_for_it w0 w1
start_again ps0 "${options[@]}"
ends 0 ps0 w0 w1
summary_is "async-lockfree ($moment)" "(examples, updates == steps, lost_workers)" \
    "($(((epochs * 1437 + 15) / 16 * 16)), True, 0)"

# It stands still for twice the timeout, and longer than those who wait for it do: all go on afterwards.
for times in 2 4; do
    start_all 1 2 $settings
    lose STOP ps0
    sleep $((times * timeout))
    signal CONT ps0
    ends 0 ps0 w0 w1
    same_bits "stopped for $times timeouts" 2
done

# --- who does not come back is named in time; who ends in order is not waited for ---
start_all 1 2 $settings --epochs=1000000 --restart-wait=1
lose 9 ps0
began=$SECONDS
ends 5 w0 w1
[ $((SECONDS - began)) -le $((4 * timeout + 5)) ] || fail "not back: took $((SECONDS - began)) s"
for name in w0 w1; do
    says $name \
        "^trainer: lost: the parameter server 127.0.0.1:$port.*; not all were back within 1 s \
\(--restart-wait\): the parameter server 127.0.0.1:$port"
done
start_all 1 2 $settings --epochs=1000000
lose TERM ps0
ends 130 ps0
ends 5 w0 w1
! grep -q 'waiting up to' w0.err || fail "a run that was ended is waited for: $(grep 'waiting up to' w0.err)"
start_again ps0 "${options[@]}" # and goes on all the same
start_again w0 "${options[@]}"
start_again w1 "${options[@]}"
wait_until grep -q '^goes on from run: ' ps0.out
signal TERM ps0
ends 130 ps0
ends 5 w0 w1

[ $failures -eq 0 ]
