"""The data sets of bench/gpu_facts.py: MNIST and CIFAR-10 where they are, else made-up pictures of
their shapes and numbers, said as such."""
import glob, os, random

FILES = {"mnist": ["mnist/train-images*"],
         "cifar10": ["cifar10/data_batch_1.bin*", "cifar-10-batches-bin/data_batch_1.bin*"]}


class Data:
    def __init__(self, given, folder):
        """folder: where links to the data sets, and made-up ones, are put; it is what the program is told."""
        self.folder, self.found = folder, {}
        os.makedirs(folder)
        for dataset, files in FILES.items():
            for place in (given, os.path.expanduser("~/.cache/trainer")):
                hits = [hit for file in files
                        for hit in (glob.glob(os.path.join(place, file)) if place else [])]
                if hits and dataset not in self.found:
                    self.found[dataset] = os.path.dirname(os.path.abspath(hits[0]))

    def prepare(self):
        for dataset in FILES:
            if dataset in self.found:
                os.symlink(self.found[dataset],
                           os.path.join(self.folder, os.path.basename(self.found[dataset])))
            elif dataset == "mnist": make_mnist(os.path.join(self.folder, "mnist"))
            else: make_cifar10(os.path.join(self.folder, "cifar10"))

    def real(self, dataset):
        return dataset in self.found

    def name(self, text):
        """Of a --dataset, what it is in words."""
        dataset = text.split(":")[0]
        return (text if dataset not in FILES or
                self.real(dataset) else f"made-up pictures in the form of {text}")

    def words(self):
        return ", ".join(f"{dataset} {'itself' if self.real(dataset) else 'made up'}" for dataset in FILES)


def make_mnist(folder):
    rng = random.Random(1)
    os.makedirs(folder)
    for part, count in ("train", 60000), ("t10k", 10000):
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(b"".join(n.to_bytes(4, "big") for n in (0x803, count, 28, 28)) +
                       rng.randbytes(count * 784))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(b"".join(n.to_bytes(4, "big") for n in (0x801, count)) +
                       bytes(i % 10 for i in range(count)))


def make_cifar10(folder):
    rng = random.Random(1)
    os.makedirs(folder)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        records = bytearray(rng.randbytes(10000 * 3073))
        records[::3073] = bytes(i % 10 for i in range(10000))
        with open(os.path.join(folder, name), "wb") as file: file.write(records)
