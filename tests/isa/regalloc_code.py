"""A small machine and a short way to write functions for it, shared by the allocator's tests."""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    DEF,
    USE,
    Allocation,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    VReg,
    define,
    run,
    use,
)

RAX, RCX, RDX, RBX = 0, 1, 2, 3
V0 = 16
NAMES = {RAX: "rax", RCX: "rcx", RDX: "rdx", RBX: "rbx"}
ENV = MachineEnv((RegClass("gpr", (RAX, RCX, RDX, RBX), swap=True), RegClass("vec", tuple(range(V0, V0 + 4)))),
                 callee_saved=frozenset({RBX}), max_align=16, names=NAMES)
MAKE = Signature((DEF,))
ADD = Signature((DEF, USE, USE))
ADD_TIED = Signature((define(reuse=1), USE, USE))
ADD_MEMORY = Signature((DEF, USE, use(memory=True)))
SINK = Signature((USE,))


class Code:
    """A short way to write functions: virtual registers by class, instructions by name."""

    def __init__(self, env: MachineEnv = ENV) -> None:
        self.env = env
        self.insts: list[Inst] = []
        self.vregs: list[VReg] = []

    def value(self, cls: int = 0, size: int = 8, remat: bool = False) -> int:
        self.vregs.append(VReg(cls, size, remat))
        return len(self.vregs) - 1

    def op(self, name: str, signature: Signature, *vregs: int) -> None:
        self.insts.append(Inst(name, vregs, signature))

    def make(self, cls: int = 0, size: int = 8, remat: bool = False) -> int:
        v = self.value(cls, size, remat)
        self.op("make", MAKE, v)
        return v

    def add(self, a: int, b: int, signature: Signature = ADD) -> int:
        v = self.value(self.vregs[a].cls, self.vregs[a].size)
        self.op("add", signature, v, a, b)
        return v

    def copy(self, source: int) -> int:
        v = self.value(self.vregs[source].cls, self.vregs[source].size)
        self.insts.append(Inst("copy", (v, source), COPY_SIGNATURE, Kind.COPY))
        return v

    def sink(self, *vregs: int) -> None:
        for v in vregs:
            self.op("sink", SINK, v)

    def label(self, name: str) -> None:
        self.insts.append(Inst("label", kind=Kind.LABEL, target=name))

    def branch(self, name: str) -> None:
        self.insts.append(Inst("branch", kind=Kind.BRANCH, target=name))

    def jump(self, name: str) -> None:
        self.insts.append(Inst("jump", kind=Kind.JUMP, target=name))

    def run(self) -> Allocation:
        return run(Function(self.insts, self.vregs), self.env, checked=True)

    def edits_by_depth(self, allocation: Allocation) -> dict[tuple[int, str], int]:
        """Counts of edits by loop depth (loops end with a backward BRANCH) and kind."""
        labels = {inst.target: i for i, inst in enumerate(self.insts) if inst.kind is Kind.LABEL}
        counts: dict[tuple[int, str], int] = {}
        for i, edits in allocation.edits.items():
            depth = sum(labels[inst.target] < i <= end for end, inst in enumerate(self.insts)
                        if inst.kind is Kind.BRANCH and labels[inst.target] < end)
            for edit in edits:
                counts[depth, edit.kind.value] = counts.get((depth, edit.kind.value), 0) + 1
        return counts


def no_edits(allocation: Allocation) -> bool:
    return not any(allocation.edits.values())
