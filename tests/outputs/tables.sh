#!/bin/bash
# The programs that docs/files.md shows, run as they stand there: pandas and R open the tables of a run.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
python=${PANDAS:-python3} ran=0
"$TRAINER" --quiet --devices=cpu:0,cpu:1 --epochs=3 --out=runs/mine >out 2>err || fail "a run: $(cat err)"
shown() {
    awk -v kind="$1" '$0 == "```" kind { inside = 1; next } /^```/ { inside = 0 } inside' \
        "$root/docs/files.md"
}
if "$python" -c 'import pandas' 2>/dev/null; then
    shown python >example.py
    "$python" example.py >out 2>err || fail "pandas: $(cat err)"
    awk 'NR == 1 && $NF == "computing" { found++ }
        /^[01] / && NF == 8 && $NF > 0 && $NF <= 1 { found++ }
        END { exit found != 3 }' \
        <(sed '/^worker/d' out) || fail "pandas prints: $(cat out)"
    ran=1
fi
if command -v Rscript >/dev/null; then
    shown r >example.r
    Rscript --vanilla example.r >out 2>err || fail "R: $(cat err)"
    awk 'NR == 1 { found = $1 == "epoch" && $4 == "test_accuracy" }
        END { exit !(found && NR == 4 && $2 == 3 && $5 > 0.1) }' \
        out || fail "R prints: $(cat out)"
    ran=1
fi
if [ $ran -eq 0 ]; then
    echo "neither pandas nor R is here"
    exit 77
fi
[ $failures -eq 0 ]
