"""Views: merged and dropped ones show the same elements; chains never get longer."""
from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from tinyhost.dtype import dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp, graph_rewrite
from tinyhost.uop.rules import pm_movement

HOLE = -12345  # what this evaluator puts where PAD has no value


def evaluate(u: UOp, leaf: np.ndarray) -> np.ndarray:
    """The elements a chain of views shows."""
    op = u.op
    if op is Ops.PARAM:
        return leaf
    if op is Ops.CONST or op is Ops.CAST:
        return np.asarray(u.const_value)
    x = evaluate(u.src[0], leaf)
    if op is Ops.RESHAPE:
        return x.reshape(u.marg)
    if op is Ops.PERMUTE:
        return x.transpose(u.arg)
    if op is Ops.FLIP:
        return np.flip(x, tuple(i for i, f in enumerate(u.arg) if f))
    if op is Ops.EXPAND:
        return np.broadcast_to(x, (*u.marg, *x.shape))
    if op is Ops.SHRINK:
        return x[tuple(slice(o, o + n) for o, n in u.marg)]
    assert op is Ops.PAD
    out = np.full(tuple(n for _, n in u.marg), False if x.dtype == bool else HOLE, x.dtype)
    out[tuple(slice(o, o + d) for (o, _), d in zip(u.marg, x.shape))] = x
    return out


def random_view(x: UOp, rnd: random.Random) -> UOp:
    shape: tuple[int, ...] = x.shape
    op = rnd.choice((Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.EXPAND, Ops.SHRINK, Ops.PAD))
    if op is Ops.RESHAPE:
        n, sizes = math.prod(shape), []
        while n > 1 and len(sizes) < 3:
            d = rnd.choice([d for d in range(1, n + 1) if n % d == 0])
            sizes.append(d)
            n //= d
        return UOp(op, (x, UOp.shape_operand((*sizes, n))))
    if op is Ops.EXPAND:
        dims = tuple(rnd.choice((1, 2)) for _ in range(rnd.randint(0, 1)))
        return UOp(op, (x, UOp.shape_operand(dims))) if x.max_numel() < 200 else x
    if op is Ops.PERMUTE:
        order = list(range(len(shape)))
        rnd.shuffle(order)
        return UOp(op, (x,), tuple(order))
    if op is Ops.FLIP:
        return UOp(op, (x,), tuple(rnd.random() < 0.5 for _ in shape))
    pairs = []
    for d in shape:
        if op is Ops.SHRINK:
            o = rnd.randint(0, d - 1)
            pairs.append((o, rnd.randint(1, d - o)) if rnd.random() < 0.5 else (0, d))
        else:
            o, more = rnd.randint(0, 1), rnd.randint(0, 1)
            pairs.append((o, o + d + more) if rnd.random() < 0.5 else (0, d))
    operands = (UOp.shape_operand(tuple(o for o, _ in pairs)), UOp.shape_operand(tuple(n for _, n in pairs)))
    return UOp(op, (x, *operands))


def count(u: UOp) -> int:
    return sum(x.op in GroupOp.Movement for x in u.toposort())


@pytest.mark.parametrize("seed", range(40))
def test_chains_show_the_same_elements(seed: int) -> None:
    rnd = random.Random(seed)
    leaf = np.arange(24).reshape(2, 3, 4)
    for _ in range(5):
        u = UOp.param(0, dtypes.int32, (24,)).reshape((2, 3, 4))
        for _ in range(rnd.randint(1, 7)):
            u = random_view(u, rnd)
        s = graph_rewrite(u, pm_movement)
        assert s.shape == u.shape
        assert count(s) <= count(u)
        assert (evaluate(s, leaf.ravel()) == evaluate(u, leaf.ravel())).all()
        assert graph_rewrite(s, pm_movement) is s


@pytest.mark.parametrize("seed", range(10))
def test_views_of_a_literal_are_one_expand(seed: int) -> None:
    rnd = random.Random(seed)
    u = UOp.const(7, dtypes.int32).expand((2, 3, 4))
    for _ in range(5):
        v: Any = random_view(u, rnd)
        u = u if v.op is Ops.PAD else v
    s = graph_rewrite(u, pm_movement)
    assert s.shape == u.shape and count(s) <= 1


def test_pairs_merge() -> None:
    x = UOp.param(0, dtypes.float32, 12)
    assert graph_rewrite(x.reshape((3, 4)).reshape((2, 6)).reshape((12,)), pm_movement) is x
    y = x.reshape((3, 4))
    assert graph_rewrite(y.permute((1, 0)).permute((1, 0)), pm_movement) is y
    assert graph_rewrite(y.flip(0).flip((0, 1)).flip(1), pm_movement) is y
    assert graph_rewrite(UOp.const(False).expand((3,))._mop(Ops.PAD, ((1, 5),)), pm_movement).op is Ops.EXPAND


def test_symbolic_views_stay() -> None:
    n = UOp.variable("n", 1, 10)
    x = UOp.param(0, dtypes.float32, 20)
    u = x._mop(Ops.SHRINK, ((0, n),))
    assert graph_rewrite(u, pm_movement) is u
    twice = u._mop(Ops.SHRINK, ((0, n),))
    assert graph_rewrite(twice, pm_movement).shape == (n,)
