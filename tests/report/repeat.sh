#!/bin/bash
# The page of a cluster says that it was one, and its commands, with addresses in their places, train the
# same again.
# shellcheck disable=SC2086,SC2016 # options are several words; HOSTS is that of the commands
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

# The commands on a page, one per line, with the addresses of this cluster.
cat >commands.py <<'PYTHON'
import sys
from report_page import *
page, addresses = Page(sys.argv[1]), iter(sys.argv[4:])
subtitle, text = words(page.root.find(f".//{SPACE}header/{SPACE}p")), page.text("repeat")
lines = "".join(page.section("repeat").find(f".//{SPACE}pre").itertext()).strip().split("\n")
check(subtitle.endswith(", in " + sys.argv[2]), subtitle)
check(f"It was {sys.argv[2]}: each line is typed for one process" in text and
      "which are not recorded" in text, text)
everything = "".join(page.root.itertext())
check(all(f"--{name}" in everything for name in ("weights", "stop-after", "workers", "group", "place")), text)
lines[0] = re.sub("HOST:PORT", lambda _: next(addresses), lines[0])
check(len(lines) == 1 + int(sys.argv[3]) and next(addresses, None) is None, lines)
print("\n".join(lines))
sys.stdout.flush()
end()
PYTHON

addresses() { for ((i = 0; i < $1; i++)); do echo "127.0.0.1:$((port + i))"; done; }

# Runs these commands at new addresses; those of the leader and of mirrored processes write to run/.
again() { # label, of what, parameter servers, workers
    local label=$1 what=$2 i=0 names='' line HOSTS
    "$TRAINER" report run >out 2>err || fail "$label: report: $(cat err)"
    mv run before
    new_cluster "$3" "$4"
    # shellcheck disable=SC2046 # several words
    python3 commands.py before/report.html "$what" $(($3 + $4)) $(addresses $(($3 + $4))) >commands ||
        fail "$label: $(cat commands)"
    HOSTS=$(sed -n '1s/^HOSTS="\(.*\)"$/\1/p' commands)
    while IFS= read -r line; do
        [[ $line == 'trainer $HOSTS --job='* ]] || { fail "$label: a command: $line"; continue; }
        [[ $line != *'--devices='*','* ]] || fail "$label: more devices than a process has: $line"
        case $line in
        *--task=0*) [[ $3 -gt 0 && $line == *--job=worker* ]] || line+=' --out=run' ;;
        *) line+=' --out=elsewhere' ;;
        esac
        start "c$i" "$TRAINER" $HOSTS ${line#*HOSTS } --threads=1
        names+="c$i "
        i=$((i + 1))
    done < <(tail -n +2 commands)
    ! grep -E '<dt>(batch of all workers|group)</dt>' before/report.html ||
        fail "$label: settings that nobody has set"
    ends 0 $names
    cmp -s run/model.safetensors before/model.safetensors || fail "$label: the commands train something else"
    rm -rf run before elsewhere
}

new_cluster 1 2
start ps0 "$TRAINER" --job=ps --task=0 $hosts $small --strategy=sync --epochs=2 --seed=5 --out=run --threads=1
for task in 0 1; do start_worker $task; done
ends 0 ps0 w0 w1
again "a parameter server" 'a cluster of 1 parameter server and 2 workers' 1 2

new_cluster 0 2
for task in 0 1; do start_worker $task $small --epochs=2 --seed=5 --strategy=sync --out=run; done
ends 0 w0 w1
again "mirrored" 'a mirrored cluster of 2 processes' 0 2

[ $failures -eq 0 ]
