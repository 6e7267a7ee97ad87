"""Machine code with labels, written by hand.

Takes instructions in order; gives bytes whose jumps are resolved. Integers among the operands are immediates; a name
after a jump is a label of this piece of code, before or behind it.
"""
from __future__ import annotations

from tinyhost_cpu.x86.encode import Imm, Mem, Reg, encode
from tinyhost_cpu.x86.insns import R32, R64, X86Op, X86Ops

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = (Reg(R64, i) for i in range(16))


def low(register: Reg) -> Reg:
    """The lower 32 bits of a register."""
    return Reg(R32, register.num)


def at(base: Reg, disp: int = 0, bits: int = 64, index: Reg | None = None, scale: int = 1) -> Mem:
    """``bits`` of memory at a register."""
    return Mem(base.num, -1 if index is None else index.num, scale, disp, bits)


class Assembler:
    """A piece of code under construction."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def put(self, op: X86Op, *operands: Reg | Mem | int, lock: bool = False) -> None:
        """Append an instruction; ``lock`` makes its access to memory atomic."""
        self.code += (b"\xf0" if lock else b"") + encode(op, *[Imm(o) if isinstance(o, int) else o for o in operands])

    def label(self, name: str) -> None:
        """Name what follows.

        Raises:
            ValueError: the name is taken.
        """
        if name in self.labels:
            raise ValueError(f"label {name!r} is already at {self.labels[name]}")
        self.labels[name] = len(self.code)

    def jump(self, op: X86Op, name: str) -> None:
        """A jump to a label."""
        self.code += encode(op, Imm(0, 32))
        self._jumps.append((len(self.code), name))

    def address(self, register: Reg, name: str) -> None:
        """Load the address of a label."""
        # lea register, [rip+disp32]: ModRM with mod 0 and rm 5 (Intel SDM 2A, 2.2.1.6)
        self.code += bytes((0x48 | register.num >> 3 << 2, 0x8D, (register.num & 7) << 3 | 5, 0, 0, 0, 0))
        self._jumps.append((len(self.code), name))

    def repeat_move_bytes(self) -> None:
        """Copy rcx bytes from rsi to rdi."""
        self.code += b"\xf3\xa4"  # rep movsb (Intel SDM 2B, REP; operands are implied)

    def number(self, register: Reg, value: int) -> None:
        """Load a constant of any width."""
        short = 0 <= value < 1 << 31
        self.code += encode(X86Ops.MOV, low(register) if short else register, Imm(value, 32 if short else 64))

    def finish(self) -> bytes:
        """The code.

        Raises:
            KeyError: a jump to a label that is nowhere.
        """
        for end, name in self._jumps:
            self.code[end - 4:end] = (self.labels[name] - end).to_bytes(4, "little", signed=True)
        self._jumps = []
        return bytes(self.code)
