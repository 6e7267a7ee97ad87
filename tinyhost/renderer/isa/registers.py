"""Physical registers as instruction operands and results."""

from __future__ import annotations

from typing import Any


class Register:
    """A register fixed by the selector (stack pointer, an operand in a test): the ``tag`` of an INS node.

    Attributes:
        name: for messages. number: number in its file, as the encoder wants it. bank: name of the register file.
    """

    __slots__ = ("name", "number", "bank")

    def __init__(self, name: str, number: int, bank: str) -> None:
        self.name, self.number, self.bank = name, number, bank

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return Register, (self.name, self.number, self.bank)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Register) and (self.bank, self.number, self.name) == (
            other.bank,
            other.number,
            other.name,
        )

    def __hash__(self) -> int:
        return hash((self.bank, self.number, self.name))
