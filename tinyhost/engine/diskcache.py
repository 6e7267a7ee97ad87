"""The disk cache: one file an entry, named by the hash of its key.

Entries hold machine code that is executed, so the folder is private (0700, ours), every file carries a checksum, and
files appear whole or not at all (written beside, then renamed), whatever number of processes write. A cache that cannot
be used is one warning for each cause and then silence; nothing fails because of it.
"""
from __future__ import annotations

import hashlib
import os
import stat
import warnings
from pathlib import Path

from tinyhost.env import CACHEDIR, CACHELEVEL, DEBUG
from tinyhost.errors import CacheWarning
from tinyhost.files import atomic_file
from tinyhost.profiling import cpu_profile

_MAGIC = b"TINYHOST1\n"
_DIGEST = hashlib.sha256().digest_size
_warned: set[str] = set()


class Counters:
    """Hits, misses and writes of this process, by kind."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = {}
        self.misses: dict[str, int] = {}
        self.writes: dict[str, int] = {}

    def add(self, which: dict[str, int], kind: str) -> None:
        """Count one event."""
        which[kind] = which.get(kind, 0) + 1


counters = Counters()


def reset() -> None:
    """Forget counters and given warnings."""
    for which in (counters.hits, counters.misses, counters.writes):
        which.clear()
    _warned.clear()


def _warn(cause: str, text: str) -> None:
    if cause not in _warned:
        _warned.add(cause)
        warnings.warn(text, CacheWarning, stacklevel=2)


def _folder() -> Path | None:
    """The cache's folder, made and checked; None when it cannot be used."""
    root = Path(CACHEDIR.value)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = root.stat()
    except OSError as e:
        _warn(f"folder {root}", f"no disk cache at {root}: {e.strerror or e}; kernels are compiled again in each "
                                "process. "
              "Set CACHEDIR to a writable folder, or CACHELEVEL=0 to do without")
        return None
    if hasattr(os, "getuid") and (info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o022):
        _warn(f"owner {root}", f"no disk cache at {root}: others can write there, and its entries are executed. "
              "Make it yours alone (chmod 700), or set CACHEDIR to another folder")
        return None
    return root


def _path(root: Path, kind: str, key: str) -> Path:
    name = hashlib.sha256(key.encode()).hexdigest()
    return root / kind / name[:2] / name


def enabled(level: int = 1) -> bool:
    """Whether entries of a level are kept at all, so that a key for one is worth computing."""
    return CACHELEVEL.value >= level


@cpu_profile("cache lookup", category="cache")
def get(kind: str, key: str, level: int = 1) -> bytes | None:
    """The entry, None when there is none or it is damaged."""
    if not enabled(level) or (root := _folder()) is None:
        return None
    path = _path(root, kind, key)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        counters.add(counters.misses, kind)
        return None
    except OSError as e:
        _warn(f"read {kind}", f"cannot read the disk cache entry {path}: {e.strerror or e}; compiling instead")
        counters.add(counters.misses, kind)
        return None
    head = len(_MAGIC) + _DIGEST
    payload = data[head:]
    if not data.startswith(_MAGIC) or hashlib.sha256(payload).digest() != data[len(_MAGIC):head]:
        damaged(kind, key)
        counters.add(counters.misses, kind)
        return None
    counters.add(counters.hits, kind)
    if DEBUG.value >= 8:
        print(f"disk cache: {kind} hit {path.name[:16]}, {len(payload)} bytes")
    return payload


def damaged(kind: str, key: str) -> None:
    """Report and remove an entry whose content is not what was written."""
    if (root := _folder()) is None:
        return
    path = _path(root, kind, key)
    _warn(f"damaged {kind}", f"a disk cache entry of {root} is damaged ({kind}/{path.name[:16]}...); it is made again")
    path.unlink(missing_ok=True)


def put(kind: str, key: str, payload: bytes, level: int = 1) -> None:
    """Store an entry; a failure is one warning."""
    if not enabled(level) or (root := _folder()) is None:
        return
    path = _path(root, kind, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(path, durable=False) as f:  # what a crash of the system damages, its checksum tells
            f.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
    except OSError as e:
        _warn(f"write {root}", f"cannot write the disk cache at {root}: {e.strerror or e}; kernels are compiled again "
                               "in each "
              "process. Free some space, or set CACHEDIR to another folder")
        return
    counters.add(counters.writes, kind)
