"""Code generation: a kernel graph and a renderer give a PROGRAM. ``docs/codegen.md`` describes the steps.

Names load on first use: a process that finds its programs in the disk cache needs none of this.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.codegen.program import linear_program as linear_program
    from tinyhost.codegen.program import optimised as optimised
    from tinyhost.codegen.program import to_program as to_program

__all__ = ["linear_program", "optimised", "to_program"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(__all__)}")
    from tinyhost.codegen import program
    return getattr(program, name)
