"""Recording: only when asked for, bounded, from many threads, per block, per process; and what happens at exit."""
from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.plugin.distributions import site as site
from tests.profile.schema import check, load, tracks_of
from tinyhost import Tensor, profiling
from tinyhost.env import PROFILE, Context
from tinyhost.errors import PluginWarning, ProfileError
from tinyhost.events import (
    ProfileGraphEntry,
    ProfileKernelEvent,
    ProfileMemoryEvent,
    ProfileRangeEvent,
    TracingKey,
    kernels_of,
)
from tinyhost.profiling import Recording, cpu_events, cpu_profile, profile_marker, record_kernels, recorded_in
from tinyhost.viz import Profiling, trace_of, write_trace


def python(code, *argv, **variables):
    environment = {**os.environ, "DEV": "CPU", **variables}
    return subprocess.run([sys.executable, "-c", code, *argv], env=environment, capture_output=True, text=True)


@pytest.fixture
def own():
    made = Recording()
    with recorded_in(made):
        yield made


def test_nothing_is_recorded_unasked(monkeypatch):
    def refuse(*_):
        raise AssertionError("recorded without PROFILE")
    monkeypatch.setattr(Recording, "add", refuse)
    with cpu_profile("block") as event:
        assert event is None
        profile_marker("marker")
        (Tensor([1, 2], device="CPU") + 1).tolist()


def test_ranges_nest_and_name_what_they_did(own):
    with cpu_profile(TracingKey("outer", ret=3)):
        with cpu_profile("inner", category="phase") as event:
            event.name = "renamed"
            event.args["n"] = 1
        with pytest.raises(KeyError), cpu_profile("failed"):
            raise KeyError("x")
    inner, failed, outer = own.events
    assert (inner.name, inner.category, inner.args) == ("renamed", "phase", {"n": 1})
    assert failed.args == {"error": "KeyError"} and str(outer.name) == "outer"
    assert outer.st <= inner.st <= inner.en <= failed.st <= failed.en <= outer.en
    assert inner.thread == threading.get_native_id() and list(cpu_events) == [inner, failed, outer]
    assert len(cpu_events) == 3 and cpu_events[-1] is outer


def test_as_a_decorator(own):
    @cpu_profile("fact")
    def fact(n):
        return 1 if n == 0 else n * fact(n - 1)
    assert fact(4) == 24
    assert len(own.events) == 5 and sorted(e.en - e.st for e in own.events) == [e.en - e.st for e in own.events]


def test_eight_threads_at_once():
    """Each thread's ranges arrive whole, in its own order; the ring drops exactly what is too much."""
    own, n, gate = Recording(limit=10_000), 2000, threading.Barrier(8)

    def work(number):
        gate.wait()
        with recorded_in(own):
            for i in range(n):
                with cpu_profile(f"{number}.{i}"):
                    profile_marker("m")
        return threading.get_native_id()
    with ThreadPoolExecutor(8) as pool:
        threads = list(pool.map(work, range(8)))
    assert len(own.events) == 10_000 and own.dropped == 8 * n * 2 - 10_000
    assert set(own.threads) == set(threads) and len(set(threads)) == 8
    for thread in threads:
        numbers = [int(e.name.split(".")[1]) for e in own.events
                   if isinstance(e, ProfileRangeEvent) and e.thread == thread]
        assert numbers == sorted(numbers)
    check(load(json.dumps(trace_of(own))))


def test_kernels_from_eight_threads():
    own, gate = Recording(), threading.Barrier(8)

    def work(number):
        gate.wait()
        with recorded_in(own):
            for i in range(10):
                assert (Tensor([1, 2, 3], device="CPU") + (100 * number + i)).tolist()[0] == 1 + 100 * number + i
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len([k for k in kernels_of(own.events) if not k.is_copy]) == 80
    check(load(json.dumps(trace_of(own))))


def test_the_latest_are_kept_and_the_loss_is_told():
    own = Recording(limit=5)
    for i in range(8):
        own.add(ProfileMemoryEvent("ACME", i, i))
    assert [e.nbytes for e in own.events] == [3, 4, 5, 6, 7] and own.dropped == 3
    assert trace_of(own)["otherData"]["dropped"] == ("3 records were dropped, the oldest ones; PROFILE_LIMIT=5 is the "
                                                     "number kept")


def test_a_graph_counts_as_its_kernels():
    own, entries = Recording(limit=5), [ProfileGraphEntry("ACME", "a")]
    with recorded_in(own):
        for _ in range(3):
            record_kernels(entries, [(0, w, 1, 2) for w in range(2)])
    assert len(own.events) == 2 and own.dropped == 2


def test_the_limit_is_a_variable():
    with Context(PROFILE_LIMIT=7):
        assert Recording().limit == 7


def test_a_block_records_for_itself_and_for_the_one_around():
    with Profiling() as outer:
        profile_marker("before")
        with Profiling() as inner:
            profile_marker("inside")
        profile_marker("behind")
    assert [e.name for e in inner.events] == ["inside"]
    assert [e.name for e in outer.events] == ["before", "inside", "behind"]
    assert not PROFILE.value
    with Profiling(enabled=False) as off:
        profile_marker("not recorded")
    assert off.events == []


def test_a_decorated_function(tmp_path, capsys):
    path = tmp_path / "t.json"

    @Profiling(path, show=True)
    def work():
        (Tensor([1, 2], device="CPU") + 1).tolist()
    for _ in range(2):
        work()
        check(load(path.read_bytes()))
        assert "launches," in capsys.readouterr().out
    with Profiling() as p:
        pass
    assert p.summary().splitlines()[-1] == "0 launches, 0.000 ms, 0.000 GFLOP, 0.000 GB"


def test_a_path_that_cannot_be_written(tmp_path):
    path = tmp_path / "missing" / "t.json"
    with pytest.raises(ProfileError) as e, Profiling(path):
        profile_marker("x")
    assert str(e.value) == (f"cannot write the profile to {path}: No such file or directory; set PROFILE_PATH to a "
                            "file in a writable folder")
    assert isinstance(e.value, OSError) and not PROFILE.value


def test_a_trace_is_private_and_replaces_whole(tmp_path):
    path = tmp_path / "t.json"
    write_trace(Recording(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and [p.name for p in tmp_path.iterdir()] == ["t.json"]


# *** the process ***
PROGRAM = """
import sys
from tinyhost import Tensor, Context
from tinyhost.profiling import cpu_profile
with cpu_profile("my part"):
    (Tensor([1.0, 2.0]) + 1).tolist()
"""


def test_at_exit(tmp_path):
    done = python(PROGRAM, PROFILE="1", PROFILE_PATH=str(tmp_path / "t.json"))
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr == f"tinyhost: profile written to {tmp_path}/t.json; open it at https://ui.perfetto.dev\n"
    trace = load((tmp_path / "t.json").read_bytes())
    check(trace)
    tracks = tracks_of(trace)
    assert "my part" in [e["name"] for e in tracks["host"]["MainThread"]]
    assert [e for e in tracks["CPU"]["kernels"] if e["cat"] == "kernel"]


def test_sums_at_exit_and_a_path_of_our_own(tmp_path):
    done = python(PROGRAM, PROFILE="2", TMPDIR=str(tmp_path))
    assert done.stdout.startswith("DEVICE") and "my part" in done.stdout
    [folder] = tmp_path.glob("tinyhost-profile-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"profile written to {folder}/trace.json" in done.stderr
    check(load((folder / "trace.json").read_bytes()))


def test_a_measurement_is_not_lost_to_a_bad_path(tmp_path):
    done = python(PROGRAM, PROFILE="1", PROFILE_PATH="/nonexistent/t.json", TMPDIR=str(tmp_path))
    first, second = done.stderr.splitlines()
    assert first == ("tinyhost: cannot write the profile to /nonexistent/t.json: No such file or directory; set "
                     "PROFILE_PATH to a file in a writable folder")
    assert second.startswith(f"tinyhost: profile written to {tmp_path}/tinyhost-profile-")
    assert done.returncode == 0


def test_a_block_of_the_program(tmp_path):
    code = PROGRAM.replace("with cpu_profile", "with Context(PROFILE=1), cpu_profile") + "Tensor([3]).tolist()\n"
    done = python(code, PROFILE_PATH=str(tmp_path / "t.json"))
    assert done.returncode == 0 and "profile written" in done.stderr
    host = tracks_of(load((tmp_path / "t.json").read_bytes()))["host"]["MainThread"]
    end = max(e["ts"] + e["dur"] for e in host)
    assert next(e["ts"] + e["dur"] for e in host if e["name"] == "my part") == end


def test_nothing_to_write(tmp_path):
    done = python("import tinyhost.engine.realize", PROFILE="1", TMPDIR=str(tmp_path))
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


def test_dropped_records_are_told_at_exit(tmp_path):
    done = python(PROGRAM, PROFILE="1", PROFILE_PATH=str(tmp_path / "t.json"), PROFILE_LIMIT="2")
    about = load((tmp_path / "t.json").read_bytes())["otherData"]
    number = int(about["dropped"].split()[0])
    assert number > 0 and f"({number} older records were dropped)" in done.stderr


def test_a_forked_child_starts_anew(tmp_path):
    code = PROGRAM + """
import os, tinyhost.profiling as p
before = len(p.cpu_events)
child = os.fork()
if child == 0:
    os._exit(len(p.cpu_events))
assert before > 0 and os.waitpid(child, 0)[1] == 0 and len(p.cpu_events) == before
"""
    done = python(code, PROFILE="1", PROFILE_PATH=str(tmp_path / "t.json"))
    assert done.returncode == 0, done.stderr


def test_a_child_of_a_busy_parent(tmp_path):
    """A thread that is recording while another one forks does not stop the child."""
    code = """
import os, signal, threading
import tinyhost.profiling as p
p.profile_marker("of the parent")
recorded, locked, done = p.recording(), threading.Event(), threading.Event()
def hold():
    with recorded._lock:
        locked.set()
        done.wait()
t = threading.Thread(target=hold)
t.start()
locked.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    p.profile_marker("of the child")
    os._exit(0 if [e.name for e in p.cpu_events] == ["of the child"] else 1)
assert os.waitpid(child, 0)[1] == 0
done.set()
t.join()
assert [e.name for e in p.cpu_events] == ["of the parent"]
"""
    done = python(code, PROFILE="1", PROFILE_PATH=str(tmp_path / "t.json"))
    assert done.returncode == 0, done.stderr


def test_wrong_values_of_the_variable():
    done = python("import tinyhost.env", PROFILE="3")
    assert "PROFILE=3: expected one of 0, 1, 2" in done.stderr


# *** plugins ***
def plugin(site, name, body):
    site.add(name, plugins={name: f"{name}_plugin"},
             files={f"{name}_plugin.py": "from tinyhost.plugin.v1 import hookimpl\n" + body})


def test_plugins_get_the_events_once(site):
    plugin(site, "good", "seen = []\n@hookimpl\ndef tinyhost_profile(events): seen.append(list(events))\n")
    with Profiling() as outer:
        with Profiling():
            profile_marker("a")
        outer.recording.add(ProfileKernelEvent("ACME", "k", 1, 2))
    seen = sys.modules["good_plugin"].seen
    assert seen == [outer.events] and [e.name for e in seen[0]] == ["a", "k"]


def test_a_broken_plugin_is_taken_out(site):
    plugin(site, "good", "seen = []\n@hookimpl\ndef tinyhost_profile(events): seen.append(len(events))\n")
    plugin(site, "bad", "@hookimpl\ndef tinyhost_profile(events): raise KeyError('x')\n")
    with pytest.warns(PluginWarning, match="its hook tinyhost_profile raised KeyError") as caught:
        with Profiling():
            profile_marker("a")
    with Profiling():
        profile_marker("b")
    assert len(caught) == 1 and sys.modules["good_plugin"].seen == [1, 1]


def test_plugins_at_exit(site, tmp_path):
    plugin(site, "good", "@hookimpl\ndef tinyhost_profile(events):\n    print('got', len(events) > 0)\n")
    plugin(site, "bad", "@hookimpl\ndef tinyhost_profile(events): raise KeyError('x')\n")
    done = python(PROGRAM, PROFILE="1", PROFILE_PATH=str(tmp_path / "t.json"), PYTHONPATH=str(site.root))
    assert done.returncode == 0 and done.stdout == "got True\n"
    assert "profile written to" in done.stderr and "its hook tinyhost_profile raised KeyError: 'x'" in done.stderr
    assert "Traceback" not in done.stderr


def test_reset():
    with Context(PROFILE=1):
        before = len(cpu_events)
        profile_marker("x")
        assert len(cpu_events) == before + 1
        profiling.reset()
        assert len(cpu_events) == 0
