#!/usr/bin/env python3
"""Two builds of this program on the same machine, in turn: what a change did to its speed.

usage: bench/builds.py OLD NEW [--rounds 5] [--only mlp,alexnet,cluster,exchange] [--match lockfree]

OLD and NEW are checkouts in which `make` and `make build/bench/exchange` were run. Needs MNIST and
CIFAR-10 in $TRAINER_DATA. Printed for each case: the median of the pairwise ratios new / old (above 1:
the new build is faster), their range, and the median speed of each. The two take turns in who begins.
exchange: one line per strategy, and what a step costs that moves next to nothing.
"""
import argparse, json, os, re, socket, statistics, subprocess, sys, tempfile

TRAIN = ["--quiet", "--log-every=0", "--print-every=0", "--checkpoint-every=0"]
MLP = ["--model=mlp", "--dataset=mnist", "--batch=100", "--optimizer=sgd:rate=0.01", "--epochs=20"]
ALEXNET = ["--model=alexnet", "--dataset=cifar10:augment=distnet,take=12800", "--batch=128",
           "--optimizer=sgd:rate=0.01", "--epochs=1"]
TWO = ["--devices=cpu:0,cpu:1"]
CASES = {
    "mlp": [["--strategy=" + s] + TWO for s in ("sync", "async-lockfree:apply=worker",
                                                "async-lockfree:apply=server", "async-apply", "sharded")],
    "alexnet": [["--strategy=sync"] + TWO, ["--strategy=async-lockfree"] + TWO,
                ["--strategy=async-lockfree", "--precision=bf16"] + TWO],
    "cluster": [["--strategy=sync"], ["--strategy=async-lockfree"]],
}


def speed(root, words):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        subprocess.run([os.path.join(root, "trainer"), *TRAIN, *words, "--out=" + out], check=True,
                       stdout=subprocess.DEVNULL)
        return json.load(open(os.path.join(out, "summary.json")))["examples_per_s"]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets: s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets: s.close()
    return ports


def cluster_speed(root, words):
    """One parameter server and two workers of one thread each, as processes."""
    ps, *workers = (f"127.0.0.1:{port}" for port in free_ports(3))
    with tempfile.TemporaryDirectory() as folder:
        common = [os.path.join(root, "trainer"), *TRAIN, *MLP, *words, "--epochs=4", "--threads=1",
                  "--ps-hosts=" + ps, "--worker-hosts=" + ",".join(workers)]
        roles = ([["--job=ps", "--task=0", "--out=" + os.path.join(folder, "run")]] +
                 [["--job=worker", f"--task={w}"] for w in (0, 1)])
        processes = [subprocess.Popen(common + role, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      cwd=folder) for role in roles]
        for p in processes:
            said = p.communicate(timeout=600)[1]
            if p.returncode != 0: sys.exit(f"exit code {p.returncode}: {said.decode()}")
        return json.load(open(os.path.join(folder, "run", "summary.json")))["examples_per_s"]


def exchange(root, _):
    return figures(subprocess.run([os.path.join(root, "build/bench/exchange")], check=True,
                                  capture_output=True, text=True).stdout)


def turns(old, new, rounds, measure, words):
    pairs = []
    for r in range(rounds):
        order = (old, new) if r % 2 == 0 else (new, old)
        got = {root: measure(root, words) for root in order}
        pairs.append((got[old], got[new]))
    return pairs


def report(name, pairs):
    ratios = [n / o for o, n in pairs]
    print(f"{name:62} {statistics.median(ratios):5.3f} ({min(ratios):.3f} to {max(ratios):.3f})  "
          f"{statistics.median(o for o, _ in pairs):12,.1f} {statistics.median(n for _, n in pairs):12,.1f}",
          flush=True)


def figures(text):
    """{strategy: pulls and pushes per ms}, and the steps per ms of the worker that moves next to nothing."""
    found = {}
    for line in text.splitlines():
        row = re.match(r"(\S+)\s+[\d.]+\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s+\d+ %$", line)
        if row: found[row[1]] = 1e3 / (float(row[2]) + float(row[3]))
        least = re.match(r"a step of one worker that .*: ([\d.]+) us", line)
        if least: found["a step that moves next to nothing"] = 1e3 / float(least[1])
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old"); p.add_argument("new")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="mlp,alexnet,cluster,exchange")
    p.add_argument("--match", default="", help="only cases with this in their options")
    a = p.parse_args()
    old, new = os.path.abspath(a.old), os.path.abspath(a.new)
    print(f"{'':62} ratio (range)            old          new   examples/s; exchange: per ms")
    for case in a.only.split(","):
        for words in CASES.get(case, []):
            if a.match not in " ".join(words): continue
            measure = cluster_speed if case == "cluster" else speed
            options = words if case == "cluster" else (MLP if case == "mlp" else ALEXNET) + words
            report(f"{case} " + " ".join(w for w in words if not w.startswith("--devices")),
                   turns(old, new, a.rounds, measure, options))
        if case == "exchange":
            pairs = turns(old, new, a.rounds, exchange, None)
            for name in pairs[0][0]:
                if all(name in o and name in n for o, n in pairs):
                    report("exchange " + name, [(o[name], n[name]) for o, n in pairs])


if __name__ == "__main__":
    main()
