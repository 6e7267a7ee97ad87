"""One line of an instruction table as an object: operand kinds, the place of each operand, prefix, opcode.

``Operand`` and ``Form`` are parsed from the text of the ``table_*`` modules. One line is one form of one instruction,
as the Intel SDM volume 2 prints it: mnemonic, operands (``W:`` written, ``X:`` read and written, no mark read), operand
encoding (the column Op/En), encoding, and for EVEX the tuple type, which gives the N of disp8*N (volume 2A, tables 2-34
and 2-35). A line that starts with ``@`` opens an entry of the manual: volume, title, latency class, effect on the
flags, the feature the processor needs (AVX512VL beside it for 128 and 256 bits).

A line for EVEX stands for several instructions: its decorations ``{k1}``, ``{z}``, ``m32bcst``, ``{er}`` and ``{sae}``
are optional. ``Form.variant`` is the line with a choice of them, ``Form.choose`` finds the choice from operand kinds;
both are made when first asked for. Which mnemonic has which lines is ``insns``; encoding is ``encode``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tinyhost_cpu.x86.insns import X86Op

# Operand kinds: one bit each, so that "r/m32" is R32 | MEM and a fit is one AND.
R8, R16, R32, R64, XMM, YMM, ZMM, MASK = (1 << i for i in range(8))
MEM, VMEM_X, VMEM_Y = 1 << 8, 1 << 9, 1 << 10  # memory; memory with a vector index of 128 or 256 bits
IMM8, IMM16, IMM32, IMM64 = (1 << i for i in range(11, 15))
REL8, REL32, IMPLICIT = 1 << 15, 1 << 16, 1 << 17
VMEM_Z = 1 << 18  # memory with a vector index of 512 bits
# Decorations of EVEX. MEM | BCST is one element read for all lanes; MASK | ZEROING clears the lanes that are off.
BCST, ZEROING = 1 << 19, 1 << 20
# Decorations of the last vector or general register of a form without memory: suppressed exceptions, rounding mode.
# They lie above the bits where a memory kind keeps its width.
SAE, ROUND_NEAREST, ROUND_DOWN, ROUND_UP, ROUND_ZERO = (1 << i for i in range(40, 45))
_ROUNDINGS = {SAE: 0, ROUND_NEAREST: 0, ROUND_DOWN: 1, ROUND_UP: 2, ROUND_ZERO: 3}  # EVEX.L'L, which SAE ignores
_MODES = ROUND_NEAREST | ROUND_DOWN | ROUND_UP | ROUND_ZERO
ROUNDING_KINDS = SAE | _MODES
DECORATIONS = BCST | ZEROING | ROUNDING_KINDS
GPR_KINDS, VEC_KINDS, IMM_KINDS = R8 | R16 | R32 | R64, XMM | YMM | ZMM, IMM8 | IMM16 | IMM32 | IMM64
VMEM_KINDS = VMEM_X | VMEM_Y | VMEM_Z
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
    "vm32z": VMEM_Z,
    "vm64z": VMEM_Z,
}
DECORATION_WORDS = {
    BCST: "bcst",
    ZEROING: "{z}",
    SAE: "{sae}",
    ROUND_NEAREST: "{rn-sae}",
    ROUND_DOWN: "{rd-sae}",
    ROUND_UP: "{ru-sae}",
    ROUND_ZERO: "{rz-sae}",
}
_IMPLICIT_REG = {"<eax>": 0, "<rax>": 0, "<cl>": 1, "<edx>": 2, "<rdx>": 2}
_IMM_BYTES = {"ib": 1, "iw": 2, "id": 4, "io": 8, "cb": 1, "cd": 4}
_PREFIX = {"66": 1, "F3": 2, "F2": 3}
_MAP = {"0F": 1, "0F38": 2, "0F3A": 3, "MAP5": 5, "MAP6": 6}
_LENGTH = {"256": 1, "L1": 1, "512": 2}
# Intel SDM 2A, tables 2-34 and 2-35: tuple types whose memory operand is a fraction of the vector length
_FRACTION = {"FV": 1, "FVM": 1, "HV": 2, "HVM": 2, "QV": 4, "QVM": 4, "OVM": 8}


class FormError(ValueError):
    """No form of the mnemonic takes these operands, or an operand does not fit its field."""


_Copied = TypeVar("_Copied", "Operand", "Form")


def _copied(thing: _Copied) -> _Copied:
    """A copy, for which ``copy.copy`` takes twice as long."""
    new = object.__new__(thing.__class__)
    for name in thing.__slots__:
        setattr(new, name, getattr(thing, name))
    return new


class Operand:
    """One operand of a form: the ``kinds`` it takes, ``access`` ("R", "W" or "X"), memory size, implied register.

    ``element`` is the width of an embedded broadcast that the line allows, 0 for none; where it is chosen it is also
    ``bits``, and ``lanes`` says how many elements are made of it.
    """

    __slots__ = ("access", "kinds", "bits", "fixed", "text", "element", "lanes")

    def __init__(self, text: str) -> None:
        self.access, _, word = text.rpartition(":")
        self.access = self.access or "R"
        self.text = word
        self.bits, self.kinds, self.fixed, self.element, self.lanes = 0, 0, -1, 0, 0
        if word[0] == "<":
            self.kinds, self.fixed = IMPLICIT, _IMPLICIT_REG[word]
            return
        word = word.partition("{")[0]
        for part in ("r" + word[3:], "m" + word[3:]) if word.startswith("r/m") else word.split("/"):
            if part.endswith("bcst"):
                self.element = int(part[1:-4])
            elif part[0] == "m":
                self.kinds |= MEM
                self.bits = int(part[1:] or 0)
            else:
                # the digit after xmm, ymm, zmm and k only numbers the operand in the manual
                self.kinds |= _WORD_KIND[part if part[0] in "riv" else part.rstrip("0123456789")]
                self.bits = self.bits or KIND_BITS.get(self.kinds, 0)

    def fits(self, have: int) -> bool:
        """Whether an operand of kind ``have`` is what this one takes."""
        kinds = self.kinds
        if not have & kinds or (have ^ kinds) & DECORATIONS:
            return False
        return not (have & MEM and have >> 20 and self.bits) or have >> 20 == self.bits

    def narrowed(self, kinds: int, access: str = "") -> Operand:
        """This operand with other ``kinds``."""
        other = _copied(self)
        other.kinds, other.access = kinds, access or self.access
        return other


class Form:
    """One line of the table, or one variant of a line.

    Attributes:
        r, m, v, i, s: positions among the explicit operands of ModRM.reg, ModRM.rm, VEX.vvvv, the immediate and the
            register in imm[7:4]; -1 where there is none. o: of the register added to the opcode byte. k: of the opmask
            in EVEX.aaa.
        vex: whether the prefix is VEX or EVEX. evex: whether it is EVEX.
        feature: what the processor needs beyond x86-64-v3, as Linux spells it; "" for nothing. AVX512VL, which
            128 and 256 bits need beside it, is not named.
        masking: "" (no opmask), "{k}" (merging), "{k}{z}" (merging or zeroing) or "must" (gathers and scatters).
        rounding: 0, SAE or all rounding modes: what may decorate the operand at ``rounded``.
        scale: the N of disp8*N, 1 without EVEX.
        bits_0, bits_1, bits_2: the payload bytes of EVEX as far as the form fixes them; of VEX the first two of the
            long prefix.
    """

    __slots__ = (
        "op",
        "operands",
        "explicit",
        "implicit",
        "vex",
        "evex",
        "feature",
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
        "k",
        "byte",
        "line",
        "encoder",
        "tied",
        "has_def",
        "masking",
        "rounding",
        "rounded",
        "scale",
        "bits_0",
        "bits_1",
        "bits_2",
        "_twin",
    )

    def __init__(self, op: X86Op, line: str, feature: str = "") -> None:
        _, operands, roles, encoding, *tuple_type = (part.strip() for part in line.split("|"))
        self.op, self.line, self.feature = op, line, feature
        self.operands = tuple(Operand(t.strip()) for t in operands.split(",")) if operands else ()
        self.explicit = tuple(o for o in self.operands if o.fixed < 0)
        self.implicit = tuple(o for o in self.operands if o.fixed >= 0)
        self._parse_roles(roles, "/is4" in encoding)
        self.bits_0 = self.bits_1 = self.bits_2 = 0
        self.evex = encoding.startswith("EVEX")
        self.vex = self.evex or encoding.startswith("VEX")
        self._parse_vex(encoding.split()) if self.vex else self._parse_legacy(encoding.split())
        self.byte = any(o.kinds & R8 for o in self.explicit)
        self.masking, self.rounding, self.rounded, self.scale = "", 0, -1, 1
        if self.evex:
            self._parse_evex(operands, tuple_type[0] if tuple_type else "")
        self._find_definition()
        self.encoder: Callable[[Form, Sequence[Any]], bytes] | None = None
        self._twin: tuple[Form | None, ...] = ()

    def _parse_roles(self, roles: str, is4: bool) -> None:
        self.r = self.m = self.v = self.i = self.s = self.o = self.k = -1
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
        self.pp = self.map = self.w = self.length = 0
        for field in words[0].split("."):
            if field in _PREFIX:
                self.pp = _PREFIX[field]
            elif field in _MAP:
                self.map = _MAP[field]
            elif field in _LENGTH:
                self.length = _LENGTH[field]
            elif field == "W1":
                self.w = 1
        self.bits_0, self.bits_1 = self.map, self.w << 7 | self.length << 2 | self.pp
        self._parse_tail(words[1:])

    def _parse_evex(self, operands: str, tuple_type: str) -> None:
        if any(o.kinds & VMEM_KINDS for o in self.explicit):
            self.masking = "must"
        elif "{k" in operands:
            self.masking = "{k}{z}" if "{z}" in operands else "{k}"
        for position, operand in enumerate(self.explicit):
            if operand.text.endswith(("{er}", "{sae}")):
                self.rounding, self.rounded = (SAE if operand.text.endswith("{sae}") else _MODES), position
        if tuple_type in _FRACTION:
            self.scale = (16 << self.length) // _FRACTION[tuple_type]
        elif tuple_type:
            bits = next(o.bits for o in self.explicit if o.kinds & (MEM | VMEM_KINDS))
            # one element: what gathers, scatters, compress and expand move, else the whole operand
            single = tuple_type == "T1S" and (not bits or bits > 64)
            self.scale = 4 << self.w if single else bits // 8
        self.bits_0, self.bits_1 = 0xF0 | self.map, self.w << 7 | 4 | self.pp
        self.bits_2 = self.length << 5

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

    def _find_definition(self) -> None:
        first = self.operands[0] if self.operands else None
        # a written operand that can only be memory is no definition
        self.has_def = first is not None and first.access != "R" and first.kinds & ~(MEM | VMEM_KINDS) != 0
        self.tied = self.has_def and first is not None and first.access == "X"

    # *** variants of an EVEX line ***
    def variant(self, mask: int = 0, element: bool = False, rounding: int = 0, memory: bool = False) -> Form:
        """This line with an opmask (0, MASK or MASK | ZEROING), a broadcast element, a rounding (one kind bit).

        ``memory`` says that the masked destination is memory. A merging form reads its destination register.
        """
        new = _copied(self)
        new.encoder = None
        explicit = list(self.explicit)
        if element:
            source = explicit[self.m]
            explicit[self.m] = one = source.narrowed(MEM | BCST)
            one.bits, one.lanes = source.element, source.bits // source.element
            new.scale, new.bits_2 = source.element // 8, new.bits_2 | 0x10
        if rounding:
            explicit = [o.narrowed(o.kinds & ~MEM) for o in explicit]
            explicit[self.rounded] = explicit[self.rounded].narrowed(explicit[self.rounded].kinds | rounding)
            new.bits_2 = _ROUNDINGS[rounding] << 5 | 0x10
        if mask:
            self._mask(new, explicit, mask, memory)
        new.operands = new.explicit = tuple(explicit)
        new._find_definition()
        return new

    def _mask(self, new: Form, explicit: list[Operand], mask: int, memory: bool) -> None:
        """Put the opmask behind the destination and move the places of what follows."""
        dest = explicit[0]
        if memory:
            explicit[0] = dest.narrowed(MEM)
        else:
            # under the opmask of a blend a lane comes from one source or the other, never from the destination
            merging = mask == MASK and dest.kinds & VEC_KINDS and "BLENDM" not in self.op.name
            explicit[0] = dest.narrowed(dest.kinds & ~MEM, "X" if merging else dest.access)
        opmask = Operand("X:k" if self.masking == "must" else "k")
        explicit.insert(1, opmask.narrowed(mask))
        if mask & ZEROING:
            new.bits_2 |= 0x80
        new.k = 1
        for role in "rmvi":
            position = getattr(self, role)
            setattr(new, role, position + (position > 0))

    def choose(self, kinds: Sequence[int]) -> Form | None:
        """The variant of this line that takes operands of ``kinds``, None if none does."""
        mask, rest = 0, kinds
        if len(kinds) == len(self.explicit) + 1:
            mask, rest = kinds[1], (kinds[0], *kinds[2:])
            zeroed = mask & ZEROING and (self.masking != "{k}{z}" or kinds[0] & MEM)
            if not self.masking or mask & ~ZEROING != MASK or zeroed:
                return None
        elif len(kinds) != len(self.explicit) or self.masking == "must":
            return None
        element, rounding = False, 0
        for position, (have, want) in enumerate(zip(rest, self.explicit)):
            if have & MEM and have & BCST:
                if not want.element or have >> 20 not in (0, want.element):
                    return None
                element = True
            elif have & ROUNDING_KINDS:
                rounding = have & ROUNDING_KINDS
                if position != self.rounded or not rounding & self.rounding or not have & want.kinds:
                    return None
            elif not want.fits(have):
                return None
        if not (mask or element or rounding):
            return self
        if rounding and any(have & MEM for have in rest):
            return None
        return self.variant(mask, element, rounding, memory=bool(mask and kinds[0] & MEM))

    def variants(self) -> Iterator[Form]:
        """All forms that this line stands for."""
        if self.masking != "must":
            yield self
        masks = {"": [0], "{k}": [0, MASK], "{k}{z}": [0, MASK, MASK | ZEROING], "must": [MASK]}[self.masking]
        dest = self.explicit[0].kinds if self.explicit else 0
        for mask in masks:
            if mask and dest & ~(MEM | VMEM_KINDS):
                yield self.variant(mask)
            if mask and dest & (MEM | VMEM_KINDS) and not mask & ZEROING:
                yield self.variant(mask, memory=True) if dest & MEM else self.variant(mask)
            if self.m >= 0 and self.explicit[self.m].element:
                yield self.variant(mask, element=True)
            for rounding in _ROUNDINGS:
                if rounding & self.rounding:
                    yield self.variant(mask, rounding=rounding)

    def fits(self, kinds: Sequence[int]) -> bool:
        """Whether operands of ``kinds`` (memory: ``MEM | bits << 20``) are what this form takes as it stands."""
        return len(kinds) == len(self.explicit) and all(map(Operand.fits, self.explicit, kinds))

    @property
    def twin(self) -> Form | None:
        """The EVEX form with the operands and the result of this VEX form, which reaches registers 16 to 31."""
        if not self._twin:
            self._twin = (self.op.find_twin(self) if self.vex and not self.evex else None,)
        return self._twin[0]

    def __repr__(self) -> str:
        return f"Form({' '.join(self.line.split())})"


def kind_name(kind: int) -> str:
    """``kind`` as the manual writes it."""
    words = [w for w, k in _WORD_KIND.items() if kind & k and not w.startswith("vm64")]
    size = kind >> 20 & 0xFF8 if kind & MEM else 0
    text = "/".join(words + [f"m{size or ''}"] * bool(kind & MEM))
    return text + "".join(word for bit, word in DECORATION_WORDS.items() if kind & bit) or hex(kind)
