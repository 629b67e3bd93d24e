#!/usr/bin/env python3
"""gpu-speed: our examples/s beside PyTorch's on the same GPU, strategies, and the exchange, in under 8 minutes; appends to docs/measurements/gpu-report.md.

usage: bench/gpu_speed.py [--peer torch_peer.py] [--python PYTHON] [--rounds 5] [--trainer PROGRAM] [--report FILE] [--data DIR] [--seconds 450] [--quick]

Ours and PyTorch's run in turn, the same network, batch and precision; the medians of the ratios of pairs count, targets in brackets.
PyTorch computes on batches that stay on the GPU; ours draws its batches from the whole training set, alexnet's augmented as DistNet's
(of made-up pictures where the data sets are not here: speed does not depend on them). Then every strategy with 2 and 4 replicas on one
GPU and with gpu:0,cpu:0, shards on the CPU and on the GPU; then bench/gpu_exchange.c. Exit code 1 when a run fails, 4 where there is no
GPU; a target that is missed is told, and is no failure. Without PyTorch all but the comparison is measured, and that is a failure.
"""
import json, os, statistics, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_report import ROOT, STANDIN, Check, table

# model, our precision, PyTorch's options, target; those with a target first, should there be no time for all.
PAIRS = [("mlp", "fp32", [], 10.0), ("alexnet", "fp32", [], 3.0), ("alexnet", "fp32", ["--compile"], 1.3), ("mlp", "fp32", ["--compile"], None),
         ("mlp", "tf32", ["--tf32"], 10.0), ("alexnet", "tf32", ["--tf32"], 3.0), ("alexnet", "tf32", ["--tf32", "--compile"], 1.3),
         ("mlp", "tf32", ["--tf32", "--compile"], None),
         ("alexnet", "bf16", ["--bf16"], 3.0), ("alexnet", "bf16", ["--bf16", "--compile"], 1.3)]
BATCH = {"mlp": 100, "alexnet": 128}
EXAMPLES = {"mlp": 60000, "alexnet": 50000}


def find_peer(given):
    beside = os.path.join(os.path.dirname(ROOT), "shared", "peers", "torch_peer.py")
    for path in (given, os.environ.get("TRAINER_PEER"), beside, os.path.join(ROOT, "bench", "torch_peer.py")):
        if path and os.path.exists(path): return path


class Speed:
    def __init__(self, c):
        self.c, self.peer = c, find_peer(c.a.peer)
        self.seconds = 0.5 if c.a.quick else 3.0  # of a run, roughly
        tried = [c.a.python] if c.a.python else [sys.executable, "/usr/bin/python3"]
        self.why = ""  # nothing is compared
        for self.python in tried:
            try: code, out, _ = c.run([self.python, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())"], 120)
            except OSError: continue
            if code == 0: break
        else: code = 1
        if code: self.why = f"no PyTorch in {' or '.join(tried)} (--python=PYTHON takes another)"
        else:
            self.torch, self.device = out.split()[0], "cuda" if out.split()[1] == "True" else "cpu"
            if self.device == "cpu" and STANDIN not in c.gpu: self.why = f"PyTorch {self.torch} of {self.python} sees no GPU"
        if not self.peer: self.why = "no torch_peer.py (--peer=PATH)"
        self.data, self.epochs, self.made_up = {}, {}, []
        for model, dataset in (("mlp", "mnist"), ("alexnet", "cifar10")):
            given = ["--data-dir=" + os.path.abspath(c.a.data)] if c.a.data else []
            if c.a.quick: self.data[model] = ["--dataset=digits:take=256"]
            elif c.has(dataset): self.data[model] = [f"--dataset={dataset}{':augment=distnet' if model == 'alexnet' else ''}", *given]
            else:
                self.data[model] = [f"--dataset={dataset}{':augment=distnet' if model == 'alexnet' else ''}", f"--data-dir={c.made_up(dataset)}"]
                self.made_up.append(dataset)

    def ours(self, model, precision):
        """Examples/s over a run of about `seconds`; 0: it failed."""
        options = [f"--model={model}", *self.data[model], f"--batch={BATCH[model]}", "--optimizer=sgd:rate=0.01", "--devices=gpu:0",
                   f"--precision={precision}"]
        if (model, precision) not in self.epochs:
            first, _ = self.c.train(*options, "--epochs=1", seconds=120)
            rate = first["examples_per_s"] if first else 0
            self.epochs[model, precision] = 1 if self.c.a.quick else max(1, min(2000, round(self.seconds * rate / EXAMPLES[model])))
            if not first: return 0
        summary, _ = self.c.train(*options, f"--epochs={self.epochs[model, precision]}", seconds=120)
        return summary["examples_per_s"] if summary else 0

    def theirs(self, model, options):
        """Examples/s of PyTorch; None, and why, when it did not run."""
        code, out, error = self.c.run([self.python, self.peer, "--model", model, "--mode", "single", "--batch", str(BATCH[model]), "--seconds",
                                       str(self.seconds), "--device", self.device, *options], 180)
        if code: return None, (error.strip().splitlines() or [f"exit code {code}"])[-1][:150]
        return json.loads(out.splitlines()[-1])["examples_per_s"], ""


def beside_torch(c, speed, until):
    if speed.why: return c.fail(f"nothing is compared with PyTorch: {speed.why}")
    pairs = [PAIRS[0], PAIRS[3]] if c.a.quick else PAIRS
    ours, theirs, why = [[] for _ in pairs], [[] for _ in pairs], [""] * len(pairs)
    for done in range(c.a.rounds):
        for i, (model, precision, options, _) in enumerate(pairs):
            if why[i] or (done and c.left() < until): continue
            if not done and not c.has_time(f"{model}, {precision} beside PyTorch's {' '.join(options)}", until - 30): continue
            rate, (peer, failure) = speed.ours(model, precision), speed.theirs(model, options)
            why[i] = failure
            if rate and peer:
                ours[i].append(rate)
                theirs[i].append(peer)
    rows = []
    for (model, precision, options, target), us, them, failure in zip(pairs, ours, theirs, why):
        name = (model, BATCH[model], precision, "compiled" if "--compile" in options else "eager")
        if us:
            ratios = [a / b for a, b in zip(us, them)]
            ratio = statistics.median(ratios)
            verdict = "" if not target else f"{'reached' if ratio >= target else 'missed'} [{target:g}]"
            rows.append((*name, f"{statistics.median(us):,.0f}", f"{statistics.median(them):,.0f}", f"{ratio:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
                         len(us), verdict))
        else: rows.append((*name, "-", failure or "not run", "-", "-", 0, f"[{target:g}]" if target else ""))
    c.part(f"Examples/s beside PyTorch {speed.torch} on {'the same GPU' if speed.device == 'cuda' else 'the CPU'}",
           table(["model", "batch", "precision", "PyTorch", "ours", "PyTorch's", "ratio, median", "ratios", "pairs", "target"], rows) +
           (f"\n\nMade-up pictures in the form of {' and '.join(speed.made_up)}." if speed.made_up else ""))


def strategies(c, speed):
    sets = [("gpu:0,gpu:0", "gpu"), ("gpu:0,gpu:0", "cpu"), ("gpu:0,gpu:0,gpu:0,gpu:0", "gpu"), ("gpu:0,gpu:0,gpu:0,gpu:0", "cpu"),
            ("gpu:0,cpu:0", "gpu"), ("gpu:0,cpu:0", "cpu")]
    if c.a.quick: sets = [sets[1], sets[4]]
    data = speed.data["mlp"] if c.a.quick else [f"{speed.data['mlp'][0]}:take=20000", *speed.data["mlp"][1:]]
    cells, columns = {}, []
    for devices, homes in sets:
        column = f"{devices.count('gpu')} x gpu:0{', cpu:0' if 'cpu' in devices else ''}; homes={homes}"
        if not c.has_time(f"strategies on {column}", 30): continue
        columns.append(column)
        for row in c.bench("--model=mlp", *data, "--batch=100", "--optimizer=sgd:rate=0.1", "--repeats=1", f"--devices={devices}", f"--homes={homes}",
                           f"--strategies={'sync,async-lockfree' if c.a.quick else 'all'}", f"--epochs={1 if c.a.quick else 3}", seconds=120) or []:
            speed_of = float(row["examples_per_s"])
            cells.setdefault(row["strategy"], {})[column] = f"{speed_of:,.0f}" if speed_of == speed_of else "failed"
            if int(row["failed"]): c.fail(f"{row['strategy']} on {column}: exit code {row['exit_code']}")
    c.part("Strategies: examples/s of mlp, batch 100 a worker",
           table(["strategy", *columns], [[name, *[row.get(column, "-") for column in columns]] for name, row in cells.items()]))


def exchange(c):
    program = os.path.join(c.build, "bench", "gpu_exchange")
    code, out, error = c.run([program, *(["5", "10000", "100000"] if c.a.quick else [])], 120) if os.path.exists(program) else (1, "", f"{program} is not built")
    if code: c.fail(f"gpu_exchange: exit code {code}: {error.strip()}")
    else: c.part("Exchange of 4.27 MB [pull + push on one GPU: 70 % of its copies; through pinned host memory: 80 % of the link]", out.strip())


def main():
    c = Check("gpu-speed", __doc__.splitlines()[0],
              [("--peer", dict(help="torch_peer.py (default $TRAINER_PEER, ../shared/peers/, bench/)")),
               ("--python", dict(help="the Python that has PyTorch (default this one, else /usr/bin/python3)")),
               ("--rounds", dict(type=int, default=5, help="pairs of each kind at most"))])
    c.prepare(["bench/gpu_exchange"])
    if c.a.quick: c.a.rounds = 1
    speed = Speed(c)
    exchange(c)
    beside_torch(c, speed, until=150)  # seconds that are left for the strategies
    strategies(c, speed)
    c.end()


if __name__ == "__main__": main()
