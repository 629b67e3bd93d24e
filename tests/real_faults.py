#!/usr/bin/env python3
"""Drives real processes by a schedule of faults, as tests/cluster/faults draws them for the simulated
world and writes with TELL=FILE.

    TRAINER=./trainer tests/real_faults.py [--verbose] --faults=FILE...

Every connection goes through a relay of its own, which delays, cuts and damages what passes; processes
are killed, started again and stopped (SIGSTOP), and where a disk fails, the leader may write no byte more
to any file. Afterwards the same has to be true as in the simulated world: every process has ended by
itself, in its time; each end is named, by one line; a run that ended well has trained on no example more
than there are, and if nobody was lost on all of them; sync and local-sgd with the bits of one process;
and nobody was lost where nothing lasts longer than what is waited for. Exit code 1, and the schedule with
what the processes said, where it is not.

A schedule has a line for each of these; a line that begins with # says nothing:

    seed N                    of what the relays draw
    strategy NAME             its defaults
    servers N                 parameter servers; 0: mirrored
    workers N
    on-loss stop|continue
    encrypted 0|1             whether all have one key
    latency S                 of the network: seconds, and a random part on top for each piece
    jitter S
    bytes-per-second N        of a connection each way; 0: as many as one likes
    large 1                   weights and gradients are so many that they move while workers compute
    shares 1                  workers compute parts of different sizes: --share=1,2,3,1,...
    least N                   so many workers begin, and others join them; without such a line all begin
    late NAME at S            it is started then
    fault WHAT NAME OTHER at S for S

of which WHAT is, for the process NAME ("ps-0", "worker-1"):

    kill                      it is killed
    return                    it is killed, and begins again after that time
    leave                     it is told to go (SIGTERM)
    stop                      it stands still for that time
    cut                       nothing passes between it and OTHER for that time; inf: for good
    cut-off                   nothing passes between it and anybody
    partition                 nothing passes between those before it and it with those behind
    slow                      its connections have 50 times the latency, and a 50th of the speed
    lossy                     of all connections, a part of the pieces comes 0.2 s late
    damage                    in some pieces of all connections a bit is another one
    disk                      what it writes to a file is an error

Simulated processes train for a fraction of a second from time 0. Real ones first have to start, and train
longer: here `at` counts five times, and a run has 30 epochs instead of 2; the timeouts are half of those
there, and so is how long things last.
"""
import argparse
import collections
import itertools
import json
import os
import queue
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from tensors import tensors

TRAINER = os.environ.get("TRAINER", "./trainer")
AT_TIMES, FOR_TIMES = 5.0, 0.5
TIMEOUT_S, START_S = 10.0, 20.0
# All come; one waits in vain, three times its timeout where it waits for who waits itself; a last word; and a
# machine with much to do.
LATEST_S = START_S + TIMEOUT_S + 2.0 * 3.0 * 4.0 / 3.0 * TIMEOUT_S + 30.0
EXAMPLES, BATCH, EPOCHS = 120, 10, 30
PIECE_BYTES, AGAIN_S, LOSS, DAMAGE, SLOW_TIMES = 64 << 10, 0.2, 0.3, 0.005, 50.0
NAMED = re.compile(r"127\.\d+\.\d+\.\d+:|worker |parameter server|process |port |ps-0")
WHATS = "kill", "return", "leave", "stop", "cut", "cut-off", "slow", "lossy", "damage", "disk", "partition"
Fault = collections.namedtuple("Fault", "what name other at_s for_s")


def read_schedule(path):
    schedule, faults = {}, []
    with open(path) as file:
        for line in file:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "late" and len(words) == 4 and words[2] == "at":
                faults.append(Fault("late", words[1], words[1], float(words[3]) * AT_TIMES, float("inf")))
            elif (words[0] == "fault" and len(words) == 8 and words[1] in WHATS and words[4] == "at" and
                  words[6] == "for"):
                faults.append(Fault(*words[1:4], float(words[5]) * AT_TIMES, float(words[7]) * FOR_TIMES))
            elif words[0] != "fault" and len(words) == 2:
                schedule[words[0]] = words[1]
            else:
                sys.exit(f"{path}: {line.strip()!r}, expected a line of a schedule")
    for key in "servers", "workers", "encrypted", "seed", "least", "large", "shares":
        schedule[key] = int(schedule.get(key, 0))
    for key in "latency", "jitter", "bytes-per-second":
        schedule[key] = float(schedule[key])
    return schedule, faults


# --- the network ---

class Network:
    """What is wrong just now."""

    def __init__(self, schedule):
        self.latency, self.jitter, self.speed = (schedule[k]
                                                 for k in ("latency", "jitter", "bytes-per-second"))
        self.random = random.Random(schedule["seed"])
        self.changed = threading.Condition()
        self.cuts, self.slow = collections.Counter(), collections.Counter()  # by two names; by name
        self.lossy = self.damage = 0
        self.over = False

    def set(self, kind, key, on):
        with self.changed:
            if kind == "lossy" or kind == "damage":
                setattr(self, kind, getattr(self, kind) + (1 if on else -1))
            else:
                getattr(self, kind)[key] += 1 if on else -1
            self.changed.notify_all()

    def delay(self, pair, count):
        """Of a piece of so many bytes: until the line is free again, and until it is there."""
        times = SLOW_TIMES if any(self.slow[name] > 0 for name in pair) else 1.0
        takes = count / self.speed * times if self.speed else 0.0
        late = AGAIN_S if self.lossy > 0 and self.random.random() < LOSS else 0.0
        return takes, self.latency * times + self.jitter * self.random.random() + late

    def hurt(self, piece):
        if self.damage > 0 and self.random.random() < DAMAGE:
            piece[self.random.randrange(len(piece))] ^= 1 << self.random.randrange(8)

    def await_way(self, pair):
        with self.changed:
            while self.cuts[frozenset(pair)] > 0 and not self.over:
                self.changed.wait(0.5)
        return not self.over

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()


class Way:
    """One direction of a connection: what comes from `source` goes to `sink` when it is time."""

    def __init__(self, network, pair, source, sink):
        self.network, self.pair, self.source, self.sink = network, pair, source, sink
        self.pieces = queue.Queue(64)
        for body in self.take, self.give:
            threading.Thread(target=body, daemon=True).start()

    def take(self):
        free = due = time.monotonic()
        while True:
            try:
                piece = bytearray(self.source.recv(PIECE_BYTES))
            except OSError:
                piece = bytearray()
            takes, late = self.network.delay(self.pair, len(piece))
            free = max(free, time.monotonic()) + takes
            due = max(due, free + late)
            if piece:
                self.network.hurt(piece)
            self.pieces.put((due, piece))
            if not piece:
                return

    def give(self):
        while True:
            due, piece = self.pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not self.network.await_way(self.pair):
                break
            try:
                if piece:
                    self.sink.sendall(piece)
                else:
                    self.sink.shutdown(socket.SHUT_WR)
                    return
            except OSError:
                break
        for end in self.source, self.sink:  # one is gone: the other is to know
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            while piece:
                due, piece = self.pieces.get()


class Relay:
    """Listens in place of `server`, for `client` alone."""

    def __init__(self, network, client, server):
        self.network, self.client, self.server = network, client, server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.join, args=[near], daemon=True).start()

    def join(self, near):
        """Who connects waits for the server, as it would by trying again."""
        host, port = self.server.address.split(":")
        while not self.network.over and not self.server.gone:
            try:
                far = socket.create_connection((host, int(port)), 5)
                break
            except OSError:
                time.sleep(0.02)
        else:
            near.close()
            return
        for end in near, far:
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = self.client.name, self.server.name
        Way(self.network, pair, near, far)
        Way(self.network, pair, far, near)


# --- the processes ---

class Process:
    def __init__(self, name, address):
        self.name, self.address = name, address
        self.command, self.process, self.lines = [], None, []
        # struck: killed by a fault; dismissed: told to go; stopped: and for good
        self.gone = self.struck = self.dismissed = self.stopped = False
        self.code = None

    def start(self):
        self.gone = False
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, text=True)
        self.reader = threading.Thread(target=self.read, args=[self.process], daemon=True)
        self.reader.start()

    def read(self, process):
        for line in process.stderr:
            self.lines.append(line.rstrip("\n"))
        process.stderr.close()
        self.code = process.wait()
        self.gone = process is self.process

    def strike(self):
        if self.process and self.process.poll() is None:
            self.struck = True
            self.process.kill()
            self.process.wait()
        self.gone = True


def free_addresses(count):
    """Where no other program listens: of this process alone."""
    own = os.getpid()
    return [f"127.{1 + (own >> 16) % 250}.{(own >> 8) % 256}.{1 + own % 254}:{3333 + i}"
            for i in range(count)]


def open_processes(schedule, network, folder):
    servers, workers = schedule["servers"], schedule["workers"]
    names = [f"ps-{i}" for i in range(servers)] + [f"worker-{i}" for i in range(workers)]
    processes = [Process(name, address) for name, address in zip(names, free_addresses(len(names)))]
    hosts = processes[:servers or schedule["least"] or workers]
    key = []
    if schedule["encrypted"]:
        key = ["--secret-file=" + os.path.join(folder, "key")]
        subprocess.run([TRAINER, "keygen", os.path.join(folder, "key")], check=True,
                       stdout=subprocess.DEVNULL)
    for index, process in enumerate(processes):
        seen = [host.address if host is process else Relay(network, process, host).address for host in hosts]
        job, task = process.name.split("-")
        mirrored = seen + [p.address for p in processes[len(hosts):]]
        lists = ["--worker-hosts=" +
                 ",".join([p.address for p in processes[servers:]] if servers else mirrored)]
        lists += ["--ps-hosts=" + ",".join(seen)] if servers else []
        leads = ["--out=" + os.path.join(folder, "ps-0" if index == 0 else process.name), "--replace"]
        if any(fault.what == "disk" for fault in schedule["faults"]) and index == 0:
            leads.append("--checkpoint-every=0.02")
        if schedule["shares"] and process in hosts:
            lists.append("--share=" + ",".join(str(1 + w % 3) for w in range(workers)))
        if schedule["least"] and (process in hosts or not servers):
            lists.append(f"--workers={schedule['least']}..{workers}")
        process.command = [TRAINER, *settings_of(schedule), *lists, *key, f"--job={job}", f"--task={task}",
                           "--devices=cpu:0", "--no-shared-memory", f"--timeout={TIMEOUT_S:g}",
                           f"--start-timeout={START_S:g}", "--on-loss=" + schedule["on-loss"],
                           *(leads if process in hosts else [])]
    return processes


def epochs_of(schedule):
    """Fewer where the network loses pieces to the end, as each step is late then."""
    lossy = any(fault.what == "lossy" and fault.for_s == float("inf") for fault in schedule["faults"])
    return EPOCHS // 3 if lossy else EPOCHS


def settings_of(schedule):
    hidden = "1500-180" if schedule["large"] else "24"
    return ["--quiet", "--dataset=iris", f"--model=mlp:hidden={hidden}", f"--batch={BATCH}",
            f"--epochs={epochs_of(schedule)}", "--threads=1", "--optimizer=sgd:rate=0.1",
            "--kernels=reference", "--outputs=csv,summary", "--overlap=on", "--strategy=" + schedule["strategy"]]


# --- what goes wrong ---

def put_in(fault, processes, network, on):
    by_name = {process.name: process for process in processes}
    one = by_name[fault.name]
    if fault.what == "late":
        one.start()
    elif one.process is None: # it is still to come
        return
    elif fault.what == "kill" and on:
        one.strike()
    elif fault.what == "return":
        one.strike() if on else one.start()
    elif fault.what == "leave":
        if on and one.process.poll() is None:
            one.process.send_signal(signal.SIGTERM)
            one.dismissed = True
    elif fault.what == "stop" and one.process.poll() is None:
        one.process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)
        one.stopped = on
    elif fault.what == "cut":
        network.set("cuts", frozenset((fault.name, fault.other)), on)
    elif fault.what == "cut-off":
        for name in by_name:
            network.set("cuts", frozenset((fault.name, name)), on)
    elif fault.what == "partition":
        names = list(by_name)
        border = names.index(fault.name)
        for pair in itertools.product(names[:border], names[border:]):
            network.set("cuts", frozenset(pair), on)
    elif fault.what in ("slow", "lossy", "damage"):
        network.set(fault.what, fault.name, on)
    elif fault.what == "disk" and on and processes[0].process and processes[0].process.poll() is None:
        # One that has only just been started would be killed by 0, where a sanitizer writes before main
        # begins.
        resource.prlimit(processes[0].process.pid, resource.RLIMIT_FSIZE, (1, 1))


def run_schedule(schedule, folder):
    network = Network(schedule)
    processes = open_processes(schedule, network, folder)
    events = [(fault.at_s, True, fault) for fault in schedule["faults"]]
    events += [(fault.at_s + fault.for_s, False, fault)
               for fault in schedule["faults"] if fault.for_s != float("inf")]
    began = time.monotonic()
    late = {fault.name for fault in schedule["faults"] if fault.what == "late"}
    for process in processes:
        if process.name not in late:
            process.start()
    waiting = lambda: [p for p in processes if p.process and p.process.poll() is None and not p.stopped]
    for at_s, on, fault in sorted(events, key=lambda event: event[0]):
        while time.monotonic() < began + at_s and (waiting() or any(p.stopped for p in processes)):
            time.sleep(0.01)
        put_in(fault, processes, network, on)
    while waiting() and time.monotonic() < began + LATEST_S:
        time.sleep(0.02)
    late = [process.name for process in waiting()]
    for process in processes:
        if process.process.poll() is None:
            process.struck = True
            process.process.kill()
        process.reader.join(10)
    network.end()
    return processes, late


# --- how it ended ---

def is_harmless(schedule):
    return not any(f.what in ("kill", "return", "leave", "damage", "disk") or f.for_s == float("inf") and
                   f.what in ("cut", "cut-off", "partition", "stop") for f in schedule["faults"])


def weights_alone(schedule, folder, known={}):
    key = schedule["strategy"], schedule["workers"], epochs_of(schedule)
    if key not in known:
        devices = ",".join(f"cpu:{w}" for w in range(schedule["workers"]))
        out = os.path.join(folder, "alone")
        subprocess.run([TRAINER, *settings_of(schedule), "--devices=" + devices, "--out=" + out, "--replace"],
                       check=True, stdout=subprocess.DEVNULL)
        known[key] = tensors(os.path.join(out, "model.safetensors"))
    return known[key]


def came_too_late(schedule, process, words):
    """A worker that joins may find that all is done, and nobody there any more."""
    return (schedule["least"] and process.name.startswith("worker") and
            re.search("training is over|not connected after|closed by", words))


def check_end(schedule, process):
    disk = any(fault.what == "disk" for fault in schedule["faults"])
    words = process.lines[-1] if process.lines else ""
    if process.struck and process.code < 0:
        return
    if process.dismissed and process.code == 130:  # before the training
        return
    if process.dismissed and process.code == -signal.SIGTERM and not process.lines:  # nor had it begun
        return
    if process.code not in (0, 4, 5) + ((3,) if disk else ()):
        yield f"{process.name}: exit code {process.code}, \"{words}\""
    elif process.code != 0 and not (words.startswith("trainer: ") and NAMED.search(words)):
        yield f"{process.name}: exit code {process.code}, and nobody is named: \"{words}\""
    elif process.code != 0 and is_harmless(schedule) and not came_too_late(schedule, process, words):
        yield f"{process.name}: exit code {process.code} without a fault that lasts: \"{words}\""


def check_run(schedule, processes, folder):
    leader = processes[0]
    if leader.code != 0:
        return
    with open(os.path.join(folder, "ps-0", "summary.json")) as file:
        summary = json.load(file)
    total = EXAMPLES * epochs_of(schedule)
    lost = (summary["lost_workers"] if schedule["servers"] or
            schedule["least"] else sum(process.code != 0 for process in processes))
    # A part that begins before the end goes over it.
    most = total + (BATCH * schedule["workers"] if schedule["shares"] else 0)
    if summary["examples"] > most:
        yield f"{summary['examples']} examples of {total}"
    if lost and is_harmless(schedule):
        yield f"{lost} lost without a fault that lasts"
    if lost:
        return
    if schedule["shares"]:
        if summary["examples"] < total:
            yield f"{summary['examples']} examples, expected {total}"
    elif summary["examples"] != total or summary["steps"] != total // BATCH:
        yield (f"{summary['examples']} examples in {summary['steps']} steps, expected {total} in "
               f"{total // BATCH}")
    path = os.path.join(folder, "ps-0", "model.safetensors")
    leaves = any(process.dismissed for process in processes)
    if schedule["strategy"] in ("sync", "local-sgd") and not (schedule["least"] or leaves) and \
            os.path.exists(path):
        if tensors(path) != weights_alone(schedule, folder):
            yield "not the bits of one process"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", action="append", required=True, metavar="FILE")
    parser.add_argument("--verbose", action="store_true", help="how each process ended")
    options = parser.parse_args()
    failed = 0
    for path in options.faults:
        schedule, schedule_faults = read_schedule(path)
        schedule["faults"] = schedule_faults
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            processes, late = run_schedule(schedule, folder)
            took = time.monotonic() - began
            wrong = [f"{name} has not ended after {took:.0f} s" for name in late]
            for process in processes:
                wrong += check_end(schedule, process)
            wrong += check_run(schedule, processes, folder) if not late else []
        failed += bool(wrong)
        for words in wrong:
            print(f"{path}: {words}")
        if wrong or options.verbose:
            with open(path) as file:
                print(file.read(), end="")
            for process in processes:
                print(f"# {process.name}: {process.code} {' | '.join(process.lines[-3:])}")
            print(f"# {took:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
