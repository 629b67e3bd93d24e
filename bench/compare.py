#!/usr/bin/env python3
"""Our examples/s beside PyTorch's on the same machine: the same network, batch and number of workers, run in turn.

usage: bench/compare.py [--trainer ./trainer] [--rounds 5] [--seconds 6] [--data DIR]

Needs PyTorch (Debian: apt-get install python3-torch libopenblas0-pthread; without the latter PyTorch computes with the slow
reference BLAS) and MNIST in --data or $TRAINER_DATA.
The network is 784-100-10, sigmoid, batch 100 a worker, plain SGD. PyTorch computes on 16 batches that stay in memory; ours
draws its batches from the whole training set. Prints each run, then the median of the pairwise ratios; targets in brackets.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = [  # ours, theirs, target
    ("sync", ["--mode", "ddp", "--workers", "2"], 7.0),
    ("async-lockfree:apply=worker", ["--mode", "hogwild", "--workers", "2"], 2.0),
    ("async-lockfree:apply=server", ["--mode", "hogwild", "--workers", "2"], None),
]


def ours(a, strategy, devices, epochs, threads=0):
    with tempfile.TemporaryDirectory() as out:
        command = [a.trainer, "--model=mlp", "--dataset=mnist", f"--strategy={strategy}", f"--devices={devices}", f"--threads={threads}",
                   "--batch=100", f"--epochs={epochs}", "--optimizer=sgd:rate=0.01", "--checkpoint-every=0", "--quiet", f"--out={out}"]
        if a.data: command.append(f"--data-dir={a.data}")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.load(open(os.path.join(out, "summary.json")))


def theirs(a, mode):
    command = [a.python, os.path.join(HERE, "torch_peer.py"), "--model", "mlp", "--seconds", str(a.seconds)] + mode
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])["examples_per_s"]


def shares(s):
    return "  ".join(f"{k} {100 * s[k + '_share']:.0f} %" for k in ("compute", "wait", "pull", "push", "input"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--trainer", default="./trainer"); p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=6); p.add_argument("--data", default="")
    p.add_argument("--python", default="/usr/bin/python3"); p.add_argument("--epochs", type=int, default=40)
    a = p.parse_args()
    for name, devices, threads in (("one device, 1 thread", "cpu:0", 1), ("one device, all cores", "cpu:0", 0)):
        s = ours(a, "sync", devices, a.epochs // 2, threads)
        print(f"{name:32s} {s['examples_per_s']:10.0f} examples/s   {shares(s)}", flush=True)
    for strategy, mode, target in PAIRS:
        ratios = []
        for _ in range(a.rounds):
            s = ours(a, strategy, "cpu:0,cpu:1", a.epochs)
            t = theirs(a, mode)
            ratios.append(s["examples_per_s"] / t)
            print(f"{strategy:32s} {s['examples_per_s']:10.0f} examples/s   {shares(s)}   PyTorch {mode[1]} {t:8.0f}   ratio {ratios[-1]:.2f}", flush=True)
        print(f"{strategy:32s} median ratio {statistics.median(ratios):.2f}" + (f"  [target {target}]" if target else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
