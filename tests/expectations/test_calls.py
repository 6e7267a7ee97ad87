"""FUNCTION calls: flat parameters, arguments as flat views of their largest shape, gradients seen as the arguments."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Tensor, Variable
from tinyhost.dtype import dtypes
from tinyhost.errors import DTypeError
from tinyhost.function import function
from tinyhost.ops import GroupOp, Ops
from tinyhost.schedule.function import flat_storage, inline_functions, resolve_function
from tinyhost.uop import UOp
from tinyhost.uop.sharding import stored_axis

f32 = dtypes.float32
D = names(3)


def resolved(arg: UOp, size: int) -> UOp:
    """What stands for a flat parameter of ``size`` elements after the call is inlined."""
    p = UOp.param(0, f32, (size,), arg.device)
    call = (p + 1.0).call(arg)
    [result] = resolve_function(call).src
    assert result.op is Ops.ADD and result.shape == (size,)
    return result.src[0]


# *** arguments ***
def test_an_argument_of_several_axes_is_flat_in_the_body() -> None:
    arg = UOp.param(7, f32, (2, 3, 4), "NPY")
    assert resolved(arg, 24) is arg._mop(Ops.RESHAPE, (24,))


def test_a_symbolic_argument_is_padded_to_its_largest_shape() -> None:
    n = UOp.variable("n", 1, 5)
    arg = UOp.param(7, f32, (n, 4), "NPY")
    assert arg.arg is None and arg.shape == (n, 4)
    flat = resolved(arg, 20)
    assert flat.op is Ops.RESHAPE and flat.src[0].op is Ops.PAD and flat.src[0].shape == (5, 4)
    assert flat.src[0].src[0] is arg


@pytest.mark.parametrize("rows", [6, 7])
@pytest.mark.parametrize("axis", [0, 1])
def test_of_a_split_argument_a_body_sees_what_a_device_holds(axis: int, rows: int) -> None:
    shape = (rows, 4) if axis == 0 else (4, rows)
    arg = UOp.new_storage(shape, f32, D, axis)
    assert arg.shape == shape and arg.max_shard_shape[axis] == -(-rows // 3)
    size = 4 * -(-rows // 3)
    assert flat_storage(arg).shape == (size,) and resolved(arg, size) is flat_storage(arg)


def test_parameters_of_a_traced_body_are_flat() -> None:
    f = function(lambda x, w: x @ w)
    body = f(Tensor.empty(2, 3), Tensor.empty(3, 4)).uop.src[0].src[0]
    params = sorted((u for u in body.toposort() if u.op is Ops.PARAM), key=lambda u: int(u.arg.slot))
    assert [(p.src, p.arg.size) for p in params] == [((), 6), ((), 12)]
    split = f(Tensor.empty(6, 3).shard(D, 0).contiguous(), Tensor.empty(3, 4).shard(D)).uop.src[0].src[0]
    params = sorted((u for u in split.toposort() if u.op is Ops.PARAM), key=lambda u: int(u.arg.slot))
    assert [(p.arg.size, p.arg.device) for p in params] == [(6, D), (12, D)]
    assert [u.arg for u in split.toposort() if u.op is Ops.UNSHARD] == [(0,)]


def test_inlining_leaves_no_call_and_no_parameter() -> None:
    f = function(lambda x: (x + 1, x.sum()))
    a, b = f(Tensor.empty(2, 3)), f(Tensor.empty(4))
    sink = inline_functions(UOp.sink(*(t.uop for t in (*a, *b))))
    left = {u.op for u in sink.toposort()}
    assert not left & {Ops.FUNCTION, Ops.GETTUPLE, Ops.TUPLE} and Ops.BUFFER in left


@pytest.mark.parametrize("param,args,kind,text", [
    (UOp.param(0, f32, (4,)), ((5,),), TypeError, r"arg 0 shape mismatch: expected size 4, got \(5,\)"),
    (UOp.param(0, f32, (2, 2)), ((3, 2),), TypeError, r"arg 0 shape mismatch: expected size 4, got \(3, 2\)"),
    (UOp.param(0, f32), ((2,),), TypeError, r"arg 0 shape mismatch: expected scalar, got \(2,\)"),
    (UOp.param(0, dtypes.int32, (4,)), ((4,),), DTypeError,
     "arg 0 dtype mismatch: expected dtypes.int, got dtypes.float"),
    (UOp.param(1, f32, (4,)), ((4,),), RuntimeError, r"params not in order: \[1\]"),
    (UOp.param(0, f32, (4,)), ((4,), (4,)), TypeError, "expected 1 args, got 2"),
], ids=lambda x: x if isinstance(x, str) else None)
def test_what_does_not_fit(param: UOp, args: tuple[tuple[int, ...], ...], kind: type[Exception], text: str) -> None:
    call = (param.cast(f32) * 2.0).call(*(UOp.param(7 + i, f32, s) for i, s in enumerate(args)))
    with pytest.raises(kind, match=text):
        resolve_function(call)


def test_a_scalar_parameter_refuses_a_vector() -> None:
    body = Tensor(3.0, dtype="float32").as_param(0) * 2
    with pytest.raises(TypeError, match="shape mismatch: expected scalar"):
        Tensor.ones(2).call(fxn=body)


def test_no_check_of_the_axis() -> None:
    """Storage has none: a body over shards of two rows takes whatever has as many elements on each device."""
    split = Tensor(np.arange(12, dtype=np.float32).reshape(6, 2)).shard(D, 0).realize()
    body = split.as_param(0) * 2
    same = Tensor(np.full((6, 2), 5, np.float32)).shard(D, 0).realize()
    assert same.call(fxn=body).tolist() == [[10, 10]] * 6
    each = Tensor(np.array([1, 2, 3, 4], np.float32)).shard(D).realize()  # four elements, all of them on each device
    assert each.call(fxn=body).tolist() == [[2, 4], [6, 8]] * 3


def test_as_param_is_param_like() -> None:
    t = Tensor.empty(6, 2).shard(D, 0).contiguous()
    assert t.as_param(3).uop is t.uop.param_like(3) and t.as_param(3).uop.axis == 0
    assert Tensor.empty(2, 3).as_param(1).uop.src[0].arg.size == 6


# *** gradients ***
def rows_of(rows: int) -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(rows)
    return tuple(rng.integers(-3, 4, (rows, 3)).astype(np.float32) for _ in range(3))


@pytest.mark.parametrize("options", [{}, {"precompile": True}, {"precompile_backward": True}], ids=str)
@pytest.mark.parametrize("rows", [6, 7, 2])
def test_gradients_of_split_arguments(rows: int, options: dict[str, bool]) -> None:
    """Collected on flat storage, seen again as each argument: its shape, and the same split."""
    f = function(lambda a, b: ((a * b).sum(0) + a, a * a - b), **options)
    x, y, w = rows_of(rows)
    want_a, want_b = y * w.sum(0) + w + 2 * x * w, x * w.sum(0) - w
    for axes in ((0, 0), (0, None), (None, 0), (1, 1), (None, None), (0, 1)):
        a, b = (Tensor(v).shard(D, axis).realize() for v, axis in zip((x, y), axes))
        first, second = f(a, b)
        weights = Tensor(w).shard(D)
        ga, gb = ((first * weights).sum() + (second * weights).sum()).gradient(a, b)
        for g, want, t, axis in ((ga, want_a, a, axes[0]), (gb, want_b, b, axes[1])):
            assert g.shape == t.shape and g.device == D and (g.numpy() == want).all()
            assert axis is None or stored_axis(g.uop) == axis


def test_gradients_of_a_symbolic_argument() -> None:
    f, v = function(lambda a: a * a), Variable("n", 1, 8)
    x = Tensor(np.arange(24, dtype=np.float32).reshape(8, 3)).realize()
    for n in (3, 8, 1):
        (g,) = f(x[:v.bind(n)]).sum().gradient(x)
        assert (g.numpy() == 2 * x.numpy() * (np.arange(8) < n)[:, None]).all()


def test_the_split_of_a_result_is_that_of_the_body() -> None:
    f = function(lambda a: (a * 2, a.sum(0), a.T))
    outs = f(Tensor(np.ones((6, 3), np.float32)).shard(D, 0).realize())
    assert [o.uop.axis for o in outs] == [0, None, 1]
    assert [o.realize().uop.axis for o in outs] == [0, None, 1]


def test_views_are_the_only_shapes_in_a_body() -> None:
    body = function(lambda x: x.exp())(Tensor.empty(2, 3)).uop.src[0].src[0]
    [p] = [u for u in body.toposort() if u.op is Ops.PARAM]
    users = [u for u in body.toposort() if p in u.src]
    assert users and all(u.op in GroupOp.Movement for u in users)
