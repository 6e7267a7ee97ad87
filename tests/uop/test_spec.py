"""The verifier: what each spec takes and refuses, the text of its errors, and the page that is printed from it."""
from __future__ import annotations

import pathlib

import pytest

from tinyhost.dtype import Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import KernelInfo, ParamArg, UOp
from tinyhost.uop.info import CallInfo
from tinyhost.uop.rules import lower_weak
from tinyhost.uop.spec import (
    spec_full,
    spec_hcq,
    spec_kernel_graph,
    spec_program,
    spec_shared,
    spec_tensor,
    type_verify,
    verify_node,
)
from tinyhost.uop.spec.document import text
from tinyhost.uop.spec.grammar import forms

F32 = UOp(Ops.PARAM, (), ParamArg(0, dtypes.float32))
HALF = UOp(Ops.PARAM, (), ParamArg(1, dtypes.float16))
I32 = UOp(Ops.PARAM, (), ParamArg(2, dtypes.int32))
WF = UOp(Ops.CONST, (), 1.5)
R = UOp.range(8, 0)


def test_every_op_has_a_form() -> None:
    assert set(Ops) - set(forms()) == {Ops.WAIT}


@pytest.mark.parametrize("bad", [F32.alu(Ops.AND, F32), UOp(Ops.AND, (F32, F32)), UOp(Ops.AND, (WF, WF)),
                                 UOp(Ops.OR, (F32, I32)), UOp(Ops.XOR, (HALF, HALF))])
def test_bits_of_floats_are_rejected(bad: UOp) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)UOp verification failed at 0 on Ops\.\w+ .*not bits"):
        type_verify([bad], spec_shared)


@pytest.mark.parametrize("bad,why", [
    (UOp(Ops.ADD, (F32, I32)), "operands have one dtype"),
    (UOp(Ops.CMPLT, (F32, HALF)), "operands have one dtype"),
    (UOp(Ops.CDIV, (F32, F32)), "not int"),
    (UOp(Ops.ADD, (F32,)), "source b is missing"),
    (UOp(Ops.SQRT, (F32, F32)), "2 sources, 1 expected"),
    (UOp(Ops.ADD, (F32, F32), 3), "the argument is not None"),
    (UOp(Ops.WHERE, (F32.ne(F32), F32, I32)), "arms have one dtype"),
    (UOp(Ops.CAST, (F32,), "float"), "the argument is not dtype"),
    (UOp(Ops.RANGE, (UOp.const(4),), (0, 1)), "the argument is not"),
    (UOp(Ops.RANGE, (F32,), (0, AxisType.WEAK)), "bound is Ops.PARAM of dtypes.float, not int"),
    (UOp(Ops.END, (UOp(Ops.NOOP), UOp.const(1))), "ranges is Ops.CONST"),
    (UOp(Ops.END, (UOp(Ops.NOOP), R, F32.ne(F32))), "the loop has no bound"),
    (UOp(Ops.PARAM, (UOp.const(4),), ParamArg(0, dtypes.float32)), "1 sources, 0 expected"),
    (UOp(Ops.BUFFER, (), ParamArg(0, dtypes.float32, 4)), "GLOBAL space, int size, a device"),
    (UOp(Ops.CONST, (), 1.0).replace(arg="x"), "the argument is not Python int"),
    (UOp(Ops.REDUCE, (F32,), (Ops.CMPLT, 1)), "the argument is not"),
    (UOp(Ops.PERMUTE, (F32,), None), "the argument is not tuple of axis numbers"),
    (UOp(Ops.STORE, (F32, UOp(Ops.NOOP))), "value is Ops.NOOP of dtypes.void, not value"),
    (UOp(Ops.MSELECT, (F32,), 1.0), "the argument is not int"),
    (UOp(Ops.SINK, (F32,), "k"), "None or KernelInfo"),
    (UOp(Ops.IF, (F32.ne(F32), F32)), "spec_tensor has no IF"),
    (UOp(Ops.WAIT), "spec_tensor has no WAIT"),
])
def test_tensor_spec_says_why(bad: UOp, why: str) -> None:
    with pytest.raises(RuntimeError) as e:
        type_verify([F32, bad], spec_tensor)
    assert str(e.value).startswith(f"UOp verification failed at 1 on {bad.op} ")
    assert why in str(e.value)


def test_weak_operands_fit_before_lowering_only() -> None:
    u = UOp(Ops.ADD, (F32, WF))
    type_verify([u, UOp(Ops.CMPNE, (I32, UOp.const(3))), UOp(Ops.WHERE, (I32.ne(0), I32, UOp.invalid()))], spec_tensor)
    with pytest.raises(RuntimeError, match="operands have one dtype"):
        type_verify([u], spec_program)


def test_program_takes_no_invalid_no_views_no_weak_math() -> None:
    with pytest.raises(RuntimeError, match="not Invalid"):
        type_verify([UOp(Ops.CONST, (), Invalid)], spec_program)
    with pytest.raises(RuntimeError, match="spec_program has no RESHAPE"):
        type_verify([UOp(Ops.RESHAPE, (F32, UOp.const(())))], spec_program)
    with pytest.raises(RuntimeError, match="no weak dtype in a program"):
        type_verify([R], spec_program)
    with pytest.raises(RuntimeError, match="spec_program has no CONTIGUOUS"):
        type_verify([UOp(Ops.CONTIGUOUS, (I32,))], spec_program)
    three = UOp.const(3, dtypes.int32)
    type_verify([UOp.const(3), three, UOp(Ops.ADD, (I32, three))], spec_program)


def _kernel() -> UOp:
    a, b = UOp.param(0, dtypes.float32, 32), UOp.param(1, dtypes.float32, 32)
    r, k = UOp.range(8, 0), UOp.range(4, 1, AxisType.REDUCE)
    total = (b.index(r * 4 + k) * 2.0).reduce(k, arg=Ops.ADD)
    return a.index(r).store(total + 1).end(r).sink(arg=KernelInfo())


def test_a_kernel_passes_before_and_after_lowering() -> None:
    ast = _kernel()
    type_verify(ast, spec_tensor)
    type_verify(list(ast.toposort()), spec_full)
    acc = UOp.placeholder((1,), dtypes.float32, 0, AddrSpace.REG)
    r = UOp.range(8, 0)
    a = UOp.param(0, dtypes.float32, 32)
    first = acc.index(UOp.const(0)).store(UOp.const(0.0))
    prog = a.index(r).store(acc.after(first).index(UOp.const(0)).load() + 1.0).end(r).sink(arg=KernelInfo())
    type_verify(lower_weak(prog), spec_program)


def test_vector_places_in_programs() -> None:
    a = UOp.param(0, dtypes.float32, 32)
    place = UOp(Ops.SHRINK, (a, UOp.const(4, dtypes.int32), UOp.const(8)))
    load = place.load()
    type_verify(list(UOp(Ops.STORE, (place, UOp(Ops.ADD, (load, load)))).toposort()), spec_program)
    bad = UOp(Ops.SHRINK, (a, UOp.const(4, dtypes.int32), I32))
    with pytest.raises(RuntimeError, match="size is Ops.PARAM of dtypes.int, not literal"):
        type_verify([bad], spec_program)


def test_kernel_graph_has_no_reshape() -> None:
    buf = UOp.new_buffer("NPY", 8, dtypes.float32, 0)
    call = UOp(Ops.CALL, (_kernel(), buf, buf), CallInfo())
    type_verify(buf.after(call).sink(), spec_kernel_graph)
    with pytest.raises(RuntimeError, match="spec_kernel_graph has no RESHAPE"):
        type_verify(buf.reshape((2, 4)).after(call).sink(), spec_kernel_graph)


def test_variables() -> None:
    v = UOp.variable("n", 1, 9)
    type_verify(list(v.bind(3).toposort()), spec_tensor)
    type_verify(list(v.bind(3).toposort()), spec_kernel_graph)


def test_host_stream() -> None:
    buf = UOp.new_buffer("NPY", 8, dtypes.uint8, 0)
    type_verify([UOp(Ops.GETADDR, (buf,), "NPY"), UOp(Ops.GETADDR, (buf.bitcast(dtypes.int8),), ("A", "B"))], spec_hcq)
    with pytest.raises(RuntimeError, match="no GETADDR"):
        type_verify([UOp(Ops.GETADDR, (buf,), "NPY")], spec_tensor)


def test_bodies_of_calls_are_not_entered() -> None:
    bad = UOp(Ops.SINK, (UOp(Ops.IF, (F32.ne(F32), F32)),), KernelInfo())
    type_verify(bad.call(F32).sink(), spec_tensor)


def test_one_node_against_all_stages() -> None:
    verify_node(UOp(Ops.LOAD, (F32,)))
    verify_node(UOp(Ops.SUB, (F32, WF)))
    with pytest.raises(RuntimeError, match="failed at 0 on Ops.ADD"):
        verify_node(UOp(Ops.ADD, (F32, F32), 1))


def test_the_page_is_the_grammar() -> None:
    page = pathlib.Path(__file__).parents[2] / "docs" / "spec.md"
    assert page.read_text() == text(), "docs/spec.md is stale: run `python -m tinyhost.uop.spec > docs/spec.md`"


def test_the_page_names_every_op() -> None:
    page = text()
    assert all(f"{op.value} {op.name} " in page for op in Ops if op is not Ops.WAIT)


def test_only_device_ranges_are_open_in_a_body() -> None:
    device, loop = UOp.range(2, -1, AxisType.DEVICE), UOp.range(2, 0)
    for open_range, legal in ((device, True), (loop, False)):
        body = UOp.sink(UOp.param(0, dtypes.float32, 4).index(open_range).store(1.0), arg=KernelInfo())
        assert spec_tensor.accepts(body.call(F32)) is legal
        assert spec_tensor.accepts(UOp(Ops.TUPLE, (open_range.cast(dtypes.float32),)).call()) is legal
