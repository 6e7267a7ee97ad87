"""What a node is: its dtype from (op, sources, arg) alone, flat storage, argument records, traces and order."""
from __future__ import annotations

import inspect
import pickle

import pytest

from tinyhost.dtype import ConstFloat, DType, Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop import BufferizeOpts, CallInfo, KernelInfo, ParamArg, UOp
from tinyhost.uop.derive import dtype_from_uop
from tinyhost.uop.rules import lower_weak

f16, f32, i8, i32, u32, u64 = (dtypes.float16, dtypes.float32, dtypes.int8, dtypes.int32, dtypes.uint32, dtypes.uint64)
F32, F16, I8, I32, U32 = (UOp(Ops.PARAM, (), ParamArg(i, d)) for i, d in enumerate((f32, f16, i8, i32, u32)))
FLAT = UOp.param(9, f32, 16)
COND = F32.ne(F32)
ONE = UOp.const(1)
R = UOp.range(8, 0)
IMAGE = UOp(Ops.PARAM, (), ParamArg(0, f16, 8, image=(4, 2)))
FUNCTION = UOp(Ops.TUPLE, (F32, I8)).call(F32, I8)
BUF = UOp.new_buffer("NPY", 4, i8, 0)


# *** dtype ***
VOID = [Ops.STORE, Ops.LINEAR, Ops.SINK, Ops.PROGRAM, Ops.SOURCE, Ops.END, Ops.BARRIER, Ops.GROUP, Ops.IF, Ops.ENDIF,
        Ops.NOOP, Ops.TUPLE, Ops.FUNCTION, Ops.CUSTOM_FUNCTION, Ops.REWRITE_ERROR, Ops.PYLITERAL]
OF_SOURCE_0 = [Ops.LOAD, Ops.REDUCE, Ops.AFTER, Ops.CONTIGUOUS, Ops.COPY, Ops.STAGE, Ops.DETACH, Ops.MSTACK,
               Ops.MSELECT, Ops.ALLREDUCE, Ops.UNSHARD, Ops.NEG, Ops.TRUNC, *GroupOp.Movement]


@pytest.mark.parametrize("op", VOID, ids=str)
def test_effects_are_void(op: Ops) -> None:
    assert dtype_from_uop(op, (F32, F32), None) is dtypes.void


@pytest.mark.parametrize("op", OF_SOURCE_0, ids=str)
def test_the_dtype_of_the_first_source(op: Ops) -> None:
    assert dtype_from_uop(op, (F16, I32), None) is f16


@pytest.mark.parametrize("node,dtype", [
    (UOp.const(3, i32), i32),
    (UOp(Ops.CALL, (UOp.const(64, u64), F32), i8), i8),
    (UOp.sink().call(F32), dtypes.void),
    (UOp(Ops.CUSTOM, (F32,), ("f({0})", i8)), i8),
    (UOp(Ops.CUSTOMI, (F32,), ("{0}", u32)), u32),
    (UOp(Ops.INS, (F32,), ("op", f16)), f16),
    (UOp(Ops.INS, (F32,), "wait"), dtypes.void),
    (FLAT.index(R), f32),
    (UOp(Ops.INDEX, (IMAGE, R, R)), f32),
    (R, dtypes.weakint),
    (UOp.range(I32, 1), i32),
    (UOp.special(8, "gidx0"), dtypes.weakint),
    (F16 < F16, dtypes.bool), (F16.ne(F16), dtypes.bool), (F16.eq(F16), dtypes.bool),
    (UOp(Ops.SIN, (I32,)), f32), (UOp(Ops.SQRT, (F16,)), f16), (UOp(Ops.EXP2, (ONE,)), dtypes.weakfloat),
    (UOp(Ops.LOG2, (UOp.invalid(),)), dtypes.bool),
    (UOp(Ops.WHERE, (COND, F16, F32)), f32), (UOp(Ops.WHERE, (COND, F16, UOp.const(1.0))), f16),
    (UOp(Ops.WHERE, (COND, I32, UOp.invalid())), i32),
    (UOp(Ops.STACK, (I8, I32)), i32), (UOp(Ops.STACK), dtypes.void),
    (UOp(Ops.WMMA, (F16, F16, F32), ((8, 8, 8), f16, "X", 32, None)), f32),
    (FUNCTION.gettuple(1), i8), (UOp(Ops.TUPLE, (F16, I8)).gettuple(0), f16),
    (UOp(Ops.GETADDR, (BUF,), "NPY"), u64),
    (UOp(Ops.SHL, (I8, U32)), i8), (UOp(Ops.SHR, (ONE, U32)), dtypes.weakint),
    (BUF, i8), (FLAT, f32),
    (UOp(Ops.BINARY, (), b"ab"), dtypes.uint8),
    (I8.cast(f16), f16), (F32.bitcast(i32), i32),
    (UOp(Ops.ADD, (I8, UOp.const(1.0))), dtypes.weakfloat), (UOp(Ops.MULACC, (F16, F16, F32)), f32),
    (UOp(Ops.AND, (I8, I32)), i32),
], ids=lambda x: x.op.name if isinstance(x, UOp) else str(x))
def test_dtype_rules(node: UOp, dtype: DType) -> None:
    assert node.dtype is dtype


@pytest.mark.parametrize("value,dtype", [(3, dtypes.weakint), (True, dtypes.bool), (1.5, dtypes.weakfloat),
                                         (ConstFloat(1.5), dtypes.weakfloat), (Invalid, dtypes.bool)])
def test_a_literal_has_the_dtype_of_its_value(value: object, dtype: DType) -> None:
    assert UOp(Ops.CONST, arg=value).dtype is dtype


def test_a_strong_literal_is_a_cast_over_the_plain_number() -> None:
    c = UOp.const(3, i32)
    assert c.op is Ops.CAST and c.arg is i32 and c.src == (UOp(Ops.CONST, arg=3),)


def test_dtype_errors() -> None:
    with pytest.raises(TypeError, match=r"where cond must be bool, got dtypes\.char"):
        _ = UOp(Ops.WHERE, (I8, F32, F32)).dtype
    with pytest.raises(TypeError, match=r"shift operands must be int, got \[dtypes\.float, dtypes\.int\]"):
        _ = UOp(Ops.SHL, (F32, I32)).dtype
    with pytest.raises(RuntimeError, match=r"no dtype for Ops\.WAIT with arg 5"):
        _ = UOp(Ops.WAIT, arg=5).dtype


def test_no_constructor_takes_a_dtype() -> None:
    assert list(inspect.signature(UOp.__new__).parameters) == ["cls", "op", "src", "arg", "tag"]
    with pytest.raises(TypeError, match=r"unused kwargs in replace \['dtype'\]"):
        F32.replace(dtype=f16)
    with pytest.raises(TypeError):
        F32.f(Ops.SQRT, dtype=f16)
    with pytest.raises(TypeError):
        FLAT.index(R).load(dtype=f16)
    with pytest.raises(TypeError):
        F32.reduce(R, arg=Ops.ADD, dtype=f16)


def test_weak_dtypes_survive_lowering_on_literals_only() -> None:
    n = UOp.variable("n", 1, 8, param=True)
    r = UOp.range(n, 0)
    value = (r * 3 < n).where(r.cast(f32) * 2.0 + 1, UOp.const(0.5))
    out = lower_weak(UOp.param(0, f32, 64).index(r * 4 + 1).store(value).end(r).sink(arg=KernelInfo()))
    weak = {u.op for u in out.toposort() if u.dtype in dtypes.weaks}
    assert weak == {Ops.CONST}


# *** identity ***
def test_the_type_of_the_argument_is_part_of_the_identity() -> None:
    assert len({UOp(Ops.CONST, arg=x) for x in (1, True, 1.0)}) == 3
    assert len({UOp(Ops.CONST, arg=x) for x in (0, False, 0.0, -0.0)}) == 4


def test_pickles_keep_identity_and_fields() -> None:
    u = (FLAT.index(R).load() + 1.5).rtag("t")
    assert pickle.loads(pickle.dumps(u)) is u


# *** storage ***
def test_storage_is_flat_and_its_shape_a_view() -> None:
    p = UOp.param(2, f32, (3, 4))
    assert p.op is Ops.RESHAPE and p.src[0].op is Ops.PARAM and p.src[0].src == () and p.src[0].arg.size == 12
    n = UOp.variable("n", 1, 6)
    s = UOp.param(2, f32, (n,))
    assert s.op is Ops.SHRINK and s.src[0].arg.size == 6 and s.shape == (n,)
    assert UOp.param(2, f32).arg.size is None and UOp.param(2, f32, ()).shape == ()
    assert UOp.param(2, f32, 7).shape == UOp.param(2, f32, (7,)).shape == (7,)


def test_an_image_is_an_argument_of_flat_storage() -> None:
    assert IMAGE.shape == (4, 2, 4) and IMAGE.arg.size == 8


def test_registers_know_their_size() -> None:
    reg = UOp.placeholder((4,), f32, 0, AddrSpace.REG)
    assert reg.op is Ops.BUFFER and reg.arg.size == 4 and reg.src == ()


def test_storage_is_whole_and_strong() -> None:
    with pytest.raises(TypeError, match="new_buffer size must be a concrete int, got "):
        UOp.new_buffer("NPY", UOp.variable("n", 1, 4), f32)
    with pytest.raises(RuntimeError, match="cannot create storage for weak dtype dtypes.weakint"):
        UOp.new_buffer("NPY", 4, dtypes.weakint)
    with pytest.raises(RuntimeError, match="cannot create param for weak dtype dtypes.weakfloat"):
        UOp.param(0, dtypes.weakfloat, (4,))


def test_no_axis_on_a_param() -> None:
    assert UOp.param(0, f32, 8, ("A", "B")).axis is None
    assert "axis" not in inspect.signature(UOp.param).parameters


def test_param_like() -> None:
    v = UOp.variable("n", 1, 8)
    p = v.param_like(3)
    assert p.op is Ops.PARAM and p.arg == ParamArg(3, dtypes.weakint, None, (1, 8), name="p3", addrspace=AddrSpace.ALU)
    assert v.bind(2).param_like(3) is p
    assert UOp.param(0, f32, (2, 3), "NPY").param_like(1) is UOp.param(1, f32, (2, 3), "NPY")


@pytest.mark.parametrize("arg,text", [
    (ParamArg(0, f32), "ParamArg(0, dtypes.float)"),
    (ParamArg(1, i8, 16), "ParamArg(1, dtypes.char, 16)"),
    (ParamArg(-1, dtypes.weakint, None, (0, 7), 2, "n", AddrSpace.ALU),
     "ParamArg(-1, dtypes.weakint, vmin_vmax=(0, 7), multiple_of=2, name='n', addrspace=AddrSpace.ALU)"),
    (ParamArg(2, f32, 4, device=("A", "B"), volatile=True, image=(1, 1)),
     "ParamArg(2, dtypes.float, 4, device=('A', 'B'), volatile=True, image=(1, 1))"),
])
def test_repr_of_param_arg(arg: ParamArg, text: str) -> None:
    assert repr(arg) == text


# *** builders ***
def test_instructions_carry_their_dtype_in_the_argument() -> None:
    u = (F32 + F32).ins("addss")
    assert u.arg == ("addss", f32) and u.src == (F32, F32) and u.dtype is f32
    assert (F32 + F32).ins("cmp", dtype=dtypes.void, src=(F32,), tag=1) is UOp(Ops.INS, (F32,), ("cmp", dtypes.void), 1)


def test_an_address_call_returns_what_it_says() -> None:
    assert UOp.const(64, u64).call(I8, ret_dtype=i32).arg is i32
    assert isinstance(UOp.sink().call(I8).arg, CallInfo)


def test_a_view_is_under_a_place_never_beside_it() -> None:
    """Indexing a part of a reshaped value leaves no other view than the one that was there."""
    from tinyhost.capabilities import Capabilities
    from tinyhost.schedule import create_linear
    src = UOp.param(0, f32, (2, 3, 4), "NPY2")
    value = src.reshape((6, 4)).index(UOp.const(4)) + 1.0
    out = UOp.param(1, f32, (4,), "NPY2")
    linear = create_linear(out.after(out.store(value)).sink(), lambda device: Capabilities())
    kernel = linear.src[0].src[0]
    assert not any(u.op in GroupOp.Movement for u in kernel.toposort())


def test_order_of_a_graph() -> None:
    """Sources stand before users, left to right; storage brings no shape nodes with it."""
    a, z = UOp.param(0, f32, 4), UOp.param(1, f32, 4)
    alu = UOp(Ops.ADD, (a, z))
    y = UOp(Ops.CONTIGUOUS, (alu,))
    sink = UOp.sink(y)
    assert list(sink.toposort()) == [a, z, alu, y, sink]


def test_stages_take_the_dtype_of_their_value() -> None:
    assert UOp(Ops.STAGE, (F16, R), BufferizeOpts(device=None)).dtype is f16
    assert UOp(Ops.REDUCE, (F16, UOp.range(4, 3, AxisType.REDUCE)), (Ops.ADD, 0)).dtype is f16
