#!/bin/bash
# What a run draws on a terminal, of any width and while that changes; and that a file, a pipe, a dumb
# terminal get plain lines.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
unset NO_COLOR
export TERM=xterm
cd "$scratch" || exit 1

cat >draw.py <<'PYTHON'
import os, re, signal, subprocess, sys, time
from terminal import Terminal

trainer = sys.argv[1]
failures = 0
long_run = ["env", "--default-signal=INT", trainer, "--devices=cpu:0,cpu:1", "--dataset=digits:take=320",
            "--batch=16", "--epochs=1000000", "--print-every=0", "--replace", "--out=run"]

def fail(*words):
    global failures
    failures += 1
    print(*words)

def unfold(drawn):
    """With what a narrow terminal gets in several lines in one."""
    return re.sub(rb"\r\n +", b" ", drawn)

def draw(columns, enough, command=long_run, out=None, changes=(), **environment):
    """Standard error (and, unless given, standard output) on a terminal, until `enough` says of all that
    was drawn that it is enough; then an interrupt. `changes`: widths that follow one by one, each as soon
    as the one before was seen."""
    shown = Terminal(columns, command, out, {**os.environ, **environment})
    child, marks, began, asked = shown.child, [], time.monotonic(), False
    while shown.read():
        drawn = shown.shown
        if len(marks) < len(changes) and len(bars(drawn[marks[-1] if marks else 0:])) > 3:
            shown.resize(changes[len(marks)])
            marks.append(len(drawn))
        late = time.monotonic() - began > 120
        if (not asked and child.poll() is None and
            (late or (len(marks) == len(changes) and enough(drawn[marks[-1] if marks else 0:])))):
            asked = True
            child.send_signal(signal.SIGINT)
            if late:
                fail(f"{columns} columns: not enough drawn in 120 s: {drawn[-300:]}")
    if child.returncode != (130 if asked else 0):
        fail(f"{columns} columns: exit code {child.returncode}: {shown.shown}")
    return shown.shown, marks

def bars(drawn):
    """What was drawn in place: from a carriage return to the clearing of the rest of the line."""
    return [bar.decode() for bar in re.findall(rb"\r([^\r\n\033]*)\033\[K", drawn) if bar]

def shows(pattern):
    """Several bars, the last one with all that there is room for: the loss is known only after the
    first epoch."""
    def enough(drawn):
        found = bars(drawn)
        return len(found) >= 4 and re.fullmatch(pattern, found[-1])
    return enough

whole = {
    200: r"epoch \d+/1000000 \[=*>? *\] \d+ %  [\d,]+ examples/s  loss [-+.\de]+  [\d.e+]+ (s|min|h) left",
    100: r"epoch \d+/1000000 \[=*>? *\] \d+ %  [\d,]+ examples/s  loss [-+.\de]+  [\d.e+]+ (s|min|h) left",
    80: r"epoch \d+/1000000 (\[=*>? *\] )?\d+ %  [\d,]+ examples/s  loss [-+.\de]+  [\d.e+]+ (s|min|h) left",
    40: r"\d+ %  ([\d,]+/s  )?loss [-+.\de]+  [\d.e+]+ (s|min|h) left",
    20: r"\d+ %  [\d.e+]+ (s|min|h) left",
    10: r"\d+ %",
    2: r"\d",
}

def check_bars(what, drawn, columns, pattern):
    found = bars(drawn)
    for bar in found:
        if len(bar) >= columns:
            fail(f"{what}: {len(bar)} columns: {bar!r}")
    if not found or not re.fullmatch(pattern, found[-1]):
        fail(f"{what}: the last bar is {found[-1:]}, expected {pattern}")

def check_controls(what, drawn, allowed):
    found = re.findall(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]+.{0,20}", re.sub(allowed, b"", drawn))
    if found:
        fail(f"{what}: {found[:3]}, expected no other control characters")

on_terminal = rb"\r\n|\r[^\r\n\033]*\033\[K"
for columns, pattern in whole.items():
    drawn, _ = draw(columns, shows(pattern))
    check_bars(f"{columns} columns", drawn, columns, pattern)
    check_controls(f"{columns} columns", drawn, on_terminal)
    drawn = unfold(drawn)
    said = drawn.find(b"\r\nlogs, model and checkpoint go to run\r\n")
    if said < 0 or said > drawn.find(b"\033[K"):
        fail(f"{columns} columns: where the logs are is not said before the first bar")
    if not re.search(rb"\033\[K\r\033\[K[\d,]+ examples/s, [^\r\n]*\r\ntrainer: interrupted after \d+ "
                     rb"examples[^\r\n]*\r\n$", drawn):
        fail(f"{columns} columns: the bar is not cleared before the last lines: {drawn[-200:]}")

# A terminal that is made narrower, and wide again.
drawn, marks = draw(200, shows(whole[100]), changes=[40, 100])
if len(marks) == 2:
    check_bars("200 columns at first", drawn[:marks[0]].rsplit(b"\r", 1)[0], 200, ".*")
    for begin, end, columns in (marks[0], marks[1], 40), (marks[1], len(drawn), 100):
        # What was drawn by the old width at the moment of the change does not count.
        after = drawn[begin:end].split(b"\033[K", 2)[-1]
        check_bars(f"{columns} columns after a change", after, columns, ".*")
else:
    fail(f"the width was changed {len(marks)} times, expected 2")

# Nobody asked for colours, so there are none to switch off.
drawn, _ = draw(80, shows(whole[80]), NO_COLOR="1")
if b"m" in b"".join(re.findall(rb"\033\[[\d;]*[a-zA-Z]", drawn)):
    fail("NO_COLOR: colours")
check_bars("NO_COLOR", drawn, 80, whole[80])

# Results into a file, progress on the terminal; then step lines between the bars.
with open("results", "wb") as results:
    drawn, _ = draw(80, shows(whole[80]), out=results)
check_bars("results in a file", drawn, 80, whole[80])
record = open("results").read().splitlines()
if any(line.startswith(("Test-Accuracy", "Total Time", "Final Cost")) for line in record):
    fail("an interrupted run printed results")
if ("logs, model and checkpoint go to run" not in record or
    "Epoch       1/1000000" not in "\n".join(record) or " examples/s, " not in record[-1]):
    fail(f"results in a file: {record[:6]} ... {record[-1:]}")
# An epoch's line stands alone on its line, and the bar is drawn again after it.
drawn, _ = draw(100, lambda drawn: shows(whole[100])(drawn) and drawn.count(b"\r\033[KEpoch ") > 1)
if b"/1000000  loss " not in drawn:
    fail(f"epoch lines: not laid out as in a file: {drawn[-400:]}")
for line in drawn.split(b"\n"):
    if b"\033[KEpoch " in line and not re.fullmatch(rb"(\r.*\033\[K)?Epoch [^\033]*\r", line):
        fail(f"epoch lines: a bar stands in front of {line!r}")
if not re.search(rb"\r\033\[KEpoch [^\033\r\n]*\r\n\repoch ", drawn):
    fail(f"epoch lines: the bar is not drawn again after one: {drawn[-400:]}")
with_lines = [word if "print-every" not in word else "--print-every=500" for word in long_run]
drawn, _ = draw(200, lambda drawn: shows(whole[200])(drawn) and drawn.count(b"Step: ") > 4,
                command=with_lines)
check_controls("step lines", drawn, on_terminal)
for line in drawn.split(b"\n"):
    if b"Step: " in line and not re.fullmatch(rb"(\r.*\033\[K)?Worker [01]: Step: [^\033]*\r", line):
        fail(f"step lines: a bar stands in front of {line!r}")

# --- a worker is lost: what the others have done is all that there is ---
lossy = [trainer, "--devices=cpu:0,cpu:1", "--threads=1", "--dataset=digits:take=320", "--batch=2",
         "--epochs=400", "--strategy=sync", "--fail=worker:1@step:3", "--on-loss=continue", "--print-every=0",
         "--replace", "--out=run"]
drawn, _ = draw(100, lambda drawn: False, command=lossy)
found = [tuple(map(int, bar)) for bar in re.findall(r"epoch (\d+)/400 (?:\[=*>? *\] )?(\d+) %", "\n".join(bars(drawn)))]
if len(found) < 3 or any(100 * epoch < 400 * share for epoch, share in found):
    fail(f"a worker is lost: epochs of 400, and per cent: {found}")

# --- plain ---
def plain(what, drawn, out):
    check_controls(what, drawn, rb"\r\n")
    check_controls(what, out, rb"\r\n")
    if b"logs, model and checkpoint go to run" not in out:
        fail(f"{what}: where the logs are is not said: {out}")

short_run = [trainer, "--devices=cpu:0,cpu:1", "--dataset=digits:take=320", "--epochs=2", "--print-every=5",
             "--replace", "--out=run"]
drawn, _ = draw(80, lambda drawn: False, command=short_run, TERM="dumb")
plain("TERM=dumb", drawn, drawn)
# The line of a step: as it is specified where it has room; else closed up, where that is too long still
# without its time, and then folded.
specified = rb"Worker [01]: Step: \d+,  Epoch:  \d,  Batch: +\d+ of  \d+,  Cost: [\d.]+,  AvgTime: [\d.]+ms"
for columns, pattern in ((100, specified), (80, re.sub(rb" +", b" ", specified)),
                         (40, re.sub(rb" +", b" ", specified).replace(rb", AvgTime: [\d.]+ms", b""))):
    drawn, _ = draw(columns, lambda drawn: False, command=short_run, TERM="dumb")
    found = re.findall(rb"Worker [^\r]*(?:\r\n  [^\r]*)?", drawn)
    if len(found) != 4 or not all(re.fullmatch(pattern, unfold(line)) and
                                  max(map(len, line.split(b"\r\n"))) <= columns for line in found):
        fail(f"{columns} columns: the lines of steps: {found}")
ran = subprocess.run(short_run, stdin=subprocess.DEVNULL, capture_output=True)
plain("a pipe", ran.stderr, ran.stdout)
with open("errors", "wb") as errors, open("results", "wb") as results:
    subprocess.run(short_run, stdin=subprocess.DEVNULL, stdout=results, stderr=errors)
plain("a file", open("errors", "rb").read(), open("results", "rb").read())
sys.exit(failures > 0)
PYTHON
python3 draw.py "$TRAINER"
