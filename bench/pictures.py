#!/usr/bin/env python3
"""Examples/s from a folder of JPEGs and from its pack, beside torch.utils.data.DataLoader with
torchvision, run in turn.

usage: bench/pictures.py [--trainer ./trainer [OTHER...]] [--count 50000] [--pixels 160x192] [--size 72]
                         [--crop 64] [--rounds 3] [--folder FOLDER] [--python python3]

Makes --count JPEGs of --pixels in ten classes under --folder (default: build/pictures-COUNT-PIXELS; kept
for the next time): noise with the spectrum of photographs, quality 90, 4:2:0. Then, on two cores, an
epoch of each kind:
  folder  the program decodes the folder by two threads and trains a softmax regression on it, both from
          start to end
  pack    `trainer pack` writes the folder as a pack; training on that, from start to end
  loader  an epoch of a DataLoader with two workers, whose batches nobody uses, from the listing of the
          folder on, without the time that Python takes to import its modules
Each scales the middle of a picture to --size, cuts out a square of --crop at a random place and mirrors
half of them. Seconds are of the clock and of the processor, of all processes. Other programs (--trainer
with several) take their turns, too. Needs NumPy, Pillow, PyTorch and torchvision for --python.
"""
import argparse, json, os, resource, shutil, statistics, subprocess, sys, tempfile, time

CLASSES, TESTS, BATCH, WORKERS = 10, 100, 128, 2


def make(folder, count, height, width):
    """folder/{train,test}/CLASS/NUMBER.jpg, the same ones every time"""
    import numpy
    from PIL import Image
    random = numpy.random.default_rng(1)
    side = 2 * max(height, width)
    rates = numpy.hypot(numpy.fft.fftfreq(side)[:, None], numpy.fft.rfftfreq(side)[None]) + 1 / side
    canvases = []
    for _ in range(3 * CLASSES):
        waves = random.normal(size=(4, *rates.shape)) + 1j * random.normal(size=(4, *rates.shape))
        planes = numpy.fft.irfft2(waves / rates**1.6, s=(side, side))
        planes = planes[:1] + 0.4 * planes[1:]  # what the colours have in common is most of it
        canvases.append(numpy.clip(128 + 50 * planes / planes.std(), 0,
                                   255).astype("uint8").transpose(1, 2, 0))
    for part, pictures in ("train", count), ("test", TESTS):
        for i in range(pictures):
            label = i % CLASSES
            os.makedirs(f"{folder}/{part}/{label}", exist_ok=True)
            y, x = random.integers(side - height), random.integers(side - width)
            pixels = canvases[label + CLASSES * random.integers(3)][y:y + height, x:x + width]
            Image.fromarray(pixels).save(f"{folder}/{part}/{label}/{i:06d}.jpg", quality=90,
                                         subsampling="4:2:0")


def loader(a):
    """Run in a process of its own: prints the seconds and how many examples came."""
    import torch
    from torchvision import datasets, transforms
    def used():
        return sum(r.ru_utime + r.ru_stime
                   for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    began, before, examples = time.monotonic(), used(), 0
    change = transforms.Compose([transforms.Resize(a.size), transforms.CenterCrop(a.size),
                                 transforms.RandomCrop(a.crop), transforms.RandomHorizontalFlip(),
                                 transforms.ToTensor()])
    batches = torch.utils.data.DataLoader(datasets.ImageFolder(f"{a.folder}/train", change), batch_size=BATCH,
                                          shuffle=True, num_workers=WORKERS)
    for images, _ in batches: examples += len(images)
    del images, batches
    print(json.dumps([time.monotonic() - began, used() - before, examples]))


def timed(command):
    """seconds of the clock, of the processor"""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0: sys.exit(f"bench/pictures.py: {' '.join(command)} failed")
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def train(trainer, dataset):
    out = tempfile.mkdtemp()
    found = timed([trainer, f"--dataset={dataset}", "--model=softmax", "--optimizer=sgd:rate=0.001",
                   "--strategy=async-lockfree", "--devices=cpu:0,cpu:1", f"--batch={BATCH}", "--epochs=1",
                   "--checkpoint-every=0", "--quiet", "--replace", f"--out={out}"])
    shutil.rmtree(out)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--trainer", nargs="+", default=["./trainer"])
    p.add_argument("--python", default="python3")
    p.add_argument("--count", type=int, default=50000); p.add_argument("--pixels", default="160x192")
    p.add_argument("--size", type=int, default=72); p.add_argument("--crop", type=int, default=64)
    p.add_argument("--rounds", type=int, default=3); p.add_argument("--folder", default="")
    p.add_argument("--step", choices=("make", "loader"), help=argparse.SUPPRESS)
    a = p.parse_args()
    a.folder = a.folder or f"build/pictures-{a.count}-{a.pixels}"
    if a.step == "make": return make(a.folder + ".part", a.count, *map(int, a.pixels.split("x")))
    if a.step == "loader": return loader(a)
    again = [a.python, __file__, "--folder", a.folder, "--count", str(a.count), "--pixels", a.pixels,
             "--size", str(a.size), "--crop", str(a.crop)]
    if not os.path.isdir(a.folder):
        shutil.rmtree(a.folder + ".part", ignore_errors=True)
        subprocess.run([*again, "--step=make"], check=True)
        os.rename(a.folder + ".part", a.folder)
    settings, pack = f"crop={a.crop},flip=1", a.folder + ".pack"
    pictures = f"pictures:dir={a.folder},size={a.size}x{a.size},threads={WORKERS}"
    kinds = {}

    def note(kind, seconds, processor):
        kinds.setdefault(kind, []).append((a.count / seconds, processor / a.count * 1e3))
        print(f"{kind:24s} {seconds:8.2f} s {processor:8.2f} s of the processor {a.count / seconds:9.0f} "
              "examples/s", flush=True)

    for _ in range(a.rounds):
        for trainer in a.trainer:
            mark = f" ({trainer})" if len(a.trainer) > 1 else ""
            note("folder" + mark, *train(trainer, f"{pictures},{settings}"))
            note("writing the pack" + mark, *timed([trainer, "pack", pictures, pack, "--replace"]))
            note("pack" + mark, *train(trainer, f"pack:file={pack},{settings}"))
        found = json.loads(subprocess.run([*again, "--step=loader"], check=True, capture_output=True,
                                          text=True).stdout)
        assert found[2] == a.count, found
        note("loader", *found[:2])
    for kind, rows in kinds.items():
        ratios = [mine[0] / theirs[0] for mine, theirs in zip(rows, kinds["loader"])]
        print(f"{kind:24s} median {statistics.median(r[0] for r in rows):9.0f} examples/s, "
              f"{statistics.median(r[1] for r in rows):.3f} ms of the processor each, "
              f"{statistics.median(ratios):.2f} times the loader")


if __name__ == "__main__":
    main()
