"""trainer: networks trained on many devices, and graphs of operations, from Python.

    import numpy as np, trainer

    training = trainer.Training(x, y, test=(x_test, y_test), model="mlp:hidden=32", strategy="async-lockfree",
                                devices="cpu:0,cpu:1", epochs=20)
    for step in training.steps():               # or training.run()
        print(step.worker, step.step, step.loss)
    print(training.result.test_score)
    print(training.predict(x_test).argmax(axis=1))

    graph = trainer.Graph()
    a = graph.placeholder("a", (2,))
    session = trainer.Session(graph)
    print(session.run(graph.add(a, a), {a: [1, 2]}))

Arrays that have the right type and lie row by row are used where they are; others are copied once.
Settings are those of the command line, with _ for -. What goes wrong is a trainer.Error, whose code is
the program's exit code; an array that does not fit is a ValueError.
"""

import os
import queue
import signal
import threading
import time
from collections import namedtuple
from ctypes import byref, c_bool, c_int, c_uint64, c_void_p

import numpy as np

from . import _library as c
from ._library import Error, version

__all__ = ["Crossing", "Error", "Graph", "Result", "Session", "Training", "version"]

Step = namedtuple("Step", [name for name, _ in c.Step._fields_])
Epoch = namedtuple("Epoch", [name for name, _ in c.Epoch._fields_])
Result = namedtuple("Result", [name for name, _ in c.Result._fields_])
Crossing = namedtuple("Crossing", [name for name, _ in c.Crossing._fields_])


def _plain(kind, value):
    return kind(*(getattr(value, name) for name in kind._fields))


def _array(values, dtype):
    """An array of that type, row by row: `values` itself if it is one. Whole numbers stay what they are."""
    values = np.asarray(values)
    if np.dtype(dtype) == np.int32 and values.dtype != np.int32 and values.dtype.kind != "b":
        whole = values.astype(np.int32)
        if values.dtype.kind not in "iuf" or not np.array_equal(whole, values):
            raise ValueError(f"numbers of {values.dtype} that are not those of an int32, expected whole ones "
                             f"from {-2**31} to {2**31 - 1}")
        values = whole
    return np.asarray(values, dtype=dtype, order="C")


def _ints(values):
    return (c_int * len(values))(*values)


def _type(dtype):
    try:
        return c.TYPES.index(np.dtype(dtype))
    except ValueError:
        raise ValueError(f"dtype {np.dtype(dtype)}, expected float32, int32 or bool") from None


class _Owner:
    """Has something of the library, which a copy would close a second time."""

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a {type(self).__name__} can be neither copied nor pickled")


class _Interrupts:
    """While the main thread is in the library, Ctrl-C ends the training; then it is what it was before: as a
    rule a KeyboardInterrupt."""

    def __init__(self, handle):
        self._handle = handle
        self._before = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
        self._came = None  # what the handler was called with
        self._runs = threading.Lock()  # around:
        self._inside = True  # the run may still be stopped; later the next one would be

    def _note(self, number, frame):
        self._came = (number, frame)

    def _watch(self):
        """Python's own handlers wait for the library to return; the number of a signal does not."""
        while numbers := os.read(self._ends[0], 64):
            with self._runs:
                if signal.SIGINT in numbers and self._inside:
                    c.library.trainer_training_stop(self._handle)
            if self._fd >= 0:
                os.write(self._fd, numbers)

    def __enter__(self):
        if callable(self._before):
            self._ends = os.pipe()
            os.set_blocking(self._ends[1], False)
            self._fd = signal.set_wakeup_fd(self._ends[1], warn_on_full_buffer=False)
            signal.signal(signal.SIGINT, self._note)
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_):
        if not callable(self._before):
            return
        with self._runs:
            self._inside = False
        signal.signal(signal.SIGINT, self._before)
        signal.set_wakeup_fd(self._fd)
        os.close(self._ends[1])
        self._thread.join()
        os.close(self._ends[0])

    def tell(self):
        if self._came:
            self._before(*self._came)


class Training(_Owner):
    """Trains a network on x [examples, ...] and y: whole numbers from 0 are classes, floats are values to
    predict, and with task="labels" 1 or 0 for each label. Without x: on the data set that the settings name.
    as_program: it prints, writes files and takes Ctrl-C as `trainer train` does."""

    def __init__(self, x=None, y=None, test=None, task=None, as_program=False, **settings):
        self.result = None  # of the last run
        self._handle = c_void_p()
        self._as_program = as_program
        if isinstance(test, bool):  # the setting
            settings["test"], test = test, None
        if x is None and (y is not None or test is not None or task is not None):
            raise ValueError("y, test or task without x, expected all of the data, or none")
        if x is not None and y is None:
            raise ValueError("x without y, expected both")
        self._kept = []  # arrays and functions that the library has borrowed
        c.call("trainer_training_open", byref(self._handle))
        if as_program:
            c.library.trainer_training_as_program(self._handle)
        for name, value in settings.items():
            text = str(int(value)) if isinstance(value, bool) else str(value)
            c.call("trainer_training_set", self._handle, name.replace("_", "-").encode(), text.encode())
        if x is not None:
            self._set_data(x, y, test, task)

    def __del__(self):
        if getattr(self, "_handle", None):
            c.library.trainer_training_close(self._handle)

    def _set_data(self, x, y, test, task):
        y = np.asarray(y)
        if test is not None and (not isinstance(test, (tuple, list)) or len(test) != 2):
            raise ValueError("test is one array, expected (x, y)")
        if np.ndim(x) < 2 or len(x) == 0:
            raise ValueError(f"x is {np.shape(x)}, expected [examples, ...], of which there are some")
        if y.ndim == 0 or len(y) != len(x):
            raise ValueError(f"x is {np.shape(x)} and y {y.shape}, expected as many examples")
        if task is None:
            task = "classes" if y.dtype.kind in "iub" else "values"
        if task not in c.TASKS:
            raise ValueError(f"task {task!r}, expected one of {', '.join(c.TASKS)}")
        data = c.Data(task=c.TASKS.index(task), shape=c.Shape.of(np.shape(x)[1:]))
        if task == "classes" and not 0 <= y.max() < 2**20:
            raise ValueError(f"y has the class {y.max()}, expected 0 to {2**20 - 1}")
        data.outputs = int(y.max()) + 1 if task == "classes" else int(np.prod(y.shape[1:], dtype=int))
        data.train = self._examples(x, y, data)
        if test is not None:
            data.test = self._examples(*test, data)
            if task == "classes":
                data.outputs = max(data.outputs, int(np.max(test[1])) + 1)
        c.call("trainer_training_data", self._handle, byref(data))

    def _examples(self, x, y, data):
        x, y = _array(x, np.float32), _array(y, np.int32 if data.task == 0 else np.float32)
        if y.ndim == 0 or len(x) != len(y) or x.shape[1:] != data.shape.dimensions:
            raise ValueError(f"x is {x.shape} and y {y.shape}, expected as many examples, each "
                             f"{data.shape.dimensions}")
        if data.task == 0 and y.ndim != 1:
            raise ValueError(f"y is {y.shape}, expected one class per example, {(len(x),)}; of one-hot rows "
                             "y.argmax(1)")
        if data.task != 0 and data.outputs and y[0].size != data.outputs:
            raise ValueError(f"y has {y[0].size} numbers per example, expected {data.outputs}")
        self._kept += [x, y]
        return c.Examples(count=len(x), features=x.ctypes.data, labels=y.ctypes.data)

    def run(self, step=None, epoch=None):
        """Trains. step(Step) and epoch(Epoch) are called as it goes on, by this thread; one that returns
        False ends it. So does Ctrl-C, which then raises KeyboardInterrupt. Returns the Result, also when it
        was ended."""
        failure = []

        def told(function, kind):
            def tell(_, value):
                try:
                    return function(_plain(kind, value.contents)) is not False
                except BaseException as error:  # it must not go through the library
                    failure.append(error)
                    return False

            return tell

        watcher = c.Watcher()
        if step:
            watcher.step = c.STEP(told(step, Step))
        if epoch:
            watcher.epoch = c.EPOCH(told(epoch, Epoch))
        result = c.Result()
        c.library.trainer_training_watch(self._handle, byref(watcher))
        interrupts = _Interrupts(None if self._as_program else self._handle)
        try:
            if self._as_program:  # it heeds Ctrl-C itself
                c.call("trainer_training_run", self._handle, byref(result))
            else:
                with interrupts:
                    c.call("trainer_training_run", self._handle, byref(result))
        except Error as error:
            if failure:
                raise failure[0]
            if error.code != c.STOPPED:
                raise
        if failure:  # in what was the last step anyhow
            raise failure[0]
        self.result = _plain(Result, result)
        interrupts.tell()
        return self.result

    def steps(self):
        """Trains, and yields each Step. Whoever breaks off the loop ends the training, which may be some
        hundred steps ahead, or an epoch."""
        # One whose get() Ctrl-C may break off anywhere: that of queue.Queue may leave its lock behind.
        told, end, over = queue.SimpleQueue(), object(), threading.Event()

        def put(what):
            while told.qsize() >= 256 and not over.is_set():
                time.sleep(0.002)
            told.put(what)

        def tell(step):
            put(step)
            return not over.is_set()

        def train():
            try:
                self.run(step=tell)
                put(end)
            except BaseException as error:
                put(error)

        thread = threading.Thread(target=train)
        thread.start()
        try:
            while (step := told.get()) is not end:
                if isinstance(step, BaseException):
                    raise step
                yield step
        finally:
            over.set()
            thread.join()

    @property
    def weights(self):
        """The weights by name, copied."""
        found, shape, values = {}, c.Shape(), c.FLOATS()
        while name := c.library.trainer_training_weight(self._handle, len(found), byref(shape),
                                                        byref(values)):
            view = np.ctypeslib.as_array(values, shape.dimensions or (1,)).reshape(shape.dimensions)
            found[name.decode()] = view.copy()
        return found

    def predict(self, x):
        """[examples, outputs]: probabilities of the classes or labels, or values."""
        features = c.library.trainer_training_features(self._handle)
        x = _array(x, np.float32)
        if x.ndim == 0 or (features and len(x) > 0 and x[0].size != features):
            raise ValueError(f"x is {x.shape}, expected examples of {features} numbers")
        outputs = np.empty((len(x), c.library.trainer_training_outputs(self._handle)), np.float32)
        c.call("trainer_training_predict", self._handle, x.ctypes.data, len(x), outputs.ctypes.data)
        return outputs

    def save(self, path):
        """The weights, as a safetensors file."""
        c.call("trainer_training_save", self._handle, str(path).encode())


class Graph(_Owner):
    """A graph of operations. Nodes are numbers; graph.add(a, b) and the like are functions of trainer.h. A
    mistake stays: what is added behind it raises it again."""

    def __init__(self, training=False, seed=1):
        self._handle = c_void_p()
        c.call("trainer_graph_open", byref(self._handle), c_bool(training), c_uint64(seed))

    def __del__(self):
        if getattr(self, "_handle", None):
            c.library.trainer_graph_close(self._handle)

    def __getattr__(self, name):
        if name not in c.NODES:
            raise AttributeError(f"graph: no operation {name!r}")
        return lambda *operands: self._made(getattr(c.library, "trainer_" + name)(self._handle, *operands))

    def _made(self, node):
        c.call("trainer_graph_check", self._handle)
        return node

    def placeholder(self, name, shape, dtype=np.float32):
        return self._made(c.library.trainer_placeholder(self._handle, name.encode(), _type(dtype),
                                                        c.Shape.of(shape)))

    def cast(self, x, dtype):
        return self._made(c.library.trainer_cast(self._handle, x, _type(dtype)))

    def _reduced(self, make, x, axis, keep):
        return self._made(make(self._handle, x, c.ALL_AXES if axis is None else axis, keep))

    def reduce_sum(self, x, axis=None, keep=False):
        return self._reduced(c.library.trainer_reduce_sum, x, axis, keep)

    def reduce_mean(self, x, axis=None, keep=False):
        return self._reduced(c.library.trainer_reduce_mean, x, axis, keep)

    def reduce_max(self, x, axis=None, keep=False):
        return self._reduced(c.library.trainer_reduce_max, x, axis, keep)

    def reshape(self, x, shape):
        return self._made(c.library.trainer_reshape(self._handle, x, c.Shape.of(shape)))

    def broadcast(self, x, shape):
        return self._made(c.library.trainer_broadcast(self._handle, x, c.Shape.of(shape)))

    def _axes(self, x, numbers, what):
        """One number for each axis of x."""
        if len(numbers) != len(self.shape(x)):
            raise ValueError(f"{what}: {len(numbers)} numbers, expected one for each of {self.shape(x)}")
        return _ints(numbers)

    def transpose(self, x, order):
        return self._made(c.library.trainer_transpose(self._handle, x, self._axes(x, order, "order")))

    def concat(self, parts, axis):
        return self._made(c.library.trainer_concat(self._handle, _ints(parts), len(parts), axis))

    def slice(self, x, begin, size):
        return self._made(c.library.trainer_slice(self._handle, x, self._axes(x, begin, "begin"),
                                                  c.Shape.of(size)))

    def pad(self, x, before, after):
        return self._made(c.library.trainer_pad(self._handle, x, self._axes(x, before, "before"),
                                                self._axes(x, after, "after")))

    def constant(self, values):
        values = np.asarray(values)
        ints = values.dtype.kind in "iu"
        values = _array(values, np.int32 if ints else np.float32)
        make = c.library.trainer_constant_int if ints else c.library.trainer_constant
        return self._made(make(self._handle, c.Shape.of(np.shape(values)), values.ctypes.data))

    def variable(self, name, values):
        values = _array(values, np.float32)
        self.__dict__.setdefault("_kept", []).append(values)
        initial = c.Initial(values=values.ctypes.data)
        return self._made(c.library.trainer_variable(self._handle, name.encode(), c.Shape.of(values.shape),
                                                     initial))

    def gradients(self, loss, targets):
        """The node of the gradient of `loss` for each target; None: it does not depend on it."""
        nodes = (c_int * len(targets))()
        c.library.trainer_gradients(self._handle, loss, (c_int * len(targets))(*targets), len(targets), nodes)
        self._made(None)
        return [node if node >= 0 else None for node in nodes]

    def find(self, name):
        node = c.library.trainer_graph_find(self._handle, name.encode())
        return node if node >= 0 else None

    def shape(self, node):
        return c.library.trainer_node_shape(self._handle, node).dimensions

    def dtype(self, node):
        return c.TYPES[c.library.trainer_node_type(self._handle, node)]


class Session(_Owner):
    """Runs what fetches need of a graph, on a device, and keeps the values of its variables. On several
    devices, "cpu:0,cpu:1": place says where layers lie, "dense*=cpu:1", pins where nodes do; the rest
    follows. timeout: seconds that a device may stay at one node."""

    def __init__(self, graph, device="cpu:0", place=None, pins=None, timeout=None):
        self._graph = graph
        self._handle = c_void_p()
        c.call("trainer_session_open", byref(self._handle), graph._handle, device.encode())
        if place is not None:
            c.call("trainer_session_place", self._handle, place.encode())
        for node, name in (pins or {}).items():
            c.call("trainer_session_pin", self._handle, node, name.encode())
        if timeout is not None:
            c.call("trainer_session_timeout", self._handle, timeout)

    def __del__(self):
        if getattr(self, "_handle", None):
            c.library.trainer_session_close(self._handle)

    def run(self, fetches, feeds=None):
        """fetches: a node, or a list of them; feeds: arrays by placeholder. Returns an array, or a list."""
        nodes = fetches if isinstance(fetches, (list, tuple)) else [fetches]
        fed = {node: self._fed(node, values) for node, values in (feeds or {}).items()}
        values = [np.empty(self._graph.shape(node), self._graph.dtype(node)) for node in nodes]
        into = (c.Feed * len(fed))(*(c.Feed(node, a.ctypes.data, a.nbytes) for node, a in fed.items()))
        out = (c.Feed * len(nodes))(*(c.Feed(node, a.ctypes.data, a.nbytes)
                                      for node, a in zip(nodes, values)))
        c.call("trainer_session_run", self._handle, into, len(fed), out, len(nodes))
        return values if isinstance(fetches, (list, tuple)) else values[0]

    def _fed(self, node, values):
        values = _array(values, self._graph.dtype(node))
        if values.shape != self._graph.shape(node):
            raise ValueError(f"node {node}: fed {values.shape}, expected {self._graph.shape(node)}")
        return values

    def device(self, node):
        """Where the node was in the last run; None: it was not run, or is a constant."""
        name = c.library.trainer_session_device(self._handle, node)
        return name.decode() if name else None

    def crossings(self):
        """The values that crossed in the last run."""
        found, crossing = [], c.Crossing()
        while c.library.trainer_session_crossing(self._handle, len(found), byref(crossing)):
            found.append(Crossing(crossing.node, crossing.source.decode(), crossing.target.decode(),
                                  crossing.bytes))
        return found

    def ran(self, node):
        return bool(c.library.trainer_session_ran(self._handle, node))

    def save(self, path):
        c.call("trainer_session_save", self._handle, str(path).encode())

    def load(self, path):
        c.call("trainer_session_load", self._handle, str(path).encode())
