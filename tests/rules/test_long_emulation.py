"""64-bit integers as two words: each op against numpy, and whole programs with and without the types."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from evaluate_graph import evaluate_graph

from tinyhost.codegen import program
from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.errors import DTypeError
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.rules import long_arithmetic as longs
from tinyhost.uop.rules.long_arithmetic import Long
from tinyhost.uop.semantics import cast_np, evaluate_np

N = 4000
WORDS = [UOp.param(i, dtypes.uint32) for i in range(4)]
A, B = Long(WORDS[0], WORDS[1]), Long(WORDS[2], WORDS[3])


def numbers(seed: int) -> np.ndarray:
    """uint64 of every length: random ones, ones near powers of two, their complements."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 65, N).astype(np.uint64)
    v = rng.integers(0, 2**64 - 1, N, dtype=np.uint64, endpoint=True) >> (np.uint64(64) - length)
    power = np.uint64(1) << (length - np.uint64(1))
    return np.choose(rng.integers(0, 5, N), [v, ~v, power, power - np.uint64(1), v << (np.uint64(64) - length)])


X, Y = numbers(1), np.maximum(numbers(2), 1)
SIGNED = {dtypes.int64: (X.view(np.int64), Y.view(np.int64)), dtypes.uint64: (X, Y)}
LEAVES = {WORDS[i]: (v >> np.uint64(32 * (i & 1))).astype(np.uint32) for i, v in enumerate((X, X, Y, Y))}


def evaluated(x: Long) -> np.ndarray:
    low, high = (np.broadcast_to(evaluate_graph(w, LEAVES), (N,)).astype(np.uint64) for w in x)
    return low | high << np.uint64(32)


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
@pytest.mark.parametrize("op", longs.BINARY, ids=str)
def test_binary(op: Ops, dtype: DType) -> None:
    x, y = SIGNED[dtype]
    inside = ~((X == 1 << 63) & (Y == 2**64 - 1)) if op in (Ops.CDIV, Ops.CMOD) else np.full(N, True)
    want = evaluate_np(op, dtype, x, y).view(np.uint64)
    assert np.array_equal(evaluated(longs.BINARY[op](A, B, dtype.is_unsigned))[inside], want[inside])


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_comparisons(dtype: DType) -> None:
    x, y = SIGNED[dtype]
    assert np.array_equal(evaluate_graph(longs.less_than(A, B, dtype.is_unsigned), LEAVES), x < y)
    assert np.array_equal(evaluate_graph(longs.unequal(A, B), LEAVES), x != y)
    same = evaluate_graph(longs.unequal(A, Long(WORDS[0], WORDS[3])), LEAVES)
    assert np.array_equal(same, (X >> np.uint64(32)) != (Y >> np.uint64(32)))


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_shifts(dtype: DType) -> None:
    x, unsigned = SIGNED[dtype][0], dtype.is_unsigned
    for count in range(64):
        left, right = evaluate_np(Ops.SHL, dtype, x, np.int64(count)), evaluate_np(Ops.SHR, dtype, x, np.int64(count))
        assert np.array_equal(evaluated(longs.shifted_left(A, count)), left.view(np.uint64))
        assert np.array_equal(evaluated(longs.shifted_right(A, count, unsigned)), right.view(np.uint64))
    by = UOp(Ops.AND, (WORDS[2], UOp.const(63, dtypes.uint32)))
    counts = (Y & np.uint64(63)).astype(np.int64)
    left, right = evaluate_np(Ops.SHL, dtype, x, counts), evaluate_np(Ops.SHR, dtype, x, counts)
    assert np.array_equal(evaluated(longs.shift_left(A, by)), left.view(np.uint64))
    assert np.array_equal(evaluated(longs.shift_right(A, by, unsigned)), right.view(np.uint64))


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_to_floats_rounds_once(dtype: DType) -> None:
    x, unsigned = SIGNED[dtype][0], dtype.is_unsigned
    assert np.array_equal(evaluate_graph(longs.to_single(A, unsigned, False), LEAVES), x.astype(np.float32))
    assert np.array_equal(evaluate_graph(longs.to_double(A, unsigned), LEAVES), x.astype(np.float64))
    odd = evaluate_graph(longs.to_single(A, unsigned, True), LEAVES)
    for narrow in (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s):
        np.testing.assert_array_equal(cast_np(odd, dtypes.float32, narrow), cast_np(x, dtype, narrow))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_from_floats(dtype: DType) -> None:
    leaf, carrier = UOp.param(9, dtype), np.float32 if dtype is dtypes.float32 else np.float64
    value = (X.view(np.int64).astype(np.float64) * 0.49).astype(carrier)
    LEAVES[leaf] = value
    assert np.array_equal(evaluated(longs.from_float(leaf, False)).view(np.int64), value.astype(np.int64))
    LEAVES[leaf] = np.abs(value)
    assert np.array_equal(evaluated(longs.from_float(leaf, True)), np.abs(value).astype(np.uint64))


# *** programs ***
PROGRAMS = {
    "arithmetic": lambda x, y: (x + y) * (x - y) + (-x).abs(),
    "floor": lambda x, y: x // y + x % y,
    "literal": lambda x, y: x // 1000 + x % 10 - x // -7,
    "truncated": lambda x, y: x.div(y, rounding_mode="trunc") + x.fmod(y),
    "bits": lambda x, y: (x & y) ^ (x | 12345678901234) ^ ~y,
    "shifts": lambda x, y: (x << 3) + (x >> 5) + (x << (y & 63)) + (x >> (y & 63)),
    "compare": lambda x, y: (x < y).where(x, y).maximum(x >> 1).minimum(y << 40),
    "unsigned": lambda x, y: x.cast("uint64") // 7 + (y.cast("uint64") >> 3) * (x.cast("uint64") < 5).cast("uint64"),
    "sum": lambda x, y: (x + y).sum(),
    "rows": lambda x, y: x.reshape(8, -1).sum(1).cat(y.reshape(8, -1).sum(0)),
    "extremes": lambda x, y: Tensor.stack(x.max(), x.min(), x.cast("uint64").max().cast("int64")),
    "argmax": lambda x, y: x.argmax() + y.argmin(),
    "cumsum": lambda x, y: x.cumsum(0),
    "product": lambda x, y: x.reshape(4, 16).prod(1).cat(y[:7].cumprod(0)),
    "sort": lambda x, y: x.sort()[0],
    "gather": lambda x, y: x[y & 31] + x[(y & 15) - 16],
    "one_hot": lambda x, y: (y & 7).one_hot(8),
    "arange": lambda x, y: Tensor.arange(10, dtype="int64") * 10**10,
    "power": lambda x, y: y.pow(3),
    "pad": lambda x, y: x.pad((1, 2)),
    "to_float": lambda x, y: x.float() + y.cast("uint64").float(),
    "to_double": lambda x, y: x.double() - y.cast("uint64").double(),
    "to_half": lambda x, y: (y >> 4).half(),
    "to_bfloat16": lambda x, y: x.bfloat16().float(),
    "from_float": lambda x, y: (y.float() * 1e17).long() + (y.float() * 1e17).cast("uint64").cast("int64"),
    "narrow": lambda x, y: x.int() + x.cast("uint8").int() + x.bool().int() + x.short().int(),
    "words": lambda x, y: x.cast("uint32").cast("int64"),
    "of_bool": lambda x, y: (x > y).long() - y.cast("uint16").long()}
FLOAT64 = {"to_double"}


def inputs() -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(5)
    x = rng.integers(-2**63, 2**63 - 1, 64)
    x[:5] = [0, -1, 2**63 - 1, -2**63, 0x12345678ABCDEF01]
    y = rng.integers(-2**20, 2**20, 64)
    return Tensor(x).realize(), Tensor(np.where(y == 0, 3, y)).realize()


def run(name: str) -> np.ndarray:
    return PROGRAMS[name](*inputs()).numpy()


def native(name: str) -> np.ndarray:
    """The result where the types exist."""
    with Context(DEV="PYTHON", EMULATED_DTYPES=""):
        return run(name)


@pytest.fixture
def no_longs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, no program that is made has a 64-bit integer."""
    whole = program.linear_program

    def checked(*args: object) -> list[UOp]:
        uops = whole(*args)
        assert not any(u.dtype in dtypes.int64s for u in uops if u.op is not Ops.SINK)
        return uops
    return lambda: monkeypatch.setattr(program, "linear_program", checked)


@pytest.mark.parametrize("device", ["CPU", "PYTHON", "PYTHON::gpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_the_types(name: str, device: str, no_longs: Callable[[], None]) -> None:
    want = native(name)
    no_longs()
    with Context(DEV=device, EMULATED_DTYPES="long"):
        np.testing.assert_array_equal(run(name), want)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in FLOAT64])
def test_a_target_without_the_types(name: str, no_longs: Callable[[], None]) -> None:
    """The capability alone is enough."""
    want = native(name)
    no_longs()
    with Context(DEV="PYTHON::gpu32"):
        np.testing.assert_array_equal(run(name), want)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64], ids=str)
@pytest.mark.parametrize("dev, emulated", [("PYTHON::gpu32", ""), ("PYTHON", "bfloat16"), ("PYTHON", "bfloat16,long")])
def test_integers_to_bfloat16_round_once(dtype: DType, dev: str, emulated: str) -> None:
    """Near ties of every size: through float32 alone some would be rounded twice."""
    rng = np.random.default_rng(8)
    high = rng.integers(128, 256, 3000).astype(np.uint64)
    shift = rng.integers(0, dtype.bitsize - 9, 3000).astype(np.uint64)
    tie = (high << np.uint64(1) | np.uint64(1)) << shift
    x = (tie + rng.integers(-1, 2, 3000).astype(np.uint64)).astype(dtype.fmt)
    if not dtype.is_unsigned:
        x[::2] = -x[::2]
    with Context(DEV=dev, EMULATED_DTYPES=emulated):
        got = Tensor(x).realize().cast("bfloat16").float().numpy()
    np.testing.assert_array_equal(got, cast_np(x, dtype, dtypes.bfloat16))


@pytest.mark.parametrize("narrow", [dtypes.float16, dtypes.bfloat16, *dtypes.fp8s], ids=str)
def test_doubles_round_once_without_words_of_64_bits(narrow: DType) -> None:
    rng = np.random.default_rng(9)
    tie = np.ldexp(rng.integers(256, 4096, 4000) + 0.5, rng.integers(-30, 20, 4000))
    x = tie * (1 + rng.integers(-1, 2, 4000) * 2.0**-50) * rng.choice([-1, 1], 4000)
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, -1e-300, 3.4028235677973366e38]])
    with Context(DEV="PYTHON", EMULATED_DTYPES=f"{narrow.alias},long"):
        got = Tensor(x).realize().cast(narrow).float().numpy()
    want = cast_np(x, dtypes.float64, narrow)
    np.testing.assert_array_equal(got, want)
    assert np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


def test_low_word_of_a_long() -> None:
    for dev, emulated in (("CPU", ""), ("CPU", "long"), ("PYTHON", "long"), ("PYTHON::gpu32", "")):
        with Context(DEV=dev, EMULATED_DTYPES=emulated):
            assert Tensor([0x12345678ABCDEF01], dtype="int64").cast("uint32").cast("int64").tolist() == [2882400001]


@pytest.mark.parametrize("value", [lambda x: x.expand(100, 3).prod(0), lambda x: (x + 1).bitcast("float64") + 1.0])
def test_what_has_no_emulation_is_an_error(value: object) -> None:
    with Context(DEV="PYTHON", EMULATED_DTYPES="long"), pytest.raises(DTypeError, match="has no emulation with 32-bit"):
        value(Tensor([1, 2, 3], dtype="int64").realize()).numpy()


def test_names_that_have_no_emulation() -> None:
    with Context(DEV="PYTHON", EMULATED_DTYPES="half,double"), \
            pytest.raises(DTypeError, match="EMULATED_DTYPES=half,double: dtypes.double has no emulation; these have"):
        (Tensor([1.0]).realize() + 1).numpy()


def test_a_type_that_the_target_lacks() -> None:
    with Context(DEV="PYTHON::gpu32"), pytest.raises(DTypeError, match="has no dtypes.double and nothing emulates it"):
        (Tensor([1.0], dtype="float64").realize() + 1).numpy()


@pytest.mark.parametrize("seed", [0, *[pytest.param(i, marks=pytest.mark.soak) for i in range(1, 40)]])
def test_random_programs(seed: int) -> None:
    """Ten random ops, one after another."""
    binary = ["arithmetic", "floor", "truncated", "bits", "shifts", "compare", "literal", "unsigned"]
    rng = np.random.default_rng(seed)
    names = [str(n) for n in rng.choice(binary, 10)]

    def chain() -> np.ndarray:
        x, y = inputs()
        for i, name in enumerate(names):
            z = PROGRAMS[name](x, y).cast("int64")
            x, y = z, (x ^ i).eq(0).where(1, x ^ i)
            if i % 3 == 2:
                x, y = x.realize(), y.realize()
        return x.numpy()
    with Context(DEV="PYTHON"):
        want = chain()
    for dev in ("CPU", "PYTHON"):
        with Context(DEV=dev, EMULATED_DTYPES="long"):
            assert np.array_equal(chain(), want), names
