"""Legality per stage: storage, host addresses, kernel graphs (more: tests/uop/test_spec.py)."""
from __future__ import annotations

import pytest

from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import ParamArg, UOp
from tinyhost.uop.spec import Spec, spec_hcq, spec_kernel_graph, spec_program, spec_shared, spec_tensor

f32 = dtypes.float32
BUF = UOp.new_buffer("NPY", 8, f32, 0)
LOCAL, REG = (UOp.placeholder((4,), f32, 0, space) for space in (AddrSpace.LOCAL, AddrSpace.REG))


@pytest.mark.parametrize("node,spec,legal", [
    (UOp.param(0, f32, 8), spec_shared, True),
    (UOp(Ops.PARAM, (UOp.const(8),), ParamArg(0, f32, 8)), spec_shared, False),
    (UOp(Ops.PARAM, (), "slot 0"), spec_shared, False),
    (LOCAL, spec_shared, True), (REG, spec_shared, True), (BUF, spec_shared, False),
    (UOp(Ops.BUFFER, (UOp.const(4),), LOCAL.arg), spec_shared, False),
    (BUF, spec_tensor, True),
    (UOp.new_buffer(("A", "B"), 8, f32, 0), spec_tensor, True),
    (UOp(Ops.BUFFER, (), ParamArg(0, f32, 8)), spec_tensor, False),
    (UOp(Ops.BUFFER, (), ParamArg(0, f32, None, device="NPY")), spec_tensor, False),
    (UOp(Ops.BUFFER, (), ParamArg(0, f32, UOp.variable("n", 1, 8), device="NPY")), spec_tensor, False),
    (UOp.variable("n", 1, 8), spec_tensor, True),
    (UOp(Ops.BUFFER, (), ParamArg(-1, dtypes.weakint, None, (1, 8), name="n", addrspace=AddrSpace.ALU, device="A")),
     spec_tensor, False),
    (UOp(Ops.GETADDR, (BUF,), "NPY"), spec_hcq, True),
    (UOp(Ops.GETADDR, (UOp.param(0, f32, 8),), "NPY"), spec_hcq, True),
    (UOp(Ops.GETADDR, (BUF.shrink(((0, 4),)),), "NPY"), spec_hcq, True),
    (UOp(Ops.GETADDR, (BUF.bitcast(dtypes.int32),), "NPY"), spec_hcq, True),
    (UOp(Ops.GETADDR, (UOp(Ops.MSTACK, (BUF, BUF)),), ("A", "B")), spec_hcq, True),
    (UOp(Ops.GETADDR, (BUF.after(UOp(Ops.NOOP)),), "NPY"), spec_hcq, True),
    (UOp(Ops.GETADDR, (BUF.reshape((2, 4)),), "NPY"), spec_hcq, False),
    (UOp(Ops.GETADDR, (BUF,)), spec_hcq, False),
    (BUF.bitcast(dtypes.int32), spec_kernel_graph, True),
    (BUF.reshape((2, 4)), spec_kernel_graph, False),
    (BUF.shrink(((0, 4),)), spec_kernel_graph, True),
    (UOp(Ops.SHL, (UOp.param(0, f32), UOp.param(1, dtypes.int32))), spec_tensor, False),
    (UOp(Ops.XOR, (UOp.param(0, f32), UOp.param(0, f32))), spec_tensor, False),
    (UOp(Ops.CONST, arg=2), spec_program, True),
    (UOp.const(2) + UOp.const(3), spec_program, False),
    (UOp.invalid(), spec_program, False),
    (UOp.invalid(), spec_tensor, True),
], ids=lambda x: x.op.name if isinstance(x, UOp) else str(x))
def test_legality(node: UOp, spec: Spec, legal: bool) -> None:
    assert spec.accepts(node) is legal
