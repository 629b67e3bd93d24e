#!/bin/bash
# A build on a machine that has zlib and not its header (src/base/zlib): what is declared there is what
# zlib's own header says, and everything that uses zlib compiles with it, links with the library alone, and
# reads gzip.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
printf '#include <zlib.h>\n' | gcc -E - >/dev/null 2>&1 || { echo "no zlib.h here to compare with"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL # what the make that runs the tests was told is not for this one
ours=src/base/zlib failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

# --- values and layouts ---
{
    printf '#include <zlib.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n'
    for name in $(sed -n 's/^#define \(Z_[A-Z_]*\) .*/\1/p' $ours/zlib.h); do
        printf '    printf("%s %%d\\n", %s);\n' "$name" "$name"
    done
    for type in z_stream uInt uLong z_size_t gzFile Bytef; do
        printf '    printf("%s %%zu\\n", sizeof(%s));\n' $type $type
    done
    for field in $(sed -n '/^typedef struct z_stream_s/,/^}/ s/^ .*[ *(]\([a-z_]*\)\(;\|)(.*\)$/\1/p' \
        $ours/zlib.h); do
        printf '    printf("%s %%zu\\n", offsetof(z_stream, %s));\n' "$field" "$field"
    done
    printf '    return 0;\n}\n'
} >"$scratch/values.c"
[ "$(grep -c offsetof "$scratch/values.c")" -ge 14 ] || fail "fields not found: $(cat "$scratch/values.c")"
gcc -o "$scratch/theirs" "$scratch/values.c" && gcc -I $ours -o "$scratch/ours" "$scratch/values.c" ||
    fail "the values do not compile"
"$scratch/theirs" >"$scratch/theirs.txt" && "$scratch/ours" >"$scratch/ours.txt"
diff "$scratch/ours.txt" "$scratch/theirs.txt" || fail "< has other values than zlib's header >"

# --- calls: one that is declared a second time, in another type, is an error ---
{
    echo '#include <zlib.h>' && sed -n '/^\/\* calls \*\/$/,/^\/\* end of calls \*\/$/p' $ours/zlib.h
} >"$scratch/calls.c"
[ "$(grep -c ';$' "$scratch/calls.c")" -ge 12 ] || fail "no calls found"
gcc -fsyntax-only "$scratch/calls.c" || fail "a call is not as in zlib's header"

# --- make ZLIB=0 ---
sources=$(grep -l '^#include <zlib.h>' src/*/*.c)
objects=()
for source in $sources src/base/{cgroup,error,file,memory}.c; do
    case $source in */fetch.c) continue ;; esac # which needs libcurl, too
    objects+=("$scratch/build/${source%.c}.o")
done
make ZLIB=0 ONEDNN=0 CUDA=0 CURL=0 TLS=0 STB=0 PROTOBUF=0 PNG=0 HDF5=0 WERROR=1 B="$scratch/build" \
    "${objects[@]}" >"$scratch/out" 2>&1 || fail "ZLIB=0: $(tail -n 5 "$scratch/out")"
cat >"$scratch/main.c" <<'END'
#include <stdio.h>
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/data/gunzip.h"
int main(int count, char **arguments) {
    struct error error = {0};
    static unsigned char packed[1000000];
    char *data = NULL;
    size_t bytes = 0;
    if (count == 1) { /* gzip in memory, as data sets in the program are */
        bytes = fread(packed, 1, sizeof packed, stdin);
        if (data_gunzip("stdin", packed, bytes, sizeof packed, &data, &bytes, &error))
            return fprintf(stderr, "%s\n", error.words), 1;
    } else if (file_read(arguments[1], 1000000, &data, &bytes, &error))
        return fprintf(stderr, "%s\n", error.words), 1;
    fwrite(data, 1, bytes, stdout);
    return 0;
}
END
gzip -c README.md >"$scratch/readme.gz"
head -c 1000 "$scratch/readme.gz" >"$scratch/cut.gz"
make -n ZLIB=0 ONEDNN=0 CUDA=0 CURL=0 TLS=0 STB=0 PROTOBUF=0 PNG=0 HDF5=0 B="$scratch/build" \
    "$scratch/build/trainer" 2>/dev/null | grep -qe '-l:libz.so.1 ' ||
    fail "make ZLIB=0 links with what needs a header's package"
gcc -I. -o "$scratch/read" "$scratch/main.c" \
    "$scratch"/build/src/{base/{cgroup,error,file,file_reader,memory},data/gunzip}.o -l:libz.so.1 ||
    fail "not linked"
"$scratch/read" "$scratch/readme.gz" | cmp - README.md || fail "gzip is not read"
"$scratch/read" <"$scratch/readme.gz" | cmp - README.md || fail "gzip in memory is not read"
"$scratch/read" README.md | cmp - README.md || fail "a plain file is not read"
"$scratch/read" "$scratch/cut.gz" 2>"$scratch/err" && fail "a cut file is read"
grep -q 'the gzip data ends too early' "$scratch/err" || fail "a cut file: $(cat "$scratch/err")"
[ $failures -eq 0 ]
