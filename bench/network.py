#!/usr/bin/env python3
"""A slower network than one machine has: the time of a step beside what bytes and latency allow.

    TRAINER_DATA=... bench/network.py [--part speed|overlap|latency] [--rounds 3] [--epochs 1] [--gbit 1]
        [--milliseconds 1]

speed: a parameter server and one or two workers in two network namespaces, each with its end of a pair of
virtual interfaces that tbf holds to --gbit. Namespaces and interfaces are made here and removed at the
end; nothing leaves the machine. It needs root, ip and tc (iproute2), and is left out where one of them is
not there. What is allowed: the time of a step without the limit, and the time that the bytes of a step
take at the limit, less the headers of packets; of two workers that are asynchronous either that, or what
the line of the server carries each way.

overlap: likewise, `alexnet` on CIFAR-10, batch 128, 30 steps of each worker, whose weights and gradients move
while it computes, and with --overlap=off.

latency: the same on the loopback device, through a relay that holds each piece for --milliseconds on its
way (tests/real_faults.py). What is allowed: the time of a step through a relay that holds nothing, and
the latency once each way.

Medians of the rounds, in which with and without take turns.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from real_faults import Network, Relay  # noqa: E402

MODELS = {"mlp:hidden=100": "79,510 weights", "mlp:hidden=1275": "1,013,635 weights"}
SMALL = ["--dataset=mnist", "--batch=100", "--optimizer=sgd:rate=0.5"]
BATCH, STEPS = 128, 30
PAYLOAD = 1448 / 1514  # of a packet's bytes on the line
ADDRESS = "10.77.0.1:2222"  # of the server, in a namespace


def command(job, task, ps_hosts, workers, training, folder):
    names = ",".join(f"127.0.0.1:{1 + w}" for w in range(workers))
    return [os.path.join(ROOT, "trainer"), "--quiet", *training, "--log-every=0", "--print-every=0",
            "--checkpoint-every=0", "--threads=1", "--insecure", "--no-shared-memory",
            f"--ps-hosts={ps_hosts}", f"--worker-hosts={names}", f"--job={job}", f"--task={task}",
            *([f"--out={folder}", "--replace"] if job == "ps" else [])]


def small(model, epochs):
    return [*SMALL, f"--model={model}", f"--epochs={epochs}", "--strategy=async-lockfree"]


def run(places, host, workers, training):
    """Milliseconds of a step of all workers together, and bytes each way of one. places: what is put
    before the server's command and the workers'; host: where the server listens, and where the workers
    find it."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [places[0] + command("ps", 0, host[0], workers, training, folder)]
        commands += [places[1] + command("worker", w, host[1], workers, training, folder)
                     for w in range(workers)]
        processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                     for c in commands]
        try:
            for process in processes:
                words = process.communicate(timeout=900)[1]
                if process.returncode != 0:
                    sys.exit(f"exit code {process.returncode}: {words}")
        finally:
            for process in processes:
                process.kill()
        with open(os.path.join(folder, "summary.json")) as file:
            summary = json.load(file)
    return summary["train_seconds"] * 1e3 / summary["steps"], summary["wire_sent"] / summary["steps"]


def report(words, free, found, allowed, workers):
    free, found = statistics.median(free), statistics.median(found)
    at_least = allowed(free * workers) / workers
    print(f"  {words}: {free:.3f} ms without, allowed {at_least:.3f} ms, found {found:.3f} ms: "
          f"{found / at_least:.3f} of it", flush=True)


# --- the speed of a line ---

def shell(words):
    subprocess.run(words.split(), check=True, stdout=subprocess.DEVNULL)


def limit(names, gbit):
    for i, name in enumerate(names):
        inside = f"ip netns exec {name} tc qdisc"
        subprocess.run(f"{inside} del dev veth{i} root".split(), stderr=subprocess.DEVNULL)
        if gbit:
            shell(f"{inside} add dev veth{i} root tbf rate {gbit}gbit burst 256kb latency 100ms")


@contextlib.contextmanager
def two_places():
    """Names of two network namespaces that are connected to each other."""
    names = [f"trainer-{side}-{os.getpid()}" for side in "ab"]
    try:
        for name in names:
            shell(f"ip netns add {name}")
        shell(f"ip -n {names[0]} link add veth0 type veth peer name veth1 netns {names[1]}")
        for i, name in enumerate(names):
            shell(f"ip -n {name} addr add 10.77.0.{1 + i}/24 dev veth{i}")
            shell(f"ip -n {name} link set lo up")
            shell(f"ip -n {name} link set veth{i} up")
        time.sleep(0.5)
        yield names
    finally:
        for name in names:
            for pid in subprocess.run(["ip", "netns", "pids", name], stdout=subprocess.PIPE,
                                      text=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def inside(names):
    return [["ip", "netns", "exec", name] for name in names]


def words_of(workers):
    return "1 worker" if workers == 1 else f"{workers} workers"


def measure_speed(settings, names):
    bytes_per_ms = settings.gbit * 1e9 / 8 * PAYLOAD / 1e3
    for model, words in MODELS.items():
        for workers in 1, 2:
            free, found, sent = [], [], 0.0
            for _ in range(settings.rounds):
                for gbit, times in (0, free), (settings.gbit, found):
                    limit(names, gbit)
                    took, sent = run(inside(names), [ADDRESS] * 2, workers, small(model, settings.epochs))
                    times.append(took)
            line_ms = sent / bytes_per_ms  # of a step, each way
            report(f"{settings.gbit:g} gbit/s, {words}, {words_of(workers)}, {sent / 1e6:.2f} MB each way", free,
                   found, lambda free_ms: max(free_ms + 2 * line_ms, workers * line_ms), workers)


def measure_overlap(settings, names):
    limit(names, settings.gbit)
    for strategy in "sync", "async-apply":
        for workers in 1, 2:
            times = {"auto": [], "off": []}
            for _ in range(settings.rounds):
                for choice, list_of in times.items():
                    training = [f"--dataset=cifar10:take={BATCH * STEPS * workers}", "--model=alexnet",
                                f"--batch={BATCH}", "--epochs=1", "--precision=bf16", "--no-test",
                                f"--strategy={strategy}", f"--overlap={choice}"]
                    list_of.append(run(inside(names), [ADDRESS] * 2, workers, training)[0] * workers)
            meanwhile, apart = (statistics.median(times[choice]) for choice in ("auto", "off"))
            print(f"  {settings.gbit:g} gbit/s, alexnet, {strategy}, {words_of(workers)}: {meanwhile:.1f} ms per "
                  f"step, {apart:.1f} ms with --overlap=off: {apart / meanwhile:.2f} times as fast", flush=True)


# --- latency ---

def measure_latency(settings):
    port = 20000 + os.getpid() % 9000
    server = types.SimpleNamespace(name="ps-0", address=f"127.0.0.1:{port}", gone=False)
    client = types.SimpleNamespace(name="worker-0")
    relays = {ms: Relay(Network({"latency": ms / 1e3, "jitter": 0.0, "bytes-per-second": 0.0, "seed": 1}),
                        client, server) for ms in (0.0, settings.milliseconds)}
    for model, words in MODELS.items():
        free, found = [], []
        for _ in range(settings.rounds):
            for ms, times in (0.0, free), (settings.milliseconds, found):
                times.append(run([[], []], [server.address, relays[ms].address], 1,
                                 small(model, settings.epochs))[0])
        report(f"{settings.milliseconds:g} ms each way, {words}, 1 worker", free, found,
               lambda free_ms: free_ms + 2 * settings.milliseconds, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["speed", "overlap", "latency"], help="one of them (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=1, help="of MNIST, 600 steps each")
    parser.add_argument("--gbit", type=float, default=1.0)
    parser.add_argument("--milliseconds", type=float, default=1.0)
    settings = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is removed
    limited = {"speed": measure_speed, "overlap": measure_overlap}
    for part, measure in limited.items():
        if settings.part not in (None, part):
            continue
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
            print(f"{part}: left out: it needs root, ip and tc (iproute2)")
            continue
        with two_places() as names:
            measure(settings, names)
    if settings.part not in limited:
        measure_latency(settings)


if __name__ == "__main__":
    main()
