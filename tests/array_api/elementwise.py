"""Rows of the element-wise functions and of type promotion."""
from __future__ import annotations

import itertools
from collections.abc import Callable

import array_api_strict as sx
import numpy as np

import tinyhost.array_api as xp

from .entries import entry
from .oracle import ALL, FLOATS, INTS, NUMERIC, SIGNED, SPECIAL, UNSIGNED, agree, both, compare, name_of, values

SECTION = "Element-wise functions"
# name: (dtypes, low, high) of the arguments
UNARY: dict[str, tuple[list[str], float | None, float | None]] = {
    "abs": (NUMERIC, None, None), "acos": (FLOATS, -1, 1), "acosh": (FLOATS, 1, 9), "asin": (FLOATS, -1, 1),
    "asinh": (FLOATS, None, None), "atan": (FLOATS, None, None), "atanh": (FLOATS, -0.99, 0.99),
    "bitwise_invert": (["bool", *INTS], None, None), "ceil": (NUMERIC, None, None), "cos": (FLOATS, None, None),
    "cosh": (FLOATS, None, None), "exp": (FLOATS, None, None), "expm1": (FLOATS, None, None),
    "floor": (NUMERIC, None, None), "isfinite": (NUMERIC, None, None), "isinf": (NUMERIC, None, None),
    "isnan": (NUMERIC, None, None), "log": (FLOATS, 0.01, 9), "log1p": (FLOATS, -0.9, 9), "log2": (FLOATS, 0.01, 9),
    "log10": (FLOATS, 0.01, 9), "logical_not": (["bool"], None, None), "negative": (NUMERIC, None, None),
    "positive": (NUMERIC, None, None), "reciprocal": (FLOATS, 0.5, 9), "round": (NUMERIC, None, None),
    "sign": (NUMERIC, None, None), "signbit": (FLOATS, None, None), "sin": (FLOATS, None, None),
    "sinh": (FLOATS, None, None), "sqrt": (FLOATS, 0, 9), "square": (NUMERIC, None, None), "tan": (FLOATS, -1.5, 1.5),
    "tanh": (FLOATS, None, None), "trunc": (NUMERIC, None, None), "real": (NUMERIC, None, None),
    "conj": (NUMERIC, None, None)}
# name: (dtypes, low, high of the second argument)
BINARY: dict[str, tuple[list[str], float | None, float | None]] = {
    "add": (NUMERIC, None, None), "atan2": (FLOATS, None, None), "bitwise_and": (["bool", *INTS], None, None),
    "bitwise_left_shift": (INTS, 0, 7), "bitwise_or": (["bool", *INTS], None, None),
    "bitwise_right_shift": (INTS, 0, 7), "bitwise_xor": (["bool", *INTS], None, None), "copysign": (FLOATS, None, None),
    "divide": (FLOATS, 0.5, 4), "equal": (ALL, None, None), "floor_divide": (NUMERIC, 1, 5),
    "greater": (NUMERIC, None, None), "greater_equal": (NUMERIC, None, None), "hypot": (FLOATS, None, None),
    "less": (NUMERIC, None, None), "less_equal": (NUMERIC, None, None), "logaddexp": (FLOATS, None, None),
    "logical_and": (["bool"], None, None), "logical_or": (["bool"], None, None), "logical_xor": (["bool"], None, None),
    "maximum": (NUMERIC, None, None), "minimum": (NUMERIC, None, None), "multiply": (NUMERIC, None, None),
    "nextafter": (FLOATS, None, None), "not_equal": (ALL, None, None), "pow": (NUMERIC, 0, 4),
    "remainder": (NUMERIC, 1, 5), "subtract": (NUMERIC, None, None)}
OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "**": "pow",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift", "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater",
    ">=": "greater_equal"}


def _unary(name: str) -> Callable[[], None]:
    def check() -> None:
        dtypes, low, high = UNARY[name]
        for dtype in dtypes:
            compare(name, values(dtype, low=low, high=high))
        for shape in ((), (0, 2)):
            compare(name, values(dtypes[-1], shape, low, high))
    return check


def _binary(name: str) -> Callable[[], None]:
    def check() -> None:
        dtypes, low, high = BINARY[name]
        for dtype in dtypes:
            compare(name, values(dtype, (2, 1), low if name == "pow" and dtype in FLOATS else None),
                    values(dtype, (3,), low, high, seed=1))
        for shapes in (((), (2,)), ((0,), ()), ((2, 1, 2), (3, 1))):
            a, b = (values(dtypes[-1], s, low, high, seed=i) for i, s in enumerate(shapes))
            compare(name, a, b)
    return check


def _special_unary(name: str) -> Callable[[], None]:
    def check() -> None:
        for dtype in FLOATS:
            compare(name, SPECIAL.astype(dtype), exact=name not in ("sign",))
    return check


_ZEROS_OPEN = ("maximum", "minimum", "floor_divide", "remainder")  # signs of zeros that the standard leaves open


def _special_binary(name: str) -> Callable[[], None]:
    def check() -> None:
        some = SPECIAL[[0, 1, 2, 3, 4, 5, 6, 9, 10, 12]]
        for dtype in FLOATS:
            a = some.astype(dtype)
            compare(name, a.reshape(-1, 1).copy(), a, exact=name not in _ZEROS_OPEN)
    return check


for _name, (_dtypes, _, _) in UNARY.items():
    entry(SECTION, _name)(_unary(_name))
    if _dtypes[-1] in FLOATS:
        entry(SECTION, _name, "special values")(_special_unary(_name))
for _name, (_dtypes, _, _) in BINARY.items():
    entry(SECTION, _name)(_binary(_name))
    if _dtypes[-1] in FLOATS:
        entry(SECTION, _name, "special values")(_special_binary(_name))


@entry(SECTION, "imag")
def _imag() -> None:
    assert xp.imag(xp.asarray([1.0, 2.0])).tolist() == [0, 0]


@entry(SECTION, "clip")
def _clip() -> None:
    for dtype in NUMERIC:
        x = values(dtype, (3, 4))
        for bounds in ((1, 4), (None, 3), (2, None), (None, None), (4, 4)):
            compare("clip", x, *bounds)
        compare("clip", x, values(dtype, (4,), 0, 2), values(dtype, (3, 1), 3, 5))


@entry(SECTION, "clip", "special values")
def _clip_special() -> None:
    for dtype in FLOATS:
        compare("clip", SPECIAL.astype(dtype), -1.0, 2.0)
        compare("clip", np.ones(2, dtype), np.array([np.nan, 0], dtype), np.array([2, np.nan], dtype))


@entry(SECTION, "expm1 and log1p", "small arguments")
def _small() -> None:
    for dtype in FLOATS:
        x = np.array([1e-3, -1e-3, 1e-6, -1e-6, 1e-12, 1e-30, 0.3, -0.7], dtype)
        for name in ("expm1", "log1p"):
            got = getattr(xp, name)(xp.asarray(x)).numpy()
            np.testing.assert_allclose(got, getattr(np, name)(x.astype(np.longdouble)).astype(dtype), atol=0,
                                       rtol={"float32": 5e-7, "float64": 1e-15 if name == "x" else 2e-15}[dtype])


# *** promotion ***
def _promoting_pairs() -> list[tuple[str, str]]:
    """Pairs of dtypes for which the standard defines a result."""
    signed_mixed = [(s, u) for s, u in itertools.product(SIGNED, UNSIGNED) if u != "uint64"]
    pairs = [("bool", "bool"), *itertools.combinations_with_replacement(SIGNED, 2),
             *itertools.combinations_with_replacement(UNSIGNED, 2), *signed_mixed,
             *itertools.combinations_with_replacement(FLOATS, 2)]
    return sorted(pairs, key=lambda p: [ALL.index(d) for d in p])


PAIRS = _promoting_pairs()


def _pair(first: str, second: str) -> Callable[[], None]:
    def check() -> None:
        want = sx.result_type(getattr(sx, first), getattr(sx, second))
        for a, b in ((first, second), (second, first)):
            assert name_of(xp.result_type(getattr(xp, a), getattr(xp, b))) == want._np_dtype.name
            for name, (dtypes, low, high) in BINARY.items():
                if a in dtypes and b in dtypes:
                    ours, theirs = both(values(a, (2,), low, high), values(b, (2,), low, high))
                    assert name_of(getattr(xp, name)(*ours).dtype) == np.asarray(
                        getattr(sx, name)(*theirs)).dtype.name, name
            for name in ("concat", "stack"):
                ours, theirs = both(values(a, (2,)), values(b, (2,)))
                assert name_of(getattr(xp, name)(ours).dtype) == np.asarray(getattr(sx, name)(theirs)).dtype.name
            ours, theirs = both(values(a, (2,)), values(b, (2,)))
            condition = np.array([True, False])
            assert name_of(xp.where(xp.asarray(condition), *ours).dtype) == np.asarray(
                sx.where(sx.asarray(condition), *theirs)).dtype.name
        compare("where", np.array([True, False]), values(first, (2,)), values(second, (2,)))
    return check


for _a, _b in PAIRS:
    entry("Type promotion", f"{_a}, {_b}", "promotion")(_pair(_a, _b))

_SCALARS = {"bool": [("bool", True)], **{d: [("int", 3)] for d in INTS},
            **{d: [("int", 3), ("float", 0.5)] for d in FLOATS}}


def _scalar(dtype: str, value: bool | int | float) -> Callable[[], None]:
    def check() -> None:
        assert name_of(xp.result_type(getattr(xp, dtype), value)) == dtype
        for symbol, name in OPERATORS.items():
            kinds = BINARY[name][0]
            if dtype not in kinds or (isinstance(value, float) and name.startswith("bitwise")):
                continue
            x, _ = both(values(dtype, (2,), 1, 3))
            scope = {"x": x[0], "s": value}
            want = np.asarray(getattr(sx, name)(sx.asarray(values(dtype, (2,), 1, 3)), value)).dtype.name
            for text in (f"x {symbol} s", f"s {symbol} x"):
                assert name_of(eval(text, scope).dtype) == want, text
            assert name_of(getattr(xp, name)(x[0], value).dtype) == want, name
    return check


for _d, _values in _SCALARS.items():
    for _kind, _value in _values:
        entry("Type promotion", f"{_d}, Python {_kind}", "mixed scalar")(_scalar(_d, _value))


def _operator(symbol: str) -> Callable[[], None]:
    name = OPERATORS[symbol]

    def check() -> None:
        dtypes, low, high = BINARY[name]
        for dtype in (dtypes[0], dtypes[-1]):
            a, b = values(dtype, (2, 3), 1, 4), values(dtype, (3,), max(low or 0, 1), high, seed=1)
            (x, y), (p, q) = both(a, b)
            agree(eval(f"x {symbol} y", {"x": x, "y": y}), eval(f"p {symbol} q", {"p": p, "q": q}))
            agree(eval(f"x {symbol} 2", {"x": x}) if dtype != "bool" else x, eval(f"p {symbol} 2", {"p": p})
                  if dtype != "bool" else p)
    return check


for _symbol in OPERATORS:
    entry("Array object", f"operator {_symbol}")(_operator(_symbol))
