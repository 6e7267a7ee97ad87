"""Selection of arithmetic: integers and floats, scalars and vectors.

Scalar integers narrower than 32 bits are computed in 32; what needs their upper bits (right shifts, division,
comparison) extends first. Vector forms that AVX2 lacks but a short sequence gives (64-bit products and arithmetic
shifts, 64-bit and NaN-propagating maxima) are here; what ``renderer.NATIVE`` does not list never arrives.
float16 and bfloat16 are computed in float32 and rounded, which for + - * / sqrt is the correct rounding.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_bool import CONDITION_NAMES, B, L, logic, through_float
from tinyhost_cpu.x86.isel_mask import compare_floats
from tinyhost_cpu.x86.isel_ternary import ternary
from tinyhost_cpu.x86.operands import (
    HALVES,
    INT_SUFFIX,
    NO_INDEX,
    as_int,
    bitwise_op,
    by_lanes,
    float_constant,
    float_op,
    fold,
    foldable,
    imm,
    int_constant,
    int_dtype,
    int_literal,
    int_vec_op,
    lanes_of,
    reg,
    short_imm,
    splat,
    splat_bits,
    vec,
    vec_or_mem,
    view,
    zero,
)

_FLOAT_BINARY = {Ops.ADD: "VADD", Ops.SUB: "VSUB", Ops.MUL: "VMUL", Ops.FDIV: "VDIV"}
_COMMUTES = frozenset({Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR})
_INT_BINARY = {Ops.ADD: "ADD", Ops.SUB: "SUB", Ops.MUL: "IMUL", Ops.AND: "AND", Ops.OR: "OR", Ops.XOR: "XOR"}
_VEC_BINARY = {Ops.ADD: "VPADD", Ops.SUB: "VPSUB"}
_VEC_BITWISE = {Ops.AND: "VPAND", Ops.OR: "VPOR", Ops.XOR: "VPXOR"}


def binary(sel: Selection, u: UOp) -> UOp:
    """ADD, SUB, MUL, AND, OR, XOR, FDIV."""
    dtype = u.dtype
    if dtype is dtypes.bool:
        return logic(sel, u)
    if dtype in HALVES:
        return through_float(sel, u)
    lanes = lanes_of(u)
    if dtype.is_float:
        return _float_binary(sel, u, dtype, lanes)
    return _int_scalar(sel, u, dtype) if lanes == 1 else _int_vector(sel, u, dtype, lanes)


def _float_binary(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    a, b = u.src
    if u.op in _COMMUTES and foldable(sel, a, dtype, lanes) and not foldable(sel, b, dtype, lanes):
        a, b = b, a
    left = vec(sel, a, dtype, lanes)
    return sel.emit(
        float_op(_FLOAT_BINARY[u.op], dtype, lanes), dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes
    )


# *** scalar integers ***
def _work_size(dtype: DType) -> int:
    return max(dtype.itemsize, 4)


def _int_operand(sel: Selection, u: UOp, size: int) -> tuple[UOp, ...]:
    """The second operand of a scalar integer instruction: immediate, memory or register."""
    value = int_literal(u)
    if value is not None and -(1 << 31) <= value < 1 << 31:
        return (short_imm(value),)
    if u.dtype.itemsize == size and (mem := fold(sel, u)) is not None:
        return mem
    return (as_int(sel, reg(sel, u), size),)


def _int_scalar(sel: Selection, u: UOp, dtype: DType) -> UOp:
    a, b = u.src
    if u.op in _COMMUTES and (
        int_literal(a) is not None or (a in sel.pending and b not in sel.pending and int_literal(b) is None)
    ):
        a, b = b, a
    size = _work_size(dtype)
    left = as_int(sel, reg(sel, a), size)
    right = _int_operand(sel, b, size)
    if u.op is Ops.ADD and len(right) == 1 and sel.uses.get(a, 2) > 1:
        node = _lea(sel, left, right[0], size)
    else:
        node = sel.emit(X86Ops[_INT_BINARY[u.op]], int_dtype(size), (left, *right))
    return view(sel, node, dtype)


def _lea(sel: Selection, left: UOp, right: UOp, size: int) -> UOp:
    """left + right without touching either register."""
    base = view(sel, left, dtypes.int64)
    if right.op is Ops.CAST:
        return sel.emit(X86Ops.LEA, int_dtype(size), (base, NO_INDEX, right, imm(dtypes.uint8, 1)))
    return sel.emit(
        X86Ops.LEA, int_dtype(size), (base, view(sel, right, dtypes.int64), short_imm(0), imm(dtypes.uint8, 1))
    )


def extended(sel: Selection, u: UOp) -> UOp:
    """A scalar integer with its upper bits defined, in at least 32 bits."""
    return extend_register(sel, reg(sel, u), u.dtype)


def extend_register(sel: Selection, node: UOp, dtype: DType) -> UOp:
    """The register of a ``dtype`` integer sign- or zero-extended to 32 bits if it is narrower."""
    size = dtype.itemsize
    if size >= 4 or dtype is dtypes.bool:
        return as_int(sel, node, max(size, 4))
    op = X86Ops.MOVSX if dtype in dtypes.sints else X86Ops.MOVZX
    return sel.pure(op, dtypes.int32, (view(sel, node, int_dtype(size)),))


def shift(sel: Selection, u: UOp) -> UOp:
    """SHL, SHR: counts are unsigned; one of the width or more gives 0, or the sign."""
    dtype, lanes = u.dtype, lanes_of(u)
    if lanes > 1:
        return _shift_vector(sel, u, dtype, lanes)
    size = _work_size(dtype)
    width = dtype.itemsize * 8
    arithmetic = u.op is Ops.SHR and dtype in dtypes.sints
    x = as_int(sel, extended(sel, u.src[0]) if u.op is Ops.SHR else reg(sel, u.src[0]), size)
    count = int_literal(u.src[1])
    if count is not None:
        count &= (1 << u.src[1].dtype.itemsize * 8) - 1 if u.src[1].dtype is not dtypes.weakint else -1
        if count >= width and not arithmetic:
            return view(sel, int_constant(sel, 0, size == 8), dtype)
        op = X86Ops.SHL if u.op is Ops.SHL else X86Ops.SAR if arithmetic else X86Ops.SHR
        return view(sel, sel.emit(op, int_dtype(size), (x, imm(dtypes.int8, min(count, width - 1)))), dtype)
    return view(sel, _shift_by_register(sel, u, x, size, arithmetic), dtype)


def _shift_by_register(sel: Selection, u: UOp, x: UOp, size: int, arithmetic: bool) -> UOp:
    work = int_dtype(size)
    amount = u.src[1]
    count = as_int(sel, extended(sel, amount), _work_size(amount.dtype))
    bits = size * 8
    # counts 8..31 of a narrow value run into the extension and are right by themselves
    safe = amount.vmin >= 0 and amount.vmax < bits
    op = X86Ops.SHLX if u.op is Ops.SHL else X86Ops.SARX if arithmetic else X86Ops.SHRX
    count_size = count.arg[1].itemsize
    if safe:
        return sel.emit(op, work, (x, view(sel, count, work)))
    limit = short_imm(bits - 1)
    if arithmetic:
        last = int_constant(sel, bits - 1, count_size == 8)
        flags = sel.emit(X86Ops.CMP, dtypes.void, (count, limit))
        count = sel.emit(X86Ops.CMOVA, int_dtype(count_size), (count, last, flags))
        return sel.emit(op, work, (x, view(sel, count, work)))
    none = int_constant(sel, 0, size == 8)
    shifted = sel.emit(op, work, (x, view(sel, count, work)))
    flags = sel.emit(X86Ops.CMP, dtypes.void, (count, limit))
    return sel.emit(X86Ops.CMOVA, work, (shifted, none, flags))


def divide(sel: Selection, u: UOp) -> UOp:
    """CDIV, CMOD of scalars: IDIV or DIV in rdx:rax. Decomposition keeps zero divisors and overflow away."""
    dtype = u.dtype
    if lanes_of(u) > 1:
        return by_lanes(sel, u)
    signed = dtype in dtypes.sints
    size = _work_size(dtype)
    work = int_dtype(size)
    low, divisor = (as_int(sel, extended(sel, s), size) for s in u.src)
    key = ("divide", dtype, low, divisor)
    node = sel.recall(key)
    if node is None:
        if signed:
            high = sel.emit(X86Ops.CQO if size == 8 else X86Ops.CDQ, work, (low,))
        else:
            high = int_constant(sel, 0, size == 8)
        node = sel.emit(X86Ops.IDIV if signed else X86Ops.DIV, work, (low, high, divisor))
        sel.new_tag()  # the remainder is the register after the quotient
        sel.remember(key, node)
    if u.op is Ops.CMOD:
        rest = UOp(Ops.INS, (node,), (X86Ops.ALIAS, dtype), node.tag + 1)
        sel.depth_of[rest] = sel.depth_of[node]
        return rest
    return view(sel, node, dtype)


# *** vector integers ***
def _int_vector(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    a, b = u.src
    size = dtype.itemsize
    if u.op is Ops.MUL:
        return _multiply_vector(sel, u, dtype, lanes)
    if u.op in _VEC_BITWISE and (both := ternary(sel, u, dtype, lanes)) is not None:
        return both
    if u.op in _COMMUTES and foldable(sel, a, dtype, lanes) and not foldable(sel, b, dtype, lanes):
        a, b = b, a
    bitwise = _VEC_BITWISE.get(u.op)
    op = bitwise_op(sel, bitwise, size) if bitwise else int_vec_op(_VEC_BINARY[u.op], size)
    left = vec(sel, a, dtype, lanes)
    return sel.emit(op, dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes)


def _multiply_vector(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    a, b = u.src
    left = vec(sel, a, dtype, lanes)
    if dtype.itemsize in (2, 4):
        op = X86Ops.VPMULLW if dtype.itemsize == 2 else X86Ops.VPMULLD
        return sel.emit(op, dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes)
    if dtype.itemsize == 8 and sel.level.evex:
        return sel.emit(X86Ops.VPMULLQ, dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes)
    right = vec(sel, b, dtype, lanes)
    if dtype.itemsize == 1:
        return _multiply_bytes(sel, left, right, dtype, lanes)

    def emit(op: str, *src: UOp) -> UOp:
        return sel.emit(X86Ops[op], dtype, src, lanes)

    # low*low + ((high_a*b + a*high_b) << 32)
    by32 = imm(dtypes.int8, 32)
    cross = emit(
        "VPADDQ",
        emit("VPMULUDQ", emit("VPSRLQ", left, by32), right),
        emit("VPMULUDQ", left, emit("VPSRLQ", right, by32)),
    )
    return emit("VPADDQ", emit("VPMULUDQ", left, right), emit("VPSLLQ", cross, by32))


def _multiply_bytes(sel: Selection, left: UOp, right: UOp, dtype: DType, lanes: int) -> UOp:
    """Products of bytes: even and odd ones as 16-bit products."""

    def emit(op: str, *src: UOp) -> UOp:
        return sel.emit(X86Ops[op], dtype, src, lanes)

    by8 = imm(dtypes.int8, 8)
    even = emit("VPMULLW", left, right)
    odd = emit("VPMULLW", emit("VPSRLW", left, by8), emit("VPSRLW", right, by8))
    low_bytes = view(sel, splat_bits(sel, 0x00FF, dtypes.int16, max(lanes // 2, 2)), dtype, lanes)
    kept = sel.emit(bitwise_op(sel, "VPAND"), dtype, (even, low_bytes), lanes)
    return sel.emit(bitwise_op(sel, "VPOR"), dtype, (kept, emit("VPSLLW", odd, by8)), lanes)


def _shift_vector(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    x = vec(sel, u.src[0], dtype, lanes)
    size, bits = dtype.itemsize, dtype.itemsize * 8
    arithmetic = u.op is Ops.SHR and dtype in dtypes.sints
    count = uniform_literal(u.src[1])
    evex = sel.level.evex
    if count is None and (size == 1 or size == 2 and not evex):
        return by_lanes(sel, u)
    if count is None:
        counts = _count_vector(sel, u.src[1], size, lanes)
        if arithmetic and size == 8 and not evex:
            return _sra_quads(sel, x, counts, lanes)
        op = ("VPSLLV" if u.op is Ops.SHL else "VPSRAV" if arithmetic else "VPSRLV") + INT_SUFFIX[size]
        return sel.emit(X86Ops[op], dtype, (x, counts), lanes)
    if count >= bits and not arithmetic:
        return zero(sel, dtype, lanes)
    amount = imm(dtypes.uint8, min(count, bits - 1))
    if size == 1:
        return _shift_bytes(sel, u, x, min(count, 7), arithmetic, lanes)
    if arithmetic and size == 8 and not evex:
        return _sra_quads(sel, x, amount, lanes)
    op = ("VPSLL" if u.op is Ops.SHL else "VPSRA" if arithmetic else "VPSRL") + INT_SUFFIX[size]
    return sel.emit(X86Ops[op], dtype, (x, amount), lanes)


def _count_vector(sel: Selection, u: UOp, size: int, lanes: int) -> UOp:
    """Shift counts as unsigned lanes of ``size`` bytes."""
    if u.dtype.itemsize != size:
        return vec(sel, UOp(Ops.CAST, (u,), int_dtype(size, False)), int_dtype(size, False), lanes)
    return vec(sel, u, u.dtype, lanes)


def uniform_literal(u: UOp) -> int | None:
    """The unsigned value of an integer literal, or of a STACK of equal ones."""
    if u.op is Ops.STACK and all(s is u.src[0] for s in u.src):
        u = u.src[0]
    value = int_literal(u)
    return value if value is None or value >= 0 or u.dtype is dtypes.weakint else value + (1 << u.dtype.itemsize * 8)


def _sra_quads(sel: Selection, x: UOp, count: UOp, lanes: int) -> UOp:
    """64-bit arithmetic shift: the sign's ones are put in where the logical shift left zeros."""
    dtype = dtypes.int64
    sign = sel.emit(X86Ops.VPCMPGTQ, dtype, (zero(sel, dtype, lanes), x), lanes)
    op = X86Ops.VPSRLQ if count.op is Ops.CAST else X86Ops.VPSRLVQ
    flipped = sel.emit(X86Ops.VPXOR, dtype, (x, sign), lanes)
    return sel.emit(X86Ops.VPXOR, dtype, (sel.emit(op, dtype, (flipped, count), lanes), sign), lanes)


def _shift_bytes(sel: Selection, u: UOp, x: UOp, count: int, arithmetic: bool, lanes: int) -> UOp:
    """Bytes by a literal count: 16-bit shifts, then the bits that crossed are masked off."""
    dtype = u.dtype
    left = u.op is Ops.SHL
    kept = (0xFF << count) & 0xFF if left else 0xFF >> count
    op = X86Ops.VPSLLW if left else X86Ops.VPSRLW
    shifted = sel.emit(op, dtype, (x, imm(dtypes.uint8, count)), lanes)
    node = sel.emit(
        bitwise_op(sel, "VPAND"), dtype, (shifted, splat(sel, int_constant(sel, kept, False), dtype, lanes)), lanes
    )
    if not arithmetic:
        return node
    # (x ^ s) - s extends the sign bit that now stands at s
    sign = splat(sel, int_constant(sel, 0x80 >> count, False), dtype, lanes)
    flipped = sel.emit(bitwise_op(sel, "VPXOR"), dtype, (node, sign), lanes)
    return sel.emit(X86Ops.VPSUBB, dtype, (flipped, sign), lanes)


# *** maxima, signs, roots ***
def maximum(sel: Selection, u: UOp) -> UOp:
    """MAX: NaN in either operand gives NaN, equal operands give the first."""
    a, b = u.src
    dtype, lanes = u.dtype, lanes_of(u)
    if dtype is dtypes.bool:
        return logic(sel, u)
    if dtype in HALVES:
        return through_float(sel, u)
    if not dtype.is_float:
        return _int_maximum(sel, u, dtype, lanes)
    left, right = vec(sel, a, dtype, lanes), vec(sel, b, dtype, lanes)
    # VMAX gives its second source on a NaN in either and on equality
    maximum_op = float_op("VMAX", dtype, lanes)
    no_nan = b.is_const and b.const_value == b.const_value
    if sel.level.evex and not no_nan:  # where the second operand is no NaN, the maximum replaces it
        number = compare_floats(sel, 7, right, (right,), dtype, lanes)
        return sel.emit(maximum_op, dtype, (right, number, right, left), lanes)
    node = sel.emit(maximum_op, dtype, (right, left), lanes)
    if no_nan:
        return node
    nan = sel.pure(float_op("VCMP", dtype, lanes), dtype, (right, right, imm(dtypes.uint8, 3)), lanes)
    op = X86Ops.VBLENDVPS if dtype is dtypes.float32 else X86Ops.VBLENDVPD
    return sel.emit(op, dtype, (node, right, nan), lanes)


def _int_maximum(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    a, b = u.src
    signed = dtype in dtypes.sints
    if lanes == 1:
        size = _work_size(dtype)
        left, right = as_int(sel, extended(sel, a), size), as_int(sel, extended(sel, b), size)
        flags = sel.emit(X86Ops.CMP, dtypes.void, (left, right))
        code = L if signed else B
        return view(sel, sel.emit(X86Ops["CMOV" + CONDITION_NAMES[code]], int_dtype(size), (left, right, flags)), dtype)
    left = vec(sel, a, dtype, lanes)
    if dtype.itemsize < 8 or sel.level.evex:
        op = X86Ops[f"VPMAX{'S' if signed else 'U'}{INT_SUFFIX[dtype.itemsize]}"]
        return sel.emit(op, dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes)
    greater = sel.value(UOp(Ops.CMPLT, (a, b)))
    return sel.emit(X86Ops.VBLENDVPD, dtype, (left, vec(sel, b, dtype, lanes), greater), lanes)


def negate(sel: Selection, u: UOp) -> UOp:
    """NEG: the sign bit of floats (NaN included) flips; integers wrap."""
    dtype, lanes = u.dtype, lanes_of(u)
    if dtype.is_float:
        x = vec(sel, u.src[0], dtype, lanes)
        bits = dtype.itemsize * 8
        mask = splat_bits(sel, 1 << (bits - 1), dtype, lanes)
        return sel.emit(X86Ops.VXORPS if dtype.itemsize == 4 else X86Ops.VXORPD, dtype, (x, mask), lanes)
    if lanes > 1:
        x = vec(sel, u.src[0], dtype, lanes)
        return sel.emit(int_vec_op("VPSUB", dtype.itemsize), dtype, (zero(sel, dtype, lanes), x), lanes)
    size = _work_size(dtype)
    return view(sel, sel.emit(X86Ops.NEG, int_dtype(size), (as_int(sel, reg(sel, u.src[0]), size),)), dtype)


def unary(sel: Selection, u: UOp) -> UOp:
    """SQRT, TRUNC, RECIPROCAL."""
    dtype, lanes = u.dtype, lanes_of(u)
    if not dtype.is_float:
        if u.op is Ops.TRUNC:
            return vec(sel, u.src[0], dtype, lanes)
        raise CompileError(f"{u.op} of {dtype}: cast to a float type first, in {u!r}")
    if dtype in HALVES:
        return through_float(sel, u)
    x = u.src[0]
    if u.op is Ops.RECIPROCAL:
        one = float_one(sel, dtype, lanes)
        return sel.emit(float_op("VDIV", dtype, lanes), dtype, (one, *vec_or_mem(sel, x, dtype, lanes)), lanes)
    name = "VSQRT" if u.op is Ops.SQRT else "VRNDSCALE" if sel.level.evex else "VROUND"
    # the scalar forms merge into a first source: the operand itself avoids a false dependency
    operand = vec_or_mem(sel, x, dtype, lanes) if lanes > 1 else (reg(sel, x),) * 2
    tail = (imm(dtypes.uint8, 0x0B),) if u.op is Ops.TRUNC else ()  # toward zero, no inexact exception
    return sel.emit(float_op(name, dtype, lanes), dtype, (*operand, *tail), lanes)


def float_one(sel: Selection, dtype: DType, lanes: int) -> UOp:
    """1.0 in every lane."""
    one = float_constant(sel, 1.0, dtype)
    return one if lanes == 1 else splat(sel, one, dtype, lanes)


def mulacc(sel: Selection, u: UOp) -> UOp:
    """MULACC(a, b, c) = a * b + c with one rounding; the destination takes the operand that is read last."""
    a, b, c = u.src
    dtype, lanes = u.dtype, lanes_of(u)
    if dtype in HALVES:
        return through_float(sel, u)
    if not dtype.is_float:
        return sel.value(UOp(Ops.ADD, (UOp(Ops.MUL, (a, b)), c)))
    if foldable(sel, a, dtype, lanes) and not foldable(sel, b, dtype, lanes):
        a, b = b, a
    if (
        not _ends_here(sel, c, lanes)
        and foldable(sel, c, dtype, lanes)
        or not _ends_here(sel, c, lanes)
        and _ends_here(sel, a, lanes)
    ):
        src = (vec(sel, a, dtype, lanes), vec(sel, b, dtype, lanes), *vec_or_mem(sel, c, dtype, lanes))
        return sel.emit(float_op("VFMADD213", dtype, lanes), dtype, src, lanes)
    src = (vec(sel, c, dtype, lanes), vec(sel, a, dtype, lanes), *vec_or_mem(sel, b, dtype, lanes))
    return sel.emit(float_op("VFMADD231", dtype, lanes), dtype, src, lanes)


def _ends_here(sel: Selection, u: UOp, lanes: int) -> bool:
    """Whether the register of ``u`` is read by this instruction only."""
    return sel.uses.get(u) == 1 and not u.is_const and (lanes == 1 or bool(u.shape)) and u not in sel.pending
