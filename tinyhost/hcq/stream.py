"""From a queue of commands to bytes: a device's rules make packets, words with known values are written once.

``encode`` rewrites each command of a queue with the encoder's rules into INS "packet", whose sources are words, and
gives a ``Stream``: the bytes of the regions ``commands`` and ``arguments`` with those words left open that are
expressions. ``Stream.link`` gives the regions memory: addresses are known then, so most open words are written, and the
``Linked`` that it returns lists what is left, the words that change from submission to submission. Writing those is
``submit.py``; running the bytes is the device's business.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyhost.errors import CompileError
from tinyhost.hcq.commands import Word, variable, word
from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.words import ALL, Evaluator, Field, field_of
from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp

COMMANDS, ARGUMENTS = "commands", "arguments"
_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}
_MOST_REWRITES = 1000  # of one command: more means rules that never settle


def packet(*words: Word) -> UOp:
    """What a rule makes of a command: words of the encoder's width, in order."""
    return UOp(Ops.INS, tuple([word(x) for x in words]), "packet")


def several(commands: Sequence[UOp]) -> UOp:
    """What a rule returns in place of one command: packets or further commands, in order; none at all is allowed."""
    return UOp(Ops.LINEAR, tuple(commands))


@dataclass(frozen=True)
class Encoder:
    """How a queue's commands become words.

    Attributes:
        lower: rules from commands (INS of ``hcq.commands``) to packets; their ctx is an ``Encoding``.
        word_bits: width of the words of packets, 32 or 64.
        align: bytes to whose multiple the memory of ``commands`` is to be aligned.
        arguments_align: the same for ``arguments``.
    """

    lower: PatternMatcher
    word_bits: int = 32
    align: int = 64
    arguments_align: int = 64

    def begin(self, queue: UOp) -> Encoding:
        """The state of one encoding; a device that counts or remembers returns its own subclass."""
        return Encoding(self, queue)

    def header(self, ctx: Encoding) -> Sequence[Word]:
        """Words in front of the first packet."""
        return ()

    def trailer(self, ctx: Encoding) -> Sequence[Word]:
        """Words behind the last packet."""
        return ()


class Region:
    """Bytes that grow: literals are in ``data``, expressions in ``patches`` as (byte offset, bits, expression)."""

    __slots__ = ("data", "patches")

    def __init__(self) -> None:
        self.data = bytearray()
        self.patches: list[tuple[int, int, UOp]] = []

    def append(self, words: Iterable[Word], bits: int) -> None:
        """Put words of ``bits`` bits at the end. Numbers must fit; of an expression the lower bits are taken.

        Raises:
            ValueError: a number does not fit, or there are no words of that width.
        """
        plain: list[int] = []
        at, step, limit = len(self.data), bits // 8, 1 << bits
        for x in words:
            if isinstance(x, UOp):
                if x.op is not Ops.CONST:
                    self.patches.append((at + len(plain) * step, bits, x))
                    plain.append(0)
                    continue
                x = int(x.arg)
            x &= ALL
            if limit <= x < (1 << 64) - limit // 2:  # neither the number nor its negative has so few bits
                raise ValueError(f"{x:#x} does not fit a word of {bits} bits: split it into low(x) and high(x)")
            plain.append(x % limit)
        if bits not in _FORMATS:
            raise ValueError(f"words have 8, 16, 32 or 64 bits, not {bits}")
        self.data += struct.pack(f"<{len(plain)}{_FORMATS[bits]}", *plain)

    def pad(self, align: int) -> int:
        """Fill with zeros up to a multiple of ``align`` bytes; the size then."""
        self.data += bytes(-len(self.data) % align)
        return len(self.data)


class Encoding:
    """The ctx of an encoder's rules: where words other than the packet's go, and where the packet will stand."""

    def __init__(self, encoder: Encoder, queue: UOp) -> None:
        self.encoder, self.queue = encoder, queue
        self.regions = {COMMANDS: Region(), ARGUMENTS: Region()}

    @property
    def commands_at(self) -> int:
        """Index of the next word of the commands."""
        return len(self.regions[COMMANDS].data) // (self.encoder.word_bits // 8)

    def arguments(self, words: Iterable[Word], bits: int = 64, align: int = 8) -> UOp:
        """Append words to the arguments, at a multiple of ``align`` bytes; their address, known when linked."""
        return self.address(ARGUMENTS, self.place(ARGUMENTS, words, bits, align))

    def place(self, region: str, words: Iterable[Word], bits: int = 64, align: int = 8) -> int:
        """Append words to a region, a new one where the name is new; their offset in bytes."""
        where = self.regions.setdefault(region, Region())
        at = where.pad(max(align, bits // 8))
        where.append(words, bits)
        return at

    def address(self, region: str, offset: int = 0) -> UOp:
        """The address of a byte of a region, known when linked."""
        base = variable(region)
        return base + offset if offset else base


def encode(queue: UOp, encoder: Encoder) -> Stream:
    """The queue (LINEAR of commands) as a stream.

    Raises:
        CompileError: the encoder has no rule for a command, or its rules do not settle.
    """
    ctx = encoder.begin(queue)
    commands, bits = ctx.regions[COMMANDS], encoder.word_bits
    commands.append(encoder.header(ctx), bits)
    for command in queue.src:
        for words in _packets(command, ctx):
            commands.append(words, bits)
    commands.append(encoder.trailer(ctx), bits)
    return Stream(ctx)


def _packets(command: UOp, ctx: Encoding) -> Iterator[tuple[UOp, ...]]:
    """The packets of one command; each is appended before the rules see what comes behind it."""
    rewrite, left, waiting = ctx.encoder.lower.rewrite, _MOST_REWRITES, [command]
    while waiting:
        u = waiting.pop()
        if u.op is Ops.INS and u.arg == "packet":
            yield u.src
        elif u.op is Ops.LINEAR:
            waiting += reversed(u.src)
        else:
            made, left = rewrite(u, ctx), left - 1
            if made is None or left < 0:
                why = "its encoder has no rule for it" if made is None else f"more than {_MOST_REWRITES} rewrites"
                raise CompileError(f"no packets for the command {_name(u)} of queue {ctx.queue.arg}: {why}")
            waiting.append(made)


def _name(u: UOp) -> str:
    return str(u.arg) if u.op is Ops.INS else f"{u.op.name} {u.arg}"


@dataclass(frozen=True, eq=False)
class Patch:
    """A word that is written anew for each submission: element ``index`` of a region seen as ``bits``-bit elements."""

    region: str
    bits: int
    index: int
    word: Field | UOp


class Stream:
    """An encoded queue: regions of bytes by name, none of them in a device's memory yet.

    Attributes:
        encoding: the state it was made with, for what a device counted in it.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding, self.regions, self.encoder = encoding, encoding.regions, encoding.encoder
        self._fields: dict[UOp, Field | None] = {}

    def nbytes(self, region: str) -> int:
        """Size of a region in bytes."""
        return len(self.regions[region].data)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of all words, regions among them, sorted."""
        words = {w for region in self.regions.values() for _, _, w in region.patches}
        return tuple(v.arg.name for v in UOp.sink(*words).variables())

    def link(self, memory: Mapping[str, HostMemory], known: Mapping[str, int] | None = None) -> Linked:
        """Write the regions to ``memory``, one piece for each region that is not empty.

        Args:
            memory: by name of the region. It belongs to the stream until its last submission is done.
            known: values of variables that are the same for all submissions.

        Raises:
            ValueError: a region has no memory, too little, or memory at the wrong multiple of bytes.
        """
        values = dict(known or {}) | {name: m.address for name, m in memory.items()}
        left: list[Patch] = []
        for name, region in self.regions.items():
            if not region.data:
                continue
            self._check(name, memory)
            left += self._write(name, region, memory[name], values)
        return Linked(self, dict(memory), tuple(left))

    def _check(self, name: str, memory: Mapping[str, HostMemory]) -> None:
        need = self.nbytes(name)
        align = self.encoder.align if name == COMMANDS else self.encoder.arguments_align
        if name not in memory or len(memory[name]) < need:
            have = f"{len(memory[name])} bytes" if name in memory else "none"
            raise ValueError(f"the region {name!r} needs {need} bytes of memory, there are {have}")
        if memory[name].address % align:
            raise ValueError(f"the region {name!r} is to lie at a multiple of {align} bytes, not at "
                             f"{memory[name].address:#x}")

    def _write(self, name: str, region: Region, memory: HostMemory, values: Mapping[str, int]) -> Iterator[Patch]:
        """Write what is known of a region; what is not."""
        data, left = bytearray(region.data), []
        for at, bits, expression in region.patches:
            known = self._value(expression, values)
            if isinstance(known, int):
                data[at:at + bits // 8] = (known % (1 << bits)).to_bytes(bits // 8, "little")
            else:
                left.append(Patch(name, bits, at // (bits // 8), known))
        memory.view[:len(data)] = data
        return iter(left)

    def _value(self, expression: UOp, values: Mapping[str, int]) -> int | Field | UOp:
        """The number that an expression is under ``values``, else what is left of it."""
        if expression not in self._fields:
            self._fields[expression] = field_of(expression)
        field = self._fields[expression]
        if field is not None:
            return field.value(values[field.name]) if field.name in values else field
        have = [v for v in expression.variables() if v.arg.name in values]
        if have:
            expression = expression.substitute({v: UOp.cconst(values[v.arg.name], v.dtype) for v in have})
        if expression.variables():
            return field_of(expression) or expression
        return Evaluator([expression])({})[0]


class Linked:
    """A stream in memory, complete but for the words of ``patches``.

    Attributes:
        variables: names whose values each submission brings, sorted.
        memory: of each region.
        attachment: whatever the device that runs it keeps with it.
    """

    def __init__(self, stream: Stream, memory: dict[str, HostMemory], patches: tuple[Patch, ...]) -> None:
        self.attachment: Any = None
        self.stream, self.memory, self.patches = stream, memory, patches
        general = [p.word for p in patches if isinstance(p.word, UOp)]
        names = {p.word.name for p in patches if isinstance(p.word, Field)}
        self.variables = tuple(sorted(names.union(*[[v.arg.name for v in w.variables()] for w in general])))

    def address(self, region: str = COMMANDS) -> int:
        """Where the device finds a region."""
        return self.memory[region].address

    def nbytes(self, region: str = COMMANDS) -> int:
        """Size of a region in bytes."""
        return self.stream.nbytes(region)
