# What .ci/run and tests/verify share; they source it, it is no test. A stage is a name, a budget in seconds
# on two cores, and a command; the first one that fails ends it all. One that takes longer than its budget is
# named, and fails nothing: machines differ.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
if [ -z "${TRAINER_DATA:-}" ] && [ -d ../shared/datasets ]; then
    TRAINER_DATA=$(cd ../shared/datasets && pwd)
    export TRAINER_DATA
fi
jobs=-j$(nproc)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
late=()

stage() { # name, budget, command...
    local name=$1 budget=$2 began=$SECONDS took
    shift 2
    echo "== $name (budget $budget s)"
    if ! "$@" >"$logs/out" 2>&1; then
        tail -n 300 "$logs/out"
        echo "== $name: FAILED after $((SECONDS - began)) s"
        exit 1
    fi
    grep -E '^(ok  |skip|accepted|caught|[0-9]+ (passed|caught))' "$logs/out" || true
    took=$((SECONDS - began))
    [ $took -le "$budget" ] || late+=("$name: $took s, budget $budget s")
    echo "== $name: done in $took s"
}

# The counts of `make check` are the last line.
end_of_stages() {
    [ ${#late[@]} -eq 0 ] || printf 'over budget: %s\n' "${late[@]}"
    echo "all stages passed in $SECONDS s"
    [ -z "${counts:-}" ] || echo "$counts"
}

# What `make check` does not install, as only who asks for --link=ucx has it: 2 MB. Without it those tests
# skip themselves.
install_ucx() {
    local as_root=
    printf '#include <ucp/api/ucp.h>\n' | ${CC:-gcc} -E - >/dev/null 2>&1 && return
    [ "$(id -u)" -eq 0 ] || as_root="sudo -n"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libucx-dev ||
        echo "libucx-dev cannot be installed"
}

check_all() {
    stage "make check" "$1" make "$jobs" WERROR=1 check
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/out" | tail -n 1)
}

# What the later stages need beyond `make check`; the sanitizers' libraries of clang are a package named after
# its version.
install_tools() {
    tests/install-missing clang=clang ld.lld=lld g++=g++ clang-format=clang-format git=git python3=python3 \
        nm=binutils
    local version as_root=
    version=$(clang -dumpversion | cut -d. -f1)
    printf 'int main(void) { return 0; }\n' | clang -fsanitize=address -x c -o "$logs/probe" - 2>/dev/null &&
        return
    [ "$(id -u)" -eq 0 ] || as_root="sudo -n"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "libclang-rt-$version-dev"
}

format_check() {
    git -c safe.directory='*' ls-files '*.c' '*.h' '*.cu' '*.cc' '*.hh' | xargs clang-format --dry-run -Werror
}

# What has no part in a compiler's or a sanitizer's business: installing, formats that others read, words on a
# terminal, tools.
apart="project/zlib_header project/install project/install_missing project/demo project/floors \
    project/stranger project/standin_headers project/cuda project/cuda_search cuda/registers \
    project/documents project/mutate library/symbols library/python formats/safetensors exports/clients exports/names \
    imports/clients imports/onnx_clients imports/optimizer_clients datasets/npz_numpy datasets/elsewhere \
    outputs/tensorboard_reader outputs/terminal commands/help commands/completions"

# What must work without oneDNN, libcurl, stb_image, libpng, UCX and CUDA, of which no trace may be left, on
# any processor of the architecture; and warnings of clang.
plain=(CC=clang LDFLAGS=-fuse-ld=lld WERROR=1 ONEDNN=0 CURL=0 TLS=0 STB=0 PROTOBUF=0 PNG=0 HDF5=0 UCX=0 CUDA=0
    MARCH=)
clang_build() { TEST_WITHOUT="${apart/project\/cuda /}" make "$jobs" B=build/clang "${plain[@]}" tests; }
# The program alone, and scripts.
clang_scripts() { # scripts...
    make "$jobs" B=build/clang "${plain[@]}" build/clang/trainer &&
        tests/runner build/clang build/clang/trainer "$@"
}

# With the GPU backend, on GPUs that a stand-in plays.
sanitizer_make() { # sanitizers, compiler, targets and settings of the Makefile
    local kind=$1 compiler=$2
    shift 2
    make "$jobs" B="build/$kind" SANITIZE="$kind" CC="$compiler" LDFLAGS=-fuse-ld=lld CUDA=standin WERROR=1 \
        "$@"
}
sanitizer_build() { # sanitizers, compiler, tests to leave out, further settings of the Makefile
    local kind=$1 compiler=$2 without=$3
    shift 3
    TEST_WITHOUT="$apart $without" sanitizer_make "$kind" "$compiler" tests "$@"
}

# What depends on the order of events, several times at once, so that the orders differ.
repeat_strategies() { # how often
    local i pids=()
    for ((i = 0; i < $1; i++)); do
        tests/runner build ./trainer strategies/strategies strategies/reads engine/faults \
            >"$logs/repeat.$i" 2>&1 &
        pids+=($!)
    done
    for ((i = 0; i < $1; i++)); do
        wait "${pids[i]}" || { cat "$logs/repeat.$i"; return 1; }
    done
    cat "$logs"/repeat.*
}

# Shortly: what they measure is not looked at. bench/gpu_*.py run in cuda/facts.
measuring_programs() {
    local mlp=--models=mlp:hidden=100
    [ -n "${TRAINER_DATA:-}" ] || { echo "skip: no TRAINER_DATA"; return; }
    bench/builds.py . . --rounds 1 --only mlp --match sync &&
        bench/cluster.py --rounds 1 --epochs 1 --strategies sync $mlp --way "1 ps, TCP" &&
        bench/compressors.py --model mlp --dataset mnist:take=2000 --epochs 1 --compressors none,bf16 &&
        bench/network.py --part latency --rounds 1 &&
        bench/shares.py --rounds 1 --models mlp &&
        bench/strangers.py --rounds 1 --epochs 1 --silent 40 --rate 50 &&
        bench/disturbed.py --epochs 1 --out "$logs/disturbed"
}

# In two trees at once: most of the time one compiler runs, or one test.
mutations_quick() {
    tests/mutate --quick --jobs=1 --part=1/2 >"$logs/mutations" 2>&1 &
    local other=$! code=0
    tests/mutate --quick --jobs=1 --part=2/2 || code=1
    wait $other || code=1
    cat "$logs/mutations"
    return $code
}
