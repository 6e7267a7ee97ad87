"""Random programs for the register allocator.

``random_program(seed)`` gives a function with nested loops, branches, breaks (or jumps to anywhere) and constraints
over a machine with few registers.
"""
from __future__ import annotations

import random

from tinyhost.renderer.isa.regalloc import (
    Constraint,
    Function,
    Inst,
    Kind,
    MachineEnv,
    OperandSpec,
    RegClass,
    Signature,
    Timing,
    VReg,
    define,
    use,
)

SIZES = ((8, 4), (32, 16))  # spill sizes that virtual registers of each class have
DEF_USE = Signature((define(), use()))
TIED = Signature((define(reuse=1), use()))
ONE_USE = Signature((use(memory=True),))
ONE_DEF = Signature((define(),))


def random_env(rnd: random.Random) -> MachineEnv:
    """Two classes of 3 to 8 registers, some callee-saved, each with its own way to break cycles."""
    classes, saved = [], set()
    for number, name in enumerate("gv"):
        count = rnd.choice((3, 3, 4, 5, 8))
        order = list(range(100 * number, 100 * number + count))
        rnd.shuffle(order)
        saved.update(order[rnd.randrange(1, count + 1):])
        scratch = 100 * number + 50 if rnd.random() < 0.2 else None
        classes.append(RegClass(name, tuple(order), scratch=scratch, swap=rnd.random() < 0.5))
    return MachineEnv(tuple(classes), frozenset(saved), max_align=rnd.choice((8, 16, 64)))


class _Writer:
    """Builds one function; ``known`` are the virtual registers defined on every path to the present place."""

    def __init__(self, rnd: random.Random, env: MachineEnv, length: int) -> None:
        self.rnd, self.env, self.budget = rnd, env, length
        self.insts: list[Inst] = []
        self.vregs: list[VReg] = []
        self.known: list[list[int]] = [[], []]
        self.counters: set[int] = set()  # of the loops around; not to be overwritten
        self.labels = 0
        self.exits: list[tuple[str, list[list[list[int]]]]] = []  # labels to break to, states that arrive there

    def structured(self) -> Function:
        """Nested loops and branches; ends always."""
        self.constants(1, 5)
        self.sequence(0)
        self.leave()
        return Function(self.insts, self.vregs)

    def graph(self) -> Function:
        """Blocks that jump anywhere, also into loops; may run forever."""
        rnd = self.rnd
        self.constants(2, 6)
        pool = self.save()
        labels = [self.label() for _ in range(max(2, self.budget // 5))]
        for label in labels:
            self.restore(pool)
            self.place(label)
            for _ in range(rnd.randrange(0, 7)):
                self.straight()
            roll = rnd.random()
            if roll < 0.6:
                self.branch(self.read(rnd.randrange(2)), rnd.randrange(2, 5), rnd.choice(labels))
            elif roll < 0.75:
                self.jump(rnd.choice(labels))
            elif roll < 0.8:
                self.leave()
        self.restore(pool)
        self.leave()
        return Function(self.insts, self.vregs)

    def constants(self, low: int, high: int) -> None:
        for cls in (0, 1):
            for _ in range(self.rnd.randrange(low, high)):
                self.constant(cls, self.rnd.randrange(1000))

    def leave(self) -> None:
        uses = [self.read(cls) for cls in (0, 1)]
        fixed = self.rnd.choice(self.env.classes[0].order)
        signature = Signature((use(fixed=fixed), use(memory=True)))
        self.insts.append(Inst(("ret",), tuple(uses), signature, Kind.RET))

    # virtual registers

    def fresh(self, cls: int, remat: bool = False, size: int | None = None) -> int:
        self.vregs.append(VReg(cls, self.rnd.choice(SIZES[cls]) if size is None else size, remat))
        return len(self.vregs) - 1

    def read(self, cls: int) -> int:
        known = self.known[cls]
        if self.rnd.random() < 0.4:
            return known[-1 - min(len(known) - 1, int(self.rnd.expovariate(0.5)))]
        return self.rnd.choice(known)

    def target(self, cls: int, excluded: set[int], size: int | None = None) -> int:
        """A new virtual register, or an old one to be redefined; of ``size`` if given."""
        if self.rnd.random() < 0.4:
            old = [v for v, vreg in enumerate(self.vregs)
                   if vreg.cls == cls and not vreg.remat and v not in excluded | self.counters
                   and size in (None, vreg.size)]
            if old:
                return self.rnd.choice(old)
        return self.fresh(cls, size=size)

    def now_known(self, v: int) -> None:
        known = self.known[self.vregs[v].cls]
        if v in known:
            known.remove(v)
        known.append(v)

    # straight code

    def constant(self, cls: int, value: int) -> int:
        v = self.fresh(cls, remat=self.rnd.random() < 0.3)
        self.insts.append(Inst(("const", value), (v,), ONE_DEF))
        self.now_known(v)
        return v

    def straight(self) -> None:
        rnd = self.rnd
        kind = rnd.random()
        if kind < 0.12:
            self.constant(rnd.randrange(2), rnd.randrange(1000))
        elif kind < 0.24:
            cls = rnd.randrange(2)
            source = self.read(cls)
            target = self.target(cls, set(), self.vregs[source].size)
            self.insts.append(Inst(("copy",), (target, source), DEF_USE, Kind.COPY))
            self.now_known(target)
        elif kind < 0.32:
            self.insts.append(Inst(("observe", len(self.insts)), (self.read(rnd.randrange(2)),), ONE_USE))
        elif kind < 0.72:
            self.mix(self.plain_signature())
        else:
            self.mix(self.constrained_signature())
        self.budget -= 1

    def mix(self, form: tuple[Signature, tuple[int, ...]]) -> None:
        """An instruction whose results depend on all it reads."""
        signature, classes = form
        vregs = [self.read(cls) if not spec.is_def else -1 for spec, cls in zip(signature.operands, classes)]
        defined: set[int] = set()
        for k, spec in enumerate(signature.operands):
            if spec.is_def:
                tied = vregs[spec.arg] if spec.constraint is Constraint.REUSE else -1
                usable = tied >= 0 and not self.vregs[tied].remat and tied not in defined | self.counters
                if usable and self.rnd.random() < 0.5:
                    vregs[k] = tied  # accumulates in place
                else:
                    vregs[k] = self.target(classes[k], defined)
                defined.add(vregs[k])
        self.insts.append(Inst(("mix", len(self.insts)), tuple(vregs), signature))
        for v in defined:
            self.now_known(v)

    def plain_signature(self) -> tuple[Signature, tuple[int, ...]]:
        rnd = self.rnd
        cls = rnd.randrange(2)
        other = cls if rnd.random() < 0.8 else 1 - cls
        reads = rnd.randrange(1, 3 if len(self.env.classes[cls].order) == 3 else 4)
        specs = [use(memory=rnd.random() < 0.4) for _ in range(reads)]
        classes = [cls] * reads
        if rnd.random() < 0.9:
            tie = rnd.randrange(reads) if rnd.random() < 0.5 else None
            specs.insert(0, define(reuse=None if tie is None else tie + 1))
            classes.insert(0, other if tie is None else cls)
        return Signature(tuple(specs)), tuple(classes)

    def constrained_signature(self) -> tuple[Signature, tuple[int, ...]]:
        """Constraints drawn around one assignment that satisfies them."""
        rnd = self.rnd
        specs: list[OperandSpec] = []
        classes: list[int] = []
        clobbers: list[int] = []
        for cls in (0, 1):
            order = self.env.classes[cls].order
            left = list(order)
            rnd.shuffle(left)
            for _ in range(rnd.randrange(0, min(4, len(order)))):
                self.draw_operand(specs, classes, cls, left)
            if rnd.random() < 0.4:
                clobbers += left[:rnd.randrange(0, len(left) + 1)]
            if rnd.random() < 0.2:  # a read fixed to a register that is clobbered
                clobbers += [spec.arg for spec, c in zip(specs, classes)
                             if c == cls and not spec.is_def and spec.timing is Timing.EARLY
                             and spec.constraint is Constraint.FIXED and rnd.random() < 0.7]
        self.widen_sets(specs, classes, clobbers)
        return Signature(tuple(specs), tuple(clobbers)), tuple(classes)

    def widen_sets(self, specs: list[OperandSpec], classes: list[int], clobbers: list[int]) -> None:
        """Turn some operands into choices among as many registers as the allocator asks for, and a few more."""
        rnd = self.rnd
        taken = {spec.arg for spec in specs if spec.constraint is Constraint.FIXED} | set(clobbers)
        need = sum(spec.constraint is not Constraint.FIXED for spec in specs)
        for k, spec in enumerate(specs):
            order = self.env.classes[classes[k]].order
            roomy = [preg for preg in order if preg not in taken]
            if spec.constraint is Constraint.ANY and len(roomy) >= need and rnd.random() < 0.4:
                among = {*rnd.sample(roomy, need), *rnd.sample(order, rnd.randrange(3))}
                specs[k] = spec._replace(constraint=Constraint.SET, arg=tuple(sorted(among)))

    def draw_operand(self, specs: list[OperandSpec], classes: list[int], cls: int, left: list[int]) -> None:
        """Append an operand whose register in the satisfying assignment is taken from ``left``."""
        rnd = self.rnd
        place = left.pop()
        fixed = place if rnd.random() < 0.4 else None
        ties = [j for j, spec in enumerate(specs)
                if not spec.is_def and spec.timing is Timing.EARLY and classes[j] == cls
                and not any(other.constraint is Constraint.REUSE and other.arg == j for other in specs)]
        classes.append(cls)
        if rnd.random() < 0.6:
            specs.append(use(fixed=fixed, late=rnd.random() < 0.2, memory=rnd.random() < 0.3))
        elif fixed is None and ties and rnd.random() < 0.5:
            specs.append(define(reuse=rnd.choice(ties)))
        else:
            specs.append(define(fixed=fixed, early=rnd.random() < 0.2))

    # control flow

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def place(self, label: str) -> None:
        self.insts.append(Inst("label", kind=Kind.LABEL, target=label))

    def jump(self, label: str) -> None:
        self.insts.append(Inst("jump", kind=Kind.JUMP, target=label))

    def branch(self, v: int, modulus: int, label: str) -> None:
        """To ``label`` if v is not divisible by ``modulus``."""
        self.insts.append(Inst(("test", modulus), (v,), ONE_USE))
        self.insts.append(Inst("branch", kind=Kind.BRANCH, target=label))

    def save(self) -> list[list[int]]:
        return [list(known) for known in self.known]

    def restore(self, *states: list[list[int]]) -> None:
        """Go on with what is known in all ``states``."""
        first = states[0]
        self.known = [[v for v in first[cls] if all(v in state[cls] for state in states)] for cls in (0, 1)]

    def sequence(self, depth: int) -> None:
        for _ in range(self.rnd.randrange(2, 9)):
            if self.budget <= 0:
                return
            roll = self.rnd.random()
            if depth >= 3 or roll < 0.7:
                self.straight()
            elif roll < 0.78:
                self.if_then(depth)
            elif roll < 0.84:
                self.if_else(depth)
            elif roll < 0.87 and self.exits:
                self.break_out()
            else:
                self.loop(depth)
        if depth == 0 and self.budget > 0:
            self.sequence(0)

    def if_then(self, depth: int) -> None:
        end = self.label()
        self.branch(self.read(self.rnd.randrange(2)), self.rnd.randrange(2, 4), end)
        before = self.save()
        self.sequence(depth + 1)
        self.place(end)
        self.restore(self.save(), before)

    def if_else(self, depth: int) -> None:
        other, end = self.label(), self.label()
        self.branch(self.read(self.rnd.randrange(2)), self.rnd.randrange(2, 4), other)
        before = self.save()
        self.sequence(depth + 1)
        self.jump(end)
        after = self.save()
        self.place(other)
        self.restore(before)
        self.sequence(depth + 1)
        self.place(end)
        self.restore(self.save(), after)

    def break_out(self) -> None:
        label, states = self.rnd.choice(self.exits)
        self.branch(self.read(self.rnd.randrange(2)), 5, label)
        states.append(self.save())

    def loop(self, depth: int) -> None:
        rnd = self.rnd
        cls = rnd.randrange(2)
        counter = self.fresh(cls)
        count = rnd.randrange(0, 4)
        self.insts.append(Inst(("const", count), (counter,), ONE_DEF))
        self.now_known(counter)
        self.counters = self.counters | {counter}
        head, test, leave = self.label(), self.label(), self.label()
        states: list[list[list[int]]] = []
        self.exits.append((leave, states))
        form = rnd.randrange(3)
        before = self.save()
        if form == 0:  # tested at the top
            self.place(head)
            self.branch(counter, 1 << 60, test)
            self.jump(leave)
            self.place(test)
            states.append(before)
        elif form == 1:  # rotated: entered at the test
            self.jump(test)
            self.place(head)
        else:  # tested at the end; runs at least once
            self.place(head)
        self.sequence(depth + 1)
        self.step(counter)
        if form == 0:
            self.jump(head)
        else:
            if form == 1:
                self.place(test)
                self.restore(self.save(), before)
            self.branch(counter, 1 << 60, head)
            states.append(self.save())
        self.place(leave)
        self.exits.pop()
        self.restore(*states)
        self.counters = self.counters - {counter}

    def step(self, counter: int) -> None:
        signature = self.rnd.choice((DEF_USE, TIED))
        self.insts.append(Inst(("decrement",), (counter, counter), signature))


def random_program(seed: int, length: int = 40) -> tuple[Function, MachineEnv]:
    """The function and machine of ``seed``; every fourth has arbitrary instead of structured control flow."""
    rnd = random.Random(seed)
    env = random_env(rnd)
    writer = _Writer(rnd, env, length)
    return (writer.graph() if seed % 4 == 3 else writer.structured()), env
