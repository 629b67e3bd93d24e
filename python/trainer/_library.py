"""libtrainer.so, and the types of trainer.h as ctypes has them.

The library is the file that TRAINER_LIBRARY names, or the installed one.
"""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int,
                    c_long, c_longlong, c_size_t, c_uint64, c_void_p)

import numpy as np

SONAME, MOST_RANK, STOPPED = "libtrainer.so.0", 6, 130
TASKS = ["classes", "labels", "values"]
TYPES = [np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.bool_)]
FLOATS = POINTER(c_float)


class Error(Exception):
    """What went wrong, in one line; `code` is one of trainer.h."""

    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


class _Error(Structure):
    _fields_ = [("code", c_int), ("words", c_char * 500)]


class Shape(Structure):
    _fields_ = [("rank", c_int), ("dims", c_int * MOST_RANK)]

    @classmethod
    def of(cls, dimensions):
        dimensions = (dimensions,) if isinstance(dimensions, int) else tuple(dimensions)
        if len(dimensions) > MOST_RANK:
            raise ValueError(f"{len(dimensions)} dimensions, expected at most {MOST_RANK}")
        if any(not 0 <= size < 2**31 for size in dimensions):
            raise ValueError(f"the shape {dimensions}, expected sizes from 0 to {2**31 - 1}")
        return cls(len(dimensions), (c_int * MOST_RANK)(*dimensions))

    @property
    def dimensions(self):
        return tuple(self.dims[: self.rank])


class Initial(Structure):
    _fields_ = [("kind", c_int), ("value", c_float), ("values", c_void_p)]


class Feed(Structure):
    """A feed, and a fetch."""

    _fields_ = [("node", c_int), ("data", c_void_p), ("bytes", c_size_t)]


class Crossing(Structure):
    _fields_ = [("node", c_int), ("source", c_char_p), ("target", c_char_p), ("bytes", c_size_t)]


class Examples(Structure):
    _fields_ = [("count", c_int), ("features", c_void_p), ("labels", c_void_p), ("read", c_void_p),
                ("argument", c_void_p)]


class Data(Structure):
    _fields_ = [("shape", Shape), ("task", c_int), ("outputs", c_int), ("train", Examples),
                ("test", Examples)]


class Step(Structure):
    _fields_ = [("worker", c_int), ("step", c_long), ("epoch", c_int), ("time_s", c_double),
                ("loss", c_float),
                ("rate", c_float), ("examples", c_int), ("input_ms", c_double), ("pull_ms", c_double),
                ("compute_ms", c_double), ("push_ms", c_double), ("wait_ms", c_double), ("staleness", c_long)]


class Epoch(Structure):
    _fields_ = [("epoch", c_int), ("time_s", c_double), ("train_loss", c_double), ("test_loss", c_double),
                ("test_score", c_double), ("examples_per_s", c_double)]


STEP, EPOCH = CFUNCTYPE(c_bool, c_void_p, POINTER(Step)), CFUNCTYPE(c_bool, c_void_p, POINTER(Epoch))


class Watcher(Structure):
    _fields_ = [("step", STEP), ("epoch", EPOCH), ("argument", c_void_p)]


class Result(Structure):
    _fields_ = [("test_score", c_double), ("test_loss", c_double), ("final_loss", c_double),
                ("seconds", c_double), ("examples_per_s", c_double), ("updates", c_long),
                ("examples", c_longlong)]


library = ctypes.CDLL(os.environ.get("TRAINER_LIBRARY") or SONAME)

# The functions that return a node, with what they take after the graph.
_one, _two, _reduce = [c_int], [c_int, c_int], [c_int, c_int, c_bool]
ALL_AXES = -100
NODES = {
    **dict.fromkeys("exp log relu relu6 sigmoid tanh gelu silu softmax shuffle inverse determinant flatten "
                    "shape_of rank_of global_average global_max".split(), _one),
    **dict.fromkeys("add sub mul div pow greater less equal assign assign_add cross_entropy "
                    "softmax_cross_entropy sigmoid_cross_entropy argmax".split(), _two),
    "scalar": [c_float],
    "dropout": [c_int, c_float],
    "matmul": [c_int, c_int, c_bool, c_bool],
}
_OTHERS = {
    "version": (c_char_p, []),
    "graph_close": (None, [c_void_p]),
    "graph_find": (c_int, [c_void_p, c_char_p]),
    "node_shape": (Shape, [c_void_p, c_int]),
    "node_type": (c_int, [c_void_p, c_int]),
    **dict.fromkeys("reduce_sum reduce_mean reduce_max".split(), (c_int, [c_void_p] + _reduce)),
    "cast": (c_int, [c_void_p, c_int, c_int]),
    "reshape": (c_int, [c_void_p, c_int, Shape]),
    "broadcast": (c_int, [c_void_p, c_int, Shape]),
    "transpose": (c_int, [c_void_p, c_int, POINTER(c_int)]),
    "concat": (c_int, [c_void_p, POINTER(c_int), c_int, c_int]),
    "slice": (c_int, [c_void_p, c_int, POINTER(c_int), Shape]),
    "pad": (c_int, [c_void_p, c_int, POINTER(c_int), POINTER(c_int)]),
    "placeholder": (c_int, [c_void_p, c_char_p, c_int, Shape]),
    "constant": (c_int, [c_void_p, Shape, c_void_p]),
    "constant_int": (c_int, [c_void_p, Shape, c_void_p]),
    "variable": (c_int, [c_void_p, c_char_p, Shape, Initial]),
    "gradients": (None, [c_void_p, c_int, POINTER(c_int), c_int, POINTER(c_int)]),
    "session_close": (None, [c_void_p]),
    "session_ran": (c_bool, [c_void_p, c_int]),
    "session_device": (c_char_p, [c_void_p, c_int]),
    "session_crossing": (c_bool, [c_void_p, c_int, POINTER(Crossing)]),
    "training_as_program": (None, [c_void_p]),
    "training_close": (None, [c_void_p]),
    "training_watch": (None, [c_void_p, POINTER(Watcher)]),
    "training_stop": (None, [c_void_p]),
    "training_weight": (c_char_p, [c_void_p, c_int, POINTER(Shape), POINTER(FLOATS)]),
    "training_outputs": (c_int, [c_void_p]),
    "training_features": (c_int, [c_void_p]),
}
# Those that return a code; the last argument, an error, is call's.
_CALLS = {
    "graph_open": [POINTER(c_void_p), c_bool, c_uint64],
    "graph_check": [c_void_p],
    "session_open": [POINTER(c_void_p), c_void_p, c_char_p],
    "session_run": [c_void_p, POINTER(Feed), c_int, POINTER(Feed), c_int],
    "session_pin": [c_void_p, c_int, c_char_p],
    "session_place": [c_void_p, c_char_p],
    "session_timeout": [c_void_p, c_double],
    "session_save": [c_void_p, c_char_p],
    "session_load": [c_void_p, c_char_p],
    "training_open": [POINTER(c_void_p)],
    "training_set": [c_void_p, c_char_p, c_char_p],
    "training_data": [c_void_p, POINTER(Data)],
    "training_run": [c_void_p, POINTER(Result)],
    "training_predict": [c_void_p, c_void_p, c_int, c_void_p],
    "training_save": [c_void_p, c_char_p],
}
for _name, _types in NODES.items():
    _OTHERS[_name] = (c_int, [c_void_p] + _types)
for _name, _types in _CALLS.items():
    _OTHERS[_name] = (c_int, _types + [POINTER(_Error)])
for _name, (_result, _types) in _OTHERS.items():
    _function = getattr(library, "trainer_" + _name)
    _function.restype, _function.argtypes = _result, _types

version = library.trainer_version().decode()


def call(name, *arguments):
    """Calls a function that returns a code; raises its error."""
    error = _Error()
    if getattr(library, name)(*arguments, byref(error)) != 0:
        raise Error(error.code, error.words.decode(errors="replace"))
