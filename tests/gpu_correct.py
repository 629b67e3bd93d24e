#!/usr/bin/env python3
"""gpu-correct: what must be right on a machine with a GPU, in under 8 minutes; appends to docs/measurements/gpu-report.md.

usage: tests/gpu_correct.py [--trainer PROGRAM] [--report FILE] [--data DIR] [--seconds 450] [--quick]

The GPU backend's own tests on the real GPU; first gradients beside the CPU's reference kernels in fp32, tf32 and bf16; steps together,
the same bits twice; training curves beside the CPU's; every strategy's promises with two replicas on one GPU; that NCCL loads and computes; compute-sanitizer, where it
is, on short runs. Needs the CUDA toolkit, gcc, make and python3; exit code 1 when something is wrong, 4 where there is no GPU.
"""
import csv, glob, os, re, shutil, sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
from gpu_report import ROOT, STANDIN, Check, table

BOUNDS = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 1e-2}  # |g - g'| / |g'|


def tests_of_backend():
    names = ["cuda/" + os.path.splitext(os.path.basename(path))[0] for path in sorted(glob.glob(os.path.join(ROOT, "tests", "cuda", "*.c")))]
    return [name for name in names if name != "cuda/host"] + ["device/gpu"]  # cuda/host is the stand-in's alone


def run_tests(c, title, *groups):
    rows = []
    for names in groups:
        _, out, error = c.run([os.path.join(ROOT, "tests", "runner"), c.build, c.trainer, *names], TEST_SECONDS=f"{max(1, c.left() - 30):.0f}")
        for name in names:
            line = re.search(rf"^(ok  |FAIL|skip) {name}\b[: ]*(.*)$", out, re.M)
            rows.append((name, line.group(1).strip() if line else "not run", line.group(2) if line else ""))
            if line and line.group(1) == "ok  ": continue
            said = re.search(rf"^FAIL {name}\b.*\n((?:     \| .*\n?){{0,5}})", out, re.M)
            c.fail(f"{name}: {line.group(0) if line else 'not run ' + error.strip()[-200:]} {' '.join(said.group(1).split()) if said else ''}")
    c.part(title, table(["test", "result", ""], rows))


def error_of(c, job, device):
    """The relative error of the first gradients on a device, None when it did not run, and what was said last."""
    model, (dataset, folder), batch, precision = job
    _, out, error = c.run([sys.executable, os.path.join(ROOT, "tests", "gpu_parity.py"), c.trainer, model, dataset, str(batch), device,
                           "--bound", str(BOUNDS[precision]), f"--precision={precision}"], 240, **({"TRAINER_DATA": folder} if folder else {}))
    last = (out.strip().splitlines() or [error.strip()[-200:]])[-1]
    found = re.search(r": (?:within|BEYOND) \S+ (\S+)$", last)
    return float(found.group(1)) if found else None, last


def verdict_of(c, job, error, said):
    """Where values are rounded, a ReLU's or a pool's choice may fall the other way, and then the gradient is another one: what is beyond
    the bound may be so on the CPU, too, in bf16, which rounds more than tf32."""
    model, (dataset, folder), batch, precision = job
    what = f"first gradients of {model} on {dataset} in {precision}"
    if error is not None and error <= BOUNDS[precision]: return "ok"
    if error is None or precision == "fp32":
        c.fail(f"{what}: {said}")
        return "FAIL"
    own, _ = error_of(c, (model, (dataset, folder), batch, "bf16"), "cpu:0")
    if own is None:
        c.open.append(f"{what}: {error:.2e}, beyond {BOUNDS[precision]:g}, and the CPU here has no bf16 to compare with")
        return "beyond, not compared"
    if error <= 1.25 * own: return f"the CPU's in bf16: {own:.2e}"
    c.fail(f"{what}: {error:.2e}; the CPU's in bf16: {own:.2e}")
    return "FAIL"


def parity(c):
    if c.a.quick: jobs = [("mlp", ("digits", None), 32, precision) for precision in BOUNDS] + [("cnn", ("digits", None), 8, "fp32")]
    else:
        digits = "mnist", None if c.has("mnist") else c.made_up("mnist")
        images = "cifar10:crop=24", None if c.has("cifar10") else c.made_up("cifar10")
        trials = [("mlp", digits, 100), ("cnn", digits, 100), ("lenet", digits, 100), ("alexnet", images, 32)]
        jobs = [(model, data, batch, precision) for model, data, batch in trials for precision in BOUNDS]
    with ThreadPoolExecutor(1 if STANDIN in c.gpu else 4) as pool: found = list(pool.map(lambda job: error_of(c, job, "gpu:0"), jobs))
    rows = [(job[0], job[1][0], job[2], job[3], "-" if error is None else f"{error:.2e}", f"{BOUNDS[job[3]]:g}", verdict_of(c, job, error, said))
            for job, (error, said) in zip(jobs, found)]
    c.part("First gradients beside the CPU's reference kernels",
           table(["model", "data set", "batch", "precision", "error", "bound", ""], rows) +
           "\n\nThe norm of the difference beside that of the gradient: in fp32 of the array where it is worst, else of the whole gradient.")


def repeatable(c):
    runs = [("mlp", "digits:take=320" if c.a.quick else "mnist:take=6400" if c.has("mnist") else "digits", 16 if c.a.quick else 32)]
    if not c.a.quick: runs.append(("alexnet", "cifar10:augment=distnet,take=2560" if c.has("cifar10") else "digits:take=640", 32))
    rows = []
    for model, dataset, batch in runs:
        sums = []
        for _ in range(2):
            summary, out = c.train(f"--model={model}", f"--dataset={dataset}", f"--batch={batch}", "--epochs=2", "--strategy=sync",
                                   "--devices=gpu:0,gpu:0", "--deterministic", "--optimizer=nesterov:rate=0.02")
            sums.append(c.run([sys.executable, os.path.join(ROOT, "tests", "gpu_parity.py"), "--sum", os.path.join(out, "model.safetensors")])[1].strip()
                        if summary else "")
            shutil.rmtree(out, ignore_errors=True)
        same = sums[0] == sums[1] != ""
        rows.append((model, dataset, batch, sums[0][:16], sums[1][:16], "ok" if same else "FAIL"))
        if not same: c.fail(f"{model} on {dataset}: sync on gpu:0,gpu:0 with --deterministic left other bits the second time")
    c.part("The same bits twice: sync on gpu:0,gpu:0, --deterministic",
           table(["model", "data set", "batch", "weights, first run", "second run", ""], rows))


def curve(c, model, dataset, batch, epochs, rate):
    """The same run on the CPU and on the GPU: what each epoch left is to agree."""
    found = []
    for device in "cpu:0", "gpu:0":
        summary, out = c.train(f"--model={model}", f"--dataset={dataset}", f"--batch={batch}", f"--epochs={epochs}", f"--optimizer=sgd:rate={rate}",
                               "--schedule=constant", "--strategy=sync", f"--devices={device}")
        if not summary: return
        found.append(list(csv.DictReader(open(os.path.join(out, "epochs.csv")))))
    names = [name for name in ("train_loss", "test_loss", "test_accuracy") if name in found[0][0]]
    rows = [(i + 1, *[f"{float(side[name]):.4f}" for name in names for side in (cpu, gpu)]) for i, (cpu, gpu) in enumerate(zip(*found))]
    apart = max(abs(float(cpu["test_accuracy"]) - float(gpu["test_accuracy"])) for cpu, gpu in zip(*found))
    loss = max(abs(float(cpu["train_loss"]) - float(gpu["train_loss"])) / float(found[0][0]["train_loss"]) for cpu, gpu in zip(*found))
    if len(found[0]) != len(found[1]) or not apart <= 0.01 or not loss <= 0.01:
        c.fail(f"training curves of {model} on {dataset}: test accuracies are up to {apart:.4f} apart, training losses {100 * loss:.2f} % of the first; expected at most 0.01 and 1 %")
    c.part(f"Training curves of {model} on {dataset}", table(["epoch"] + [f"{name}, {device}" for name in names for device in ("cpu:0", "gpu:0")], rows))


def curves(c):
    if c.a.quick: return [curve(c, *job) for job in (("mlp", "digits:take=320", 16, 2, 0.1), ("cnn", "digits:take=160", 16, 1, 0.1))]
    curve(c, *(("mlp", "mnist", 100, 5, 0.5) if c.has("mnist") else ("mlp", "digits", 16, 5, 0.1)))
    # Small pictures: the CPU may have but its reference kernels.
    for job in ("cnn", "digits", 32, 3, 0.05), ("alexnet", "digits", 32, 4, 0.05):
        if c.has_time(f"training curves of {job[0]}", 60): curve(c, *job)


def promises(c):
    dataset = "digits:take=320" if c.a.quick else "mnist:take=20000" if c.has("mnist") else "digits"
    strategies = "sync,ssp,async-lockfree:apply=worker" if c.a.quick else "all"
    rows, workers, found = [], 2, []
    for some in strategies, "async-lockfree:apply=worker,adds=atomic":
        more = c.bench(f"--strategies={some}", "--devices=gpu:0,gpu:0", "--model=mlp", f"--dataset={dataset}", "--batch=32", "--homes=gpu",
                       f"--epochs={1 if c.a.quick else 2}", "--optimizer=sgd:rate=0.1", "--repeats=1") or []
        found += [row for row in more if not found or row["baseline"] == "0"]
    for row in found:
        name, lost, stale, dropped = row["strategy"], float(row["lost_updates"]), float(row["staleness_max"]), float(row["dropped"])
        bound = re.match(r"ssp:bound=(\d+)", name)
        wrong = []
        if int(row["failed"]) or not int(row["runs"]): wrong.append(f"failed with exit code {row['exit_code']}")
        if lost and ("apply=worker" not in name or "adds=atomic" in name): wrong.append(f"{lost:.0f} updates lost")
        if stale and re.match(r"sync|backup|local-sgd|easgd", name): wrong.append(f"staleness {stale:.0f}, promised 0")
        if bound and stale > (workers - 1) * (2 * int(bound.group(1)) + 1) + int(bound.group(1)): wrong.append(f"staleness {stale:.0f}")
        if dropped and not name.startswith("backup"): wrong.append(f"{dropped:.0f} gradients dropped")
        rows.append((name, row["devices"], f"{float(row['updates']):.0f}", f"{lost:.0f}", f"{stale:.0f}", f"{dropped:.0f}",
                     f"{100 * float(row['test_accuracy']):.1f}", ", ".join(wrong) or "ok"))
        if wrong: c.fail(f"{name}: {', '.join(wrong)}")
    if len(rows) < 2: c.fail("trainer bench left no rows")
    c.part(f"Promises of the strategies, two replicas on one GPU, mlp on {dataset}",
           table(["strategy", "devices", "updates", "lost", "staleness, most", "dropped", "accuracy, %", ""], rows))


def links(c):
    gpus = [line.split()[0] for line in c.run([c.trainer, "devices"])[1].splitlines() if re.match(r"gpu:\d+ ", line)]
    rows, accuracies = [], []
    for devices in dict.fromkeys(["gpu:0", ",".join(gpus)]):
        for links in "collective", "copies":
            folder = f"{c.scratch}/links-{links}-{len(devices)}"
            code, out, error = c.run([c.trainer, "--model=mlp", "--dataset=digits:take=320", "--batch=16", "--epochs=2", "--strategy=sync", "--quiet", "--explain",
                                      f"--devices={devices}", f"--links={links}", f"--shards={1 + devices.count(',')}", "--replace", f"--out={folder}"])
            said = re.search(r"^mean of a round: (.*)$", out, re.M)
            accuracy = re.search(r"^Test-Accuracy: (.*)$", out, re.M)
            accuracies.append(float(accuracy.group(1)) if accuracy else 0.0)
            rows.append((devices, links, said.group(1) if said else "-", f"{100 * accuracies[-1]:.1f}"))
            if code: c.fail(f"sync on {devices}, --links={links}: exit code {code}: {error.strip()[-300:]}")
            elif links == "collective" and not (said and said.group(1).startswith("NCCL ")): c.fail(f"sync on {devices}: NCCL is not used: {rows[-1][2]}")
        if abs(accuracies[-1] - accuracies[-2]) > 0.05: c.fail(f"sync on {devices}: the accuracy by NCCL is {accuracies[-2]}, that by copies {accuracies[-1]}")
    c.part("The mean of a round, by NCCL and by copies; on one GPU NCCL only loads and computes with one rank",
           table(["devices", "--links", "the mean of a round", "accuracy, %"], rows))


def sanitize(c):
    tool = shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda/bin/compute-sanitizer")), None)
    if not tool:
        c.open.append("compute-sanitizer: it is neither on the path nor in /usr/local/cuda/bin")
        return
    runs = [("memcheck", "mlp", "gpu:0,gpu:0"), ("memcheck", "alexnet", "gpu:0"), ("racecheck", "mlp", "gpu:0,gpu:0"), ("initcheck", "mlp", "gpu:0,gpu:0")]
    rows = []
    for check, model, devices in runs:
        if not c.has_time(f"compute-sanitizer {check} of {model}", 30): continue
        code, out, error = c.run([tool, f"--tool={check}", "--error-exitcode=99", c.trainer, f"--model={model}", "--dataset=digits:take=64", "--batch=16",
                                  "--epochs=1", "--strategy=async-lockfree", f"--devices={devices}", "--quiet", "--replace", f"--out={c.scratch}/{check}-{model}"], 100)
        said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", out + error)
        rows.append((check, model, devices, said[-1] if said else f"exit code {code}"))
        # Some guests of a virtual machine may train on a GPU, but not look into it.
        refused = code and re.search(r"^=+ *(.*not supported.*)", out + error, re.M)
        if code == 124 or refused: c.open.append(f"compute-sanitizer {check} of {model}: {refused.group(1) if refused else error}")
        # What the libraries read before they wrote it is theirs, so initcheck is told of only.
        elif code and check != "initcheck": c.fail(f"compute-sanitizer {check} of {model}: {rows[-1][3]}")
    c.part("compute-sanitizer, async-lockfree, four steps", table(["tool", "model", "devices", "found"], rows))


def main():
    c = Check("gpu-correct", __doc__.splitlines()[0])
    names = tests_of_backend()
    c.prepare([f"tests/{name}" for name in names])
    parity(c)
    repeatable(c)
    curves(c)
    # cuda/gather fills the GPU's memory up for a while, so it runs alone.
    alone = ["cuda/gather"]
    run_tests(c, "Tests of the backend", *([["cuda/vectors"]] if c.a.quick else [[name for name in names if name not in alone], alone]))
    if c.has_time("every strategy's promises", 20): promises(c)
    if c.has_time("the mean of a round", 20): links(c)
    if not c.a.quick and c.has_time("tests/cuda/train.sh", 60): run_tests(c, "Training, every strategy wherever replicas and shards are", ["cuda/train"])
    if not c.a.quick and STANDIN not in c.gpu: sanitize(c)
    c.end()


if __name__ == "__main__": main()
