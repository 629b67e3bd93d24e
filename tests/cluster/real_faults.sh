#!/bin/bash
# Real processes, driven by schedules of faults that tests/cluster/faults draws for the simulated world
# (tests/real_faults.py): killed, started again, stopped, behind relays that delay, cut and damage, and with a
# disk that takes nothing.
#
# REAL_FAULTS=N: the seeds from 1 to N, instead of a few that take not long.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
quick="3 6 9 12 14 16 18 19 21 24"
seeds="4 $quick" # the first is one where a worker comes again, and waits in vain
[ -z "${REAL_FAULTS:-}" ] || seeds=$(seq 1 "$REAL_FAULTS")

drive() { # seed
    FIRST=$1 SEEDS=1 TELL=seed-$1 "$BUILD/tests/cluster/faults" 2>simulated.$1 ||
        { cat "simulated.$1"; return 1; }
    python3 "$tests/real_faults.py" --faults="seed-$1" >real.$1 2>&1 || { cat "real.$1"; return 1; }
}

# So many at a time: most of what they do is wait.
running=0
for seed in $seeds; do
    drive "$seed" &
    running=$((running + 1))
    [ $running -lt 3 ] || { wait -n || failures=$((failures + 1)); running=$((running - 1)); }
done
while [ $running -gt 0 ]; do
    wait -n || failures=$((failures + 1))
    running=$((running - 1))
done

# --- another word than those of a schedule is refused, as is a part of one ---
refuses() { # line
    echo "$1" | cat "seed-${seeds##*[[:space:]]}" - >wrong
    ! python3 "$tests/real_faults.py" --faults=wrong >out 2>&1 || fail "$1: accepted"
    grep -q "wrong: '$1', expected a line of a schedule" out || fail "$1: $(cat out)"
    ! FAULTS=wrong "$BUILD/tests/cluster/faults" >out 2>&1 || fail "$1: accepted in the simulated world"
    grep -q 'expected a line of a schedule' out || fail "$1, in the simulated world: $(cat out)"
}
refuses 'fault burn worker-0 worker-0 at 0 for 1'
refuses 'fault kill worker-0 at 0'
[ $failures -eq 0 ]
