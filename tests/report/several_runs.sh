#!/bin/bash
# The page of several runs compares only what can be compared: timelines have one axis, runs of different data
# sets no race, figures of repeated runs their deviation, what is said of a contender is of all of its runs,
# and no two runs have the same name.
set -u
# shellcheck source=tests/pages.sh
. "$(dirname "$0")/../pages.sh"

# --- a comparison ---
# shellcheck disable=SC2086 # several words
"$TRAINER" bench ${small#--quiet} --quiet --strategies=sync,ssp:bound=2 --repeats=2 --epochs=2 \
    --devices=cpu:0,cpu:1 --out=bench >/dev/null 2>err || fail "bench: $(cat err)"
report bench/report.html bench
# Times that differ much, as they do on a machine that others use.
cp -r bench far
python3 - <<'PYTHON'
import json
for run, seconds, speed in (1, 0.092, 100000), (2, 0.292, 300000):
    summary = json.load(open(f"far/sync/{run}/summary.json"))
    summary.update(train_seconds=seconds, examples_per_s=speed)
    json.dump(summary, open(f"far/sync/{run}/summary.json", "w"))
PYTHON
report far/report.html far
rm -r far/report.html && cp -r far unsaid && rm unsaid/bench.csv
report unsaid/report.html unsaid
report far/report.html far
cat >bench.py <<'PYTHON'
from report_page import *
page = Page("bench/report.html")
rows, table = page.rows("table")[1:], {r["strategy"]: r for r in csv.DictReader(open("bench/bench.csv"))}
for row in rows:
    check(row[5].startswith("{:,.0f} ± ".format(float(table[row[0]]["examples_per_s"]))), row,
          table[row[0]]["examples_per_s"])
boxes = {words(b[0]): [words(p) for p in b.iter(SPACE + "p")]
         for b in page.section("time").iter(SPACE + "div") if b.get("class") == "lane-box"}
for name, row in table.items():
    check(boxes[name] == ([f"2 runs: {row['sentence']}."] if row["sentence"] else []), name, boxes[name],
          row["sentence"])
check(len(boxes) == 4 and "The first run" not in page.source, list(boxes))
check("The first run: " in Page("unsaid/report.html").text("time"), Page("unsaid/report.html").text("time"))
settings = page.text("settings").split("The same in all runs")
check("Different in each repeat, alike for all contenders seed 1, 2" in settings[0] and
      "seed" not in settings[1], settings)
row = next(r for r in Page("far/report.html").rows("table") if r[0] == "sync")
check(row[3] == "192 ± 140 ms" and row[5] == "200,000 ± 140,000", row)
check(not re.search(r"± [0-9.]+e", Page("far/report.html").source), "an exponent")
end()
PYTHON
python3 bench.py || fail "a comparison: the page is wrong"

# --- a run that failed ---
# shellcheck disable=SC2086 # several words
"$TRAINER" bench ${small#--quiet} --quiet --strategies=sync,async-apply --repeats=1 --epochs=2 \
    --devices=cpu:0,cpu:1 --fail=worker:1@step:5 --out=failed >/dev/null 2>err && fail "bench --fail: code 0"
report failed/report.html failed
python3 - <<'PYTHON' || fail "a run that failed: the page is wrong"
from report_page import *
page, words_of = Page("failed/report.html"), Page("failed/report.html").text("table")
why = next(r["error"] for r in csv.DictReader(open("failed/runs.csv")) if r["strategy"] == "sync")
check(f"sync failed: {why}." in words_of and "worker 1 (cpu:1) failed at step 5" in why, why, words_of)
check("still running" not in words_of and "one that all runs reach that were tested;" in words_of, words_of)
row = next(dict(zip(page.rows("table")[0], r)) for r in page.rows("table") if r[0] == "sync")
check("-" == next(row[name] for name in row if name.startswith("time to")), row)
check("never" not in page.source, "never")
end()
PYTHON

# --- timelines ---
train --devices=cpu:0 --epochs=2 --out=early
cp -r early later && cp -r early far-off
python3 - <<'PYTHON'
import csv
for folder, offset in ("later", 0.0001), ("far-off", 5.0):
    rows = list(csv.DictReader(open(folder + "/steps.csv")))
    with open(folder + "/steps.csv", "w") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "time_s": "%.9f" % (float(row["time_s"]) + offset)} for row in rows)
PYTHON
report two.html early later --length=0.001 --out=two.html
report three.html early far-off --length=0.001 --out=three.html
cat >axis.py <<'PYTHON'
from report_page import *
def stretches(path): # of each run: the first box of its first lane, the numbers under it
    found, svgs = [], list(Page(path).section("steps").iter(SPACE + "svg"))
    for svg in svgs:
        if svg.get("aria-label") == "its steps, one by one":
            first = min(int(re.match(r"M(\d+)", p.get("d"))[1]) for p in svg.iter(SPACE + "path"))
        if svg.get("height") == "26":
            found.append((first, [(t.get("x"), words(t)) for t in svg.iter(SPACE + "text")]))
    return found
early, later = stretches("two.html")
check(early[1] == later[1] and len(early[1]) > 2, "axes differ:", early, later)
steps = list(csv.DictReader(open("early/steps.csv")))
begin = min(float(r["time_s"]) - sum(float(r[part + "_ms"]) for part in ("input", "pull", "compute", "push",
                                                                         "wait")) / 1e3 for r in steps)
length = min(max(float(r["time_s"]) for r in steps) + 0.0001 - begin, 0.001)
check(early[0] <= 1 and abs(later[0] * length / 20000 - 0.0001) <= 0.000002, "a tenth of 1 ms later:",
      early[0], later[0], length)
page = Page("three.html")
check("Its first step began later than those of others: this picture begins after 5" in page.text("steps"),
      page.text("steps"))
check(page.text("steps").count("Its first step began later") == 1 and
      "No step lies" not in page.text("steps"), page.text("steps"))
end()
PYTHON
python3 axis.py || fail "timelines: the page is wrong"
refused 2 'trainer: --from=99: the last step of all runs ended after 5* s of training' early far-off \
    --from=99 --out=two.html

# --- different data sets ---
"$TRAINER" --quiet --dataset=iris --model=softmax --devices=cpu:0 --epochs=3 --out=flowers >printed 2>err ||
    fail "flowers: $(cat err)"
report mixed.html early flowers --out=mixed.html --target-accuracy=0.5
report same.html early bench/sync/1 --out=same.html
cat >mixed.py <<'PYTHON'
from report_page import *
page = Page("mixed.html")
check(words(page.root.find(f".//{SPACE}h1")) == "mlp:hidden=20 on digits:take=320 and softmax on iris",
      words(page.root.find(f".//{SPACE}h1")))
check("tested on different data sets" in page.text("table") and
      not any("time to" in c for c in page.rows("table")[0]), page.text("table"))
check("Time until" not in page.text("speed") and 'class="mark"' not in page.source, page.text("speed"))
check(len({len(r) for r in page.rows("table")}) == 1, page.rows("table"))
page = Page("same.html")
check("tested on different" not in page.text("table") and
      any("time to" in c for c in page.rows("table")[0]) and "Time until" in page.text("speed"),
      page.text("table"))
end()
PYTHON
python3 mixed.py || fail "different data sets: the page is wrong"

# --- judged differently ---
python3 -c 'print("x,y"); [print(f"{i},{3 * i + i % 7}") for i in range(400)]' >numbers.csv
"$TRAINER" --quiet --dataset=csv:file=numbers.csv,target=y --model=mlp:hidden=4 --devices=cpu:0 --epochs=2 \
    --out=numbers >printed 2>err || fail "numbers: $(cat err)"
report first.html early numbers --out=first.html
report last.html numbers early --out=last.html
cat >judged.py <<'PYTHON'
from report_page import *
accuracy = json.load(open("early/summary.json"))["test_accuracy"]
rmse = json.load(open("numbers/summary.json"))["test_rmse"]
for path, names in ("first.html", ["accuracy, %", "RMSE"]), ("last.html", ["RMSE", "accuracy, %"]):
    page = Page(path)
    rows = [dict(zip(page.rows("table")[0], row)) for row in page.rows("table")[1:]]
    figures = {row["run"]: [row.get(name) for name in ("accuracy, %", "RMSE")] for row in rows}
    check(figures == {"early": ["%.2f" % (100 * accuracy), "-"], "numbers": ["-", "%.4g" % rmse]}, path,
          figures)
    charts = [words(f.find(SPACE + "figcaption")) for f in page.section("curves").iter(SPACE + "figure")]
    check(charts[:4] == [f"Test {name}" for name in names for _ in range(2)], path, charts)
    drawn = [len([p for p in f.iter(SPACE + "path") if "curve" in p.get("class", "") and p.get("d")])
             for f in page.section("curves").iter(SPACE + "figure")]
    check(drawn == [1, 1, 1, 1, 2, 2], path, drawn)
    check("time to" not in page.text("table"), page.text("table"))
end()
PYTHON
python3 judged.py || fail "runs that are judged differently: the page is wrong"

# --- names ---
mkdir p1 p2 && cp -r early p1/run && cp -r early p2/run && cp -r early run && cp -r bench p1/bench
labels() { # what is expected, folders...
    local wanted=$1
    shift
    report named.html "$@" --out=named.html
    found=$(python3 -c \
        'from report_page import *; print("|".join(r[0] for r in Page("named.html").rows("table")[1:]))')
    [ "$found" = "$wanted" ] || fail "labels of $*: $found expected: $wanted"
}
labels 'p1/run|p2/run' p1/run p2/run
labels 'run|p2/run|early' run p2/run early
labels 'p1/run|p2/run|./run' p1/run p2/run ./run
labels "bench/one device|bench/one device, all cores|bench/sync|bench/ssp:bound=2|\
p1/bench/one device|p1/bench/one device, all cores|p1/bench/sync|p1/bench/ssp:bound=2" \
    bench p1/bench
refused 2 'trainer: report: p1/run is there twice: expected different runs' p1/run p1/run
refused 2 'trainer: report: ./p1/../run is there twice: expected different runs' run early ./p1/../run/
refused 2 'trainer: report: bench/sync/2 is there twice: expected different runs' bench bench/sync/2

# --- what is to be known of a run ---
"$TRAINER" --quiet --dataset=digits:take=320 --batch=16 --devices=cpu:0 --epochs=8 --optimizer=sgd:rate=1e-9 \
    --out=nothing >printed 2>err || fail "nothing: $(cat err)"
cp -r early killed && rm killed/summary.json
sed -i 's/"interrupted": false/"interrupted": true/; s/"epochs": 2,/"epochs": 1.5,/' later/summary.json
report known.html early nothing killed later --out=known.html
python3 - <<'PYTHON' || fail "notes on runs"
from report_page import *
notes = [words(n) for n in Page("known.html").section("table").iter(SPACE + "li")]
check(len(notes) == 3 and notes[0].startswith("nothing: nothing was learnt: ") and
      notes[1].startswith("killed has no summary.json") and
      notes[2] == "later was interrupted after 1.5 of 2 epochs.", notes)
end()
PYTHON

[ $failures -eq 0 ]
