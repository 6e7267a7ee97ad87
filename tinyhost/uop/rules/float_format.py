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
from tinyhost.uop.rules.build import add, bits, fma, less, maximum, sub, where


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
    raised: int  # 2**n * 2**raised and 2**n / 2**raised are normal numbers for all n in exp2_range on one side of 0
    exp2: tuple[float, ...]  # (2**f - 1) / f on [-1, 1]
    exp: tuple[float, ...]  # (e**r - 1 - r) / r**2 on [-log(2)/2, log(2)/2], for the digits of e**r - 1
    exp_wide: tuple[float, ...]  # the same on [-log(2), log(2)], for the digits of e**r
    erf: tuple[float, ...]  # c and a polynomial q of -log(1 - erf(a)) = c*a + q(a)*a up to erf_top
    erf_top: float  # erf is 1 from there
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
    log2_e=1.4426950216293335, ln2=(0.693145751953125, 1.428606765330187e-06), raised=64,
    exp2=(0.6931472420692444, 0.24022673070430756, 0.05550356209278107, 0.009616723284125328, 0.0013344322796911001,
          0.00015651932335458696, 1.4747545719728805e-05),
    exp=(0.4999999701976776, 0.16666539013385773, 0.04166775569319725, 0.008367116563022137, 0.0013835402205586433),
    exp_wide=(0.5000003576278687, 0.1666661649942398, 0.04166116937994957, 0.008335908874869347, 0.0014106176095083356,
              0.00019644122221507132),
    erf=(1.128379225730896, -5.4122477166629324e-08, 0.6366193890571594, 0.1027776375412941, -0.019152114167809486,
         -0.0001623538846615702, 0.0016690741758793592, -0.0006339739775285125, 0.00011796016769949347,
         -9.291655260312837e-06), erf_top=4.0,
    atanh=(0.19999998807907104, 0.14285986125469208, 0.11089865118265152, 0.0977817252278328),
    sin=(-0.16666653752326965, 0.008332106284797192, -0.00019507882825564593),
    cos=(-0.5, 0.04166664555668831, -0.0013887308305129409, 2.4432101781712845e-05),
    tan=(0.333331435918808, 0.13339149951934814, 0.05338175967335701, 0.02453710325062275, 0.0029459453653544188,
         0.009489706717431545),
    pi_parts=split_pi((11, 11, 11, 24)), pi_limit=1 << 13)
FLOAT64 = Format(
    dtypes.float64, dtypes.uint64, dtypes.int64, 52, 1023, (-1077.0, 1025.0),
    log2_e=1.4426950408889634, ln2=(0.6931471803691238, 1.9082149292705877e-10), raised=512,
    exp2=(0.6931471805599453, 0.24022650695910022, 0.055504108664823214, 0.009618129107638368, 0.0013333558146291459,
          0.0001540353038678417, 1.5252733851471445e-05, 1.3215488801477658e-06, 1.0178078306531405e-07,
          7.054603053769119e-09, 4.446099437712021e-10, 2.5910355105832627e-11, 1.3578957146313612e-12),
    exp=(0.5, 0.16666666666666677, 0.04166666666666651, 0.008333333333321691, 0.0013888888888962268,
         0.00019841269885966973, 2.4801587172732987e-05, 2.7557244372835724e-06, 2.755740248337528e-07,
         2.510897941638034e-08, 2.0875377120064084e-09),
    exp_wide=(0.4999999999999993, 0.16666666666666938, 0.04166666666670205, 0.008333333333269986,
              0.0013888888883580154, 0.00019841269892728584, 2.480159082853817e-05, 2.755730066605323e-06,
              2.755615833568219e-07, 2.5055031518214484e-08, 2.1062308673415722e-09, 1.5935657696106248e-10),
    erf=(1.1283791670955126, -9.040096282757076e-18, 0.6366197723675909, 0.10277260330131513, -0.019128446993087952,
         -0.00020919485400137797, 0.0016962076704245099, -0.0005901324327823635, 2.5904508432625216e-05,
         6.442045117158003e-05, -2.9575629685363253e-05, 3.169617989140518e-06, 3.1330227483223967e-06,
         -2.0372429213372507e-06, 5.706715531825152e-07, -1.1730561550378698e-08, -6.572339396284843e-08,
         3.4581201154666587e-08, -1.0772319399587337e-08, 2.3602887564913283e-09, -3.760335310997209e-10,
         4.301327136618303e-11, -3.3639637402717957e-12, 1.6146708757760498e-13, -3.591714120035548e-15),
         erf_top=5.93,
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


def nearest(x: UOp, scale: float, offset: int, fmt: Format) -> tuple[UOp, UOp]:
    """(bits that end in n + offset, n as a float) for the integer n nearest to x * scale.

    Exact where both are below 2**(mantissa-2).
    """
    rounder = UOp.const(fmt.rounder + offset, fmt.dtype)
    t = add(x, rounder) if scale == 1.0 else fma(x, UOp.const(scale, fmt.dtype), rounder)
    return bits(t, fmt.bits), sub(t, rounder)


def kept_within(x: UOp, low: float, high: float) -> UOp:
    """x, or the bound that it exceeds; NaN passes."""
    high_bound = UOp.const(high, x.dtype)
    x = maximum(x, UOp.const(low, x.dtype))
    return where(less(high_bound, x), high_bound, x)


def magnitude(x: UOp, fmt: Format) -> tuple[UOp, UOp]:
    """(the sign bit, |x|)."""
    pattern = bits(x, fmt.bits)
    sign = UOp(Ops.AND, (pattern, UOp.const(fmt.sign, fmt.bits)))
    size = UOp(Ops.AND, (pattern, UOp.const(fmt.sign - 1, fmt.bits)))
    return sign, bits(size, fmt.dtype)
