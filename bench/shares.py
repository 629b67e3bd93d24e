#!/usr/bin/env python3
"""What --share=auto makes of a worker and another one that is slower, beside the sum of what each computes.

    TRAINER_DATA=... bench/shares.py [--rounds 5] [--slow 4] [--batch 100] [--models mlp,cnn] [--clusters]

Under sync, one thread and one core each. In each round, in turns: each worker by itself, one after the other;
each by itself, at the same time; both in one run with --share=auto; with --clusters also as processes, with a
parameter server, which shares the workers' cores, and mirrored. Printed: medians of the examples/s, and of the
ratio to the sums. Two workers on one machine take cache, memory and clock rate from each other whether they
share a batch or not, which the second sum has and the first has not.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from cluster import ROOT, free_ports

MODELS = {"mlp": ("mnist:take=60000", 12), "cnn": ("mnist:take=20000", 2),
          "alexnet": ("cifar10:take=12800", 3)}  # epochs of the fast one, and of both together


class Run:
    """A training that has begun. devices: numbers of CPU devices and their cores; the second one is slow.
    servers: -1: they are in one process, 0: mirrored, 1: a parameter server has the weights."""

    def __init__(self, settings, model, devices, epochs, servers=-1):
        self.folder = tempfile.TemporaryDirectory()
        dataset, _ = MODELS[model]
        train = ["--replace", "--outputs=summary", "--no-test", f"--batch={settings.batch}", "--threads=1",
                 f"--dataset={dataset}", f"--model={model}", f"--epochs={epochs}", "--strategy=sync",
                 "--out=" + self.folder.name]
        if 1 in devices:
            train.append(f"--slow=cpu:1={settings.slow}x")
        if len(devices) > 1:
            train.append("--share=auto")
        self.processes = []
        if servers < 0:
            self.start(devices, [*train, "--devices=" + ",".join(f"cpu:{d}" for d in devices)])
            return
        addresses = [f"127.0.0.1:{port}" for port in free_ports(servers + len(devices))]
        hosts = ["--worker-hosts=" + ",".join(addresses[servers:])]
        if servers > 0:
            hosts.append("--ps-hosts=" + addresses[0])
            self.start(devices, [*hosts, "--job=ps", "--task=0", *train])
        for task, device in enumerate(devices):
            self.start([device], [*hosts, "--job=worker", f"--task={task}", f"--devices=cpu:{device}",
                                  *(train if servers == 0 else ["--threads=1"])])

    def start(self, cores, options):
        command = [os.path.join(ROOT, "trainer"), "--quiet", *options]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                               text=True, cwd=self.folder.name,
                                               preexec_fn=lambda: os.sched_setaffinity(0, cores)))

    def speed(self):
        """Examples/s, once it has ended."""
        for process in self.processes:
            words = process.communicate()[1]
            if process.returncode != 0:
                sys.exit(f"exit code {process.returncode}: {words}")
        with self.folder as folder, open(os.path.join(folder, "summary.json")) as file:
            return json.load(file)["examples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow", type=int, default=4, help="times the time of the other one")
    parser.add_argument("--batch", type=int, default=100, help="examples of a worker, on average")
    parser.add_argument("--models", default="mlp,cnn")
    parser.add_argument("--clusters", action="store_true")
    settings = parser.parse_args()
    ways = {"one process": -1, **({"a ps": 1, "mirrored": 0} if settings.clusters else {})}
    for model in settings.models.split(","):
        epochs = MODELS[model][1]
        few = max(1, epochs // settings.slow)
        found = {name: [] for name in ("fast", "slow", "fast beside", "slow beside", *ways)}
        for _ in range(settings.rounds):
            found["fast"].append(Run(settings, model, [0], epochs).speed())
            found["slow"].append(Run(settings, model, [1], few).speed())
            fast, slow = Run(settings, model, [0], epochs), Run(settings, model, [1], few)
            found["fast beside"].append(fast.speed())
            found["slow beside"].append(slow.speed())
            for way, servers in ways.items():
                found[way].append(Run(settings, model, [0, 1], epochs, servers).speed())
        print(model)
        for name, speeds in found.items():
            print(f"  {name:12} {statistics.median(speeds):10,.0f} examples/s  "
                  f"({' '.join(f'{s:,.0f}' for s in speeds)})")
        for way in ways:
            for when, suffix in (("one after the other", ""), ("at the same time", " beside")):
                ratios = [a / (f + s) for a, f, s in
                          zip(found[way], found["fast" + suffix], found["slow" + suffix])]
                print(f"  {way}, of the sum {when:20} {statistics.median(ratios):.2f}  "
                      f"({' '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
