"""The meaning of every op: scalar face == array face == an independent oracle, exhaustively on 8-bit types."""
import math
import operator
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyhost.dtype import ConstFloat, Invalid, dtypes, from_storage_scalar, storage_fmt, truncate
from tinyhost.errors import DTypeError
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.semantics import (
    MEANING,
    bitcast,
    bitcast_np,
    carrier_np,
    cast,
    cast_np,
    evaluate,
    evaluate_np,
    from_storage_np,
    to_storage_np,
)

STRONG_FLOATS = dtypes.floats
SHIFTS = (Ops.SHL, Ops.SHR)
INT_BINARY = sorted(GroupOp.Binary - {Ops.FDIV, Ops.THREEFRY})


def same(a, b):
    return ConstFloat(a) == ConstFloat(b)


def wrap(x, dt):
    return (x - dt.min) % 2**dt.bitsize + dt.min


def shift_right(x, count):
    return x >> min(count, 1000)


def oracle(op, a, b, dt):
    """Plain Python integers, unbounded, then wrapped."""
    if op in SHIFTS:
        count = b % 2**dt.bitsize
        return wrap(a << count if op is Ops.SHL else shift_right(a, count), dt) if count < 1000 else None
    if op is Ops.CDIV:
        return wrap(math.trunc(Fraction(a, b)), dt) if b else 0
    if op is Ops.CMOD:
        return a - b * math.trunc(Fraction(a, b)) if b else 0
    if op is Ops.FLOORDIV:
        return wrap(math.floor(Fraction(a, b)), dt) if b else 0
    if op is Ops.FLOORMOD:
        return a - b * math.floor(Fraction(a, b)) if b else 0
    if op is Ops.POW:
        if b < 0:
            return 0 if a == 0 else math.trunc(Fraction(1, a**-b))
        return wrap(a**b, dt)
    plain = {Ops.ADD: operator.add, Ops.SUB: operator.sub, Ops.MUL: operator.mul, Ops.MAX: max, Ops.XOR: operator.xor,
             Ops.OR: operator.or_, Ops.AND: operator.and_, Ops.CMPLT: operator.lt, Ops.CMPNE: operator.ne,
             Ops.CMPEQ: operator.eq}[op](a, b)
    return plain if op in GroupOp.Comparison else wrap(plain, dt)


@pytest.mark.parametrize("dt", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("op", INT_BINARY)
def test_every_pair_of_8_bit_integers(op, dt):
    numbers = range(dt.min, dt.max + 1)
    grid = np.array(numbers, carrier_np(dt))
    arrays = evaluate_np(op, dt, grid[:, None], grid[None, :])
    assert arrays.dtype == (np.bool_ if op in GroupOp.Comparison else grid.dtype)
    scalars = [[evaluate(op, dt, (a, b)) for b in numbers] for a in numbers]
    assert arrays.tolist() == scalars
    assert scalars == [[oracle(op, a, b, dt) for b in numbers] for a in numbers]


@pytest.mark.parametrize("dt", [dtypes.int8, dtypes.uint8])
def test_every_8_bit_integer(dt):
    numbers = list(range(dt.min, dt.max + 1))
    grid = np.array(numbers, carrier_np(dt))
    for op, want in ((Ops.NEG, [wrap(-x, dt) for x in numbers]), (Ops.TRUNC, numbers)):
        assert evaluate_np(op, dt, grid).tolist() == [evaluate(op, dt, (x,)) for x in numbers] == want
    for op in (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL):
        floats = evaluate_np(op, dt, grid)
        assert floats.dtype == np.float32
        assert all(map(same, floats.tolist(), [evaluate(op, dt, (x,)) for x in numbers]))
    some = grid[::5]
    got = evaluate_np(Ops.MULACC, dt, some[:, None, None], some[None, :, None], some).tolist()
    assert got == [[[evaluate(Ops.MULACC, dt, (a, b, c)) for c in some.tolist()] for b in some.tolist()]
                   for a in some.tolist()]
    assert got == [[[wrap(a * b + c, dt) for c in some.tolist()] for b in some.tolist()] for a in some.tolist()]


BOOL_TABLE = {Ops.ADD: 0b1110, Ops.MUL: 0b1000, Ops.MAX: 0b1110, Ops.SUB: 0b1101, Ops.XOR: 0b0110, Ops.OR: 0b1110,
              Ops.AND: 0b1000, Ops.CMPLT: 0b0010, Ops.CMPNE: 0b0110, Ops.CMPEQ: 0b1001}


@pytest.mark.parametrize("op", BOOL_TABLE)
def test_bools(op):
    for a in (False, True):
        for b in (False, True):
            want = bool(BOOL_TABLE[op] >> (2 * a + b) & 1)
            assert evaluate(op, dtypes.bool, (a, b)) is want
            assert evaluate_np(op, dtypes.bool, np.array([a]), np.array([b])).tolist() == [want]
    assert evaluate(Ops.NEG, dtypes.bool, (True,)) is False


@pytest.mark.parametrize("dt", [dt for dt in dtypes.ints if dt.itemsize > 1])
@pytest.mark.parametrize("op", [op for op in INT_BINARY if op is not Ops.POW])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_wide_integers(op, dt, data):
    edge = [dt.min, dt.max, 0, 1, dt.min + 1, dt.max - 1, dt.bitsize, dt.bitsize - 1]
    number = st.integers(dt.min, dt.max) | st.sampled_from(edge)
    a, b = data.draw(number), data.draw(number)
    got = evaluate(op, dt, (a, b))
    array = evaluate_np(op, dt, np.array([a], carrier_np(dt)), np.array([b], carrier_np(dt)))
    assert array.dtype == (np.bool_ if op in GroupOp.Comparison else carrier_np(dt)) and array.tolist() == [got]
    want = oracle(op, a, b, dt)
    if want is None:
        want = -1 if op is Ops.SHR and a < 0 else 0
    assert got == want


@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-8, 200))
def test_int_power(a, b):
    want = 0 if a == 0 and b < 0 else math.trunc(Fraction(a) ** b)
    assert evaluate(Ops.POW, dtypes.int64, (a, b)) == wrap(want, dtypes.int64)
    assert evaluate_np(Ops.POW, dtypes.int64, np.array([a]), np.array([b])).tolist() == [wrap(want, dtypes.int64)]


def test_shift_counts():
    for dt in dtypes.ints:
        for count in (dt.bitsize, dt.bitsize + 1, 2**31, -1, -dt.bitsize):
            assert evaluate(Ops.SHL, dt, (1, count)) == 0
            assert evaluate(Ops.SHR, dt, (dt.min, count)) == (0 if dt.is_unsigned else -1)
            assert evaluate(Ops.SHR, dt, (dt.max, count)) == 0
            counts = np.array([count], np.int64)
            assert evaluate_np(Ops.SHR, dt, np.array([dt.min], carrier_np(dt)), counts).tolist() == [
                0 if dt.is_unsigned else -1]
    assert evaluate(Ops.SHL, dtypes.weakint, (1, 100)) == 1 << 100


def test_threefry_vectors():
    vectors = [((0, 0), (0, 0), (0x6b200159, 0x99ba4efe)), ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2,
                                                          (0x1cb996fc, 0xbb002be7)),
               ((0x243f6a88, 0x85a308d3), (0x13198a2e, 0x03707344), (0xc4923a9c, 0x483df7a0))]
    for x, key, want in vectors:
        packed = [low | high << 32 for low, high in (x, key, want)]
        assert evaluate(Ops.THREEFRY, dtypes.uint64, tuple(packed[:2])) == packed[2]
        arrays = [np.array([v], np.uint64) for v in packed[:2]]
        assert evaluate_np(Ops.THREEFRY, dtypes.uint64, *arrays).tolist() == [packed[2]]


# *** floats ***
def all_values(dt):
    width = 8 * dt.itemsize
    raw = np.arange(2**width, dtype=np.uint8 if width == 8 else np.uint16)
    return from_storage_np(raw.view(np.float16) if dt is dtypes.float16 else raw, dt)


FLOAT_BINARY = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)


@pytest.mark.parametrize("dt", dtypes.fp8s)
@pytest.mark.parametrize("op", FLOAT_BINARY)
def test_every_pair_of_fp8(op, dt):
    values = all_values(dt)
    arrays = evaluate_np(op, dt, values[:, None], values[None, :])
    plain = values.tolist()
    exact = {Ops.ADD: operator.add, Ops.SUB: operator.sub, Ops.MUL: operator.mul, Ops.CMPLT: operator.lt,
             Ops.CMPNE: operator.ne, Ops.CMPEQ: operator.eq}.get(op)
    for i, a in enumerate(plain):
        for j, b in enumerate(plain):
            got = evaluate(op, dt, (a, b))
            assert same(got, arrays[i, j])
            if exact is not None:
                want = exact(a, b)
                assert same(got, want if op in GroupOp.Comparison else truncate[dt](want))


UNARY = (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.NEG, Ops.TRUNC)


@pytest.mark.parametrize("dt", [*dtypes.fp8s, dtypes.bfloat16, dtypes.float16])
@pytest.mark.parametrize("op", UNARY)
def test_every_value_of_narrow_floats(op, dt):
    values = all_values(dt)
    got = evaluate_np(op, dt, values)
    assert got.dtype == carrier_np(dt)
    step = 1 if dt.itemsize == 1 else 17
    for x, y in zip(values.tolist()[::step], got.tolist()[::step], strict=True):
        assert same(evaluate(op, dt, (x,)), y), x


WIDE = st.floats() | st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 5e-324, 2.0**-126, 1.7e308])


@pytest.mark.parametrize("dt", STRONG_FLOATS)
@pytest.mark.parametrize("op", FLOAT_BINARY)
@settings(max_examples=25, deadline=None)
@given(a=WIDE, b=WIDE)
def test_float_faces_agree_and_round_once(op, dt, a, b):
    a, b = truncate[dt](a), truncate[dt](b)
    got = evaluate(op, dt, (ConstFloat(a), ConstFloat(b)))
    array = evaluate_np(op, dt, np.array([a], carrier_np(dt)), np.array([b], carrier_np(dt)))
    assert same(array[0], got) and (op in GroupOp.Comparison or array.dtype == carrier_np(dt))
    if op in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV) and math.isfinite(a) and math.isfinite(b) and (b or op != Ops.FDIV):
        x, y = Fraction(a), Fraction(b)
        exact = {Ops.ADD: x + y, Ops.SUB: x - y, Ops.MUL: x * y, Ops.FDIV: x / y if y else x}[op]
        assert same(got, nearest(exact, dt)) or got == nearest(exact, dt)


def nearest(exact, dt):
    """An exact rational rounded to nearest even, by comparing distances."""
    try:
        guess = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if dt is dtypes.float64:
        return guess
    value = truncate[dt](guess)
    if not math.isfinite(value):
        return value
    return min((truncate[dt](v) for v in (guess, math.nextafter(guess, math.inf), math.nextafter(guess, -math.inf))
                if math.isfinite(truncate[dt](v))), key=lambda v: abs(Fraction(v) - exact))


def test_float32_math_is_ieee_single():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, (2, 20000), dtype=np.uint32)
    a, b = bits.view(np.float32)
    with np.errstate(all="ignore"):
        for op, f in ((Ops.ADD, np.add), (Ops.MUL, np.multiply), (Ops.FDIV, np.divide)):
            assert np.array_equal(evaluate_np(op, dtypes.float32, a, b), f(a, b), equal_nan=True)
            assert all(same(evaluate(op, dtypes.float32, (float(x), float(y))), f(x, y))
                       for x, y in zip(a[:500], b[:500], strict=True))
        assert np.array_equal(evaluate_np(Ops.SQRT, dtypes.float32, a), np.sqrt(a), equal_nan=True)


def test_nan_zero_and_infinity():
    nan, inf = math.nan, math.inf
    for dt in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.weakfloat):
        ev = lambda op, *xs, dt=dt: evaluate(op, dt, xs)
        for a, b in ((nan, 1.0), (1.0, nan), (nan, nan)):
            assert math.isnan(ev(Ops.MAX, a, b))
            assert [ev(op, a, b) for op in (Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE)] == [False, False, True]
        assert same(ev(Ops.MAX, 0.0, -0.0), 0.0) and same(ev(Ops.MAX, -0.0, 0.0), -0.0)
        assert ev(Ops.CMPEQ, ConstFloat(0.0), ConstFloat(-0.0)) is True
        assert same(ev(Ops.RECIPROCAL, -0.0), -inf) and same(ev(Ops.FDIV, 0.0, 0.0), nan)
        assert same(ev(Ops.FDIV, -1.0, 0.0), -inf) and same(ev(Ops.SQRT, -0.0), -0.0)
        assert same(ev(Ops.SQRT, -1.0), nan) and same(ev(Ops.LOG2, -1.0), nan) and same(ev(Ops.LOG2, 0.0), -inf)
        assert same(ev(Ops.EXP2, 1e5 if dt.bitsize > 16 else 3e4), inf) and same(ev(Ops.EXP2, -inf), 0.0)
        assert same(ev(Ops.SIN, inf), nan) and same(ev(Ops.SIN, -0.0), -0.0)
        assert same(ev(Ops.TRUNC, -0.5), -0.0) and same(ev(Ops.TRUNC, -inf), -inf) and same(ev(Ops.TRUNC, nan), nan)
        assert same(ev(Ops.MUL, 0.0, inf), nan) and same(ev(Ops.NEG, 0.0), -0.0)


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN])
def test_transcendental_faces_agree(op):
    rng = np.random.default_rng(1)
    for dt in (dtypes.float32, dtypes.float64):
        x = (rng.standard_normal(2000) * 10.0 ** rng.integers(-10, 10, 2000)).astype(carrier_np(dt))
        assert all(map(same, evaluate_np(op, dt, x).tolist(), [evaluate(op, dt, (v,)) for v in x.tolist()]))


def test_float_power():
    for a, b, want in ((-2.0, 3.0, -8.0), (-2.0, 0.5, math.nan), (0.0, -1.0, math.inf), (2.0, 1e9, math.inf),
                       (-2.0, 1025.0, -math.inf), (math.nan, 0.0, 1.0), (1.0, math.nan, 1.0)):
        assert same(evaluate(Ops.POW, dtypes.float64, (a, b)), want)
        assert same(evaluate_np(Ops.POW, dtypes.float64, np.array([a]), np.array([b]))[0], want)


@pytest.mark.parametrize("dt", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_mulacc_is_fused(dt, data):
    a, b = (truncate[dt](data.draw(WIDE)) for _ in range(2))
    near = truncate[dt](-a * b)  # cancels almost all of the product
    c = data.draw(st.sampled_from([near, truncate[dt](data.draw(WIDE))]))
    got = evaluate(Ops.MULACC, dt, (a, b, c))
    array = evaluate_np(Ops.MULACC, dt, *[np.array([v], carrier_np(dt)) for v in (a, b, c)])
    assert same(array[0], got) and array.dtype == carrier_np(dt)
    if all(map(math.isfinite, (a, b, c))):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        assert same(got, nearest(exact, dt)) or got == nearest(exact, dt)
    else:
        assert same(got, a * b + c)


def test_where_and_invalid():
    assert evaluate(Ops.WHERE, dtypes.int32, (True, 1, Invalid)) == 1
    assert evaluate(Ops.WHERE, dtypes.int32, (False, 1, Invalid)) is Invalid
    assert evaluate(Ops.WHERE, dtypes.int32, (Invalid, 1, 2)) is Invalid
    assert evaluate(Ops.WHERE, dtypes.uint8, (False, 1, 257)) == 1
    for op in (Ops.ADD, Ops.CMPNE, Ops.SHL):
        assert evaluate(op, dtypes.int32, (1, Invalid)) is Invalid
    assert evaluate(Ops.SIN, dtypes.bool, (Invalid,)) is Invalid
    assert evaluate_np(Ops.WHERE, dtypes.int32, np.array([True, False]), np.int32(1), np.int32(2)).tolist() == [1, 2]


def test_operands_are_brought_to_the_dtype():
    assert evaluate(Ops.CMPLT, dtypes.uint8, (300, 100)) is True
    assert evaluate(Ops.ADD, dtypes.float32, (1, 2.5)) == 3.5
    assert evaluate(Ops.CMPEQ, dtypes.float32, (ConstFloat(0.1), truncate[dtypes.float32](0.1))) is True


def test_errors():
    with pytest.raises(DTypeError, match=r"Ops.XOR of dtypes.float has no meaning: it takes integers"):
        evaluate(Ops.XOR, dtypes.float32, (1.0, 2.0))
    with pytest.raises(DTypeError, match=r"Ops.FDIV of dtypes.int has no meaning: it takes floats; cast"):
        evaluate_np(Ops.FDIV, dtypes.int32, np.array([1], np.int32), np.array([1], np.int32))
    with pytest.raises(DTypeError, match="Ops.SHL of dtypes.float has no meaning"):
        evaluate(Ops.SHL, dtypes.float32, (1.0, 1))
    with pytest.raises(DTypeError, match=r"cannot bitcast one dtypes.int \(4 bytes\) to dtypes.short \(2 bytes\)"):
        bitcast(1, dtypes.int32, dtypes.int16)


def test_every_alu_op_has_a_meaning():
    assert set(MEANING) | {Ops.SHL, Ops.SHR, Ops.WHERE} == GroupOp.ALU


# *** casts ***
def samples(dt):
    if dt is dtypes.bool:
        return [False, True]
    if dt.is_int:
        return sorted({v for k in range(0, dt.bitsize + 1) for d in (-1, 0, 1) for s in (1, -1)
                       if dt.min <= (v := s * 2**k + d) <= dt.max})
    edge = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.5, -0.9, 1.5, 255.9, 448.0, 464.0, 65504.0, 65520.0, 1e-7]
    edge.append(1e-40)
    edge += [s * (2.0**k + d) for k in range(0, 66) for d in (-1, 0, 1) for s in (1, -1)]
    return [truncate[dt](x) for x in edge]


@pytest.mark.parametrize("src", dtypes.all)
def test_casts(src):
    values = samples(src)
    array = np.array(values, carrier_np(src))
    for dst in dtypes.all:
        got = cast_np(array, src, dst)
        assert got.dtype == carrier_np(dst)
        for x, y in zip(values, got.tolist(), strict=True):
            assert same(cast(x, src, dst), y), (src, dst, x)
            if not dst.is_float and dst is not dtypes.bool:
                if src.is_float:
                    want = 0 if x != x else dst.max if x >= dst.max else dst.min if x <= dst.min else int(x)
                else:
                    want = wrap(int(x), dst)
                assert y == want
            elif dst is dtypes.bool:
                assert y is (x != 0)
            else:
                assert same(y, truncate[dst](x))


@given(st.integers(-(2**63), 2**63 - 1), st.floats())
def test_casts_to_bfloat16_round_once(i, f):
    for value, src in ((i, dtypes.int64), (i % 2**64, dtypes.uint64), (f, dtypes.float64)):
        array = np.array([value], carrier_np(src))
        assert same(cast_np(array, src, dtypes.bfloat16)[0], cast(value, src, dtypes.bfloat16))


def test_weak_casts():
    assert cast(2.9, dtypes.weakfloat, dtypes.weakint) == 2 and cast(300, dtypes.weakint, dtypes.uint8) == 44
    assert cast(300, dtypes.uint8, dtypes.int32) == 44  # the literal wraps at its own dtype first
    assert cast(Invalid, dtypes.bool, dtypes.float32) is Invalid
    assert same(cast(0.1, dtypes.weakfloat, dtypes.float32), float(np.float32(0.1)))


@pytest.mark.parametrize("dt", [*dtypes.fp8s, dtypes.bfloat16, dtypes.float16])
def test_storage_of_every_code(dt):
    values = all_values(dt)
    raw = to_storage_np(values, dt)
    again = from_storage_np(raw, dt)
    assert all(map(same, values.tolist(), again.tolist()))
    fmt = storage_fmt(dt)
    for code in range(0, len(values), 1 if dt.itemsize == 1 else 13):
        scalar = from_storage_scalar(struct.unpack(fmt, code.to_bytes(dt.itemsize, "little"))[0], dt)
        assert same(values[code], scalar)


def test_bitcasts():
    for src in dtypes.all:
        for dst in dtypes.all:
            if src.itemsize != dst.itemsize or dtypes.bool in (src, dst):
                continue
            values = [x for x in samples(src) if x == x]
            got = bitcast_np(np.array(values, carrier_np(src)), src, dst).tolist()
            assert all(same(bitcast(x, src, dst), y) for x, y in zip(values, got, strict=True)), (src, dst)
    assert bitcast(1.0, dtypes.float32, dtypes.uint32) == 0x3F800000
    assert bitcast(0x3F80, dtypes.uint16, dtypes.bfloat16) == 1.0
    assert bitcast_np(np.arange(4, dtype=np.uint8), dtypes.uint8, dtypes.uint32).tolist() == [0x03020100]
