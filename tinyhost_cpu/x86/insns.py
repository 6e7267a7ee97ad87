"""The instruction table as objects: mnemonics and their forms.

Takes the text of the ``table_*`` modules; gives ``X86Ops`` (one ``X86Op`` per mnemonic) and, per mnemonic, its
``Form``s (``forms``). A line of the table is parsed when its mnemonic is first used, so start-up pays for no
instruction that a program does not contain; the tables beyond x86-64-v3 are opened when one of their mnemonics, an
operand that only they have, or the EVEX twin of a VEX form is asked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tinyhost.ops import Ops
from tinyhost_cpu.x86 import table_float, table_general, table_integer
from tinyhost_cpu.x86.forms import (
    BCST,
    DECORATIONS,
    GPR_KINDS,
    IMM8,
    IMM16,
    IMM32,
    IMM64,
    IMM_KINDS,
    IMPLICIT,
    KIND_BITS,
    MASK,
    MEM,
    R8,
    R16,
    R32,
    R64,
    REL8,
    REL32,
    ROUND_DOWN,
    ROUND_NEAREST,
    ROUND_UP,
    ROUND_ZERO,
    SAE,
    VEC_KINDS,
    VMEM_KINDS,
    VMEM_X,
    VMEM_Y,
    VMEM_Z,
    XMM,
    YMM,
    ZEROING,
    ZMM,
    Form,
    FormError,
    Operand,
    kind_name,
)

__all__ = [
    "BCST",
    "DECORATIONS",
    "GPR_KINDS",
    "IMM16",
    "IMM32",
    "IMM64",
    "IMM8",
    "IMM_KINDS",
    "IMPLICIT",
    "KIND_BITS",
    "MASK",
    "MEM",
    "R16",
    "R32",
    "R64",
    "R8",
    "REL32",
    "REL8",
    "ROUND_DOWN",
    "ROUND_NEAREST",
    "ROUND_UP",
    "ROUND_ZERO",
    "SAE",
    "VEC_KINDS",
    "VMEM_KINDS",
    "VMEM_X",
    "VMEM_Y",
    "VMEM_Z",
    "XMM",
    "YMM",
    "ZEROING",
    "ZMM",
    "Form",
    "FormError",
    "Operand",
    "X86Op",
    "X86Ops",
    "kind_name",
]

# The tables beyond x86-64-v3, table_NAME. A mnemonic's lines keep this order.
_EXTENSIONS = (
    "mask",
    "evex_memory",
    "evex_float",
    "evex_integer",
    "evex_convert",
    "evex_shuffle",
    "evex_half",
    "single",
)

# VEX mnemonics whose EVEX counterpart has another name, the same operands and the same result (Intel SDM 2, under the
# VEX name). Rounding takes the low half of the immediate: the high half, a scale in VRNDSCALE, must be 0.
TWINS = {
    "VMOVDQU": "VMOVDQU32",
    "VMOVDQA": "VMOVDQA32",
    "VPAND": "VPANDD",
    "VPANDN": "VPANDND",
    "VPOR": "VPORD",
    "VPXOR": "VPXORD",
    "VROUNDPS": "VRNDSCALEPS",
    "VROUNDPD": "VRNDSCALEPD",
    "VROUNDSS": "VRNDSCALESS",
    "VROUNDSD": "VRNDSCALESD",
    "VBROADCASTF128": "VBROADCASTF32X4",
    "VBROADCASTI128": "VBROADCASTI32X4",
    "VEXTRACTF128": "VEXTRACTF32X4",
    "VEXTRACTI128": "VEXTRACTI32X4",
    "VINSERTF128": "VINSERTF32X4",
    "VINSERTI128": "VINSERTI32X4",
}


_VECTOR_NAMES = ((XMM, "xmm"), (YMM, "ymm"), (ZMM, "zmm"))


class X86Op:
    """One mnemonic.

    Attributes:
        name: the mnemonic. number: place in the table, continuing ``Ops``.
        entry: volume and title in the manual. latency: latency class.
        reads_flags, writes_flags: effect on the flags. implicit_results: whether it defines two fixed registers.
        vex: whether its forms have a VEX or EVEX prefix.
        lines: text of the forms of x86-64-v3 and below. extensions: feature and text of the forms beyond.
    """

    __slots__ = (
        "name",
        "number",
        "entry",
        "latency",
        "reads_flags",
        "writes_flags",
        "implicit_results",
        "vex",
        "lines",
        "extensions",
        "_forms",
        "_extended",
        "_parsed",
        "_found",
    )

    def __init__(self, name: str, number: int, facts: str = "", lines: str = "") -> None:
        self.name, self.number, self.vex = name, number, "VEX." in lines
        self.entry, _, rest = facts.partition("; ")
        self.latency, _, rest = rest.partition("; ")
        flags = rest.partition("flags=")[2].partition(";")[0]
        self.reads_flags, self.writes_flags = "r" in flags, "w" in flags
        self.implicit_results = name in ("IDIV", "DIV")
        self.lines: list[str] = []
        self.extensions: list[tuple[str, str]] = []
        self._forms: tuple[Form, ...] = ()
        self._extended: tuple[Form, ...] = ()
        self._parsed: dict[str, Form] = {}
        self._found: dict[tuple[Any, ...], Form | None] = {}

    def _form(self, line: str, feature: str = "") -> Form:
        form = self._parsed.get(line)
        if form is None:
            form = self._parsed[line] = Form(self, line, feature)
        return form

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms of x86-64-v3, in the order of the table; those beyond where there are no others."""
        if not self._forms and self.lines:
            self._forms = tuple(self._form(line) for lines in self.lines for line in lines.split("\n"))
        return self._forms or self.extended

    @property
    def extended(self) -> tuple[Form, ...]:
        """The forms beyond x86-64-v3, one for each line: EVEX, opmask instructions, AVX-VNNI."""
        X86Ops.extend()
        if not self._extended and self.extensions:
            self._extended = tuple(self._form(line, f) for f, lines in self.extensions for line in lines.split("\n"))
        return self._extended

    def match(self, kinds: tuple[int, ...], feature: str | None = None) -> Form | None:
        """The first form that takes operands of ``kinds``, None if there is none.

        Forms of x86-64-v3 come first. ``feature`` asks for a form of just that feature ("" is x86-64-v3).
        """
        key = kinds if feature is None else (feature, *kinds)
        try:
            return self._found[key]
        except KeyError:
            found = self._found[key] = self._match(kinds, feature)
            return found

    def _match(self, kinds: tuple[int, ...], feature: str | None) -> Form | None:
        # a line that does not name the registers need not be parsed
        names = [name for kind, name in _VECTOR_NAMES if any(have & kind for have in kinds)]
        if not feature:
            for lines in self.lines:
                for line in lines.split("\n"):
                    if all(name in line for name in names) and (form := self._form(line)).fits(kinds):
                        return form
        if feature == "":
            return None
        X86Ops.extend()
        for needed, lines in self.extensions:
            if feature in (None, needed):
                for line in lines.split("\n"):
                    if all(name in line for name in names):
                        found = self._form(line, needed).choose(kinds)
                        if found is not None:
                            return found
        return None

    def form(self, kinds: tuple[int, ...], feature: str | None = None) -> Form:
        """``match`` that must succeed.

        Raises:
            FormError: no form takes these operands.
        """
        found = self._found.get(kinds) if feature is None else None
        if found is None:
            found = self.match(kinds, feature)
            if found is None:
                lines = "\n".join(self.lines + [lines for _, lines in self.extensions]).split("\n")
                forms = "\n  ".join(" ".join(line.split()) for line in lines)
                raise FormError(f"no form of {self.name} takes ({', '.join(map(kind_name, kinds))}); it has\n  {forms}")
        return found

    def find_twin(self, form: Form) -> Form | None:
        """What ``Form.twin`` remembers: the EVEX form of this or the counterpart's mnemonic with these operands."""
        for line in X86Ops[TWINS.get(self.name, self.name)].extended:
            if line.evex and len(line.explicit) == len(form.explicit):
                pairs = zip(form.explicit, line.explicit)
                if all(not a.kinds & ~b.kinds and (not a.kinds & MEM or a.bits == b.bits) for a, b in pairs):
                    return line
        return None

    def __repr__(self) -> str:
        return f"X86Ops.{self.name}"

    def __lt__(self, other: "X86Op") -> bool:
        return self.number < other.number

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (X86Ops, self.name)


# a line that opens an entry, or all lines of a mnemonic
_BLOCKS = re.compile(r"^(?:@.*|(\w+) .*(?:\n\1 .*)*)$", re.MULTILINE)

# Ops of the framework that stand between instructions; each is explained where it is selected and where it is emitted.
_PSEUDO = ("DEFINE", "ALIAS", "LABEL", "COPY", "ARG", "ZERO", "ONES", "ZEROING", "SKIP_LOAD", "SKIP_STORE")


class OpcodeTable:
    """All mnemonics as attributes: ``X86Ops.VADDPS``."""

    def __init__(self) -> None:
        self._ops: dict[str, X86Op] = {}
        self._loaded = self._extended = False
        self._lock = threading.RLock()

    def _load(self) -> dict[str, X86Op]:
        if not self._loaded:
            with self._lock:
                if not self._loaded:
                    self._fill()
                    self._loaded = True
        return self._ops

    def _fill(self) -> None:
        for number, name in enumerate(_PSEUDO, max(Ops) + 1):
            self._ops[name] = X86Op(name, number)
        for text in (table_general.TABLE, table_float.TABLE, table_integer.TABLE):
            for op, _, lines in self._read(text):
                op.lines.append(lines)

    def extend(self) -> None:
        """Open the tables beyond x86-64-v3."""
        if not self._extended:
            with self._lock:
                if not self._extended:
                    self._load()
                    self._fill_extensions()
                    self._extended = True

    def _fill_extensions(self) -> None:
        for name in _EXTENSIONS:
            for op, facts, lines in self._read(import_module(f"tinyhost_cpu.x86.table_{name}").TABLE):
                op.extensions.append((facts.rpartition("feature=")[2], lines))

    def _read(self, text: str) -> Iterator[tuple[X86Op, str, str]]:
        """The lines of each mnemonic with the facts of their entry; new mnemonics are numbered from the last one."""
        ops, number = self._ops, max(Ops) + len(self._ops)
        facts = ""
        for block in _BLOCKS.finditer(text):
            name = block[1]
            if not name:
                facts = block[0][2:]
                continue
            op = ops.get(name)
            if op is None:
                op = ops[name] = X86Op(name, number := number + 1, facts, block[0])
            yield op, facts, block[0]

    def __getattr__(self, name: str) -> X86Op:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"no x86 instruction {name!r} in the table")
        op = self._ops[name]
        self.__dict__[name] = op
        return op

    def __getitem__(self, name: str) -> X86Op:
        op: X86Op = getattr(self, name)
        return op

    def __iter__(self) -> Iterator[X86Op]:
        self.extend()
        return iter(self._ops.values())

    def __contains__(self, name: str) -> bool:
        if name not in self._load():
            self.extend()
        return name in self._ops

    def __reduce__(self) -> str:
        return "X86Ops"


X86Ops = OpcodeTable()
