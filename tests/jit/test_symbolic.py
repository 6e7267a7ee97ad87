"""Bound variables in arguments, shapes and results of a captured function."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, TinyJit, Variable
from tinyhost._tensor.symbolic import concrete, value_of
from tinyhost.errors import JitError


def test_variables():
    x = Tensor(np.arange(10, dtype=np.float32)).realize()
    v = Variable("n", 1, 10)

    @TinyJit
    def f(x: Tensor, n: Any) -> Tensor:
        return x[:n].sum()
    assert [f(x, v.bind(i)).item() for i in range(1, 11)] == [sum(range(i)) for i in range(1, 11)]
    with pytest.raises(JitError, match="args mismatch in JIT: arg 1 was variable n from 1 to 10 at capture and is "
                                       "variable m from 1 to 10 now"):
        f(x, Variable("m", 1, 10).bind(3))


def test_a_result_of_symbolic_shape():
    v = Variable("n", 1, 8)
    x = Tensor(np.arange(8, dtype=np.float32)).realize()

    @TinyJit
    def f(x: Tensor, n: Any) -> Tensor:
        return x[:n] * 2
    for i in range(1, 6):
        out = f(x, v.bind(i))
        assert out.shape[0] is v.bind(i) or int(out.shape[0]) == i
        assert out.pad_to(8).shrink(((0, i),)).tolist() == [2.0 * k for k in range(i)]


def read(t: Tensor) -> Any:
    """The elements of a tensor of symbolic shape."""
    return t.numpy()


def extents(t: Tensor) -> tuple[int, ...]:
    return tuple(value_of(d) for d in t.shape)


def test_an_input_of_symbolic_shape_gives_its_value_to_the_result():
    v = Variable("i", 1, 10)

    @TinyJit
    def f(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x + 1, x.sum(), x[1:].contiguous()
    data = np.arange(10, dtype=np.float32)
    for i in [2, 3, 1, 4, 10, 2]:
        more, total, rest = f(Tensor(data * i).realize()[:v.bind(i)])
        assert extents(more) == (i,) and (read(more) == data[:i] * i + 1).all() and total.item() == sum(range(i)) * i
        assert extents(rest) == (i - 1,) and (read(rest) == data[1:i] * i).all()


def test_symbolic_offsets_and_inner_axes():
    v = Variable("start", 0, 4)
    data = np.arange(24, dtype=np.int32).reshape(3, 8)
    x = Tensor(data).realize()

    @TinyJit
    def f(window: Tensor) -> dict[str, list[Tensor]]:
        return {"a": [window * 2, window.T.contiguous()]}
    for i in [0, 3, 1, 4]:
        twice, turned = f(x[:, v.bind(i):v.bind(i) + 4])["a"]
        assert (read(twice) == data[:, i:i + 4] * 2).all() and (read(turned) == data[:, i:i + 4].T).all()


def test_several_variables_and_kept_results():
    rows, cols = Variable("rows", 1, 4), Variable("cols", 2, 6)
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = Tensor(data).realize()

    @TinyJit
    def f(x: Tensor, r: Any) -> Tensor:
        return (x * x)[:r].contiguous()
    kept = [(r, c, f(x[:, :cols.bind(c)], rows.bind(r))) for r, c in [(1, 2), (4, 6), (2, 3), (3, 5), (4, 2)]]
    for r, c, out in kept:
        assert extents(out) == (r, c) and (read(out) == data[:r, :c] ** 2).all()


def test_one_variable_with_two_values():
    v = Variable("i", 1, 4)
    x, y = Tensor(np.ones(4, np.float32)).realize(), Tensor(np.ones(4, np.float32)).realize()

    @TinyJit
    def f(a: Tensor, b: Tensor) -> Tensor:
        return a.sum() + b.sum()
    with pytest.raises(JitError, match="bind mismatch on 'i': the arguments bind it to 2 and 3; one call uses one "
                                       "value of a variable"):
        f(x[:v.bind(2)], y[:v.bind(3)])


def test_another_symbolic_view_is_a_mismatch():
    v = Variable("i", 1, 4)
    x = Tensor(np.arange(8, dtype=np.float32)).realize()

    @TinyJit
    def f(a: Tensor) -> Tensor:
        return a.sum()
    for i in (2, 3, 4):
        assert f(x[:v.bind(i)]).item() == sum(range(i))
    with pytest.raises(JitError, match=r"arg 0 was a tensor \(i,\) dtypes.float on \w+ at capture and is another "
                                       "view now"):
        f(x[1:v.bind(2) + 1])


def test_reading_an_unbound_shape_says_which_variable():
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    with pytest.raises(RuntimeError, match="cannot read data of symbolic shape: variable i in i has no value; bind it"):
        concrete(x[:Variable("i", 1, 4)].uop)
