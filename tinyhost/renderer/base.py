"""The two interfaces between code generation and a target: Renderer (linear program to text) and Compiler (text to
bytes).

A renderer is made from a target and holds no state beyond it, so it pickles as (class, target). Code generation reads
its ``caps`` and asks ``supports`` which (op, dtype, lanes) exist natively; what does not is decomposed or unpacked
before the renderer sees it. Neither class opens a device.
"""
from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import DType
from tinyhost.ops import Ops
from tinyhost.target import Target

if TYPE_CHECKING:
    from tinyhost.uop import PatternMatcher, UOp


class Compiler(ABC):
    """Source text to loadable bytes.

    Args:
        cachekey: names the compiler with everything that changes its output (version, flags, target level); None
            means the output must not be cached.
    """

    def __init__(self, cachekey: str | None = None) -> None:
        self.cachekey = cachekey

    @abstractmethod
    def compile(self, src: str) -> bytes:
        """Compile ``src``.

        Raises:
            CompileError: the text is rejected; the message holds the compiler's own.
        """

    def disassemble(self, lib: bytes) -> str:
        """A listing of ``lib`` for people; hex where the compiler has no disassembler."""
        return lib.hex(" ", 4)


class Renderer(ABC):
    """Turns linear programs into text for a compiler, or (``isa/``) into machine code.

    Attributes:
        target: what the code is for.
        caps: what the target can do; set by the constructor of the concrete class.
        code_for_op: ALU ops that exist natively for at least one dtype; all others are decomposed.
        extra_matcher: rewrite rules run on the last graph before linearisation, or None.
        pre_matcher: rewrite rules run before decomposition, or None.
        compiler: what turns ``render``'s text into bytes.
    """

    name: ClassVar[str] = ""
    code_for_op: frozenset[Ops] | dict[Ops, Any] = frozenset()
    extra_matcher: "PatternMatcher | None" = None
    pre_matcher: "PatternMatcher | None" = None
    caps: Capabilities
    compiler: Compiler

    def __init__(self, target: Target) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.target,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!s})"

    @abstractmethod
    def render(self, uops: "list[UOp]") -> str:
        """Text of the program whose instructions, in order, are ``uops``; the last one is the SINK with its name."""

    def supports(self, op: Ops, dtype: DType, lanes: int = 1) -> bool:
        """Whether ``op`` exists with operands of ``dtype`` in ``lanes`` lanes.

        For comparisons, CAST and BITCAST ``dtype`` is the operand's; for WHERE it is the type of the arms. Lane counts
        above what ``caps.vector_bytes`` holds are never asked.
        """
        return True

    def supports_literal_shift(self, op: Ops, dtype: DType, lanes: int) -> bool:
        """Whether SHL or SHR by a literal count exists in ``lanes`` lanes; some targets lack only variable counts."""
        return self.supports(op, dtype, lanes)

    def supports_cast(self, src: DType, dst: DType, lanes: int = 1) -> bool:
        """Whether a CAST from ``src`` to ``dst`` exists in ``lanes`` lanes."""
        return self.supports(Ops.CAST, src, lanes) and self.supports(Ops.CAST, dst, lanes)


def source_key(*parts: str) -> str:
    """A short stable key over ``parts``, for compiler cache keys."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
