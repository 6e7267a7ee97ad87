"""Renderers: linear programs to text or machine code, and the compilers that finish the text."""
from tinyhost.renderer.base import Compiler, Renderer

__all__ = ["Compiler", "Renderer"]
