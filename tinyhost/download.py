"""Files from the network, kept in the cache folder.

``fetch`` takes a URL and gives the path of the file; a file that is there is not asked for again, and none is there
before it is whole.
Nothing here is used unless a program asks for it.
"""
from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any

from tinyhost.env import CACHEDIR
from tinyhost.errors import DownloadError
from tinyhost.files import atomic_file

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
    import gzip
    import shutil
    import urllib.error
    import urllib.request
    request = urllib.request.Request(url, headers={"User-Agent": "tinyhost"})
    try:
        with atomic_file(path) as out, urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            received = _Counted(answer)
            content = io.BufferedReader(received)
            shutil.copyfileobj(gzip.GzipFile(fileobj=content) if gunzip else content, out)
            announced = answer.headers.get("Content-Length")
            if announced is not None and int(announced) != received.size:
                raise DownloadError(f"{url} announced {announced} bytes and sent {received.size}; try again")
    except (gzip.BadGzipFile, EOFError) as e:
        raise DownloadError(f"{url} is not a whole gzip file: {e}; leave out gunzip=True, or try again") from e
    except (urllib.error.URLError, TimeoutError, ConnectionError) as e:
        raise DownloadError(f"cannot download {url}: {e}; check the address and the network, or place the file at "
                            f"{path}") from e


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes were read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.size = stream, 0

    def readable(self) -> bool:
        """True"""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with the next bytes; how many there were."""
        content = self._stream.read(len(buffer))
        buffer[:len(content)] = content
        self.size += len(content)
        return len(content)
