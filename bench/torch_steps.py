#!/usr/bin/env python3
"""What a PyTorch user gets on this GPU: steps of mlp, cnn and alexnet, eager, replayed and compiled, in
one process.

usage: bench/torch_steps.py [--device cuda|cpu] [--seconds 1] [--batch N] [--until SECONDS]

Networks, batches and precisions are those that bench/gpu_facts.py trains beside it; the input is on the
GPU already. `eager` is the usual loop; `replay` is that step captured by hand as a CUDA graph, with a
copy of the batch into it; `compiled` is torch.compile's "reduce-overhead". All are warmed up, and the
time is that of as many steps as go into --seconds, waited for once. Prints a line of JSON for each, as
soon as it is known: what is worth most goes first, and what fails is a line with its status.
"""
import argparse, json, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch_peer import Alex, Mlp


class Cnn(nn.Module):
    shape = (1, 28, 28)
    def __init__(self):
        super().__init__()
        self.c, self.a, self.b = nn.Conv2d(1, 32, 3), nn.Linear(32 * 13 * 13, 128), nn.Linear(128, 10)
    def forward(self, x): return self.b(F.relu(self.a(F.max_pool2d(F.relu(self.c(x)), 2).flatten(1))))


MODELS = {"mlp": (Mlp, 100), "cnn": (Cnn, 100), "alexnet": (Alex, 128)}
FIRST = [("mlp", "fp32"), ("alexnet", "bf16"), ("alexnet", "fp32"), ("cnn", "fp32"), ("alexnet", "tf32"),
         ("mlp", "tf32"), ("mlp", "bf16"), ("cnn", "bf16"), ("cnn", "tf32")]
BATCHES = 16


class Steps:
    """A network and its training step."""

    def __init__(self, a, model, precision, compiled):
        self.device, (kind, self.batch) = torch.device(a.device), MODELS[model]
        self.batch, self.narrow, self.cuda = a.batch or self.batch, precision == "bf16", a.device == "cuda"
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.benchmark = True
        self.x = torch.randn(BATCHES, self.batch, *kind.shape, device=self.device)
        self.y = torch.randint(0, 10, (BATCHES, self.batch), device=self.device)
        self.net = kind().to(self.device)
        if len(kind.shape) == 3: self.net = self.net.to(memory_format=torch.channels_last)
        self.run = torch.compile(self.net, mode="reduce-overhead") if compiled else self.net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def input(self, i):
        x = self.x[i % BATCHES]
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

    def update(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.narrow):
            loss = F.cross_entropy(self.run(x).float(), y)
        loss.backward()
        self.optimizer.step()

    def step(self, i): self.update(self.input(i), self.y[i % BATCHES])

    def captured(self):
        """A function that replays the step as a CUDA graph."""
        x, y, side = self.input(0).clone(), self.y[0].clone(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3): self.update(x, y)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): self.update(x, y)

        def replay(i):
            x.copy_(self.x[i % BATCHES])
            y.copy_(self.y[i % BATCHES])
            graph.replay()
        return replay

    def wait(self):
        if self.cuda: torch.cuda.synchronize()

    def microseconds(self, step, seconds):
        """Of one step, as many at a time as the wait for them is small."""
        for i in range(5): step(i)
        self.wait()
        count, many, began = 0, 10, time.perf_counter()
        while True:
            for i in range(many): step(count + i)
            self.wait()
            count, took = count + many, time.perf_counter() - began
            if took >= seconds: return 1e6 * took / count
            many = max(10, min(10000, int(count / took * seconds / 4)))


def measure(a, model, precision, way):
    line = dict(what="torch", model=model, precision=precision, way=way, device=a.device)
    try:
        began = time.perf_counter()
        steps = Steps(a, model, precision, way == "compiled")
        us = steps.microseconds(steps.captured() if way == "replay" else steps.step, a.seconds)
        line.update(batch=steps.batch, us=round(us, 3), examples_per_s=round(steps.batch / us * 1e6),
                    took_s=round(time.perf_counter() - began, 1), status="ok")
    except Exception as why:  # whatever PyTorch raises: the others are measured all the same
        line.update(status=f"{type(why).__name__}: {' '.join(str(why).split())[:300]}")
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--seconds", type=float, default=1, help="of steps that are timed")
    p.add_argument("--batch", type=int, default=0, help="of all networks (default: each its own)")
    p.add_argument("--until", type=float,
                   help="begins nothing that is likely to end later than so many seconds after the start")
    a = p.parse_args()
    began = time.monotonic() - 3  # for Python and PyTorch to start
    torch.set_num_threads(1 if a.device == "cpu" else torch.get_num_threads())
    print(json.dumps(dict(what="versions", torch=torch.__version__, cuda=torch.version.cuda,
                          cudnn=torch.backends.cudnn.version(),
                          gpu=torch.cuda.get_device_name(0) if a.device == "cuda" else "none")), flush=True)
    longest = 0.0  # so far, of one of them
    ways = ["eager", "replay"] if a.device == "cuda" else ["eager"]
    jobs = ([(way, *pair) for pairs in (FIRST[:4], FIRST[4:]) for way in ways for pair in pairs] +
            [("compiled", *pair) for pair in FIRST])
    for way, model, precision in jobs:
        begun = time.monotonic()
        if a.until and begun - began + longest > a.until:
            print(json.dumps(dict(what="torch", model=model, precision=precision, way=way,
                                  status="no time was left")), flush=True)
            continue
        measure(a, model, precision, way)
        longest = max(longest, time.monotonic() - begun)


if __name__ == "__main__": main()
