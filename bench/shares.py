#!/usr/bin/env python3
"""What --share=auto makes of a worker and another one that is slower, beside the sum of what each computes.

    TRAINER_DATA=... bench/shares.py [--rounds 5] [--slow 4] [--batch 100] [--models mlp,cnn]

Under sync, MNIST, one thread and one core each. In each round, in turns: each worker by
itself, one after the other; each by itself, at the same time; both in one run with --share=auto. Printed:
medians of the examples/s, and of the ratio to the sums. Two workers on one machine take cache, memory and
clock rate from each other whether they share a batch or not, which the second sum has and the first has not.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAKE = {"mlp": 60000, "cnn": 20000}
EPOCHS = {"mlp": 12, "cnn": 2}  # of the fast one, and of both together


class Run:
    """A training that has begun."""

    def __init__(self, model, slow, batch, devices, epochs, more=()):
        self.folder = tempfile.TemporaryDirectory()
        command = [os.path.join(ROOT, "trainer"), "--quiet", "--replace", "--outputs=summary", "--no-test",
                   f"--batch={batch}", "--threads=1", f"--dataset=mnist:take={TAKE[model]}",
                   f"--model={model}", f"--epochs={epochs}", f"--devices={devices}",
                   "--out=" + self.folder.name, *more]
        if "cpu:1" in devices:
            command.append(f"--slow=cpu:1={slow}x")
        cores = {int(device[len("cpu:"):]) for device in devices.split(",")}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def speed(self):
        """Examples/s, once it has ended."""
        words = self.process.communicate()[1]
        if self.process.returncode != 0:
            sys.exit(f"exit code {self.process.returncode}: {words}")
        with self.folder as folder, open(os.path.join(folder, "summary.json")) as file:
            return json.load(file)["examples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow", type=int, default=4, help="times the time of the other one")
    parser.add_argument("--batch", type=int, default=100, help="examples of a worker, on average")
    parser.add_argument("--models", default="mlp,cnn")
    settings = parser.parse_args()
    work = settings.slow, settings.batch
    for model in settings.models.split(","):
        epochs = EPOCHS[model]
        few = max(1, epochs // settings.slow)
        found = {"fast": [], "slow": [], "fast beside": [], "slow beside": [], "shared": []}
        for _ in range(settings.rounds):
            found["fast"].append(Run(model, *work, "cpu:0", epochs).speed())
            found["slow"].append(Run(model, *work, "cpu:1", few).speed())
            fast, slow = Run(model, *work, "cpu:0", epochs), Run(model, *work, "cpu:1", few)
            found["fast beside"].append(fast.speed())
            found["slow beside"].append(slow.speed())
            found["shared"].append(Run(model, *work, "cpu:0,cpu:1", epochs, ["--share=auto"]).speed())
        alone = [a / (f + s) for a, f, s in zip(found["shared"], found["fast"], found["slow"])]
        beside = [a / (f + s) for a, f, s in zip(found["shared"], found["fast beside"], found["slow beside"])]
        print(model)
        for name, speeds in found.items():
            print(f"  {name:12} {statistics.median(speeds):10,.0f} examples/s  "
                  f"({' '.join(f'{s:,.0f}' for s in speeds)})")
        for name, ratios in (("one after the other", alone), ("at the same time", beside)):
            print(f"  of the sum {name:20} {statistics.median(ratios):.2f}  "
                  f"({' '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
