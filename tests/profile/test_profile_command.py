"""``tinyhost profile``: tables, traces, exit statuses and refusals; the sums by hand-made events."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.profile.schema import check, load, tracks_of
from tinyhost.cli import main
from tinyhost.events import ProfileKernelEvent, ProfileRangeEvent
from tinyhost.profiling import HOST
from tinyhost.viz.summary import kernel_sums, phase_sums, summary

PROGRAM = """
import sys, threading
from tinyhost import Tensor
from tinyhost.profiling import cpu_profile
def work():
    with cpu_profile("in a thread"):
        (Tensor([1.0, 2.0]) + 1).tolist()
t = threading.Thread(target=work, name="second")
t.start()
t.join()
print("arguments", sys.argv[1:])
"""


def profile(*argv, **variables):
    command = [sys.executable, "-m", "tinyhost", "profile", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "DEV": "CPU", **variables})


def test_a_script(tmp_path):
    script, trace = tmp_path / "s.py", tmp_path / "t.json"
    script.write_text(PROGRAM)
    trace.write_text("old")
    done = profile("--trace", trace, script, "--trace", "x", "-v")
    assert done.returncode == 0, done.stderr
    first, *table = done.stdout.splitlines()
    assert first == "arguments ['--trace', 'x', '-v']"
    assert table[0].split() == ["DEVICE", "KERNEL", "COUNT", "MS", "SHARE", "GFLOP/S", "GB/S"]
    row = re.compile(r"CPU +E_2 +1 +\d+\.\d{3} +\d+\.\d% +\d+\.\d\d +\d+\.\d\d")
    assert len([line for line in table if row.fullmatch(line)]) == 1, done.stdout
    assert "HOST" in done.stdout and "in a thread" in done.stdout
    tracks = tracks_of(seen := load(trace.read_bytes()))
    check(seen)
    assert [e["name"] for e in tracks["host"]["second"] if e["cat"] == "user"] == ["in a thread"]
    assert done.stderr == f"tinyhost: profile written to {trace}; open it at https://ui.perfetto.dev\n"


def test_nobody_reads_the_tables(tmp_path):
    """``tinyhost profile s.py | head -1``."""
    (tmp_path / "s.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "tinyhost", "profile", "--trace", str(tmp_path / "t.json"), str(tmp_path / "s.py")]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env={**os.environ, "DEV": "CPU"})
    assert done.stderr.splitlines()[-1].startswith("tinyhost: profile written to")
    assert "Exception ignored" not in done.stderr and (tmp_path / "t.json").exists()


def test_without_a_path(tmp_path):
    (tmp_path / "s.py").write_text(PROGRAM)
    done = profile(tmp_path / "s.py", TMPDIR=str(tmp_path))
    path = Path(re.search(r"profile written to (\S+);", done.stderr)[1])
    assert path.parent.parent == tmp_path and path.name == "trace.json"
    check(load(path.read_bytes()))


@pytest.mark.parametrize("end, status", [("sys.exit(7)", 7), ("raise KeyError('mine')", 1), ("sys.exit()", 0)])
def test_exit_statuses_and_errors_are_the_scripts(tmp_path, end, status):
    (tmp_path / "s.py").write_text(PROGRAM + end)
    done = profile("--trace", tmp_path / "t.json", tmp_path / "s.py")
    assert done.returncode == status and ("KeyError: 'mine'" in done.stderr) == (status == 1)
    assert "launches," in done.stdout and (tmp_path / "t.json").exists()


def test_a_script_that_is_killed(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    done = profile(script, TMPDIR=str(tmp_path))
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stderr == f"tinyhost: nothing was recorded: {script} used no device, or was stopped\n"
    assert [p.name for p in tmp_path.iterdir()] == ["s.py"]


def test_an_interrupt_is_the_scripts(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(PROGRAM + "try:\n    print('ready', flush=True)\n    import time; time.sleep(60)\n"
                                "except KeyboardInterrupt:\n    print('seen'); sys.exit(5)\n")
    with subprocess.Popen([sys.executable, "-m", "tinyhost", "profile", str(script)], text=True, start_new_session=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "DEV": "CPU", "TMPDIR": str(tmp_path)}) as process:
        lines = [process.stdout.readline()]
        while lines[-1].strip() != "ready":
            lines.append(process.stdout.readline())
            assert lines[-1]
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 5 and out.startswith("seen\n") and "launches," in out


def test_refusals(tmp_path, capsys):
    (tmp_path / "s.py").write_text("")
    for argv, text in [
        ([tmp_path / "no.py"], f"cannot profile {tmp_path}/no.py: there is no such file; give the path of a Python "
                               "program"),
        ([tmp_path], f"cannot profile {tmp_path}: it is no file; give the path of a Python program"),
        (["--trace", tmp_path / "a" / "t", tmp_path / "s.py"],
         f"cannot write the profile to {tmp_path}/a/t: the folder {tmp_path}/a does not exist; give --trace another "
         "path"),
        (["--trace", tmp_path, tmp_path / "s.py"],
         f"cannot write the profile to {tmp_path}: it is a folder; give --trace another path"),
    ]:
        assert main(["profile", *map(str, argv)]) == 2
        assert capsys.readouterr().err == f"tinyhost: error: {text}\n"
    with pytest.raises(SystemExit) as e:
        main(["profile"])
    assert e.value.code == 2 and "the following arguments are required: SCRIPT" in capsys.readouterr().err


def test_examples_of_the_tree(tmp_path):
    """A program of the tree that uses TinyJit runs under the command as it is."""
    script = tmp_path / "jit.py"
    script.write_text("from tinyhost import Tensor, TinyJit\n@TinyJit\ndef double(x):\n    return (x * 2).realize()\n"
                      "for i in range(4):\n    print(double(Tensor([i, 1.5]).realize()).tolist())\n")
    done = profile("--trace", tmp_path / "t.json", script)
    assert done.stdout.startswith("[0.0, 3.0]\n[2.0, 3.0]\n[4.0, 3.0]\n[6.0, 3.0]\n"), done.stderr
    host = tracks_of(load((tmp_path / "t.json").read_bytes()))["host"]["MainThread"]
    assert [e["name"] for e in host if e["cat"] == "TinyJit"] == ["TinyJit double"] * 4
    assert re.search(r"\nTinyJit +4 +\d+\.\d{3}\n", done.stdout)


# *** sums ***
def launch(name, st, en, ops=0, nbytes=0, device="ACME"):
    return ProfileKernelEvent(device, name, st, en, (1, 1, 1), ops, nbytes)


def host(name, st, en, category="user", thread=1):
    return ProfileRangeEvent(HOST, name, st, en, category=category, thread=thread)


EVENTS = [launch("a", 0, 1_000_000, 3_000_000, 500_000), launch("b", 0, 3_000_000, 0, 3_000_000),
          launch("a", 2_000_000, 3_000_000, 5_000_000, 500_000), launch("a", 5, 5, device="ACME:1"),
          host("outer", 0, 10_000_000), host("x", 1_000_000, 3_000_000, "schedule"),
          host("y", 2_000_000, 2_500_000, "cache"), host("z", 4_000_000, 5_000_000, "schedule"),
          host("outer", 1_000_000, 2_000_000, thread=2)]


def test_the_tables():
    assert summary(EVENTS).splitlines() == [
        "DEVICE  KERNEL  COUNT  MS     SHARE  GFLOP/S  GB/S",
        "ACME    b       1      3.000  60.0%  0.00     1.00",
        "ACME    a       2      2.000  40.0%  4.00     0.50",
        "ACME:1  a       1      0.000  0.0%   -        -",
        "4 launches, 5.000 ms, 0.008 GFLOP, 0.004 GB",
        "",
        "HOST      COUNT  MS",
        "outer     2      8.000",
        "schedule  2      2.500",
        "cache     1      0.500"]
    assert summary(EVENTS, rows=1).splitlines()[2] == "and 2 more kernels, 2.000 ms"
    assert summary([]).splitlines() == ["DEVICE  KERNEL  COUNT  MS  SHARE  GFLOP/S  GB/S",
                                        "0 launches, 0.000 ms, 0.000 GFLOP, 0.000 GB"]


def test_phases_of_a_thread_add_up():
    own = [e for e in EVENTS if isinstance(e, ProfileRangeEvent) and e.thread == 1]
    assert sum(p.ns for p in phase_sums(own)) == 10_000_000  # what the outermost range took
    assert [(k.device, k.name, k.count) for k in kernel_sums(e for e in EVENTS if isinstance(e, ProfileKernelEvent))] \
        == [("ACME", "b", 1), ("ACME", "a", 2), ("ACME:1", "a", 1)]
