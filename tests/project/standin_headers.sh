#!/bin/bash
# The stand-in's headers say what CUDA's say, where CUDA is installed: every enumerator and every macro that
# is a number has the real value, every call the real type, and structures that are filled in have their
# fields in the real places.
set -u
fail() {
    echo "standin_headers: $*" >&2
    exit 1
}
standin=tests/standin
real=()
headers=
for header in cuda_runtime.h cublasLt.h cudnn.h nccl.h; do
    found=
    for folder in /usr/local/cuda/include /usr/include /usr/local/include \
        $(python3 -c 'import nvidia; print(*(p + "/*/include" for p in nvidia.__path__))' 2>/dev/null); do
        [ -f "$folder/$header" ] && found=$folder && break
    done
    [ -z "$found" ] && [ $header = nccl.h ] && continue # a build does without
    [ -n "$found" ] || { echo "no $header of CUDA's here"; exit 77; }
    real+=(-isystem "$found")
    headers="$headers ${header%.h}"
done
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

for header in $headers; do
    # Without comments; names of enumerators and of macros that are numbers.
    sed -e 's,/\*.*\*/,,g' "$standin/$header.h" >"$work/plain.h"
    grep -oE '\b[A-Za-z_0-9]+ = (0x)?[0-9]+\b' "$work/plain.h" | cut -d' ' -f1 >"$work/names"
    sed -n -E 's/^#define ([a-z][A-Za-z]+) (0x)?[0-9]+$/\1/p' "$work/plain.h" >>"$work/names"
    [ "$(wc -l <"$work/names")" -ge 10 ] || fail "$header: no names found"
    {
        echo "#include <stdio.h>"
        echo "#include <$header.h>"
        echo "int main(void) {"
        while read -r name; do echo "    printf(\"$name %lld\\n\", (long long)$name);"; done <"$work/names"
        # Structures that the library fills in an array of ours.
        for name in $(grep -oE '^\} cu[A-Za-z_]+(Perf_t|Result_t)' "$work/plain.h" | cut -d' ' -f2); do
            echo "    printf(\"$name %zu\\n\", sizeof($name));"
        done
        echo "    return 0;"
        echo "}"
    } >"$work/values.c"
    gcc -w -I "$standin" -o "$work/ours" "$work/values.c" || fail "$header: the stand-in's does not compile"
    gcc -w "${real[@]}" -o "$work/theirs" "$work/values.c" || fail "$header: a name is not in the real header"
    "$work/ours" >"$work/ours.txt" && "$work/theirs" >"$work/theirs.txt" || fail "$header: cannot be run"
    diff "$work/ours.txt" "$work/theirs.txt" || fail "$header: < has other values than the real header >"
    # A call that is declared a second time, in another type, is an error.
    {
        echo "#include <$header.h>"
        awk '/^(const char|size_t|(cu|nccl)[a-zR]+(Status|Error)?_t) \*?(cu|nccl)[A-Za-z_0-9]+\(/ {
                 inside = 1
             }
             inside { print } /;$/ { inside = 0 }' "$standin/$header.h"
    } >"$work/calls.c"
    [ "$(grep -cE '^[a-z]' "$work/calls.c")" -ge 10 ] || fail "$header: no calls found"
    gcc -w "${real[@]}" -fsyntax-only "$work/calls.c" || fail "$header: a call is not as in the real header"
done
