"""Python values among the arguments: a different one is an error or another capture, never silently the old one."""
from __future__ import annotations

import array
import enum
import functools
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Context, Tensor, TinyJit
from tinyhost.errors import JitError

Pair = namedtuple("Pair", "a b")


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Config:
    k: Any = 1
    more: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    k: Any = 1


class Thing:
    pass


# (what the capture saw, what the later call brings, the words of the error)
DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "int": (1, 2, "arg 1 was 1 at capture and is 2 now"),
    "sign of zero": (0.0, -0.0, "arg 1 was 0.0 at capture and is -0.0 now"),
    "bool for int": (1, True, "arg 1 was 1 at capture and is True now"),
    "None": (None, 0, "arg 1 was None at capture and is 0 now"),
    "str": ("sum", "mean", "arg 1 was 'sum' at capture and is 'mean' now"),
    "bytes": (b"a", b"b", "arg 1 was b'a' at capture and is b'b' now"),
    "complex": (1j, 2j, "arg 1 was 1j at capture and is 2j now"),
    "numpy scalar": (np.float32(1), np.float32(2), r"arg 1 was .*1.0\)? at capture and is .*2.0\)? now"),
    "numpy dtype": (np.float32(1), np.float64(1), "arg 1 was"),
    "python for numpy": (1.0, np.float64(1), "arg 1 was 1.0 at capture and is"),
    "enum": (Mode.SUM, Mode.MEAN, "arg 1 was <Mode.SUM: 1> at capture and is <Mode.MEAN: 2> now"),
    "int enum": (Level.LOW, Level.HIGH, "arg 1 was <Level.LOW: 1> at capture and is <Level.HIGH: 2> now"),
    "in a list": ([1, [2]], [1, [3]], r"arg 1\[1\]\[0\] was 2 at capture and is 3 now"),
    "in a tuple": ((1, 2), (1, 3), r"arg 1\[1\] was 2 at capture and is 3 now"),
    "in a dict": ({"a": {"b": 1}}, {"a": {"b": 2}}, r"arg 1\['a'\]\['b'\] was 1 at capture and is 2 now"),
    "in a named tuple": (Pair(1, 2), Pair(1, 3), r"arg 1\[1\] was 2 at capture and is 3 now"),
    "in a dataclass": (Config(1), Config(2), r"arg 1\.k was 1 at capture and is 2 now"),
    "in a frozen dataclass": (Frozen(1), Frozen(2), r"arg 1\.k was 1 at capture and is 2 now"),
    "deep in a dataclass": (Config(1, [1]), Config(1, [2]), r"arg 1\.more\[0\] was 1 at capture and is 2 now"),
    "in a deque": (deque([1]), deque([2]), r"arg 1\[0\] was 1 at capture and is 2 now"),
    "slice": (slice(0, 1), slice(0, 2), r"arg 1\.stop was 1 at capture and is 2 now"),
    "range": (range(3), range(4), r"arg 1 was range\(0, 3\) at capture and is range\(0, 4\) now"),
    "set": ({1, 2}, {1, 3}, r"arg 1 was \{1, 2\} at capture and is \{1, 3\} now"),
    "list for tuple": ([1], (1,), "arg 1 was a list of 1 at capture and is a tuple of 1 now"),
    "no list at all": ([], {}, "arg 1 was a list of 0 at capture and is a dict with no keys now"),
    "nothing in a list": ([[]], [{}], r"arg 1\[0\] was a list of 0 at capture and is a dict with no keys now"),
    "longer": ([1], [1, 2], r"captured with arg 0, arg 1, arg 1\[0\], called with .*, arg 1\[0\], arg 1\[1\]"),
    "other keys": ({"a": 1}, {"b": 1}, r"captured with arg 0, arg 1, arg 1\['a'\], called with arg 0, arg 1"),
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "captured with"),
    "kind of key": ({1: 0}, {True: 0}, r"captured with arg 0, arg 1, arg 1\[1\], called with .* arg 1\[True\]"),
    "array": (np.arange(3), np.arange(3) + 1, r"arg 1 was array\(\[0, 1, 2\]\) at capture and is array"),
    "large array": (np.zeros(9999), np.eye(1, 9999, 5000)[0], "arg 1 was array.* at capture and is another one now"),
    "dtype of an array": (np.zeros(3, np.int8), np.zeros(3, np.uint8), "arg 1 was array"),
    "bytearray": (bytearray(b"a"), bytearray(b"b"), "arg 1 was bytearray"),
    "array.array": (array.array("i", [1]), array.array("i", [2]), "arg 1 was array"),
    "function": (len, max, "arg 1 was <built-in function len> at capture and is <built-in function max> now"),
    "class": (Thing, Config, "arg 1 was <class .*Thing'> at capture and is <class .*Config'> now"),
    "object": (Thing(), Thing(), "arg 1 was <.*Thing object at .*> at capture and is"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_different_value(name: str):
    old, new, text = DIFFERENT[name]
    seen: list[Any] = []

    def run(x: Tensor, k: Any) -> Tensor:
        seen.append(k)
        return x + 1
    one, many = TinyJit(run), TinyJit(run, captures=2)
    for i in range(4):
        assert one(arr(i), old).item() == many(arr(i), old).item() == i + 1
    assert len(seen) == 4
    with pytest.raises(JitError, match="args mismatch in JIT: .*" + text):
        one(arr(1), new)
    assert many(arr(1), new).item() == 2 and seen[-1] is new and len(seen) == 5


@pytest.mark.parametrize("make", [
    lambda: [1, "a"], lambda: {"a": (1.5, None)}, lambda: Config(1, [2]), lambda: np.arange(5), lambda: {1, 2, (3, 4)},
    lambda: np.float32(2), lambda: float("nan"), lambda: slice(1, None), lambda: OrderedDict(a=1), lambda: b"ab" * 2,
    lambda: deque([1], 3), lambda: bytearray(b"abc"), lambda: memoryview(b"abc"), lambda: Mode.SUM, lambda: Pair(1, 2),
    lambda: frozenset({1}), lambda: np.datetime64("2020-01-01"), lambda: "x" * 3, lambda: Frozen((1, 2)),
])
def test_an_equal_value_made_anew(make: Callable[[], Any]):
    f = TinyJit(lambda x, k: x + 1)
    assert [f(arr(i), make()).item() for i in range(4)] == [1, 2, 3, 4]


MUTATED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [1, 2], lambda v: v.__setitem__(0, 5)),
    "longer list": (lambda: [1, 2], lambda v: v.append(5)),
    "nested list": (lambda: ([1], 2), lambda v: v[0].append(5)),
    "dict": (lambda: {"a": 1}, lambda v: v.update(a=2)),
    "set": (lambda: {1}, lambda v: v.add(2)),
    "dataclass": (lambda: Config(1), lambda v: setattr(v, "k", 2)),
    "array": (lambda: np.zeros(3), lambda v: v.fill(1)),
    "view of an array": (lambda: np.zeros(6)[::2], lambda v: v.__setitem__(1, 1)),
    "array in a dict": (lambda: {"a": np.zeros(3)}, lambda v: v["a"].fill(1)),
    "bytearray": (lambda: bytearray(3), lambda v: v.__setitem__(0, 1)),
    "deque": (lambda: deque([1]), lambda v: v.append(2)),
}


@pytest.mark.parametrize("name", MUTATED)
def test_the_same_object_with_new_content(name: str):
    make, change = MUTATED[name]
    value, seen = make(), []

    def run(x: Tensor, v: Any) -> Tensor:
        seen.append(v)
        return x + 1
    one, many = TinyJit(run), TinyJit(run, captures=2)
    for i in range(3):
        one(arr(i), value), many(arr(i), value)
    change(value)
    with pytest.raises(JitError, match="args mismatch in JIT"):
        one(arr(1), value)
    assert len(seen) == 4 and many(arr(1), value).item() == 2 and len(seen) == 5


def test_an_array_that_is_computed_with():
    f = TinyJit(lambda x, a: x * Tensor(a) + float(a.sum()), captures=2)
    a = np.array([1, 2], np.float32)
    for _ in range(3):
        assert f(arr(1, 1), a).tolist() == [4, 5]
    a *= 2
    for _ in range(3):
        assert f(arr(1, 1), a).tolist() == [8, 10]


def test_tensors_in_dataclasses_are_arguments():
    @dataclass
    class Batch:
        x: Tensor
        scale: float = 1.0
    f = TinyJit(lambda b: b.x * b.scale)
    assert [f(Batch(arr(i, 2), 3.0)).tolist() for i in range(5)] == [[3 * i, 6] for i in range(5)]
    with pytest.raises(JitError, match=r"arg 0\.scale was 3.0 at capture and is 4.0 now"):
        f(Batch(arr(1, 2), 4.0))
    with pytest.raises(JitError, match=r"arg 0\.x was a tensor \(2,\) .* and is a tensor \(1,\)"):
        f(Batch(arr(1), 3.0))


def test_dataclasses_and_other_containers_as_results():
    @dataclass
    class Out:
        y: Tensor
        parts: list[Tensor]
        nothing: None = None
    f = TinyJit(lambda x: OrderedDict(a=Out(x * 2, [x + 1]), b=deque([x - 1], 4)))
    kept = [f(arr(i)) for i in range(5)]
    for i, out in enumerate(kept):
        assert type(out) is OrderedDict and isinstance(out["a"], Out) and out["b"].maxlen == 4
        assert (out["a"].y.item(), out["a"].parts[0].item(), out["b"][0].item()) == (2 * i, i + 1, i - 1)


def test_keywords_in_any_order_and_defaults():
    def run(x: Tensor, y: Tensor, *, k: int = 2) -> Tensor:
        return x * k - y
    f = TinyJit(run)
    for i in range(3):
        assert f(y=arr(1), x=arr(i), k=2).item() == 2 * i - 1
    assert f(k=2, x=arr(5), y=arr(3)).item() == 7
    with pytest.raises(JitError, match="captured with k, x, y, called with x, y"):
        f(x=arr(5), y=arr(3))  # a default that is left out is not known to be the same
    with pytest.raises(JitError, match="captured with k, x, y, called with arg 0, k, y"):
        f(arr(5), k=2, y=arr(3))


def test_a_container_that_contains_itself():
    endless: list[Any] = [1]
    endless.append(endless)
    with pytest.raises(JitError, match="arg 1 nests deeper than 100 containers: does one contain itself"):
        TinyJit(lambda x, k: x + 1)(arr(1), endless)


def test_content_that_cannot_be_compared():
    class Foreign:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError("on another device")
    f = TinyJit(lambda x, k: x + 1)
    with pytest.raises(JitError, match="the content of arg 1, a Foreign, cannot be compared with that at capture: pass "
                                       "a Tensor"):
        f(arr(1), Foreign())
    with pytest.raises(JitError, match="arg 1 is a ndarray of Python objects, whose content would be frozen"):
        f(arr(1), np.array([object()]))


def test_attributes_of_objects_are_frozen():
    thing = Thing()
    thing.k = 2.0  # type: ignore[attr-defined]
    f = TinyJit(lambda x, o: x * o.k)
    for i in range(3):
        assert f(arr(i), thing).item() == 2 * i
    thing.k = 5.0  # type: ignore[attr-defined]
    assert f(arr(1), thing).item() == 2  # as the documentation says
    f.reset()
    assert f(arr(1), thing).item() == 5


# *** settings ***
@pytest.mark.parametrize("name, value, text", [
    ("TRAINING", 1, "TRAINING was 0 at capture and is 1 now"),
    ("DEFAULT_FLOAT", "float64", "DEFAULT_FLOAT was  at capture and is float64 now"),
    ("DEFAULT_INT", "int64", "DEFAULT_INT was  at capture and is int64 now"),
    ("SUM_DTYPE", "float64", "SUM_DTYPE was  at capture and is float64 now"),
    ("DEV", "PYTHON", "the default device was .* at capture and is PYTHON now"),
])
def test_settings_that_change_what_a_program_means(name: str, value: Any, text: str):
    one, many = TinyJit(lambda x: x + Tensor.ones(1)), TinyJit(lambda x: x + 1, captures=2)
    x = arr(1).realize()
    for _ in range(3):
        one(x), many(x)
    with Context(**{name: value}):
        with pytest.raises(JitError, match="args mismatch in JIT: " + text):
            one(x)
        for _ in range(3):
            assert many(x).item() == 2
    assert one(x).item() == many(x).item() == 2


@pytest.mark.parametrize("name, value", [("BEAM", 1), ("NOOPT", 1), ("WINO", 1), ("NO_COLOR", "1"), ("SCACHE", 0)])
def test_settings_that_change_how_it_is_computed(name: str, value: Any):
    calls: list[int] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x + 1
    for i in range(3):
        f(arr(i))
    x = arr(7).realize()
    with Context(**{name: value}):
        assert f(x).item() == 8 and len(calls) == 2


@pytest.mark.parametrize("jit", [0, 1, 2])
def test_levels(jit: int):
    total = Tensor.zeros(1).contiguous()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 2
    with Context(JIT=jit):
        assert [f(arr(i)).item() for i in range(5)] == [0, 2, 6, 12, 20]
    assert (f.captured is None) == (jit == 0)
    with Context(JIT=1 if jit == 2 else 2):
        assert f(arr(5)).item() == 30


# *** what can be captured ***
def test_functions_that_compute_later():
    def generator(x: Tensor) -> Any:
        yield x

    async def coroutine(x: Tensor) -> Tensor:
        return x

    async def both(x: Tensor) -> Any:
        yield x
    for fxn, kind in ((generator, "a generator"), (coroutine, "a coroutine"), (both, "an asynchronous generator")):
        with pytest.raises(JitError, match=f"TinyJit captures what a call computes, and {fxn.__name__} is {kind}, "
                                           "which computes later: capture the function that it calls"):
            TinyJit(fxn)
    with pytest.raises(JitError, match="captured function returns Tensors, .* got generator"):
        TinyJit(lambda x: (v for v in [x]))(arr(1))


def test_what_is_no_function():
    with pytest.raises(JitError, match="TinyJit captures a function, got int 3"):
        TinyJit(3)
    with pytest.raises(JitError, match="TinyJit captures a function, got property"):
        TinyJit(property(lambda self: 1))


def test_kinds_of_callables():
    class Model:
        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x + 1

        @staticmethod
        @TinyJit
        def inner(x: Tensor) -> Tensor:
            return x + 2

        @TinyJit
        @staticmethod
        def outer(x: Tensor) -> Tensor:
            return x + 3

        @classmethod
        @TinyJit
        def of_class(cls, x: Tensor) -> Tensor:
            return x + (4 if issubclass(cls, Model) else 0)

        def plain(self, x: Tensor) -> Tensor:
            return x + 5
    m = Model()
    part = TinyJit(functools.partial(lambda k, x: x + k, 6))
    bound = TinyJit(m.plain)
    for i in range(4):
        x = arr(i)
        assert [f(x).item() for f in (m, m.inner, m.outer, m.of_class, bound, part)] == [i + k for k in range(1, 7)]
        assert Model.outer(x).item() == i + 3


def test_an_object_without_weak_references():
    class Slots:
        __slots__ = ("k",)

        @TinyJit
        def f(self, x: Tensor) -> Tensor:
            return x + 1
    with pytest.raises(JitError, match="a captured method belongs to objects with weak references, and Slots has none: "
                                       "add '__weakref__' to its __slots__"):
        Slots().f(arr(1))
