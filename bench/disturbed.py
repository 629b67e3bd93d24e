#!/usr/bin/env python3
"""A training that everything happens to, beside one that is left alone: AlexNet on CIFAR-10 in a cluster
of processes on this machine.

The disturbed one has a parameter server and two workers, under one strategy. A worker is killed; two
others join; the parameter server is killed, and started again with the same command; then the parameter
server gets SIGTERM, and the run goes on in one process, with other workers and under another strategy.
The other run has a parameter server and two workers, and goes through. Prints a line for each thing that
happens and the accuracies by epoch, and writes a report of both runs.

    TRAINER_DATA=... bench/disturbed.py [--epochs=12] [--out=runs/disturbed] [--options="..."]
        [--strategy=async-apply] [--then="--strategy=sync --staleness=ignore"]
"""
import argparse
import csv
import os
import shlex
import signal
import subprocess
import sys
import time

from cluster import free_ports

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRAINER = os.environ.get("TRAINER", os.path.join(ROOT, "trainer"))
OPTIONS = "--model=alexnet:init=he --dataset=cifar10:crop=24,flip=1,standardize=image --batch=128 " \
          "--precision=bf16 --average=0.998 --optimizer=nesterov:rate=0.02 --schedule=cosine:warmup=0.05 " \
          "--staleness=divide"


class Cluster:
    """A parameter server, and workers as they are started."""

    def __init__(self, out, workers, options):
        ports = free_ports(1 + workers)
        hosts = [f"127.0.0.1:{port}" for port in ports]
        self.out, self.began, self.processes = out, time.monotonic(), {}
        self.common = [TRAINER, f"--ps-hosts={hosts[0]}", "--worker-hosts=" + ",".join(hosts[1:])]
        self.options = [f"--out={out}", "--print-every=0", *options]

    def say(self, words):
        print(f"{time.monotonic() - self.began:6.1f} s  {words}", flush=True)

    def start(self, job, task):
        options = self.options if job == "ps" else ["--threads=1", "--restart-wait=60", "--print-every=0"]
        with open(f"{self.out}.{job}-{task}.log", "ab") as log:
            command = [*self.common, f"--job={job}", f"--task={task}", *options]
            self.processes[job, task] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                                         stderr=log)
        self.say(f"{job} {task} starts")

    def end(self, job, task, number):
        self.processes[job, task].send_signal(number)
        self.say(f"{job} {task}: {signal.Signals(number).name}")
        code = self.processes.pop((job, task)).wait(timeout=120)
        self.say(f"{job} {task} has ended with {code}")
        return code

    def wait(self):
        for (job, task), process in self.processes.items():
            code = process.wait(timeout=1800)
            if code != 0:
                sys.exit(f"{job} {task} has ended with {code}, expected 0: see {self.out}.{job}-{task}.log")
        self.say("all have ended")

    def until(self, epoch):
        """Until so many epochs have ended."""
        limit = time.monotonic() + 1800
        while len(rows(self.out)) < epoch:
            gone = [f"{job} {task}"
                    for (job, task), process in self.processes.items() if process.poll() is not None]
            if gone or time.monotonic() > limit:
                sys.exit(f"before the end of epoch {epoch}: " +
                         (", ".join(gone) + " ended" if gone else "nothing more comes"))
            time.sleep(0.2)
        self.say(f"epoch {epoch} has ended")


def rows(out):
    try:
        with open(os.path.join(out, "epochs.csv"), newline="") as file:
            return [row for row in csv.DictReader(file) if row.get("test_accuracy")]
    except FileNotFoundError:
        return []


def run_disturbed(out, arguments, options):
    epochs = arguments.epochs
    cluster = Cluster(out, 4, [*options, f"--strategy={arguments.strategy}", "--workers=2..4",
                               "--restart-wait=60", "--checkpoint-every=5"])
    cluster.start("ps", 0)
    for task in (0, 1):
        cluster.start("worker", task)
    cluster.until(epochs // 6)
    cluster.end("worker", 1, signal.SIGKILL)
    cluster.until(epochs // 4)
    for task in (2, 3):
        cluster.start("worker", task)
    cluster.until(epochs // 2)
    cluster.end("ps", 0, signal.SIGKILL)
    time.sleep(5)
    cluster.start("ps", 0)
    cluster.until(epochs * 2 // 3)
    time.sleep(5)  # into an epoch
    code = cluster.end("ps", 0, signal.SIGTERM)
    if code != 130:
        sys.exit(f"the parameter server has ended with {code}, expected 130")
    for (job, task), process in cluster.processes.items():
        cluster.say(f"{job} {task} has ended with {process.wait(timeout=120)}")
    cluster.say(f"goes on in one process with {arguments.then}")
    with open(f"{out}.after.log", "wb") as log:
        subprocess.run([TRAINER, f"--resume={out}", *shlex.split(arguments.then), "--devices=cpu:0,cpu:1",
                        "--print-every=0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
                       timeout=1800)
    cluster.say("has ended")


def run_alone(out, arguments, options):
    cluster = Cluster(out, 2, [*options, f"--strategy={arguments.strategy}"])
    cluster.start("ps", 0)
    for task in (0, 1):
        cluster.start("worker", task)
    cluster.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--out", default="runs/disturbed")
    parser.add_argument("--options", default=OPTIONS)
    parser.add_argument("--strategy", default="async-apply")
    parser.add_argument("--then", default="--strategy=sync --staleness=ignore",
                        help="options of what follows in one process")
    arguments = parser.parse_args()
    options = shlex.split(arguments.options) + [f"--epochs={arguments.epochs}"]
    alone = arguments.out + "-not"
    for out in (arguments.out, alone):
        if os.path.exists(out):
            sys.exit(f"{out} is there, expected a new folder")
    os.makedirs(os.path.dirname(os.path.abspath(arguments.out)), exist_ok=True)
    run_disturbed(arguments.out, arguments, options)
    run_alone(alone, arguments, options)
    print("epoch  disturbed  left alone")
    for a, b in zip(rows(arguments.out), rows(alone)):
        print(f"{a['epoch']:>5}  {100 * float(a['test_accuracy']):8.2f}%  "
              f"{100 * float(b['test_accuracy']):9.2f}%")
    subprocess.run([TRAINER, "report", arguments.out, alone, f"--out={arguments.out}.html"], check=True)


if __name__ == "__main__":
    main()
