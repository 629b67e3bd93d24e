#!/bin/bash
# Where the Makefile finds CUDA: in the toolkit, and what is missing there in Python's nvidia packages.
# Toolkit and packages are made up of empty files and of an nvcc that only says which GPUs it knows; make says
# what it would do. Where the real ones are, those files are links to them, and what was found there is
# compiled and loads the real libraries from these folders.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for this one
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
toolkit=$scratch/toolkit site=$scratch/site/nvidia failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

mkdir -p "$toolkit"/{bin,include,lib64} "$site"/{cublas,cudnn,nccl}/{include,lib}
printf '#!/bin/sh\n[ "$1" = --list-gpu-arch ] && printf "compute_%%s\\n" 52 70 75 80 86 87 88 89 90 100 '\
'110 103 120 121\n' \
    >"$toolkit/bin/nvcc"
printf '#!/bin/sh\necho asked >>%s\necho %s\n' "$scratch/asked" "$site" >"$scratch/python"
chmod +x "$toolkit/bin/nvcc" "$scratch/python"
touch "$toolkit/include/cuda_runtime.h" "$toolkit/lib64/libcudart_static.a"
touch "$site/cublas/include/cublasLt.h" "$site/cublas/lib/libcublasLt.so.13"
touch "$site/cudnn/include/cudnn.h" "$site/cudnn/lib/libcudnn.so.9"
touch "$site/nccl/include/nccl.h" "$site/nccl/lib/libnccl.so.2"

# What make would do for two objects goes into $scratch/out.
would() { # settings...
    rm -f "$scratch/asked"
    make -C "$root" -n NVCC="$toolkit/bin/nvcc" SYSTEM_FOLDERS= PYTHON="$scratch/python" CUDA_ARCHS=80 \
        B="$scratch/build" "$@" "$scratch/build/cuda/libraries.o" "$scratch/build/cuda/reduce.cu.o" \
        >"$scratch/out" 2>&1
}
has() {
    grep -q -e "$1" "$scratch/out" || fail "line ${BASH_LINENO[0]}: no '$1' in: $(grep -v cmp "$scratch/out")"
}
has_not() {
    grep -q -e "$1" "$scratch/out" && fail "line ${BASH_LINENO[0]}: '$1' in: $(grep -v cmp "$scratch/out")"
}

# --- from the packages, each in its place ---
for cuda in auto 1; do
    would CUDA=$cuda || fail "CUDA=$cuda: $(cat "$scratch/out")"
    for folder in "$toolkit" "$site/cublas" "$site/cudnn" "$site/nccl"; do
        has "-isystem $folder/include "
    done
    has "-DTRAINER_CUDA_FOLDERS='\"$site/cublas/lib:$site/cudnn/lib:$site/nccl/lib\"'"
    has '-DTRAINER_CUDA=1 -DTRAINER_NCCL=1 '
    has 'nvcc .*-gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=compute_80 '
done
# --- for all GPUs ---
would CUDA=1 CUDA_ARCHS=all || fail "$(cat "$scratch/out")"
for arch in 80 86 89 90 100 103 110 120; do has "-gencode arch=compute_$arch,code=sm_$arch "; done
for arch in 52 70 75 87 88 121; do has_not "compute_$arch"; done
has '-gencode arch=compute_120,code=compute_120 '
[ "$(grep -o 'code=compute_' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || fail "more than one PTX"

# --- for those that are here: as the driver's library says, else nvidia-smi; what is compiled is said
# once ---
printf '#!/bin/sh\ncase $1 in *capabilities.py) [ -n "$CAPABILITIES" ] && echo $CAPABILITIES ;; '\
'*) echo asked >>%s; echo %s ;; esac\n' \
    "$scratch/asked" "$site" >"$scratch/python"
printf '#!/bin/sh\n[ -n "$SMI" ] && echo $SMI\n' >"$scratch/nvidia-smi"
chmod +x "$scratch/nvidia-smi"
native() { # CAPABILITIES, SMI
    CAPABILITIES=$1 SMI=$2 PATH=$scratch:$PATH would CUDA=1 CUDA_ARCHS=native ||
        fail "native: $(cat "$scratch/out")"
    [ "$(grep -c '^GPU code for' "$scratch/out")" -eq 1 ] ||
        fail "line ${BASH_LINENO[0]}: said $(grep -c '^GPU code for' "$scratch/out") times"
}
native 90 8.6
has '^GPU code for sm_90 and PTX 90$'
has '-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 '
has_not compute_86
native '' 8.6
has '^GPU code for sm_86 and PTX 86$'
native '80 90' ''
has '-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 '\
'-gencode arch=compute_90,code=compute_90 '
native '' ''
has '^GPU code for PTX 80 (no GPU here; the driver compiles it when the program starts)$'
has '-gencode arch=compute_80,code=compute_80 '
native 105 '' # a GPU that this nvcc does not know
has '^GPU code for PTX 103 (this nvcc has none of sm_105; the driver compiles it when the program starts)$'
# The real one has nothing to say where there is no driver, and as many numbers as kinds of GPUs where there
# is one.
said=$(python3 "$root/cuda/capabilities.py") && [[ $said =~ ^[0-9]+(\ [0-9]+)*$ ]] || [ -z "$said" ] ||
    fail "capabilities.py: $said"

# --- NCCL may be missing, and is when half of it is; cuDNN may not ---
rm "$site/nccl/include/nccl.h"
would CUDA=1 || fail "without NCCL: $(cat "$scratch/out")"
has '-DTRAINER_NCCL=0 '
has_not nccl/
touch "$site/nccl/include/nccl.h"
rm "$site/cudnn/lib/libcudnn.so.9"
would CUDA=auto
has '-DTRAINER_CUDA=0 '
has_not "$site"
would CUDA=1 && fail "built without cuDNN"
has 'CUDA=1: found nvcc: .*; expected cudart, cuBLASLt and cuDNN of each'

# --- the toolkit goes first, and then Python is not asked ---
touch "$site/cudnn/lib/libcudnn.so.9"
for header in cublasLt.h cudnn.h nccl.h; do touch "$toolkit/include/$header"; done
for library in libcublasLt.so.13 libcudnn.so libnccl.so.2; do touch "$toolkit/lib64/$library"; done
would CUDA=1 || fail "all in the toolkit: $(cat "$scratch/out")"
has "-DTRAINER_CUDA_FOLDERS='\"$toolkit/lib64\"'"
has_not "$site"
[ -e "$scratch/asked" ] && fail "Python was asked for what the toolkit has"

# --- the real ones, when all are here: loaded from the folder of each package, as there is nothing else for
# the system's loader to find ---
real=$(make -C "$root" -n CUDA=1 B="$scratch/real" "$scratch/real/cuda/libraries.o" 2>/dev/null |
    grep -e -DTRAINER_NCCL=1)
if [ -n "$real" ]; then
    rm -rf "$scratch/toolkit/include" "$scratch/toolkit/lib64" "$scratch"/site/nvidia/*/{include,lib}
    mkdir -p "$toolkit"/{include,lib64} "$site"/{cublas,cudnn,nccl}/{include,lib}
    touch "$toolkit/lib64/libcudart_static.a"
    for folder in $(grep -o -e '-isystem [^ ]*' <<<"$real" | sort -u | cut -d' ' -f2) /usr/include; do
        for package in cublas cudnn nccl; do
            ln -s "$folder/$package"* "$site/$package/include/" 2>/dev/null
        done
        [ "$folder" = /usr/include ] || ln -s "$folder"/* "$toolkit/include/" 2>/dev/null
    done
    rm -f "$toolkit/include"/{cublas,cudnn,nccl}*
    for folder in $(sed -n "s/.*-DTRAINER_CUDA_FOLDERS='\"\([^\"]*\)\"'.*/\1/p" <<<"$real" | tr ':' ' '); do
        for package in cublas cudnn nccl; do
            ln -s "$folder/lib$package"*.so.* "$site/$package/lib/" 2>/dev/null
        done
    done
    cat >"$scratch/main.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include "cuda/libraries.h"
static void show(struct library *library) {
    const struct device gpu = {.name = "gpu:0"};
    struct error error = {0};
    Dl_info from = {0};
    if (gpu_load(&gpu, library, &error)) puts(error.words);
    else if (dladdr(library->functions[0], &from)) puts(from.dli_fname);
}
int main(void) {
    show(&cublaslt_library);
    show(&cudnn_library);
    show(&nccl_library);
    return 0;
}
END
    if make -C "$root" CUDA=1 NVCC="$toolkit/bin/nvcc" SYSTEM_FOLDERS= PYTHON="$scratch/python" \
        B="$scratch/build" WERROR=1 "$scratch/build/cuda/libraries.o" "$scratch/build/src/base/error.o" \
        >"$scratch/out" 2>&1 &&
        gcc -D_GNU_SOURCE -DTRAINER_NCCL=1 -I"$root" -I"$toolkit/include" -I"$site/cublas/include" \
            -I"$site/cudnn/include" -I"$site/nccl/include" -o "$scratch/main" "$scratch/main.c" \
            "$scratch/build/cuda/libraries.o" "$scratch/build/src/base/error.o" -ldl >>"$scratch/out" \
            2>&1; then
        loader=$(readelf -l "$scratch/main" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
        "$loader" --inhibit-cache "$scratch/main" >"$scratch/out" 2>&1 || fail "exit code $?"
        for library in cublas/lib/libcublasLt cudnn/lib/libcudnn nccl/lib/libnccl; do
            has "^$site/$library\.so\.[0-9]*\$"
        done
    else
        fail "not compiled with what the packages have: $(cat "$scratch/out")"
    fi
fi

[ $failures -eq 0 ]
