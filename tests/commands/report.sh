#!/bin/bash
# trainer report: the page is well-formed and needs nothing else, its figures are those of the run's files,
# names that are markup stay text, the command that it says runs the same training again, and whatever is
# missing or damaged is said in a line.
set -u
# shellcheck source=tests/pages.sh
. "$(dirname "$0")/../pages.sh"

# --- one run: its figures, and the command ---
train --devices=cpu:0,cpu:1 --epochs=3 --validation=0.1 --out=runs/sync
report runs/sync/report.html runs/sync
train --devices=cpu:0,cpu:1,cpu:2 --epochs=3 --strategy=async-lockfree --slow=cpu:1=2x --out=async
# shellcheck disable=SC2086 # several words
sentence=$("$TRAINER" ${small#--quiet} --print-every=0 --devices=cpu:0,cpu:1 --out=said | tr '\n' ' ' |
    sed 's/  */ /g; s/.*Final Cost: [0-9.]* //; s/ $//')
report said/report.html said/
report async/report.html async
cat >one.py <<'PYTHON'
from report_page import *
for folder in "runs/sync", "async":
    page, summary = Page(folder + "/report.html"), json.load(open(folder + "/summary.json"))
    tiles = page.tiles()
    check(tiles["test accuracy"] == "%.2f %%" % (100 * summary["test_accuracy"]), tiles)
    check(number(tiles["examples per second"]) == round(summary["examples_per_s"]), tiles)
    check(abs(seconds(tiles["of training"]) / summary["train_seconds"] - 1) < 0.006, tiles)
    check(tiles["of the workers' time spent computing"] == "%.0f %%" % (100 * summary["compute_share"]),
          tiles)
    check(abs(number(tiles["mean staleness of a gradient, in updates"]) - summary["staleness"]["mean"]) <
          0.006, tiles)
    rows, workers = page.rows("time")[1:], summary["per_worker"]
    check(len(rows) == len(workers), rows)
    for row, worker in zip(rows, workers):
        check(row[0] == worker["name"] and number(row[1]) == worker["steps"], row)
        for cell, key in zip(row[2:7], ("compute_s", "input_s", "pull_s", "push_s", "wait_s")):
            check(abs(seconds(cell) - worker[key]) <= 0.006 * worker[key], key, row, worker[key])
        check(abs(number(row[7]) - worker["staleness_mean"]) <= 0.006 * worker["staleness_mean"] and
              number(row[8]) == worker["staleness_max"], row)
    for row, worker in zip(page.rows("waits")[1:], workers):
        check(row[2] == worker["waited_at"] and row[4] == (worker["waited_for"] or "-"), row)
        check(abs(seconds(row[5]) - worker["waited_for_s"]) <= 0.006 * worker["waited_for_s"], row)
    # The widths of a bar add up to it, and are the shares of the worker's time.
    bars = [s for s in page.section("time").iter(SPACE + "svg")
            if s.get("aria-label") == "shares of its time"]
    for bar, worker in zip(bars, workers):
        shares = {r.get("class"): float(r.get("width")[:-1]) for r in bar.iter(SPACE + "rect")}
        whole = sum(worker[k + "_s"] for k in ("compute", "input", "pull", "push", "wait"))
        check(abs(sum(shares.values()) - 100) < 0.1 and
              abs(shares["wait"] - 100 * worker["wait_s"] / whole) < 0.02, shares, worker)
    # A histogram's bars are the gradients of the worker, by staleness.
    steps = list(csv.DictReader(open(folder + "/steps.csv")))
    pictures, ran = (list(page.section("staleness").iter(SPACE + "svg")),
                     sorted({int(r["worker"]) for r in steps}))
    check(len(pictures) in (0, len(ran)), len(pictures), "histograms of", ran) # none where nothing was stale
    for w, picture in zip(ran, pictures): # a worker may have come too late for any step
        mine = [int(r["staleness"]) for r in steps if r["worker"] == str(w) and r["update"] != "0"]
        titles = [words(t).split(": ") for t in picture.iter(SPACE + "title")]
        width = min([int(b[0]) for b in titles if int(b[0]) > 0] + [10**9])
        check(abs(sum(float(t[1].split()[0]) for t in titles) - 100) < 0.2, titles)
        if titles[0][0] == "0" and max(mine) < 24:
            check(abs(float(titles[0][1].split()[0]) - 100 * mine.count(0) / len(mine)) < 0.006, titles)
    # A curve has a point for each epoch.
    epochs = list(csv.DictReader(open(folder + "/epochs.csv")))
    charts = [s for s in page.section("curves").iter(SPACE + "svg") if s.get("class") == "chart"]
    check(len(charts) == 4, len(charts), "charts")
    dots = [c for c in charts[2].iter(SPACE + "circle") if c.get("class") == "f0"]
    check(len(dots) == len(epochs), len(dots), "dots")
    highest = max(range(len(epochs)), key=lambda e: float(epochs[e]["test_accuracy"]))
    check(min(range(len(dots)), key=lambda d: float(dots[d].get("cy"))) == highest,
          "the highest dot is not that of epoch", highest + 1)
    settings = {words(d[0]): words(d[1]) for d in page.section("settings").iter(SPACE + "div")}
    check(settings["strategy"] == summary["strategy"] and settings["devices"] == summary["devices"] and
          settings["epochs"] == "3", settings)
check("staleness" in page.source and "--slow=cpu:1=2x" in page.text("losses"), page.text("losses"))
check("applied to the weights that it was computed on" in Page("runs/sync/report.html").text("staleness"),
      "staleness of sync")
check("validation" in Page("runs/sync/report.html").text("curves") and
      "validation" not in page.text("curves"), "the legend")
said = [words(p) for p in Page("said/report.html").section("glance").iter(SPACE + "p")
        if p.get("class") == "why"]
check(said == [sys.argv[1]], said, "but the run said", sys.argv[1])
open("again", "w").write(words(Page("runs/sync/report.html").section("repeat").find(f".//{SPACE}pre")))
end()
PYTHON
python3 one.py "$sentence" || fail "one run: the page is wrong"
grep -q '^trainer --model=mlp:hidden=20 --dataset=digits:take=320 --epochs=3 --batch=16 --validation=0.1 '\
'--shards=1 --devices=cpu:0,cpu:1 --threads=1$' \
    again ||
    fail "how to repeat it: $(cat again)"
sh -c "$(sed "s|^trainer|'$TRAINER' --quiet --out=second|" again)" >/dev/null ||
    fail "the command does not run: $(cat again)"
cmp -s runs/sync/model.safetensors second/model.safetensors ||
    fail "the command trains something else: $(cat again)"

# --- a stretch: each step that lies in it ---
read -r from length count <<<"$(python3 - <<'PYTHON'
import csv
rows = list(csv.DictReader(open("async/steps.csv")))
ends = [float(r["time_s"]) for r in rows]
begins = [e - sum(float(r[k]) for k in ("input_ms", "pull_ms", "compute_ms", "push_ms", "wait_ms")) / 1e3
          for e, r in zip(ends, rows)]
begin, end = ends[len(ends) // 3], ends[2 * len(ends) // 3]
# of those that compute in it
def computes(b, r):
    b += sum(float(r[k]) for k in ("input_ms", "pull_ms", "wait_ms")) / 1e3
    return b < end and b + float(r["compute_ms"]) / 1e3 > begin
print("%.6f %.6f" % (begin, end - begin), sum(computes(b, r) for b, r in zip(begins, rows)))
PYTHON
)"
report stretch.html async --from="$from" --length="$length" --out=stretch.html
python3 - "$count" <<'PYTHON' || fail "--from=$from --length=$length: the timeline is wrong"
from report_page import *
page = Page("stretch.html")
lanes = [s for s in page.section("steps").iter(SPACE + "svg")
         if s.get("aria-label") == "its steps, one by one"]
boxes = sum(p.get("d").count("M") for lane in lanes
            for p in lane.iter(SPACE + "path") if p.get("class") == "compute")
check(len(lanes) == 3 and abs(boxes - int(sys.argv[1])) <= 2, len(lanes), "lanes,", boxes, "steps, expected",
      sys.argv[1])
end()
PYTHON
refused 2 'trainer: --from=1000: the last step of async ended after * s of training' async --from=1000 \
    --length=1 --out=stretch.html

# --- several runs, and a comparison ---
report report.html runs/sync async second --target-accuracy=0.5
# shellcheck disable=SC2086 # several words
"$TRAINER" bench ${small#--quiet} --quiet --strategies=sync,ssp:bound=2 --repeats=2 --epochs=2 \
    --devices=cpu:0,cpu:1 --out=bench >/dev/null 2>err || fail "bench: $(cat err)"
report bench/report.html bench
cat >several.py <<'PYTHON'
from report_page import *
page = Page("report.html")
for row, folder in zip(page.rows("table")[1:], ("runs/sync", "async", "second")):
    summary = json.load(open(folder + "/summary.json"))
    epochs = list(csv.DictReader(open(folder + "/epochs.csv")))
    reached = [float(e["time_s"]) for e in epochs if float(e["test_accuracy"]) >= 0.5]
    check(row[0] == folder.split("/")[-1] and row[1] == "1" and
          row[2] == "%.2f" % (100 * summary["test_accuracy"]), row)
    check(row[4] == "never" if not reached else abs(seconds(row[4]) / reached[0] - 1) < 0.006, row, reached)
    check(number(row[5]) == round(summary["examples_per_s"]) and
          row[6] == "%.0f" % (100 * summary["wait_share"]), row)
check(page.rows("table")[0][4] == "time to 50.0 %", page.rows("table")[0])
differs = page.text("settings").split("The same in all runs")
check("async-lockfree" in differs[0] and "mlp:hidden=20" not in differs[0] and "mlp:hidden=20" in differs[1],
      differs)
page = Page("bench/report.html")
rows, runs = page.rows("table")[1:], list(csv.DictReader(open("bench/runs.csv")))
check([r[0] for r in rows[-2:]] == ["sync", "ssp:bound=2"] and rows[0][0] == "one device", rows)
for row in rows:
    accuracies = [100 * float(r["test_accuracy"]) for r in runs if r["strategy"] == row[0]]
    check(len(accuracies) == 2 and row[1] == "2" and row[2].split(" ")[0] == "%.2f" % (sum(accuracies) / 2),
          row, accuracies)
seeds = [words(d[1]) for d in page.section("settings").iter(SPACE + "div") if words(d[0]) == "seed"]
check(seeds == ["1, 2"], "seeds", seeds)
end()
PYTHON
python3 several.py || fail "several runs: the page is wrong"

# --- names that are markup, and bytes that are nothing ---
mkdir 'a<b1>&"'"'"
printf 'x,y,kind\n1,2,<b1>\n2,1,b\n3,4,<b1>\n5,2,b\n1,1,<b1>\n4,4,b\n' >'a<b1>&"'"'"/'t<b1>.csv'
"$TRAINER" --quiet --dataset="csv:file=a<b1>&\"'/t<b1>.csv,test=0.3" --model=softmax --batch=2 --epochs=2 \
    --devices=cpu:0 --out='a<b1>&"'"'"/run >printed 2>err ||
    fail "a hostile name: $(cat err)"
report 'a<b1>&"'"'/run/report.html" 'a<b1>&"'"'"/run
cp -r async hostile
python3 - <<'PYTHON'
import json
summary = json.load(open("hostile/summary.json"))
evil = "</pre><b1 onclick=\"x\">'&\u0001\ufffe\x7f"
summary.update(model=evil, dataset=evil, strategy=evil, program=evil, devices=evil,
               faults="--slow=$(touch evil) ;b1 " + evil)
for worker in summary["per_worker"]:
    worker.update(name=evil[:30], waited_for=evil[:30], waited_at=evil)
json.dump(summary, open("hostile/summary.json", "w"))
lines = open("hostile/steps.csv").read().replace("cpu:1", "<b1>\x01&").split("\n")
lines[3] = "half a row"
lines[5] = "1e999" + lines[5][lines[5].index(","):]
open("hostile/steps.csv", "wb").write("\n".join(lines).encode() +
                                      b"0.1,0,\xff\xfe<b1>,1,1,1,1,1,1,1,1,1,1,0,1,0\n0.2,77777777,a,1,1,1,1,"
                                      b"1,1,1,1,1,1,0,1,0\n0.1,1,")
PYTHON
report hostile/report.html hostile
report hostile.html hostile 'a<b1>&"'"'"/run --out=hostile.html
python3 - <<'PYTHON' || fail "hostile names: the page is wrong"
from report_page import *
page = Page("a<b1>&\"'/run/report.html")
check("csv:file=a<b1>&\"'/t<b1>.csv,test=0.3" in page.text("settings"), page.text("settings"))
again = words(page.section("repeat").find(f".//{SPACE}pre"))
check("--dataset='csv:file=a<b1>&\"'\\''/t<b1>.csv,test=0.3'" in again, again)
page = Page("hostile/report.html")
check("4 rows of the tables could not be read and are left out" in page.text("glance"), page.text("glance"))
check("'--slow=$(touch'" in page.text("repeat"), page.text("repeat"))
Page("hostile.html")
end()
PYTHON

# --- what is missing ---
train --devices=cpu:0 --epochs=2 --log-every=0 --out=nolog
report nolog/report.html nolog
# The last number is cut off.
cp -r async killed && rm killed/summary.json &&
    printf '0.5,1,cpu:1,1,99,1,0.1,16,1,1,1,1,1,0,9,1' >>killed/steps.csv
report killed/report.html killed
mkdir bare
awk 'BEGIN {
    # In any order.
    print "update,staleness,wait_ms,push_ms,compute_ms,pull_ms,input_ms,loss,step,device,worker,time_s"
    for (i = 1; i <= 101; i++)
        printf "%d,%d,1,1,6,1,1,0.5,%d,cpu:0,0,%.2f\n", i, (i > 100 ? 30 : i % 10), i, i / 100
}' >bare/steps.csv
without='mistakes and filters' report bare/report.html bare
cat >missing.py <<'PYTHON'
from report_page import *
page = Page("nolog/report.html")
check("steps.csv has no step or is not there" in page.text("glance"), page.text("glance"))
check(page.section("steps") is None and page.section("staleness") is None and
      page.section("curves") is not None, "sections")
page = Page("killed/report.html")
check("There is no summary.json" in page.text("glance") and
      "1 row of the tables could not be read" in page.text("glance"), page.text("glance"))
check("--strategy=async-lockfree" in page.text("repeat") and page.section("steps") is not None,
      page.text("repeat"))
page = Page("bare/report.html")
titles = [words(t) for t in page.section("staleness").iter(SPACE + "title")]
check(titles == ["%d: 9.90 %%" % i for i in range(10)] + ["> 9: 0.99 %"], titles)
shares = [words(t) for t in page.section("time").iter(SPACE + "title")]
check(shares[0] == "computing: 60.0 %" and shares[4] == "waiting for others: 10.0 %", shares)
check(page.section("curves") is None and "epochs.csv has no epoch" in page.text("glance") and
      page.section("steps") is not None, page.text("glance"))
end()
PYTHON
python3 missing.py || fail "missing files: the page is wrong"

# --- a long run: as few bytes of page and of memory as a short one ---
mkdir long
awk 'BEGIN {
    print "time_s,worker,device,epoch,step,loss,learning_rate,examples," \
        "input_ms,pull_ms,compute_ms,push_ms,wait_ms,staleness,update,wire_bytes"
    for (i = 0; i < 200000; i++)
        printf "%.6f,%d,cpu:%d,%d,%d,%.4f,0.1,32,0.1,0.2,0.5,0.1,0.1,%d,%d,0\n", (i + 4) / 4000, i % 4, i % 4,
            1 + i / 1000, i / 4 + 1, 2 / (1 + i / 50000), i % 1000, i + 1
}' >long/steps.csv
without='mistakes and filters' report long/report.html long --length=1000
[ "$(wc -c <long/report.html)" -lt 1000000 ] ||
    fail "the page of a long run has $(wc -c <long/report.html) bytes"
grep -q 'At most 2,000 steps are drawn: the stretch that was asked for, .*, has 200,000, '\
'and the picture ends after' \
    long/report.html || fail "a long stretch is not cut"
python3 -c 'from report_page import *; Page("long/report.html"); end()' ||
    fail "a long run: the page is wrong"

# --- what the network confuses ---
report runs/sync/report.html runs/sync --confusion
report 'a<b1>&"'"'"/run/report.html 'a<b1>&"'"'"/run --confusion
gzip -dc "$root/datasets/embedded/digits.csv.gz" >digits.csv
cat >confusion.py <<'PYTHON'
import base64, struct
from report_page import *
page, summary = Page("runs/sync/report.html"), json.load(open("runs/sync/summary.json"))
matrix = next(s for s in page.section("confusion").iter(SPACE + "svg") if "matrix" in s.get("class"))
cells = [(r.get("class") == "f0", int(words(t)))
         for r, t in zip(matrix.iter(SPACE + "rect"),
                         (t for t in matrix.iter(SPACE + "text") if t.get("class") == "count"))]
all, right = sum(c[1] for c in cells), sum(c[1] for c in cells if c[0])
check(all == 360 and abs(right / all - summary["test_accuracy"]) < 1e-9, right, "of", all, "expected",
      summary["test_accuracy"])
check("Of 360 test examples %d are wrong." % (all - right) in page.text("confusion"),
      page.text("confusion")[:200])
rows = page.rows("confusion")[1:]
check([int(r[2]) for r in rows] == sorted((c[1] for c in cells if not c[0]), reverse=True)[:8], rows)
# Each picture is a test example of that class, a bitmap of 8 x 8.
digits = {}
for line in csv.reader(open("digits.csv")):
    if line[0].strip().isdigit():
        digits.setdefault(tuple(int(float(v)) for v in line[:64]), line[64])
figures = [f for f in page.section("confusion").iter(SPACE + "figure") if f.find(SPACE + "img") is not None]
check(len(figures) == min(24, all - right), len(figures), "pictures")
sure = []
for figure in figures:
    data = base64.b64decode(figure.find(SPACE + "img").get("src").split(",")[1])
    size, offset, width, height, depth = struct.unpack("<2xI4xI4xiixxH", data[:30])
    check((offset, width, height, depth, size) == (54, 8, 8, 24, 54 + 8 * 24), offset, width, height, depth,
          size)
    pixels = tuple(round(data[54 + 24 * (7 - y) + 3 * x] * 16 / 255) for y in range(8) for x in range(8))
    said = words(figure).split(", ")
    check(digits.get(pixels) == said[0], pixels, "is", digits.get(pixels), "not", said)
    sure.append(int(said[2].split()[0]))
check(sure == sorted(sure, reverse=True), sure)
page = Page("a<b1>&\"'/run/report.html")
check("<b1>" in page.text("confusion"), page.text("confusion"))
end()
PYTHON
python3 confusion.py || fail "what the network confuses: the page is wrong"
refused 2 'trainer: report: --confusion is about one run, found 2' runs/sync async --confusion
refused 3 'trainer: bare: no checkpoint in it, *' bare --confusion

# --- a run in parts, and one that is replaced: its page goes with it ---
train --devices=cpu:0 --epochs=2 --out=parts
"$TRAINER" --quiet --resume=parts --devices=cpu:0 --epochs=4 >/dev/null 2>err || fail "resume: $(cat err)"
report parts/report.html parts
grep -q 'The run was resumed' parts/report.html || fail "nothing says that the run was resumed"
grep -q 'these are the settings of its last part' parts/report.html ||
    fail "the command of a run that was resumed is said to be that of all of it"
! grep -q 'The run was resumed' async/report.html || fail "a run that was not resumed is said to be"
train --devices=cpu:0 --epochs=1 --outputs=csv --replace --out=parts
[ ! -e parts/report.html ] || fail "the page of a run that was replaced stays"
# shellcheck disable=SC2086 # several words
"$TRAINER" bench $small --replace --strategies=sync --repeats=1 --epochs=1 --devices=cpu:0,cpu:1 --out=bench \
    >/dev/null 2>err || fail "bench: $(cat err)"
[ ! -e bench/report.html ] || fail "the page of a comparison that was replaced stays"

# --- who waited for whom: the matrix has the zeros of summary.json, whose rows are all that a worker
# waited ---
train --strategy=sharded --shards=2 --devices=cpu:0,cpu:1 --epochs=2 --out=matrix
report matrix/report.html matrix
python3 - <<'PYTHON' || fail "who waited for whom"
import json, re
summary, page = json.load(open("matrix/summary.json")), open("matrix/report.html").read()
assert summary["members"] == ["worker 0 (cpu:0)", "worker 1 (cpu:1)", "server 0", "server 1"], (
    summary["members"])
assert summary["machine"] and summary["machine"].split(";")[0] in page, summary["machine"]
shards = re.search(r"By shard</figcaption>(.*?)</table>", page, re.S)
if summary["staleness"]["max"] > 0:
    highest = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", shards[1])][3::4]
    assert highest == [str(shard["max"]) for shard in summary["shard_staleness"]], highest
table = re.search(r"A row per worker, a column per member that it waited for</figcaption>(.*?)</table>", page,
                  re.S)[1]
rows = [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]]
assert len(rows) == 2, rows
for cells, worker in zip(rows, summary["per_worker"]):
    each = worker["waited_for_each"]
    assert [cell == "-" for cell in cells] == [seconds == 0 for seconds in each], (cells, each)
    assert max(each) == worker["waited_for_s"] and sum(each) <= worker["wait_s"] * 1.0001 + 1e-6, worker
PYTHON

# --- a run makes its own page at its end; what is in it, pictures too, is that of trainer report
# --confusion ---
train --model=lenet --devices=cpu:0 --epochs=1 --out=own
cp own/report.html made.html
report again.html own --confusion --out=again.html
python3 - made.html again.html <<'PYTHON' || fail "the page that a run makes"
import base64, re, struct, sys
pages = [open(path).read() for path in sys.argv[1:]]
sections = [re.findall(r'<h2[^>]*>([^<]*)</h2>', page) for page in pages]
assert sections[0] == sections[1] and "What it confuses" in sections[0], sections
pictures = [re.findall(r'src="data:image/(png|bmp);base64,([^"]*)"', page) for page in pages]
assert pictures[0] == pictures[1] and len(pictures[0]) >= 10, [len(p) for p in pictures]
for kind, text in pictures[0]:
    data = base64.b64decode(text, validate=True)
    if kind == "bmp":
        assert data[:2] == b"BM" and struct.unpack("<I", data[2:6])[0] == len(data), len(data)
    else:
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND", data[-12:]
assert ("What it looks for" in sections[0]) == any(kind == "png" for kind, _ in pictures[0])
PYTHON

# --- more classes than a matrix has: a page without it ---
{ echo a,b,label && for i in {1..11000}; do echo "$i,$((i % 7)),class-$((i % 1100))"; done; } >many.csv
"$TRAINER" --quiet --dataset=csv:file=many.csv --model=softmax --batch=64 --epochs=1 --devices=cpu:0 \
    --out=many >printed 2>err || fail "many classes: $(cat err)"
if grep -q 'goes on without' err || ! grep -q 'What it learnt' many/report.html ||
    grep -q 'What it confuses' many/report.html; then
    fail "many classes: $(cat err)"
fi

# --- memory that is not to be had: one line, and no page ---
for ((n = 1; n < 200; n++)); do
    rm -f page.html
    TRAINER_FAIL_ALLOCATION=$n "$TRAINER" report async second --out=page.html >out 2>err
    code=$?
    [ $code -eq 0 ] && break
    if [ $code -ne 4 ] || [ "$(wc -l <err)" -ne 1 ] || [ -e page.html ] || [ -e page.html.part ]; then
        fail "allocation $n fails: exit code $code: $(cat err)"
    fi
done
if [ $n -lt 20 ] || [ $n -eq 200 ]; then fail "$n allocations"; fi

# --- what is wrong ---
mkdir empty broken noheader
echo '{"model": ' >broken/summary.json
echo 'time_s,worker' >noheader/steps.csv
refused 2 'trainer: report: expected the folder of a run, or several'
refused 2 'trainer: --length=0: *' async --length=0
refused 2 'trainer: --from=-1: *' async --from=-1
refused 2 'trainer: unknown option*' async --form=1
refused 3 'trainer: empty: no run there, expected *' empty
refused 3 'trainer: nowhere: no run there, expected *' nowhere
refused 3 'trainer: empty: no run there, expected *' async empty
refused 3 'trainer: broken/summary.json: JSON line * expected *' broken
refused 3 'trainer: noheader/steps.csv: no column "step"' noheader
refused 3 'trainer: nowhere/page.html*' async --out=nowhere/page.html
[ -z "$(find . -name 'report.html.part')" ] || fail "a page that was begun stays"

[ $failures -eq 0 ]
