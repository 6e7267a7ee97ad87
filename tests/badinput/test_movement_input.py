"""Bad input to movement, creation, joining and selection: wrong kinds of numbers, and what is no tensor.

Each row is a mistake, the exception it must be, and words the message must hold; numpy integers are no mistake.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor
from tinyhost.errors import DTypeError, ShapeError


def x() -> Tensor:
    return Tensor(np.ones((2, 3), np.float32))


def i() -> Tensor:
    return Tensor(np.array([1, 2], np.int32))


Row = tuple[Callable[[], Any], type[BaseException], str]

ROWS: list[Row] = [
    (lambda: x().reshape(1.5, 4), TypeError, r"an extent of a shape is an int, got 1.5 in \(1.5, 4\)"),
    (lambda: x().reshape(x()[0, 0], 6), TypeError, "an extent of a shape is an int, got <Tensor"),
    (lambda: x().expand(2.0, 3), TypeError, r"an extent of a shape is an int, got 2.0"),
    (lambda: x().shrink(((0, 0.5), None)), TypeError, r"a bound of shrink is an int, got 0.5 in \(0, 0.5\)"),
    (lambda: x().flatten(1, 0), ShapeError, r"flatten from axis 1 to 0 of \(2, 3\): the first comes after the last"),
    (lambda: x().split(1.5), TypeError, "a size of split is an int, got 1.5"),
    (lambda: x().split("a"), TypeError, "a size of split is an int, got 'a'"),
    (lambda: x().split([-1, 3]), ShapeError, r"split needs sizes that are not negative, got \[-1, 3\]"),
    (lambda: x().chunk(1.5), TypeError, "a number of chunks is an int, got 1.5"),
    (lambda: x().repeat(1.5, 1), TypeError, r"a count of repeat is an int, got 1.5 in \(1.5, 1\)"),
    (lambda: x().tile(0.5), TypeError, "a count of repeat is an int, got 0.5"),
    (lambda: x().repeat_interleave(-1), ShapeError, "repeat_interleave needs a count that is not negative, got -1"),
    (lambda: x().repeat_interleave(1.5), TypeError, "a count of repeat_interleave is an int, got 1.5"),
    (lambda: x().pad(1), TypeError, "padding is a tuple of numbers or pairs, got 1"),
    (lambda: x().pad((0.5, 1)), TypeError, r"a number of padding is an int, got 0.5 in \(0.5, 1\)"),
    (lambda: x().pad(((0.5, 1), None)), TypeError, "a number of padding is an int, got 0.5"),
    (lambda: x().cat(3), TypeError, "cat joins tensors, got int 3: give them one by one"),
    (lambda: x().cat([x()]), TypeError, r"cat joins tensors, got list \["),
    (lambda: x().stack(np.ones((2, 3))), TypeError, "stack joins tensors, got ndarray"),
    (lambda: x().hstack(1.0), TypeError, "hstack joins tensors, got float 1.0"),
    (lambda: x().meshgrid(i()), ShapeError, r"meshgrid takes 1-d coordinates, got shapes \[\(2, 3\), \(2,\)\]"),
    (lambda: x().roll(0.5, 0), TypeError, "a shift of roll is an int, got 0.5"),
    (lambda: x().unfold(0, 1.5, 1), TypeError, "a size or step of unfold is an int, got 1.5"),
    (lambda: x().diagonal(0.5), TypeError, "the offset of a diagonal is an int, got 0.5"),
    (lambda: x()[0].diag(0.5), TypeError, "the number of a diagonal is an int, got 0.5"),
    (lambda: x().tril(0.5), TypeError, "the diagonal of tril is an int, got 0.5"),
    (lambda: x().triu("a"), TypeError, "the diagonal of triu is an int, got 'a'"),
    (lambda: x().narrow(0, 0.5, 1), TypeError, "a start or length of narrow is an int, got 0.5"),
    (lambda: x().select(0, 0.5), TypeError, "the index of select is an int, got 0.5"),
    (lambda: x().rot90(0.5), TypeError, "the number of quarter turns is an int, got 0.5"),
    (lambda: x().as_strided((2,), (0.5,)), TypeError, "a stride of as_strided is an int, got 0.5"),
    (lambda: x().topk(1.5), TypeError, "the number of elements for topk is an int, got 1.5"),
    (lambda: i().one_hot(2.5), TypeError, "a number of classes is an int, got 2.5"),
    (lambda: Tensor.eye(1.5), TypeError, "an extent of eye is an int, got 1.5"),
    (lambda: x().rearrange(5), TypeError, "a rearrange formula is text such as 'a b -> b a', got 5"),
    (lambda: x().rearrange("a (b c) -> a b c", b=1.5), TypeError, "size b=1.5 for rearrange formula"),
    (lambda: x().nonzero(size=-1), ShapeError, "a selection has a size that is not negative, got -1"),
    (lambda: x().gather(0, [[0.5]]), DTypeError, "gather needs an integer index, got dtypes.weakfloat|dtypes.float"),
    (lambda: x().scatter(0, Tensor([[0, 1, 0]] * 2), Tensor.ones(1, 3)), ShapeError,
     r"scatter index \(2, 3\) must fit into the source \(1, 3\)"),
    (lambda: x().scatter(0, Tensor.zeros(2, 9, dtype="int32"), 1.0), ShapeError,
     r"scatter index \(2, 9\) must fit into \(2, 3\) outside of axis 0"),
]


@pytest.mark.parametrize("call, kind, text", ROWS)
def test_row(call: Callable[[], Any], kind: type[BaseException], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_numpy_integers_are_integers() -> None:
    two, three = np.int64(2), np.uint8(3)
    t = x()
    assert t.reshape(three, two).shape == (3, 2) and t.expand(np.int32(-1), three).shape == (2, 3)
    assert t.repeat(two, three).shape == (4, 9) and t.split(two, 1)[1].shape == (2, 1)
    assert t.pad((two, three)).shape == (2, 8) and t.roll(two, 0).shape == (2, 3)
    assert t.topk(two)[0].shape == (2, 2) and i().one_hot(three).shape == (2, 3) and Tensor.eye(two).shape == (2, 2)


def test_lists_are_indices_too() -> None:
    t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert t.gather(1, [[2], [0]]).tolist() == [[2], [3]] and t.index_select(1, [2, 0]).tolist() == [[2, 0], [5, 3]]
    assert t.scatter(1, [[0], [1]], [[9.0], [8.0]]).tolist() == [[9, 1, 2], [3, 8, 5]]
