"""Files that are either whole or not there."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def atomic_file(fn: str | os.PathLike[str], durable: bool = True) -> Iterator[IO[bytes]]:
    """A file to write that replaces ``fn``, keeping its mode, when the block ends without an error.

    ``durable`` waits until the content is on the disk, so that a crash of the system leaves the old file or the new.
    """
    import secrets
    import shutil
    path = os.path.realpath(fn)
    temp = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temp, "xb") as f:
            yield f
            if durable:
                f.flush()
                os.fsync(f.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temp)
        os.replace(temp, path)
    except BaseException:
        if os.path.exists(temp):
            os.unlink(temp)
        raise
