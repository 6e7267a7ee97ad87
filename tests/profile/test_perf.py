"""PERF=1: the map that perf reads and the list that GDB reads, each seen by the tool itself."""
from __future__ import annotations

import ctypes
import gc
import os
import platform
import random
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhost import Tensor
from tinyhost.env import Context
from tinyhost.errors import TinyhostWarning
from tinyhost_cpu import elf, perf
from tinyhost_cpu.code import Segment
from tinyhost_cpu.debugger import NAMES, Debugger, Descriptor, Entry

pytestmark = pytest.mark.skipif(platform.machine() not in elf.EM or not sys.platform.startswith("linux"),
                                reason="perf and GDB's interface are for Linux on x86-64 and arm64")
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code in this test is for x86-64")
RET, FAULT = b"\xc3", b"\x0f\x0b"  # ret, ud2


def tool(name):
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


def run(*command, **variables):
    return subprocess.run(command, env={**os.environ, "DEV": "CPU", **variables}, capture_output=True, text=True,
                          timeout=90)


@pytest.fixture
def announced(tmp_path, monkeypatch):
    """A map and a list of one's own."""
    made, debugger = perf.PerfMap(str(tmp_path)), Debugger()
    for name, value in (("_map", made), ("_debugger", debugger), ("_opened", True)):
        monkeypatch.setattr(perf, name, value)
    with Context(PERF=1):
        yield made, debugger


def lines(made):
    return [(int(a, 16), int(b, 16), name) for a, b, name in
            (line.split(" ", 2) for line in Path(made.path).read_text().splitlines())]


def listed(debugger):
    """(start, size, name) of each file in the list, read from memory by the addresses alone."""
    found, at, before = [], debugger._descriptor.first_entry, None
    while at:
        entry = Entry.from_address(at)
        assert entry.prev == before
        found.append(symbol(ctypes.string_at(entry.symfile_addr, entry.symfile_size)))
        at, before = entry.next, at
    return found


def symbol(file):
    """The one function of a symbol file, read by readelf."""
    path = Path(f"/tmp/tinyhost-test-{os.getpid()}.o")
    path.write_bytes(file)
    try:
        text = run("readelf", "-W", "-s", str(path))
    finally:
        path.unlink()
    assert text.returncode == 0 and not text.stderr, text.stderr
    [(start, size, name)] = re.findall(r"\d+: ([0-9a-f]{16}) +(\d+) FUNC +GLOBAL DEFAULT +1 (\S+)", text.stdout)
    return int(start, 16), int(size), name


# *** files ***
@tool("readelf")
def test_a_symbol_file():
    assert symbol(elf.symbol_file("E_4_4", 0x7F12_3456_7000, 291)) == (0x7F12_3456_7000, 291, "E_4_4")


@tool("readelf")
def test_the_shared_object(tmp_path):
    path = tmp_path / "x.so"
    code = b"\xb8\x2a\x00\x00\x00\xc3"  # mov eax, 42; ret
    path.write_bytes(elf.shared_object("x.so", ("a_function", code), ("a_variable", b"12345678")))
    for reader in ("readelf", "llvm-readelf", "eu-readelf"):
        if shutil.which(reader):
            seen = run(reader, "-W" if reader == "readelf" else "-h", "-a", str(path))
            assert seen.returncode == 0 and not seen.stderr, seen.stderr
            assert "a_function" in seen.stdout and "a_variable" in seen.stdout
    if platform.machine() == "x86_64":
        library = ctypes.CDLL(str(path))
        assert library.a_function() == 42
        assert bytes((ctypes.c_char * 8).in_dll(library, "a_variable")) == b"12345678"
        assert not any("rwx" in line for line in Path("/proc/self/maps").read_text().splitlines() if "x.so" in line)


def test_nothing_without_perf(announced):
    made, debugger = announced
    with Context(PERF=0):
        held = Segment(RET, "f")
    assert lines(made) == [] and debugger._descriptor.first_entry is None and held.address


# *** the map ***
@tool("readelf")
def test_kernels_are_in_the_map_and_the_list(announced):
    from tinyhost.engine import program
    made, debugger = announced
    program.reset()
    with Context(CCACHE=0, SCACHE=0):
        (Tensor([1.0, 2.0, 3.0, 7.0, 9.0], device="CPU") * 3 + 5).realize()
    loaded = {(p.segment.address, len(p.elf.lib), p.elf.name) for p in program._loaded.values()}
    assert loaded and loaded <= set(lines(made)) and loaded <= set(listed(debugger))
    assert all("\x1b" not in name for _, _, name in lines(made))


@tool("readelf")
def test_segments_come_and_go(announced):
    made, debugger = announced
    held = [Segment(RET * (i + 1), f"f{i}") for i in range(5)]
    places = [(s.address, i + 1, f"f{i}") for i, s in enumerate(held)]
    assert lines(made) == places and listed(debugger) == places[::-1]
    for gone in (2, 3, 0):  # from the middle, the last one, the first one
        del held[gone]
        gc.collect()
        del places[gone]
        assert listed(debugger) == places[::-1]
    held.clear()
    gc.collect()
    assert listed(debugger) == [] and debugger._held == {}
    assert len(lines(made)) == 5  # perf report reads the map when the code is gone


def test_reused_places_have_their_last_name(tmp_path):
    made = perf.PerfMap(str(tmp_path))
    with open(made.path, "a") as other:  # another generator of code in this process
        other.write("900 10 somebody_else\n")
    made.add(0x1000, 0x20, "a")
    made.add(0x2000, 0x20, "b")
    made.add(0x1010, 0x100, "c")  # over a's end
    assert lines(made) == [(0x900, 0x10, "somebody_else"), (0x2000, 0x20, "b"), (0x1010, 0x100, "c")]
    made.add(0x1FF0, 0x10, "d")  # ends where b starts
    made.add(0x2000, 0x20, "b2")
    assert lines(made) == [(0x900, 0x10, "somebody_else"), (0x1010, 0x100, "c"), (0x1FF0, 0x10, "d"),
                           (0x2000, 0x20, "b2")]


def test_any_order_of_places(tmp_path):
    """Against an interval a byte: the last one to lie anywhere on a range names it."""
    made, rng, model = perf.PerfMap(str(tmp_path)), random.Random(5), {}
    for i in range(400):
        start, size = rng.randrange(1, 300), rng.randrange(1, 40)
        model = {s: (n, name) for s, (n, name) in model.items() if s + n <= start or start + size <= s}
        model[start] = size, f"k{i}"
        made.add(start, size, f"k{i}")
        if i % 20 == 0:
            assert sorted(lines(made)) == sorted((s, n, name) for s, (n, name) in model.items())
    assert sorted(lines(made)) == sorted((s, n, name) for s, (n, name) in model.items())


def test_the_map_is_private_and_follows_no_link(tmp_path):
    assert stat.S_IMODE(os.stat(perf.PerfMap(str(tmp_path)).path).st_mode) == 0o600
    folder, target = tmp_path / "linked", tmp_path / "target"
    folder.mkdir()
    target.write_text("precious")
    (folder / f"perf-{os.getpid()}.map").symlink_to(target)
    with pytest.raises(OSError):
        perf.PerfMap(str(folder))
    (folder / f"perf-{os.getpid()}.map").unlink()
    (folder / f"perf-{os.getpid()}.map").hardlink_to(target)
    with pytest.raises(PermissionError, match="is not a file of this user's"):
        perf.PerfMap(str(folder))
    assert target.read_text() == "precious"


def test_a_map_of_an_earlier_process_is_emptied(tmp_path):
    path = tmp_path / f"perf-{os.getpid()}.map"
    path.write_text("1 2 old\n")
    os.utime(path, (1e9, 1e9))
    made = perf.PerfMap(str(tmp_path))
    made.add(16, 1, "new")
    assert lines(made) == [(16, 1, "new")]


def test_what_cannot_be_had_is_one_warning(monkeypatch):
    def refuse(*_):
        raise OSError("no space")
    for name in ("PerfMap", "Debugger"):
        monkeypatch.setattr(perf, name, refuse)
    for name in ("_map", "_debugger"):
        monkeypatch.setattr(perf, name, None)
    monkeypatch.setattr(perf, "_opened", False)
    with Context(PERF=1), pytest.warns(TinyhostWarning) as caught:
        held = Segment(RET, "f"), Segment(RET, "g")
    assert [str(w.message) for w in caught] == ["PERF=1 cannot write the map of kernels for perf: no space",
                                                "PERF=1 cannot tell GDB about kernels: no space"] and held


def test_names_are_one_word(announced):
    held = Segment(RET, "two words\nand lines")
    assert lines(announced[0]) == [(held.address, 1, "two_words_and_lines")]


CHILD = """
import os
from tinyhost_cpu.code import Segment
a = Segment(b"\\xc3", "of_the_parent")
if (child := os.fork()) == 0:
    b = Segment(b"\\xc3", "of_the_child")
    print(open(f"/tmp/perf-{os.getpid()}.map").read(), end="", flush=True)
    os.unlink(f"/tmp/perf-{os.getpid()}.map")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(open(f"/tmp/perf-{os.getpid()}.map").read(), end="")
os.unlink(f"/tmp/perf-{os.getpid()}.map")
"""


def test_a_forked_child_has_its_own_map():
    done = run(sys.executable, "-c", CHILD, PERF="1")
    assert done.returncode == 0, done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["of_the_parent", "of_the_child", "of_the_parent"]


def test_the_file_of_the_debugger_goes_with_the_process(tmp_path):
    code = ("from tinyhost_cpu.code import Segment; import os, glob; a = Segment(b'\\xc3', 'f'); "
            f"print(glob.glob('{tmp_path}/*/*.so')); os.unlink(f'/tmp/perf-{{os.getpid()}}.map')")
    done = run(sys.executable, "-c", code, PERF="1", TMPDIR=str(tmp_path))
    assert "tinyhost-debugger.so" in done.stdout and not done.stderr and list(tmp_path.iterdir()) == []


# *** the tools ***
def test_the_descriptor_is_as_gdb_wants_it(announced):
    debugger = announced[1]
    assert ctypes.sizeof(Descriptor) == 24 and ctypes.sizeof(Entry) == 32
    assert (debugger._descriptor.version, debugger._descriptor.action_flag) == (1, 0)
    assert ctypes.CDLL(debugger._library._name)[NAMES[0]] is not None


GDB_PROGRAM = """
import os, ctypes
from tinyhost_cpu.code import Segment
from tinyhost import Tensor
x = (Tensor([1.0, 2.0, 3.0, 4.0, 5.0]) * 3 + 1).realize()
gone = Segment(b"\\xc3", "freed_kernel")
print("freed", hex(gone.address), flush=True)
del gone
a = Segment(b"\\x0f\\x0b", "faulting_kernel")
os.unlink(f"/tmp/perf-{os.getpid()}.map")
from tinyhost.engine import program
for p in program._loaded.values():
    print("loaded", hex(p.segment.address), p.elf.name, flush=True)
ctypes.CFUNCTYPE(None)(a.address)()
"""


@needs_x86
@tool("gdb")
@pytest.mark.parametrize("device", ["CPU:X86", "CPU:LLVM"])  # LLVM brings symbols for debuggers of its own
def test_gdb_names_a_kernel(tmp_path, device):
    """A debugger that runs the program stops in a kernel, names it, knows the others, forgets freed ones."""
    if device == "CPU:LLVM":
        pytest.importorskip("llvmlite")
    program, out, script = tmp_path / "program.py", tmp_path / "out", tmp_path / "script.gdb"
    program.write_text(GDB_PROGRAM)
    script.write_text(f"""
set pagination off
set confirm off
set debuginfod enabled off
run {program} > {out}
backtrace 1
python
import gdb, re
printed = open("{out}").read()
for start in re.findall(r"0x[0-9a-f]+", printed):
    print("at", start, gdb.execute("info symbol " + start, to_string=True).strip())
for name in re.findall(r"loaded \\S+ (\\S+)", printed):
    print("break", name, gdb.execute("break " + name, to_string=True).strip())
end
kill
""")
    done = run("gdb", "-q", "-nx", "-batch", "-x", str(script), sys.executable, PERF="1", DEV=device, LC_ALL="C",
               TMPDIR=str(tmp_path))
    if "ptrace" in done.stderr:
        pytest.skip(f"this system lets nobody debug: {done.stderr.strip().splitlines()[-1]}")
    assert "SIGILL" in done.stdout, done.stdout + done.stderr
    assert re.search(r"#0 +0x[0-9a-f]+ in faulting_kernel \(\)", done.stdout), done.stdout
    printed = out.read_text()
    loaded = re.findall(r"loaded (0x[0-9a-f]+) (\S+)", printed)
    assert loaded
    for start, name in loaded:
        assert re.search(rf"at {start} {name} in section \.text of <in-memory", done.stdout), (name, done.stdout)
        assert re.search(rf"break {name} Breakpoint \d+ at 0x", done.stdout), (name, done.stdout)
    assert "freed 0x" in printed and "freed_kernel" not in done.stdout  # other code may lie there now


@needs_x86
@tool("gdb")
def test_gdb_that_attaches_later(tmp_path):
    """The list is read when a debugger attaches to a process that runs already."""
    code = ("import os, time\nfrom tinyhost_cpu.code import Segment\na = Segment(b'\\xc3', 'waiting_kernel')\n"
            "os.unlink(f'/tmp/perf-{os.getpid()}.map')\nprint(hex(a.address), flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PERF": "1", "TMPDIR": str(tmp_path)}) as process:
        address = process.stdout.readline().strip()
        done = run("gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-p", str(process.pid), "-ex",
                   f"info symbol {address}", LC_ALL="C")
        process.kill()
    if "ptrace" in done.stderr:
        pytest.skip(f"this system lets nobody attach: {done.stderr.strip().splitlines()[-1]}")
    assert "waiting_kernel in section .text" in done.stdout, done.stdout + done.stderr


BUSY = """
import ctypes, os, time
from tinyhost_cpu.code import Segment
# mov ecx, 2000000000; loop: dec ecx; jnz loop; ret
a = Segment(bytes.fromhex("b900943577ffc975fcc3"), "busy_kernel")
print(os.getpid(), flush=True)
ctypes.CFUNCTYPE(None)(a.address)()
"""


@needs_x86
@tool("perf")
def test_perf_names_a_kernel(tmp_path):
    data = tmp_path / "perf.data"
    done = run("perf", "record", "-q", "-e", "cpu-clock:u", "-o", str(data), sys.executable, "-c", BUSY, PERF="1")
    if done.returncode and "busy_kernel" not in done.stderr:
        pytest.skip(f"perf cannot record here: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    pid = int(done.stdout.split()[0])
    try:
        report = run("perf", "report", "-i", str(data), "--stdio", "--sort", "symbol")
    finally:
        os.unlink(f"/tmp/perf-{pid}.map")
    share = re.search(r"(\d+\.\d+)% +\[\.\] busy_kernel", report.stdout)
    assert share and float(share[1]) > 30, report.stdout + report.stderr
