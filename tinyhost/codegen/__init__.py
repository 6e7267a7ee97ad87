"""Code generation: a kernel graph and a renderer give a PROGRAM. ``docs/codegen.md`` describes the steps."""
from tinyhost.codegen.program import linear_program, optimised, to_program

__all__ = ["linear_program", "optimised", "to_program"]
