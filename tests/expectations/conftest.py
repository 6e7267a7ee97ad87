"""The ``dev`` fixture of the operation tests: each device of the matrix that works on this machine."""
from ops.conftest import dev

__all__ = ["dev"]
