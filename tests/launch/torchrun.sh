#!/bin/bash
# PyTorch's real torchrun: with a parameter server and without one, as two nodes of two processes, and as the
# one who starts all again when one was killed. Skips itself without one: a torchrun, or TRAINER_PYTHON=... of
# a Python that has PyTorch.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
torchrun="${TRAINER_PYTHON:-python3} -m torch.distributed.run"
command -v torchrun >/dev/null && torchrun=torchrun
$torchrun --help >/dev/null 2>&1 || { echo "no torchrun here"; exit 77; }
export OMP_NUM_THREADS=1 TMPDIR=$scratch
common="$small --epochs=2 --threads=1"
limit=60

start all $torchrun --standalone --nproc-per-node=3 --no-python "$TRAINER" $common --ps=1 --out=ps
ends 0 all
says all '^trainer: worker 1 of 2, by torchrun, with 1 device, at the parameter server 127.0.0.1:'
[ -e ps/model.safetensors ] || fail "no model"
start all $torchrun --standalone --nproc-per-node=2 --no-python "$TRAINER" $common --out=mirrored
ends 0 all
says all '^trainer: worker 1 of 2, by torchrun, with 1 device, mirrored'
same_weights mirrored mirrored mirrored/worker-1

first=$(free_ports 6) # the first is torchrun's own, four are of its processes
for node in 0 1; do
    start node$node $torchrun --nnodes=2 --node-rank=$node --nproc-per-node=2 --master-addr=127.0.0.1 \
        --master-port=$first --no-python "$TRAINER" $common --ps=1 --out=nodes
done
ends 0 node0 node1
says node1 '^trainer: worker [012] of 3, by torchrun, with 1 device, at the parameter server 127.0.0.1:'

start all $torchrun --standalone --max-restarts=2 --nproc-per-node=3 --no-python "$TRAINER" $small \
    --threads=1 --ps=1 --epochs=3000 --out=again --restart-wait=30 --checkpoint-every=0.2
wait_until [ -e again/checkpoint/state.safetensors ]
kill -9 "$(processes_with '--out=again --restart-wait' | tail -n 1)"
ends 0 all
grep -Eq '^goes on from again: update [0-9]+, [0-9.]+ of 3000 epochs$' all.out ||
    fail "started again: $(head -n 20 all.out)"

start all $torchrun --standalone --nproc-per-node=2 --no-python "$TRAINER" $common --ps=1 --dataset=nothing
ends 1 all # torchrun's own
grep -q 'exitcode *: 2 ' all.err || fail "a data set that is not there: $(tail -n 20 all.err)"
[ $failures -eq 0 ]
