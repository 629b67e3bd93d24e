#!/bin/bash
# The house rules hold here, and tests/floors sees each kind of breach when one is put into a small tree of
# its own.
set -u
tests=$(cd "$(dirname "$0")/.." && pwd)
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

"$tests/floors" "$tests/.." "$BUILD" || fail "the house rules are broken here"

tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT

# A tree in which all rules hold: one file per floor, and their objects.
make_tree() {
    rm -rf "$tree/root"
    mkdir -p \
        "$tree"/root/{src/{base,world,graph,store/optimizers,engine,commands},strategies,models,docs,build}
    cd "$tree/root" || exit 1
    touch demo Makefile README.md LICENSE NOTICE .gitignore src/base/base.h src/world/world.h \
        src/store/store.h src/engine/train.h src/graph/graph.h
    echo 'int base(void); int base(void) { return 1; }' >src/base/base.c
    printf '#include <pthread.h>\n#include "world.h"\n#include "../base/base.h"\npthread_t me(void); '\
'pthread_t me(void) { return pthread_self(); }\n' \
        >src/world/world.c
    printf '#include "../store.h"\n#include "../../base/base.h"\n' >src/store/optimizers/sgd.c
    printf '#include "../src/store/store.h"\n' >strategies/sync.c
    printf '#include "base/base.h"\n  #  include "engine/train.h"\n' >src/main.c
}

# expect holds|breaks WORDS: what floors says of the tree. A source is compiled once: $tree/known keeps it and
# its object.
expect() {
    local want=$1 words=$2 source object output
    while IFS= read -r source; do
        object=${source%.c}.o
        mkdir -p "build/$(dirname "$source")" "$tree/known/$(dirname "$source")"
        if ! cmp -s "$source" "$tree/known/$source"; then
            ${CC:-gcc} -w -c -o "$tree/known/$object" "$source" || fail "$source does not compile"
            cp "$source" "$tree/known/$source"
        fi
        cp "$tree/known/$object" "build/$object"
    done < <(find src strategies models cuda -name '*.c' 2>/dev/null)
    output=$("$tests/floors" "$tree/root" "$tree/root/build" 2>&1)
    case $?:$want in
    0:holds) ;;
    1:breaks)
        case $output in *"$words"*) ;; *) fail "expected a line with \"$words\", found: $output" ;; esac ;;
    *) fail "expected that it $want ($words), found: $output" ;;
    esac
    make_tree
}

make_tree
expect holds ""
echo '#include "../../src/engine/train.h"' >src/store/up.c
expect breaks 'src/store/up.c: includes "../../src/engine/train.h" of src/engine, a higher floor'
echo '#include "../world/world.h"' >src/graph/neighbour.c
expect breaks 'src/graph/neighbour.c: includes "../world/world.h" of its neighbour src/world'
echo '#include "../../engine/train.h"' >src/store/optimizers/deep.c
expect breaks 'deep.c: includes "../../engine/train.h" of src/engine, a higher floor'
mkdir src/attic && echo '#include "../base/base.h"' >src/attic/old.c
expect breaks 'src/attic has no floor'
mkdir src/attic && touch src/attic/old.h && echo '#include "../attic/old.h"' >src/engine/uses.c
expect breaks 'src/attic, which has no floor'
printf '#include <stddef.h>\n#  include <cublasLt.h>\n' >src/engine/gpu.h
expect breaks 'src/engine/gpu.h: #  include <cublasLt.h>, which only cuda/ may'
mkdir cuda && printf '#include <cuda_runtime.h>\n' >cuda/gpu.h &&
    echo '#include "../../cuda/gpu.h"' >src/engine/gpu.h
expect breaks 'src/engine/gpu.h: #include "../../cuda/gpu.h", which only cuda/ may'
mkdir cuda && printf '#include "../src/base/base.h"\n#include "gpu.h"\n' >cuda/gpu.h
expect holds ""
mkdir cuda && echo '#include "../src/store/store.h"' >cuda/gpu.h
expect breaks 'cuda/gpu.h: includes "../src/store/store.h" of its neighbour src/store'
echo '#include "../src/engine/train.h"' >models/mlp.h
expect breaks 'models/mlp.h: includes'
printf '#include <unistd.h>\nvoid nap(void); void nap(void) { usleep(5); }\n' >src/engine/nap.c
expect breaks 'src/engine/nap.o: calls usleep'
printf '#include <time.h>\nlong now(void); long now(void) { return time(0); }\n' >strategies/clocked.c
expect breaks 'strategies/clocked.o: calls time'
printf '#include <signal.h>\n#include <pthread.h>\nint main(void) { signal(2, SIG_IGN); '\
'return pthread_join(pthread_self(), 0); }\n' \
    >src/main.c
expect breaks 'src/main.o: calls signal,'
printf '#include <sys/socket.h>\nint s(void); int s(void) { return socket(1, 1, 0); }\n' \
    >src/store/optimizers/wire.c
expect breaks 'src/store/optimizers/wire.o: calls socket'
printf 'int curl_easy_perform(void *);\nint d(void); int d(void) { return curl_easy_perform(0); }\n' \
    >src/store/optimizers/load.c
expect breaks 'src/store/optimizers/load.o: calls curl_easy_perform'
touch notes.txt
expect breaks 'notes.txt: not one of the things at the top level'
mkdir -p build && touch trainer
expect holds ""
if command -v git >/dev/null; then # what git does not know does not count, what it knows does
    git init -q . && git add Makefile README.md src && touch scratch.txt
    expect holds ""
    mkdir -p vendor && touch vendor/x.c && git init -q . && git add vendor/x.c src
    expect breaks 'vendor: not one of the things'
fi
rm -rf build/src build/strategies
find src strategies models -name '*.c' -delete
expect breaks 'no objects under'

[ $failures -eq 0 ]
