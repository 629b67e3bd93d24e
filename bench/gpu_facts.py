#!/usr/bin/env python3
"""gpu-facts: all that one GPU can tell of this program, in one run that ends in time; its files are made
into docs/measurements/gpu-report.md.

usage: bench/gpu_facts.py --report FOLDER [--seconds 560] [--cuda 1|standin] [--build build] [--data DIR]
                          [--python PYTHON] [--quick] [--stages NAME,NAME...] [--through PROGRAM]

Stages go in the order of their worth: environment, build, latencies, operations, tests, speed, workers,
profile, sanitizer, accuracy. Each has a limit of its own, and goes on, or is left for the next one, when
something fails. All that is run is a process of its own session, which is killed with all that it has
started when its time is over; one that cannot even be killed is left behind. What it prints is in the log
as soon as it prints it, and what it measures in facts.jsonl, so a machine that goes away takes little
with it.

FOLDER gets log.txt, facts.jsonl, profile.csv, summary.txt (at most 200 lines, printed last) and report.md
(bench/gpu_report.py). Without --quick the sizes are those of docs/measurements; with it they are tiny,
and nothing is measured but whether this script works. Each command is run as `PROGRAM STAGE COMMAND...`
where --through says so: a tracer, or a test that lets a stage fail. Needs a GPU, nvcc, g++, make and
Python; PyTorch for the comparison. With --stages only these are done, in the usual order. Exit code 0:
every stage is as it should be; 1: something is wrong; 4: no GPU.
"""
import argparse, csv, glob, json, math, os, re, shutil, signal, subprocess, sys, tempfile, time, traceback

import gpu_data, gpu_report

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ERROR_DEVICE = 4
TIMED_OUT = 124
RESERVE = 6  # seconds at the end for what is written then
MOST_LOG = 12 << 20
BOUNDS = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 1e-2}  # of first gradients: |g - g'| / |g'|
PAIRS = [("mlp", "fp32"), ("alexnet", "bf16"), ("alexnet", "fp32"), ("cnn", "fp32"), ("alexnet", "tf32"),
         ("mlp", "tf32"), ("mlp", "bf16"), ("cnn", "bf16"), ("cnn", "tf32")]
INPUT = {"mlp": "784", "cnn": "28x28x1", "alexnet": "24x24x3", "lenet": "28x28x1"}
EPOCHS = {"mlp": 40, "cnn": 16, "alexnet": 12}  # a second or two on an H100
BATCH = {"mlp": 100, "cnn": 100, "alexnet": 128, "lenet": 100}
# docs/recipes.md has them for two CPU devices, which halve a batch.
RECIPES = {
    "alexnet:l2=0,init=he": "--dataset=cifar10:whiten=1,crop=24,flip=1,standardize=image,cutout=6 "
                            "--precision=bf16 --batch=256 --epochs=36 --strategy=sync "
                            "--optimizer=muon:rate=0.024,weight-decay=0.03,rest-rate=0.06 "
                            "--schedule=linear:warmup=0.05 --average=0.998 --label-smoothing=0.1",
    "fast:shift-rate=64": "--dataset=cifar10:augment=none,pad=2,crop=32,flip=1,standardize=image "
                          "--precision=bf16 --batch=512 --epochs=9 --strategy=sync "
                          "--optimizer=muon:rate=0.1,momentum=0.6,weight-decay=0.05,rest-rate=0.1 "
                          "--schedule=linear:warmup=0.1 --label-smoothing=0.2 --views=flip+shift"}
TARGETS = {"alexnet:l2=0,init=he": 0.8601, "fast:shift-rate=64": 0.92}


class OutOfTime(Exception):
    """The stage's time is over."""


class Ended(Exception):
    """Somebody wants the run to end now, or its time is over."""


class Done:
    def __init__(self, code, out, error, took, limit):
        self.code, self.out, self.error, self.took, self.limit = code, out, error, took, limit

    def words(self):
        """Why it failed, in a line."""
        if self.code == TIMED_OUT: return f"took more than {self.limit:.0f} s"
        last = (self.error.strip() or self.out.strip()).splitlines()[-1:] or [""]
        name = f"killed by {signal.Signals(-self.code).name}" if self.code < 0 else f"exit code {self.code}"
        return f"{name}: {last[0].strip()[:300]}" if last[0].strip() else name


def of_session(leader):
    """The processes of a session that still run. timeout(1) gives what it starts a group of its own,
    so the group is not enough."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try: state, _, _, session = open(path).read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError): continue
        if int(session) == leader and state != "Z": found.append(int(path.split("/")[2]))
    return found


class Facts:
    def __init__(self, a):
        self.a, self.began = a, time.monotonic()
        self.folder = os.path.abspath(a.report)
        os.makedirs(self.folder, exist_ok=True)
        for name in gpu_report.FILES:  # of an earlier run
            if os.path.exists(os.path.join(self.folder, name)): os.remove(os.path.join(self.folder, name))
        self.log, self.logged = open(os.path.join(self.folder, "log.txt"), "wb", buffering=0), 0
        self.lines = open(os.path.join(self.folder, "facts.jsonl"), "w", buffering=1)
        self.scratch = tempfile.mkdtemp(prefix="gpu-facts")
        self.facts, self.stage, self.deadline, self.child = [], "start", self.began + a.seconds, None
        self.data = gpu_data.Data(a.data, os.path.join(self.scratch, "data"))
        self.build = os.path.abspath(os.path.join(ROOT, a.build))
        self.trainer = (os.path.join(ROOT, "trainer") if self.build == os.path.join(ROOT, "build")
                        else os.path.join(self.build, "trainer"))
        self.seen = True  # a GPU, for all that is known
        self.torch, self.torch_sees = a.python or sys.executable, True

    # --- what is found ---

    def fact(self, what, **values):
        # JSON has no others.
        values = {name: 1e300 if isinstance(value, float) and not math.isfinite(value) else value
                  for name, value in values.items()}
        found = dict(stage=self.stage, what=what, **values)
        self.facts.append(found)
        self.lines.write(json.dumps(found, allow_nan=False, default=str) + "\n")
        return found

    def wrong(self, words):
        self.fact("wrong", words=words)
        print(f"gpu-facts: {self.stage}: {words}", flush=True)

    def open(self, words):
        """What there was no time, tool or data for."""
        self.fact("open", words=words)

    def note(self, text):
        """Into the log, of which the beginning of each stage is worth more than its end."""
        data = text if isinstance(text, bytes) else text.encode()
        room = MOST_LOG - self.logged
        if len(data) > room > 0: data = data[:room] + b"\n[the log is full]\n"
        if room > 0: self.log.write(data)
        self.logged += len(data)

    # --- the clock ---

    def left(self):
        return self.a.seconds - RESERVE - (time.monotonic() - self.began)

    def stage_left(self):
        return self.deadline - time.monotonic()

    # --- running ---

    def environment(self, more):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
        environment.update(TRAINER_DATA=self.data.folder, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1",
                           TORCHINDUCTOR_CACHE_DIR=f"{self.scratch}/inductor",
                           TRITON_CACHE_DIR=f"{self.scratch}/triton", TMPDIR=self.scratch)
        # Where CUDA and its driver are when nobody has said so.
        for name, folders in (("PATH", ("/usr/local/cuda/bin", "/usr/local/nvidia/bin")),
                              ("LD_LIBRARY_PATH", ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"))):
            there = [folder for folder in environment.get(name, "").split(":") if folder]
            environment[name] = ":".join([*there, *[folder for folder in folders if os.path.isdir(folder) and
                                                    folder not in there]])
        if not environment["LD_LIBRARY_PATH"]: del environment["LD_LIBRARY_PATH"]
        environment.update(more)
        return environment

    def pump(self, files, on_line):
        """What the child has printed since, into the log; lines of its standard output to on_line."""
        for name, file in files.items():
            data = file.read()
            if not data: continue
            self.note(data)
            if name != "out": continue
            self.partial += data
            *lines, self.partial = self.partial.split(b"\n")
            for line in lines if on_line else (): on_line(line.decode(errors="replace"))

    def end_child(self):
        """Kills the child and all of its session. One that waits within the driver does not die: it is
        left alone."""
        child, self.child = self.child, None
        if child is None: return
        for _ in range(5):  # what is killed may have started another one meanwhile
            left = of_session(child.pid)
            for process in left:
                try: os.kill(process, signal.SIGKILL)
                except (ProcessLookupError, PermissionError): pass
            if not left: break
            time.sleep(0.01)
        try: child.wait(5)
        except subprocess.TimeoutExpired: self.note(f"[process {child.pid} cannot be killed]\n")

    def run(self, command, seconds=30, on_line=None, needs=1, **more):
        """Runs it for at most so long, and no longer than the stage lasts; where less than `needs`
        seconds are left, not at all."""
        command = [str(word) for word in command]
        limit = min(seconds, self.stage_left())
        self.note(f"\n$ {' '.join(command)}\n")
        if self.stage_left() < needs * self.scale:
            self.note("[no time is left]\n")
            raise OutOfTime(" ".join(os.path.basename(word) for word in command[:4]))
        if self.a.through: command = [self.a.through, self.stage, *command]
        began, self.partial = time.monotonic(), b""
        paths = {name: os.path.join(self.scratch, name) for name in ("out", "error")}
        with open(paths["out"], "wb") as out, open(paths["error"], "wb") as error:
            try:
                self.child = subprocess.Popen(command, stdout=out, stderr=error, stdin=subprocess.DEVNULL,
                                              cwd=ROOT, start_new_session=True, env=self.environment(more))
            except OSError as why:
                self.note(f"[{why}]\n")
                return Done(127, "", str(why), 0, limit)
        files, code = {name: open(path, "rb") for name, path in paths.items()}, None
        try:
            while code is None and time.monotonic() - began < limit:
                try: code = self.child.wait(0.05)
                except subprocess.TimeoutExpired: pass
                self.pump(files, on_line)
        finally:
            self.end_child()
            self.pump(files, on_line)
            if on_line and self.partial: on_line(self.partial.decode(errors="replace"))
            texts = [open(path, "rb").read(4 << 20).decode(errors="replace") for path in paths.values()]
            for file in files.values(): file.close()
        took = time.monotonic() - began
        done = Done(TIMED_OUT if code is None else code, *texts, took, limit)
        self.note(f"[{done.words() if done.code else 'ok'}; {took:.1f} s]\n")
        return done

    def first_line(self, command, seconds=15):
        done = self.run(command, seconds)
        return done.out.strip().splitlines()[0].strip() if done.code == 0 and done.out.strip() else ""

    def json_lines(self, command, seconds, fails=None, **more):
        """A program that prints facts: each is kept at once, and what failed is told by `fails`
        (default: it is wrong)."""
        count, fails = [0], fails or self.wrong

        def keep(line):
            if not line.startswith("{"): return
            try: found = json.loads(line)
            except ValueError: return
            count[0] += 1
            found.update(more)
            self.fact(**found)
            if found.get("status", "ok") in ("ok", "declined"): return
            fails(" ".join(str(found[name]) for name in ("what", "model", "precision", "way", "problem",
                                                         "name") if name in found) + f": {found['status']}")
        done = self.run(command, seconds, keep)
        name = " ".join(os.path.basename(word) for word in command[:5])
        if done.code == TIMED_OUT: self.wrong(f"{name}: {done.words()}; it had said {count[0]} lines")
        elif done.code not in (0, 1) or count[0] == 0: self.wrong(f"{name}: {done.words()}")

    def program(self, name):
        """A program of the build folder; what is not built is told once a stage."""
        path = os.path.join(self.build, name)
        if os.path.exists(path): return path
        self.wrong(f"{name} is not built")
        return None

    def has_trainer(self):
        if os.path.exists(self.trainer): return True
        self.wrong("the program is not built")
        return False

    def train(self, *options, seconds=40, wanted=True):
        """A run of the program: its summary or None, and its folder."""
        out = tempfile.mkdtemp(dir=self.scratch)
        done = self.run([self.trainer, "--quiet", "--checkpoint-every=0", "--replace", f"--out={out}",
                         *options], seconds)
        if done.code == 0:
            try: return json.load(open(os.path.join(out, "summary.json"))), out
            except (OSError, ValueError) as why: done.error, done.code = str(why), 1
        if wanted: self.wrong(f"`trainer {' '.join(options)}`: {done.words()}")
        return None, out

    # --- stages ---

    def stages(self):
        wanted = [(name, limit, work)
                  for name, limit, work in STAGES if not self.a.stages or name in self.a.stages]
        usual, all_of_them = sum(limit for _, limit, _ in wanted), sum(limit for _, limit, _ in STAGES)
        self.scale = min(1.0, self.a.seconds / 560 * all_of_them / usual)
        for name, limit, work in wanted:
            self.stage, began = name, time.monotonic()
            if self.left() < 2:
                self.fact("stage", verdict="no time was left", seconds=0)
                continue
            self.deadline = began + min(limit * self.scale, self.left())
            self.note(f"\n=== {name}, at {began - self.began:.1f} s ===\n")
            print(f"gpu-facts: {name}, at {began - self.began:.0f} s", flush=True)
            verdict = self.one_stage(work)
            self.fact("stage", verdict=verdict, seconds=round(time.monotonic() - began, 1))
            gpu_report.write(self.folder, self.facts)
            if name == "environment" and not self.seen and self.a.cuda != "standin": return ERROR_DEVICE
        return 1 if any(f["what"] == "wrong" for f in self.facts) else 0

    def one_stage(self, work):
        try: work(self)
        except OutOfTime as what: self.open(f"no time was left for {what}")
        except Ended: raise
        except Exception as why:  # a mistake of this script: the other stages are worth having all the same
            self.note(traceback.format_exc())
            self.wrong(f"{type(why).__name__}: {why}")
        mine = [f["what"] for f in self.facts if f["stage"] == self.stage]
        return "wrong" if "wrong" in mine else "not all" if "open" in mine else "ok"

    def close(self):
        self.end_child()
        gpu_report.write(self.folder, self.facts)
        shutil.rmtree(self.scratch, ignore_errors=True)


# --- environment ---

def environment(f):
    for name, command in (("git", ["git", "-C", ROOT, "describe", "--always", "--dirty"]),
                          ("kernel", ["uname", "-srm"]), ("gcc", ["gcc", "--version"]),
                          ("make", ["make", "--version"]), ("python", [sys.executable, "--version"]),
                          ("nvcc", [nvcc(), "--version"])):
        text = (f.first_line(command) if name != "nvcc"
                else re.sub(r"(?s).*release (\S+),.*", r"\1", f.run(command, 15).out).strip())
        f.fact("machine", name=name, value=text or "none")
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    f.fact("machine", name="CPU",
           value=f"{cpu.group(1) if cpu else 'unknown'}, {len(os.sched_getaffinity(0))} cores")
    f.fact("machine", name="command",
           value=f"make gpu-facts LIMIT_S={f.a.seconds:g}{' (quick)' if f.a.quick else ''}")
    f.fact("machine", name="data", value=f.data.words())
    if not f.a.quick: f.data.prepare()
    smi = f.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap,power.limit,"
                               "clocks.max.sm,clocks.max.mem,mig.mode.current,pcie.link.gen.max",
                 "--format=csv,noheader"], 20)
    for i, line in enumerate(smi.out.strip().splitlines() if smi.code == 0 else []):
        f.fact("machine", name=f"GPU {i}", value=line.strip())
    capabilities = f.first_line([sys.executable, os.path.join(ROOT, "cuda", "capabilities.py")], 20)
    f.fact("machine", name="compute capability, of libcuda", value=capabilities or "no GPU")
    f.torch = ""
    for python in [f.a.python] if f.a.python else [sys.executable, "/usr/bin/python3"]:
        said = f.first_line([python, "-c", "import torch; print(torch.__version__, "
                                           "torch.cuda.is_available(), torch.version.cuda, "
                                           "torch.backends.cudnn.version())"], 40)
        if said:
            f.torch = python
            f.fact("machine", name="PyTorch", value=said)
            break
    f.torch_sees = f.torch != "" and said.split()[1] == "True"
    if not f.torch: f.open("no PyTorch: nothing is compared with it (--python=PYTHON takes another Python)")
    f.seen = smi.code == 0 and bool(smi.out.strip()) or bool(capabilities) or f.torch_sees
    for command in (["nvidia-smi"], ["nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE,PERFORMANCE,ECC"],
                    ["lscpu"], ["free", "-m"], ["df", "-h", ROOT],
                    ["sh", "-c", "ldconfig -p | grep -iE 'cuda|cudnn|cublas|nccl|nvidia'"],
                    ["sh", "-c", "env | grep -E '^(PATH|LD_|CUDA|NVIDIA|TRAINER|PYTHON)'"],
                    ["sh", "-c", "python3 -m pip list 2>/dev/null | grep -iE 'nvidia|torch|triton|numpy'"],
                    ["sh", "-c", "ls -d $(python3 -c 'import nvidia; print(*nvidia.__path__)')/*"]):
        f.run(command, 10)
    for tool in "ncu", "compute-sanitizer", "cuobjdump", "nsys":
        f.fact("machine", name=tool, value=cuda_tool(tool) or "none")
    if not f.seen and f.a.cuda != "standin":
        f.wrong("no GPU here, by libcuda, nvidia-smi and PyTorch: nothing else is done")


def cuda_tool(name):
    return shutil.which(name) or next(iter([*glob.glob(f"/usr/local/cuda*/bin/{name}"),
                                            *glob.glob(f"/opt/nvidia/nsight-compute/*/{name}")]), "")


def nvcc():
    return cuda_tool("nvcc") or "nvcc"


# --- build ---

def tests_of_backend():
    names = ["cuda/" + os.path.splitext(os.path.basename(path))[0]
             for path in sorted(glob.glob(os.path.join(ROOT, "tests", "cuda", "*.c")))]
    # cuda/host is the stand-in's alone.
    return [name for name in names if name != "cuda/host"] + ["device/gpu"]


def build(f):
    folder = os.path.relpath(f.build, ROOT)
    targets = [f"{folder}/bench/gpu_latency", os.path.relpath(f.trainer, ROOT),
               f"{folder}/bench/gpu_operations", f"{folder}/bench/gpu_exchange",
               *[f"{folder}/tests/{name}"
                 for name in (["cuda/vectors"] if f.a.quick else tests_of_backend())]]
    done = f.run(["make", "-k", f"-j{os.cpu_count()}", f"CUDA={f.a.cuda}", f"B={folder}",
                  f"PYTHON={sys.executable}", *targets], 170)
    said = (done.out + done.error).splitlines()
    if done.code:
        f.wrong(f"the build: {done.words()}")
        for line in [line for line in said if re.search(r"\berror\b|\*\*\*", line)][:6]:
            f.wrong(f"the build: {line.strip()[:300]}")
    f.fact("built", name="seconds", value=round(done.took, 1))
    for line in said:
        if line.startswith("GPU code for"):
            f.fact("built", name="architectures", value=line[len("GPU code for"):].strip())
    f.fact("built", name="warnings", value=sum("warning" in line for line in said))
    if not os.path.exists(f"{f.build}/bench/gpu_latency") and cuda_tool("nvcc"):  # it needs nothing of ours
        os.makedirs(f"{f.build}/bench", exist_ok=True)
        f.run([nvcc(), "-std=c++17", "-O3", "-arch=native", "-o", f"{f.build}/bench/gpu_latency",
               os.path.join(ROOT, "bench", "gpu_latency.cu")], 60)
    if not f.has_trainer(): return
    devices = f.run([f.trainer, "devices"], 30).out.splitlines()
    gpu = [line for line in devices if line.startswith("gpu:")]
    for line in gpu: f.fact("machine", name=line.split()[0], value=" ".join(line.split()[1:]))
    if not any(line.startswith("gpu:0 ") for line in gpu):
        f.wrong(f"the program sees no GPU: {gpu[0] if gpu else 'none is listed'}")
    if f.a.cuda != "standin" and cuda_tool("cuobjdump"): resources(f)


def resources(f):
    """Registers and stack of every kernel, as the machine code has them."""
    done = f.run([cuda_tool("cuobjdump"), "--dump-resource-usage", f.trainer], 40)
    found = re.findall(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", done.out)
    with_stack = [name for name, _, stack, _, local in found if int(stack) or int(local)]
    f.fact("built", name="kernels", value=len(found))
    if found: f.fact("built", name="registers, most", value=max(int(row[1]) for row in found))
    f.fact("built", name="kernels with a stack", value=", ".join(with_stack[:8]) or "none")


# --- latencies, copies ---

def latencies(f):
    latency, runs = f.program("bench/gpu_latency"), 20 if f.a.quick else 1000
    if latency:
        for way in ("spin",) if f.a.quick else ("spin", "yield", "block"):
            f.json_lines([latency, way, str(runs)], 15, way=way)
    exchange = f.program("bench/gpu_exchange")
    if not exchange: return
    done = f.run([exchange, *(["5", "10000", "100000"] if f.a.quick else [])], 25)
    if done.code: return f.wrong(f"gpu_exchange: {done.words()}")
    for line in done.out.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if re.match(r"^\| [a-z]", line) and len(cells) >= 4 and cells[1] != "MB":
            f.fact("copy", name=cells[0], mb=cells[1], us=cells[2], gb_per_s=cells[3],
                   share=cells[4] if len(cells) > 4 else "")


# --- operations and algorithms ---

def operations(f):
    program = f.program("bench/gpu_operations")
    if not program: return
    if f.a.quick: jobs = [["mlp", "64", "4", "fp32", "2"], ["cnn", "8x8x1", "2", "bf16", "2"]]
    else:
        jobs = [[model, INPUT[model], str(BATCH[model]), precision] for model, precision in
                (("alexnet", "bf16"), ("mlp", "fp32"), ("alexnet", "fp32"), *PAIRS[3:])]
    if not f.a.quick:
        jobs[4:4] = [["all"], ["layers:conv 32 3x3 relu; batch_norm; dropout 0.5; avgpool 2; flatten; dense",
                               "32x32x3", "128", "fp32"]]
    for job in dict.fromkeys(map(tuple, jobs)): f.json_lines([program, *job], 30)
    if f.a.quick: return
    # Operations that the others have not.
    for network, precision in ("resnet20", "bf16"), ("mobilenet", "fp32"):
        text = open(os.path.join(ROOT, "models", "layers", f"{network}.txt")).read()
        layers = "; ".join(line.split("#")[0].strip()
                           for line in text.splitlines() if line.split("#")[0].strip())
        f.json_lines([program, f"layers:{layers}", "32x32x3", "128", precision], 30, model=network)


# --- tests, parity, the same bits ---

def run_tests(f, names, seconds):
    left = set(names)

    def tell(line):
        found = re.match(r"(ok  |FAIL|skip) (\S+?):?(?: (.*))?$", line)
        if not found or found.group(2) not in left: return
        left.remove(found.group(2))
        f.fact("test", name=found.group(2), result=found.group(1).strip(), words=found.group(3) or "")
        if found.group(1) != "ok  ": f.wrong(line)
    done = f.run([os.path.join(ROOT, "tests", "runner"), f.build, f.trainer, *names], seconds, tell,
                 TEST_SECONDS=f"{max(1, min(seconds, f.stage_left() - 2)):.0f}")
    if left: f.wrong(f"not run: {', '.join(sorted(left))}: {done.words()}")


def parity(f, model, dataset, batch, precisions, device="gpu:0"):
    """{precision: error of the first gradients}, or what was said instead of an error."""
    errors = {}

    def keep(line):
        found = re.match(r"\S+ (fp32|tf32|bf16): (?:within|BEYOND) \S+ (\S+)$", line)
        if found: errors[found.group(1)] = float(found.group(2))
    bounds = ",".join(f"{precision}={BOUNDS[precision]:g}" for precision in precisions)
    done = f.run([sys.executable, os.path.join(ROOT, "tests", "gpu_parity.py"), f.trainer, model, dataset,
                  batch, device, "--each", bounds], 60, keep)
    return errors, done


def compare_gradients(f, model, dataset, batch):
    errors, done = parity(f, model, dataset, batch, BOUNDS)
    for precision, bound in BOUNDS.items():
        error, verdict = errors.get(precision), "ok"
        # Where values are rounded, a ReLU's or a pool's choice may fall the other way, and then the gradient
        # is another one: what is beyond the bound may be so on the CPU, too, in bf16, which rounds more than
        # tf32.
        if error is None:
            verdict = f"not run: {done.words() if done.code > 1 or done.code < 0 else 'nothing was said'}"
        elif not error <= bound and precision != "fp32":
            own = parity(f, model, dataset, batch, ["bf16"], "cpu:0")[0].get("bf16")
            verdict = ("beyond, and the CPU has no bf16 to compare with" if own is None
                       else f"the CPU's in bf16: {own:.2e}" if error <= 1.25 * own else "beyond")
        elif not error <= bound: verdict = "beyond"
        f.fact("gradients", model=model, dataset=dataset, batch=batch, precision=precision, error=error,
               bound=bound, verdict=verdict)
        if verdict == "beyond" or verdict.startswith("not run"):
            f.wrong(f"first gradients of {model} on {dataset} in {precision}: {verdict} "
                    f"{'' if error is None else error}")


def same_bits(f, model, dataset, batch):
    sums = []
    for _ in range(2):
        summary, out = f.train(f"--model={model}", f"--dataset={dataset}", f"--batch={batch}", "--epochs=2",
                               "--strategy=sync", "--devices=gpu:0,gpu:0", "--deterministic",
                               "--optimizer=nesterov:rate=0.02")
        if summary:
            sums.append(f.first_line([sys.executable, os.path.join(ROOT, "tests", "gpu_parity.py"), "--sum",
                                      os.path.join(out, "model.safetensors")]))
        shutil.rmtree(out, ignore_errors=True)
    same = len(sums) == 2 and sums[0] == sums[1] != ""
    f.fact("bits", model=model, dataset=dataset, batch=batch, first=sums[0][:16] if sums else "-",
           second=sums[1][:16] if len(sums) > 1 else "-", same=same)
    if len(sums) == 2 and not same:
        f.wrong(f"{model} on {dataset}: sync on gpu:0,gpu:0 with --deterministic left other bits the second "
                "time")


def curve(f, model, dataset, batch, epochs, rate):
    """The same run on the CPU and on the GPU: what each epoch left is to agree."""
    found = []
    for device in "cpu:0", "gpu:0":
        summary, out = f.train(f"--model={model}", f"--dataset={dataset}", f"--batch={batch}",
                               f"--epochs={epochs}", f"--optimizer=sgd:rate={rate}", "--schedule=constant",
                               "--strategy=sync", f"--devices={device}")
        if not summary: return
        found.append(list(csv.DictReader(open(os.path.join(out, "epochs.csv")))))
    apart = max(abs(float(cpu["test_accuracy"]) - float(gpu["test_accuracy"])) for cpu, gpu in zip(*found))
    loss = max(abs(float(cpu["train_loss"]) - float(gpu["train_loss"])) / float(found[0][0]["train_loss"])
               for cpu, gpu in zip(*found))
    f.fact("curve", model=model, dataset=dataset, epochs=epochs, accuracies_apart=apart, losses_apart=loss)
    if len(found[0]) != len(found[1]) or not apart <= 0.01 or not loss <= 0.01:
        f.wrong(f"training curves of {model} on {dataset}: test accuracies are up to {apart:.4f} apart, "
                f"training losses {100 * loss:.2f} % of the first; expected at most 0.01 and 1 %")


def mean_of_a_round(f, links):
    done = f.run([f.trainer, "--model=mlp", "--dataset=digits:take=320", "--batch=16", "--epochs=2",
                  "--strategy=sync", "--quiet", "--explain", "--devices=gpu:0", f"--links={links}",
                  "--replace", f"--out={f.scratch}/links"])
    said = re.search(r"^mean of a round: (.*)$", done.out, re.M)
    f.fact("mean", links=links, said=said.group(1) if said else "-")
    if done.code: f.wrong(f"sync on gpu:0, --links={links}: {done.words()}")
    elif links == "collective" and not (said and said.group(1).startswith("NCCL ")):
        f.wrong(f"sync on gpu:0: NCCL is not used: {said.group(1) if said else '-'}")


def tests(f):
    if not f.has_trainer(): return
    names = ["cuda/vectors"] if f.a.quick else tests_of_backend()
    alone = ["cuda/gather", "cuda/measure"]  # one fills the GPU's memory up for a while, one measures
    built = [name for name in names if os.path.exists(os.path.join(f.build, "tests", name))]
    for name in set(names) - set(built): f.wrong(f"tests/{name} is not built")
    quick = f.a.quick
    if not quick: run_tests(f, [name for name in built if name in alone], 20)
    run_tests(f, [name for name in built if name not in alone], 0.6 * f.stage_left())
    for job in ([("mlp", "digits", 32)] if quick
                else [("mlp", "mnist", 100), ("cnn", "mnist", 100), ("alexnet", "cifar10:crop=24", 32)]):
        compare_gradients(f, *job)
    for job in ([("mlp", "digits:take=320", 16)] if quick
                else [("mlp", "mnist:take=6400", 32), ("alexnet", "cifar10:augment=distnet,take=2560", 32)]):
        same_bits(f, *job)
    for links in "collective", "copies": mean_of_a_round(f, links)
    for job in ([("mlp", "digits:take=320", 16, 2, 0.1)] if quick
                else [("mlp", "digits", 16, 5, 0.1), ("cnn", "digits", 32, 3, 0.05)]):
        curve(f, *job)
    if not quick: run_tests(f, ["cuda/train"], 60)


# --- steps beside PyTorch's ---

def our_speed(f, model, precision):
    dataset = "digits:take=64" if f.a.quick else "cifar10:augment=distnet" if model == "alexnet" else "mnist"
    batch, epochs = 8 if f.a.quick else BATCH[model], 2 if f.a.quick else EPOCHS[model]
    found, _ = f.train(f"--model={model}", f"--dataset={dataset}", f"--batch={batch}",
                       "--optimizer=sgd:rate=0.01", "--no-test", "--devices=gpu:0",
                       f"--precision={precision}", f"--epochs={epochs}")
    if not found: return
    rate = found["examples_per_s"]
    f.fact("ours", model=model, precision=precision, batch=batch, examples_per_s=round(rate),
           us=round(1e6 * batch / rate, 3), epochs=epochs, dataset=f.data.name(dataset))


def speed(f):
    pairs = [("mlp", "fp32"), ("cnn", "bf16")] if f.a.quick else PAIRS
    first, rest = pairs[:4], pairs[4:]
    if f.has_trainer():
        for pair in first: our_speed(f, *pair)
    if f.torch and (f.torch_sees or f.a.cuda == "standin"):
        device, more = ("cuda", []) if f.torch_sees else ("cpu", [])
        more += ["--seconds=0.05", "--batch=4"] if f.a.quick else ["--seconds=0.5"]
        reserve = min(4 * len(rest), 0.2 * f.stage_left()) if not f.a.quick else 0
        # What is compiled takes long, and there may be no time for all of it.
        f.json_lines([f.torch, os.path.join(ROOT, "bench", "torch_steps.py"), f"--device={device}", *more,
                      f"--until={f.stage_left() - reserve:.0f}"], f.stage_left(), f.open)
    elif f.torch: f.wrong("PyTorch sees no GPU")
    if os.path.exists(f.trainer):
        for pair in rest: our_speed(f, *pair)


# --- two workers on one GPU ---

def strategies():
    names = sorted(os.path.splitext(os.path.basename(path))[0]
                   for path in glob.glob(os.path.join(ROOT, "strategies", "*.c")))
    first = [name for name in ("sync", "async-lockfree", "ssp", "local-sgd") if name in names]
    more = ["async-lockfree:apply=worker",
            "async-lockfree:apply=worker,adds=atomic"] if "async-lockfree" in names else []
    return first + more + [name for name in names if name not in first]


def promised(name, summary):
    """What of a strategy's promises to two workers does not hold."""
    lost, stale, dropped = summary["lost_updates"], summary["staleness"]["max"], summary["dropped"]
    bound = re.match(r"ssp:bound=(\d+)", summary["strategy"])
    wrong = []
    if lost and ("apply=worker" not in name or "adds=atomic" in name):
        wrong.append(f"{lost:.0f} updates lost")
    if stale and re.match(r"sync|backup|local-sgd|easgd", name):
        wrong.append(f"staleness {stale:.0f}, promised 0")
    if bound and stale > 3 * int(bound.group(1)) + 1: wrong.append(f"staleness {stale:.0f}")
    if dropped and not name.startswith("backup"): wrong.append(f"{dropped:.0f} gradients dropped")
    return wrong


def workers(f):
    if not f.has_trainer(): return
    dataset = "digits:take=320" if f.a.quick else "mnist:take=20000"
    for name in (strategies()[:3] if f.a.quick else strategies()):
        summary, _ = f.train("--model=mlp", f"--dataset={dataset}", f"--batch={16 if f.a.quick else 100}",
                             f"--strategy={name}", "--devices=gpu:0,gpu:0", "--homes=gpu",
                             f"--epochs={1 if f.a.quick else 20}", "--optimizer=sgd:rate=0.1", seconds=20)
        if not summary: continue
        wrong = promised(name, summary)
        f.fact("strategy", name=name, examples_per_s=round(summary["examples_per_s"]),
               updates=summary["updates"], lost=summary["lost_updates"],
               staleness_mean=summary["staleness"]["mean"], staleness_max=summary["staleness"]["max"],
               accuracy=summary["test_accuracy"], wrong=", ".join(wrong))
        for words in wrong: f.wrong(f"{name}: {words}")


# --- profile and sanitizer ---

NCU = ("gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,"
       "sm__throughput.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active,"
       "launch__registers_per_thread,launch__grid_size,launch__block_size")


def short_training(f, model, *options):
    dataset = "digits:take=64" if f.a.quick or model == "mlp" else "cifar10:crop=24,take=384"
    return [f.trainer, f"--model={model}", f"--dataset={dataset}",
            f"--batch={16 if f.a.quick or model == 'mlp' else 128}", "--epochs=1", "--quiet", "--replace",
            f"--out={f.scratch}/short", *options]


def profile(f):
    if not f.has_trainer(): return
    for model, precision in [("mlp", "fp32")] if f.a.quick else [("alexnet", "bf16"), ("mlp", "fp32")]:
        done = f.run(short_training(f, model, "--explain", "--devices=gpu:0", f"--precision={precision}"), 20)
        if done.code: f.wrong(f"--explain of {model}: {done.words()}")
        for line in done.out.splitlines()[:120]:
            f.fact("explain", model=model, precision=precision, line=line[:220])
    ncu = cuda_tool("ncu")
    if not ncu: return f.open("ncu: it is neither on the path nor in the toolkit")
    for model, precision in ("alexnet", "bf16"), ("mlp", "fp32"):
        # The clocks are left as they are; without the contests of algorithms, as the first that can be is
        # taken.
        done = f.run([ncu, "--clock-control=none", "--csv", "--page=raw", f"--metrics={NCU}",
                      "--launch-count=160", "--target-processes=all",
                      *short_training(f, model, "--devices=gpu:0", f"--precision={precision}",
                                      "--deterministic")], 40)
        if not keep_profile(f, model, precision, done.out):
            f.open(f"ncu of {model}: {done.words() if done.code else 'no rows'}")


def keep_profile(f, model, precision, text):
    """Sums by kernel of ncu's rows, and all of them to profile.csv. The row after the names has units."""
    begin = text.find('"ID"')
    if begin < 0: return False
    with open(os.path.join(f.folder, "profile.csv"), "a") as file:
        file.write(f"# {model} {precision}\n{text[begin:][:6 << 20]}\n")
    rows = list(csv.DictReader(text[begin:].splitlines()))
    time_name = (next((name for name in rows[0] if name.startswith("gpu__time_duration")), None)
                 if rows else None)
    kernels = {}
    unit = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3,
            "msecond": 1e3}.get(rows[0].get(time_name, ""), 1e-3) if time_name else 1e-3
    for row in rows:
        try: values = [float(row[name].replace(",", "")) for name in (time_name, *NCU.split(",")[1:5])]
        except (KeyError, ValueError, AttributeError): continue  # units
        kernels.setdefault(row["Kernel Name"][:100], []).append(values)
    for name, values in sorted(kernels.items(), key=lambda pair: -sum(row[0] for row in pair[1])):
        mean = [sum(row[i] for row in values) / len(values) for i in range(5)]
        f.fact("kernel", model=model, precision=precision, name=name, runs=len(values),
               us=round(mean[0] * unit, 3), dram=round(mean[1], 1), sm=round(mean[2], 1),
               warps=round(mean[3], 1), registers=round(mean[4]))
    return bool(kernels)


def sanitizer(f):
    tool = cuda_tool("compute-sanitizer")
    if not f.has_trainer(): return
    if not tool: return f.open("compute-sanitizer: it is neither on the path nor in the toolkit")
    for check, model, devices in (("memcheck", "mlp", "gpu:0,gpu:0"), ("memcheck", "alexnet", "gpu:0"),
                                  ("racecheck", "mlp", "gpu:0,gpu:0"), ("racecheck", "alexnet", "gpu:0"),
                                  ("synccheck", "alexnet", "gpu:0"), ("initcheck", "mlp", "gpu:0,gpu:0")):
        done = f.run([tool, f"--tool={check}", "--error-exitcode=99", f.trainer, f"--model={model}",
                      "--dataset=digits:take=64", "--batch=16", "--epochs=1", "--strategy=async-lockfree",
                      f"--devices={devices}", "--quiet", "--replace", f"--out={f.scratch}/{check}"], 40)
        said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", done.out + done.error)
        # Some guests may train on a GPU, but not look into it.
        refused = re.search(r"^=+ *(.*not supported.*)", done.out + done.error, re.M | re.I)
        f.fact("sanitizer", tool=check, model=model, devices=devices, said=said[-1] if said else done.words())
        if done.code == TIMED_OUT or (done.code and refused):
            f.open(f"compute-sanitizer {check} of {model}: {refused.group(1) if refused else done.words()}")
        # What the libraries read before they wrote it is theirs, so initcheck is told of only.
        elif done.code and check != "initcheck":
            f.wrong(f"compute-sanitizer {check} of {model}: {said[-1] if said else done.words()}")


# --- accuracy ---

def accurate(f, model, must, options, seconds, target=None):
    summary, _ = f.train(f"--model={model}", *options, "--devices=gpu:0",
                         *([f"--target-accuracy={target}"] if target else []), seconds=seconds)
    if not summary: return
    f.fact("accuracy", model=model, options=" ".join(options), epochs=round(summary["epochs"], 2),
           train_seconds=summary["train_seconds"], examples_per_s=round(summary["examples_per_s"]),
           accuracy=summary["test_accuracy"], must=must, target_s=summary["target_s"])
    if must and summary["test_accuracy"] < must:
        f.wrong(f"{model}: accuracy {summary['test_accuracy']:.4f}, expected at least {must}")


def accuracy(f):
    if not f.has_trainer(): return
    if f.a.quick:
        return accurate(f, "mlp", 0.3, ["--dataset=digits:take=320", "--batch=16", "--epochs=1"], 30)
    accurate(f, "mlp", 0.9, ["--dataset=digits", "--batch=16", "--epochs=20"], 30)
    if f.data.real("mnist"):
        accurate(f, "mlp", 0.97,
                 ["--dataset=mnist:take=55000", "--batch=100", "--optimizer=sgd:rate=0.5", "--epochs=20"], 40,
                 0.97)
    else: f.open("mlp on MNIST to 97 %: mnist/ is not here (./trainer fetch mnist; TRAINER_DATA)")
    if not f.data.real("cifar10"):
        return f.open("alexnet and fast on CIFAR-10: cifar10/ is not here (./trainer fetch cifar10; "
                      "TRAINER_DATA)")
    for model, options in RECIPES.items():
        accurate(f, model, TARGETS[model] - 0.005, options.split(), f.stage_left(), TARGETS[model])


# --- all of it ---

STAGES = [("environment", 75, environment), ("build", 170, build), ("latencies", 45, latencies),
          ("operations", 100, operations), ("tests", 110, tests), ("speed", 150, speed),
          ("workers", 70, workers), ("profile", 45, profile), ("sanitizer", 60, sanitizer),
          ("accuracy", 200, accuracy)]


def parse():
    beside = os.path.join(os.path.dirname(ROOT), "shared", "datasets")
    p = argparse.ArgumentParser(prog="gpu-facts", description=__doc__.split("\n\n")[0])
    p.add_argument("--report", required=True, help="folder for what is found")
    p.add_argument("--seconds", type=float, default=560, help="all of it ends within so many seconds")
    p.add_argument("--cuda", default="1", choices=["1", "standin"], help="of the build")
    p.add_argument("--build", default="build", help="build folder")
    p.add_argument("--data", default=os.environ.get("TRAINER_DATA", beside if os.path.isdir(beside) else ""),
                   help="folder of mnist/ and cifar10/ ($TRAINER_DATA)")
    p.add_argument("--python", help="the Python that has PyTorch (default this one, else /usr/bin/python3)")
    p.add_argument("--through", help="a program that runs each command: PROGRAM STAGE COMMAND...")
    p.add_argument("--stages", type=lambda text: text.split(","),
                   help="only these, with environment and build, which the others need")
    p.add_argument("--quick", action="store_true",
                   help="tiny sizes: shows that the script works, measures nothing")
    a = p.parse_args()
    if a.seconds < 10: p.error("--seconds: expected at least 10")
    if a.stages:
        names = [name for name, _, _ in STAGES]
        for name in a.stages:
            if name not in names: p.error(f"--stages: found {name}; expected {', '.join(names)}")
        a.stages += names[:2]
    if a.cuda == "standin": a.quick = True
    return a


def end(number, frame):
    raise Ended("its time is over" if number == signal.SIGALRM else f"ended by {signal.Signals(number).name}")


def main():
    f = Facts(parse())
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM: signal.signal(number, end)
    signal.setitimer(signal.ITIMER_REAL, f.a.seconds - RESERVE / 2)
    try: code = f.stages()
    except Ended as why:
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP: signal.signal(number, signal.SIG_IGN)
        f.wrong(str(why))
        f.fact("stage", verdict="cut short", seconds=None)
        code = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    f.stage = "end"
    f.fact("end", code=code, seconds=round(time.monotonic() - f.began, 1))
    f.close()
    print(open(os.path.join(f.folder, "summary.txt")).read(), end="", flush=True)
    sys.exit(code)


if __name__ == "__main__": main()
