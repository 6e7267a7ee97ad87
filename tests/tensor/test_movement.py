"""Movement: the graph forms other stages read, symbolic extents, and errors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import dtypes
from tinyhost.errors import ShapeError
from tinyhost.mixin.padding import grouped_pads
from tinyhost.mixin.sint import broadcast_shape, resolve, smax, smin, sprod
from tinyhost.tensor import Tensor
from tinyhost.uop import Ops, UOp

from .evaluator import evaluate


def value(t: Tensor) -> np.ndarray[Any, Any]:
    return evaluate(t.uop)


def empty(*shape: Any) -> Tensor:
    return Tensor.empty(*shape, device="NPY")


# *** graph forms ***
def test_nothing_to_do_is_the_same_tensor() -> None:
    x = empty(2, 3)
    for y in (x.reshape(2, -1), x.permute(0, 1), x.expand(2, 3), x.expand(-1, 3), x.shrink((None, (0, 3))), x.flip(()),
              x.cast("float"),
              x.transpose(0, 0), x.squeeze()):
        assert y is x


def test_expand_prepends() -> None:
    e = empty(2, 1, 3).expand(5, 2, 4, 3)
    assert e.shape == (5, 2, 4, 3)
    ops = [u.op for u in e.uop.toposort() if u.op in (Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE)]
    expand = next(u for u in e.uop.toposort() if u.op is Ops.EXPAND)
    assert expand.marg == (5, 4) and ops[-1] is Ops.PERMUTE


def test_padding_form() -> None:
    p = empty(2, 3).pad(((1, 0), (0, 2)), value=7.0).uop
    mask, inside, outside = p.src
    assert p.op is Ops.WHERE and mask.op is Ops.PAD and inside.op is Ops.PAD and outside.op is Ops.CONST
    assert mask.marg == inside.marg == ((1, 3), (0, 5)) and mask.dtype is dtypes.bool and mask.base.arg is True


def test_arange_is_a_leaf() -> None:
    assert sum(u.op is Ops.REDUCE for u in Tensor.arange(10).uop.toposort()) == 0


def test_reduce_is_over_leading_axes() -> None:
    r = empty(2, 1, 3, 4).sum((1, 3))
    reduce = next(u for u in r.uop.toposort() if u.op is Ops.REDUCE)
    assert r.shape == (2, 3) and reduce.arg == (Ops.ADD, 1) and reduce.src[0].shape == (4, 2, 3)
    assert not any(u.op is Ops.REDUCE for u in empty(1, 3).sum(0).uop.toposort())


def test_literals_do_not_expand() -> None:
    assert not any(u.op is Ops.EXPAND for u in (empty(2, 3) * 2 + 1).uop.toposort())


# *** UOps share the syntax ***
def test_index_arithmetic_is_one_node() -> None:
    i = UOp.range(8, 0)
    one = UOp.const(1)
    assert i + 1 is UOp(Ops.ADD, (i, one)) and 1 + i is UOp(Ops.ADD, (one, i)) and i - 1 is UOp(Ops.ADD,
        (i, UOp.const(-1)))
    assert i * 4 is UOp(Ops.MUL, (i, UOp.const(4))) and i // 4 is UOp(Ops.FLOORDIV, (i, UOp.const(4)))
    assert i % 4 is UOp(Ops.FLOORMOD, (i, UOp.const(4))) and (i < 4) is UOp(Ops.CMPLT, (i, UOp.const(4)))
    assert (i > 4) is UOp(Ops.CMPLT, (UOp.const(4), i)) and (i >= 4).src[0].op is Ops.CMPLT


def test_node_indices_of_uops() -> None:
    place = UOp.placeholder((4, 5), dtypes.float32, 0)
    i, j = UOp.range(4, 0), UOp.range(5, 1)
    assert place[i, j] is place.index(i, j)
    assert place[2, j] is place.index(UOp.const(2), j) and place[i].shape == (5,)
    assert place[:, j].shape == (4,) and place[1:3, 0].shape == (2,)


# *** symbolic extents ***
def test_symbolic_shapes() -> None:
    n = UOp.variable("n", 1, 8).bind(3)
    x = Tensor(np.arange(8, dtype=np.float32), device="NPY")
    head = x[:n]
    assert head.max_shape == (8,) and head.ndim == 1
    np.testing.assert_array_equal(value(head + 1), [1, 2, 3])
    assert value(head.sum()) == 3
    np.testing.assert_array_equal(value(head.reshape(1, n).expand(2, n) * 2), [[0, 2, 4]] * 2)
    np.testing.assert_array_equal(value(head.pad((0, 8 - n))), [0, 1, 2, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(value(x[n:n + 2]), [3, 4])
    assert value(x[n]) == 3
    with pytest.raises(RuntimeError, match="cannot read data of symbolic shape"):
        x[:UOp.variable("n", 1, 8)].numpy()


def test_symbolic_matmul_and_softmax() -> None:
    n = UOp.variable("n", 1, 4).bind(2)
    q, k = (Tensor(np.random.default_rng(i).normal(size=(4, 3)).astype(np.float32), device="NPY") for i in (0, 1))
    got = value((q @ k[:n].T).softmax(-1))
    scores = value(q) @ value(k)[:2].T
    want = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_symbolic_integers() -> None:
    n = UOp.variable("n", 2, 5)
    assert resolve(n > 1) and not resolve(n > 9) and resolve(n > 3) and not resolve(n > 3, False)
    assert smax(3, 7) == 7 and smin(3, 7) == 3 and smax(n, 1) is n and smin(n, 9) is n and sprod((2, 3)) == 6
    assert broadcast_shape((2, 1), (3,)) == (2, 3) and broadcast_shape((n, 1), (1, n)) == (n, n)
    with pytest.raises(IndexError, match="extents 2 and 3 of axis -1 differ"):
        broadcast_shape((2,), (3,))


# *** errors ***
ERRORS: list[tuple[str, Callable[[Tensor], Any], type[Exception], str]] = [
    ("reshape", lambda x: x.reshape(5), ShapeError, r"cannot reshape \(2, 3\) \(6 elements\) to \(5,\) \(5 elements\)"),
    ("reshape -1 -1", lambda x: x.reshape(-1, -1), ShapeError, "only one extent can be inferred"),
    ("reshape -1", lambda x: x.reshape(-1, 4), ShapeError, "cannot reshape"),
    ("reshape negative", lambda x: x.reshape(-2, -3), ShapeError, "an extent is negative"),
    ("permute", lambda x: x.permute(0, 0), RuntimeError, "is not a permutation of the 2 axes"),
    ("expand", lambda x: x.expand(4, 3), ShapeError, r"cannot expand \(2, 3\) to \(4, 3\): axis 0 is 2, not 1"),
    ("expand rank", lambda x: x.expand(3), ShapeError, "the result has fewer axes"),
    ("shrink", lambda x: x.shrink(((0, 3), None)), ShapeError, "0 to 3 is not in 2"),
    ("shrink rank", lambda x: x.shrink(((0, 1),)), ShapeError, "shrink needs a pair for each axis"),
    ("flip twice", lambda x: x.flip((0, 0)), RuntimeError, "flipped only once"),
    ("axis", lambda x: x.sum(2), IndexError, r"axis 2 is outside of -2 to 1 of \(2, 3\)"),
    ("axis type", lambda x: x.sum(True), TypeError, "an axis is an int"),
    ("split", lambda x: x.split((1, 1), 1), ShapeError, "do not add up to 3"),
    ("reshape rest", lambda x: x.reshape(-1, 4), ShapeError,
     r"cannot reshape \(2, 3\) \(6 elements\) to \(-1, 4\): 6 elements do not divide by 4"),
    ("reshape negative", lambda x: x.reshape(-1, -3), ShapeError, r"cannot reshape \(2, 3\) to \(-1, -3\)"),
    ("split size", lambda x: x.split(0), ShapeError, "positive size"),
    ("chunk", lambda x: x.chunk(0), ShapeError, "positive number of chunks"),
    ("repeat", lambda x: x.repeat(2), ShapeError, "repeat needs a count for each axis"),
    ("unfold", lambda x: x.unfold(1, 4, 1), ShapeError, "size 4 must be at most 3"),
    ("diag", lambda x: empty(2, 3, 4).diag(), ShapeError, r"got shape \(2, 3, 4\): use diagonal"),
    ("diagonal", lambda x: x.diagonal(0, 1, 1), RuntimeError, "axes of a diagonal must differ"),
    ("roll", lambda x: x.roll((1, 2), 0), ShapeError, "one shift for each axis"),
    ("cat", lambda x: x.cat(empty(3, 4)), ShapeError, "cat along axis 0 needs equal other axes"),
    ("stack", lambda x: x.stack(empty(3, 2)), ShapeError, "stack needs equal shapes"),
    ("meshgrid", lambda x: x.meshgrid(x, indexing="xx"), ValueError, "unknown indexing 'xx'"),
    ("pad mode", lambda x: x.pad((1, 1), mode="mirror"), ValueError, "unknown padding mode 'mirror'"),
    ("pad reflect", lambda x: x.pad((3, 0), mode="reflect"), ShapeError,
     r"reflect padding \(3, 0\) of axis 1 of \(2, 3\) is over 2"),
    ("pad rank", lambda x: x.pad(((1, 1),)), ShapeError, r"padding needs \(before, after\) or None for each of 2 axes"),
    ("pad flat", lambda x: x.pad((1, 1, 1)), ShapeError, "even number"),
    ("pad_to", lambda x: x.pad_to(3), ShapeError, "pad_to needs an extent"),
    ("dot", lambda x: x @ x, ShapeError, r"cannot dot \(2, 3\) and \(2, 3\): contracted extents 3 and 2 differ"),
    ("dot scalar", lambda x: x @ Tensor(1.0), ShapeError, "dot needs operands of one axis or more"),
    ("conv", lambda x: empty(1, 3, 4, 4).conv2d(empty(2, 2, 3, 3)), ShapeError, "the input needs 2 channels"),
    ("pool", lambda x: x.avg_pool2d((3, 3)), ShapeError, r"is larger than the input \(2, 3\)"),
    ("gather", lambda x: x.gather(0, Tensor([1], device="NPY")), ShapeError, "gather needs an index of 2 axes"),
    ("gather dtype", lambda x: x.gather(0, x), TypeError, "gather needs an integer index"),
    ("scatter", lambda x: x.scatter(0, Tensor([[1]], device="NPY"), x, reduce="mean"), ValueError,
     "unknown reduce 'mean'"),
    ("interpolate", lambda x: x.interpolate((3,), mode="spline"), ValueError, "unknown interpolation mode 'spline'"),
    ("topk", lambda x: x.topk(4), ShapeError, "topk of 4 elements, but axis 1"),
    ("gelu", lambda x: x.gelu("fast"), ValueError, "unknown approximate 'fast'"),
    ("clip", lambda x: x.clip(), RuntimeError, "clip needs min_ or max_"),
    ("div", lambda x: x.div(2, rounding_mode="up"), ValueError, "unknown rounding_mode"),
    ("cross entropy", lambda x: x.cross_entropy(empty(3)), ShapeError, "cross_entropy of"),
    ("smoothing", lambda x: x.cross_entropy(x, label_smoothing=2.0), ValueError,
     "label_smoothing must lie between 0 and 1"),
    ("reduction", lambda x: x.cross_entropy(x, reduction="all"), ValueError, "unknown reduction 'all'"),

    ("attention", lambda x: x.scaled_dot_product_attention(x, x, attn_mask=x, is_causal=True), ValueError, "not both"),
    ("einsum letters", lambda x: Tensor.einsum("ij,jk->ik", x, x), ShapeError, "axis j is 3 and 2"),
    ("einsum count", lambda x: Tensor.einsum("ij,jk->ik", x), ShapeError, "describes 2 operands, got 1"),
    ("einsum result", lambda x: Tensor.einsum("ij->k", x), ShapeError, r"axes \['k'\] of the result"),
    ("einsum rank", lambda x: Tensor.einsum("ijk->i", x), ShapeError, "term 'ijk' has 3 axes, the operand 2"),
    ("rearrange", lambda x: x.rearrange("a b -> b"), ShapeError, "stands on one side only"),
    ("rearrange size", lambda x: x.rearrange("(a b) c -> a b c", a=3), ShapeError, "the extent in shape"),
    ("rearrange unknown", lambda x: x.rearrange("(a b) c -> a b c"), ShapeError,
     r"cannot infer the sizes of \['a', 'b'\]"),
    ("rearrange rank", lambda x: x.rearrange("a -> a"), ShapeError, r"describes 1 axes, shape \(2, 3\) has 2"),
    ("rearrange parens", lambda x: x.rearrange("(a b -> a b"), ShapeError, "unmatched parenthesis"),
    ("rearrange arrow", lambda x: x.rearrange("a b"), ShapeError, "one '->'"),
    ("rearrange nested", lambda x: x.rearrange("((a b)) c -> a b c"), ShapeError, "nested parentheses"),
    ("rearrange twice", lambda x: x.rearrange("a a -> a"), ShapeError, r"axis \['a'\] stands twice"),
    ("rearrange number", lambda x: x.rearrange("a 3 -> a"), ShapeError,
     "'3' in rearrange formula 'a 3 -> a' is no axis"),
    ("rearrange sign", lambda x: x.rearrange("a b, -> a b"), ShapeError, "'b,' in rearrange formula"),
    ("rearrange ellipsis", lambda x: x.rearrange("... -> a b"), ShapeError, "an ellipsis on one side only"),
    ("rearrange dots", lambda x: x.rearrange("... ... -> ..."), ShapeError, "at most one ellipsis"),
    ("rearrange split dots", lambda x: x.rearrange("(... a) -> ... a"), ShapeError, "take it out of the parentheses"),
    ("rearrange keyword", lambda x: x.rearrange("a b -> b a", c=2), ShapeError, r"size given for \['c'\]"),
    ("rearrange zero", lambda x: x.rearrange("a (b c) -> a b c", c=0), ShapeError, "cannot infer the size of 'b'"),
    ("rearrange negative", lambda x: x.rearrange("a (b c) -> a b c", c=-1), ShapeError, "size c=-1"),
    ("pad away", lambda x: x.pad((-2, -2)), ShapeError, r"takes away more than there is of shape \(2, 3\)"),
    ("mT", lambda x: x[0].mT, ShapeError, r"mT exchanges the last two axes, but the shape is \(3,\)"),
    ("movedim count", lambda x: x.movedim((0, 1), 0), ShapeError, r"as many sources as destinations, got \(0, 1\)"),
    ("movedim twice", lambda x: x.movedim((0, 0), (0, 1)), ShapeError, "moves each axis once"),
    ("narrow", lambda x: x.narrow(1, 2, 2), ShapeError, r"narrow to 2 elements from 2 on is outside of axis 1"),
    ("narrow scalar", lambda x: x[0, 0].narrow(0, 0, 1), ShapeError, "narrow takes an axis, but a 0-d node has none"),
    ("select", lambda x: x.select(0, 2), IndexError, "index 2 is out of bounds for axis 0 of size 2"),
    ("unbind", lambda x: x[0, 0].unbind(), ShapeError, "unbind takes an axis"),
    ("rot90", lambda x: x.rot90(1, (0, 0)), ShapeError, "the plane of two different axes"),
    ("unsqueeze twice", lambda x: x.unsqueeze((0, 0)), ShapeError, "different places between -4 and 3"),
    ("as_strided", lambda x: x.as_strided((2, 2), (3, 3), 1), ShapeError, "reads element 7 of the 6 elements"),
    ("as_strided lengths", lambda x: x.as_strided((2,), (3, 3)), ShapeError, "a stride for each extent"),
    ("as_strided negative", lambda x: x.as_strided((2,), (-1,), 5), ShapeError, "numbers that are not negative"),
    ("index_select", lambda x: x.index_select(0, Tensor([[0]], device="NPY")), ShapeError, "needs a 1-d index"),
    ("index_select dtype", lambda x: x.index_select(0, x[0]), TypeError, "needs an integer index"),
    ("take_along_dim", lambda x: x.take_along_dim(Tensor([0], device="NPY"), 0), ShapeError, "needs 2 axes of indices"),
    ("scatter source", lambda x: x.scatter(0, Tensor([[0, 1]], device="NPY"), x.int()), TypeError,
     "scatter source of dtypes.int into dtypes.float: cast one of them"),
    ("scatter mean of bools", lambda x: x.bool().scatter_reduce(0, Tensor([[0]], device="NPY"), x.bool(), "mean"),
     TypeError, "'mean' of bools is not defined"),
    ("searchsorted rows", lambda x: x.searchsorted(x[0]), ShapeError, r"needs values with leading axes \(2,\)"),
    ("searchsorted scalar", lambda x: x[0, 0].searchsorted(1.0), ShapeError, "self is 0-d"),
    ("bucketize", lambda x: x.bucketize(x), ShapeError, "bucketize needs 1-d boundaries"),
    ("repeats", lambda x: x.repeat_interleave([1, 2, 3], 0), ShapeError, "one number or 2, one for each element"),
    ("repeats dtype", lambda x: x.repeat_interleave([0.5, 1], 0), TypeError, "integer repeats"),
    ("one value for where", lambda x: x.bool().where(x), TypeError, "where takes two values, or none"),
    ("mask of numbers", lambda x: x.masked_select(x, size=1), TypeError, "masked_select needs a bool mask"),
    ("linspace infinite", lambda x: x.linspace(0, float("inf"), 3), ValueError, "linspace needs finite numbers"),
    ("linspace range", lambda x: x.linspace(0, 300, 3, dtype="uint8"), OverflowError, "does not fit dtypes.uchar"),
    ("linspace text", lambda x: x.linspace("a", 3, 3), TypeError, "linspace counts between numbers"),
    ("keccak", lambda x: x.keccak("md5"), ValueError, "unknown keccak configuration 'md5'"),
    ("qr", lambda x: x[0].qr(), ShapeError, "qr needs a matrix"),
    ("triangle", lambda x: x.newton_schulz(1, (1,)) if x.ndim > 2 else x[0].newton_schulz(1, (1,)), ShapeError,
     "newton_schulz needs a matrix"),
    ("normalize mode", lambda x: x.scatter_reduce(0, Tensor([[0]], device="NPY"), x, "median"), ValueError,
     "unknown reduce 'median'"),
]


@pytest.mark.parametrize("fn, kind, text", [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS])
def test_errors(fn: Callable[[Tensor], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        fn(empty(2, 3))


def test_grouped_pads() -> None:
    assert grouped_pads((1, 2), 3) == ((0, 0), (0, 0), (1, 2))
    assert grouped_pads((1, 2, 3, 4), 2) == ((3, 4), (1, 2))
    assert grouped_pads((None, (1, 2)), 2) == ((0, 0), (1, 2))


# *** more than torch has ***
@pytest.mark.parametrize("formula, sizes, want", [
    ("a b -> b a", {}, lambda a: a.T), ("a b -> (a b)", {}, lambda a: a.reshape(-1)),
    ("a (b c) -> b a c", {"c": 2}, lambda a: a.reshape(4, 3, 2).transpose(1, 0, 2)),
    ("... b -> b ...", {}, lambda a: a.T), ("a b -> a 1 b", {}, lambda a: a[:, None]),
    ("a b -> a b 1", {}, lambda a: a[..., None]),
])
def test_rearrange(formula: str, sizes: dict[str, int], want: Callable[[Any], Any]) -> None:
    a = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(value(Tensor(a, device="NPY").rearrange(formula, **sizes)), want(a))


def test_masked_select_and_nonzero() -> None:
    x = Tensor([[1, 0, 2], [0, 0, 3]], device="NPY")
    np.testing.assert_array_equal(value(x.nonzero(size=4, fill_value=-1)), [[0, 0], [0, 2], [1, 2], [-1, -1]])
    np.testing.assert_array_equal(value(x.masked_select(x > 1, size=3, fill_value=9)), [2, 3, 9])
    y = Tensor([[1, 0, 2], [0, 0, 3]], device="PYTHON")
    assert y.masked_select(y > 1).tolist() == [2, 3] and y.nonzero().tolist() == [[0, 0], [0, 2], [1, 2]]
    assert y.masked_select(y > 9).shape == (0,)


def test_keccak() -> None:
    import hashlib
    for cfg in ("sha3_224", "sha3_256", "sha3_512"):
        for n in (1, 135, 136, 300):
            data = bytes(i * 7 % 256 for i in range(n))
            assert bytes(value(Tensor(data, device="NPY").keccak(cfg)).tolist()) == hashlib.new(cfg, data).digest()
    rows = Tensor(np.arange(20, dtype=np.uint8).reshape(2, 10), device="NPY")
    digests = value(rows.keccak("shake_128"))
    assert bytes(digests[1].tolist()) == hashlib.shake_128(bytes(range(10, 20))).digest(16)
    assert value(rows.hash()).shape == (16,) and value(rows.hash()).tolist() != value((rows + 1).hash()).tolist()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5), (4, 1), (6, 5)])
def test_factorisations(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x = Tensor(a, device="NPY")
    q, r = (value(t) for t in x.qr())
    np.testing.assert_allclose(q @ r, a, atol=2e-6)
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(shape[-2]), q.shape), atol=2e-6)
    for full in (True, False):
        u, s, vt = (value(t) for t in x.svd(full))
        want_u, want, want_v = np.linalg.svd(a, full)
        k = want.shape[-1]
        assert u.shape == want_u.shape and vt.shape == want_v.shape
        np.testing.assert_allclose(s, want, atol=5e-6)
        np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vt[..., :k, :], a, atol=5e-6)
        np.testing.assert_allclose(np.swapaxes(u, -1, -2) @ u,
                                   np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], *[u.shape[-1]] * 2)),
                                   atol=5e-6)
