#!/usr/bin/env python3
"""What the network costs on one machine: parameter servers and workers as processes, beside the same workers
as threads of one process.

Each run trains MNIST (batch 100) with two workers of one thread each. Printed for each model and strategy:
examples/s of the threads, of one and of two parameter servers, and of a mirrored pair, each over shared
memory, over TCP, and over UCX with and without its shared memory; the median of the rounds, which take
turns. The bytes that a step moves over the wire are compared with the formula.

    TRAINER_DATA=... bench/cluster.py [--rounds 3] [--epochs 4] [--strategies sync,async-lockfree]
        [--models mlp:hidden=100] [--way "1 ps, TCP"]...
        [--peer "NAME=COMMAND"]...

--peer takes its turn in each round: a command of a shell, whose last line is JSON with examples_per_s;
what it prints is printed once.
"""
import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = {"mlp:hidden=100": "MLP, 79,510 parameters", "mlp:hidden=1275": "MLP, 1,013,635 parameters"}
NEXT, WEIGHTS, GRADIENT = 64 + 64, 64 + 64, 64 + 64  # bytes of a frame without its floats
BEAT, BEATS = 64, 64  # bytes of a sign of life; so many of them are no surprise where cores are busy


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run(servers, workers, options, variables, folder):
    """The summary of a run; servers: -1 threads of one process, 0 mirrored, else that many. variables: of the
    processes' environment."""
    common = [os.path.join(ROOT, "trainer"), "--quiet", "--dataset=mnist", "--batch=100", "--log-every=0",
              "--print-every=0", "--checkpoint-every=0", "--threads=1", "--out=" + folder,
              "--replace"] + options
    if servers < 0:
        commands = [common + ["--devices=" + ",".join(f"cpu:{w}" for w in range(workers))]]
    else:
        ports = free_ports(max(servers, 0) + workers)
        hosts = [f"127.0.0.1:{p}" for p in ports]
        cluster = ["--worker-hosts=" + ",".join(hosts[servers:])]
        if servers > 0:
            cluster.append("--ps-hosts=" + ",".join(hosts[:servers]))
        commands = [common + cluster + ["--job=ps", f"--task={p}"] for p in range(servers)]
        commands += [common + cluster + ["--job=worker", f"--task={w}"] for w in range(workers)]
    processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env={**os.environ, **variables}) for c in commands]
    for p in processes:
        words = p.communicate(timeout=600)[1]
        if p.returncode != 0:
            sys.exit(f"exit code {p.returncode}: {words.decode()}")
    with open(os.path.join(folder, "summary.json")) as file:
        return json.load(file)


def run_peer(command):
    answer = json.loads(subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE,
                                       text=True).stdout.strip().splitlines()[-1])
    return answer, answer["examples_per_s"]


def padded(floats):
    return (floats + 15) // 16 * 16


def formula(model, summary, workers):
    """Bytes sent and received by the one parameter server in the whole training."""
    hidden = int(model.split("=")[1])
    floats = sum(padded(n) for n in (784 * hidden, hidden, hidden * 10, 10))
    steps, pauses = summary["steps"], workers * summary["epochs"]
    empty = -steps % workers if summary["strategy"] == "sync" else 0
    return steps * (WEIGHTS + 4 * floats) + (steps + pauses + empty) * NEXT, steps * (GRADIENT + 4 * floats)


def as_formula(found, expected):
    """Whether the bytes each way are the expected ones, and whole signs of life, a few at most."""
    extra = [f - e for f, e in zip(found, expected)]
    return all(0 <= e <= BEAT * BEATS and e % BEAT == 0 for e in extra)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--strategies", default="sync,async-lockfree")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--way", action="append", help="one of those that are printed (default: all)")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    settings = parser.parse_args()
    peers, answers = dict(peer.split("=", 1) for peer in settings.peer), {}
    worlds = {"threads": (-1, [], {})}
    for name, servers in {"1 ps": 1, "2 ps": 2, "mirrored": 0}.items():
        worlds[name] = (servers, [], {})
        worlds[name + ", TCP"] = (servers, ["--no-shared-memory"], {})
        worlds[name + ", UCX"] = (servers, ["--link=ucx"], {})
        worlds[name + ", UCX, TCP alone"] = (servers, ["--link=ucx", "--no-shared-memory"], {})
        worlds[name + ", UCX's own TCP"] = (servers, ["--link=ucx"], {"UCX_TLS": "tcp"})
    if settings.way:
        worlds = {name: worlds[name] for name in settings.way}
    for model in settings.models.split(","):
        words = MODELS[model]
        for strategy in settings.strategies.split(","):
            speeds = {name: [] for name in [*worlds, *peers]}
            bytes_a_step = None
            for _ in range(settings.rounds):
                for name in random.sample(list(speeds), len(speeds)):
                    if name in peers:
                        answers[name], speed = run_peer(peers[name])
                        speeds[name].append(speed)
                        continue
                    servers, link, variables = worlds[name]
                    with tempfile.TemporaryDirectory() as folder:
                        options = [f"--model={model}", f"--strategy={strategy}",
                                   f"--epochs={settings.epochs}", "--optimizer=sgd:rate=0.5"] + link
                        summary = run(servers, 2, options, variables, folder)
                        speeds[name].append(summary["examples_per_s"])
                        if servers == 1:
                            found = summary["wire_sent"], summary["wire_received"]
                            expected = formula(model, summary, 2)
                            if not as_formula(found, expected):
                                sys.exit(f"{model}, {strategy}: {found} bytes on the wire, expected "
                                         f"{expected} and at most {BEATS} signs of life of {BEAT} bytes")
                            bytes_a_step = sum(found) / summary["steps"]
            medians = {name: statistics.median(s) for name, s in speeds.items()}
            first = next(iter(speeds))
            print(f"{words}, {strategy}" + (f": {bytes_a_step:,.0f} bytes a step on the wire, as the formula "
                                            "says" if bytes_a_step else ""))
            for name in speeds:
                print(f"  {name:22} {medians[name]:10,.0f} examples/s  {medians[name] / medians[first]:5.2f} "
                      f"of {first}  ({' '.join(f'{s:,.0f}' for s in speeds[name])})")
    for name, answer in answers.items():
        print(f"{name}: {json.dumps(answer)}")


if __name__ == "__main__":
    main()
