"""Kernels on narrow floats give the same bits with and without the types, on the reference device."""
import numpy as np
import pytest

from tinyhost.device.base import TinyELF
from tinyhost.device.builtin.interpreter import PythonProgram
from tinyhost.device.builtin.python import PythonRenderer
from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.target import Target
from tinyhost.uop import KernelInfo, UOp
from tinyhost.uop.info import ParamArg
from tinyhost.uop.rules.dtype_emulation import emulate_dtypes
from tinyhost.uop.semantics import carrier_np, cast_np, from_storage_np, to_storage_np

NARROW = (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)
NATIVE = frozenset(dtypes.all) - frozenset(NARROW)
N = 256


def param(slot, dt, size=N):
    return UOp(Ops.PARAM, (), ParamArg(slot, dt, size))


def at(base, i):
    return UOp(Ops.INDEX, (base, i))


def run(sink, out, *inputs):
    """Run the kernel as it is and emulated; gives both results as raw bytes."""
    results = []
    for graph in (sink, emulate_dtypes(sink, NATIVE)):
        renderer = PythonRenderer(Target("PYTHON", "LINEAR"))
        uops = list(graph.toposort())
        lib = renderer.compiler.compile(renderer.render(uops))
        params = sorted((u for u in uops if u.op is Ops.PARAM), key=lambda u: u.arg.slot)
        if graph is not sink:
            assert not any(u.dtype in NARROW for u in uops if u.op is not Ops.SINK)
        elf = TinyELF(lib, "k", renderer.target, tuple((None, u.arg.slot, u.arg.dtype, ()) for u in params))
        z = np.zeros_like(out)
        PythonProgram(None, elf)(z.view(np.uint8), *[a.view(np.uint8) for a in inputs], global_size=(N, 1, 1))
        results.append(z)
    return results


def kernel(value, out_dtype):
    g = UOp(Ops.SPECIAL, (UOp.const(N, dtypes.int32),), "gidx0")
    return UOp(Ops.SINK, (UOp(Ops.STORE, (at(param(0, out_dtype), g), value(g))),), KernelInfo(name="k"))


def storage_dtype(dt):
    return np.uint8 if dt.itemsize == 1 else np.float16 if dt is dtypes.float16 else np.uint16


def codes(dt, seed):
    if dt.itemsize == 1:
        return np.random.default_rng(seed).permutation(256).astype(np.uint8)
    edge = np.array([0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7F7F, 0x7F80, 0x7FC0, 0x3F80])
    some = np.random.default_rng(seed).integers(0, 0x8000, N // 2)
    some[:len(edge)] = edge
    both = np.concatenate([some, some | 0x8000]).astype(np.uint16)
    return np.random.default_rng(seed).permutation(both).view(storage_dtype(dt))


def check(dt, native, emulated):
    if dt in NARROW:
        native, emulated = from_storage_np(native, dt), from_storage_np(emulated, dt)
    nan = np.isnan(native) if native.dtype.kind == "f" else np.zeros(N, bool)
    assert (nan == (np.isnan(emulated) if emulated.dtype.kind == "f" else nan)).all()
    assert native[~nan].tobytes() == emulated[~nan].tobytes()


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX])
def test_arithmetic(dt, op):
    def value(g):
        x, y = (UOp(Ops.LOAD, (at(param(i, dt), g),)) for i in (1, 2))
        return UOp(Ops.ADD, (UOp(op, (x, y)), UOp.const(0.1)))
    check(dt, *run(kernel(value, dt), codes(dt, 0), codes(dt, 1), codes(dt, 2)))


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("op", [Ops.NEG, Ops.TRUNC, Ops.SQRT, Ops.RECIPROCAL])
def test_unary(dt, op):
    check(dt, *run(kernel(lambda g: UOp(op, (UOp(Ops.LOAD, (at(param(1, dt), g),)),)), dt), codes(dt, 0), codes(dt, 1)))


@pytest.mark.parametrize("dt", NARROW)
def test_comparison_and_selection(dt):
    def value(g):
        x, y = (UOp(Ops.LOAD, (at(param(i, dt), g),)) for i in (1, 2))
        half = UOp(Ops.CMPLT, (x, UOp.const(0.1)))  # the literal is rounded to the type first
        return UOp(Ops.WHERE, (UOp(Ops.AND, (UOp(Ops.CMPNE, (x, y)), half)), x, UOp.const(0.3)))
    check(dt, *run(kernel(value, dt), codes(dt, 0), codes(dt, 1), codes(dt, 2)))


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("other", [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint64, dtypes.int64,
                                   dtypes.int32, dtypes.bool, dtypes.bfloat16, dtypes.float16, dtypes.fp8e5m2])
def test_casts_both_ways(dt, other):
    rng = np.random.default_rng(3)
    if other in NARROW:
        numbers = codes(other, 4)
    elif other.is_float:
        points = from_storage_np(codes(dt, 5), dt).astype(np.float64)
        with np.errstate(all="ignore"):
            points[::2] = (points[::2] + np.roll(points, 1)[::2]) / 2
            nudged = points * (1 + rng.choice([0, 1e-12, -1e-12, 1e-7], N))
            numbers = nudged.astype(carrier_np(other))
    elif other is dtypes.bool:
        numbers = rng.integers(0, 2, N).astype(np.bool_)
    else:
        shifted = rng.integers(0, 2**64, N, dtype=np.uint64) >> rng.integers(0, 63, N).astype(np.uint64)
        numbers = shifted.astype(carrier_np(other))
    there = kernel(lambda g: UOp(Ops.CAST, (UOp(Ops.LOAD, (at(param(1, other), g),)),), dt), dt)
    check(dt, *run(there, codes(dt, 0), numbers))
    back = kernel(lambda g: UOp(Ops.CAST, (UOp(Ops.LOAD, (at(param(1, dt), g),)),), other), other)
    check(other, *run(back, np.zeros(N, storage_dtype(other) if other in NARROW else carrier_np(other)), codes(dt, 6)))


@pytest.mark.parametrize("dt", NARROW)
def test_bitcasts(dt):
    same = dtypes.uint8 if dt.itemsize == 1 else dtypes.int16
    out = np.zeros(N, carrier_np(same))
    to_int = kernel(lambda g: UOp(Ops.BITCAST, (UOp(Ops.LOAD, (at(param(1, dt), g),)),), same), same)
    values = codes(dt, 1)
    finite = values[~np.isnan(from_storage_np(values, dt))]
    values = np.resize(finite, N)
    native, emulated = run(to_int, out, values)
    assert (native == emulated).all()
    to_float = kernel(lambda g: UOp(Ops.BITCAST, (UOp(Ops.LOAD, (at(param(1, same), g),)),), dt), dt)
    check(dt, *run(to_float, codes(dt, 0), values.view(carrier_np(same))))


@pytest.mark.parametrize("dt", NARROW)
def test_gated_load_and_register_accumulator(dt):
    acc = UOp(Ops.BUFFER, (), ParamArg(0, dt, 1, addrspace=AddrSpace.REG))
    zero = UOp.const(0, dtypes.int32)

    def value(g):
        start = UOp(Ops.STORE, (at(acc, zero), UOp.const(0.5, dt)))
        r = UOp(Ops.RANGE, (UOp.const(4, dtypes.int32),), (0, AxisType.REDUCE))
        i = UOp(Ops.ADD, (g, r))
        gate = UOp(Ops.CMPLT, (i, UOp.const(N, dtypes.int32)))
        x = UOp(Ops.LOAD, (at(param(1, dt), i), UOp.const(0.25, dt), gate))
        total = UOp(Ops.LOAD, (at(UOp(Ops.AFTER, (acc, start, r)), zero),))
        end = UOp(Ops.END, (UOp(Ops.STORE, (at(acc, zero), UOp(Ops.ADD, (total, x)))), r))
        return UOp(Ops.LOAD, (at(UOp(Ops.AFTER, (acc, end)), zero),))
    check(dt, *run(kernel(value, dt), codes(dt, 0), codes(dt, 1)))


def test_kernels_without_such_types_are_left_alone():
    sink = kernel(lambda g: UOp(Ops.CAST, (g,), dtypes.float32), dtypes.float32)
    assert emulate_dtypes(sink, NATIVE) is sink
    half = kernel(lambda g: UOp(Ops.CAST, (g,), dtypes.half), dtypes.half)
    assert emulate_dtypes(half, frozenset(dtypes.all)) is half


def test_an_index_as_a_value_is_a_load():
    dt = dtypes.bfloat16
    graph = emulate_dtypes(kernel(lambda g: UOp(Ops.MUL, (at(param(1, dt), g), UOp.const(2.0, dt))), dt), NATIVE)
    store = graph.src[0]
    assert store.src[0].dtype is dtypes.uint16 and store.src[1].dtype is dtypes.uint16
    assert {u.arg.dtype for u in graph.toposort() if u.op is Ops.PARAM} == {dtypes.uint16}


def test_values_are_rounded_once():
    """A double just above a tie goes up, not to the even neighbour of its float32 rounding."""
    for dt in NARROW:
        tie = {1: 1 + 2.0**-4, 2: 1 + 2.0**-11}[dt.itemsize] if dt is not dtypes.bfloat16 else 1 + 2.0**-8
        tie = 1 + 2.0**-3 if dtypes.finfo(dt)[1] == 2 else tie
        numbers = np.full(N, tie * (1 + 2.0**-40))
        sink = kernel(lambda g, dt=dt: UOp(Ops.CAST, (UOp(Ops.LOAD, (at(param(1, dtypes.float64), g),)),), dt), dt)
        native, emulated = run(sink, codes(dt, 0), numbers)
        check(dt, native, emulated)
        assert (from_storage_np(native, dt) == 1 + 2.0 ** -dtypes.finfo(dt)[1]).all()


def test_the_oracle_itself():
    x = np.array([1.0, 3.0e38, np.nan], np.float32)
    assert np.array_equal(from_storage_np(to_storage_np(cast_np(x, dtypes.float32, dtypes.bfloat16), dtypes.bfloat16),
                                          dtypes.bfloat16), cast_np(x, dtypes.float32, dtypes.bfloat16), equal_nan=True)
