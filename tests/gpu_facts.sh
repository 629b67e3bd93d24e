# For the tests of bench/gpu_facts.py, on GPUs that the stand-in plays: runs of it in which stages fail. To
# be sourced.
: "${TRAINER:?expected the path of the program}"
: "${BUILD:?expected the build folder}"
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
facts=$root/bench/gpu_facts.py
export PYTHONDONTWRITEBYTECODE=1
# What the make that runs the tests was told is not for the one of the build stage.
unset MAKEFLAGS MFLAGS MAKELEVEL
failures=0
limit=40 # of a run; what is built with a sanitizer is slower
grep -q -e -fsanitize= "$BUILD/flags" && limit=250

fail() {
    echo "line ${BASH_LINENO[0]}: $*"
    failures=$((failures + 1))
}

# --- a PyTorch that says what it has to, a profiler and a sanitizer ---
mkdir "$scratch/tools"
cat >"$scratch/tools/python" <<'END'
#!/bin/bash
case "$*" in
*torch_steps.py*) for model in mlp cnn; do for way in eager replay compiled; do
    echo '{"what": "torch", "model": "'$model'", "precision": "fp32", "way": "'$way'", '\
'"us": 10.5, "examples_per_s": 1000, "status": "ok"}'
done; done ;;
*) echo "0.0 False None None" ;;
esac
END
cat >"$scratch/tools/ncu" <<'END'
#!/bin/bash
[[ " $* " == *" --clock-control=none "* ]] || exit 9 # the clocks are not ours
echo '==PROF== Connected'
echo '"ID","Kernel Name","gpu__time_duration.sum",'\
'"dram__throughput.avg.pct_of_peak_sustained_elapsed","sm__throughput.avg.pct_of_peak_sustained_elapsed",'\
'"sm__warps_active.avg.pct_of_peak_sustained_active","launch__registers_per_thread"'
echo '"","","us","%","%","%","register/thread"'
for i in 0 1; do echo '"'$i'","gemm<float, 8>","1,002.5","10","20","30","40"'; done
END
cat >"$scratch/tools/compute-sanitizer" <<'END'
#!/bin/bash
echo '========= ERROR SUMMARY: 0 errors'
END
# A folder of a sanitizer was built with settings that the build stage is not told: it would build all of it
# anew, without the sanitizer, under the tests that run beside this one. There it is enough that all is there.
if grep -q -e -fsanitize= "$BUILD/flags"; then
    cat >"$scratch/tools/make" <<'END'
#!/bin/bash
[ "$1" != --version ] || { echo "a make"; exit 0; }
missing=0
for target; do
    case $target in
    -* | *=*) ;;
    *) [ -x "$target" ] || { echo "*** $target is missing"; missing=2; } ;;
    esac
done
exit $missing
END
fi
chmod +x "$scratch"/tools/*
stages=(environment build latencies operations tests speed workers profile sanitizer accuracy)

run() { # folder, options...; $code and $took are left
    local folder=$1 began=$SECONDS
    shift
    PATH=$scratch/tools:$PATH "$facts" --cuda=standin --build="$BUILD" --report="$scratch/$folder" \
        --seconds=$limit --python="$scratch/tools/python" "$@" >"$scratch/$folder.out" 2>&1
    code=$?
    took=$((SECONDS - began))
    [ "$took" -le "$limit" ] || fail "$folder: $took s, expected at most $limit"
    [ "$(find "$scratch/$folder" -type f | wc -l)" -le 8 ] || fail "$folder: $(ls "$scratch/$folder")"
    [ "$(wc -l <"$scratch/$folder/summary.txt")" -le 200 ] ||
        fail "$folder: the summary has $(wc -l <"$scratch/$folder/summary.txt") lines"
    tail -n "$(wc -l <"$scratch/$folder/summary.txt")" "$scratch/$folder.out" |
        cmp -s - "$scratch/$folder/summary.txt" || fail "$folder: the summary is not what is printed last"
}
verdict_of() { # folder, stage
    sed -n "/^stage /,/^\$/s/^$2  *\(.*[a-z]\)  *[0-9.-]*\$/\1/p" "$scratch/$1/summary.txt" | sed 's/ *$//'
}

# --- stages that fail ---
breaks() { # how, stages...: a program that runs what it is given, but for these stages
    cat >"$scratch/through" <<END
#!/bin/bash
stage=\$1
shift
case " ${*:2} " in *" \$stage "*) ;; *) exec "\$@" ;; esac
[ $1 = crash ] && kill -SEGV \$\$
echo \$\$ >>'$scratch/leaders'
(timeout 3000 sh -c "sleep $((limit + 2)); touch '$scratch/marker'") & # it would go on using the GPU
sleep 3000
END
    chmod +x "$scratch/through"
}
check_broken() { # folder, words, stages...
    local folder=$1 words=$2 stage
    shift 2
    [ $code -eq 1 ] || fail "$folder: exit code $code"
    for stage in "${stages[@]}"; do
        case " $* " in
        *" $stage "*)
            [ "$stage" = environment ] || [ "$(verdict_of "$folder" "$stage")" != ok ] ||
                fail "$folder: $stage is ok"
            grep -q "^  $stage: .*\($words\)\|^$stage  *no time was left" "$scratch/$folder/summary.txt" ||
                [ "$stage" = environment ] ||
                fail "$folder: $stage is not told: $(cat "$scratch/$folder/summary.txt")"
            ;;
        *) [ "$(verdict_of "$folder" "$stage")" = ok ] || fail "$folder: $stage: '$(verdict_of "$folder" \
            "$stage")': $(cat "$scratch/$folder/summary.txt")" ;;
        esac
    done
}
fails() { # how, words, stages...
    breaks "$1" "${@:3}"
    run "$1-$3" --through="$scratch/through"
    check_broken "$1-$3" "$2" "${@:3}"
}
