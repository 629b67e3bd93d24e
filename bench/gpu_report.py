"""What gpu-correct, gpu-speed and gpu-accuracy share: what they need, what the machine is, runs of the program, and the report.

Each of the three is one command that ends within its --seconds: what there is no time left for is named in the report, never left out
unseen. Without --trainer the program is built first (CUDA=1). Exit code 0: all is as it should be; 1: something is not; 4: no GPU.
"""
import argparse, csv, ctypes, datetime, glob, json, os, platform, random, re, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ERROR_INTERNAL, ERROR_DEVICE = 1, 4
STANDIN = "stand-in"  # in the name of a GPU that tests/standin plays


def first_line(command):
    """What a command prints first; "" where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0].strip() if done.returncode == 0 and done.stdout.strip() else ""


def driver_gpus():
    """How many GPUs the driver has; asks its library, as nvidia-smi need not be there."""
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
        return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0
    except (OSError, AttributeError):
        return 0


def nccl_version(library):
    number = ctypes.c_int(0)
    library.ncclGetVersion(ctypes.byref(number))
    return number.value


def table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


class Check:
    """One of the three commands: its options, its clock, its report."""

    def __init__(self, name, about, options=()):
        p, beside = argparse.ArgumentParser(prog=name, description=about), os.path.join(os.path.dirname(ROOT), "shared", "datasets")
        p.add_argument("--trainer", help="a program that is there already, with its build folder beside it (default: built first)")
        p.add_argument("--report", help="file to append to (default docs/measurements/gpu-report.md)")
        p.add_argument("--data", default=os.environ.get("TRAINER_DATA", beside if os.path.isdir(beside) else ""),
                       help="folder of mnist/ and cifar10/ ($TRAINER_DATA, or ../shared/datasets)")
        p.add_argument("--seconds", type=float, default=450, help="all of it ends within so many seconds")
        p.add_argument("--quick", action="store_true", help="tiny sizes: shows that the script works, measures nothing")
        for flag, settings in options: p.add_argument(flag, **settings)
        self.a = p.parse_args()
        self.name, self.began, self.parts, self.wrong, self.open = name, time.monotonic(), [], [], []
        self.scratch = tempfile.mkdtemp(prefix=name)
        self.command = " ".join(["make", name] if len(sys.argv) == 1 else [os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]])
        self.build = os.path.join(ROOT, "build")

    # --- what must be there ---

    def stop(self, code, words):
        shutil.rmtree(self.scratch, ignore_errors=True)
        print(f"{self.name}: {words}", file=sys.stderr)
        sys.exit(code)

    def prepare(self, targets):
        """Finds or builds the program; make's further targets are relative to the build folder."""
        if self.a.trainer:
            self.trainer = os.path.abspath(self.a.trainer)
            beside = os.path.dirname(self.trainer)
            if os.path.exists(os.path.join(beside, "flags")): self.build = beside
        else:
            self.trainer = os.path.join(ROOT, "trainer")
            if driver_gpus() == 0: self.stop(ERROR_DEVICE, "no GPU here, nothing is checked")
            for tool in "make", "gcc", "g++":
                if not shutil.which(tool): self.stop(ERROR_INTERNAL, f"{tool} is not on the path; it is needed to build")
            if not shutil.which("nvcc") and not os.path.exists("/usr/local/cuda/bin/nvcc"):
                self.stop(ERROR_INTERNAL, "nvcc is neither on the path nor in /usr/local/cuda/bin; it is needed to build")
            library = ["gcc", "-shared", "-o", os.path.join(self.scratch, "probe"), "-l:libz.so.1"]
            if subprocess.run(library, capture_output=True).returncode:
                self.stop(ERROR_INTERNAL, "zlib's library, libz.so.1, is not here (Debian: zlib1g); there is no build without")
            print(f"{self.name}: building", flush=True)
            code, _, said = self.run(["make", "-C", ROOT, "CUDA=1", f"PYTHON={sys.executable}", f"-j{os.cpu_count()}", "all",
                                      *[os.path.join("build", t) for t in targets]])
            if code == 124: self.stop(ERROR_INTERNAL, f"the build {said}")
            said = [line for line in said.splitlines() if "error" in line or "***" in line]
            if code: self.stop(ERROR_INTERNAL, f"the build failed: {' / '.join(said[:3])}")
        found = subprocess.run([self.trainer, "devices"], capture_output=True, text=True)
        lines = [line for line in found.stdout.splitlines() if line.startswith("gpu:0 ")]
        if not lines: self.stop(ERROR_DEVICE, "no GPU here, nothing is checked" + "".join(f" ({l})" for l in found.stdout.splitlines() if l.startswith("gpu:")))
        self.gpu = lines[0][len("gpu:0 "):].strip()
        if STANDIN in self.gpu and not self.a.report: self.stop(2, "the stand-in's figures mean nothing: expected --report=FILE")
        self.a.report = self.a.report or os.path.join(ROOT, "docs", "measurements", "gpu-report.md")

    def machine(self):
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        release = re.search(r"release (\S+),", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout) if os.path.exists(nvcc) else None
        cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
        rows = [("GPU", self.gpu),
                ("driver", first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]) or "unknown"),
                ("CUDA", release.group(1) if release else "unknown"),
                ("cuDNN", self.version_of("libcudnn.so", lambda library: library.cudnnGetVersion())),
                ("NCCL", self.version_of("libnccl.so", nccl_version)),
                ("CPU", f"{cpu.group(1) if cpu else platform.machine()}, {len(os.sched_getaffinity(0))} cores"),
                ("version", first_line(["git", "-C", ROOT, "describe", "--always", "--dirty"]) or "unknown"),
                ("command", f"`{self.command}`")]
        return table(["machine", ""], rows)

    def version_of(self, name, ask):
        """What a library says of itself that the program loads: the system's, or one in the folders that the build knows."""
        try: folders = open(os.path.join(self.build, "flags.cuda")).read().split()[-1].split(":")
        except (OSError, IndexError): folders = []
        for path in [*glob.glob(f"/usr/lib/*/{name}.[0-9]*"), *[found for folder in folders for found in sorted(glob.glob(f"{folder}/{name}.[0-9]*"))]]:
            try: number = ask(ctypes.CDLL(path))
            except (OSError, AttributeError): continue
            return f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
        return "unknown"

    # --- the clock ---

    def left(self):
        return self.a.seconds - (time.monotonic() - self.began)

    def has_time(self, what, seconds):
        """Whether so many seconds are left; notes what there was no time for."""
        if self.left() >= seconds: return True
        self.open.append(what)
        return False

    # --- running ---

    def run(self, command, seconds=None, **more):
        """exit code, standard output, standard error; killed with all that it has started when the time is over, which is code 124."""
        limit = max(1.0, min(self.left(), seconds or self.left()))
        environment = dict(os.environ)
        if self.a.data: environment["TRAINER_DATA"] = os.path.abspath(self.a.data)
        environment.update(more)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL,
                              start_new_session=True) as child:
            try: out, error = child.communicate(timeout=limit)
            except BaseException as why:
                os.killpg(child.pid, signal.SIGKILL)
                if not isinstance(why, subprocess.TimeoutExpired): raise
                return 124, "", f"took more than {limit:.0f} s"
        return child.returncode, out, error

    def train(self, *options, seconds=None):
        """A run of the program: (summary or None, folder); what went wrong is noted."""
        out = tempfile.mkdtemp(dir=self.scratch)
        code, _, error = self.run([self.trainer, "--quiet", "--checkpoint-every=0", "--replace", f"--out={out}", *options], seconds)
        if code:
            self.fail(f"`trainer {' '.join(options)}`: exit code {code}: {error.strip()[-300:]}")
            return None, out
        return json.load(open(os.path.join(out, "summary.json"))), out

    def bench(self, *options, seconds=None):
        """trainer bench: its rows (dicts of bench.csv), None when it left none."""
        out = tempfile.mkdtemp(dir=self.scratch)
        code, _, error = self.run([self.trainer, "bench", "--quiet", f"--out={out}", *options], seconds)
        if code: self.fail(f"`trainer bench {' '.join(options)}`: exit code {code}: {error.strip()[-300:]}")
        try: return list(csv.DictReader(open(os.path.join(out, "bench.csv"))))
        except OSError: return None

    # --- data ---

    def has(self, dataset):
        """Whether mnist or cifar10 is in one of the folders that the program looks through."""
        files = {"mnist": ["mnist/train-images*"], "cifar10": ["cifar10/data_batch_1.bin*", "cifar-10-batches-bin/data_batch_1.bin*"]}
        folders = [folder for folder in (self.a.data, os.path.expanduser("~/.cache/trainer")) if folder]
        return any(glob.glob(os.path.join(folder, file)) for folder in folders for file in files[dataset])

    def lacks(self, what, dataset):
        """Notes what is left out because the data set is not here."""
        self.open.append(f"{what}: {dataset}/ is not in {self.a.data or '~/.cache/trainer'} (./trainer fetch {dataset}; --data=DIR or $TRAINER_DATA says where)")

    def made_up(self, dataset):
        """A folder with files of random pixels in the data set's form and size, for where the real ones are not here."""
        data, rng = os.path.join(self.scratch, "data"), random.Random(1)
        folder = os.path.join(data, dataset)
        if os.path.exists(folder): return data
        os.makedirs(folder)
        if dataset == "mnist":
            for part, count in ("train", 60000), ("t10k", 10000):
                with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
                    file.write(b"".join(n.to_bytes(4, "big") for n in (0x803, count, 28, 28)) + rng.randbytes(count * 784))
                with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
                    file.write(b"".join(n.to_bytes(4, "big") for n in (0x801, count)) + bytes(i % 10 for i in range(count)))
        else:
            for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
                records = bytearray(rng.randbytes(10000 * 3073))
                records[::3073] = bytes(i % 10 for i in range(10000))
                with open(os.path.join(folder, name), "wb") as file: file.write(records)
        return data

    # --- the report ---

    def fail(self, words):
        self.wrong.append(words)
        print(f"{self.name}: {words}", flush=True)

    def part(self, title, text):
        """A part of the report, printed at once."""
        self.parts.append(f"### {title}\n\n{text}\n")
        print(f"\n{title}\n\n{text}", flush=True)

    def end(self):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        verdict = "NOT passed" if self.wrong else "passed, as far as it went" if self.open else "passed"
        parts = list(self.parts)
        if self.wrong: parts.append("### What is wrong\n\n" + "\n".join(f"* {words}" for words in self.wrong) + "\n")
        if self.open: parts.append("### What there was no time or tool for\n\n" + "\n".join(f"* {words}" for words in self.open) + "\n")
        text = f"\n## {self.name}, {now}: {verdict}\n\n{self.machine()}\n\n" + "\n".join(parts)
        with open(self.a.report, "a") as file: file.write(text)
        shutil.rmtree(self.scratch, ignore_errors=True)
        for words in self.open: print(f"{self.name}: left out: {words}")
        print(f"\n{self.name}: {verdict}, {len(self.wrong)} wrong; took {time.monotonic() - self.began:.0f} s; appended to {os.path.relpath(self.a.report)}")
        sys.exit(1 if self.wrong else 0)
