"""What the math side of the tensor surface says to bad input: what was asked, the values, why not, what to do."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.errors import DTypeError, ShapeError
from tinyhost.tensor import Tensor

EMPTY = Tensor(np.zeros((0, 3), np.float32))
X = Tensor(np.ones((2, 3), np.float32))
I = Tensor([1, 2, 3])
IMAGE = Tensor(np.ones((1, 1, 2, 3), np.float32))
ONE = Tensor(np.ones((1, 1, 1, 1), np.float32))


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # reductions
    "max of nothing": (lambda: EMPTY.max(), ShapeError,
                       "max over axes (0, 1) of shape (0, 3) has no elements to choose"),
    "min of an empty axis": (lambda: EMPTY.min(0), ShapeError, "min over axes (0,) of shape (0, 3) has no elements"),
    "argmax of nothing": (lambda: EMPTY.argmax(), ShapeError,
                          "has no elements to choose from: check for an empty axis"),
    "argmin of an empty axis": (lambda: EMPTY.argmin(0), ShapeError, "has no elements to choose from"),
    "axis out of range": (lambda: X.sum(5), IndexError, "axis 5 is outside of -2 to 1 of (2, 3)"),
    "axis twice": (lambda: X.sum((0, 0)), ShapeError,
                   "an axis stands twice in (0, 0) for shape (2, 3): name each once"[:48]),
    "axis of no number": (lambda: X.sum("a"), TypeError, "a reduction takes an axis, several of them or None, got 'a'"),
    # element-wise
    "shift of floats": (lambda: X << 1, DTypeError,
                        "shift operands must be int, got dtypes.float and dtypes.weakint: cast"),
    "shift by a float": (lambda: I << 1.5, DTypeError,
                         "shift operands must be int, got dtypes.int and dtypes.weakfloat"),
    "shift below zero": (lambda: I << -1, ValueError,
                         "cannot shift by -1: a count is not negative; shift the other way"),
    "right shift below zero": (lambda: I.rshift(-2), ValueError, "cannot shift by -2"),
    "bits of floats": (lambda: X & 1, DTypeError, "AND needs integers or bools, got dtypes.float"),
    "where on floats": (lambda: X.where(1, 2), DTypeError, "where cond must be bool, got dtypes.float: compare it"),
    "clip without bounds": (lambda: X.clip(), RuntimeError, "clip needs min_ or max_, got neither"),
    "rounding mode": (lambda: X.div(2, rounding_mode="x"), ValueError,
                      "unknown rounding_mode 'x': use None, 'trunc' or"),
    "negative integer power": (lambda: I ** -1, DTypeError, "dtypes.int ** -1: an integer to a negative power"),
    "gelu": (lambda: X.gelu("x"), ValueError, "unknown approximate 'x': use 'tanh' or 'none'"),
    "softplus": (lambda: X.softplus(0), ValueError, "softplus divides by beta: it cannot be 0"),
    "celu": (lambda: X.celu(0), ValueError, "celu divides by alpha: it cannot be 0, use relu"),
    # products
    "matmul": (lambda: X @ X, ShapeError, "cannot dot (2, 3) and (2, 3): contracted extents 3 and 2 differ"),
    "matmul by a scalar": (lambda: X @ Tensor(3.0), ShapeError, "dot needs operands of one axis or more, got shapes"),
    "einsum operands": (lambda: Tensor.einsum("ij,jk", X), ShapeError, "einsum 'ij,jk' describes 2 operands, got 1"),
    "einsum result twice": (lambda: Tensor.einsum("ij->ii", X), ShapeError,
                            "axes ['i'] of the result stand in no operand"),
    "einsum unknown": (lambda: Tensor.einsum("ij->z", X), ShapeError, "einsum 'ij->z': axes ['z'] of the result"),
    "einsum letters": (lambda: Tensor.einsum("i$->i", X), ShapeError,
                       "axes are letters, with at most one '...' in a term"),
    "einsum two ellipses": (lambda: Tensor.einsum("...i...->i", X), ShapeError, "at most one '...' in a term"),
    "einsum two arrows": (lambda: Tensor.einsum("ij->i->j", X), ShapeError, "einsum 'ij->i->j': axes are letters"),
    "einsum extents": (lambda: Tensor.einsum("ij,jk->ik", X, X), ShapeError, "einsum 'ij,jk->ik': axis j is 3 and 2"),
    "einsum diagonal": (lambda: Tensor.einsum("ii", X), ShapeError, "einsum 'ii': axis i is 2 and 3"),
    "einsum rank": (lambda: Tensor.einsum("ijk->i", X), ShapeError, "term 'ijk' has 3 axes, the operand 2"),
    "einsum of text": (lambda: Tensor.einsum("i,i", I, "x"), TypeError,
                       "einsum needs a formula and then Tensors, got operands"),
    "einsum without formula": (lambda: Tensor.einsum(X, "ij"), TypeError, "got the formula <Tensor (2, 3)"),
    # convolutions and pooling
    "conv channels": (lambda: IMAGE.conv2d(ones(1, 2, 1, 1)), ShapeError, "the input needs 2 channels and 4 axes"),
    "conv groups": (lambda: IMAGE.conv2d(ONE, groups=0), ShapeError, "with weight (1, 1, 1, 1) and 0 groups"),
    "conv bias": (lambda: IMAGE.conv2d(ONE, ones(3)), ShapeError,
                  "conv needs a bias of shape (1,), one for each output"),
    "conv stride": (lambda: IMAGE.conv2d(ONE, stride=0), ShapeError,
                    "conv needs a stride of at least 1 along each axis"),
    "conv padding": (lambda: IMAGE.conv2d(ONE, padding=(1, 2, 3)), ShapeError, "padding needs 1, 2 or 4 values for 2"),
    "conv kernel": (lambda: IMAGE.conv2d(ones(1, 1, 3, 3)), ShapeError,
                    "kernel (3, 3) with dilation (1, 1) is larger than"),
    "conv_transpose channels": (lambda: IMAGE.conv_transpose2d(ones(2, 1, 1, 1)), ShapeError,
                                "the input needs 4 axes and 2 channels, a multiple of groups"),
    "conv_transpose stride": (lambda: IMAGE.conv_transpose2d(ONE, stride=0), ShapeError,
                              "conv_transpose needs a stride"),
    "conv_transpose output": (lambda: IMAGE.conv_transpose2d(ONE, output_padding=-1), ShapeError,
                              "conv_transpose needs an output_padding that is not negative, got -1"),
    "conv float stride": (lambda: IMAGE.conv2d(ONE, stride=1.5), TypeError, "a stride of conv is an int, got 1.5"),
    "conv float padding": (lambda: IMAGE.conv2d(ONE, padding=(1.5, 0)), TypeError, "padding is an int, got 1.5"),
    "conv no padding": (lambda: IMAGE.conv2d(ONE, padding=None), TypeError, "padding is an int or several, got None"),
    "interpolate float size": (lambda: X.interpolate((2.5,)), TypeError, "a size of interpolate is an int, got 2.5"),
    "pool kernel": (lambda: IMAGE.max_pool2d((0, 1)), ShapeError, "pool needs a kernel of at least 1 along each axis"),
    "pool axes": (lambda: X.avg_pool2d((2, 2, 2)), ShapeError,
                  "pool of kernel (2, 2, 2) needs 3 axes, got shape (2, 3)"),
    "unpool shape": (lambda: IMAGE.max_unpool2d(I), ShapeError, "max_unpool2d needs an index for each value, shape"),
    "unpool dtype": (lambda: IMAGE.max_unpool2d(IMAGE), DTypeError,
                     "max_unpool2d needs integer indices, got dtypes.float"),
    "unpool size": (lambda: IMAGE.max_unpool2d(IMAGE.int(), output_size=(3,)), ShapeError,
                    "needs an output_size of as many"),
    "interpolate mode": (lambda: X.interpolate((2,), "area"), ValueError,
                         "unknown interpolation mode 'area': use 'linear'"),
    "interpolate size": (lambda: X.interpolate((0,)), ShapeError,
                         "interpolate needs positive sizes of the last axes of"),
    "interpolate corners": (lambda: X.interpolate((2,), "nearest", True), ValueError,
                            "align_corners is for modes 'linear'"),
    "interpolate nothing": (lambda: EMPTY.interpolate((2, 2)), ShapeError,
                            "interpolate cannot make (2, 2) of the empty axes"),
    # factorisations and hashes
    "qr": (lambda: I.qr(), ShapeError, "qr needs a matrix, got shape (3,)"),
    "svd": (lambda: I.svd(), ShapeError, "svd needs a matrix, got shape (3,)"),
    "newton_schulz": (lambda: I.newton_schulz(1, (1.0,)), ShapeError, "newton_schulz needs a matrix, got shape (3,)"),
    "keccak name": (lambda: I.keccak("md5"), ValueError, "unknown keccak configuration 'md5': use sha3_224"),
    "keccak rate": (lambda: I.keccak((0, 1)), ValueError, "a multiple of 8 between 8 and 192, got 0"),
    "keccak scalar": (lambda: Tensor(1.0).keccak(), ShapeError, "keccak needs rows of bytes, got a 0-d tensor"),
    # attention, norms, losses
    "mask and causal": (lambda: X.scaled_dot_product_attention(X, X, X, is_causal=True), ValueError, "not both"),
    "attention axes": (lambda: X.scaled_dot_product_attention(I, I), ShapeError,
                       "attention needs axes of tokens and of the"),
    "head size": (lambda: X.scaled_dot_product_attention(ones(3, 2), X), ShapeError, "need the same head size"),
    "tokens": (lambda: X.scaled_dot_product_attention(X, ones(5, 3)), ShapeError,
               "need the same number of tokens, axis -2"),
    "mask": (lambda: X.scaled_dot_product_attention(X, X, I), ShapeError,
             "must broadcast to (..., queries, keys) = (..., 2, 2)"),
    "grouped heads": (lambda: ones(1, 3, 2, 4).scaled_dot_product_attention(ones(1, 2, 2, 4), ones(1, 2, 2, 4),
                                                                            enable_gqa=True),
                      ShapeError, "those of the query (1, 3, 2, 4) must be a multiple of those of (1, 2, 2, 4)"),
    "batchnorm": (lambda: X.batchnorm(None, None, ones(4), ones(4)), ShapeError,
                  "needs a mean of shape (3,), got (4,)"),
    "sequential": (lambda: X.sequential([1]), TypeError, "sequential needs functions or layers, elements [0] are [1]"),
    "reduction": (lambda: X.cross_entropy(Tensor([0, 1]), reduction="x"), ValueError,
                  "unknown reduction 'x': use 'mean'"),
    "smoothing": (lambda: X.cross_entropy(Tensor([0, 1]), label_smoothing=2), ValueError,
                  "must lie between 0 and 1, got 2"),
    "classes": (lambda: X.cross_entropy(I), ShapeError, "needs targets of that shape or without axis 1, got (3,)"),
    "float classes": (lambda: X.cross_entropy(ones(2)), DTypeError,
                      "cross_entropy needs class numbers, integers, as targets"),
    "float nll": (lambda: X.nll_loss(ones(2)), DTypeError, "nll_loss needs class numbers, integers"),
    "nll weight": (lambda: X.nll_loss(Tensor([0, 1]), ones(2)), ShapeError,
                   "needs a weight for each class, shape (3,), got (2,)"),
    "sparse classes": (lambda: X.sparse_categorical_crossentropy(I), ShapeError,
                       "needs targets without axis 1, shape (2,)"),
}


@pytest.mark.parametrize("name", BAD)
def test_message(name: str) -> None:
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=re.escape(text)):
        call()
