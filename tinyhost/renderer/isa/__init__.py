"""Own machine-code back ends: selection, register allocation, encoding."""

from tinyhost.renderer.isa.framework import HexCompiler, ISARenderer
from tinyhost.renderer.isa.registers import Register
from tinyhost.renderer.isa.selection import Selection

__all__ = ["HexCompiler", "ISARenderer", "Register", "Selection"]
