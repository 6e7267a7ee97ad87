"""What the allocator reads and what it answers.

A ``Function`` is a linear list of ``Inst`` over virtual registers (ints, indices into ``Function.vregs``). It is not
SSA: a virtual register may be defined any number of times. Physical registers are ints chosen by the target;
``MachineEnv`` groups them in classes. Nothing here knows an instruction set: opcodes are opaque.

A location in an ``Allocation`` is one int: ``>= 0`` is a physical register, ``< 0`` is spill slot ``~location``.
"""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from tinyhost.ops import direct


class AllocationError(ValueError):
    """The function handed to the allocator breaks a precondition, or cannot be allocated at all."""


@direct
class Kind(IntEnum):
    """What control flow and the allocator must know of an instruction."""

    OP = 0  # anything that falls through
    COPY = 1  # exactly one DEF and one USE of the same class; vanishes when both get one register
    LABEL = 2  # ``target`` names it; no operands
    JUMP = 3  # to ``target``, never falls through; no operands
    BRANCH = 4  # to ``target`` or to the next instruction; no operands (flags are not allocated)
    RET = 5  # leaves the function; may use operands


@direct
class Timing(IntEnum):
    """When an operand is touched: before the instruction's effect, or after it."""

    EARLY = 0
    LATE = 1


@direct
class Constraint(IntEnum):
    """Where an operand may be."""

    ANY = 0  # any register of the class
    FIXED = 1  # the register ``arg``
    REUSE = 2  # a DEF in the register of the USE with operand index ``arg`` (two-address form)
    SET = 3  # one of the registers ``arg`` (a tuple)


class OperandSpec(NamedTuple):
    """One operand of a signature: role, timing, constraint, and whether it may stay in its spill slot."""

    is_def: bool
    timing: Timing
    constraint: Constraint = Constraint.ANY
    arg: Any = None
    memory: bool = False


def use(*, fixed: int | None = None, among: tuple[int, ...] | None = None, late: bool = False,
        memory: bool = False) -> OperandSpec:
    """A read operand. ``late``: its register outlives the writes. ``memory``: it may be read from its spill slot."""
    timing = Timing.LATE if late else Timing.EARLY
    if fixed is not None:
        return OperandSpec(False, timing, Constraint.FIXED, fixed)
    if among is not None:
        return OperandSpec(False, timing, Constraint.SET, tuple(among), memory)
    return OperandSpec(False, timing, Constraint.ANY, None, memory)


def define(*, fixed: int | None = None, among: tuple[int, ...] | None = None, reuse: int | None = None,
           early: bool = False) -> OperandSpec:
    """A written operand. ``early``: written before all reads are done. ``reuse``: operand index of the tied read."""
    timing = Timing.EARLY if early else Timing.LATE
    if fixed is not None:
        return OperandSpec(True, timing, Constraint.FIXED, fixed)
    if reuse is not None:
        return OperandSpec(True, timing, Constraint.REUSE, reuse)
    if among is not None:
        return OperandSpec(True, timing, Constraint.SET, tuple(among))
    return OperandSpec(True, timing)


USE = use()
DEF = define()


class Signature:
    """The operands and clobbers of an instruction form. Build one per form and share it: it is analysed once.

    ``clobbers`` are destroyed by the instruction; a register that is also a FIXED definition is not a clobber. At
    most one ``memory`` operand of an instruction is left in its slot.
    """

    __slots__ = ("operands", "clobbers", "analysis")

    def __init__(self, operands: tuple[OperandSpec, ...] = (), clobbers: tuple[int, ...] = ()) -> None:
        self.operands, self.clobbers = tuple(operands), tuple(clobbers)
        self.analysis: Any = None  # the allocator's notes for the machine it last ran on

    def __repr__(self) -> str:
        return f"Signature({self.operands!r}, clobbers={self.clobbers!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Signature, (self.operands, self.clobbers)


NO_OPERANDS = Signature()
COPY_SIGNATURE = Signature((DEF, USE))


class Inst:
    """One instruction: ``vregs[i]`` fills operand i of ``signature``. The opcode is the caller's, unread here."""

    __slots__ = ("opcode", "vregs", "signature", "kind", "target")

    def __init__(self, opcode: Any, vregs: tuple[int, ...] = (), signature: Signature = NO_OPERANDS,
                 kind: Kind = Kind.OP, target: Hashable = None) -> None:
        self.opcode, self.vregs, self.signature, self.kind, self.target = opcode, vregs, signature, kind, target

    def __repr__(self) -> str:
        parts = [str(self.opcode)]
        for vreg, spec in zip(self.vregs, self.signature.operands):
            parts.append(f"{'def' if spec.is_def else 'use'} v{vreg}")
        return f"{self.kind.name.lower()} {' '.join(parts)}" + (f" -> {self.target}" if self.target is not None else "")


class VReg(NamedTuple):
    """A virtual register: its class (index into ``MachineEnv.classes``), bytes of its spill slot, and whether it can
    be rematerialised: its only definition reads nothing, so it is emitted again instead of stored and loaded."""

    cls: int
    size: int
    remat: bool = False


@dataclass(frozen=True)
class RegClass:
    """A register file. ``order``: allocatable registers, best first (callee-saved ones last).

    A parallel move with a cycle uses a free register, else ``scratch`` (never allocated), else SWAP edits if
    ``swap``, else a spill slot.
    """

    name: str
    order: tuple[int, ...]
    scratch: int | None = None
    swap: bool = False


@dataclass(frozen=True)
class MachineEnv:
    """The register files of a target. ``max_align`` caps the alignment of spill slots (bytes)."""

    classes: tuple[RegClass, ...]
    callee_saved: frozenset[int] = frozenset()
    max_align: int = 64
    names: dict[int, str] = field(default_factory=dict, hash=False)

    def name(self, preg: int) -> str:
        """The register's name for messages."""
        return self.names.get(preg, f"r{preg}")


@dataclass
class Function:
    """Instructions in layout order and the table of their virtual registers."""

    insts: list[Inst]
    vregs: list[VReg]


@direct
class EditKind(Enum):
    """What an inserted operation does. None of them may change flags."""

    MOVE = "move"  # register dst <- register src
    SPILL = "spill"  # slot dst <- register src
    FILL = "fill"  # register dst <- slot src
    REMAT = "remat"  # register dst <- the defining instruction of ``vreg``; src is dst
    SWAP = "swap"  # registers dst <-> src


class Edit(NamedTuple):
    """One inserted operation; ``vreg`` is the value moved, its size is the width to move."""

    kind: EditKind
    vreg: int
    dst: int
    src: int


class SpillSlot(NamedTuple):
    """Bytes ``[offset, offset + size)`` of the frame."""

    offset: int
    size: int


@dataclass
class Allocation:
    """The answer: a location per operand and the edits to insert.

    ``edits[i]`` stands before instruction i, in order. Before a LABEL that means: on the path that falls into it, not
    on the jumps to it. A COPY whose two locations are equal is to be left out by the emitter.
    """

    locations: list[tuple[int, ...]]
    edits: dict[int, list[Edit]]
    slots: list[SpillSlot]
    frame_size: int
    frame_align: int
    used_callee_saved: tuple[int, ...]

    def count(self, kind: EditKind) -> int:
        """How many edits of one kind were inserted (statically)."""
        return sum(edit.kind is kind for edits in self.edits.values() for edit in edits)
