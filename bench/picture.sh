#!/bin/bash
# README's picture, docs/report-light.png and docs/report-dark.png: the steps on the page that `trainer
# report` makes about three runs, as Chromium shows them. On an idle machine, as it is a picture of times.
# usage: bench/picture.sh [FROM_S LENGTH_S]
set -euo pipefail
from=${1:-0.2} length=${2:-0.003} width=900
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
runs='sync async-apply async-lockfree'
for strategy in $runs; do
    "$root/trainer" --strategy="$strategy" --dataset=mnist --batch=100 --devices=cpu:0,cpu:1 --epochs=5 \
        --log-every=1 --quiet --out="$strategy"
done
# shellcheck disable=SC2086 # names without blanks
"$root/trainer" report $runs --from="$from" --length="$length" --out=page.html
python3 - <<'PYTHON'
import re
page = open("page.html").read()
for name in re.findall(r'<section id="(\w+)">', page):
    if name != "steps":
        page = re.sub(rf'<section id="{name}">.*?</section>', "", page, flags=re.S)
page = re.sub(r"<h2>.*?</h2>|<p.*?</p>", "", page, flags=re.S) # README's caption says it
page = re.sub(r"<header>.*?</header>|<footer>.*?</footer>|<nav>.*?</nav>", "", page, flags=re.S)
open("page.html", "w").write(page)
measure = ("<script>document.body.setAttribute('data-height', "
           "Math.ceil(document.body.getBoundingClientRect().height))</script></body>")
open("measure.html", "w").write(page.replace("</body>", measure))
PYTHON
show() { chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "$@" 2>/dev/null; }
height=$(show --window-size=$width,1000 --dump-dom "file://$work/measure.html" |
    grep -o 'data-height="[0-9]*"' | tr -dc 0-9)
for scheme in light dark; do
    [ $scheme = dark ] && preferred=0 || preferred=1
    show --blink-settings=preferredColorScheme=$preferred --window-size="$width,$height" \
        --screenshot="$root/docs/report-$scheme.png" "file://$work/page.html" >/dev/null
done
ls -l "$root"/docs/report-*.png
