"""Selection of CAST and BITCAST.

Integers wrap; a float becomes an integer toward zero and saturates, NaN gives 0 (the conversions of the processor give
the smallest integer for everything out of range, so each is guarded); float to float rounds once, to nearest even. A
conversion from float64 to 16 bits goes through float32 rounded to odd, so that the second rounding is the only one.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import isel_convert
from tinyhost_cpu.x86.insns import X86Op, X86Ops
from tinyhost_cpu.x86.isel_alu import extend_register, float_one
from tinyhost_cpu.x86.isel_bool import bool_register, mask_of, narrow, opmask
from tinyhost_cpu.x86.isel_mask import keep_where, mask_as
from tinyhost_cpu.x86.isel_memory import is_place, is_storage
from tinyhost_cpu.x86.operands import (
    HALVES,
    as_int,
    bitwise_op,
    float_constant,
    float_op,
    fold,
    imm,
    int_constant,
    int_dtype,
    int_vec_op,
    is_opmask,
    lanes_of,
    literal_bits,
    reg,
    short_imm,
    splat,
    splat_bits,
    to_vector_register,
    view,
    zero,
)

F32, F64 = dtypes.float32, dtypes.float64


def cast(sel: Selection, u: UOp) -> UOp | None:
    """CAST; over a literal it is the literal itself and gets a register where one is needed."""
    x, dst = u.src[0], u.dtype
    if x.op is Ops.CONST:
        return None
    src, lanes = x.dtype, lanes_of(u)
    if src is dst:
        return reg(sel, x)
    if lanes > 1:
        return _vector_cast(sel, x, src, dst, lanes, in_domain(u))
    if dst is dtypes.bool:
        return sel.value(UOp(Ops.CMPNE, (x, UOp.const(0, src))))
    if src is dtypes.bool:
        return _from_bool(sel, x, dst)
    if src.is_float:
        return (
            float_to_float(sel, reg(sel, x), src, dst, 1)
            if dst.is_float
            else _float_to_int(sel, reg(sel, x), src, dst, in_domain(u))
        )
    return _int_to_float(sel, reg(sel, x), src, dst) if dst.is_float else _int_to_int(sel, x, src, dst)


def in_domain(u: UOp) -> bool:
    """Whether a float cast to an integer is known to be in range: marked by decomposition, or by its bounds."""
    if u.tag == "native":
        return True
    x, dst = u.src[0], u.dtype
    return x.dtype.is_float and dst.is_int and bool(dst.min <= x.vmin and x.vmax <= dst.max)


# *** scalars ***
def _int_to_int(sel: Selection, x: UOp, src: DType, dst: DType) -> UOp:
    old, new = src.itemsize, dst.itemsize
    if new <= old:
        node = reg(sel, x)
        if old == 8 and new == 4:  # the upper half of a 32-bit integer is zero
            return view(sel, sel.emit(X86Ops.MOV, dtypes.int32, (view(sel, node, dtypes.int32),)), dst)
        return view(sel, node, dst)
    if old == 4 and src in dtypes.sints:
        memory = fold(sel, x)
        return view(sel, sel.emit(X86Ops.MOVSXD, dtypes.int64, memory or (as_int(sel, reg(sel, x), 4),)), dst)
    node = reg(sel, x)
    if old == 4:
        return view(sel, node, dst)
    if src in dtypes.sints and new == 8:
        return view(sel, sel.emit(X86Ops.MOVSX, dtypes.int64, (view(sel, node, int_dtype(old)),)), dst)
    return view(sel, extend_register(sel, node, src), dst)


def _from_bool(sel: Selection, x: UOp, dst: DType) -> UOp:
    node = sel.values.get(x)
    if dst in (F32, F64) and node is not None and is_opmask(node):
        return keep_where(sel, node, float_one(sel, dst, 1), dst, 1)
    if dst in (F32, F64) and node is not None and node.arg[1] is dst:
        return sel.emit(X86Ops.VANDPS if dst is F32 else X86Ops.VANDPD, dst, (node, float_one(sel, dst, 1)))
    number = bool_register(sel, x)
    return _int_to_float(sel, number, dtypes.int32, dst) if dst.is_float else view(sel, number, dst)


def _int_to_float(sel: Selection, node: UOp, src: DType, dst: DType) -> UOp:
    if dst in HALVES:
        # integers that float16 can hold are exact in float32; bfloat16 rounds once, from float64 to odd
        middle = F64 if dst is dtypes.bfloat16 and src.itemsize >= 4 else F32
        return float_to_float(sel, _int_to_float(sel, node, src, middle), middle, dst, 1)
    if src is dtypes.uint64:
        return (isel_convert.uint64_to_float if sel.level.evex else _uint64_to_float)(sel, node, dst)
    node = extend_register(sel, node, src)
    if src is dtypes.uint32:
        node = view(sel, node, dtypes.int64)
    op = X86Ops.VCVTSI2SS if dst is F32 else X86Ops.VCVTSI2SD
    return sel.emit(op, dst, (zero(sel, dst), node))  # merging into zero breaks the dependency on the destination


def _uint64_to_float(sel: Selection, node: UOp, dst: DType) -> UOp:
    """Halve numbers with the top bit set, keeping the lost bit sticky, convert and double."""
    op, add = (X86Ops.VCVTSI2SS, X86Ops.VADDSS) if dst is F32 else (X86Ops.VCVTSI2SD, X86Ops.VADDSD)
    number = view(sel, node, dtypes.int64)
    half = sel.emit(X86Ops.SHR, dtypes.int64, (number, imm(dtypes.int8, 1)))
    lost = sel.emit(X86Ops.AND, dtypes.int64, (number, short_imm(1)))
    half = sel.emit(X86Ops.OR, dtypes.int64, (half, lost))
    base = zero(sel, dst)
    big = sel.emit(op, dst, (base, half))
    big = sel.emit(add, dst, (big, big))
    small = sel.emit(op, dst, (base, number))
    if dst is F64:
        return sel.emit(X86Ops.VBLENDVPD, dst, (small, big, sel.emit(X86Ops.VMOVQ, dst, (number,))))
    top = sel.emit(X86Ops.SHR, dtypes.int64, (number, imm(dtypes.int8, 32)))
    return sel.emit(X86Ops.VBLENDVPS, dst, (small, big, to_vector_register(sel, top, dst)))


def _float_to_int(sel: Selection, node: UOp, src: DType, dst: DType, inside: bool) -> UOp:
    if src in HALVES:
        node, src = float_to_float(sel, node, src, F32, 1), F32
    if inside and dst is not dtypes.uint64:
        work = dtypes.int64 if dst.itemsize == 8 or dst is dtypes.uint32 else dtypes.int32
        number = sel.emit(X86Ops.VCVTTSS2SI if src is F32 else X86Ops.VCVTTSD2SI, work, (node,))
        return view(sel, number, dst)
    if sel.level.evex:
        return isel_convert.float_to_int(sel, node, src, dst)
    if dst.itemsize == 8:
        if src is F32:
            node = float_to_float(sel, node, F32, F64, 1)
        return view(sel, (_to_int64 if dst is dtypes.int64 else _to_uint64)(sel, node), dst)
    number = sel.pure(float_op("VCMP", src, 1), src, (node, node, imm(dtypes.uint8, 7)))  # ordered: no NaN
    node = sel.emit(X86Ops.VANDPS, src, (node, number))
    # 2^62 and all below convert exactly or to the smallest int64; both clamp right
    node = sel.emit(float_op("VMIN", src, 1), src, (float_constant(sel, 2.0**62, src), node))
    wide = sel.emit(X86Ops.VCVTTSS2SI if src is F32 else X86Ops.VCVTTSD2SI, dtypes.int64, (node,))
    for bound, code in ((dst.max, "G"), (dst.min, "L")):
        limit = int_constant(sel, bound, True)
        flags = sel.emit(X86Ops.CMP, dtypes.void, (wide, limit))
        wide = sel.emit(X86Ops["CMOV" + code], dtypes.int64, (wide, limit, flags))
    return view(sel, sel.emit(X86Ops.MOV, dtypes.int32, (view(sel, wide, dtypes.int32),)), dst)


def _to_int64(sel: Selection, node: UOp) -> UOp:
    ordered = sel.pure(X86Ops.VCMPSD, F64, (node, node, imm(dtypes.uint8, 7)))
    node = sel.emit(X86Ops.VANDPD, F64, (node, ordered))
    number = sel.emit(X86Ops.VCVTTSD2SI, dtypes.int64, (node,))
    # too large gives the smallest int64, whose complement is the largest
    large = sel.emit(X86Ops.VCMPSD, F64, (float_constant(sel, 2.0**63, F64), node, imm(dtypes.uint8, 2)))
    return sel.emit(X86Ops.XOR, dtypes.int64, (number, sel.emit(X86Ops.VMOVQ, dtypes.int64, (large,))))


def _to_uint64(sel: Selection, node: UOp) -> UOp:
    node = sel.emit(X86Ops.VMAXSD, F64, (node, zero(sel, F64)))  # NaN and negative numbers give 0
    limit = float_constant(sel, 2.0**63, F64)
    low = sel.emit(X86Ops.VCVTTSD2SI, dtypes.int64, (node,))
    high = sel.emit(X86Ops.VCVTTSD2SI, dtypes.int64, (sel.emit(X86Ops.VSUBSD, F64, (node, limit)),))
    # low is the smallest int64 (sign and top bit set) where the number does not fit 63 bits
    sign = sel.emit(X86Ops.SAR, dtypes.int64, (low, imm(dtypes.int8, 63)))
    number = sel.emit(X86Ops.OR, dtypes.int64, (low, sel.emit(X86Ops.AND, dtypes.int64, (high, sign))))
    large = sel.emit(X86Ops.VCMPSD, F64, (float_constant(sel, 2.0**64, F64), node, imm(dtypes.uint8, 2)))
    return sel.emit(X86Ops.OR, dtypes.int64, (number, sel.emit(X86Ops.VMOVQ, dtypes.int64, (large,))))


# *** floats, scalar and vector ***
def float_to_float(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int) -> UOp:
    """A float register in another float type."""
    if src is dst:
        return node
    if src in HALVES:
        wide = _widen_half(sel, node, src, lanes)
        return wide if dst is F32 else float_to_float(sel, wide, F32, dst, lanes)
    if dst in HALVES:
        if src is F64:
            node = _round_to_odd(sel, node, lanes)
        return _narrow_to_half(sel, node, dst, lanes)
    op = ("VCVTSS2SD" if src is F32 else "VCVTSD2SS") if lanes == 1 else "VCVTPS2PD" if src is F32 else "VCVTPD2PS"
    return sel.emit(X86Ops[op], dst, (node, node) if lanes == 1 else (node,), lanes)


def _widen_half(sel: Selection, node: UOp, src: DType, lanes: int) -> UOp:
    if src is dtypes.float16:
        return sel.emit(X86Ops.VCVTPH2PS, F32, (node,), lanes)
    if lanes > 1:
        node = sel.emit(X86Ops.VPMOVZXWD, dtypes.int32, (node,), lanes)
    return view(sel, sel.emit(X86Ops.VPSLLD, dtypes.int32, (node, imm(dtypes.uint8, 16)), max(lanes, 2)), F32, lanes)


def _narrow_to_half(sel: Selection, node: UOp, dst: DType, lanes: int) -> UOp:
    if dst is dtypes.float16:
        return sel.emit(X86Ops.VCVTPS2PH, dst, (node, imm(dtypes.uint8, 0)), lanes)
    width = max(lanes, 2)
    word = dtypes.int32

    def emit(op: str, *src: UOp) -> UOp:
        return sel.emit(bitwise_op(sel, op) if op == "VPAND" else X86Ops[op], word, src, width)

    bits = view(sel, node, word, width)
    by16 = imm(dtypes.uint8, 16)
    odd = emit("VPAND", emit("VPSRLD", bits, by16), splat(sel, int_constant(sel, 1, False), word, width))
    half = splat(sel, int_constant(sel, 0x7FFF, False), word, width)
    rounded = emit("VPSRLD", emit("VPADDD", emit("VPADDD", bits, half), odd), by16)
    if sel.level.evex:
        rounded = isel_convert.quiet_nans(sel, rounded, node, width)
        if lanes == 1:
            return view(sel, rounded, dst)
        return view(sel, sel.emit(X86Ops.VPMOVDW, dtypes.uint16, (rounded,), lanes), dst, lanes)
    nan = sel.emit(
        float_op("VCMP", F32, width),
        F32,
        (view(sel, node, F32, width), view(sel, node, F32, width), imm(dtypes.uint8, 3)),
        width,
    )
    quiet = splat(sel, int_constant(sel, 0x7FC0, False), word, width)
    rounded = sel.emit(X86Ops.VBLENDVPS, word, (rounded, quiet, nan), width)
    if lanes == 1:
        return view(sel, rounded, dst)
    return view(sel, narrow(sel, rounded, lanes, 4, "VPACKUSDW"), dst, lanes)


def _round_to_odd(sel: Selection, node: UOp, lanes: int) -> UOp:
    """float64 cut to 12 bits of mantissa, the last of which is set where anything was lost, as float32.

    Rounding that to 10 bits or fewer is one rounding of the float64, subnormal results included.
    """
    quad, width = dtypes.int64, max(lanes, 2)

    def emit(op: str, *src: UOp) -> UOp:
        return sel.emit(X86Ops[op] if op == "VPADDQ" else bitwise_op(sel, op), quad, src, width)

    def bits(value: int) -> UOp:
        return splat(sel, int_constant(sel, value, True), quad, width)

    rest = bits((1 << 40) - 1)
    whole = view(sel, node, quad, width)
    sticky = emit("VPAND", emit("VPADDQ", emit("VPAND", whole, rest), rest), bits(1 << 40))
    odd = emit("VPOR", emit("VPANDN", rest, whole), sticky)
    return float_to_float(sel, view(sel, odd, F64, lanes), F64, F32, lanes)


# *** vectors ***
def _vector_cast(sel: Selection, x: UOp, src: DType, dst: DType, lanes: int, inside: bool) -> UOp:
    if dst is dtypes.bool:
        return sel.value(UOp(Ops.CMPNE, (x, UOp.const(0, src))))
    if src is dtypes.bool:
        return _mask_to(sel, x, dst, lanes)
    op = _loading_cast(src, dst)
    if op is not None and dst.itemsize * lanes >= 16 and (memory := fold(sel, x)) is not None:
        return sel.emit(op, dst, memory, lanes)
    node = sel.value(x)
    if src.is_float and dst.is_float:
        return float_to_float(sel, node, src, dst, lanes)
    if src.is_float:
        return _floats_to_ints(sel, node, src, dst, lanes, inside)
    if dst.is_float:
        return _ints_to_floats(sel, node, src, dst, lanes)
    resize = isel_convert.resize_ints if sel.level.evex else _ints_to_ints
    return resize(sel, node, src, dst, lanes)


_LOADING = {
    (dtypes.float16, F32): "VCVTPH2PS",
    (F32, F64): "VCVTPS2PD",
    (dtypes.int32, F32): "VCVTDQ2PS",
    (dtypes.int32, F64): "VCVTDQ2PD",
}


def _loading_cast(src: DType, dst: DType) -> X86Op | None:
    """The one instruction of a conversion that reads just its operand's bytes from memory, None where it takes more."""
    if src.is_int and dst.is_int and dst.itemsize > src.itemsize:
        return X86Ops[f"VPMOV{'S' if src in dtypes.sints else 'Z'}X{_SUFFIX[src.itemsize]}{_SUFFIX[dst.itemsize]}"]
    name = _LOADING.get((src, dst))
    return None if name is None else X86Ops[name]


def _mask_to(sel: Selection, x: UOp, dst: DType, lanes: int) -> UOp:
    size = dst.itemsize
    if sel.level.evex:
        return mask_as(sel, opmask(sel, x, lanes), literal_bits(1, dst), dst, lanes)
    mask = mask_of(sel, x, size, lanes)
    if dst in HALVES:
        return sel.emit(
            X86Ops.VPAND, dst, (mask, splat_bits(sel, 0x3C00 if dst is dtypes.float16 else 0x3F80, dst, lanes)), lanes
        )
    if dst.is_float:
        return sel.emit(X86Ops.VANDPS if size == 4 else X86Ops.VANDPD, dst, (mask, float_one(sel, dst, lanes)), lanes)
    return sel.emit(int_vec_op("VPSUB", size), dst, (zero(sel, dst, lanes), mask), lanes)


_SUFFIX = {1: "B", 2: "W", 4: "D", 8: "Q"}


def _ints_to_ints(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int) -> UOp:
    old, new = src.itemsize, dst.itemsize
    if old == new:
        return view(sel, node, dst, lanes)
    if new > old:
        op = X86Ops[f"VPMOV{'S' if src in dtypes.sints else 'Z'}X{_SUFFIX[old]}{_SUFFIX[new]}"]
        return sel.emit(op, dst, (node,), lanes)
    while old > new:
        if old < 8:  # packing saturates: cut first
            kept = splat(sel, int_constant(sel, (1 << old * 4) - 1, False), int_dtype(old), lanes)
            node = sel.emit(X86Ops.VPAND, int_dtype(old), (node, kept), lanes)
        node = narrow(sel, node, lanes, old, "VPACKUSDW" if old == 4 else "VPACKUSWB")
        old //= 2
    return view(sel, node, dst, lanes)


def _ints_to_floats(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int) -> UOp:
    if dst in HALVES:
        middle = F64 if dst is dtypes.bfloat16 and src.itemsize >= 4 else F32
        return float_to_float(sel, _ints_to_floats(sel, node, src, middle, lanes), middle, dst, lanes)
    if sel.level.evex:
        return isel_convert.ints_to_floats(sel, node, src, dst, lanes)
    if src.itemsize < 4:
        node, src = _ints_to_ints(sel, node, src, dtypes.int32, lanes), dtypes.int32
    if src is dtypes.int32:
        return sel.emit(X86Ops.VCVTDQ2PS if dst is F32 else X86Ops.VCVTDQ2PD, dst, (node,), lanes)
    if dst is F64:  # uint32: move to int32 and add 2^31 back, which is exact
        sign = splat(sel, int_constant(sel, -(1 << 31), False), dtypes.int32, lanes)
        moved = sel.emit(X86Ops.VPXOR, dtypes.int32, (node, sign), lanes)
        number = sel.emit(X86Ops.VCVTDQ2PD, F64, (moved,), lanes)
        return sel.emit(X86Ops.VADDPD, F64, (number, splat(sel, float_constant(sel, 2.0**31, F64), F64, lanes)), lanes)
    # uint32 to float32: both halves are exact, their sum rounds once
    low_mask = splat(sel, int_constant(sel, 0xFFFF, False), dtypes.int32, lanes)
    low = sel.emit(X86Ops.VPAND, dtypes.int32, (node, low_mask), lanes)
    high = sel.emit(X86Ops.VPSRLD, dtypes.int32, (node, imm(dtypes.uint8, 16)), lanes)
    scale = splat(sel, float_constant(sel, 65536.0, F32), F32, lanes)
    total = sel.emit(X86Ops.VCVTDQ2PS, F32, (low,), lanes)
    return sel.emit(X86Ops.VFMADD231PS, F32, (total, sel.emit(X86Ops.VCVTDQ2PS, F32, (high,), lanes), scale), lanes)


def _floats_to_ints(sel: Selection, node: UOp, src: DType, dst: DType, lanes: int, inside: bool) -> UOp:
    if src in HALVES:
        node, src = float_to_float(sel, node, src, F32, lanes), F32
    if sel.level.evex:
        return isel_convert.floats_to_ints(sel, node, src, dst, lanes, inside)
    if dst is dtypes.uint32:
        return _floats_to_uint32(sel, node, src, lanes)
    if inside:
        number = sel.emit(X86Ops.VCVTTPS2DQ if src is F32 else X86Ops.VCVTTPD2DQ, dtypes.int32, (node,), lanes)
    else:
        number = _floats_to_int32(sel, node, src, lanes)
    if dst is dtypes.int32:
        return number
    signed = dst in dtypes.sints
    if dst.itemsize == 2:
        return view(sel, narrow(sel, number, lanes, 4, "VPACKSSDW" if signed else "VPACKUSDW"), dst, lanes)
    words = narrow(sel, number, lanes, 4, "VPACKSSDW")
    return view(sel, narrow(sel, words, lanes, 2, "VPACKSSWB" if signed else "VPACKUSWB"), dst, lanes)


def _ordered(sel: Selection, node: UOp, src: DType, lanes: int) -> UOp:
    """NaN made 0."""
    number = sel.emit(float_op("VCMP", src, lanes), src, (node, node, imm(dtypes.uint8, 7)), lanes)
    return sel.emit(X86Ops.VANDPS, src, (node, number), lanes)


def _floats_to_int32(sel: Selection, node: UOp, src: DType, lanes: int) -> UOp:
    node = _ordered(sel, node, src, lanes)
    if src is F64:
        limit = splat(sel, float_constant(sel, 2147483647.0, F64), F64, lanes)
        return sel.emit(X86Ops.VCVTTPD2DQ, dtypes.int32, (sel.emit(X86Ops.VMINPD, F64, (node, limit), lanes),), lanes)
    number = sel.emit(X86Ops.VCVTTPS2DQ, dtypes.int32, (node,), lanes)
    limit = splat(sel, float_constant(sel, 2.0**31, F32), F32, lanes)
    large = sel.emit(X86Ops.VCMPPS, F32, (limit, node, imm(dtypes.uint8, 2)), lanes)
    return sel.emit(X86Ops.VPXOR, dtypes.int32, (number, large), lanes)


def _floats_to_uint32(sel: Selection, node: UOp, src: DType, lanes: int) -> UOp:
    """Numbers of 31 bits convert directly, larger ones less 2^31; the two are joined where the first overflowed."""
    word = dtypes.int32
    node = sel.emit(float_op("VMAX", src, lanes), src, (node, zero(sel, src, lanes)), lanes)
    convert = X86Ops.VCVTTPS2DQ if src is F32 else X86Ops.VCVTTPD2DQ

    def limit(value: float) -> UOp:
        return splat(sel, float_constant(sel, value, src), src, lanes)

    low = sel.emit(convert, word, (node,), lanes)
    high = sel.emit(convert, word, (sel.emit(float_op("VSUB", src, lanes), src, (node, limit(2.0**31)), lanes),), lanes)
    sign = sel.emit(X86Ops.VPSRAD, word, (low, imm(dtypes.uint8, 31)), lanes)
    number = sel.emit(X86Ops.VPOR, word, (low, sel.emit(X86Ops.VPAND, word, (high, sign), lanes)), lanes)
    large = sel.emit(float_op("VCMP", src, lanes), src, (limit(2.0**32), node, imm(dtypes.uint8, 2)), lanes)
    if src is F64:
        large = narrow(sel, large, lanes, 8)
    return sel.emit(X86Ops.VPOR, dtypes.uint32, (number, large), lanes)


# *** the same bytes ***
def bitcast(sel: Selection, u: UOp) -> UOp | None:
    """BITCAST of values; of a place it is seen through by the access."""
    x, dst = u.src[0], u.dtype
    if is_storage(x) or x.op in (Ops.INDEX, Ops.SHRINK) and is_place(x):
        return None
    src, lanes = x.dtype, lanes_of(u)
    if lanes > 1 or x.shape:
        node = mask_to_bytes(sel, x) if src is dtypes.bool else sel.value(x)
        return view(sel, node, dst, lanes)
    if dst is dtypes.bool:
        return sel.value(UOp(Ops.CMPNE, (x, UOp.const(0, src))))
    node = bool_register(sel, x) if src is dtypes.bool else reg(sel, x)
    if src.is_float and not dst.is_float:
        whole = dtypes.int64 if dst.itemsize == 8 else dtypes.int32
        return view(sel, sel.emit(X86Ops.VMOVQ if dst.itemsize == 8 else X86Ops.VMOVD, whole, (node,)), dst)
    if dst.is_float and not src.is_float:
        return to_vector_register(sel, node, dst)
    return view(sel, node, dst)


def mask_to_bytes(sel: Selection, x: UOp) -> UOp:
    """A bool vector as bytes 0 and 1."""
    lanes = lanes_of(x)
    return _mask_to(sel, x, dtypes.uint8, lanes)
