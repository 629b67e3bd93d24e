#!/bin/bash
# The real mpirun, of Open MPI and of MPICH, whichever are here: with a parameter server and without one, on
# this machine. One that fails ends all, with its exit code.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$scratch
common="$small --epochs=2 --threads=1"

# Which mpirun of these is here, with what it needs to start more processes than there are cores.
launchers=()
for program in mpirun.openmpi mpirun.mpich mpirun; do
    command -v $program >/dev/null || continue
    case $($program --version 2>&1) in
    *"Open MPI"*) launcher="$program --oversubscribe" by="Open MPI" ;;
    *HYDRA*) launcher=$program by="MPI (PMI)" ;;
    *) continue ;;
    esac
    case " ${launchers[*]-} " in *"|$by "*) ;; *) launchers+=("$launcher|$by") ;; esac
done
[ ${#launchers[@]} -gt 0 ] || { echo "no mpirun here"; exit 77; }

for both in "${launchers[@]}"; do
    launcher=${both%|*} by=${both#*|} name=${both%% *}
    start all $launcher -n 3 "$TRAINER" $common --ps=1 --port="$(free_ports 3)" --out="$name-ps"
    ends 0 all
    says all "worker 1 of 2, by ${by//[()]/.}, with 1 device, at the parameter server 127.0.0.1:"
    [ -e "$name-ps/model.safetensors" ] || fail "$name: no model"
    start all $launcher -n 2 "$TRAINER" $common --out="$name-mirrored" # and its own port
    ends 0 all
    says all "worker 1 of 2, by ${by//[()]/.}, with 1 device, mirrored"
    [ -e "$name-mirrored/worker-1/model.safetensors" ] || fail "$name: no model of worker 1"
    start all $launcher -n 1 "$TRAINER" $common --out="$name-alone"
    ends 0 all
    ! grep -q ", by " all.err || fail "$name: one process is no cluster: $(cat all.err)"
    start all $launcher -n 2 "$TRAINER" $common --ps=1 --dataset=nothing
    ends 2 all
done
[ $failures -eq 0 ]
