"""Names of generated code for tools outside: the map that ``perf`` reads, and GDB's list of generated code.

``announce`` takes a range of code, its name and the object whose life is that of the code. The map is the file
/tmp/perf-PID.map with lines "START SIZE name" in hexadecimal (Linux, tools/perf/Documentation/jit-interface.txt); it
may be shared with other generators of code in this process, so lines are appended, and only lines of ours are taken
out again: when other code comes to lie where freed code was. Names of freed code stay until then, and after the end of
the process, because ``perf report`` reads the map afterwards.
"""
from __future__ import annotations

import os
import re
import stat
import threading
import warnings
import weakref
from bisect import bisect_left, bisect_right
from collections import deque

from tinyhost.errors import TinyhostWarning
from tinyhost_cpu import elf
from tinyhost_cpu.debugger import Debugger


class PerfMap:
    """The map of one process."""

    def __init__(self, folder: str = "/tmp") -> None:
        self.path = os.path.join(folder, f"perf-{os.getpid()}.map")
        self._entries: dict[int, tuple[int, str]] = {}  # start -> (size, name), of code that lives or is freed
        self._starts: list[int] = []  # sorted; ranges do not overlap
        began = _process_start()
        # private, never through a link: the folder is everybody's
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        info = os.fstat(self._file)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_nlink != 1:
            os.close(self._file)
            raise PermissionError(f"{self.path} is not a file of this user's")
        if info.st_mtime < began:  # of an earlier process with this number
            os.ftruncate(self._file, 0)

    def add(self, start: int, size: int, name: str) -> None:
        """Enter a range."""
        first, end = bisect_right(self._starts, start), bisect_left(self._starts, start + size)
        if first and (before := self._starts[first - 1]) + self._entries[before][0] > start:
            first -= 1
        if first < end:
            self._take_out({_line(s, *self._entries.pop(s)) for s in self._starts[first:end]})
        self._starts[first:end] = [start]
        self._entries[start] = size, name
        os.write(self._file, _line(start, size, name))

    def _take_out(self, lines: set[bytes]) -> None:
        """Drop lines from the file."""
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        os.ftruncate(self._file, 0)
        os.write(self._file, b"".join(line for line in content.splitlines(keepends=True) if line not in lines))

    def copy_to_child(self) -> PerfMap:
        """The same entries in the running process's own map, after a fork."""
        child = PerfMap(os.path.dirname(self.path))
        for start, (size, name) in self._entries.items():
            child.add(start, size, name)
        os.close(self._file)
        return child


def _line(start: int, size: int, name: str) -> bytes:
    return f"{start:x} {size:x} {name}\n".encode()


def _process_start() -> float:
    """When this process started, in seconds since the epoch (proc(5): stat field 22, btime)."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rpartition(")")[2].split()[19])
    with open("/proc/stat") as f:
        boot = next(int(line.split()[1]) for line in f if line.startswith("btime"))
    return boot + ticks / os.sysconf("SC_CLK_TCK") - 1  # btime is whole seconds


_map: PerfMap | None = None
_debugger: Debugger | None = None
_opened = False
_lock = threading.Lock()
_freed: deque[int] = deque()  # entries of the debugger's list whose code is gone


def announce(owner: object, start: int, size: int, name: str) -> None:
    """Name the code at ``start`` for as long as ``owner`` lives."""
    name = re.sub(r"\s", "_", name)
    with _lock:
        _open()
        _take_out_freed()
        if _map is not None:
            _map.add(start, size, name)
        if _debugger is not None:
            entry = _debugger.register(elf.symbol_file(name, start, size))
            weakref.finalize(owner, _forget, entry).atexit = False


def _forget(entry: int) -> None:
    """Code is about to be freed. The collector may call this inside of ``announce``, which then goes on undisturbed."""
    _freed.append(entry)
    if _lock.acquire(blocking=False):
        try:
            _take_out_freed()
        finally:
            _lock.release()


def _take_out_freed() -> None:
    while _freed and _debugger is not None:
        _debugger.unregister(_freed.popleft())


def _open() -> None:
    """Make map and debugger at first use; what cannot be had is one warning."""
    global _map, _debugger, _opened
    if _opened:
        return
    _opened = True
    try:
        _map = PerfMap()
        os.register_at_fork(after_in_child=_in_child)
    except OSError as e:
        warnings.warn(f"PERF=1 cannot write the map of kernels for perf: {e}", TinyhostWarning, stacklevel=4)
    try:
        _debugger = Debugger()
    except OSError as e:
        warnings.warn(f"PERF=1 cannot tell GDB about kernels: {e}", TinyhostWarning, stacklevel=4)


def _in_child() -> None:
    """A forked child has the parent's kernels and a map of its own."""
    global _map, _lock
    _lock = threading.Lock()  # another thread of the parent may have held it
    if _map is not None:
        try:
            _map = _map.copy_to_child()
        except OSError as e:
            _map = None
            warnings.warn(f"PERF=1 cannot write the map of kernels for perf: {e}", TinyhostWarning, stacklevel=2)
