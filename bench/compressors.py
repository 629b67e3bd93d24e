#!/usr/bin/env python3
"""What --compress costs in accuracy: the same network, data and number of epochs with each compressor,
beside none.

    TRAINER_DATA=... bench/compressors.py [--model alexnet] [--dataset cifar10:take=10000] [--epochs 3]
        [--batch 128] [--optimizer OPTIMIZER] [--seeds 1] [--compressors none,bf16,...]
        [--schedule=cosine and other options of the parameter server]

A parameter server and two workers on this machine, sync, so that a run repeats bit for bit. Printed for
each: test accuracy and final cost, the mean over the seeds, the bytes to and from the workers, and
seconds. Without --compressors: all that `trainer list` has.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from cluster import ROOT, free_ports


def all_compressors():
    table = subprocess.run([os.path.join(ROOT, "trainer"), "list", "compressors"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    return re.findall(r"^  ([a-z0-9-]+) ", table, re.M)


def run(options, more, compressor, seed):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    cluster = ["--ps-hosts=" + addresses[0], "--worker-hosts=" + ",".join(addresses[1:])]
    with tempfile.TemporaryDirectory() as folder:
        common = [os.path.join(ROOT, "trainer"), "--quiet", *cluster, "--threads=1", "--print-every=0"]
        leader = [f"--model={options.model}", f"--dataset={options.dataset}", f"--epochs={options.epochs}",
                  f"--batch={options.batch}", "--strategy=sync", f"--compress={compressor}", f"--seed={seed}",
                  "--out=" + folder, "--replace", "--log-every=0",
                  *([f"--optimizer={options.optimizer}"] if options.optimizer else []), *more]
        commands = [[*common, "--job=ps", "--task=0", *leader]]
        commands += [[*common, "--job=worker", f"--task={task}", "--devices=cpu:0"] for task in range(2)]
        processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                     for c in commands]
        for process in processes:
            words = process.communicate()[1]
            if process.returncode != 0:
                sys.exit(f"{compressor}: exit code {process.returncode}: {words}")
        with open(os.path.join(folder, "summary.json")) as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="alexnet")
    parser.add_argument("--dataset", default="cifar10:take=10000")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--optimizer", help="(default: that of the model)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compressors",
                        help="with commas between them, and settings where wanted: top-k:share=0.1")
    options, more = parser.parse_known_args()
    names = (options.compressors.split(",") if options.compressors else ["none"] +
             [n for n in all_compressors() if n != "none"])
    print("| `--compress=` | MB to and from the workers | test accuracy | final cost | seconds "
          "|\n|---|---|---|---|---|")
    for name in names:
        runs = [run(options, more, name, seed) for seed in range(1, options.seeds + 1)]
        mean = lambda key: statistics.mean(r[key] for r in runs)
        sent = statistics.mean(r["wire_sent"] + r["wire_received"] for r in runs) / 1e6
        print(f"| `{name}` | {sent:,.1f} | {100 * mean('test_accuracy'):.1f} % | {mean('final_cost'):.3f} | "
              f"{mean('train_seconds'):.0f} |", flush=True)


if __name__ == "__main__":
    main()
