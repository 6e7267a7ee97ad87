"""float16, bfloat16 and fp8 on targets that lack them: values are float32, memory holds the bits.

``emulate_dtypes`` takes a kernel's SINK and the types the target has; gives a graph without the others. A value of a
lacking type becomes a float32 that is always rounded to that type; storage becomes uint16 or uint8, registers float32.
Each operation rounds once, as ``semantics.py`` says, except that a REDUCE rounds at its end. A pass rather than rules:
changing the dtype of a node changes that of all its users.
"""
from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from functools import cached_property

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.rules.build import add, and_, bits, differs, less, mul, or_, shl, shr, sub, where, xor

F32, U32 = dtypes.float32, dtypes.uint32
_SIGN = 0x80000000
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
# results that need no rounding when their operands are of the type
_EXACT = frozenset({Ops.WHERE, Ops.MAX, Ops.NEG, Ops.TRUNC, Ops.STACK})


def _u32(v: int) -> UOp:
    return UOp.const(v, U32)


def _pattern(x: float) -> int:
    """Bits of a float32 number."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


@dataclass(frozen=True)
class SmallFloat:
    """Conversions of one narrow float type, as expressions."""

    dtype: DType

    @property
    def storage(self) -> DType:
        """The integer type that holds the bits."""
        return dtypes.uint8 if self.dtype.itemsize == 1 else dtypes.uint16

    @cached_property
    def exponent(self) -> int:
        """Exponent bits."""
        return dtypes.finfo(self.dtype)[0]

    @cached_property
    def mantissa(self) -> int:
        """Stored mantissa bits."""
        return dtypes.finfo(self.dtype)[1]

    @cached_property
    def fnuz(self) -> bool:
        """One zero, one NaN, no infinities."""
        return self.dtype in dtypes.fp8_fnuz

    @cached_property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << self.exponent - 1) - (0 if self.fnuz else 1)

    @cached_property
    def has_infinity(self) -> bool:
        """Whether overflow is an infinity; else it is NaN."""
        return not self.fnuz and self.dtype is not dtypes.fp8e4m3

    @cached_property
    def top(self) -> int:
        """Code of the largest finite number."""
        if self.fnuz or self.dtype is dtypes.fp8e4m3:
            return (1 << self.exponent + self.mantissa) - (1 if self.fnuz else 2)
        return ((1 << self.exponent) - 1 << self.mantissa) - 1

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        return math.ldexp((self.top & (1 << self.mantissa) - 1 | 1 << self.mantissa),
                          (self.top >> self.mantissa) - self.bias - self.mantissa)

    @property
    def cut(self) -> int:
        """Mantissa bits of float32 that the type lacks."""
        return 23 - self.mantissa

    # *** from float32 ***
    def _magnitude(self, x: UOp) -> tuple[UOp, UOp]:
        """(sign bit, bits of the absolute value)."""
        pattern = bits(x, U32)
        sign = and_(pattern, _u32(_SIGN))
        return sign, xor(pattern, sign)

    def _to_even(self, a: UOp) -> UOp:
        """``a`` plus what carries into the kept bits where rounding is upwards."""
        odd = and_(shr(a, self.cut), _u32(1))
        return add(add(a, _u32((1 << self.cut - 1) - 1)), odd)

    def _is_subnormal(self, a: UOp) -> UOp:
        return less(a, _u32(127 - self.bias + 1 << 23))

    @property
    def _fixer(self) -> float:
        """Adding it rounds to multiples of the smallest subnormal number."""
        return math.ldexp(1.0, 1 - self.bias - self.mantissa + 23)

    def round(self, x: UOp) -> UOp:
        """float32 rounded to a value of the type."""
        if self.dtype is dtypes.bfloat16:
            kept = bits(and_(self._to_even(bits(x, U32)), _u32(0xFFFF0000)), F32)
            return where(differs(x, x), x, kept)
        sign, a = self._magnitude(x)
        normal = and_(self._to_even(a), _u32(0xFFFFFFFF << self.cut & 0xFFFFFFFF))
        fixer = UOp.const(self._fixer, F32)
        small = bits(sub(add(bits(a, F32), fixer), fixer), U32)
        r = where(self._is_subnormal(a), small, normal)
        r = where(less(_u32(_pattern(self.largest)), r), _u32(_INFINITY if self.has_infinity else _NAN), r)
        if self.has_infinity:
            r = where(less(_u32(_INFINITY), a), _u32(_NAN), r)
        signed = or_(r, sign)
        return bits(where(differs(r, _u32(0)), signed, r) if self.fnuz else signed, F32)

    def encode(self, x: UOp) -> UOp:
        """float32 rounded to the bits of the type."""
        if self.dtype is dtypes.bfloat16:
            code = where(differs(x, x), _u32(_NAN >> 16), shr(self._to_even(bits(x, U32)), 16))
            return UOp(Ops.CAST, (code,), self.storage)
        sign, a = self._magnitude(x)
        normal = sub(shr(self._to_even(a), self.cut), _u32(127 - self.bias << self.mantissa))
        small = sub(bits(add(bits(a, F32), UOp.const(self._fixer, F32)), U32), _u32(_pattern(self._fixer)))
        code = where(self._is_subnormal(a), small, normal)
        code = where(less(_u32(self.top), code), _u32(self.top + 1), code)
        if self.has_infinity:
            code = where(less(_u32(_INFINITY), a), _u32(self.top + 1 | 1 << self.mantissa - 1), code)
        signed = or_(code, shr(sign, 31 - self.exponent - self.mantissa))
        if self.fnuz:
            signed = where(differs(and_(code, _u32(0x7F)), _u32(0)), signed, code)
        return UOp(Ops.CAST, (signed,), self.storage)

    # *** to float32 ***
    def decode(self, code: UOp) -> UOp:
        """The float32 value of the bits."""
        code = UOp(Ops.CAST, (code,), U32)
        if self.dtype is dtypes.bfloat16:
            return bits(shl(code, 16), F32)
        high = 1 << self.exponent + self.mantissa
        a = and_(code, _u32(high - 1))
        # the exponents differ by a factor, subnormal numbers included
        scaled = mul(bits(shl(a, self.cut), F32), UOp.const(2.0 ** (127 - self.bias), F32))
        value = bits(or_(bits(scaled, U32), shl(and_(code, _u32(high)), 31 - self.exponent - self.mantissa)), F32)
        if self.fnuz:
            return where(differs(code, _u32(high)), value, UOp.const(math.nan, F32))
        if not self.has_infinity:
            return where(less(_u32(self.top), a), UOp.const(math.nan, F32), value)
        return where(less(_u32(self.top), a), bits(or_(bits(value, U32), _u32(_INFINITY)), F32), value)

    # *** from other types ***
    def narrowed(self, x: UOp, native: frozenset[DType]) -> UOp:
        """A number as float32 whose rounding to the type is one rounding of ``x``."""
        if self.dtype is dtypes.bfloat16 and x.dtype.is_int and x.dtype.itemsize >= 4:
            if native >= {dtypes.float64, dtypes.uint64}:
                x = UOp(Ops.CAST, (_sticky_int(x, ((53, 11),)),), dtypes.float64)
            else:
                x = _sticky_int(x, ((52, 42), (38, 28), (24, 14)))
        if x.dtype is dtypes.float64:
            return _sticky_double(x).cast(F32) if dtypes.uint64 in native else _odd_single(x)
        return x.cast(F32)


def _sticky_double(x: UOp) -> UOp:
    """float64 with 12 mantissa bits, the last set where anything was lost."""
    u64 = dtypes.uint64
    mask = UOp.const((1 << 40) - 1, u64)
    pattern = bits(x, u64)
    carried = or_(pattern, add(and_(pattern, mask), mask))
    return bits(and_(carried, UOp.const(~((1 << 40) - 1) & (1 << 64) - 1, u64)), dtypes.float64)


def _odd_single(x: UOp) -> UOp:
    """float64 as float32 whose last bit is set where anything was lost, without 64-bit integers."""
    single = UOp(Ops.CAST, (x,), F32)
    error, zero = sub(x, UOp(Ops.CAST, (single,), dtypes.float64)), UOp.const(0.0, dtypes.float64)
    pattern = bits(single, U32)
    # a neighbour of an even number is odd: away from zero where the error has the sign of the number
    below, above = less(error, zero), less(zero, error)  # neither for infinities and NaN
    opposed = differs(below, differs(and_(pattern, _u32(_SIGN)), _u32(0)))
    even = differs(and_(pattern, _u32(1)), _u32(1))
    moved = add(pattern, where(opposed, _u32(0xFFFFFFFF), _u32(1)))
    return bits(where(and_(or_(below, above), even), moved, pattern), F32)


def _sticky_int(x: UOp, cuts: tuple[tuple[int, int], ...]) -> UOp:
    """An integer that a float holds exactly, the last kept bit set where anything was lost.

    ``cuts`` are (magnitude in bits, bits to drop from there on), the largest magnitude first.
    """
    dt, out = x.dtype, x

    def const(v: int) -> UOp:
        return UOp.const(v, dt)
    for magnitude, drop in reversed([c for c in cuts if c[0] < dt.bitsize]):
        lost = UOp(Ops.CAST, (differs(and_(x, const((1 << drop) - 1)), const(0)),), dt)
        short = shl(or_(shr(x, drop), lost), drop)
        fits = less(x, const(1 << magnitude))
        if not dt.is_unsigned:
            fits = and_(fits, less(const(-(1 << magnitude)), x))
        out = where(fits, out, short)
    return out


# *** the pass ***
_PLACES = frozenset({Ops.INDEX, Ops.SHRINK, Ops.AFTER})
_FORMATS = {dt: SmallFloat(dt) for dt in (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)}


class _Emulation:
    """One kernel on its way: what each node became, as a place and as a value."""

    def __init__(self, native: frozenset[DType]) -> None:
        self.native = native
        self.lacking = {dt: fmt for dt, fmt in _FORMATS.items() if dt not in native}
        self.new: dict[UOp, UOp] = {}  # places and other nodes
        self.exact: dict[UOp, UOp] = {}  # rounded value -> what was rounded

    def run(self, sink: UOp) -> UOp:
        """The kernel without lacking types."""
        order = sink.toposort()
        if not any(u.dtype in self.lacking for u in order if u.op is not Ops.SINK):
            return sink
        for u in order:
            self.new[u] = self.rewrite(u)
        return self.new[sink]

    def is_place(self, u: UOp) -> bool:
        """Whether ``u`` is storage or a place in it."""
        while u.op in _PLACES:
            u = u.src[0]
        return u.op in GroupOp.Defines and u.arg.addrspace is not AddrSpace.ALU

    def value(self, u: UOp, dt: DType | None = None) -> UOp:
        """``u`` as a value: places of lacking types are decoded, literals take the type ``dt``."""
        if u.op is Ops.CONST and dt is not None and dt in self.lacking and not u.is_invalid:
            return UOp.const(truncate[dt](u.arg), F32)
        new = self.new[u]
        fmt = self.lacking.get(u.dtype)
        if fmt is None or new.dtype is F32:
            return new
        return fmt.decode(new)

    def rounded(self, x: UOp, fmt: SmallFloat) -> UOp:
        """``x`` rounded, remembering ``x``: storing rounds by itself."""
        out = fmt.round(x)
        self.exact[out] = x
        return out

    def encoded(self, value: UOp, fmt: SmallFloat) -> UOp:
        """The bits of a value."""
        return fmt.encode(self.exact.get(value, value))

    # *** one node ***
    def rewrite(self, u: UOp) -> UOp:
        """What ``u`` becomes; its sources are done."""
        op = u.op
        if op in GroupOp.Defines and u.dtype in self.lacking:
            stored = F32 if u.arg.addrspace is AddrSpace.REG else self.lacking[u.dtype].storage
            return u.replace(arg=replace(u.arg, dtype=stored))
        if op is Ops.LOAD:
            return self.load(u)
        if op is Ops.STORE:
            return self.store(u)
        if op is Ops.CAST or op is Ops.BITCAST:
            return self.conversion(u)
        if op in _PLACES and self.is_place(u):
            return u.replace(src=(self.new[u.src[0]], *(self.value(s) for s in u.src[1:])))
        return self.compute(u)

    def load(self, u: UOp) -> UOp:
        place = self.new[u.src[0]]
        fmt = self.lacking.get(u.dtype)
        rest = [self.value(s, u.dtype) for s in u.src[1:]]
        if fmt is None or place.dtype is F32:
            return u.replace(src=(place, *rest))
        if rest:
            rest[0] = self.encoded(rest[0], fmt)
        return fmt.decode(u.replace(src=(place, *rest)))

    def store(self, u: UOp) -> UOp:
        place, dt = self.new[u.src[0]], u.src[0].dtype
        value = self.value(u.src[1], dt)
        fmt = self.lacking.get(dt)
        if fmt is not None and place.dtype is not F32:
            value = self.encoded(value, fmt)
        return u.replace(src=(place, value, *(self.value(s) for s in u.src[2:])))

    def conversion(self, u: UOp) -> UOp:
        src = u.src[0]
        fmt, from_fmt = self.lacking.get(u.dtype), self.lacking.get(src.dtype)
        if fmt is None and from_fmt is None:
            return u.replace(src=(self.value(src),))
        if u.op is Ops.CAST and src.op is Ops.CONST:
            return UOp.const(truncate[u.dtype](src.arg), F32)
        x = self.value(src)
        if u.op is Ops.BITCAST:
            x = self.encoded(x, from_fmt) if from_fmt is not None else x
            return fmt.decode(x.bitcast(fmt.storage)) if fmt is not None else x.bitcast(u.dtype)
        if fmt is None:
            return x.cast(u.dtype)
        return self.rounded(fmt.narrowed(x, self.native), fmt)

    def compute(self, u: UOp) -> UOp:
        fmt = self.lacking.get(u.dtype)
        operand = UOp(Ops.ADD, u.src).dtype if u.op in GroupOp.Comparison else u.dtype
        srcs = tuple([self.value(s, operand if i or u.op is not Ops.WHERE else None) for i, s in enumerate(u.src)])
        if all(a is b for a, b in zip(srcs, u.src)):
            return u
        new = u.replace(src=srcs)
        if fmt is None or u.op in _EXACT or u.op not in GroupOp.ALU | {Ops.REDUCE}:
            return new
        return self.rounded(new, fmt)


def emulate_dtypes(sink: UOp, native: frozenset[DType]) -> UOp:
    """``sink`` without the float types of 8 and 16 bits that ``native`` lacks.

    Takes the small kernel (an INDEX over storage is a load) or explicit LOADs; what needs no change keeps its identity.
    """
    return _Emulation(native).run(sink)
