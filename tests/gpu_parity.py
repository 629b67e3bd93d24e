#!/usr/bin/env python3
"""First-step gradients on two devices compared, array by array.

usage: tests/gpu_parity.py TRAINER MODEL DATASET BATCH DEVICE [--bound 1e-4] [OPTION...]

       tests/gpu_parity.py TRAINER MODEL DATASET BATCH DEVICE --each fp32=1e-4,bf16=1e-2
                                   one precision after the other

       tests/gpu_parity.py --sum FILE     a sum over the arrays of a model.safetensors, to compare two by

A step of plain gradient descent with rate 1 takes the gradient off the weights: what a run of one step on
DEVICE leaves behind is compared with one on cpu:0 with the reference kernels. Prints for each array |g -
g'| / |g'|; exit code 1 when one is above the bound, or, with a bound of 1e-3 or more (for bf16, which
leaves little of small arrays), when that of the whole gradient is. OPTIONs go to the run on DEVICE only.
"""
import hashlib, json, math, os, struct, subprocess, sys, tempfile


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    arrays = {}
    for name, about in header.items():
        if name == "__metadata__": continue
        begin, end = about["data_offsets"]
        arrays[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return arrays


def run(trainer, model, dataset, batch, rate, options):
    with tempfile.TemporaryDirectory() as out:
        command = [trainer, f"--model={model}",
                   f"--dataset={dataset}{',' if ':' in dataset else ':'}take={batch}", f"--batch={batch}",
                   "--epochs=1", f"--optimizer=sgd:rate={rate}", "--strategy=sync", "--quiet", "--prefetch=0",
                   f"--out={out}", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return read(os.path.join(out, "model.safetensors"))


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--sum":
        arrays = read(arguments[1])
        return print(hashlib.sha256(repr(sorted(arrays.items())).encode()).hexdigest())
    bounds = [("", "1e-4")]
    for name in "--bound", "--each":
        if name not in arguments: continue
        i = arguments.index(name)
        bounds = [pair.rpartition("=")[::2] for pair in arguments[i + 1].split(",")]
        del arguments[i:i + 2]
    trainer, model, dataset, batch, device, *options = arguments
    usual = ["--devices=cpu:0", "--kernels=reference"]
    start = run(trainer, model, dataset, batch, 0, usual)
    theirs = run(trainer, model, dataset, batch, 1, usual)
    beyond = False
    for precision, bound in bounds:
        chosen = [f"--precision={precision}"] if precision else []
        beyond |= compare(model, precision, float(bound), start, theirs,
                          run(trainer, model, dataset, batch, 1, [f"--devices={device}", *options, *chosen]))
    sys.exit(beyond)


def compare(model, precision, bound, start, theirs, ours):
    worst, squares, all_squares = 0.0, 0.0, 0.0
    for name in start:
        right = [a - b for a, b in zip(start[name], theirs[name])]
        found = [a - b for a, b in zip(start[name], ours[name])]
        size = norm(right)
        off = norm([a - b for a, b in zip(found, right)])
        error = off / size if size > 0 else off
        squares, all_squares = squares + off * off, all_squares + size * size
        worst = max(worst, error if error == error else math.inf)
        print(f"{model:8} {name:16} |g| {size:10.4g}  error {error:.2e}")
    if bound >= 1e-3: worst = math.sqrt(squares / all_squares) if squares == squares else math.inf
    print(f"{model}{precision and ' ' + precision}: {'within' if worst <= bound else 'BEYOND'} {bound:g}: "
          f"{worst:.2e}", flush=True)
    return worst > bound


main()
