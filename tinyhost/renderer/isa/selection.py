"""The state of instruction selection for one program.

Takes the linear program; rules of a target append instructions through it. An instruction is a UOp INS whose arg is
(opcode, dtype) or (opcode, dtype, lanes) and whose tag is the virtual register it defines, an int. A register may be
defined by several instructions (loop counters, accumulators): it is then a *variable*, read through a node with that
tag.

Instructions stand in segments. A loop opens two: its preheader, which hoisted code may still join while the loop is
open, and its body. So every list only grows at its end, and what is emitted at depth d dominates all that follows at d
or deeper. ``pure`` shares equal instructions within that dominance; ``emit`` never does. Nothing here knows a target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import Ops
from tinyhost.uop import UOp

Rule = Callable[["Selection", UOp], "UOp | None"]


class Pending:
    """A load put off: its memory operand, and (called) the load itself."""

    __slots__ = ("sel", "node", "memory", "make")

    def __init__(self, sel: "Selection", node: UOp, memory: tuple[UOp, ...], make: Callable[[], UOp]) -> None:
        self.sel, self.node, self.memory, self.make = sel, node, memory, make

    def __call__(self) -> UOp:
        value = self.sel.values[self.node] = self.make()
        return value


class Induction:
    """Multiples of a loop counter that the loop counts itself.

    Attributes:
        preheader: where they start. first: number of the loop's first segment. steps: register of each multiple.
    """

    __slots__ = ("preheader", "first", "steps")

    def __init__(self, preheader: list[UOp], first: int) -> None:
        self.preheader, self.first = preheader, first
        self.steps: dict[int, UOp] = {}


class Selection:
    """Values, segments and scopes of one program.

    Attributes:
        values: the instruction that holds each selected node.
        uses: how many nodes of the program read a node. spread: whether all readers of a scalar load are vectors.
        depth: number of open loops. depth_of: depth at which an instruction was emitted.
        flags: the instruction whose flags are current, None when unknown.
        pending: loads that were put off. skipped: nodes that get no value of their own.
        found: what a target noted about a node before selection.
        variables: the variable of each register of the IR. in_registers: the buffers that are only variables.
        loops: what END must know of its RANGE. innermost: RANGEs without another loop inside.
        carried: registers that loops change, read by the next iteration.
        frame: offset of each buffer that lies in the stack frame. frame_bytes: their size.
        arguments: place of each parameter in the call. streamed: storages that some store writes past the caches.
        inductions: by the register of its counter, what a loop counts beside it.
        level: what the rules must know of the target's instructions.
    """

    def __init__(self, rules: dict[Ops, Rule], level: Any = None) -> None:
        self.rules, self.level = rules, level
        self.values: dict[UOp, UOp] = {}
        self.uses: dict[UOp, int] = {}
        self.spread: dict[UOp, bool] = {}
        self.segments: list[list[UOp]] = [[]]
        self.out = self.segments[0]
        self.depth = 0
        self.scopes: list[dict[Any, UOp]] = [{}]
        self.preheaders: list[list[UOp]] = []
        self.made: list[list[UOp]] = []  # per open loop, nodes that got a value without being in the program
        self.depth_of: dict[UOp, int] = {}
        self.flags: UOp | None = None
        self.serial = 0
        self.pending: dict[UOp, Pending] = {}
        self.skipped: set[UOp] = set()
        self.found: dict[UOp, Any] = {}
        self.variables: dict[Any, UOp] = {}
        self.in_registers: set[UOp] = set()
        self.loops: dict[UOp, Any] = {}
        self.innermost: set[UOp] = set()
        self.inductions: dict[int, Induction] = {}
        self.carried: set[int] = set()
        self.frame: dict[UOp, int] = {}
        self.frame_bytes = 0
        self.arguments: dict[UOp, int] = {}
        self.streamed: set[UOp] = set()

    # *** emission ***
    def new_tag(self) -> int:
        """A fresh virtual register."""
        self.serial += 1
        return self.serial

    def emit(self, op: Any, dtype: DType, src: tuple[UOp, ...], lanes: int = 1, tag: int | None = None) -> UOp:
        """Append an instruction with a result of its own, or one that defines variable ``tag``."""
        if tag is None:
            self.serial += 1
            tag = self.serial
        node = UOp(Ops.INS, src, (op, dtype) if lanes == 1 else (op, dtype, lanes), tag)
        self.out.append(node)
        self.depth_of[node] = self.depth
        if op.writes_flags:
            self.flags = node
        return node

    def effect(self, op: Any, src: tuple[UOp, ...], lanes: int = 1) -> UOp:
        """Append an instruction that writes memory or control flow."""
        self.flush()
        return self.emit(op, dtypes.void, src, lanes)

    def pure(self, op: Any, dtype: DType, src: tuple[UOp, ...], lanes: int = 1, hoist: bool = True) -> UOp:
        """An instruction that depends on nothing but ``src``, shared with an equal one that dominates this point.

        With ``hoist`` it goes to the preheader of the outermost loop in which its sources are still fixed.
        """
        key = (op, dtype, lanes, src)
        for scope in self.scopes:
            if (node := scope.get(key)) is not None:
                return node
        depth = self.depth
        if hoist and depth:
            depth_of = self.depth_of
            depth = max([depth_of.get(s, 0) for s in src], default=0)
        return self._place(key, op, dtype, src, lanes, depth)

    def _place(self, key: Any, op: Any, dtype: DType, src: tuple[UOp, ...], lanes: int, depth: int) -> UOp:
        if depth == self.depth:
            node = self.emit(op, dtype, src, lanes)
        else:
            self.serial += 1
            node = UOp(Ops.INS, src, (op, dtype) if lanes == 1 else (op, dtype, lanes), self.serial)
            self.preheaders[depth].append(node)
            self.depth_of[node] = depth
        self.scopes[depth][key] = node
        return node

    def remember(self, key: Any, node: UOp) -> UOp:
        """Share ``node`` under ``key`` while the current loop is open."""
        self.scopes[self.depth_of.get(node, 0)][key] = node
        return node

    def recall(self, key: Any) -> UOp | None:
        """What ``remember`` noted, if it dominates this point."""
        for scope in self.scopes:
            if (node := scope.get(key)) is not None:
                return node
        return None

    def alias(self, op: Any, node: UOp, dtype: DType, lanes: int = 1) -> UOp:
        """The register of ``node`` seen as another type; ``op`` is the target's opcode for that, never emitted."""
        out = UOp(Ops.INS, (node,), (op, dtype) if lanes == 1 else (op, dtype, lanes), node.tag)
        self.depth_of[out] = self.depth_of.get(node, 0)
        return out

    # *** loops ***
    def open_loop(self) -> None:
        """Start a loop: code emitted from here on is its body (guard and label included)."""
        self.flush()
        preheader: list[UOp] = []
        self.segments.append(preheader)
        self.preheaders.append(preheader)
        self._new_segment()
        self.depth += 1
        self.scopes.append({})
        self.made.append([])

    def close_loop(self) -> None:
        """End the innermost loop."""
        self.flush()
        self.depth -= 1
        self.scopes.pop()
        for u in self.made.pop():
            self.values.pop(u, None)  # the registers of a loop's body end with it
        self.preheaders.pop()
        self._new_segment()

    def _new_segment(self) -> None:
        self.out = []
        self.segments.append(self.out)
        self.flags = None

    def reads(self, tag: int, first: int) -> bool:
        """Whether an instruction from segment ``first`` on reads register ``tag``."""
        return any(s.tag == tag for segment in self.segments[first:] for node in segment for s in node.src)

    # *** values ***
    def value(self, u: UOp) -> UOp:
        """The instruction that holds ``u``, selecting what was made after linearisation."""
        node = self.values.get(u)
        if node is not None:
            return node
        load = self.pending.pop(u, None)
        return self.select(u) if load is None else load()

    def select(self, root: UOp) -> UOp:
        """Select ``root`` and whatever below it has no value yet."""
        stack = [root]
        values, pending, skipped = self.values, self.pending, self.skipped
        done: set[UOp] = set()  # places, literals and the like never get a value
        while stack:
            u = stack[-1]
            missing = [
                s
                for s in u.src
                if s not in values and s not in done and s not in pending and s not in skipped and not s.is_const
            ]
            if missing:
                stack += missing
                continue
            stack.pop()
            if u not in values and u not in done:
                done.add(u)
                self.visit(u)
                if self.made and u in values:
                    self.made[-1].append(u)
        return self.value(root) if root in pending else values[root]

    def visit(self, u: UOp) -> None:
        """Apply the rule of one node."""
        rule = self.rules.get(u.op)
        if rule is None:
            raise CompileError(
                f"no instructions for {u.op} of {u.dtype}: the kernel holds {u!r}; "
                "an earlier pass must turn it into ops that the renderer lists"
            )
        node = rule(self, u)
        if node is not None:
            self.values[u] = node

    def count_uses(self, uops: list[UOp]) -> None:
        """Note how many operands each node is; filling a vector with one scalar reads it once."""
        uses, spread = self.uses, self.spread
        for u in uops:
            src = u.src
            if u.op is Ops.STACK and len(set(src)) == 1:
                src = src[:1]
            for s in src:
                uses[s] = uses.get(s, 0) + 1
                if s.op is Ops.LOAD and not s.shape:
                    spread[s] = spread.get(s, True) and bool(u._shape)

    def run(self, uops: list[UOp]) -> list[UOp]:
        """Select a whole program; gives the instructions in order."""
        skipped = self.skipped
        for u in uops:
            if u not in skipped:
                self.visit(u)
        self.flush()
        return [node for segment in self.segments for node in segment]

    # *** loads that wait for their consumer ***
    def defer(self, u: UOp, memory: tuple[UOp, ...], make: Callable[[], UOp]) -> None:
        """Put off the load ``u`` until its only reader comes, which may take ``memory`` as its operand instead."""
        self.pending[u] = Pending(self, u, memory, make)

    def flush(self) -> None:
        """Emit all loads put off: memory or control flow is about to change."""
        if self.pending:
            for load in list(self.pending.values()):
                load()
            self.pending.clear()
