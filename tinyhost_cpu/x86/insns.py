"""The instruction table as objects: mnemonics, their forms, and what each operand is.

Takes the text of the ``table_*`` modules; gives ``X86Ops`` (one ``X86Op`` per mnemonic) and, per mnemonic, its
``Form``s: operand kinds, which operand goes where in the encoding, what is read and written. A line of the table is
parsed when its mnemonic is first used, so start-up pays for no instruction that a program does not contain.
Encoding a form is ``encode``, printing it is ``printer``; neither keeps facts of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinyhost.ops import Ops
from tinyhost_cpu.x86 import table_float, table_general, table_integer

# Operand kinds: one bit each, so that "r/m32" is R32 | MEM and a fit is one AND.
R8, R16, R32, R64, XMM, YMM, ZMM, MASK = (1 << i for i in range(8))
MEM, VMEM_X, VMEM_Y = 1 << 8, 1 << 9, 1 << 10  # memory; memory with a vector index of 128 or 256 bits
IMM8, IMM16, IMM32, IMM64 = (1 << i for i in range(11, 15))
REL8, REL32, IMPLICIT = 1 << 15, 1 << 16, 1 << 17
GPR_KINDS, VEC_KINDS, IMM_KINDS = R8 | R16 | R32 | R64, XMM | YMM | ZMM, IMM8 | IMM16 | IMM32 | IMM64
KIND_BITS = {R8: 8, R16: 16, R32: 32, R64: 64, XMM: 128, YMM: 256, ZMM: 512}

_WORD_KIND = {
    "r8": R8,
    "r16": R16,
    "r32": R32,
    "r64": R64,
    "xmm": XMM,
    "ymm": YMM,
    "zmm": ZMM,
    "k": MASK,
    "imm8": IMM8,
    "imm16": IMM16,
    "imm32": IMM32,
    "imm64": IMM64,
    "rel8": REL8,
    "rel32": REL32,
    "vm32x": VMEM_X,
    "vm64x": VMEM_X,
    "vm32y": VMEM_Y,
    "vm64y": VMEM_Y,
}
_IMPLICIT_REG = {"<eax>": 0, "<rax>": 0, "<cl>": 1, "<edx>": 2, "<rdx>": 2}
_IMM_BYTES = {"ib": 1, "iw": 2, "id": 4, "io": 8, "cb": 1, "cd": 4}
_PREFIX = {"66": 1, "F3": 2, "F2": 3}


class FormError(ValueError):
    """No form of the mnemonic takes these operands, or an operand does not fit its field."""


class Operand:
    """One operand of a form: the ``kinds`` it takes, ``access`` ("R", "W" or "X"), memory size, implied register."""

    __slots__ = ("access", "kinds", "bits", "fixed", "text")

    def __init__(self, text: str) -> None:
        self.access, _, word = text.rpartition(":")
        self.access = self.access or "R"
        self.text = word
        self.bits, self.kinds, self.fixed = 0, 0, -1
        if word[0] == "<":
            self.kinds, self.fixed = IMPLICIT, _IMPLICIT_REG[word]
            return
        for part in ("r" + word[3:], "m" + word[3:]) if word.startswith("r/m") else word.split("/"):
            if part[0] == "m":
                self.kinds |= MEM
                self.bits = int(part[1:] or 0)
            else:
                # the digit after xmm, ymm, zmm and k only numbers the operand in the manual
                self.kinds |= _WORD_KIND[part if part[0] in "riv" else part.rstrip("0123456789")]
                self.bits = self.bits or KIND_BITS.get(self.kinds, 0)


class Form:
    """One line of the table.

    ``r, m, v, i, s`` are the positions among the explicit operands of ModRM.reg, ModRM.rm, VEX.vvvv, the immediate and
    the register in imm[7:4]; -1 where there is none. ``o`` is the register added to the opcode byte.
    """

    __slots__ = (
        "op",
        "operands",
        "explicit",
        "implicit",
        "vex",
        "pp",
        "map",
        "w",
        "length",
        "opcode",
        "ext",
        "imm_bytes",
        "r",
        "m",
        "v",
        "i",
        "s",
        "o",
        "byte",
        "line",
        "encoder",
        "tied",
        "has_def",
    )

    def __init__(self, op: "X86Op", line: str) -> None:
        _, operands, roles, encoding = (part.strip() for part in line.split("|"))
        self.op, self.line = op, line
        self.operands = tuple(Operand(t.strip()) for t in operands.split(",")) if operands else ()
        self.explicit = tuple(o for o in self.operands if o.fixed < 0)
        self.implicit = tuple(o for o in self.operands if o.fixed >= 0)
        self._parse_roles(roles, "/is4" in encoding)
        self.vex = encoding.startswith("VEX")
        self._parse_vex(encoding.split()) if self.vex else self._parse_legacy(encoding.split())
        self.byte = any(o.kinds & R8 for o in self.explicit)
        first = self.operands[0] if self.operands else None
        # a written operand that can only be memory is no definition
        self.has_def = first is not None and first.access != "R" and first.kinds & ~MEM != 0
        self.tied = self.has_def and first is not None and first.access == "X"
        self.encoder: Callable[["Form", Sequence[Any]], bytes] | None = None

    def _parse_roles(self, roles: str, is4: bool) -> None:
        self.r = self.m = self.v = self.i = self.s = self.o = -1
        if roles == "ZO":
            return
        for position, role in enumerate(roles):
            if role == "R" and is4 and position == len(roles) - 1:
                role = "S"
            setattr(self, {"D": "i"}.get(role, role.lower()), position)

    def _parse_tail(self, words: list[str]) -> None:
        """Opcode byte, /digit and immediate size from ``58 /r ib``."""
        self.ext, self.imm_bytes = 0, 0
        code, _, plus = words[0].partition("+")
        self.opcode = int(code, 16)
        for word in words[1:]:
            if word in _IMM_BYTES:
                self.imm_bytes = _IMM_BYTES[word]
            elif word[0] == "/" and word[1:].isdigit():
                self.ext = int(word[1:])

    def _parse_vex(self, words: list[str]) -> None:
        fields = words[0].split(".")
        self.pp = next((_PREFIX[f] for f in fields if f in _PREFIX), 0)
        self.map = next({"0F": 1, "0F38": 2, "0F3A": 3}[f] for f in fields if f.startswith("0F"))
        self.w = int("W1" in fields)
        self.length = int("256" in fields)
        self._parse_tail(words[1:])

    def _parse_legacy(self, words: list[str]) -> None:
        self.w, self.length, self.map = 0, 0, 0
        self.pp = int(any(o.kinds & R16 for o in self.explicit[:1]))
        if words[0] == "REX.W":
            self.w, words = 1, words[2:]
        if words[0] == "NP":
            words = words[1:]
        if words[0] == "0F" and len(words) > 1:
            self.map, words = 1, words[1:]
        # "0F AE F0": the byte that stands where ModRM would is part of the opcode
        self._parse_tail(words)
        if len(words) == 2 and re.fullmatch("[0-9A-F]{2}", words[1]):
            self.opcode = self.opcode << 8 | int(words[1], 16)

    def fits(self, kinds: Sequence[int]) -> bool:
        """Whether operands of ``kinds`` (memory: ``MEM | bits << 20``) are what this form takes."""
        if len(kinds) != len(self.explicit):
            return False
        for have, want in zip(kinds, self.explicit):
            if not have & want.kinds:
                return False
            if have >> 20 and want.bits and have >> 20 != want.bits:
                return False
        return True

    def __repr__(self) -> str:
        return f"Form({' '.join(self.line.split())})"


class X86Op:
    """One mnemonic.

    Attributes:
        name: the mnemonic. number: place in the table, continuing ``Ops``.
        entry: volume and title in the manual. latency: latency class.
        reads_flags, writes_flags: effect on the flags. implicit_results: whether it defines two fixed registers.
    """

    __slots__ = (
        "name",
        "number",
        "entry",
        "latency",
        "reads_flags",
        "writes_flags",
        "implicit_results",
        "_lines",
        "_forms",
        "_found",
    )

    def __init__(
        self, name: str, number: int, lines: Sequence[str], entry: str = "", latency: str = "", flags: str = ""
    ) -> None:
        self.name, self.number, self.entry, self.latency = name, number, entry, latency
        self.reads_flags, self.writes_flags = "r" in flags, "w" in flags
        self.implicit_results = name in ("IDIV", "DIV")
        self._lines = lines
        self._forms: tuple[Form, ...] = ()
        self._found: dict[tuple[int, ...], Form] = {}

    @property
    def forms(self) -> tuple[Form, ...]:
        """All forms, in the order of the table."""
        if not self._forms and self._lines:
            self._forms = tuple(Form(self, line) for line in self._lines)
        return self._forms

    def form(self, kinds: tuple[int, ...]) -> Form:
        """The first form that takes operands of ``kinds``.

        Raises:
            FormError: there is none.
        """
        found = self._found.get(kinds)
        if found is None:
            found = next((f for f in self.forms if f.fits(kinds)), None)
            if found is None:
                forms = "\n  ".join(" ".join(line.split()) for line in self._lines)
                raise FormError(f"no form of {self.name} takes ({', '.join(map(kind_name, kinds))}); it has\n  {forms}")
            self._found[kinds] = found
        return found

    def __repr__(self) -> str:
        return f"X86Ops.{self.name}"

    def __lt__(self, other: "X86Op") -> bool:
        return self.number < other.number

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (X86Ops, self.name)


def kind_name(kind: int) -> str:
    """``kind`` as the manual writes it."""
    words = [w for w, k in _WORD_KIND.items() if kind & k and not w.startswith("vm64")]
    return "/".join(words + [f"m{kind >> 20 or ''}"] * bool(kind & MEM)) or hex(kind)


# Ops of the framework that stand between instructions; each is explained where it is selected and where it is emitted.
_PSEUDO = ("DEFINE", "ALIAS", "LABEL", "COPY", "ARG", "ZERO", "ONES", "SKIP_LOAD", "SKIP_STORE")


class OpcodeTable:
    """All mnemonics as attributes: ``X86Ops.VADDPS``."""

    def __init__(self) -> None:
        self._ops: dict[str, X86Op] = {}

    def _load(self) -> dict[str, X86Op]:
        if self._ops:
            return self._ops
        number = max(Ops) + 1
        for name in _PSEUDO:
            self._ops[name] = X86Op(name, number := number + 1, ())
        for text in (table_general.TABLE, table_float.TABLE, table_integer.TABLE):
            entry = latency = flags = ""
            for line in text.strip().split("\n"):
                if line[0] == "@":
                    entry, latency, *rest = (part.strip() for part in line[1:].split(";"))
                    flags = rest[0].partition("=")[2] if rest else ""
                    continue
                name = line[: line.index(" ")]
                op = self._ops.get(name)
                if op is None:
                    op = self._ops[name] = X86Op(name, number := number + 1, [], entry, latency, flags)
                op._lines.append(line)  # type: ignore[attr-defined]
        return self._ops

    def __getattr__(self, name: str) -> X86Op:
        if name.startswith("_") or name not in self._load():
            raise AttributeError(f"no x86 instruction {name!r} in the table")
        op = self._ops[name]
        self.__dict__[name] = op
        return op

    def __getitem__(self, name: str) -> X86Op:
        op: X86Op = getattr(self, name)
        return op

    def __iter__(self) -> Iterator[X86Op]:
        return iter(self._load().values())

    def __contains__(self, name: str) -> bool:
        return name in self._load()

    def __reduce__(self) -> str:
        return "X86Ops"


X86Ops = OpcodeTable()
