"""Shared by the scheduling tests: parameters, one-output sinks, and the comparison of both interpreters."""
from __future__ import annotations

from typing import Any

import numpy as np
from schedule.interp import NP, Evaluator, run_linear

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import DType, dtypes
from tinyhost.schedule import create_linear
from tinyhost.uop import AddrSpace, Ops, UOp

CAPS = Capabilities()


def param(slot: int, shape: tuple[Any, ...], dtype: DType = dtypes.float32, device: str = "CPU") -> UOp:
    """Storage viewed as ``shape``."""
    return UOp.param(slot, dtype, shape, device) if shape else UOp.param(slot, dtype, (1,), device).reshape(())


def assign(target: UOp, value: UOp) -> UOp:
    """``target`` after ``value`` is stored in it."""
    return target.after(target.store(value))


def output(slot: int, value: UOp, device: str = "CPU") -> UOp:
    """A fresh output that holds ``value``."""
    return assign(param(slot, value.max_shape, value.dtype, device), value)


def schedule(*effects: UOp, caps: Capabilities = CAPS) -> UOp:
    """The LINEAR of some effects, all devices alike."""
    return create_linear(UOp.sink(*effects), lambda device: caps)


def count(linear: UOp) -> int:
    """Kernels and copies of a LINEAR."""
    return len(linear.src)


def kernels(linear: UOp) -> list[UOp]:
    """Kernel ASTs, in order of execution."""
    return [c.src[0] for c in linear.src if c.src[0].op is Ops.SINK]


def loads(ast: UOp) -> int:
    """Distinct reads of a kernel."""
    store = next(u for u in ast.toposort() if u.op is Ops.STORE)
    return sum(u.op is Ops.INDEX for u in store.src[1].toposort())


def inputs_of(effects: tuple[UOp, ...], seed: int = 0) -> dict[UOp, np.ndarray]:
    """Random contents of all storage under ``effects``."""
    rng = np.random.default_rng(seed)
    found = sorted({u for u in UOp.sink(*effects).toposort() if u.op in (Ops.PARAM, Ops.BUFFER)
                    and u.arg.addrspace is not AddrSpace.ALU}, key=lambda u: u.arg.slot)
    return {u: random_array(rng, u.arg.size, u.dtype) for u in found}


def random_array(rng: np.random.Generator, size: int, dtype: DType) -> np.ndarray:
    """Small integers in any dtype: sums and products of few of them are exact in float32."""
    if dtype is dtypes.bool:
        return rng.integers(0, 2, size).astype(np.bool_)
    low = 0 if dtype.is_unsigned else -4
    return rng.integers(low, 5, size).astype(NP[dtype])


def check(*effects: UOp, caps: Capabilities = CAPS, binds: dict[str, int] | None = None, seed: int = 0,
          exact: bool = True, inputs: dict[UOp, np.ndarray] | None = None) -> UOp:
    """Schedule, run, and compare every storage that ``effects`` write with the direct evaluation."""
    given = inputs_of(effects, seed) if inputs is None else inputs
    linear = schedule(*effects, caps=caps)
    memory = run_linear(linear, given, binds)
    evaluator = Evaluator(given, binds)
    last: dict[UOp, UOp] = {}
    for e in effects:
        evaluator(e)
        last[e.buf_uop if e.op is not Ops.AFTER else _root(e)] = e
    for root, state in last.items():
        expected = evaluator.contents[state]
        if exact:
            np.testing.assert_array_equal(memory[root], expected)
        else:
            np.testing.assert_allclose(memory[root], expected, rtol=2e-4, atol=1e-4)
    return linear


def _root(u: UOp) -> UOp:
    while u.src and u.op not in (Ops.PARAM, Ops.BUFFER):
        u = u.src[0]
    return u
