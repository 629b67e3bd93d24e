#!/bin/bash
# The page of one run says what a reader could not guess: that the run was interrupted, learnt nothing, was
# resumed, or had more devices than cores; that a section is missing, and why. Its axes begin and end where
# they should, and it takes the place of nothing but a page.
set -u
# shellcheck source=tests/pages.sh
. "$(dirname "$0")/../pages.sh"

# --- what is there stays, unless it is a page of trainer ---
train --devices=cpu:0 --epochs=2 --out=kept
cp -r kept before
mkdir kept/folder before/folder
echo '<!DOCTYPE html><title>notes</title>' | tee kept/notes.html >before/notes.html
ln -s report.html kept/link.html && ln -s report.html before/link.html
: >kept/none && : >before/none
for file in checkpoint/state.safetensors model.safetensors summary.json steps.csv epochs.csv notes.html \
    link.html none folder; do
    refused 3 "trainer: kept/$file already exists and is not a page of trainer: --replace replaces it, \
--out=FILE writes elsewhere" \
        kept --out=kept/$file
done
diff -r kept before >differs || fail "a report changed a file: $(cat differs)"
report kept/report.html kept
"$TRAINER" report kept >out 2>err || fail "a page does not replace a page: $(cat err)"
"$TRAINER" report kept --out=kept/notes.html --replace >out 2>err || fail "--replace: $(cat err)"
grep -q 'name="generator" content="trainer"' kept/notes.html || fail "--replace wrote no page"

# --- the sections of the page that the run wrote stay, with the data set and without it ---
sections() { grep -o '<h2>[^<]*</h2>' "$1"; }
pictures() { grep -c '<img ' "$1"; }
"$TRAINER" --quiet --dataset=digits:take=320 --model=mlp:hidden=20 --batch=16 --devices=cpu:0 --epochs=2 \
    --out=own >printed 2>err || fail "own: $(cat err)"
cp own/report.html written.html
report own/report.html own
[ "$(sections written.html)" = "$(sections own/report.html)" ] ||
    fail "sections: $(diff <(sections written.html) <(sections own/report.html))"
[ "$(pictures written.html)" = "$(pictures own/report.html)" ] ||
    fail "$(pictures own/report.html) pictures, expected $(pictures written.html)"
sections own/report.html | grep -q 'What it confuses' || fail "no section of what the network confuses"
report own/report.html own --no-confusion
! sections own/report.html | grep -Eq 'confuses|looks for' || fail "--no-confusion leaves the network in"
printf 'x,y,kind\n1,2,a\n2,1,b\n3,4,a\n5,2,b\n1,1,a\n4,4,b\n' >t.csv
"$TRAINER" --quiet --dataset=csv:file=t.csv,test=0.3 --model=softmax --batch=2 --epochs=2 --devices=cpu:0 \
    --out=lone >printed 2>err || fail "lone: $(cat err)"
rm t.csv
without='the mistakes of the network' report lone/report.html lone
! sections lone/report.html | grep -q 'confuses' || fail "what is not known is on the page"
refused 3 'trainer: *t.csv*' lone --confusion --out=other.html
[ ! -e other.html ] || fail "--confusion: a page without it"

# Images, as mnist has them: of these the filters need no data.
mkdir -p data/mnist
python3 - <<'PYTHON'
import random, struct
random.seed(1)
for prefix, count in ("train", 60), ("t10k", 20):
    labels = [i % 10 for i in range(count)]
    images = b"".join(bytes(random.randrange(256) if i // 28 % 10 == label else 0 for i in range(784))
                      for label in labels)
    open(f"data/mnist/{prefix}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, count, 28, 28) +
                                                               images)
    open(f"data/mnist/{prefix}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, count) +
                                                               bytes(labels))
PYTHON
"$TRAINER" --quiet --dataset=mnist --data-dir=data --model=mlp:hidden=8 --devices=cpu:0 --batch=10 \
    --epochs=2 --out=images >printed 2>err || fail "images: $(cat err)"
cp images/report.html written.html
report images/report.html images --data-dir=data
[ "$(sections written.html)" = "$(sections images/report.html)" ] ||
    fail "sections of images: $(diff <(sections written.html) <(sections images/report.html))"
without='the mistakes of the network' report images/report.html images
if sections written.html | grep -q 'looks for'; then # a build with libpng
    sections images/report.html | grep -q 'looks for' || fail "no filters, which need no data set"
    [ "$(pictures images/report.html)" -eq 8 ] || fail "$(pictures images/report.html) filters of 8 units"
fi

# --- how it ended ---
$heeding "$TRAINER" --quiet --dataset=digits --model=mlp --batch=1 --threads=1 --devices=cpu:0 --epochs=1000 \
    --out='sto pped' >out 2>err &
child=$!
tries=0
until [ "$(wc -l 2>/dev/null <'sto pped/epochs.csv' || echo 0)" -gt 3 ] || [ $tries -gt 1000 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
kill -INT "$child"
wait "$child"
child=
report 'sto pped/report.html' 'sto pped'
"$TRAINER" --quiet --dataset=digits --devices=cpu:0 --epochs=3 --optimizer=sgd:rate=1e-9 --out=nothing \
    >printed 2>warned || fail "nothing: $(cat warned)"
report nothing/report.html nothing
train --devices=cpu:0 --epochs=2 --out=resumed
"$TRAINER" --quiet --resume=resumed --devices=cpu:0 --epochs=4 >/dev/null 2>err || fail "resume: $(cat err)"
report resumed/report.html resumed
train --devices=cpu:0 --epochs=3 --outputs=none --out=bare --dataset=digits:take=100
without='' report bare/report.html bare
many=$(($(nproc) + 1))
[ $many -gt 16 ] || many=16
train --devices=cpu:0-$((many - 1)) --strategy=async-lockfree --epochs=8 --out=crowd
report crowd/report.html crowd
train --devices=cpu:0 --epochs=1 --out=one
report one/report.html one
cat >said.py <<'PYTHON'
import os
from report_page import *
summary = json.load(open("sto pped/summary.json"))
page, epochs = Page("sto pped/report.html"), "%.3g of 1000" % summary["epochs"]
check(page.tiles()["epochs"] == epochs, page.tiles(), epochs)
check(f"The run was interrupted after {epochs} epochs. trainer --resume='sto pped' continues it." in
      page.text("glance"), page.text("glance"))
page, line = Page("nothing/report.html"), open("warned").read().strip().removeprefix("trainer: nothing")
check(line.startswith(" was learnt: ") and f"Nothing{line}." in page.text("glance"), page.text("glance"),
      line)
page = Page("resumed/report.html")
check({"examples per second, in its last part", "mean staleness of a gradient, in updates, in its last part",
       "of the workers' time in its last part spent computing"} <= set(page.tiles()), page.tiles())
check("In its last part: " in page.text("glance"), page.text("glance"))
check(Page("bare/report.html").tiles()["epochs"] == "3", Page("bare/report.html").tiles())
check("--epochs=3" in Page("bare/report.html").text("repeat"), Page("bare/report.html").text("repeat"))
page, many = Page("crowd/report.html"), int(sys.argv[1])
check(words(page.root.find(f".//{SPACE}header/{SPACE}p")) ==
      f"async-lockfree on {many} devices, cpu:0 to cpu:{many - 1}",
      words(page.root.find(f".//{SPACE}header")))
check(f"--devices=cpu:0-{many - 1}" in page.text("repeat"), page.text("repeat"))
check("There is no table of each worker and each of" in page.text("waits"), page.text("waits"))
shared = f"{many} CPU devices of 1 thread shared the machine's {len(os.sched_getaffinity(0))} cores"
check(shared.removesuffix("s") in page.text("glance"), page.text("glance"))
for folder in "one", "nothing", "resumed":
    check("shared the machine's" not in Page(folder + "/report.html").text("glance"), folder)
check(Page("one/report.html").tiles()["epoch"] == "1", Page("one/report.html").tiles())
for folder in "sto pped", "nothing", "resumed", "crowd", "one":
    for name in "interrupted", "Nothing was learnt", "last part":
        wanted = {"sto pped": "interrupted", "nothing": "Nothing was learnt",
                  "resumed": "last part"}.get(folder) == name
        if (not (folder == "crowd" and name == "Nothing was learnt") and
            not (folder == "one" and name == "Nothing was learnt")):
            check((name in Page(folder + "/report.html").text("glance")) == wanted, folder, name)
end()
PYTHON
python3 said.py $many || fail "what a run was is not said"

# --- axes ---
"$TRAINER" --quiet --dataset=iris --model=softmax --devices=cpu:0 --epochs=1 --seed=2 --out=flat \
    >printed 2>err || fail "flat: $(cat err)"
python3 - <<'PYTHON'
rows = open("flat/epochs.csv").read().split("\n")
names, cells = rows[0].split(","), rows[1].split(",")
cells[names.index("test_accuracy")] = "1"
open("flat/epochs.csv", "w").write(rows[0] + "\n" + ",".join(cells) + "\n")
PYTHON
report flat/report.html flat
cat >axes.py <<'PYTHON'
from report_page import *
def ticks(chart): # {anchor: [(place, number)]}: those of y end at the axis, those of x stand under theirs
    found = {}
    for text in chart.iter(SPACE + "text"):
        if re.fullmatch(r"[-0-9.e]+", words(text)):
            found.setdefault(text.get("text-anchor"), []).append((text.get("x"), float(words(text))))
    return found
for folder in "flat", "one", "kept", "own", "sto pped":
    charts = [s for s in Page(folder + "/report.html").section("curves").iter(SPACE + "svg")
              if s.get("class") == "chart"]
    check(len(charts) == 4, folder, len(charts), "charts")
    for epochs in charts[0], charts[2]:
        check(all(x == int(x) for _, x in ticks(epochs)["middle"]), folder, "epochs", ticks(epochs)["middle"])
    for accuracy in charts[2], charts[3]:
        check(all(0 <= y <= 100 for _, y in ticks(accuracy)["end"]), folder, "accuracy",
              ticks(accuracy)["end"])
    for left, right in (0, 2), (1, 3):
        check(ticks(charts[left])["middle"] == ticks(charts[right])["middle"], folder, "axes of x differ",
              ticks(charts[left]), ticks(charts[right]))
check(max(y for _, y in ticks([s for s in Page("flat/report.html").section("curves").iter(SPACE + "svg")
                               if s.get("class") == "chart"][2])["end"]) == 100, "no tick at 100 %")
end()
PYTHON
python3 axes.py || fail "axes"

# --- a stretch ---
refused 2 'trainer: --from=99: the last step of one ended after 0.* s of training' one --from=99
report one/report.html one --length=1000
python3 - <<'PYTHON' || fail "a stretch that is longer than the run"
from report_page import *
last = max(float(row["time_s"]) for row in csv.DictReader(open("one/steps.csv")))
said = re.match(r"Step by step ([0-9.]+ \S+) of the run", Page("one/report.html").text("steps"))
assert said and seconds(said[1]) <= 1.01 * last, (said and said[1], last)
PYTHON

[ $failures -eq 0 ]
