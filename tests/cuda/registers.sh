#!/bin/bash
# Every kernel, compiled as the Makefile compiles it for GPUs of 9.0 (ARCHS='80 90 100': of 8.0 and 10.0,
# too): its registers, its stack and what it spills, a line each. Nothing is spilled; the stack holds no more
# than the few numbers that a kernel looks up by an index, so that no kernel makes a copy of a structure that
# it is given. Needs nvcc and the headers of the libraries, but no GPU.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for this one
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 1
stack=64 # bytes

# What the Makefile says, but the code of the GPU alone: without that of the host it takes half the time.
sources=(cuda/*.cu)
: >"$scratch/told"
for arch in ${ARCHS:-90}; do
    # shellcheck disable=SC2016 # make is to expand it
    compile=$(make -s CUDA=1 CUDA_ARCHS="$arch" B="$scratch" "$scratch/tables/optimizers.h" \
        --eval='command: ; @echo $(COMPILE_CU)' command 2>/dev/null) ||
        { echo "no nvcc here, or not all headers and libraries"; exit 77; }
    compile=$(sed -E 's/ -gencode [^ ]+//g; s/ -MMD -MP//' <<<"$compile")
    export compile scratch arch
    # shellcheck disable=SC2016 # each shell of its own expands it
    printf '%s\n' "${sources[@]}" |
        xargs -P "$(nproc)" -I{} bash -c 'name=$(basename {}) && echo "CU {}" >"$scratch/$name.told" &&
        $compile -arch="sm_$arch" -cubin -Xptxas -v -o "$scratch/$name.cubin" {} >>"$scratch/$name.told" 2>&1'
    code=$?
    cat "$scratch"/*.told >>"$scratch/told"
    [ $code -eq 0 ] || { cat "$scratch/told"; exit 1; }
done

awk -v files="${#sources[@]}" -v most="$stack" '
    function told() {
        if (kernel == "") return
        line = sprintf("%s sm_%s: %s registers, %s bytes of stack, %s spilled: %s",
            file, arch, registers, stack, spilled, kernel)
        print line
        seen[file] = 1
        if (registers == "?" || spilled > 0 || stack > most) wrong = wrong line "\n"
        kernel = ""
    }
    $1 == "CU" { told(); file = $2 }
    /Compiling entry function/ {
        told()
        split($0, part, "\047")
        kernel = part[2]
        arch = substr(part[4], 4)
        registers = "?"
    }
    /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
    /Used [0-9]+ registers/ { sub(/.*Used /, ""); registers = $1 }
    END {
        told()
        if (length(seen) != files) printf "kernels of %d files, expected those of %d\n", length(seen), files
        if (wrong != "") printf "spilled, or more than %d bytes of stack:\n%s", most, wrong
        exit wrong != "" || length(seen) != files
    }' "$scratch/told" >"$scratch/list"
code=$?
c++filt <"$scratch/list" 2>/dev/null || cat "$scratch/list"
exit $code
