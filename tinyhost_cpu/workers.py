"""The one pool of workers of this process: generated code where there is some for the host, else Python threads."""
from __future__ import annotations

import os
import platform
import sys
import threading
from typing import TYPE_CHECKING

from tinyhost_cpu.portable import PortablePool

if TYPE_CHECKING:
    from tinyhost_cpu.native.pool import Pool

_pool: Pool | PortablePool | None = None
_lock = threading.Lock()


def pool() -> Pool | PortablePool:
    """The pool, made at first use; its threads end with the process."""
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _make()
    return _pool


def _make() -> Pool | PortablePool:
    if sys.platform == "linux" and platform.machine() == "x86_64":
        from tinyhost_cpu.native.pool import Pool  # what it needs is not on other systems
        return Pool()
    return PortablePool()


def _start_over() -> None:
    global _lock
    _lock = threading.Lock()
    if _pool is not None:
        _pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
