"""tests/library/python.sh runs this: the module of python/, as its users see it; with the word "short" its
first part alone. Exit code 1 at the first thing that is wrong."""

import copy
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import trainer
from trainer import _library

faulthandler.dump_traceback_later(100, exit=True)  # what hangs is named
random = np.random.default_rng(1)
x = random.uniform(-1, 1, (1000, 2)).astype(np.float32)
y = (x[:, 0] > x[:, 1]).astype(np.int32)
settings = dict(model="mlp:hidden=8", devices="cpu:0", threads=1, epochs=3, batch=50,
                optimizer="adam:rate=0.05")


def wrong(words, call, kind=ValueError):
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"not wrong: {words}")


def refused(code, words, call):
    try:
        call()
    except trainer.Error as error:
        assert error.code == code and words in str(error), (error.code, str(error))
    else:
        raise AssertionError(f"not refused: {words}")


# --- training ---
training = trainer.Training(x, y, test=(x[:100], y[:100]), **settings)
assert any(kept is x for kept in training._kept) and any(kept is y for kept in training._kept), (
    "arrays were copied")
before = x.copy(), y.copy()
steps = list(training.steps())
assert len(steps) == 60 and [s.step for s in steps] == list(range(1, 61)), len(steps)
assert steps[-1].loss < steps[0].loss and steps[0].examples == 50 and steps[0].worker == 0
assert training.result.test_score > 0.9 and training.result.updates == 60, training.result
assert (before[0] == x).all() and (before[1] == y).all(), "the arrays were changed"
said = training.predict(x[:100])
assert said.shape == (100, 2) and np.allclose(said.sum(axis=1), 1, atol=1e-5)
assert np.isclose((said.argmax(axis=1) == y[:100]).mean(), training.result.test_score)
assert (training.predict(np.asfortranarray(x[:100].astype(float))) == said).all(), (
    "another layout of the same numbers")
weights = training.weights
assert {name: w.shape for name, w in weights.items()} == {"dense1/kernel": (2, 8), "dense1/bias": (8,),
                                                          "dense2/kernel": (8, 2), "dense2/bias": (2,)}
kept = weights["dense1/kernel"].copy()

# the same settings, the same weights; and callbacks
other, seen = trainer.Training(x, y, **settings), []
other.run(epoch=lambda e: seen.append(e.epoch))
assert seen == [1, 2, 3]
for name, w in other.weights.items():
    assert (w == weights[name]).all(), name

# what was learnt stays what it was
training.run()
assert (weights["dense1/kernel"] == kept).all(), "the weights of the run before have changed"

if sys.argv[1:] == ["short"]:  # as it was installed
    sys.exit(0)

# arrays that do not fit are not taken for others
ones = np.eye(2, dtype=int)[y]
wrong("expected one class per example, (1000,)", lambda: trainer.Training(x, ones))
wrong("the class 2147483648", lambda: trainer.Training(x, y.astype(np.int64) << 31))
wrong("the class 2147483646", lambda: trainer.Training(x, y + (2**31 - 2) - y))
wrong("of which there are some", lambda: trainer.Training(x[:0], y[:0]))
wrong("of which there are some", lambda: trainer.Training(y, y))
wrong("expected (x, y)", lambda: trainer.Training(x, y, test=x))
wrong("without x", lambda: trainer.Training(y=y, test=(x, y)))
wrong("x without y", lambda: trainer.Training(x))
wrong("y has 1 numbers per example, expected 2",
      lambda: trainer.Training(x, x, test=(x, x[:, :1]), task="values"))
for few in y[:10], y[:0], 1:
    wrong("expected as many examples", lambda: trainer.Training(x, few))
assert trainer.Training(x, y, test=False, **settings).run().updates == 60
for shape in (3, 0), (50_000_000, 0), (3, 1), (), (5,):
    wrong("expected examples of 2 numbers", lambda: training.predict(np.zeros(shape, np.float32)))
assert training.predict(x[:0]).shape == (0, 2)
for owner in training, trainer.Graph(), trainer.Session(trainer.Graph()):
    for how in copy.copy, copy.deepcopy, pickle.dumps:
        wrong("can be neither copied nor pickled", lambda: how(owner), TypeError)

# Ctrl-C ends it, whatever it does, and is what it always is
interrupted = """
import sys, threading, time, numpy as np, trainer
x = np.random.default_rng(1).uniform(-1, 1, (1000, 2)).astype(np.float32)
training = trainer.Training(x, (x[:, 0] > 0).astype(int), model="softmax", epochs=1000000, devices="cpu:0")
ways = {"run": training.run, "step": lambda: training.run(step=lambda s: None),
        "epoch": lambda: training.run(epoch=lambda e: None),
        "steps": lambda: [None for _ in training.steps()]}
print("begun", flush=True)
try:
    ways[sys.argv[1]]()
except KeyboardInterrupt:
    seen = []
    stopped = training.result.updates
    training.run(step=lambda s: seen.append(s) or len(seen) < 500)
    print("interrupted", stopped > 0, len(seen), flush=True)
try:
    time.sleep(20)
except KeyboardInterrupt:
    print("and again", flush=True)
"""
for way in "run", "step", "epoch", "steps":
    process = subprocess.Popen([sys.executable, "-c", interrupted, way], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    said = process.stdout.readline()
    time.sleep(0.3) # it comes to the other try
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert said == "interrupted True 500\n" and out == "and again\n" and err == "", (way, said, out, err)

# whoever breaks off ends the training, also when slow; what a callback raises comes out
slow = trainer.Training(x, y, **{**settings, "epochs": 200})
for step in slow.steps():
    time.sleep(0.05)
    if step.step == 5:
        break
assert slow.result.updates < 2000, slow.result
long = trainer.Training(x, y, **{**settings, "epochs": 100000})
for step in long.steps():
    if step.step == 10:
        break
assert long.result is not None and long.result.updates < 100000 * 20
try:
    long.run(step=lambda s: 1 // 0)
    raise AssertionError("the exception is lost")
except ZeroDivisionError:
    pass

# also what is raised in the last step, or at the end of the last epoch, after which nothing can be stopped
for told in "step", "epoch":
    last = trainer.Training(x, y, **settings)
    count = {"step": 60, "epoch": 3}[told]
    try:
        last.run(**{told: lambda s: 1 // (count - getattr(s, told))})
        raise AssertionError(f"the exception of the last {told} is lost")
    except ZeroDivisionError:
        pass
assert last.run().updates == 60, "a callback that is gone has ended the next run"

# who breaks off at once, or at the last step, ends that training and no other one
for at in 1, 60:
    broken = trainer.Training(x, y, **settings)
    for step in broken.steps():
        if step.step == at:
            break
    assert broken.run().updates == 60, at

# as the program: it prints, writes its files, goes on with a run, and heeds Ctrl-C
program = """
import os, signal, sys, trainer
training = trainer.Training(as_program=True, dataset="digits:take=320", model="softmax", devices="cpu:0",
                            threads=1,
                            **dict(setting.split("=") for setting in sys.argv[2:]))
# once: a second one kills
interrupt = lambda epoch: epoch.epoch == 1 and os.kill(os.getpid(), signal.SIGINT) or True
result = training.run(epoch=interrupt if sys.argv[1] == "interrupt" else None)
print("updates", result.updates, "learnt", len(training.weights), flush=True)
"""


def as_program(*arguments):
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


said = as_program("train", "epochs=2", "out=run", "quiet=1")
assert "Test-Accuracy: " in said and "Final Cost: " in said and "updates 20 learnt 2" in said, said
assert os.path.exists("run/summary.json") and os.path.exists("run/model.safetensors"), os.listdir(".")
said = as_program("train", "epochs=3", "resume=run", "quiet=1")
assert "Test-Accuracy: " in said and "updates 30 learnt 2" in said, said
said = as_program("interrupt", "epochs=100000", "out=interrupted", "quiet=1")
assert 0 < int(said.split("updates ")[1].split()[0]) < 1000000, said
assert os.path.exists("interrupted/checkpoint/state.safetensors"), os.listdir(".")
refused(2, "trainer_training_as_program", lambda: trainer.Training(resume="run"))

# values to predict
line = trainer.Training(x, 2 * x[:, :1] - x[:, 1:], **{**settings, "model": "mlp:hidden=8,activation=tanh"})
assert line.run().test_score < 0.3 and line.predict([[0.5, 0.25]]).shape == (1, 1)

refused(2, "by-magic", lambda: trainer.Training(x, y, strategy="by-magic").run())
refused(2, "stratgy", lambda: trainer.Training(stratgy="sync"))
refused(2, "nothing is learnt", lambda: trainer.Training(x, y).predict(x))
refused(2, "not finite", lambda: trainer.Training(x * np.nan, y, **settings).run())

# --- graphs ---
graph = trainer.Graph()
a = graph.placeholder("a", (2, 2))
w = graph.variable("w", [[1, 2], [3, 4]])
loss = graph.reduce_sum(graph.mul(a, graph.mul(w, w)), -100, False)
(slope,) = graph.gradients(loss, [w])
more = graph.assign_add(w, graph.constant(np.ones((2, 2))))
session = trainer.Session(graph)
total, slopes = session.run([loss, slope], {a: np.ones((2, 2))})
assert total == 30 and (slopes == [[2, 4], [6, 8]]).all() and not session.ran(more)
assert (session.run(more) == [[2, 3], [4, 5]]).all() and session.ran(more) and not session.ran(loss)
session.save("weights")
again = trainer.Session(graph)
again.load("weights")
assert (again.run(w) == [[2, 3], [4, 5]]).all() and os.path.getsize("weights") > 0
assert session.run(graph.less(a, w), {a: np.full((2, 2), 3.5)}).dtype == np.bool_
placed = trainer.Session(graph, "cpu:0,cpu:1", place="w=cpu:1", pins={loss: "cpu:0"}, timeout=20)
assert ([value.tolist() for value in placed.run([loss, slope], {a: np.ones((2, 2))})] ==
        [total.tolist(), slopes.tolist()])
assert placed.device(loss) == "cpu:0" and placed.device(w) == "cpu:1" and placed.device(more) is None
assert [(c.source, c.target, c.bytes) for c in placed.crossings()][0] == ("cpu:1", "cpu:0", 16), (
    placed.crossings())
refused(2, "expected a device of the session",
        lambda: trainer.Session(graph, "cpu:0,cpu:1", pins={w: "cpu:2"}))
refused(2, '"a" is needed', lambda: session.run(loss))
for fed in np.ones(4), np.ones((1, 4)), np.ones((4, 1)), 1.0:
    wrong("expected (2, 2)", lambda: session.run(loss, {a: fed}))
wrong("dtype float64", lambda: graph.placeholder("b", (2,), float))
wrong("expected sizes from 0", lambda: graph.placeholder("b", (2**32 + 2,)))
wrong("not those of an int32", lambda: graph.constant(np.array([2**31, 2**32 + 7])))

# numbers without dimensions, and shapes
graph = trainer.Graph()
number, count = graph.placeholder("number", ()), graph.placeholder("count", (), np.int32)
kept = graph.variable("kept", 3.0)
session = trainer.Session(graph)
assert graph.shape(graph.constant(3.5)) == () and graph.shape(kept) == ()
assert session.run(graph.assign(kept, graph.add(kept, number)), {number: 1.5}) == 4.5
wrong("expected ()", lambda: session.run(number, {number: [1.0]}))
wrong("not those of an int32", lambda: session.run(count, {count: 1.5}))
values = np.arange(6, dtype=np.float32).reshape(2, 3)
six = graph.constant(values)
for node, expected in ((graph.reshape(six, (3, 2)), values.reshape(3, 2)),
                       (graph.transpose(six, (1, 0)), values.T),
                       (graph.concat([six, six], 0), np.concatenate([values, values])),
                       (graph.slice(six, (0, 1), (2, 2)), values[:, 1:]),
                       (graph.pad(six, (1, 0), (0, 2)), np.pad(values, ((1, 0), (0, 2)))),
                       (graph.broadcast(graph.constant([1.0, 2.0, 3.0]), (2, 3)), [[1, 2, 3]] * 2),
                       (graph.reduce_sum(six), 15), (graph.reduce_max(six, 1, keep=True), [[2], [5]]),
                       (graph.cast(six, np.int32), values.astype(int))):
    found = session.run(node)
    assert found.shape == np.shape(expected) and (found == expected).all(), found
wrong("one for each of (2, 3)", lambda: graph.transpose(six, (1, 0, 2)))

graph = trainer.Graph()
a = graph.placeholder("a", (2, 2))
refused(2, "inner dimensions", lambda: graph.matmul(a, graph.constant(np.ones((3, 3))), False, False))
assert trainer.version and _library.SONAME == "libtrainer.so.0"
