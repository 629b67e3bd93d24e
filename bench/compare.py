#!/usr/bin/env python3
"""Our examples/s beside PyTorch's on the same machine: the same network, batch and number of workers, run
in turn.

usage: bench/compare.py [--trainer ./trainer] [--model mlp|alexnet] [--rounds 5] [--seconds 6]
                        [--epochs N] [--data DIR] [--dataset cifar10:crop=24,take=12800]
                        [--strategies sync,sharded]

Needs PyTorch (Debian: apt-get install python3-torch libopenblas0-pthread; without the latter PyTorch
computes with the slow reference BLAS) and MNIST or CIFAR-10 in --data or $TRAINER_DATA.
mlp is 784-100-10, sigmoid, batch 100 a worker, on MNIST; alexnet DistNet's network, batch 128, on
CIFAR-10; both with plain SGD. PyTorch computes on batches that stay in memory; ours draws its batches
from the whole training set, alexnet's augmented as in DistNet unless --dataset says otherwise.
--strategies: these instead, in fp32, beside DDP. Prints each run, then the median of the pairwise ratios;
targets in brackets.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DDP = ["--mode", "ddp", "--workers", "2"]
PAIRS = {  # ours, theirs, target
    "mlp": [
        ("sync", DDP, 7.0),
        ("async-lockfree:apply=worker", ["--mode", "hogwild", "--workers", "2"], 2.0),
        ("async-lockfree:apply=server", ["--mode", "hogwild", "--workers", "2"], None),
    ],
    "alexnet": [
        ("sync", DDP, 2.0),
        ("async-lockfree", DDP, 2.0),
        ("async-lockfree --precision=bf16", ["--mode", "single", "--threads", "2", "--bf16"], 3.0),
    ],
}
RUNS = {
    "mlp": ["--model=mlp", "--batch=100", "--optimizer=sgd:rate=0.01"],
    "alexnet": ["--model=alexnet", "--batch=128", "--optimizer=sgd:rate=0.01"],
}
DATASETS = {"mlp": "mnist", "alexnet": "cifar10:augment=distnet,take=12800"}


def ours(a, strategy, devices, epochs, threads=0):
    with tempfile.TemporaryDirectory() as out:
        command = [a.trainer, *RUNS[a.model], f"--dataset={a.dataset}", *f"--strategy={strategy}".split(),
                   f"--devices={devices}", f"--threads={threads}", f"--epochs={epochs}",
                   "--checkpoint-every=0", "--quiet", f"--out={out}"]
        if a.data: command.append(f"--data-dir={a.data}")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.load(open(os.path.join(out, "summary.json")))


def theirs(a, mode):
    batch = {"mlp": "100", "alexnet": "128"}[a.model]
    command = [a.python, os.path.join(HERE, "torch_peer.py"), "--model", a.model, "--batch", batch,
               "--seconds", str(a.seconds)] + mode
    return json.loads(subprocess.run(command, check=True, capture_output=True,
                                     text=True).stdout.splitlines()[-1])["examples_per_s"]


def shares(s):
    return "  ".join(f"{k} {100 * s[k + '_share']:.0f} %"
                     for k in ("compute", "wait", "pull", "push", "input"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--trainer", default="./trainer"); p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=6); p.add_argument("--data", default="")
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--epochs", type=int, default=0, help="0: 40 of mlp, 2 of alexnet")
    p.add_argument("--model", choices=PAIRS, default="mlp")
    p.add_argument("--dataset", default=""); p.add_argument("--strategies", default="")
    a = p.parse_args()
    if subprocess.run([a.python, "-c", "import torch"], capture_output=True).returncode != 0:
        sys.exit(f"bench/compare.py: {a.python} has no PyTorch; --python names another one")
    a.dataset = a.dataset or DATASETS[a.model]
    a.epochs = a.epochs or {"mlp": 40, "alexnet": 2}[a.model]
    for name, devices, threads in (("one device, 1 thread", "cpu:0", 1),
                                   ("one device, all cores", "cpu:0", 0)):
        s = ours(a, "sync", devices, max(a.epochs // 2, 1), threads)
        print(f"{name:32s} {s['examples_per_s']:10.0f} examples/s   {shares(s)}", flush=True)
    pairs = PAIRS[a.model]
    if a.strategies: pairs = [(s, DDP, pairs[0][2]) for s in a.strategies.split(",")]
    for strategy, mode, target in pairs:
        ratios = []
        for _ in range(a.rounds):
            s = ours(a, strategy, "cpu:0,cpu:1", a.epochs)
            t = theirs(a, mode)
            ratios.append(s["examples_per_s"] / t)
            print(f"{strategy:32s} {s['examples_per_s']:10.0f} examples/s   {shares(s)}   PyTorch {mode[1]} "
                  f"{t:8.0f}   ratio {ratios[-1]:.2f}", flush=True)
        print(f"{strategy:32s} median ratio {statistics.median(ratios):.2f}" +
              (f"  [target {target}]" if target else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
