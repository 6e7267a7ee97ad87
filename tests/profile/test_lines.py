"""The lines of DEBUG=2, letter by letter: eager and replayed, copies and several devices, with and without colours."""
from __future__ import annotations

import re

import pytest

from tinyhost import GlobalCounters, Tensor, TinyJit, reset
from tinyhost.engine import program
from tinyhost.engine.realize import count
from tinyhost.env import Context
from tinyhost.helpers import ansistrip, colored, painted, printable

TIMES = re.compile(r"tm (?P<tm>(\x1b\[33m)? *\d+\.\d\d(us|ms|s )(\x1b\[0m)?)/(?P<sum> *\d+\.\d\d)ms "
                   r"\((?P<flops> *\d+) GFLOPS (?P<bytes> *\d+\.\d) GB/s\)")


def masked(text):
    """Times and rates replaced, their widths checked."""
    def mask(m):
        assert len(ansistrip(m["tm"])) == 11 and len(m["sum"]) == 9 and len(m["flops"]) == 7 and len(m["bytes"]) == 6
        return "tm TIME"
    return TIMES.sub(mask, text)


@pytest.fixture
def work():
    a, b = (Tensor([1.0, 2.0, 3.0, 4.0], device=d).realize() for d in ("CPU", "CPU"))

    def function(a, b):
        return (a + 1).realize(), (b.to("CPU:1") * 2).realize()
    with Context(NUM_CPU_THREADS=1):
        function(a, b)  # nothing is scheduled under DEBUG then
        GlobalCounters.reset()
        used, GlobalCounters.mem_used = GlobalCounters.mem_used, 0  # what other tests hold does not stand in the lines
        yield function, a, b
        GlobalCounters.mem_used += used


GRAY, BRIGHT, COPY, END = "\x1b[90m", "\x1b[93m", "\x1b[33m", "\x1b[0m"
KERNEL = f"E{GRAY}_{END}{BRIGHT}4{END}"
COLORED = (
    f"*** CPU        1 {KERNEL}                                            arg  2 mem   0.00 GB tm TIME\n"
    f"*** CPU:1      2 {COPY}copy         16,   CPU:1 <- CPU    {END}            arg  2 mem   0.00 GB tm TIME\n"
    f"*** CPU:1      3 {KERNEL}                                            arg  2 mem   0.00 GB tm TIME\n")
PLAIN = """\
*** CPU        1 E_4                                            arg  2 mem   0.00 GB tm TIME
*** CPU:1      2 copy         16,   CPU:1 <- CPU                arg  2 mem   0.00 GB tm TIME
*** CPU:1      3 E_4                                            arg  2 mem   0.00 GB tm TIME
"""


@pytest.mark.parametrize("no_color, text", [("", COLORED), ("1", PLAIN), ("yes", PLAIN)])
def test_eager(work, capsys, no_color, text):
    function, a, b = work
    with Context(DEBUG=2, NO_COLOR=no_color):
        function(a, b)
    assert masked(capsys.readouterr().out) == text


@pytest.mark.parametrize("no_color, text", [("", COLORED), ("1", PLAIN)])
def test_replayed(work, capsys, no_color, text):
    function, a, b = work
    jit = TinyJit(function)
    jit(a, b)
    jit(a, b)
    GlobalCounters.reset()
    capsys.readouterr()
    with Context(DEBUG=2, NO_COLOR=no_color):
        jit(a, b)
    assert masked(capsys.readouterr().out) == text


def test_no_color_does_not_change_what_is_compiled():
    """A name goes into the disk cache: one written without colours must serve who wants them, and the other way."""
    names = []
    for no_color in ("1", ""):
        reset()
        with Context(NO_COLOR=no_color, CCACHE=0):
            (Tensor([1.0, 2.0, 3.0], device="CPU") + 2).realize()
        names.append(sorted(k.info.name for k in program._kernels.values()))
    assert names[0] == names[1] and any("\x1b[" in n for n in names[0])


def printed(capsys, *args, **counters):
    GlobalCounters.reset()
    used = GlobalCounters.mem_used
    for name, value in counters.items():
        setattr(GlobalCounters, name, value)
    try:
        with Context(DEBUG=2):
            count(*args)
    finally:
        GlobalCounters.mem_used = used
        GlobalCounters.reset()
    return capsys.readouterr().out


@pytest.mark.parametrize("args, line", [
    (("ACME", "r_4", 3, 6_000_000, 2_000_000, 2e-3),
     "*** ACME      42 r_4                                            arg  3 mem   1.50 GB "
     "tm   2000.00us/     3.00ms (      3 GFLOPS    1.0 GB/s)\n"),
    (("ACME:12345", "r_4", 12, 2_000_000_000_000, 500_000_000, 0.5),
     "*** ACME:12   42 r_4                                            arg 12 mem   1.50 GB "
     "tm \x1b[33m   500.00ms\x1b[0m/   501.00ms (   4000 GFLOPS    1.0 GB/s)\n"),
    (("ACME", "r_4", 1, 0, 0, 20.0),
     "*** ACME      42 r_4                                            arg  1 mem   1.50 GB "
     "tm \x1b[33m    20.00s \x1b[0m/ 20001.00ms (      0 GFLOPS    0.0 GB/s)\n"),
    (("ACME", "a_name_that_is_longer_than_the_column_for_names_is", 1, 0, 0, None),
     "*** ACME      42 a_name_that_is_longer_than_the_column_for_names_is arg  1 mem   1.50 GB\n"),
])
def test_numbers(capsys, args, line):
    assert printed(capsys, *args, kernel_count=41, time_sum_s=1e-3, mem_used=1_500_000_000) == line


def test_nothing_below_2(capsys):
    with Context(DEBUG=1):
        count("ACME", "r_4", 3, 1, 1, 1.0)
    assert capsys.readouterr().out == ""


def test_colors():
    assert colored("x", "red") == painted("x", "red") == "\x1b[31mx\x1b[0m" and colored("x", None) == "x"
    assert colored("x", "RED") == "\x1b[91mx\x1b[0m" and colored("x", "red", background=True) == "\x1b[41mx\x1b[0m"
    with Context(NO_COLOR="1"):
        assert colored("x", "red") == printable(painted("x", "red")) == "x"
        assert painted("x", "red") == "\x1b[31mx\x1b[0m"
    assert printable(painted("x", "red")) == painted("x", "red")
