"""Flat bytes of graphs: what comes back is the same node, and damage is an error."""
from __future__ import annotations

import math
import random

import pytest

from tinyhost.dtype import Invalid, dtypes
from tinyhost.engine import codec
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Estimates, KernelInfo, Opt, OptOps, ProgramInfo, UOp


def kernel() -> UOp:
    r, k = UOp.range(16, 0), UOp.range(8, 1, AxisType.REDUCE)
    a = UOp.param(1, dtypes.float32, 128).index((r * 8 + k).valid(r < 12))
    out = UOp.param(0, dtypes.float32, 16).index(r).store(a.reduce(k, arg=Ops.ADD)).end(r)
    opts = Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.STAGE, 1, (0, "panel"))
    info = KernelInfo(opts_to_apply=opts, estimates=Estimates(r * 2, 3, 4))
    return UOp.sink(out, arg=info)


def test_round_trip_of_a_kernel():
    ast = kernel()
    assert codec.decode(codec.encode(ast)) is ast


@pytest.mark.parametrize("value", [None, True, 3, -(2**70), "text", b"\x00\xff", (1,
    (2.5, "x")), dtypes.bfloat16, Ops.ADD,
                                   AxisType.LANE, math.inf, -0.0, Invalid, (), Opt(OptOps.LANE, 1, 8)])
def test_round_trip_of_values(value):
    back = codec.decode(codec.encode(value))
    assert back == value and type(back) is type(value)
    assert repr(back) == repr(value)


def test_nan_comes_back():
    assert math.isnan(codec.decode(codec.encode((math.nan,)))[0])
    assert codec.decode(codec.encode(UOp.const(math.nan))) is UOp.const(math.nan)


def test_nodes_inside_arguments():
    v = UOp.variable("n", 1, 8, param=True)
    info = ProgramInfo(global_size=(v * 2, 1, 1), vars=(v,))
    assert codec.decode(codec.encode((info, b"code"))) == (info, b"code")


def test_deep_graph():
    u = UOp.variable("i", 0, 3)
    for i in range(50_000):
        u = UOp(Ops.ADD, (u, UOp.const(i % 5)))
    assert codec.decode(codec.encode(u)) is u


def test_unknown_values_are_refused():
    with pytest.raises(TypeError, match="set .* has no flat form"):
        codec.encode(({1, 2},))


def test_damage_is_a_value_error():
    data = bytearray(codec.encode(kernel()))
    rng = random.Random(0)
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.3:
            broken = broken[:rng.randrange(len(broken))]
        try:
            codec.decode(bytes(broken))
        except ValueError:
            pass
