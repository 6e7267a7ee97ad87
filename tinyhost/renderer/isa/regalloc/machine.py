"""The allocator's view of a target: dense register numbers, bit masks, and one analysis per signature.

Registers are renumbered by preference, so that the lowest set bit of a mask of free registers is the best one. All
sets of registers inside the allocator are ints used as bit sets over these numbers. A signature is analysed on first
sight and keeps its ``Plan``; everything an instruction form always needs is precomputed there.
"""
from __future__ import annotations

from functools import lru_cache

from tinyhost.renderer.isa.regalloc.types import (
    AllocationError,
    Constraint,
    Inst,
    MachineEnv,
    Signature,
    Timing,
)


class Machine:
    """Dense numbering of the registers of ``env``: the allocatable ones, then the scratch registers."""

    __slots__ = ("env", "pregs", "index", "class_masks", "class_regs", "all_mask", "callee_saved", "scratch")

    def __init__(self, env: MachineEnv) -> None:
        self.env = env
        self.pregs: list[int] = [preg for cls in env.classes for preg in cls.order]
        self.index: dict[int, int] = {preg: number for number, preg in enumerate(self.pregs)}
        if len(self.index) != len(self.pregs):
            twice = sorted(env.name(preg) for preg in self.index if self.pregs.count(preg) > 1)
            raise AllocationError(f"registers {', '.join(twice)} stand in more than one class or twice in an order")
        self.class_regs: list[list[int]] = []
        for cls in env.classes:
            self.class_regs.append([self.index[preg] for preg in cls.order])
            if cls.scratch is not None and cls.scratch in self.index:
                raise AllocationError(f"scratch register {env.name(cls.scratch)} of class {cls.name} is allocatable")
        self.class_masks: list[int] = [sum(1 << r for r in regs) for regs in self.class_regs]
        self.all_mask: int = (1 << len(self.pregs)) - 1
        self.scratch: list[int] = []  # per class: number of its scratch register, behind the allocatable ones, or -1
        for cls in env.classes:
            self.scratch.append(-1 if cls.scratch is None else len(self.pregs))
            if cls.scratch is not None:
                self.pregs.append(cls.scratch)
        self.callee_saved: int = sum(1 << r for r, preg in enumerate(self.pregs) if preg in env.callee_saved)

    def mask(self, pregs: frozenset[int] | tuple[int, ...]) -> int:
        """Bit set of those of ``pregs`` that are allocatable."""
        return sum(1 << self.index[preg] for preg in set(pregs) if preg in self.index)

    def name(self, r: int) -> str:
        """Name of the register with dense number ``r``."""
        return self.env.name(self.pregs[r])


@lru_cache(maxsize=16)
def machine_of(env: MachineEnv) -> Machine:
    """The compiled form of ``env``, cached."""
    return Machine(env)


class Plan:
    """What a signature asks, in dense numbers and masks.

    ``plain``: early uses anywhere, at most one late definition anywhere or tied, no clobbers: the fast path. ``tie``:
    the tied definition and use of a plain signature. ``early_mask``: registers of FIXED uses. ``late_mask``: clobbers,
    FIXED definitions, and FIXED uses that a definition reuses, where no value may outlive the instruction.
    """

    __slots__ = ("machine", "arity", "uses", "uses_reversed", "defs", "tied", "tied_defs", "memory", "plain", "fixed",
                 "sets", "early_mask", "late_mask", "clobber_mask", "early_def_mask", "early_defs", "late_uses",
                 "careful", "tie")

    def __init__(self, signature: Signature, machine: Machine) -> None:
        specs = signature.operands
        self.machine = machine
        self.arity = len(specs)
        self.uses = tuple(k for k, spec in enumerate(specs) if not spec.is_def)
        self.uses_reversed = self.uses[::-1]
        self.defs = tuple(k for k, spec in enumerate(specs) if spec.is_def)
        self.tied: dict[int, int] = {k: spec.arg for k, spec in enumerate(specs)
                                     if spec.constraint is Constraint.REUSE}  # definition -> use
        self.tied_defs: dict[int, int] = {j: k for k, j in self.tied.items()}  # use -> definition
        self.memory = tuple(spec.memory and k not in self.tied_defs for k, spec in enumerate(specs))
        self.fixed: dict[int, int] = {}
        self.sets: dict[int, int] = {}
        for k, spec in enumerate(specs):
            if spec.constraint is Constraint.FIXED:
                self.fixed[k] = self._fixed(machine, signature, k)
            elif spec.constraint is Constraint.SET:
                self.sets[k] = self._allowed(machine, signature, k)
        self.late_uses = frozenset(k for k in self.uses if specs[k].timing is Timing.LATE)
        self.early_defs = tuple(k for k in self.defs if specs[k].timing is Timing.EARLY)
        self._masks(signature)
        self._validate(signature)
        constrained = self.fixed or self.sets or self.late_uses or self.early_defs or self.clobber_mask
        self.plain = not constrained and len(self.defs) < 2
        self.tie: tuple[int, int] | None = next(iter(self.tied.items())) if self.plain and self.tied else None
        self.careful = not self.plain or bool(self.tied)  # operands depend on each other or on registers

    def _masks(self, signature: Signature) -> None:
        fixed_defs = sum(1 << self.fixed[k] for k in self.defs if k in self.fixed)
        tied_fixed = sum(1 << self.fixed[j] for j in self.tied_defs if j in self.fixed)
        if fixed_defs & tied_fixed:
            raise AllocationError("a definition is fixed to the register that another definition reuses")
        self.late_mask = self.machine.mask(signature.clobbers) | fixed_defs | tied_fixed
        self.clobber_mask = self.late_mask & ~fixed_defs & ~tied_fixed
        self.early_mask = sum(1 << r for r in {self.fixed[k] for k in self.uses if k in self.fixed})
        self.early_def_mask = sum(1 << self.fixed[k] for k in self.early_defs if k in self.fixed)

    @staticmethod
    def _fixed(machine: Machine, signature: Signature, k: int) -> int:
        preg = signature.operands[k].arg
        if preg not in machine.index:
            raise AllocationError(f"operand {k} is fixed to {machine.env.name(preg)}, which no class allocates; "
                                  f"give a register from some RegClass.order")
        return machine.index[preg]

    @staticmethod
    def _allowed(machine: Machine, signature: Signature, k: int) -> int:
        allowed = machine.mask(signature.operands[k].arg)
        if not allowed:
            names = ", ".join(machine.env.name(preg) for preg in signature.operands[k].arg)
            raise AllocationError(f"operand {k} may be in {{{names}}} only, none of which is allocatable")
        return allowed

    def _validate(self, signature: Signature) -> None:
        for k, j in self.tied.items():
            if j not in self.uses:
                raise AllocationError(f"operand {k} reuses operand {j}, which is not a read operand "
                                      f"(the signature has {self.arity} operands)")
        if len(self.tied_defs) != len(self.tied):
            raise AllocationError("two definitions reuse the same read operand; each needs its own")
        for k in self.late_uses & self.tied_defs.keys():
            raise AllocationError(f"operand {k} is read late, but definition {self.tied_defs[k]} reuses its register")
        if self.early_mask & self.early_def_mask:
            raise AllocationError("a read operand is fixed to the register of an early definition")
        for k in self.late_uses & self.fixed.keys():
            if 1 << self.fixed[k] & self.late_mask:
                raise AllocationError(f"operand {k} is read late in {self.machine.name(self.fixed[k])}, which the "
                                      f"instruction writes or clobbers")
        for k, allowed in self.sets.items():
            left = allowed & ~self.late_mask & ~(self.early_mask if k in self.uses or k in self.early_defs else 0)
            if left.bit_count() < self.arity - len(self.fixed):
                raise AllocationError(f"operand {k} may be in {left.bit_count()} registers that no FIXED operand or "
                                      f"clobber takes, fewer than the {self.arity - len(self.fixed)} operands without "
                                      f"a FIXED register: make the set wider, or the operand FIXED")
        for role, operands in (("read", self.uses), ("written", self.defs)):
            fixed = [self.fixed[k] for k in operands if k in self.fixed]
            if len(set(fixed)) != len(fixed):
                names = ", ".join(self.machine.name(r) for r in fixed)
                raise AllocationError(f"two {role} operands are fixed to one register ({names})")


def plan_of(inst: Inst, machine: Machine) -> Plan:
    """The analysis of the instruction's signature on ``machine``, kept on the signature."""
    signature = inst.signature
    plan: Plan | None = signature.analysis
    if plan is None or plan.machine is not machine:
        plan = signature.analysis = Plan(signature, machine)
    return plan
