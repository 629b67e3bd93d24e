#!/bin/bash
# Clusters whose processes are told who they are by the environment: they find each other without an address
# typed, say who started them, and leave the weights that typed addresses leave. What is missing is said, and
# a lone run stays one.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
common="$small --epochs=2 --threads=1 --devices=cpu:0"

# --- typed addresses, then each kind of variables: the same weights ---
new_cluster 1 2
start ps "$TRAINER" $common $hosts --job=ps --task=0 --out=typed
start_worker 0
start_worker 1
ends 0 ps w0 w1

by_variables() { # label, by whom, port, variables of rank R with @ for R
    local label=$1 by=$2 port=$3 rank
    shift 3
    for rank in 0 1 2; do
        start "r$rank" env "${@//@/$rank}" "$TRAINER" $common --ps=1 --port="$port" --out="$label"
    done
    ends 0 r0 r1 r2
    grep -Fq "trainer: the parameter server 127.0.0.1:$port waits for 2 workers, by $by" r0.err ||
        fail "$label: rank 0 said $(head -n 3 r0.err)"
    grep -Fq "trainer: worker 1 of 2, by $by, with 1 device" r2.err ||
        fail "$label: rank 2 said $(head -n 3 r2.err)"
    same_results r0 r1 r2
    same_weights "$label" typed "$label"
}
first=$(free_ports 15)
by_variables torch "RANK and WORLD_SIZE" "$first" RANK=@ WORLD_SIZE=3 LOCAL_RANK=@ LOCAL_WORLD_SIZE=3
by_variables master "RANK and WORLD_SIZE" $((first + 3)) RANK=@ WORLD_SIZE=3 MASTER_ADDR=127.0.0.1
by_variables slurm Slurm $((first + 6)) SLURM_JOB_ID=5 SLURM_STEP_ID=0 SLURM_PROCID=@ SLURM_STEP_NUM_TASKS=3 \
    SLURM_STEP_NODELIST=here SLURM_STEP_TASKS_PER_NODE=3
by_variables pmi "MPI (PMI)" $((first + 9)) PMI_RANK=@ PMI_SIZE=3 MPI_LOCALRANKID=@ MPI_LOCALNRANKS=3

# --- none of them serves: mirrored, in which the first leads ---
for rank in 0 1 2; do
    start "r$rank" env RANK=$rank WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=$((first + 12)) "$TRAINER" \
        $common --out=mirrored
done
ends 0 r0 r1 r2
grep -q "^trainer: worker 2 of 3, by RANK and WORLD_SIZE, with 1 device, mirrored; \
the leader is 127.0.0.1:$((first + 12))" \
    r2.err ||
    fail "mirrored: rank 2 said $(head -n 3 r2.err)"
[ -e mirrored/worker-2/model.safetensors ] || fail "mirrored: no model of worker 2"

# --- alone, whatever is said; and what is missing ---
export RANK=2 WORLD_SIZE=4
refused 2 'RANK and WORLD_SIZE: 4 processes, and nothing says where they are; expected MASTER_ADDR' $common \
    --out=alone
good $common --launcher=none --quiet --out=alone
WORLD_SIZE=1 RANK=0 good $common --quiet --replace --out=alone
unset RANK WORLD_SIZE
refused 2 '\-\-ps=1: there is no cluster, expected mpirun, srun, torchrun or --hosts' $common --ps=1
TF_CONFIG='{"sparseCluster": {"worker": {"1": "w:1"}, "ps": ["p:1"]}, '\
'"task": {"type": "worker", "index": 1}}' \
    refused 2 'TF_CONFIG: a sparse cluster, whose workers may come and go, is not understood' $common

[ $failures -eq 0 ]
