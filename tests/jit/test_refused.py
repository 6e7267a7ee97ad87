"""What TinyJit refuses, and with which words."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit
from tinyhost.errors import JitError


def captured() -> TinyJit[Any]:
    @TinyJit
    def f(x: Tensor, k: Any = 1, *, flag: bool = False) -> Tensor:
        return x * 2 if isinstance(k, object) else x
    for _ in range(3):
        f(arr(1, 2), 1, flag=False)
    return f


MISMATCH = {
    "shape": (
        lambda f: f(arr(1, 2, 3), 1, flag=False),
        r"args mismatch in JIT: arg 0 was a tensor \(2,\) dtypes.float on \w+ at capture and is a tensor \(3,\) "
        r"dtypes.float on \w+ now: call with the same, or use a second TinyJit",
    ),
    "dtype": (lambda f: f(Tensor([1, 2]), 1, flag=False), r"is a tensor \(2,\) dtypes.int on"),
    "device": (
        lambda f: f(Tensor(np.ones(2, np.float32), device="NPY"), 1, flag=False),
        r"is a tensor \(2,\) dtypes.float on NPY now",
    ),
    "value": (lambda f: f(arr(1, 2), 2, flag=False), "args mismatch in JIT: arg 1 was 1 at capture and is 2 now"),
    "kind of value": (lambda f: f(arr(1, 2), 1.0, flag=False), "arg 1 was 1 at capture and is 1.0 now"),
    "bool for int": (lambda f: f(arr(1, 2), True, flag=False), "arg 1 was 1 at capture and is True now"),
    "keyword": (lambda f: f(arr(1, 2), 1, flag=True), "flag was False at capture and is True now"),
    "fewer": (
        lambda f: f(arr(1, 2)),
        "args mismatch in JIT: captured with arg 0, arg 1, flag, called with arg 0; call with the same arguments, or "
        "use a second TinyJit",
    ),
    "tensor for value": (lambda f: f(arr(1, 2), arr(1), flag=False), r"arg 1 was 1 at capture and is a tensor \(1,\)"),
    "object": (lambda f: f(arr(1, 2), object(), flag=False), "arg 1 was 1 at capture and is <object object at"),
    "array": (lambda f: f(arr(1, 2), np.ones(1), flag=False), r"arg 1 was 1 at capture and is array\(\[1.\]\) now"),
}


@pytest.mark.parametrize("name", MISMATCH)
def test_mismatch(name: str):
    call, text = MISMATCH[name]
    f = captured()
    with pytest.raises(JitError, match=text):
        call(f)
    assert f(arr(3, 4), 1, flag=False).tolist() == [6, 8]  # an error leaves the capture alone


def test_training_must_stay():
    f = captured()
    with Context(TRAINING=1), pytest.raises(JitError, match="TRAINING was 0 at capture and is 1 now"):
        f(arr(1, 2), 1, flag=False)


def test_nan_is_the_same_value_and_an_object_is_known_again():
    thing = object()

    @TinyJit
    def f(x: Tensor, k: float, thing: Any) -> Tensor:
        return x + 1
    for i in range(4):
        assert f(arr(i), float("nan"), thing).item() == i + 1
    with pytest.raises(JitError, match="arg 1 was nan at capture and is 0.0 now"):
        f(arr(1), 0.0, thing)


@pytest.mark.parametrize("make, why", [
    (lambda: Tensor(3.0), r"arg 0 of shape \(\) is a constant"),
    (lambda: Tensor.arange(4), r"arg 0 of shape \(4,\) is a constant"),
    (lambda: Tensor(np.ones((2, 3), np.float32)).realize().T,
     r"arg 0 of shape \(3, 2\) is a view that is no single block of its buffer"),
    (lambda: Tensor(np.ones(6, np.float32)).realize()[::2], r"arg 0 of shape \(3,\) is a view"),
    (lambda: Tensor(np.ones(1, np.float32)).realize().expand(4), r"arg 0 of shape \(4,\) is a view"),
])
def test_inputs_must_be_buffers(make: Any, why: str):
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + 1
    with pytest.raises(JitError, match=r"JIT inputs must be real buffers; use .clone\(\): " + why):
        f(make())
    assert f(make().clone()).shape == make().shape


def test_duplicate_inputs():
    @TinyJit
    def f(x: Tensor, y: Tensor) -> Tensor:
        return x + y
    x = arr(1, 2)
    with pytest.raises(JitError, match=r"duplicate inputs to JIT: arg 0 and arg 1 share memory, .* pass a .clone\(\) "
                                       "of one"):
        f(x, x)
    a, b = arr(1, 2).realize(), arr(5, 6).realize()
    same, other = a + 1, a + 1  # equal values end in one buffer
    with pytest.raises(JitError, match="duplicate inputs to JIT"):
        f(same, other)
    assert f(same, other.clone()).tolist() == [4, 6] and f(a, b).tolist() == [6, 8]


@pytest.mark.parametrize("value, name", [(3, "int"), ([1.0, "x"], "float, str"), ({"k": np.ones(1)}, "ndarray")])
def test_results_must_be_tensors(value: Any, name: str):
    @TinyJit
    def f(x: Tensor) -> Any:
        return value

    with pytest.raises(JitError, match=f"a captured function returns Tensors, containers of them or None, got {name}: "
                                       "a Python value would be "
                                       "frozen at capture; return a Tensor and read it outside"):
        f(arr(1))


def test_nothing_to_capture():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x
    f(arr(1))
    with pytest.raises(JitError, match="didn't JIT anything! The function ran no kernel while it was captured: "
                                       "realize its result inside, or make it depend on its arguments"):
        f(arr(1))


def test_reading_while_capturing():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x * x.sum().item()
    assert f(arr(1, 2)).tolist() == [3, 6]
    with pytest.raises(JitError, match=r"cannot read the data of <Tensor \(\) .*> while TinyJit captures: the value "
                                       "would be frozen at capture; return the tensor and read it outside"):
        f(arr(1, 2))
    assert Tensor([1]).item() == 1  # the failed capture is over


def test_jit_inside_of_jit():
    @TinyJit
    def inner(x: Tensor) -> Tensor:
        return x + 1

    @TinyJit
    def outer(x: Tensor) -> Tensor:
        return inner(x.clone()) * 2
    assert outer(arr(1)).item() == 4
    with pytest.raises(JitError, match="having TinyJit inside another TinyJit is not supported: the outer one "
                                       "captures both, so call the plain function inside"):
        outer(arr(1))


def test_an_exception_ends_the_capture():
    fail = [False]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        if fail[0]:
            raise KeyError("inside")
        return x[0:1] + 1
    table = Tensor(np.arange(4, dtype=np.float32)).realize()
    f(table[1:3])
    fail[0] = True
    part = table[1:3]
    with pytest.raises(KeyError, match="inside"):
        f(part)
    fail[0] = False
    assert part.tolist() == [1, 2] and [f(table[i:i + 2]).item() for i in range(3)] == [1, 2, 3]


def test_items_that_moved_between_shards():
    x = Tensor(np.ones((12, 4), np.float32)).shard(names(4), 0).realize().reshape(3, 16)
    f = TinyJit(lambda x: x + 1)
    with pytest.raises(JitError, match=r"JIT inputs must be real buffers; use .clone\(\): arg 0 of shape \(3, 16\) is"):
        f(x)
    assert f(x.clone()).tolist() == [[2.0] * 16] * 3
