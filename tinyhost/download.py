"""Files from the network, kept in the cache folder.

``fetch`` takes a URL and gives the path of the file; a file that is there is not asked for again. It is written under
a name of its own and renamed when it is whole, so an interrupted or concurrent download never leaves half a file.
Nothing here is used unless a program asks for it.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tinyhost.env import CACHEDIR
from tinyhost.errors import DownloadError

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT = 30  # seconds without an answer
_SCHEMES = ("http:", "https:", "file:")


def fetch(url: str | Path, name: str | None = None, subdir: str | None = None, gunzip: bool = False,
          allow_caching: bool = True) -> Path:
    """Path of the file behind ``url``, downloaded unless it is in the cache folder.

    Args:
        url: an http, https or file URL; a path is returned as it is.
        name: file name in the cache folder, a hash of the URL by default.
        subdir: folder below ``downloads`` in the cache folder.
        gunzip: unpack the file.
        allow_caching: False downloads it again.

    Raises:
        DownloadError: the server has no such file, cannot be reached, or sends less than it announced.
    """
    import hashlib
    from pathlib import Path
    if isinstance(url, Path) or not url.startswith(_SCHEMES):
        return Path(url)
    kept = name or hashlib.sha256(url.encode()).hexdigest() + (".unpacked" if gunzip else "")
    path = Path(CACHEDIR.value) / "downloads" / (subdir or "") / kept
    if not (path.is_file() and allow_caching):
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(url, path, gunzip)
    return path


def _download(url: str, path: Path, gunzip: bool) -> None:
    # here, because these modules cost more than the rest of the package and few programs need them
    import shutil
    import tempfile
    import urllib.error
    import urllib.request
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as out:
            request = urllib.request.Request(url, headers={"User-Agent": "tinyhost"})
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                announced = answer.headers.get("Content-Length")
                shutil.copyfileobj(answer, out)
        received = os.path.getsize(partial)
        if announced is not None and int(announced) != received:
            raise DownloadError(f"{url} announced {announced} bytes and sent {received}; try again")
        if gunzip:
            _unpack(url, partial)
        os.replace(partial, path)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as e:
        raise DownloadError(f"cannot download {url}: {e}; check the address and the network, or place the file at "
                            f"{path}") from e
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _unpack(url: str, path: str) -> None:
    import gzip
    import shutil
    unpacked = path + ".unpacked"
    try:
        with gzip.open(path) as packed, open(unpacked, "wb") as out:
            shutil.copyfileobj(packed, out)
        os.replace(unpacked, path)
    except (gzip.BadGzipFile, EOFError) as e:
        raise DownloadError(f"{url} is not a whole gzip file: {e}; leave out gunzip=True, or try again") from e
    finally:
        if os.path.exists(unpacked):
            os.unlink(unpacked)
