"""Text of nodes: exact repr, index expressions, listings that rebuild the graph; all at any depth."""
from __future__ import annotations

import pytest

from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import KernelInfo, ParamArg, UOp, printing


def test_repr_of_a_leaf() -> None:
    assert repr(UOp(Ops.CONST, arg=42)) == "UOp(Ops.CONST, arg=42, src=())"


def test_repr_nests_two_spaces_per_level() -> None:
    u = UOp(Ops.ADD, (UOp(Ops.CONST, arg=42), UOp(Ops.CONST, arg=3)))
    assert repr(u) == ("UOp(Ops.ADD, arg=None, src=(\n  UOp(Ops.CONST, arg=42, src=()),\n"
                       "  UOp(Ops.CONST, arg=3, src=()),))")
    assert repr(UOp(Ops.SQRT, (u,))).splitlines()[2] == "    UOp(Ops.CONST, arg=42, src=()),"


def test_repr_names_a_shared_node_at_its_first_use() -> None:
    c = UOp(Ops.CONST, arg=42)
    assert repr(UOp(Ops.ADD, (c, c))) == "UOp(Ops.ADD, arg=None, src=(\n  x0:=UOp(Ops.CONST, arg=42, src=()),\n  x0,))"
    d = UOp(Ops.CONST, arg=3)
    m = UOp(Ops.MUL, (d, c))
    assert repr(UOp(Ops.ADD, (m, UOp(Ops.MUL, (c, d))))) == "\n".join([
        "UOp(Ops.ADD, arg=None, src=(",
        "  UOp(Ops.MUL, arg=None, src=(",
        "    x0:=UOp(Ops.CONST, arg=3, src=()),",
        "    x1:=UOp(Ops.CONST, arg=42, src=()),)),",
        "  UOp(Ops.MUL, arg=None, src=(",
        "    x1,",
        "    x0,)),))"])


def test_repr_of_args_and_tags() -> None:
    x = UOp.param(0, dtypes.float32, 4)
    assert "arg=(Ops.ADD, 1)" in repr(UOp(Ops.REDUCE, (x,), (Ops.ADD, 1)))
    assert repr(UOp(Ops.NOOP, tag="t")) == "UOp(Ops.NOOP, arg=None, tag='t', src=())"


def test_repr_of_a_deep_graph() -> None:
    u = UOp(Ops.CONST, arg=1.5)
    for _ in range(100_000):
        u = UOp(Ops.SQRT, (u,))
    text = repr(u)
    assert text.count("Ops.SQRT") == 100_000 and len(text) < 30_000_000


R0, R1, N = UOp.range(4, 0), UOp.range(7, 1), UOp.variable("n", 1, 9)


@pytest.mark.parametrize("u,text", [
    (R0 * 4 + 1, "(r0*4+1)"),
    (R0, "r0"),
    (UOp.const(-3), "-3"),
    ((R0 + R1) * 4, "((r0+r1)*4)"),
    (R0 + R1 * N, "(r0+r1*n)"),
    (UOp(Ops.SUB, (R0, UOp(Ops.SUB, (R1, N)))), "(r0-(r1-n))"),
    (UOp(Ops.ADD, (R0, UOp(Ops.ADD, (R1, N)))), "(r0+r1+n)"),
    (R0 // 4 % 3, "(r0//4%3)"),
    (R0 // (R1 * N), "(r0//(r1*n))"),
    ((R0 < 3).where(R0, R1), "(r0 if r0<3 else r1)"),
    ((R0 < 3).where(R0, R1) + 1, "((r0 if r0<3 else r1)+1)"),
    (R0.maximum(R1 + 1), "max(r0, r1+1)"),
    ((R0 < 3).ne(True), "((r0<3)!=True)"),
    (UOp.range(4, -1, AxisType.DEVICE), "rm1"),
    (UOp(Ops.RANGE, (UOp.const(4),), (2, 0, 1, AxisType.WEAK)), "r2_0_1"),
    (UOp.special(8, "gidx0") * 2, "(gidx0*2)"),
    (UOp.param(3, dtypes.float32, 9).index(R0 + 1), "data3[r0+1]"),
    (UOp.const(2, dtypes.int8), "2"),
    (R0.cast(dtypes.float32), "float(r0)"),
    (UOp.invalid(), "Invalid"),
], ids=range(20))
def test_render(u: UOp, text: str) -> None:
    assert printing.render(u) == text


def test_render_caps_shared_expressions() -> None:
    u = R0
    for _ in range(200):
        u = u + u
    assert len(printing.render(u)) < 3 * printing.MAX_TEXT


def test_pyrender_rebuilds_the_graph() -> None:
    p = UOp.param(0, dtypes.float32, 16)
    b = UOp.new_buffer("NPY", 16, dtypes.int8, 5)
    reg = UOp.placeholder((4,), dtypes.float32, 2, AddrSpace.REG)
    body = p.index(R0 * 4 + N).store((b.index(R0).cast(dtypes.float32) + float("inf")) * -0.0 + reg.index(0)).end(R0)
    root = body.sink(arg=KernelInfo(name="k")).rtag(("t", 1))
    text = printing.pyrender(root)
    assert "UOp.new_buffer('NPY', 16, dtypes.char, 5)" in text
    scope: dict[str, object] = {"UOp": UOp, "Ops": Ops, "AxisType": AxisType, "AddrSpace": AddrSpace,
                                "ParamArg": ParamArg, "KernelInfo": KernelInfo, "dtypes": dtypes}
    exec(text, scope)
    assert scope["ast"] is root


def test_print_uops(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_uops(list((R0 + 1).toposort()))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "Ops.ADD" in lines[-1] and "[1, 2]" in lines[-1]
