"""What identifies the code that made a cache entry: versions of core and provider, a source hash in an editable
install."""
from __future__ import annotations

import functools
import hashlib
import importlib
import sys
from pathlib import Path

import tinyhost


@functools.cache
def source_stamp(package: str) -> str:
    """Hash over name, size and time of each source file of an importable package."""
    module = sys.modules.get(package) or importlib.import_module(package)
    h = hashlib.sha256(sys.version.encode())
    for root in module.__path__:
        for path in sorted(Path(root).rglob("*.py")):
            info = path.stat()
            h.update(f"{path.name}|{info.st_size}|{info.st_mtime_ns}".encode())
    return h.hexdigest()[:16]


def code_version(*objects: object) -> str:
    """Stamp of the core and of the packages that define the types of ``objects``."""
    packages = sorted({"tinyhost", *(type(o).__module__.partition(".")[0] for o in objects)})
    return f"{tinyhost.__version__}|" + "|".join(f"{p}={source_stamp(p)}" for p in packages)
