"""Loops of symbolic length nest in one order, whatever the addresses of the nodes are."""
from __future__ import annotations

import gc
import pickle
import random

import numpy as np

from tinyhost import Device, Tensor, Variable
from tinyhost.codegen.program import linear_program, optimised
from tinyhost.engine.program import renderer_of
from tinyhost.ops import Ops
from tinyhost.uop import UOp


def test_two_symbolic_loops_nest_alike_in_every_run():
    x = Tensor(np.ones((10, 6), np.float32)).realize()[:Variable("n", 1, 10).bind(3)]
    ast = (x @ x.T).schedule_linear().src[0].src[0]
    data, rng, seen = pickle.dumps(ast), random.Random(1), set()
    for _ in range(25):
        del ast
        gc.collect()
        heap = [UOp.const(rng.randrange(10**9)) for _ in range(rng.randrange(3000))]  # nodes get other addresses
        ast = pickle.loads(data)
        renderer = renderer_of(Device.DEFAULT)
        uops = linear_program(optimised(ast, renderer), renderer)
        seen.add(tuple(u.arg for u in uops if u.op is Ops.RANGE))
        del heap, uops
    assert len(seen) == 1


def test_products_of_symbolic_shapes():
    n = np.arange(60, dtype=np.float32).reshape(10, 6)
    for size in (1, 3, 10):
        x = Tensor(n).realize()[:Variable("n", 1, 10).bind(size)]
        assert ((x @ x.T).numpy() == n[:size] @ n[:size].T).all()
