"""What identifies the code that made a cache entry: versions of core and provider, a source hash in an editable
install."""
from __future__ import annotations

import functools
import hashlib
import importlib
import os
import sys

import tinyhost


@functools.cache
def source_stamp(package: str) -> str:
    """Hash over name, size and time of each source file of an importable package."""
    module = sys.modules.get(package) or importlib.import_module(package)
    h = hashlib.sha256(sys.version.encode())
    for root in module.__path__:
        for path, info in sorted(_sources(root)):
            h.update(f"{path}|{info.st_size}|{info.st_mtime_ns}".encode())
    return h.hexdigest()[:16]


def _sources(root: str) -> list[tuple[str, os.stat_result]]:
    """Path under ``root`` and state of each source file; none where a package lies in an archive."""
    found, folders = [], [root] if os.path.isdir(root) else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found.append((entry.path.removeprefix(root), entry.stat()))
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


def code_version(*objects: object) -> str:
    """Stamp of the core and of the packages that define the types of ``objects``."""
    packages = sorted({"tinyhost", *(type(o).__module__.partition(".")[0] for o in objects)})
    return f"{tinyhost.__version__}|" + "|".join(f"{p}={source_stamp(p)}" for p in packages)
