"""Selection of memory: parameters, addresses, loads, stores, registers of the IR.

An address is base + index * scale + displacement. The index expression of a place is taken apart into terms; what does
not change in the innermost loop is added to the base in the preheader where it is fixed; of an innermost loop's own
term a multiple that an address cannot have is counted by the loop (``Induction``). So an inner loop holds no index
arithmetic. Loads with one reader are put off (``Selection.defer``) and end up as memory
operands where their reader has one. Gates become conditional loads and stores that do not touch memory when the gate
is false.
"""

from __future__ import annotations

from typing import Any

from tinyhost.codegen.memory import STREAMED
from tinyhost.dtype import DType, dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import AddrSpace, Ops
from tinyhost.renderer.isa.selection import Induction, Selection
from tinyhost.uop import UOp
from tinyhost_cpu.x86.insns import X86Op, X86Ops
from tinyhost_cpu.x86.isel_bool import bool_register, condition_of, mask_of, opmask
from tinyhost_cpu.x86.isel_mask import exact, load_mask, mask_as, mask_of_bytes
from tinyhost_cpu.x86.operands import (
    HALVES,
    NO_INDEX,
    Memory,
    all_zero,
    as_int,
    def_reg,
    imm,
    int_constant,
    int_dtype,
    int_literal,
    lane_of,
    lanes_of,
    literal_bits,
    masked_move,
    reg,
    short_imm,
    signed,
    splat,
    vec,
    view,
    zero,
    zeroing,
)
from tinyhost_cpu.x86.registers import LOCALS

SCALES = (1, 2, 4, 8)
MOST_STEPS = 4  # multiples of one counter that a loop counts: each is a register
_INDEX_OPS = frozenset({Ops.ADD, Ops.MUL, Ops.SHL, Ops.CAST})
_STORAGE = frozenset({Ops.PARAM, Ops.BUFFER})
_VIEWS = frozenset({Ops.AFTER, Ops.BITCAST, Ops.CAST})
_PLACES = frozenset({Ops.INDEX, Ops.SHRINK})
_ACCESSES = frozenset({Ops.LOAD, Ops.STORE})


# *** storage ***
def storage_of(place: UOp) -> UOp:
    """The PARAM or BUFFER under a place."""
    while place.op not in _STORAGE:
        if not place.src:
            raise CompileError(f"no storage under {place!r}")
        place = place.src[0]
    return place


def base_register(sel: Selection, storage: UOp) -> UOp:
    """The pointer to the first byte of a PARAM, or the frame where a LOCAL buffer lies."""
    return sel.values[storage]


def is_place(u: UOp) -> bool:
    """Whether an INDEX or SHRINK names storage (and not lanes of a value)."""
    return is_storage(u.src[0])


def is_storage(u: UOp) -> bool:
    """Whether ``u`` is memory or registers of the IR, perhaps seen as another type."""
    op = u.op
    while op in _VIEWS:
        u = u.src[0]
        op = u.op
    return op in _STORAGE and u.arg.addrspace is not AddrSpace.ALU


# *** addresses ***
def find_skipped(sel: Selection, uops: list[UOp]) -> None:
    """Collect integer nodes that only addresses read: they get no register of their own unless a term needs one."""
    read: set[UOp] = set()
    skipped = sel.skipped
    places: dict[UOp, bool] = {}  # whether what an INDEX reads is storage
    for u in reversed(uops):
        src = u.src
        if not src:
            continue
        op = u.op
        if op in _PLACES:
            base = src[0]
            known = places.get(base)
            if known is None:
                known = places[base] = is_storage(base)
            if known:
                continue
        if (
            op in _INDEX_OPS
            and u not in read
            and not u.dtype.is_float
            and u.dtype is not dtypes.bool
            and u.dtype.itemsize >= 4
            and not u.shape
            and u is not uops[-1]
            and _splits(u)
        ):
            skipped.add(u)
        else:
            read.update(src)


def _splits(u: UOp) -> bool:
    """Whether ``terms_of`` looks into ``u``."""
    if u.op is Ops.CAST:
        return u.dtype is dtypes.int64 and u.src[0].dtype in (dtypes.int32, dtypes.int64)
    return u.op is Ops.ADD or int_literal(u.src[1]) is not None


def terms_of(idx: UOp) -> tuple[list[tuple[UOp, int]], int]:
    """``idx`` as [(node, coefficient)] and a constant."""
    terms: list[tuple[UOp, int]] = []
    const = 0
    stack = [(idx, 1)]
    while stack:
        u, c = stack.pop()
        value = int_literal(u)
        if value is not None:
            const += value * c
        elif u.op is Ops.ADD:
            stack += [(u.src[1], c), (u.src[0], c)]
        elif u.op is Ops.MUL and (k := int_literal(u.src[1])) is not None:
            stack.append((u.src[0], c * k))
        elif u.op is Ops.SHL and (k := int_literal(u.src[1])) is not None:
            stack.append((u.src[0], c << k))
        elif u.op is Ops.CAST and _splits(u):
            stack.append((u.src[0], c))
        else:
            terms.append((u, c))
    return terms, const


def index_register(sel: Selection, u: UOp) -> UOp:
    """A term of an index as a 64-bit register."""
    node = reg(sel, u)
    size = u.dtype.itemsize
    if size == 8:
        return node
    if size == 4 and (u.dtype is dtypes.uint32 or u.vmin >= 0):
        return view(sel, node, dtypes.int64)  # upper half is zero
    if size == 4:
        return sel.pure(X86Ops.MOVSXD, dtypes.int64, (as_int(sel, node, 4),))
    extend = X86Ops.MOVZX if u.dtype in dtypes.uints or u.dtype is dtypes.bool else X86Ops.MOVSX
    return sel.pure(extend, dtypes.int64, (view(sel, node, int_dtype(size)),))


def add_scaled(sel: Selection, base: UOp, node: UOp, scale: int) -> UOp:
    """base + node * scale in a register."""
    node, scale = _scaled(sel, node, scale)
    return sel.pure(X86Ops.LEA, dtypes.uint64, (base, node, short_imm(0), imm(dtypes.uint8, scale)))


def address(sel: Selection, place: UOp, dtype: DType) -> Memory:
    """The memory operand of ``place``, accessed as ``dtype``."""
    while place.op in (Ops.CAST, Ops.BITCAST):
        place = place.src[0]
    buf, idx = place.src[0], place.src[1]
    rest, const = idx, 0
    if idx.op is Ops.ADD and (value := int_literal(idx.src[1])) is not None:
        rest, const = idx.src[0], value
    key = ("address", buf, rest)
    found: Any = sel.recall(key)
    if found is None:
        found = _resolve(sel, buf, rest)
        sel.scopes[-1][key] = found
    base, index, scale, disp = found
    disp += const * buf.dtype.itemsize
    if not -(1 << 31) <= disp < 1 << 31:
        base, disp = add_scaled(sel, base, int_constant(sel, disp, True), 1), 0
    return base, index, short_imm(disp), imm(dtype, scale)


def _resolve(sel: Selection, buf: UOp, idx: UOp) -> tuple[UOp, UOp, int, int]:
    storage = storage_of(buf)
    size = buf.dtype.itemsize  # of the view: a BITCAST under the place restates the elements
    terms, const = terms_of(idx)
    disp = const * size
    base = base_register(sel, storage)
    if storage.arg.addrspace is not AddrSpace.GLOBAL:
        base, disp = def_reg(dtypes.uint64, LOCALS), disp + sel.frame[storage]
    merged: dict[UOp, int] = {}
    for u, c in terms:
        merged[u] = merged.get(u, 0) + c
    nodes = [(index_register(sel, u), c * size) for u, c in merged.items() if c]
    nodes.sort(key=lambda nc: (sel.depth_of.get(nc[0], 0), nc[1] in SCALES))
    while len(nodes) > 1:
        node, scale = nodes.pop(0)
        base = add_scaled(sel, base, node, scale)
    if not nodes:
        return base, NO_INDEX, 1, disp
    index, scale = _scaled(sel, *nodes[0])
    return base, index, scale, disp


def _scaled(sel: Selection, node: UOp, scale: int) -> tuple[UOp, int]:
    """node * scale as (register, scale that an address may have)."""
    if scale in SCALES:
        return node, scale
    induction = sel.inductions.get(node.tag)
    if induction is not None and 0 < scale < 1 << 31:
        if scale in induction.steps or len(induction.steps) < MOST_STEPS:
            return _counted(sel, induction, scale), 1
    factor = short_imm(scale) if -(1 << 31) <= scale < 1 << 31 else int_constant(sel, scale, True)
    return sel.pure(X86Ops.IMUL, dtypes.int64, (node, factor)), 1


def _counted(sel: Selection, induction: Induction, scale: int) -> UOp:
    """The counter of an innermost loop times ``scale``, as a register that the loop advances."""
    node = induction.steps.get(scale)
    if node is None:
        tag = sel.new_tag()
        induction.preheader.append(UOp(Ops.INS, (imm(dtypes.int32, 0),), (X86Ops.MOV, dtypes.int32), tag))
        node = induction.steps[scale] = UOp(Ops.INS, (), (X86Ops.DEFINE, dtypes.int64), tag)
        sel.depth_of[node] = sel.depth
    return node


# *** loads ***
def load_op(dtype: DType, lanes: int) -> X86Op:
    """The instruction that loads exactly the bytes of ``lanes`` elements of ``dtype``."""
    size = dtype.itemsize * lanes
    if lanes == 1 and not dtype.is_float:
        return X86Ops.MOV if size >= 4 else X86Ops.MOVSX if dtype in dtypes.sints else X86Ops.MOVZX
    if lanes == 1 and size >= 4:
        return X86Ops.VMOVSS if size == 4 else X86Ops.VMOVSD
    if size >= 16:
        return _whole_move(dtype, size)
    return {2: X86Ops.VPINSRW, 4: X86Ops.VMOVD, 8: X86Ops.VMOVQ}[size]


def _whole_move(dtype: DType, size: int) -> X86Op:
    """The move of a whole vector register of ``size`` bytes."""
    return X86Ops.VMOVUPS if dtype.is_float else X86Ops.VMOVDQU if size <= 32 else X86Ops.VMOVDQU32


def raw_load(sel: Selection, dtype: DType, lanes: int, memory: Memory) -> UOp:
    """Load ``lanes`` elements as they lie in memory."""
    op = load_op(dtype, lanes)
    if op is X86Ops.VPINSRW:
        return sel.emit(op, dtype, (zero(sel, dtype, lanes), *memory, imm(dtypes.int8, 0)), lanes)
    if op is X86Ops.MOVZX or op is X86Ops.MOVSX:
        return view(sel, sel.emit(op, dtypes.int32, memory), dtype)
    return sel.emit(op, dtype, memory, lanes)


def _bool_lanes(sel: Selection, node: UOp, lanes: int) -> UOp:
    """Bytes 0 and 1 as a mask."""
    if sel.level.evex:
        return mask_of_bytes(sel, node, lanes)
    return sel.emit(X86Ops.VPSUBB, dtypes.int8, (zero(sel, dtypes.int8, lanes), node), lanes)


def load(sel: Selection, u: UOp) -> UOp | None:
    """LOAD(place), LOAD(place, alt, gate)."""
    place, dtype, lanes = u.src[0], u.dtype, lanes_of(u)
    if (variable := register_variable(sel, place)) is not None:
        return sel.emit(X86Ops.COPY, dtype, (variable,), lanes)
    if len(u.src) == 3 and (gate := int_literal(u.src[2])) is None:
        return _gated_load(sel, u, dtype, lanes)
    if len(u.src) == 3 and not gate:
        return vec(sel, u.src[1], dtype, lanes)
    if dtype is dtypes.bool and lanes > 1:
        memory = address(sel, place, dtypes.uint8)
        if sel.level.evex and lanes >= 16:
            return load_mask(sel, memory, lanes)
        return _bool_lanes(sel, raw_load(sel, dtypes.uint8, lanes, memory), lanes)
    memory = address(sel, place, dtype)
    if sel.uses.get(u) == 1 or dtype.is_float and sel.spread.get(u):
        sel.defer(u, memory, lambda: raw_load(sel, dtype, lanes, memory))
        return None
    return raw_load(sel, dtype, lanes, memory)


def _gated_load(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    place, alt, gate = u.src
    if gate.shape:
        return _masked_load(sel, u, dtype, lanes)
    if dtype is dtypes.bool and lanes > 1:
        other = _bool_bytes(sel, alt, lanes)
        return _bool_lanes(sel, _conditional_load(sel, place, other, gate, dtypes.uint8, lanes), lanes)
    if lanes == 1 and dtype in HALVES:
        other = sel.emit(X86Ops.VMOVD, dtypes.int32, (reg(sel, alt),))
        bits = _conditional_load(sel, place, view(sel, other, dtypes.uint16), gate, dtypes.uint16, 1)
        return sel.emit(X86Ops.VMOVD, dtype, (as_int(sel, bits, 4),))
    return _conditional_load(sel, place, vec(sel, alt, dtype, lanes), gate, dtype, lanes)


def _conditional_load(sel: Selection, place: UOp, alt: UOp, gate: UOp, dtype: DType, lanes: int) -> UOp:
    """``alt``, overwritten from memory when the gate holds; memory is not touched otherwise."""
    memory = address(sel, place, dtype)
    flags, code = condition_of(sel, gate)
    # a narrow integer is loaded into, and extended to, 32 bits
    narrow = lanes == 1 and not dtype.is_float and dtype.itemsize < 4
    alt = as_int(sel, alt, 4) if narrow else alt
    node = sel.emit(
        X86Ops.SKIP_LOAD, dtypes.int32 if narrow else dtype, (alt, *memory, imm(dtypes.uint8, code ^ 1), flags), lanes
    )
    return view(sel, node, dtype) if narrow else node


def _masked_load(sel: Selection, u: UOp, dtype: DType, lanes: int) -> UOp:
    place, alt, gate = u.src
    size = dtype.itemsize
    if sel.level.evex:
        mask = exact(sel, opmask(sel, gate, lanes), lanes, size)
        if dtype is dtypes.bool:
            return mask_of_bytes(sel, _load_where(sel, place, alt, mask, dtypes.uint8, lanes), lanes)
        return _load_where(sel, place, alt, mask, dtype, lanes)
    if dtype is dtypes.bool or size < 4:
        return _load_by_lanes(sel, u, lanes)
    mask = mask_of(sel, gate, size, lanes, exact=True)
    op = _masked_op(dtype)
    node = sel.emit(op, dtype, (mask, *address(sel, place, dtype)), lanes)
    if all_zero(alt):
        return node
    other = vec(sel, alt, dtype, lanes)
    return sel.emit(X86Ops.VBLENDVPS if size == 4 else X86Ops.VBLENDVPD, dtype, (other, node, mask), lanes)


def _load_where(sel: Selection, place: UOp, alt: UOp, mask: UOp, dtype: DType, lanes: int) -> UOp:
    """The lanes of memory that ``mask`` holds, those of ``alt`` elsewhere; memory is not touched there."""
    memory = address(sel, place, dtype)
    if all_zero(alt):
        return sel.emit(masked_move(dtype), dtype, (zeroing(sel, mask), *memory), lanes)
    other = _bool_bytes(sel, alt, lanes) if alt.dtype is dtypes.bool else vec(sel, alt, dtype, lanes)
    return sel.emit(masked_move(dtype), dtype, (other, mask, *memory), lanes)


def _masked_op(dtype: DType) -> X86Op:
    if dtype.is_float:
        return X86Ops.VMASKMOVPS if dtype.itemsize == 4 else X86Ops.VMASKMOVPD
    return X86Ops.VPMASKMOVD if dtype.itemsize == 4 else X86Ops.VPMASKMOVQ


def _lane_place(place: UOp, lane: int) -> UOp:
    """The scalar place ``lane`` elements behind the first of a vector place."""
    idx = place.src[1]
    return UOp(Ops.INDEX, (place.src[0], UOp(Ops.ADD, (idx, UOp.const(lane, idx.dtype))) if lane else idx))


def _load_by_lanes(sel: Selection, u: UOp, lanes: int) -> UOp:
    place, alt, gate = u.src
    parts = tuple(UOp(Ops.LOAD, (_lane_place(place, i), lane_of(alt, i), lane_of(gate, i))) for i in range(lanes))
    return sel.value(UOp(Ops.STACK, parts))


# *** stores ***
def store_op(dtype: DType, lanes: int) -> X86Op:
    """The instruction that stores exactly the bytes of ``lanes`` elements of ``dtype``."""
    size = dtype.itemsize * lanes
    if lanes == 1 and not dtype.is_float:
        return X86Ops.MOV
    if lanes == 1 and size >= 4:
        return X86Ops.VMOVSS if size == 4 else X86Ops.VMOVSD
    if size >= 16:
        return _whole_move(dtype, size)
    return {2: X86Ops.VPEXTRW, 4: X86Ops.VMOVD, 8: X86Ops.VMOVQ}[size]


def _bool_bytes(sel: Selection, u: UOp, lanes: int) -> UOp:
    """A bool vector as bytes 0 and 1."""
    if sel.level.evex:
        return mask_as(sel, opmask(sel, u, lanes), 1, dtypes.uint8, lanes)
    return sel.emit(X86Ops.VPAND, dtypes.uint8, (mask_of(sel, u, 1, lanes), splat_byte_one(sel, lanes)), lanes)


def _store_sources(sel: Selection, value: UOp, dtype: DType, lanes: int) -> tuple[DType, UOp]:
    """(type of the access, register) to store."""
    if dtype is dtypes.bool and lanes > 1:
        return dtypes.uint8, _bool_bytes(sel, value, lanes)
    node = vec(sel, value, dtype, lanes) if dtype is not dtypes.bool else bool_register(sel, value)
    if lanes == 1 and not dtype.is_float:
        dtype = int_dtype(dtype.itemsize, False)
        return dtype, view(sel, node, dtype)
    return dtype, node


def splat_byte_one(sel: Selection, lanes: int) -> UOp:
    """The byte 1 in every lane."""
    return splat(sel, int_constant(sel, 1, False), dtypes.uint8, lanes)


def store(sel: Selection, u: UOp) -> UOp | None:
    """STORE(place, value), STORE(place, value, gate)."""
    place, value = u.src[0], u.src[1]
    lanes = lanes_of(place)
    dtype = place.dtype
    if (variable := register_variable(sel, place)) is not None:
        sel.emit(X86Ops.COPY, dtype, (vec(sel, value, dtype, lanes),), lanes, tag=variable.tag)
        return None
    gate = u.src[2] if len(u.src) == 3 else None
    if gate is not None and gate.shape:
        _masked_store(sel, place, value, gate, dtype, lanes)
        return None
    if gate is None and lanes == 1 and value.is_const and _store_literal(sel, place, value, dtype):
        return None
    dtype, node = _store_sources(sel, value, dtype, lanes)
    memory = address(sel, place, dtype)
    if gate is None:
        op = store_op(dtype, lanes)
        tail = (imm(dtypes.int8, 0),) if op is X86Ops.VPEXTRW else ()
        if u.tag == STREAMED and lanes * dtype.itemsize >= 16:
            op = X86Ops.VMOVNTPS if dtype.is_float else X86Ops.VMOVNTDQ
            sel.streamed.add(storage_of(place))
        sel.effect(op, (*memory, node, *tail))
        return None
    sel.flush()
    flags, code = condition_of(sel, gate)
    sel.effect(X86Ops.SKIP_STORE, (*memory, node, imm(dtypes.uint8, code ^ 1), flags), lanes)
    return None


def _store_literal(sel: Selection, place: UOp, value: UOp, dtype: DType) -> bool:
    """Store a scalar literal as an immediate, if it fits."""
    size = dtype.itemsize
    number = signed(literal_bits(value.const_value, dtype), size * 8)
    if not -(1 << 31) <= number < 1 << 31:
        return False
    access = int_dtype(size, False)
    sel.effect(X86Ops.MOV, (*address(sel, place, access), imm(int_dtype(min(size, 4)), number)))
    return True


def _masked_store(sel: Selection, place: UOp, value: UOp, gate: UOp, dtype: DType, lanes: int) -> None:
    if sel.level.evex:
        access, node = _store_sources(sel, value, dtype, lanes)
        mask = exact(sel, opmask(sel, gate, lanes), lanes, dtype.itemsize)
        sel.effect(masked_move(access), (*address(sel, place, access), mask, node))
        return
    if dtype is dtypes.bool or dtype.itemsize < 4:
        for i in range(lanes):
            sel.visit(UOp(Ops.STORE, (_lane_place(place, i), sel_lane(sel, value, i), sel_lane(sel, gate, i))))
        return
    node = vec(sel, value, dtype, lanes)
    mask = mask_of(sel, gate, dtype.itemsize, lanes, exact=True)
    sel.effect(_masked_op(dtype), (*address(sel, place, dtype), mask, node))


def sel_lane(sel: Selection, u: UOp, lane: int) -> UOp:
    """``lane_of`` with the lane selected now."""
    part = lane_of(u, lane)
    if not part.is_const:
        sel.value(part)
    return part


# *** registers of the IR ***
def register_variable(sel: Selection, place: UOp) -> UOp | None:
    """The variable behind a place in REG space, None for memory."""
    storage = storage_of(place)
    if storage.arg.addrspace is not AddrSpace.REG:
        return None
    return sel.variables.get(_slice_of(place, storage))


def _slice_of(place: UOp, storage: UOp) -> Any:
    """(storage, first element, count) of a place with a literal index, else None."""
    while place.op in (Ops.CAST, Ops.BITCAST, Ops.AFTER):
        place = place.src[0]
    if place is storage:
        return storage, 0, storage.arg.size
    first = int_literal(place.src[1])
    return None if first is None else (storage, first, lanes_of(place))


def assign_storage(sel: Selection, uops: list[UOp]) -> None:
    """Decide which REG buffers become variables; the others, and LOCAL ones, lie in the frame."""
    slices: dict[UOp, set[Any]] = {}
    register = {u for u in uops if u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.REG}
    for u in uops if register else ():
        if u.op in _ACCESSES:
            storage = storage_of(u.src[0])
            if storage in register:
                slices.setdefault(storage, set()).add(_slice_of(u.src[0], storage))
    for storage, parts in slices.items():
        if None in parts or not _disjoint(parts) or storage.arg.dtype is dtypes.bool:
            continue
        sel.in_registers.add(storage)
        for part in parts:
            dtype, lanes = storage.arg.dtype, part[2]
            sel.variables[part] = UOp(
                Ops.INS, (), (X86Ops.DEFINE, dtype) if lanes == 1 else (X86Ops.DEFINE, dtype, lanes), sel.new_tag()
            )


def _disjoint(parts: set[Any]) -> bool:
    ordered = sorted((first, count) for _, first, count in parts)
    return all(a + n <= b for (a, n), (b, _) in zip(ordered, ordered[1:]))


def buffer(sel: Selection, u: UOp) -> UOp | None:
    """BUFFER: a variable has no storage; anything else gets bytes of the frame; in ALU space it is an argument."""
    if u.arg.addrspace is AddrSpace.ALU:
        return sel.values.get(u)
    if u.arg.addrspace is AddrSpace.GLOBAL:
        raise CompileError(f"a kernel addresses memory through PARAMs, got {u!r}")
    if u in sel.in_registers:
        return None
    sel.frame[u] = sel.frame_bytes
    sel.frame_bytes += -(-u.arg.size * u.arg.dtype.itemsize // 16) * 16
    if sel.frame_bytes > 16 << 10:
        raise CompileError(
            f"{sel.frame_bytes} bytes of LOCAL and REG buffers do not fit the 16 KiB of stack a kernel may use; "
            "keep them in scratch memory (ProgramInfo.scratch)"
        )
    return def_reg(dtypes.uint64, LOCALS)


def place(sel: Selection, u: UOp) -> UOp | None:
    """INDEX or SHRINK over storage: LOAD and STORE read its address."""
    return None
