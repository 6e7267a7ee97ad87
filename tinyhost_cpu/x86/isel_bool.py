"""Selection of comparisons, bool logic and WHERE.

A scalar bool has one of three forms: flags (an integer comparison that only branches, conditional moves and gates
read), 0 or 1 in a general-purpose register, or a mask in a vector register (every float comparison: UCOMIS sets carry,
zero and parity together on a NaN, so the flags cannot tell the cases apart; Intel SDM 2B UCOMISS). A bool vector is
always a mask of the width of what was compared. With opmask registers (``isel_mask``) those are all masks, of vectors
and of float scalars. Each form is turned into another where a reader needs it.
"""

from __future__ import annotations

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.isa.selection import Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Ops
from tinyhost_cpu.x86.isel_mask import (
    blend,
    compare_floats,
    compare_ints,
    compare_opmasks,
    constant_mask,
    mask_from_bits,
    mask_logic,
    mask_to_bits,
)
from tinyhost_cpu.x86.operands import (
    FLOAT_OF_WIDTH,
    HALVES,
    INT_SUFFIX,
    SCALAR_MASK,
    as_int,
    constant,
    float_op,
    imm,
    int_constant,
    int_dtype,
    int_literal,
    int_vec_op,
    is_opmask,
    lanes_of,
    ones,
    reg,
    short_imm,
    splat,
    to_vector_register,
    vec,
    vec_or_mem,
    view,
    zero,
)

# condition codes (low four bits of the opcode; Intel SDM 1 appendix B); bit 0 inverts
B, AE, E, NE, BE, A, L, GE, LE, G = 2, 3, 4, 5, 6, 7, 12, 13, 14, 15
CONDITION_NAMES = {B: "B", AE: "AE", E: "E", NE: "NE", BE: "BE", A: "A", L: "L", GE: "GE", LE: "LE", G: "G"}
_SWAPPED = {B: A, A: B, L: G, G: L, E: E, NE: NE}
_FLOAT_PREDICATE = {Ops.CMPLT: 1, Ops.CMPNE: 4, Ops.CMPEQ: 0}  # LT_OS, NEQ_UQ, EQ_OQ
_GATE_SLOT = {Ops.LOAD: 2, Ops.STORE: 2, Ops.END: 2, Ops.IF: 0}


# *** which comparisons need no value ***
def find_flag_only(sel: Selection, uops: list[UOp]) -> None:
    """Collect comparisons that are only read through the flags, or are part of a minimum or maximum."""
    comparisons = GroupOp.Comparison
    candidates = {u for u in uops if u.op in comparisons and (u.op is Ops.CMPLT or _sets_flags(u))}
    if not candidates:
        return
    valued = {uops[-1]}
    for u in uops:
        if candidates.isdisjoint(u.src):
            continue
        op = u.op
        slot = _GATE_SLOT.get(op, -1)
        extreme = op is Ops.WHERE and extreme_of(sel, u)
        if op is Ops.WHERE and not u.shape and not u.dtype.is_float and u.dtype is not dtypes.bool:
            slot = 0
        for i, s in enumerate(u.src):
            if s in candidates and (i != slot if _sets_flags(s) else i or not extreme):
                valued.add(s)
    sel.skipped.update(candidates - valued)


def _sets_flags(u: UOp) -> bool:
    """Whether a comparison is one of scalar integers."""
    return not u.shape and not u.src[0].dtype.is_float


def extreme_of(sel: Selection, u: UOp) -> str:
    """MIN or MAX where WHERE(a < b, a, b) or WHERE(a < b, b, a) is one instruction, else nothing.

    VMIN and VMAX give their second source for a NaN in either and for two zeros (Intel SDM 2B MINPS), as WHERE does.
    """
    cond, x, y = u.src
    dtype = u.dtype
    if cond.op is not Ops.CMPLT or dtype in HALVES or dtype is dtypes.bool:
        return ""
    if not dtype.is_float and (not u.shape or dtype.itemsize == 8 and not sel.level.evex):
        return ""
    a, b = cond.src
    return "MIN" if x is a and y is b else "MAX" if x is b and y is a else ""


# *** flags ***
def _is_inverse(u: UOp) -> bool:
    return (
        u.op in (Ops.XOR, Ops.CMPNE)
        and u.src[0].dtype is dtypes.bool
        and u.src[1].is_const
        and bool(u.src[1].const_value)
    )


def condition_of(sel: Selection, gate: UOp) -> tuple[UOp, int]:
    """(flags, condition code) that hold when ``gate`` is true. The flags are current: read them at once."""
    invert = 0
    while _is_inverse(gate) and not gate.shape:
        gate, invert = gate.src[0], invert ^ 1
    if gate.op in GroupOp.Comparison and not gate.src[0].dtype.is_float and gate not in sel.values:
        flags, code = _compare_flags(sel, gate)
        return flags, code ^ invert
    node = sel.values.get(gate)
    if node is not None and is_opmask(node):
        return _flags(sel, X86Ops.KORTESTW, (node, node)), NE ^ invert
    if node is not None and node.arg[1].is_float:
        node = sel.pure(X86Ops.VMOVD, dtypes.int32, (node,))
    else:
        node = view(sel, bool_register(sel, gate), dtypes.int32)
    return _flags(sel, X86Ops.TEST, (node, node)), NE ^ invert


def _compare_flags(sel: Selection, u: UOp) -> tuple[UOp, int]:
    a, b = u.src
    dtype = a.dtype if int_literal(b) is not None else b.dtype
    signed = dtype in dtypes.sints
    code = {Ops.CMPLT: L if signed else B, Ops.CMPNE: NE, Ops.CMPEQ: E}[u.op]
    if int_literal(a) is not None and int_literal(b) is None:
        a, b, code = b, a, _SWAPPED[code]
    size = 4 if dtype is dtypes.bool else dtype.itemsize
    left = as_int(sel, bool_or_int(sel, a), size)
    value = int_literal(b)
    if value is not None and -(1 << 31) <= value < 1 << 31:
        right = imm(dtypes.int8, value) if -128 <= value < 128 else imm(int_dtype(min(size, 4)), value)
        if value == 0 and code in (E, NE):
            return _flags(sel, X86Ops.TEST, (left, left)), code
    else:
        right = as_int(sel, bool_or_int(sel, b), size)
    return _flags(sel, X86Ops.CMP, (left, right)), code


def bool_or_int(sel: Selection, u: UOp) -> UOp:
    """A scalar in a general-purpose register, whatever form a bool has."""
    return bool_register(sel, u) if u.dtype is dtypes.bool else reg(sel, u)


def _flags(sel: Selection, op: object, src: tuple[UOp, ...]) -> UOp:
    """An instruction for its flags: the last one again if it is still valid, else emitted here."""
    key = ("flags", op, src)
    node = sel.recall(key)
    if node is None:
        return sel.remember(key, sel.emit(op, dtypes.void, src))
    if sel.flags is not node:
        sel.out.append(node)
        sel.flags = node
    return node


# *** 0 or 1 in a register ***
def bool_register(sel: Selection, u: UOp) -> UOp:
    """A scalar bool as 0 or 1."""
    if u.is_const:
        return constant(sel, u)
    if u not in sel.values and u.op in GroupOp.Comparison and not u.src[0].dtype.is_float:
        key = ("bool", u)
        node = sel.recall(key)
        return sel.remember(key, _set(sel, u)) if node is None else node
    node = reg(sel, u)
    if is_opmask(node):
        return view(sel, mask_to_bits(sel, node, SCALAR_MASK), dtypes.bool)
    if not node.arg[1].is_float:
        return node
    bits = sel.pure(X86Ops.VMOVD, dtypes.int32, (node,))
    return view(sel, sel.pure(X86Ops.AND, dtypes.int32, (bits, short_imm(1))), dtypes.bool)


def _set(sel: Selection, u: UOp) -> UOp:
    flags, code = _compare_flags(sel, u)
    byte = sel.emit(X86Ops["SET" + CONDITION_NAMES[code]], dtypes.uint8, (flags,))
    return view(sel, sel.emit(X86Ops.MOVZX, dtypes.int32, (byte,)), dtypes.bool)


# *** masks ***
def mask_of(sel: Selection, u: UOp, width: int, lanes: int, exact: bool = False) -> UOp:
    """A bool as a mask of ``width`` bytes per lane; ``exact`` clears the lanes behind the last one."""
    if u.is_const:
        dtype = int_dtype(width)
        return (
            ones(sel, dtype, lanes)
            if u.const_value and not exact
            else _exact_ones(sel, dtype, lanes)
            if u.const_value
            else zero(sel, dtype, lanes)
        )
    if not u.shape:
        node = _scalar_mask(sel, u, width)
        node = node if lanes == 1 else splat_mask(sel, node, width, lanes)
    else:
        node = sel.value(u)
        node = convert_mask(sel, node, lanes, node.arg[1].itemsize, width)
    if exact and lanes * width == 8:
        node = sel.pure(X86Ops.VMOVQ, int_dtype(width), (node,), lanes)
    return node


def opmask(sel: Selection, u: UOp, lanes: int) -> UOp:
    """A bool as an opmask of ``lanes`` lanes."""
    if u.is_const:
        return constant_mask(sel, (1 << lanes) - 1 if u.const_value else 0, lanes)
    if u.shape:
        return sel.value(u)
    if lanes == 1:
        return scalar_opmask(sel, u)
    work = dtypes.int64 if lanes > 32 else dtypes.int32
    return mask_from_bits(sel, sel.pure(X86Ops.NEG, work, (view(sel, bool_register(sel, u), work),)), lanes)


def scalar_opmask(sel: Selection, u: UOp) -> UOp:
    """A scalar bool as bit 0 of an opmask, the others 0."""
    node = sel.values.get(u)
    if node is not None and is_opmask(node):
        return node
    return mask_from_bits(sel, bool_register(sel, u), SCALAR_MASK)


def _exact_ones(sel: Selection, dtype: DType, lanes: int) -> UOp:
    node = ones(sel, dtype, lanes)
    return sel.pure(X86Ops.VMOVQ, dtype, (node,), lanes) if lanes * dtype.itemsize == 8 else node


def splat_mask(sel: Selection, node: UOp, width: int, lanes: int) -> UOp:
    """A scalar mask in every lane."""
    dtype = int_dtype(width)
    return sel.pure(int_vec_op("VPBROADCAST", width), dtype, (view(sel, node, FLOAT_OF_WIDTH[width]),), lanes)


def _scalar_mask(sel: Selection, u: UOp, width: int) -> UOp:
    """A scalar bool as a mask of at least ``width`` bytes in the low lane."""
    node = sel.values.get(u)
    if node is not None and node.arg[1].is_float:
        if node.arg[1].itemsize < width:
            return sel.pure(X86Ops.VPMOVSXDQ, dtypes.float64, (node,))
        return node
    wide = width == 8
    number = view(sel, bool_register(sel, u), dtypes.int64 if wide else dtypes.int32)
    negated = sel.pure(X86Ops.NEG, dtypes.int64 if wide else dtypes.int32, (number,))
    return to_vector_register(sel, negated, dtypes.float64 if wide else dtypes.float32)


def convert_mask(sel: Selection, node: UOp, lanes: int, old: int, new: int) -> UOp:
    """A mask in another width."""
    if new > old:
        suffix = {1: "B", 2: "W", 4: "D", 8: "Q"}
        return sel.pure(X86Ops[f"VPMOVSX{suffix[old]}{suffix[new]}"], int_dtype(new), (node,), lanes)
    while old > new:
        node = narrow(sel, node, lanes, old)
        old //= 2
    return node


_PACK = {2: "VPACKSSWB", 4: "VPACKSSDW"}


def narrow(sel: Selection, node: UOp, lanes: int, width: int, pack: str | None = None) -> UOp:
    """Lanes of ``width`` bytes in half the width, order kept. Masks and small numbers: packing saturates."""
    low, high = node, node
    if lanes * width == 32:
        low = view(sel, node, int_dtype(width), lanes // 2)
        high = sel.pure(X86Ops.VEXTRACTI128, int_dtype(width), (node, imm(dtypes.int8, 1)), lanes // 2)
    half = int_dtype(width // 2)
    if width == 8:
        return sel.pure(X86Ops.VSHUFPS, half, (low, high, imm(dtypes.uint8, 0x88)), max(lanes, 2))
    return sel.pure(X86Ops[pack or _PACK[width]], half, (low, high), lanes)


# *** rules ***
def through_float(sel: Selection, u: UOp) -> UOp:
    """An op on float16 or bfloat16 as the same op on float32."""
    src = tuple(_as_float(s) if s.dtype in HALVES else s for s in u.src)
    out = UOp(u.op, src, u.arg)
    return sel.value(out if u.dtype is dtypes.bool else UOp(Ops.CAST, (out,), u.dtype))


def _as_float(u: UOp) -> UOp:
    """A 16-bit float as float32; literals stay literals."""
    if u.is_const:
        return UOp.const(u.dtype.const(u.const_value), dtypes.float32)
    return UOp(Ops.CAST, (u,), dtypes.float32)


def compare(sel: Selection, u: UOp) -> UOp:
    """CMPLT, CMPNE, CMPEQ."""
    a, b = u.src
    dtype, lanes = (b if int_literal(a) is not None else a).dtype, lanes_of(u)
    if dtype in HALVES:
        return through_float(sel, u)
    if dtype.is_float:
        left = vec(sel, a, dtype, lanes)
        right = vec_or_mem(sel, b, dtype, lanes)
        if sel.level.evex:
            return compare_floats(sel, _FLOAT_PREDICATE[u.op], left, right, dtype, lanes)
        return sel.emit(
            float_op("VCMP", dtype, lanes), dtype, (left, *right, imm(dtypes.uint8, _FLOAT_PREDICATE[u.op])), lanes
        )
    if lanes == 1:
        return _set(sel, u)
    if sel.level.evex:
        if dtype is dtypes.bool:
            return compare_opmasks(sel, u.op, opmask(sel, a, lanes), opmask(sel, b, lanes), lanes)
        return compare_ints(sel, u, dtype, lanes)
    return _compare_masks(sel, u, lanes) if dtype is dtypes.bool else _compare_vectors(sel, u, dtype, lanes)


def _compare_masks(sel: Selection, u: UOp, lanes: int) -> UOp:
    """Comparisons of bool vectors: != is XOR, a < b is ~a & b."""
    a, b, width = _common_masks(sel, u, lanes)
    dtype = int_dtype(width)
    if u.op is Ops.CMPLT:
        return sel.emit(X86Ops.VPANDN, dtype, (a, b), lanes)
    node = sel.emit(X86Ops.VPXOR, dtype, (a, b), lanes)
    return node if u.op is Ops.CMPNE else invert(sel, node, dtype, lanes)


def invert(sel: Selection, node: UOp, dtype: DType, lanes: int) -> UOp:
    """All bits flipped."""
    return sel.emit(X86Ops.VPXOR, dtype, (node, ones(sel, dtype, lanes)), lanes)


def _compare_vectors(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    a, b, size = vec(sel, u.src[0], dtype, lanes), u.src[1], dtype.itemsize
    mask = int_dtype(size)
    if u.op is Ops.CMPLT:
        right = vec(sel, b, dtype, lanes)
        if dtype in dtypes.uints:  # a ^ MIN orders unsigned numbers as signed ones
            a, right = bias(sel, a, size, lanes), bias(sel, right, size, lanes)
        return sel.emit(int_vec_op("VPCMPGT", size), mask, (right, a), lanes)
    node = sel.emit(int_vec_op("VPCMPEQ", size), mask, (a, *vec_or_mem(sel, b, dtype, lanes)), lanes)
    return node if u.op is Ops.CMPEQ else invert(sel, node, mask, lanes)


def bias(sel: Selection, node: UOp, size: int, lanes: int) -> UOp:
    """``node`` with the sign bit of every lane flipped."""
    dtype = int_dtype(size)
    sign = splat(sel, int_constant(sel, -1 << (size * 8 - 1), size == 8), dtype, lanes)
    return sel.pure(X86Ops.VPXOR, dtype, (node, sign), lanes)


def _common_masks(sel: Selection, u: UOp, lanes: int) -> tuple[UOp, UOp, int]:
    """Two bool operands as masks of one width: that of the first one which has a width."""
    width = next((sel.value(s).arg[1].itemsize for s in u.src if s.shape and not s.is_const), 4)
    return mask_of(sel, u.src[0], width, lanes), mask_of(sel, u.src[1], width, lanes), width


_MASK_OP = {Ops.AND: "VPAND", Ops.OR: "VPOR", Ops.XOR: "VPXOR", Ops.MUL: "VPAND", Ops.ADD: "VPOR", Ops.MAX: "VPOR"}
_BIT_OP = {Ops.AND: "AND", Ops.OR: "OR", Ops.XOR: "XOR", Ops.MUL: "AND", Ops.ADD: "OR", Ops.MAX: "OR"}


def logic(sel: Selection, u: UOp) -> UOp:
    """AND, OR, XOR (and MUL, ADD, MAX) of bools."""
    lanes = lanes_of(u)
    if lanes > 1 and sel.level.evex:
        return _opmask_logic(sel, u, lanes)
    if lanes > 1:
        a, b, width = _common_masks(sel, u, lanes)
        return sel.emit(X86Ops[_MASK_OP[u.op]], int_dtype(width), (a, b), lanes)
    known, also = (sel.values.get(s) for s in u.src)
    if known is not None and also is not None:
        if is_opmask(known) and is_opmask(also):
            return mask_logic(sel, "K" + _BIT_OP[u.op], SCALAR_MASK, known, also)
        if known.arg[1].is_float and known.arg[1] is also.arg[1]:
            return sel.emit(X86Ops[_MASK_OP[u.op]], known.arg[1], (known, also))
    a, b = u.src if not u.src[0].is_const else u.src[::-1]
    first = view(sel, bool_register(sel, a), dtypes.int32)
    second = short_imm(int(b.const_value)) if b.is_const else view(sel, bool_register(sel, b), dtypes.int32)
    return view(sel, sel.emit(X86Ops[_BIT_OP[u.op]], dtypes.int32, (first, second)), dtypes.bool)


def _opmask_logic(sel: Selection, u: UOp, lanes: int) -> UOp:
    """Logic of bool vectors. A comparison just made that only an AND reads is made under the other operand."""
    a, b = u.src
    if u.op is Ops.XOR and b.is_const and b.const_value:
        return mask_logic(sel, "KNOT", lanes, opmask(sel, a, lanes))
    left, right = opmask(sel, a, lanes), opmask(sel, b, lanes)
    name = _BIT_OP[u.op]
    if name == "AND" and sel.uses.get(b) == 1 and sel.out and sel.out[-1] is right and left is not right:
        op, src = right.arg[0], right.src
        if op.name.startswith(("VCMP", "VPCMP")) and not is_opmask(src[0]):
            sel.out.pop()
            return sel.emit(op, dtypes.bool, (left, *src), lanes)
    return mask_logic(sel, "K" + name, lanes, left, right)


def where(sel: Selection, u: UOp) -> UOp:
    """WHERE(cond, a, b)."""
    cond, a, b = u.src
    dtype, lanes = u.dtype, lanes_of(u)
    if dtype is dtypes.bool:
        return _where_bool(sel, u, lanes)
    if extreme := extreme_of(sel, u):
        return _extreme(sel, extreme, dtype, lanes, a, b)
    if lanes > 1 or dtype.is_float:
        if sel.level.evex:
            return blend(sel, opmask(sel, cond, lanes), a, b, dtype, lanes)
        return _blend(sel, cond, a, b, dtype, lanes)
    size = max(dtype.itemsize, 4)
    yes, no = as_int(sel, reg(sel, a), size), as_int(sel, reg(sel, b), size)
    flags, code = condition_of(sel, cond)
    node = sel.emit(X86Ops["CMOV" + CONDITION_NAMES[code]], int_dtype(size), (no, yes, flags))
    return view(sel, node, dtype)


def _blend(sel: Selection, cond: UOp, a: UOp, b: UOp, dtype: DType, lanes: int) -> UOp:
    size = dtype.itemsize
    no = vec(sel, b, dtype, lanes)
    yes = vec_or_mem(sel, a, dtype, lanes) if lanes > 1 else (vec(sel, a, dtype, lanes),)
    if (control := _literal_control(cond, dtype)) is not None:
        return sel.emit(X86Ops[control[0]], dtype, (no, *yes, imm(dtypes.uint8, control[1])), lanes)
    mask = mask_of(sel, cond, size, lanes)
    op = X86Ops.VBLENDVPD if size == 8 else X86Ops.VBLENDVPS if size == 4 else X86Ops.VPBLENDVB
    return sel.emit(op, dtype, (no, *yes, mask), lanes)


def _extreme(sel: Selection, name: str, dtype: DType, lanes: int, a: UOp, b: UOp) -> UOp:
    """The smaller or larger of ``a`` and ``b``; of floats, ``b`` where they cannot be ordered."""
    if dtype.is_float:
        op = float_op("V" + name, dtype, lanes)
    else:
        op = X86Ops[f"VP{name}{'S' if dtype in dtypes.sints else 'U'}{INT_SUFFIX[dtype.itemsize]}"]
    left = vec(sel, a, dtype, lanes)
    return sel.emit(op, dtype, (left, *vec_or_mem(sel, b, dtype, lanes)), lanes)


def _literal_control(cond: UOp, dtype: DType) -> tuple[str, int] | None:
    """The blend by an immediate, and that, for a vector of literals; None where there is none."""
    if cond.op is not Ops.STACK or not all(s.is_const for s in cond.src):
        return None
    size, lanes = dtype.itemsize, [bool(s.const_value) for s in cond.src]
    if size == 1 or len(lanes) * size < 16 or size == 2 and lanes != lanes[:8] * (len(lanes) // 8):
        return None
    if size == 2:
        return "VPBLENDW", sum(bit << i for i, bit in enumerate(lanes[:8]))
    if dtype.is_float or size == 8:
        return "VBLENDPS" if size == 4 else "VBLENDPD", sum(bit << i for i, bit in enumerate(lanes))
    return "VPBLENDD", sum(bit << i for i, bit in enumerate(lanes))


def _where_bool(sel: Selection, u: UOp, lanes: int) -> UOp:
    cond, a, b = u.src
    if lanes == 1:
        yes, no = (view(sel, bool_register(sel, s), dtypes.int32) for s in (a, b))
        flags, code = condition_of(sel, cond)
        return view(sel, sel.emit(X86Ops["CMOV" + CONDITION_NAMES[code]], dtypes.int32, (no, yes, flags)), dtypes.bool)
    if sel.level.evex:
        mask, yes, no = (opmask(sel, s, lanes) for s in u.src)
        chosen, other = mask_logic(sel, "KAND", lanes, mask, yes), mask_logic(sel, "KANDN", lanes, mask, no)
        return mask_logic(sel, "KOR", lanes, chosen, other)
    width = next((sel.value(s).arg[1].itemsize for s in u.src if s.shape and not s.is_const), 4)
    mask, yes, no = (mask_of(sel, s, width, lanes) for s in u.src)
    return sel.emit(X86Ops.VPBLENDVB, int_dtype(width), (no, yes, mask), lanes)
