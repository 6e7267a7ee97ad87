"""Run a function of tensors once, capture what it executes the second time, replay it from then on."""
from tinyhost.jit.tinyjit import TinyJit

__all__ = ["TinyJit"]
