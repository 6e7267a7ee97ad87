"""Construction, properties, storage and the Python protocols of tensors."""

from __future__ import annotations

import gc
import pathlib
import weakref
from typing import Any

import numpy as np
import pytest

from tinyhost._tensor.registry import live_tensors
from tinyhost.dtype import dtypes
from tinyhost.errors import ShapeError
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp
from tinyhost.uop.leaf import without_identity

from .evaluator import evaluate


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


# *** construction ***
@pytest.mark.parametrize("data", [[1, 2], [[1.5], [2.5]], [[True, False]], [], [[], []], (1, (2))], ids=repr)
def test_lists(data: Any) -> None:
    t = Tensor(data, device="NPY")
    want = np.array(data)
    assert t.shape == want.shape
    np.testing.assert_array_equal(value(t), want)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "bool", "float32"])
def test_arrays(dtype: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(dtype)
    for array in (a, a.T, a[:, ::2], np.asfortranarray(a)):
        np.testing.assert_array_equal(value(Tensor(array, device="NPY")), array)


def test_big_endian_and_scalars() -> None:
    np.testing.assert_array_equal(value(Tensor(np.arange(3, dtype=">i4"), device="NPY")), [0, 1, 2])
    t = Tensor(np.float16(2.5), device="NPY")
    assert t.shape == () and t.dtype is dtypes.half and value(t) == 2.5


def test_narrow_floats_from_lists() -> None:
    np.testing.assert_array_equal(value(Tensor([1.0, 1.00390625, -2.5], dtype="bfloat16", device="NPY")), [1, 1, -2.5])
    assert Tensor([1.0, 500.0], dtype="fp8e4m3", device="NPY").dtype is dtypes.fp8e4m3


def test_host_data_is_copied_to_the_device() -> None:
    t = Tensor([1.0, 2.0], device="PYTHON")
    assert t.device == "PYTHON" and t.uop.op is Ops.COPY
    source = t.uop.src[0].base
    assert source.op is Ops.BUFFER and source.device == "NPY"


def test_scalars_are_weak_and_deviceless() -> None:
    for x in (3, 2.5, True):
        t = Tensor(x)
        assert without_identity(t.uop) is UOp.const(x) and t.device is None and t.shape == () and t.item() == x
    strong = Tensor(3, dtype="int8")
    assert strong.dtype is dtypes.int8 and strong.device is None
    assert Tensor(3, device="NPY").device == "NPY"
    assert Tensor(None).shape == (0,)


def test_bytes_and_paths(tmp_path: pathlib.Path) -> None:
    np.testing.assert_array_equal(value(Tensor(b"\x01\xff", device="NPY")), [1, 255])
    np.testing.assert_array_equal(value(Tensor(b"\x01\x00\x02\x00", dtype="int16", device="NPY")), [1, 2])
    file = tmp_path / "data"
    file.write_bytes(bytes(12))
    t = Tensor(file, dtype="int32")
    assert t.shape == (3,) and t.device == f"DISK:{file}"


def test_construction_errors() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        Tensor([[1], [1, 2]])
    with pytest.raises(TypeError, match="cannot make a tensor from set"):
        Tensor({1})
    with pytest.raises(TypeError, match="cannot make a tensor from an element of type str"):
        Tensor(["a"])
    with pytest.raises(TypeError, match="would hide the graph"):
        Tensor(Tensor(1))
    with pytest.raises(RuntimeError, match="cannot create storage for weak dtype"):
        Tensor([1], dtype=dtypes.weakint)
    with pytest.raises(ShapeError, match="an extent cannot be negative"):
        Tensor.empty(2, -1)
    with pytest.raises(OverflowError, match="fit no dtype"):
        Tensor([2**70])


# *** creation ***
def test_full_has_storage_of_its_own() -> None:
    a, b = Tensor.zeros(3, device="NPY"), Tensor.zeros(3, device="NPY")
    assert a.uop is not b.uop and a.uop.buf_uop is not b.uop.buf_uop
    np.testing.assert_array_equal(value(a), [0, 0, 0])
    virtual = Tensor.full((2, 3), 7, buffer=False)
    assert virtual.device is None and virtual.dtype is dtypes.weakint
    np.testing.assert_array_equal(value(virtual), np.full((2, 3), 7))
    np.testing.assert_array_equal(value(Tensor.ones(2, 2, dtype="int8", device="NPY")), np.ones((2, 2)))
    np.testing.assert_array_equal(value(a.full_like(5)), [5, 5, 5])
    assert Tensor.zeros(0, 3, device="NPY").shape == (0, 3)


ARANGES: list[tuple[Any, ...]] = [
    (5,),
    (2, 7),
    (7, 2, -2),
    (0,),
    (3, 3),
    (0, 10, 3),
    (0.0, 1.0, 0.25),
    (5, 0, -1.5),
    (0, 1, 0.3),
]


@pytest.mark.parametrize("args", ARANGES, ids=repr)
def test_arange(args: tuple[Any, ...]) -> None:
    want = np.arange(*args)
    t = Tensor.arange(*args)
    assert t.shape == want.shape
    np.testing.assert_allclose(value(t), want, rtol=1e-6)


def test_sequences() -> None:
    np.testing.assert_allclose(value(Tensor.linspace(-1, 2, 7)), np.linspace(-1, 2, 7), rtol=1e-6)
    np.testing.assert_array_equal(value(Tensor.linspace(0, 10, 5, dtype="int32")), [0, 2, 5, 7, 10])
    assert value(Tensor.linspace(3, 9, 1)).tolist() == [3] and Tensor.linspace(0, 1, 0).shape == (0,)
    np.testing.assert_array_equal(value(Tensor.eye(2, 3)), np.eye(2, 3))
    assert Tensor.eye(0, 2).shape == (0, 2)
    with pytest.raises(ValueError, match="step that is not 0"):
        Tensor.arange(3, 4, 0)
    with pytest.raises(ValueError, match="number of steps that is not negative, got -1"):
        Tensor.linspace(0, 1, -1)
    with pytest.raises(ValueError, match="extents that are not negative, got -1"):
        Tensor.eye(-1)


# *** operands ***
def test_device_mismatch() -> None:
    a, b = Tensor.empty(2, device="NPY"), Tensor.empty(2, device="PYTHON")
    with pytest.raises(RuntimeError, match="all operands of ADD must be on one device, got NPY, PYTHON"):
        a + b
    with pytest.raises(RuntimeError, match="all operands of STACK must be on one device"):
        a.stack(b)
    with pytest.raises(RuntimeError, match="index on PYTHON for a tensor on NPY"):
        a[Tensor([0], device="PYTHON")]
    assert (a + Tensor.arange(2)).device == "NPY"


def test_shape_mismatch_is_raised_at_the_operation() -> None:
    with pytest.raises(IndexError, match=r"\(2, 3\).*\(4,\)"):
        Tensor.empty(2, 3, device="NPY") + Tensor.empty(4, device="NPY")


def test_equality_is_element_wise_and_hash_is_identity() -> None:
    a = Tensor([1, 2], device="NPY")
    np.testing.assert_array_equal(value(a == Tensor([1, 3], device="NPY")), [True, False])
    np.testing.assert_array_equal(value(a != 1), [False, True])
    assert len({a, Tensor([1, 2], device="NPY")}) == 2


def test_numpy_operands() -> None:
    a = Tensor([1.0, 2.0], device="NPY")
    np.testing.assert_array_equal(value(a + np.array([1.0, 2.0], np.float32)), [2, 4])
    np.testing.assert_array_equal(value(a * [2.0, 3.0]), [2, 6])


def test_numpy_on_the_left() -> None:
    a = np.array([1.0, 2.0], np.float32) + Tensor([1.0, 2.0], device="NPY")
    assert isinstance(a, Tensor) and value(a).tolist() == [2, 4]


def test_copies_and_pickles() -> None:
    import copy
    import pickle

    x = Tensor([1.0, 2.0], device="PYTHON").is_param_().realize()
    deep, shallow, thawed = copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))
    x += 1.0
    assert (deep.tolist(), shallow.tolist(), thawed.tolist()) == ([1, 2], [2, 3], [1, 2])
    assert deep.is_param and shallow.is_param and thawed.is_param
    assert any(t is thawed for t in live_tensors())


def test_dlpack() -> None:
    x = Tensor([[1.0, 2.0]], device="PYTHON")
    np.testing.assert_array_equal(np.from_dlpack(x), [[1, 2]])


# *** reading ***
def test_truth() -> None:
    with pytest.raises(TypeError, match="only a 0-d bool tensor has a truth value, got shape \\(2,\\)"):
        bool(Tensor([True, False]))
    with pytest.raises(TypeError, match="only a 0-d bool tensor has a truth value"):
        bool(Tensor(1.0))
    assert Tensor(True)
    with pytest.raises(ValueError, match="item\\(\\) needs exactly one element"):
        Tensor([1, 2]).item()
    with pytest.raises(TypeError, match="only an integer tensor can be an index"):
        [1][Tensor(1.0)]


# *** repr ***
def test_repr_names_what_is_known() -> None:
    assert repr(Tensor([1, 2], device="PYTHON")) == "<Tensor (2,) dtypes.int on PYTHON, lazy copy>"
    assert repr(Tensor([1, 2], device="PYTHON") + 1) == "<Tensor (2,) dtypes.int on PYTHON, lazy add>"
    assert repr(Tensor.empty(3, device="PYTHON")) == "<Tensor (3,) dtypes.float on PYTHON, empty storage>"
    assert repr(Tensor(3.0)) == "<Tensor () dtypes.weakfloat, literal: 3.0>"
    assert repr(Tensor.arange(3)) == "<Tensor (3,) dtypes.int, lazy cast>"
    w = Tensor([1.0], device="PYTHON").is_param_()
    w.sum().backward()
    assert repr(w) == "<Tensor (1,) dtypes.float on PYTHON, lazy copy, parameter, grad>"
    w.realize()
    w += 1.0
    n = UOp.variable("n", 1, 2).bind(2)
    assert "lazy store" in repr(w) and repr(Tensor([1, 2], device="PYTHON")[:n]).startswith(
        "<Tensor (n,) dtypes.int on"
    )


def test_repr_shows_a_few_values_that_are_there() -> None:
    from tinyhost import GlobalCounters

    x = Tensor([[1.0, -2.5, 3.0]], device="PYTHON").realize()
    assert repr(x) == "<Tensor (1, 3) dtypes.float on PYTHON, realized: [[1.0, -2.5, 3.0]]>"
    views = {
        "T": x.T,
        "slice": x[:, ::-1],
        "part": x[0, 1:],
        "expand": x.expand(2, 3),
        "reshape": x.reshape(3),
        "detach": x.detach(),
    }
    before, shown = GlobalCounters.kernel_count, {name: repr(view) for name, view in views.items()}
    assert GlobalCounters.kernel_count == before
    for name, view in views.items():
        assert shown[name].endswith(f"realized: {view.numpy().tolist()}>"), name
    for many in (
        Tensor.zeros(100, device="PYTHON").realize(),
        Tensor([1.0], dtype="bfloat16", device="PYTHON").realize(),
    ):
        assert repr(many).endswith("realized>")
    assert repr(Tensor([True], device="PYTHON").realize()).endswith("realized: [True]>")


def test_repr_never_computes_and_never_raises() -> None:
    from tinyhost import GlobalCounters, TinyJit

    seen: list[str] = []

    def step(x: Tensor) -> Tensor:
        seen.append(repr(x) + repr(x + 1))
        return (x + 1).realize()

    captured = TinyJit(step)
    for _ in range(3):
        captured(Tensor([1.0], device="PYTHON").realize())
    assert "realized: [1.0]" in seen[0] and seen[1].count("<Tensor (1,) dtypes.float on PYTHON") == 2
    before = GlobalCounters.kernel_count
    failed = Tensor._wrap(
        UOp(Ops.ADD, (Tensor([1.0, 2.0], device="PYTHON").uop, Tensor([1.0, 2, 3], device="PYTHON").uop))
    )
    assert repr(failed).startswith("<Tensor that cannot be shown: IndexError: cannot broadcast (2,) and (3,)")
    deep = Tensor([1.0], device="PYTHON")
    for _ in range(3000):
        deep = deep * 1.5
    assert repr(deep) == "<Tensor (1,) dtypes.float on PYTHON, lazy mul>" and GlobalCounters.kernel_count == before


# *** storage ***
def test_clone_to_and_replace() -> None:
    a = Tensor([1.0, 2.0], device="NPY")
    b = a.clone()
    assert b.uop is not a.uop and b.device == "NPY"
    moved = a.to("PYTHON")
    assert moved.uop.op is Ops.COPY and moved.device == "PYTHON" and a.to("NPY") is a
    assert Tensor.arange(3).to("PYTHON").uop.op is Ops.AFTER
    assert a.to_("PYTHON") is a and a.device == "PYTHON"
    b.replace(b * 3)
    np.testing.assert_array_equal(value(b), [3, 6])
    with pytest.raises(ShapeError, match=r"cannot replace a tensor of shape \(2,\) by one of shape \(3,\)"):
        b.replace(Tensor([1.0, 2, 3], device="NPY"))


def test_assign() -> None:
    a = Tensor.empty(2, 2, device="NPY")
    target = a.uop
    a.assign(Tensor([1.0, 2.0], device="NPY"))
    assert a.uop.op is Ops.AFTER and a.uop.src[0] is target and a.uop.src[1].op is Ops.STORE
    a += 1
    np.testing.assert_array_equal(value(a), [[2, 3], [2, 3]])
    b = Tensor([1.0, 2], device="NPY") * 2
    b.assign([5.0, 6.0])
    np.testing.assert_array_equal(value(b), [5, 6])


# *** life time ***
def test_tensors_are_tracked_weakly_and_without_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        before = len(live_tensors())
        a = Tensor([1.0, 2.0], device="NPY").is_param_()
        b = (a * 2).sum()
        b.backward()
        assert any(t is a for t in live_tensors())
        ref, node = weakref.ref(a), weakref.ref(b.uop)
        del a, b
        assert ref() is None and node() is None and len(live_tensors()) == before
    finally:
        gc.enable()
