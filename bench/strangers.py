#!/usr/bin/env python3
"""What strangers cost a training: a parameter server with a key that workers may join at any time, so that it
listens while it trains, and two workers of one thread each, on MNIST (batch 100).

In turns: alone; beside connections that are open and say nothing, as many again as the server closes; and
beside so many connections a second that say what is no hello, and go. Each of these also beside strangers of
another port, where something takes and drops them: what they take of the machine's processors themselves.
Printed are the median, least and most examples/s of the rounds, and how many strangers there were a second.

    TRAINER_DATA=... bench/strangers.py [--rounds 5] [--epochs 20] [--silent 1000] [--rate 500]
"""
import argparse
import json
import os
import random
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from cluster import ROOT, free_ports


def knock(port):
    """A connection to the port, or None."""
    try:
        return socket.create_connection(("127.0.0.1", port), 1)
    except OSError:
        return None


def silent(port, count):
    """Keeps so many open, and prints each second how many were opened."""
    there, poll, opened, said = {}, select.poll(), 0, time.monotonic()
    while True:
        while len(there) < count:
            one = knock(port)
            if not one:
                time.sleep(0.05)
                break
            there[one.fileno()] = one
            poll.register(one, select.POLLIN)
            opened += 1
        for number, _ in poll.poll(20):
            poll.unregister(number)
            there.pop(number).close()
        if time.monotonic() - said >= 1:
            print(opened, flush=True)
            opened, said = 0, time.monotonic()


def nonsense(port, rate):
    """So many a second, each with 64 bytes that are no hello."""
    began, came, said, opened = time.monotonic(), 0, time.monotonic(), 0
    while True:
        if came >= (time.monotonic() - began) * rate:
            time.sleep(0.001)
        else:
            one = knock(port)
            came += 1
            if one:
                try:
                    one.sendall(random.randbytes(64))
                except OSError:
                    pass
                one.close()
                opened += 1
        if time.monotonic() - said >= 1:
            print(opened, flush=True)
            opened, said = 0, time.monotonic()


def sink(port, hold):
    """Takes all who come: holds them, or drops them once they have said something."""
    listener, there = socket.create_server(("127.0.0.1", port), backlog=512), []
    while True:
        one, _ = listener.accept()
        if hold:
            there.append(one)
            continue
        try:
            one.recv(64)
        except OSError:
            pass
        one.close()


def start(*words):
    """This program as a process of its own, that is one of the three above."""
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), *map(str, words)],
                            stdout=subprocess.PIPE, text=True)


def train(settings, folder, strangers, elsewhere):
    """examples/s of one run, and how many strangers came a second. strangers: a word and its number."""
    trainer, key = os.path.join(ROOT, "trainer"), os.path.join(folder, "key")
    subprocess.run([trainer, "keygen", key], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ports = free_ports(4)
    hosts = [f"127.0.0.1:{port}" for port in ports]
    common = [trainer, "--quiet", "--ps-hosts=" + hosts[0], "--worker-hosts=" + ",".join(hosts[1:3]),
              "--secret-file=" + key, "--threads=1", "--log-every=0", "--print-every=0"]
    server = subprocess.Popen(
        common + ["--job=ps", "--task=0", "--workers=1..2", "--dataset=mnist", "--model=mlp:hidden=100",
                  "--batch=100", "--optimizer=sgd:rate=0.5", "--strategy=" + settings.strategy,
                  f"--epochs={settings.epochs}", "--checkpoint-every=0", "--out=" + folder + "/run"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    workers = [subprocess.Popen(common + ["--job=worker", f"--task={w}", f"--devices=cpu:{w}"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
               for w in range(2)]
    port = ports[3] if elsewhere else ports[0]
    others = [start("sink", port, int(strangers[0] == "silent"))] if elsewhere else []
    if strangers:
        others.append(start(strangers[0], port, strangers[1]))
    try:
        words = server.communicate(timeout=600)[1]
        codes = [server.returncode] + [w.wait(60) for w in workers]
    finally:
        for other in [server, *workers, *others]:
            other.kill()
    came = [int(line) for line in others[-1].stdout.read().split()] if others else []
    if any(codes):
        sys.exit(f"exit codes {codes}: {words[-2000:]}")
    with open(os.path.join(folder, "run", "summary.json")) as file:
        return json.load(file)["examples_per_s"], statistics.median(came) if came else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--strategy", default="async-lockfree")
    parser.add_argument("--silent", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=500)
    settings = parser.parse_args()
    kinds = {f"{settings.silent:,} that are silent": ("silent", settings.silent),
             f"{settings.rate:,}/s that say nonsense": ("nonsense", settings.rate)}
    turns = {"alone": ((), False)}
    for name, kind in kinds.items():
        turns[name] = kind, False
        turns[name + ", at another port"] = kind, True
    speeds, came = {name: [] for name in turns}, {name: [] for name in turns}
    for _ in range(settings.rounds):
        for name in random.sample(list(turns), len(turns)):
            with tempfile.TemporaryDirectory() as folder:
                speed, strangers = train(settings, folder, *turns[name])
            speeds[name].append(speed)
            came[name].append(strangers)
    for name, all_of in speeds.items():
        print(f"{name + ':':44}{statistics.median(all_of):9,.0f} ({min(all_of):,.0f} to {max(all_of):,.0f})"
              f"  {statistics.median(came[name]):6,.0f} came a second")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if sys.argv[1:2] and sys.argv[1] in ("silent", "nonsense", "sink"):
        {"silent": silent, "nonsense": nonsense, "sink": sink}[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        main()
