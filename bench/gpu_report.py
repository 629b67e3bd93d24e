#!/usr/bin/env python3
"""Makes of what bench/gpu_facts.py has found a summary of at most 200 lines, and the page
docs/measurements/gpu-report.md.

usage: bench/gpu_report.py FOLDER... [--page FILE]
                           FOLDER as make gpu-facts REPORT=FOLDER left it; prints the summary

Of several runs each stage is that of the last one that came to it. The page is made from facts.jsonl
alone, so it can be made anywhere and again.
"""
import argparse, json, os, re, sys

FILES = ["facts.jsonl", "log.txt", "profile.csv", "summary.txt", "report.md"]
MOST_LINES, MOST_COLUMNS = 200, 190
WORST = 12  # rows of what is long and of which the slowest matter

INTRODUCTION = """# What was found on a machine with a GPU

On a machine with one GPU, one run of at most `LIMIT_S` (560) seconds measures all of this, and a
script makes this page from what it left:

    make gpu-facts REPORT=/tmp/facts
    bench/gpu_report.py /tmp/facts --page docs/measurements/gpu-report.md

* Needed: the CUDA toolkit, cuBLASLt, cuDNN 9 and NCCL (also from Python's nvidia packages), gcc,
  g++, make and Python; for the comparison PyTorch; for profile and sanitizer `ncu` and
  `compute-sanitizer`.
* Not needed: oneDNN, zlib's header, git, a network.
* Data sets are looked for in `$TRAINER_DATA`. Where they are missing, speeds are measured on made-up
  pictures of the same shapes.
* The folder also has the full log, every single figure (`facts.jsonl`) and the rows of the profiler
  (`profile.csv`).
* `make CUDA=standin B=build/standin gpu-facts REPORT=/tmp/facts` goes through all of it without a
  GPU, in tiny sizes, and measures nothing.
"""
NOBODY = "\nAs long as no section follows, no machine with a GPU has filled this page.\n"


def read(folder):
    facts = []
    with open(os.path.join(folder, "facts.jsonl")) as file:
        for line in file:
            try: facts.append(json.loads(line))
            except ValueError: continue  # the last line, of a run that was killed
    return facts


def merge(runs):
    """Facts of several runs: each stage's are those of the last run that came to it, and the time is
    that of all."""
    if len(runs) == 1: return runs[0]
    last = {f["stage"]: i for i, facts in enumerate(runs)
            for f in facts if f["what"] == "stage" and f["verdict"] != "no time was left"}
    merged = [f for i, facts in enumerate(runs)
              for f in facts if f["stage"] != "end" and last.get(f["stage"], i) == i]
    ends = [f for facts in runs for f in facts if f["what"] == "end"]
    return [*merged, dict(stage="end", what="end", code=max(f["code"] for f in ends),
                          seconds=sum(f["seconds"] for f in ends))] if ends else merged


def table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)


def plain(name):
    """An algorithm's name without what its contest found of others."""
    return re.sub(r", \d+ (failed( \(code \d+\))?|impossible|wrong)", "", name)


def number(value, digits=1):
    return ("-" if value is None else f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"
            if isinstance(value, int) else str(value))


class Sections:
    """Facts as tables: (title, names, rows)."""

    def __init__(self, facts):
        self.facts = facts

    def of(self, what, **wanted):
        return [f for f in self.facts if f["what"] == what and
                all(f.get(name) == value for name, value in wanted.items())]

    def stages(self):
        return ["stage", "verdict", "seconds"], [(f["stage"], f["verdict"], number(f["seconds"]))
                                                 for f in self.of("stage")]

    def machine(self):
        return ["machine", ""], [(f["name"], f["value"]) for f in [*self.of("machine"), *self.of("built")]]

    def latencies(self):
        rows = [(f["what"], f.get("way", ""), *(number(f.get(name), 2)
                                                for name in ("median_us", "least_us", "p99_us")))
                for f in self.facts if f["stage"] == "latencies" and "median_us" in f]
        rows += [(f["what"], f.get("way", ""), number(f["wall_us"], 2), number(f["device_us"], 2), "")
                 for f in self.facts if f["stage"] == "latencies" and "wall_us" in f]
        return ["us (of launches one after the other: on the clock, on the GPU)", "the thread", "median",
                "least", "99 %"], rows

    def graphs(self):
        return (["nodes", "dependent launch", "the thread", "instantiate, us", "call, us", "waited for, us",
                 "on the GPU, us", "a node, us"],
                [(f["nodes"], "yes" if f["dependent"] else "no", f.get("way", ""),
                  *(number(f[name], 2) for name in ("instantiate_us", "call_us", "waited_us", "device_us",
                                                    "node_us"))) for f in self.of("graph") if "node_us" in f])

    def copies(self):
        return (["copies", "MB", "us", "GB/s", "share"],
                [(f["name"], f["mb"], f["us"], f["gb_per_s"], f["share"]) for f in self.of("copy")])

    def steps(self):
        return (["model", "precision", "batch", "operations", "", "of the step on the GPU, us", "queued, us",
                 "waited for, us"],
                [(f["model"], f["precision"], f["batch"], f["instructions"], f.get("how", f["status"]),
                  number(f.get("us"), 2), number(f.get("queued_us"), 2), number(f.get("waited_us"), 2))
                 for f in self.of("step")])

    def operations(self, most):
        rows = []
        for model, precision in dict.fromkeys((f["model"], f["precision"]) for f in self.of("operation")):
            found = sorted(self.of("operation", model=model, precision=precision),
                           key=lambda f: -(f.get("us") or 0))
            rows += [(model, precision, f["problem"], f["name"], number(f.get("us"), 2),
                      number(f["bytes"] / f["us"] / 1e3, 0) if f.get("us") else "-",
                      number(2e-6 * f["multiply_adds"] / f["us"], 1) if f.get("us") and f.get("multiply_adds")
                      else "", "" if f["status"] == "ok" else f["status"]) for f in found[:most]]
        return ["model", "precision", "operation", "by", "us", "GB/s", "TFLOP/s", ""], rows

    def algorithms(self, only_taken):
        taken = {(f["model"], f["precision"], f["problem"]): plain(f["name"]) for f in self.of("taken")}
        best = {}
        for f in self.of("algorithm"):
            key = f["model"], f["precision"], f["problem"]
            if f.get("us") and f["us"] < best.get(key, 1e30): best[key] = f["us"]
        rows = []
        for f in self.of("algorithm"):
            key = f["model"], f["precision"], f["problem"]
            is_taken = taken.get(key) == plain(f["name"])
            if only_taken and not is_taken and f["status"] in ("ok", "declined"): continue
            rows.append((f["model"], f["precision"], f["problem"], f["name"], number(f.get("us"), 2),
                         number(best.get(key), 2), f"{f['apart']:.1e}" if "apart" in f else "-",
                         "taken" if is_taken else "" if f["status"] == "ok" else f["status"]))
        return (["model", "precision", "problem", "algorithm", "us", "the fastest, us", "from the first", ""],
                rows)

    def updates(self):
        return (["optimizer", "model", "floats", "us", ""],
                [(f["name"], f["model"], number(int(f["floats"])), number(f.get("us"), 2),
                  f.get("how", f["status"])) for f in self.of("update", precision="fp32")])

    def gradients(self):
        return (["model", "data set", "batch", "precision", "error", "bound", ""],
                [(f["model"], f["dataset"], f["batch"], f["precision"], "-" if f["error"] is None
                  else f"{f['error']:.2e}", f"{f['bound']:g}", f["verdict"]) for f in self.of("gradients")])

    def tests(self):
        rows = [(f["name"], f["result"], f["words"]) for f in self.of("test")]
        rows += [(f"the same bits twice: {f['model']} on {f['dataset']}", "ok" if f["same"] else "FAIL",
                  f"{f['first']} {f['second']}") for f in self.of("bits")]
        rows += [(f"training curves: {f['model']} on {f['dataset']}",
                  f"{100 * f['accuracies_apart']:.2f} % apart", f"losses {100 * f['losses_apart']:.3f} %")
                 for f in self.of("curve")]
        rows += [(f"the mean of a round, --links={f['links']}", f["said"], "") for f in self.of("mean")]
        return ["test", "result", ""], rows

    def speeds(self):
        ours = {(f["model"], f["precision"]): f for f in self.of("ours")}
        rows = []
        for model, precision in dict.fromkeys([*ours,
                                               *((f["model"], f["precision"]) for f in self.of("torch"))]):
            us, row = ours.get((model, precision)), [model, precision]
            row += [number(us["us"], 1) if us else "-", number(us["examples_per_s"]) if us else "-"]
            for way in "eager", "replay", "compiled":
                them = next(iter(self.of("torch", model=model, precision=precision, way=way)), {})
                row.append(f"{them['us']:,.1f}" + (f" ({us['examples_per_s'] / them['examples_per_s']:.2f} "
                                                   "times)" if us and them["examples_per_s"] else "")
                           if "us" in them else them.get("status", "-")[:60])
            rows.append(row)
        return ["model", "precision", "ours, us a step", "examples/s", "PyTorch eager, us (ours is)",
                "replayed", "compiled"], rows

    def strategies(self):
        return (["strategy", "examples/s", "updates", "lost", "staleness", "most", "accuracy, %", ""],
                [(f["name"], number(f["examples_per_s"]), f["updates"], f["lost"],
                  number(float(f["staleness_mean"]), 2), f["staleness_max"],
                  number(100 * (f["accuracy"] or 0.0)), f["wrong"] or "ok") for f in self.of("strategy")])

    def kernels(self, most):
        rows = []
        for model, precision in dict.fromkeys((f["model"], f["precision"]) for f in self.of("kernel")):
            rows += [(model, precision, f["name"], f["runs"], f["us"], f["dram"], f["sm"], f["warps"],
                      f["registers"]) for f in self.of("kernel", model=model, precision=precision)[:most]]
        return (["model", "precision", "kernel", "runs", "us", "memory, %", "SM, %", "warps, %", "registers"],
                rows)

    def sanitizer(self):
        return ["tool", "model", "devices", "found"], [(f["tool"], f["model"], f["devices"], f["said"])
                                                       for f in self.of("sanitizer")]

    def accuracies(self):
        return (["model", "epochs", "seconds of training", "examples/s", "accuracy, %", "to the target",
                 "options"],
                [(f["model"], f["epochs"], number(float(f["train_seconds"]), 2), number(f["examples_per_s"]),
                  number(100 * f["accuracy"], 2), f"{f['target_s']:.1f} s" if isinstance(f["target_s"], float)
                  else "-", f"`{f['options']}`") for f in self.of("accuracy")])

    def told(self, what):
        return [f"{f['stage']}: {f['words']}" for f in self.of(what)]

    def all(self, long):
        """(title, table) in the order of the page; `long`: every row."""
        most = 10 ** 6 if long else WORST
        yield "Stages", self.stages()
        yield "Machine", self.machine()
        yield "Steps beside PyTorch, on the same GPU", self.speeds()
        yield "Steps of the programs, replayed", self.steps()
        yield "Graphs", self.graphs()
        yield "Latencies", self.latencies()
        yield "Copies", self.copies()
        yield "Operations by replay", self.operations(most)
        yield "Algorithms", self.algorithms(not long)
        yield "Updates of the weights", self.updates()
        yield "First gradients beside the CPU's reference kernels", self.gradients()
        yield "Tests", self.tests()
        yield "Two workers on one GPU, mlp", self.strategies()
        yield "Kernels, by ncu", self.kernels(most)
        yield "compute-sanitizer", self.sanitizer()
        yield "Accuracy", self.accuracies()


def verdict(facts):
    whats = {f["what"] for f in facts}
    end = next((f for f in facts if f["what"] == "end"), None)
    return ("NOT as it should be" if "wrong" in whats else
            "as it should be, as far as it went" if "open" in whats else "as it should be") + \
        (f", after {end['seconds']:.0f} s" if end else ", so far")


def columns(names, rows):
    """A table as text, of columns as wide as they need to be."""
    cells = [[str(cell) for cell in row] for row in [names, *rows]]
    widths = [min(64, max(len(row[i]) for row in cells)) for i in range(len(names))]
    return ["  ".join(cell[:64].ljust(width) for cell, width in zip(row, widths)).rstrip()[:MOST_COLUMNS]
            for row in cells]


def summary(facts):
    """At most MOST_LINES lines: verdict and stages, what is wrong, what is open; then of each table as
    many rows as there is room for."""
    sections = Sections(facts)
    wrong, left = sections.told("wrong"), sections.told("open")
    lines = [f"gpu-facts: {verdict(facts)}", "", *columns(*sections.stages()), ""]
    for title, found, most in (("wrong", wrong, 25), ("left out", left, 20)):
        if found:
            lines += [f"{title}:", *[f"  {words[:MOST_COLUMNS]}" for words in found[:most]],
                      *([f"  and {len(found) - most} more"] if len(found) > most else []), ""]
    rest = [(title, columns(names, rows)) for title, (names, rows) in list(sections.all(False))[1:] if rows]
    room = MOST_LINES - len(lines)
    # Each table gets its share of the room; what a short one does not need, the others have.
    wants, shares = [len(text) + 2 for _, text in rest], {}
    for i in sorted(range(len(rest)), key=lambda i: wants[i]):
        shares[i] = min(wants[i], room // max(1, len(rest) - len(shares)))
        room -= shares[i]
    for i, (title, text) in enumerate(rest):
        if shares[i] < 4: continue
        shown = (text if len(text) + 2 <= shares[i]
                 else [*text[:shares[i] - 3], f"  ... {len(text) - shares[i] + 3} more in facts.jsonl"])
        lines += [f"{title}:", *shown, ""]
    return "\n".join(lines[:MOST_LINES]).rstrip() + "\n"


def page(facts):
    sections, parts = Sections(facts), [INTRODUCTION]
    if not facts: return INTRODUCTION + NOBODY
    parts.append(f"\n## {verdict(facts)}\n")
    for what, title in ("wrong", "What is wrong"), ("open", "What there was no time, tool or data for"):
        found = sections.told(what)
        if found: parts.append(f"\n### {title}\n\n" + "\n".join(f"* {words}" for words in found) + "\n")
    for title, (names, rows) in sections.all(False):
        if rows: parts.append(f"\n### {title}\n\n{table(names, rows)}\n")
    return "".join(parts)


def write(folder, facts):
    """Summary and page; each is whole at any time."""
    for name, text in ("summary.txt", summary(facts)), ("report.md", page(facts)):
        path = os.path.join(folder, name)
        with open(path + ".new", "w") as file: file.write(text)
        os.replace(path + ".new", path)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("folder", nargs="+")
    p.add_argument("--page", help="file to write the page to")
    a = p.parse_args()
    try: facts = merge([read(folder) for folder in a.folder])
    except OSError as why: sys.exit(f"gpu_report: {why}; expected the folder of a run of make gpu-facts")
    if a.page:
        with open(a.page, "w") as file: file.write(page(facts))
    print(summary(facts), end="")


if __name__ == "__main__": main()
