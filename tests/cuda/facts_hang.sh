#!/bin/bash
# gpu-facts when something hangs: each stage takes its time and no more, the next one begins, all ends in time
# and nothing is left behind.
set -u
# shellcheck source=tests/gpu_facts.sh
. "$(dirname "$0")/../gpu_facts.sh"
"$TRAINER" devices | grep -q '^gpu:0 .*stand-in' || { echo "no stand-in here"; exit 77; }

[ $limit -gt 60 ] || limit=60 # other tests run beside this one
# Fewer at a time, as each takes all of its time; then all.
fails hang 'took more than\|no time was left' environment latencies tests sanitizer
fails hang 'took more than\|no time was left' build operations
fails hang 'took more than\|no time was left' speed "${stages[@]}" # all of them: the last have no time left
pgrep -f "touch '$scratch/marker'" >"$scratch/out" &&
    fail "something that hung is still there: $(cat "$scratch/out")"
[ $failures -eq 0 ]
