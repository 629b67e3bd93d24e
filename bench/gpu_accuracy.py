#!/usr/bin/env python3
"""gpu-accuracy: how good, and how soon: alexnet on CIFAR-10, mlp on MNIST, every strategy, in under 8 minutes; appends to docs/measurements/gpu-report.md.

usage: bench/gpu_accuracy.py [--recipe 'OPTION...'] [--epochs N[,N]] [--trainer PROGRAM] [--report FILE] [--data DIR] [--seconds 450] [--quick]

alexnet trains by the recipe of docs/recipes.md, one worker with the batch of its two, in as many epochs as fit into 10 seconds and into 5 minutes
(150 at most; or --epochs), the schedule spread over them, and tells when an epoch first ended with the accuracy 0.8601. --recipe replaces the
options of the run (not the model and device). mlp on MNIST must come to 0.97; then every strategy trains once, two replicas on gpu:0. Exit code 1 when a run fails or mlp falls short, 4 where there is no
GPU. Needs both data sets in --data or $TRAINER_DATA (./trainer fetch mnist; ./trainer fetch cifar10).
"""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_report import Check, table

RECIPE = ("--dataset=cifar10:whiten=1,crop=24,flip=1,standardize=image,cutout=8 --precision=bf16 --batch=64 --strategy=sync "
          "--optimizer=nesterov:rate=0.02 --schedule=cosine:warmup=0.02,end=0.05 --average=0.9997")
TARGET, GOAL_S, LONG_S, MOST_EPOCHS = 0.8601, 10, 300, 150
MNIST = ["--model=mlp", "--dataset=mnist:take=55000", "--batch=100", "--optimizer=sgd:rate=0.5"]


def alexnet(c):
    recipe = c.a.recipe.split()
    if c.a.quick: recipe = ["--dataset=digits:take=128", "--batch=64", *[option for option in recipe if not option.startswith(("--dataset", "--batch"))]]
    options = ["--model=alexnet", *recipe, "--devices=gpu:0", f"--target-accuracy={TARGET}"]
    if c.a.epochs: plan = [int(number) for number in c.a.epochs.split(",")]
    elif c.a.quick: plan = [1]
    else:
        first, _ = c.train(*options, "--epochs=2", seconds=200)
        if not first: return
        an_epoch = first["examples"] / 2 / first["examples_per_s"] * 1.15  # with its evaluation
        plan = sorted({max(1, min(MOST_EPOCHS, int(limit / an_epoch))) for limit in (GOAL_S, min(LONG_S, c.left() - 100))})
    rows = []
    for epochs in plan:
        summary, _ = c.train(*options, f"--epochs={epochs}")
        if not summary: continue
        reached = summary["target_s"]
        rows.append((epochs, f"{summary['train_seconds']:.1f}", f"{summary['examples_per_s']:,.0f}", f"{100 * summary['test_accuracy']:.2f}",
                     f"{reached:.1f} s" if isinstance(reached, float) and reached == reached else "not reached"))
    c.part(f"alexnet on CIFAR-10 [{100 * TARGET:.2f} % in {GOAL_S} s]",
           table(["epochs", "seconds of training", "examples/s", "accuracy, %", f"time to {100 * TARGET:.2f} %"], rows) + f"\n\n`{' '.join(options)}`")


def mnist(c, must, options):
    epochs = 1 if c.a.quick else 20
    summary, _ = c.train(*options, "--devices=gpu:0", f"--epochs={epochs}", seconds=120)
    if not summary: return
    if summary["test_accuracy"] < must: c.fail(f"mlp on MNIST: accuracy {summary['test_accuracy']:.4f}, expected at least {must}")
    c.part(f"mlp on MNIST [{100 * must:.0f} %]", table(["epochs", "seconds of training", "examples/s", "accuracy, %"],
           [(epochs, f"{summary['train_seconds']:.1f}", f"{summary['examples_per_s']:,.0f}", f"{100 * summary['test_accuracy']:.2f}")]) + f"\n\n`{' '.join(options)}`")


def strategies(c, options):
    rows = []
    for row in c.bench(*options, "--devices=gpu:0,gpu:0", f"--strategies={'sync,async-lockfree' if c.a.quick else 'all'}", f"--epochs={1 if c.a.quick else 5}",
                       "--repeats=1") or []:
        rows.append((row["strategy"], row["devices"], f"{float(row['examples_per_s']):,.0f}", f"{100 * float(row['test_accuracy']):.2f}",
                     f"{float(row['staleness_mean']):.2f}"))
        if int(row["failed"]): c.fail(f"{row['strategy']}: exit code {row['exit_code']}")
    c.part("Every strategy once, mlp, five epochs" if not c.a.quick else "Strategies, mlp", table(["strategy", "devices", "examples/s", "accuracy, %", "staleness"], rows))


def main():
    c = Check("gpu-accuracy", __doc__.splitlines()[0],
              [("--recipe", dict(default=RECIPE, help=f"options of alexnet's run (default '{RECIPE}')")),
               ("--epochs", dict(help="of alexnet: N, or N,N (default: as fit into 10 seconds and into 5 minutes)"))])
    c.prepare([])
    options, must = (["--model=mlp", "--dataset=digits:take=320", "--batch=16"], 0.3) if c.a.quick else (MNIST, 0.97)
    if c.a.quick or c.has("mnist"):
        mnist(c, must, options)
        if c.has_time("every strategy once", 30): strategies(c, options)
    else: c.lacks("mlp and the strategies", "mnist")
    if c.a.quick or c.has("cifar10"): alexnet(c)
    else: c.lacks("alexnet", "cifar10")
    c.end()


if __name__ == "__main__": main()
