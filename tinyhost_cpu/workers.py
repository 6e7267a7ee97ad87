"""The one pool of workers of this process: generated code where there is some for the host, else Python threads."""
from __future__ import annotations

import atexit
import os
import platform
import sys
import threading

from tinyhost_cpu.native.pool import Pool
from tinyhost_cpu.portable import PortablePool

_pool: Pool | PortablePool | None = None
_lock = threading.Lock()


def pool() -> Pool | PortablePool:
    """The pool, made at first use; its threads end with the process."""
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                native = sys.platform == "linux" and platform.machine() == "x86_64"
                _pool = Pool() if native else PortablePool()
                atexit.register(_pool.stop)
    return _pool


def _start_over() -> None:
    global _lock
    _lock = threading.Lock()
    if _pool is not None:
        _pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
