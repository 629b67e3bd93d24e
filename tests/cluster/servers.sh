#!/bin/bash
# Several parameter servers, and none: clusters where each has a slice of the weights. That the slices
# together train as one process does, that the counts of all of them come together, and that whoever is
# killed, interrupted, missing or of another opinion is named by all others, which end by themselves; and that
# it then goes on from the checkpoint.
#
# ps0 leads: it writes to run/. The other parameter servers and their workers are told to write to elsewhere/,
# and must not. With none the chief w0 leads.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

start_ps() { # task, options...
    local task=$1 out=elsewhere
    shift
    [ "$task" -gt 0 ] || out=run
    start "ps$task" "$TRAINER" --job=ps --task="$task" $hosts --replace --out=$out "$@"
}

# Those whom the leader looks for first, as it looks but once a second.
start_all() { # parameter servers, workers, options for all...; sets $all
    local servers=$1 workers=$2 i
    shift 2
    all=''
    for ((i = servers - 1; i >= 0; i--)); do start_ps $i "$@"; done
    for ((i = workers - 1; i >= 0; i--)); do
        if [ $servers -gt 0 ]; then
            start_worker $i --out=elsewhere "$@"
        else
            start_worker $i --replace --out=run "$@"
        fi
    done
    for ((i = 0; i < servers; i++)); do all+="ps$i "; done
    for ((i = 0; i < workers; i++)); do all+="w$i "; done
}

start_cluster() { # parameter servers, workers, options for all...: a new one
    new_cluster "$1" "$2"
    rm -rf run
    start_all "$@"
}

# The same run in one process.
same_alone() { # label, devices, options...
    local label=$1 devices=$2
    shift 2
    "$TRAINER" --quiet "$@" --devices="$devices" --threads=1 --replace --out=alone >alone.out 2>alone.err ||
        fail "$label in one process: exit code $?: $(cat alone.err)"
    same_weights "$label" run alone
}

# A batch goes as number, weights of the leader's slice behind a request, gradient behind a loss; a worker
# that has none for a round, or until the next epoch, is told so. With so many shards, so many at the leader,
# so often told that there is none. Under local-sgd and easgd all vectors go when they are averaged, instead,
# each way; those of a pause in a frame of their own.
wire_of() { # shards, at the leader, times
    local slice="64 * (lines * $2 // $1)"
    echo "(lambda sent, received: (sent - steps * $slice, received - steps * $slice) \
if not strategy.startswith(('local-sgd', 'easgd')) else (0, 0) if 0 < sent < 0.8 * steps * $slice \
and (received - sent) in range(0, 64 * 8 + 1, 64) else (sent, received))\
(wire_sent - steps * (128 + 128) - 128 * $3, wire_received - steps * 128)"
}

# What the workers have each adds up to what all have. The log has the staleness at the leader's shards.
adds_up='rows == steps == sum(w["steps"] for w in per_worker)
    and abs(staleness["mean"] * steps - sum(w["staleness_mean"] * w["steps"] for w in per_worker)) < 1e-6
    and staleness["max"] == max(w["staleness_max"] for w in per_worker)
        >= max(int(r["staleness"]) for r in log)
    and 0 <= staleness["p50"] <= staleness["p99"] <= staleness["max"]
    and 0 <= wire_sent + wire_received - sum(int(r["wire_bytes"]) for r in log)
        <= (wire_sent if strategy.startswith(("local-sgd", "easgd")) else 128 * 8)'
adds_up=${adds_up//$'\n'/}

others_are_named() { # victim's pattern, names...: all say it, or name one of them that does: it may have
    # ended first
    local pattern=$1 name other
    shift
    for name; do
        for other; do
            if grep -Eq "^trainer: .*127.0.0.1:$((port + ${other##*[a-z]}))[^0-9]" "$name.err" &&
                grep -Eq -- "$pattern" "$other.err"; then
                continue 2
            fi
        done
        says "$name" "$pattern"
    done
}

in_time() { # label, seconds at most, since $began
    local most=$((${slow:+2 *} $2))
    [ $((SECONDS - began)) -le $most ] ||
        fail "$1: the others took $((SECONDS - began)) s to end, expected at most $most"
}

half=$((timeout / 2)) soon=$((timeout + 2))
has_checkpoint() { [ -s run/checkpoint/state.safetensors ]; }

# --- every strategy and variant over two parameter servers; what has rounds has the bits of a run in one
# process ---
# Workers of whom the two counted another staleness: the other's count is in the summary, but not in the log.
unlike='sum(w["staleness_mean"] * w["steps"] * 2 != 2 * sum(int(r["staleness"]) for r in log if '\
'r["worker"] == str(i)) for i, w in enumerate(per_worker))'
far=0
for strategy in $(for name in $(names_of strategies); do variants_of "$name"; done); do
    if [ "${strategy%%:*}" = backup ] || [ "${strategy%%:*}" = adasync ]; then
        for task in 0 1; do
            new_cluster 2 2
            start_ps $task $small --strategy="$strategy"
            ends 2 ps$task
            says ps$task "--strategy=$strategy: expected one parameter server, found 2"
            [ "$(wc -l <ps$task.err)" -eq 1 ] ||
                fail "$strategy: expected one line, found: $(cat ps$task.err)"
        done
        continue
    fi
    case $strategy in
    sync | local-sgd*) updates=20 stalest=0 ;;
    easgd) updates=40 stalest=0 ;;
    ssp) updates=40 stalest=10 ;;
    *) updates=40 stalest=40 ;;
    esac
    start_cluster 2 2 --quiet $small --epochs=2 --strategy="$strategy"
    ends 0 $all
    same_results $all
    summary_is "$strategy" '(rows, steps, examples, lost_workers, dropped)' '(40, 40, 640, 0, 0)' \
        "(updates, staleness['max'] <= $stalest)" "($updates, True)" "$adds_up" True "$(wire_of 2 1 4)" \
        '(0, 0)'
    case $strategy in
    sync | local-sgd*) same_alone "$strategy" cpu:0,cpu:1 $small --epochs=2 --strategy="$strategy" ;;
    *) far=$((far + $(look summary run "$unlike"))) ;;
    esac
done
[ $far -gt 0 ] || fail "what the second parameter server counts is in no summary"

# --- one worker waits for nobody: the bits of one device ---
for strategy in async-apply async-lockfree:apply=worker ssp:bound=0; do
    start_cluster 2 1 --quiet $small --epochs=1 --strategy=$strategy
    ends 0 $all
    summary_is "$strategy, one worker" '(steps, updates, staleness["max"])' '(20, 20, 0)'
    same_alone "$strategy, one worker" cpu:0 $small --epochs=1 --strategy=$strategy
done

# --- settings that reach over slices: optimizer, norm, decay, data, shards ---
odd="--dataset=digits:take=320 --model=mlp:hidden=21 --batch=16 --epochs=1 --quiet" # 101 cache lines
like_one() { # parameter servers, workers, shards, at the leader, devices, told that there is no batch,
    # options...
    local servers=$1 workers=$2 shards=$3 here=$4 devices=$5 idle=$6 label="${*:7}, $1 parameter servers"
    shift 6
    start_cluster $servers $workers $odd "$@"
    ends 0 $all
    same_results $all
    same_alone "$label" "$devices" $odd "$@"
    summary_is "$label" "$adds_up" True "$(wire_of "$shards" "$here" "$idle")" '(0, 0)'
}
two=cpu:0,cpu:1
like_one 2 2 2 1 $two 2 --strategy=sync --optimizer=adam:rate=0.01 --clip=0.5
like_one 3 2 3 1 $two 2 --strategy=local-sgd --optimizer=adam:rate=0.01 --decay=0.01 --schedule=cosine
# 20 batches: one has none in the last round.
like_one 2 3 2 1 cpu:0,cpu:1,cpu:2 4 --strategy=sync --decay=0.01 --schedule=cosine
like_one 3 2 3 1 $two 2 --strategy=sync --clip=0.5 --data-sharding=split --seed=7
like_one 2 2 4 2 $two 2 --strategy=local-sgd:every=3 --shards=3 --data-sharding=all
# Two arrays of 84 + 2 lines.
like_one 2 2 101 86 $two 2 --strategy=sync --shards=4 --shard-by=round-robin --optimizer=nesterov:rate=0.05
like_one 1 2 1 1 $two 2 --strategy=sync

# --- parameter server 1 is killed; then it goes on; then parameter server 0 is; then it goes on, with the
# bits of one run ---
second() { echo "parameter server (1 \\()?127.0.0.1:$((port + 1))"; } # how they are named
leader() { echo "parameter server (0 \\()?127.0.0.1:$port"; }
start_cluster 2 2 $endless --strategy=sync --optimizer=adam:rate=0.001 --checkpoint-every=0.1
wait_until has_checkpoint
signal 9 ps1
began=$SECONDS
finish ps1
ends 5 ps0 w0 w1
in_time "killed parameter server 1" $soon
others_are_named "$(second)" ps0 w0 w1
says ps0 "^trainer: the $(second)\\) has closed the connection; to go on from" # no worker is blamed

go_on() { # options of all...
    start_ps 1 $small --timeout=$timeout --strategy=sync --optimizer=adam:rate=0.001 "$@"
    for w in 0 1; do start_worker $w $small --timeout=$timeout "$@"; done
    start_ps 0 --quiet --resume=run --timeout=$timeout "$@"
}
touch mark
is_newer() { [ run/checkpoint/state.safetensors -nt mark ]; }
logs_more() { [ run/steps.csv -nt mark ]; }
examples=$(look examples run)
go_on --epochs=1000000 --checkpoint-every=0.1
wait_until is_newer
signal 9 ps0
began=$SECONDS
finish ps0
ends 5 ps1 w0 w1
in_time "killed parameter server 0" $soon
others_are_named "$(leader)" ps1 w0 w1
later=$(look examples run)
[ "$later" -gt "$examples" ] ||
    fail "killed parameter server 0: $later examples in the checkpoint, expected more than $examples"

touch mark
go_on --epochs=1000000
wait_until logs_more
signal INT ps0
ends 130 ps0
ends 5 ps1 w0 w1
examples=$(look examples run)
says ps0 \
    "interrupted after $examples examples; to go on, start all processes again, the leader with --resume=run"
for name in ps1 w0 w1; do says $name "$(leader).* ended: interrupted after $examples examples"; done
passes=$((examples / 320 + 2))
go_on --epochs=$passes
ends 0 $all
same_results $all
summary_is "resumed" '(steps, examples)' "($((passes * 20)), $((passes * 320)))"
same_alone "killed, interrupted, resumed" $two $small --epochs=$passes --strategy=sync \
    --optimizer=adam:rate=0.001

# --- where nobody waits for anybody, a parameter server is missed all the same ---
for victim in ps1 ps0; do
    start_cluster 2 2 $endless --strategy=async-lockfree
    wait_until is_training
    signal 9 $victim
    began=$SECONDS
    finish $victim
    others=${all/$victim /}
    ends 5 $others
    in_time "async-lockfree: killed $victim" $soon
    if [ $victim = ps1 ]; then
        others_are_named "$(second)" $others
    else
        others_are_named "$(leader)" $others
    fi
done

# --- parameter server 1 stands still, or is interrupted ---
start_cluster 2 2 $endless --strategy=sync --timeout=$half
wait_until is_training
signal STOP ps1
began=$SECONDS
ends 5 ps0 w0 w1
in_time "parameter server 1 stands still" $((3 * half + 5)) # the last words to it take a while
others_are_named "$(second)" ps0 w0 w1
signal 9 ps1
finish ps1
start_cluster 2 2 $endless --strategy=sync
wait_until is_training
signal INT ps1
ends 130 ps1
ends 5 ps0 w0 w1
others_are_named "$(second)" ps0 w0 w1

# --- a worker is killed, or stands still: where all step together it is missed, else the others go on ---
lost="worker 1 \\($came_from cpu:0\\)"
for how in 9 STOP; do
    start_cluster 2 3 $endless --strategy=sync --timeout=$half
    wait_until is_training
    signal $how w1
    began=$SECONDS
    [ $how = STOP ] || finish w1
    ends 5 ps0 ps1 w0 w2
    in_time "sync, signal $how" $((3 * half + 5))
    others_are_named "$lost" ps0 ps1 w0 w2
    [ $how = 9 ] || { signal 9 w1; finish w1; }
done
goes_on() { # signal, victim's code, options...
    local how=$1 expected=$2 label="${*:3}, signal $1"
    shift 2
    start_cluster 2 3 $long --timeout=$half "$@"
    wait_until is_training
    signal $how w1
    [ $how = STOP ] || finish w1
    [ $how = STOP ] || [ "$code" -eq $expected ] || fail "$label: w1: exit code $code, expected $expected"
    ends 0 ps0 ps1 w0 w2
    same_results ps0 ps1 w0 w2
    says ps0 "lost: $lost.*; the others go on"
    summary_is "$label" 'lost_workers, [w["lost"] for w in per_worker]' '(1, [False, True, False])'
    summary_is "$label" "$good" True
    [ $how != STOP ] || { signal 9 w1; finish w1; }
}
goes_on 9 137 --strategy=async-lockfree
goes_on INT 130 --strategy=sharded
goes_on STOP 137 --strategy=async-locked
goes_on 9 137 --strategy=sync --on-loss=continue

# --- parameter servers that disagree: both values are said, the leader and all who wait for it end, the other
# waits on ---
short="$small --epochs=1"
meet=${slow:+4} meet=${meet:-0.5} # seconds in which those who are there have met
disagree() { # option of ps 1, what is said
    new_cluster 2 2
    start_ps 1 $short $1
    for w in 0 1; do start_worker $w $short; done
    start_ps 0 $short
    ends 5 ps0 w0 w1
    says ps1 "refused: $came_from has $2"
    others_are_named "$(second).* has $2" ps0
    others_are_named "has $2" w0 w1
    kill -0 "$(pid_of ps1)" 2>/dev/null || fail "$2: the other parameter server did not go on waiting"
    [ "$#" -gt 2 ] || { signal 9 ps1; finish ps1; }
}
disagree --optimizer=adam:rate=0.01 '--optimizer momentum:rate=0.1, the parameter server has adam:rate=0.01'
disagree --strategy=ssp '--strategy sync, the parameter server has ssp'
disagree --epochs=2 '--epochs 1, the parameter server has 2'
disagree --shards=4 '--shards 0, the parameter server has 4'
disagree --seed=2 '--seed 1, the parameter server has 2' stays
rm -rf run
for w in 0 1; do start_worker $w $short; done
start_ps 0 $short --seed=2
ends 0 ps0 ps1 w0 w1
same_results ps0 ps1 w0 w1

refuses() { # option of ps 0, what ps 1 says
    start_ps 0 $short $1
    wait_until grep -Eq -- "refused: .* has $2" ps1.err
    signal 9 ps0
    finish ps0
}
new_cluster 2 1
start_ps 1 $short
refuses --decay=0.5 '--decay 0.5, the parameter server has 0'
refuses --schedule=cosine '--schedule cosine, the parameter server has constant'
refuses --slots=7 '--slots 7, the parameter server has'
refuses --data-sharding=split '--data-sharding split, the parameter server has shared'
refuses --shard-by=tensor '--shard-by tensor, the parameter server has bytes'
signal 9 ps1
finish ps1
rm -rf run

# --- who is missing is named by all ---
late=${slow:+5}
late=${late:-1}
new_cluster 2 2
start_ps 0 $short --start-timeout=$late
for w in 0 1; do start_worker $w $short --start-timeout=$late; done
ends 5 ps0 w0 w1
others_are_named "$(second)" ps0 w0 w1
new_cluster 2 2
start_ps 1 $short --start-timeout=$late
for w in 0 1; do start_worker $w $short --start-timeout=$late; done
ends 5 ps1 w0 w1
others_are_named "$(leader)" ps1 w0 w1
new_cluster 2 2
for task in 0 1; do start_ps $task $short --start-timeout=$late; done
start_worker 0 $short --start-timeout=$late
ends 5 ps0 ps1 w0
others_are_named "waiting for worker 1 \\(127.0.0.1:$((worker_port + 1))\\)" ps0 ps1 w0
new_cluster 2 1 # refused by one while another is missing
start_ps 0 $short
start_worker 0 ${short/batch=16/batch=8}
ends 5 w0
says w0 '--batch 8, the parameter server has 16'
signal 9 ps0
finish ps0
new_cluster 2 1 # in any order
rm -rf run
start_ps 0 $short
start_worker 0 $short
sleep 0.3
start_ps 1 $short
ends 0 ps0 ps1 w0
same_results ps0 ps1 w0

# --- parameter server 1 is killed while all wait, and comes again; then it stands still when all have
# come ---
new_cluster 2 2
rm -rf run
start_ps 1 $short
wait_until grep -q waits ps1.err
start_ps 0 $short
start_worker 0 $short
sleep $meet
signal 9 ps1
finish ps1
ends 5 w0
says w0 "$(second)"
wait_until grep -Eq "$(second).* has gone again" ps0.err
start_ps 1 $short
sleep 1.3
signal 9 ps0
finish ps0
start_ps 0 $short # who comes again at once, before it was missed
for w in 0 1; do start_worker $w $short; done
ends 0 ps0 ps1 w0 w1
same_results ps0 ps1 w0 w1
new_cluster 2 1
start_ps 1 $short
wait_until grep -q waits ps1.err
rm -rf run
start_ps 0 $short
sleep $meet
signal STOP ps1
start_worker 0 $short
wait_until test -e run/steps.csv # all have come to it
signal INT ps0
ends 130 ps0
says ps0 "waiting for the $(second)"
ends 5 w0
signal 9 ps1
finish ps1

# --- a fault that one parameter server alone was told, and that never comes, is said there ---
new_cluster 2 1
start_ps 1 $short --stall=worker:0@step:5000
start_worker 0 $short
start_ps 0 $short
ends 0 ps0 ps1 w0
says ps1 '^trainer: --stall=worker:0@step:5000 was never reached: that worker took 20 steps$'
! grep -H 'never reached' ps0.err || fail "a fault that the leader was not told"

[ ! -e elsewhere ] || fail "who does not lead wrote: $(find elsewhere)"

# --- mirrored: nobody speaks of a parameter server, as there is none ---
rm -f w?.err
without_ps() { # what was done
    ! grep -H 'parameter server' w?.err || fail "mirrored, $1: speaks of a parameter server"
}

# --- mirrored: from TF_CONFIG alone ---
data="--dataset=digits:take=320 --model=mlp:hidden=20"
new_cluster 0 2
for w in 0 1; do
    TF_CONFIG="{\"cluster\": {\"worker\": [\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\"]}, \
\"task\": {\"type\": \"worker\", \"index\": $w}}" \
        start w$w "$TRAINER" $data
done
ends 0 w0 w1
same_results w0 w1
# The chief's halves both print, each line in its place.
awk '/^Epoch / { told = $2 + 0 } /^Step:/ { count++; late += $4 + 0 <= told } END { exit !count || late }' \
    w0.out || fail "TF_CONFIG: steps behind the line of their epoch: $(grep -E '^(Step:|Epoch )' w0.out)"
rm -rf run
mv "$(sed -n 's/^logs, model and checkpoint go to //p' w0.out)" run ||
    fail "TF_CONFIG: the chief did not say where the model is"
copy=$(sed -n 's/^trainer: the model is \(.*\.safetensors\)$/\1/p' w1.err)
[ -n "$copy" ] || fail "TF_CONFIG: worker 1 did not say where its model is: $(cat w1.err)"
[ -e "$copy" ] || copy=run/worker-1/model.safetensors
"$TRAINER" evaluate --checkpoint="$copy" >out 2>err || fail "TF_CONFIG: what worker 1 has named: $(cat err)"
same_weights "TF_CONFIG" run "${copy%/model.safetensors}"
summary_is "TF_CONFIG" '(steps, examples, strategy, workers)' "(600, 19200, 'sync', 2)"
without_ps "TF_CONFIG"
says w1 "^trainer: worker 1 of 2, with 1 device, mirrored; the leader is 127.0.0.1:$port\$"
says w0 "^trainer: the process 127.0.0.1:$port waits for 2 workers\$"
summary_is "TF_CONFIG" "(devices, [w['device'] for w in per_worker])" "('cpu:0,cpu:0', ['cpu:0', 'cpu:0'])"
threads=$(look summary run threads)
same_alone "TF_CONFIG" $two $data --threads="$threads"
cores=$(nproc) own=$(($(nproc) > 1 ? $(nproc) / 2 : 1))
for w in 0 1; do
    says w$w "^trainer: 2 workers on this machine share its $cores cores?: $own threads? per device here\$"
done

# --- mirrored, on one machine: no process is pinned to a core that another has been pinned to ---
cores_of() { # name: those that its device's thread may use, one a line
    local task from to
    for task in /proc/"$(pid_of "$1")"/task/*; do
        [ "$(cat "$task/comm" 2>/dev/null)" = cpu:0 ] || continue
        sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$task/status" |
            tr , '\n' | while IFS=- read -r from to; do
            seq "$from" "${to:-$from}"
        done
    done
}
for typed in '' --threads=1; do
    new_cluster 0 2
    rm -rf run
    for w in 0 1; do
        start w$w "$TRAINER" --job=worker --task=$w $hosts --devices=cpu:0 --out=run $endless $typed
    done
    wait_until is_training
    for w in 0 1; do
        [ "$(cores_of w$w | wc -l)" -eq "$cores" ] ||
            fail "mirrored $typed: w$w computes on core $(cores_of w$w | xargs) of $cores"
    done
    [ -z "$typed" ] || ! grep -H 'share its' w?.err ||
        fail "mirrored: a --threads that was typed does not win"
    signal INT w0
    ends 130 w0
    ends 5 w1
done

# --- mirrored: the chief writes the results, all others the model ---
mirror() { # workers, told that there is no batch, options...
    local workers=$1 idle=$2 devices='' w label="mirrored, $*"
    shift 2
    start_cluster 0 $workers --quiet $odd --epochs=2 "$@"
    ends 0 $all
    same_results $all
    summary_is "$label" "$adds_up" True "$(wire_of $workers 1 $idle)" '(0, 0)' '(steps, updates)' \
        "(40, $updates)"
    for ((w = 1; w < workers; w++)); do same_weights "$label" run run/worker-$w; done
    [ $workers -eq 1 ] || [ "$(ls run/worker-1)" = model.safetensors ] ||
        fail "$label: worker 1 wrote $(ls run/worker-1)"
    for ((w = 0; w < workers; w++)); do devices+=${devices:+,}cpu:$w; done
    [[ $* == *async* ]] || same_alone "$label" $devices $odd --epochs=2 "$@"
}
updates=20 mirror 2 4 --strategy=sync --optimizer=adam:rate=0.01 --clip=0.5
# 40 batches in rounds of 3, with an empty one in the last of each epoch.
updates=14 mirror 3 8 --strategy=sync --decay=0.01
updates=20 mirror 2 4 --strategy=local-sgd --data-sharding=split
updates=40 mirror 2 4 --strategy=async-lockfree
updates=40 mirror 1 2 --strategy=sync
for w in 0 1; do
    new_cluster 0 2
    start_worker $w --replace --out=run $small --strategy=backup
    ends 2 w$w
    says w$w '--strategy=backup: expected one parameter server, or --workers=1\.\., '\
'found weights in 2 processes: which'
done

# --- mirrored: one is killed, stands still, is interrupted ---
mirrored() { echo "127.0.0.1:$((port + $1))|worker $1 "; } # how process N is named
for strategy in sync async-lockfree; do
    for victim in 0 2; do
        start_cluster 0 3 $endless --strategy=$strategy --checkpoint-every=0.1
        wait_until is_training
        signal 9 w$victim
        began=$SECONDS
        finish w$victim
        others=${all/w$victim /}
        ends 5 $others
        in_time "mirrored $strategy, killed $victim" $soon
        others_are_named "$(mirrored $victim)" $others
        # Whoever is there still is not said to have ended, least of all by itself.
        for name in $others; do
            ! grep -H ' ended: ' "$name.err" || fail "mirrored $strategy, killed $victim: another is named"
        done
        without_ps "killed $victim"
    done
done
start_cluster 0 3 $endless --timeout=$half
wait_until is_training
signal STOP w1
began=$SECONDS
ends 5 w0 w2
in_time "mirrored, one stands still" $((3 * half + 5))
others_are_named "$(mirrored 1)" w0 w2
signal 9 w1
finish w1
start_cluster 0 3 $endless
wait_until is_training
signal INT w1
ends 130 w1
ends 5 w0 w2
others_are_named "$(mirrored 1)" w0 w2
start_cluster 0 2 $endless --optimizer=adam:rate=0.001
wait_until is_training
signal INT w0
ends 130 w0
ends 5 w1
examples=$(look examples run)
says w0 \
    "interrupted after $examples examples; to go on, start all processes again, the leader with --resume=run"
says w1 "the process (0 \\()?127.0.0.1:$port\\)? ended: interrupted after $examples examples"
without_ps "interrupted"
passes=$((examples / 320 + 2))
start_all 0 2 --resume=run --epochs=$passes
ends 0 w0 w1
same_results w0 w1
[ "$(grep -c '^Epoch ' w0.out)" -ge 1 ] && ! grep -q '^Epoch ' w1.out ||
    fail "a line per epoch, at the leader: $(cat w0.out)"
summary_is "mirrored, resumed" examples $((passes * 320))
same_weights "mirrored, resumed" run run/worker-1
same_alone "mirrored, interrupted, resumed" $two $small --epochs=$passes --optimizer=adam:rate=0.001
rm -r run/worker-1
start_all 0 2 --resume=run # nothing is left to do
ends 0 w0 w1
same_results w0 w1
same_weights "mirrored, resumed once more" run run/worker-1

# --- mirrored: a port in use, one who is missing, one who disagrees ---
new_cluster 0 2
keep_port $((port + 1))
start_worker 1 --replace --out=run $short
ends 4 w1
says w1 "port $((port + 1)) is in use"
start_worker 0 --replace --out=run $short --start-timeout=$late
began=$SECONDS
ends 5 w0
in_time "mirrored, port in use" $((late + 3))
others_are_named "$(mirrored 1)" w0
leave_port
for missing in 0 1; do
    new_cluster 0 2
    start_worker $((1 - missing)) --replace --out=run $short --start-timeout=$late
    ends 5 w$((1 - missing))
    others_are_named "$(mirrored $missing)" w$((1 - missing))
    without_ps "worker $missing is missing"
done
new_cluster 0 2
start_worker 1 --replace --out=run $short --seed=2
# It waits on where the other one has ended before it was asked.
start_worker 0 --replace --out=run $short --start-timeout=$((late * 5))
ends 5 w0 w1
# Whichever was refused first.
others_are_named '--seed (1, the process that it came to has 2|2, the process that it came to has 1)' w0
without_ps "one disagrees"

# --- anybody, at any moment ---
kills=${KILLS:-4}
[ -z "$slow" ] || kills=${KILLS:-0}
for ((k = 0; k < kills; k++)); do
    strategy=$(shuf -n 1 -e sync async-lockfree local-sgd)
    loss=$(shuf -n 1 -e auto stop continue)
    servers=$((k % 2 * 2))
    workers=$((servers > 0 ? 2 : 3))
    start_cluster $servers $workers --quiet $small --epochs=400 --strategy="$strategy" --on-loss="$loss" \
        --timeout=2 --start-timeout=1 --checkpoint-every=0.02
    victim=$(shuf -n 1 -e $all)
    moment=0.$((RANDOM % 5))$((RANDOM % 10))
    kill_one "kill $k ($victim of $servers + $workers after $moment s, $strategy, $loss)" \
        "$victim" $moment $all
done

[ $failures -eq 0 ]
