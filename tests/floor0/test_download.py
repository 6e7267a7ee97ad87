"""``fetch`` against a server on this machine: whole files or an error, one download per file."""
from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tinyhost import Tensor, fetch
from tinyhost.env import Context
from tinyhost.errors import DownloadError

CONTENT = bytes(range(256)) * 40


class Handler(BaseHTTPRequestHandler):
    """/file, /packed, /short (announces more than it sends); anything else is 404."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = {"/file": CONTENT, "/packed": gzip.compress(CONTENT), "/short": CONTENT[:100]}.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 900 * (self.path == "/short")))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    with Context(CACHEDIR=str(tmp_path)):
        yield f"http://127.0.0.1:{made.server_port}", made.asked
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_file_is_asked_for_once(server: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = server
    path = fetch(url + "/file", "numbers.bin", subdir="data")
    assert path == tmp_path / "downloads" / "data" / "numbers.bin" and path.read_bytes() == CONTENT
    assert fetch(url + "/file", "numbers.bin", subdir="data") == path and asked == ["/file"]
    fetch(url + "/file", "numbers.bin", subdir="data", allow_caching=False)
    assert asked == ["/file"] * 2


def test_packed_files_and_tensors(server: tuple[str, list[str]]) -> None:
    url, _ = server
    assert fetch(url + "/packed", gunzip=True).read_bytes() == CONTENT
    assert gzip.decompress(fetch(url + "/packed").read_bytes()) == CONTENT  # kept apart from the unpacked one
    assert bytes(Tensor.from_url(url + "/packed", gunzip=True).tolist()) == CONTENT
    with pytest.raises(DownloadError, match="is not a whole gzip file"):
        fetch(url + "/file", gunzip=True)


def test_what_fails_leaves_nothing(server: tuple[str, list[str]], tmp_path: Path) -> None:
    url, _ = server
    with pytest.raises(DownloadError, match=r"cannot download .*/none: HTTP Error 404.*place the file at .*none\.bin"):
        fetch(url + "/none", "none.bin")
    with pytest.raises(DownloadError, match="announced 1000 bytes and sent 100; try again"):
        fetch(url + "/short")
    with pytest.raises(OSError, match="cannot download http://127.0.0.1:1/x"):
        fetch("http://127.0.0.1:1/x")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_path_is_itself(tmp_path: Path) -> None:
    assert fetch(tmp_path / "a") == tmp_path / "a" == fetch(str(tmp_path / "a"))
    (tmp_path / "b").write_bytes(b"abc")
    with Context(CACHEDIR=str(tmp_path)):
        assert fetch((tmp_path / "b").as_uri()).read_bytes() == b"abc"
