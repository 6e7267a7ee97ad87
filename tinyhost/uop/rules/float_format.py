"""What the polynomials need to know of float32 and float64, and the steps that they share.

A ``Format`` holds the layout of one type and the constants of each function, lowest power first: minimax (relative
error) by the Remez exchange. Integers are read out of floats by adding 1.5 * 2**mantissa bits, which leaves the nearest
integer in the low bits: no conversion that could overflow.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, bits, fma, less, sub, where


@dataclass(frozen=True)
class Format:
    """Layout of one float type and the constants that its polynomials use."""

    dtype: DType
    bits: DType  # unsigned integer of the same width
    signed: DType
    mantissa: int
    bias: int
    exp2_range: tuple[float, float]  # outside, exp2 is 0 or infinite
    log2_e: float  # rounded to the type
    ln2: tuple[float, float]  # sum to log(2); a whole number in exp2_range times the first is exact
    exp2: tuple[float, ...]  # (2**f - 1) / f on [-1/2, 1/2]
    exp: tuple[float, ...]  # (e**r - 1 - r) / r**2 on [-log(2)/2, log(2)/2]
    atanh: tuple[float, ...]  # (atanh(s) / s - 1 - s**2 / 3) / s**4 in s*s
    sin: tuple[float, ...]  # (sin(r) - r) / r**3 in r*r on [-pi/4, pi/4]
    cos: tuple[float, ...]  # (cos(r) - 1) / r**2 in r*r on [-pi/4, pi/4]
    tan: tuple[float, ...]  # (tan(r) - r) / r**3 in r*r on [-pi/4, pi/4]
    pi_parts: tuple[float, ...]  # sum to pi; a whole number below pi_limit times any but the last is exact
    pi_limit: int

    @property
    def width(self) -> int:
        """Bits of the type."""
        return self.dtype.bitsize

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.width - 1

    @property
    def rounder(self) -> float:
        """Adding it leaves the nearest integer in the low bits of the mantissa."""
        return 1.5 * 2.0**self.mantissa

    @property
    def rounder_bits(self) -> int:
        """Bit pattern of ``rounder``."""
        return (self.bias + self.mantissa << self.mantissa) + (1 << self.mantissa - 1)


PI_BITS = 190
PI = 0xc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74
"""floor(pi * 2**190)."""


def split_pi(widths: tuple[int, ...]) -> tuple[float, ...]:
    """pi as a sum of numbers with so many bits each."""
    rest, out = PI, []
    for count in widths:
        drop = max(rest.bit_length() - count, 0)
        out.append(math.ldexp(rest >> drop, drop - PI_BITS))
        rest &= (1 << drop) - 1
    return tuple(out)


FLOAT32 = Format(
    dtypes.float32, dtypes.uint32, dtypes.int32, 23, 127, (-151.0, 129.0),
    log2_e=1.4426950216293335, ln2=(0.693145751953125, 1.428606765330187e-06),
    exp2=(0.6931472029183414, 0.24022647905596894, 0.05550332320971167, 0.009618437947000813, 0.0013398937342504382,
          0.00015353316005251768),
    exp=(0.4999999403953552, 0.16666513681411743, 0.041668061167001724, 0.008369545452296734, 0.0013843956403434277),
    atanh=(0.19999998807907104, 0.14285986125469208, 0.11089865118265152, 0.0977817252278328),
    sin=(-0.16666653752326965, 0.008332106284797192, -0.00019507882825564593),
    cos=(-0.5, 0.04166664555668831, -0.0013887308305129409, 2.4432101781712845e-05),
    tan=(0.333331435918808, 0.13339149951934814, 0.05338175967335701, 0.02453710325062275, 0.0029459453653544188,
         0.009489706717431545),
    pi_parts=split_pi((11, 11, 11, 24)), pi_limit=1 << 13)
FLOAT64 = Format(
    dtypes.float64, dtypes.uint64, dtypes.int64, 52, 1023, (-1077.0, 1025.0),
    log2_e=1.4426950408889634, ln2=(0.6931471803691238, 1.9082149292705877e-10),
    exp2=(0.6931471805599453, 0.2402265069591013, 0.055504108664820084, 0.00961812910759412, 0.0013333558146774631,
          0.00015403530457111218, 1.525273349311264e-05, 1.3215435282708762e-06, 1.0178199579268284e-07,
          7.073783187345078e-09, 4.4347700679348633e-10),
    exp=(0.5000000000000011, 0.16666666666666405, 0.04166666666652701, 0.008333333333498236, 0.0013888888944577416,
         0.00019841269500697704, 2.4801492012601348e-05, 2.7557589511639307e-06, 2.763066848650097e-07,
         2.4999748471385897e-08),
    atanh=(0.2, 0.14285714285714182, 0.11111111111146663, 0.09090909084410197, 0.07692308396252888,
           0.06666619148499849, 0.05884371336337223, 0.05210847236810461, 0.05511120086757191),
    sin=(-0.1666666666666663, 0.008333333333321893, -0.00019841269829401405, 2.755731355388273e-06,
         -2.5050736866735995e-08, 1.5895580716321186e-10),
    cos=(-0.5, 0.04166666666666659, -0.0013888888888872735, 2.480158728864542e-05, -2.7557314118201344e-07,
         2.087569234304404e-09, -1.1358086858188233e-11),
    tan=(0.33333333333333387, 0.13333333333324476, 0.053968253973375103, 0.021869488386380722, 0.008863238131915188,
         0.0035920986908362334, 0.0014560611296848408, 0.0005887866494870985, 0.00024402986325234986,
         8.284267358224306e-05, 6.853222940712951e-05, -2.7299030229620508e-05, 5.003270495918302e-05,
         -2.4969014429855545e-05, 9.954432552463631e-06),
    pi_parts=split_pi((32, 32, 53)), pi_limit=1 << 20)
FORMATS = {dtypes.float32: FLOAT32, dtypes.float64: FLOAT64}


# *** steps ***
def polynomial(x: UOp, coefficients: tuple[float, ...]) -> UOp:
    """Horner's rule, lowest power first in ``coefficients``."""
    dt = x.dtype
    total = UOp.const(coefficients[-1], dt)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, UOp.const(c, dt))
    return total


def round_to_int(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(bits that end in the nearest integer, that integer as a float); exact for magnitudes below 2**(mantissa-1)."""
    t = add(x, UOp.const(fmt.rounder, fmt.dtype))
    return bits(t, fmt.bits), sub(t, UOp.const(fmt.rounder, fmt.dtype))


def kept_within(x: UOp, low: float, high: float) -> UOp:
    """x, or the bound that it exceeds; NaN passes."""
    low_bound, high_bound = UOp.const(low, x.dtype), UOp.const(high, x.dtype)
    x = where(less(x, low_bound), low_bound, x)
    return where(less(high_bound, x), high_bound, x)


def magnitude(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(the sign bit, |x|)."""
    pattern = bits(x, fmt.bits)
    sign = UOp(Ops.AND, (pattern, UOp.const(fmt.sign, fmt.bits)))
    size = UOp(Ops.AND, (pattern, UOp.const(fmt.sign - 1, fmt.bits)))
    return sign, bits(size, fmt.dtype)
