"""Kernels compiled by helper processes: each once or again, never lost, never different."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import numpy as np
import pytest

from tinyhost import Context, Tensor
from tinyhost.engine import diskcache, parallel, plan, program, schedule
from tinyhost.errors import CompileError
from tinyhost.plugin.hooks import hooks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or not os.path.exists("/proc/self/statm"),
                                reason="helpers are forked on Linux only")


class Jobs:
    """Jobs 0 .. n-1, and who did them."""

    def __init__(self, n: int, slow_here: float = 0.0) -> None:
        self.n, self.slow_here = n, slow_here
        self.here: list[int] = []
        self.taken: dict[int, bytes] = {}

    def do(self, job: int) -> None:
        time.sleep(self.slow_here)
        self.here.append(job)

    def take(self, job: int, data: bytes) -> None:
        assert job not in self.taken
        self.taken[job] = data

    def run(self, there: Callable[[int], bytes], helpers: int = 1) -> None:
        parallel.share(range(self.n), self.do, there, self.take, helpers)
        assert sorted([*self.here, *self.taken]) == list(range(self.n))
        assert_no_children()


def assert_no_children() -> None:
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def name(job: int) -> bytes:
    return f"{os.getpid()} did {job}".encode() * 1000  # several together are more than a pipe holds


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_job_is_done_once(helpers: int):
    jobs = Jobs(40, slow_here=0.02)
    jobs.run(name, helpers)
    assert bool(jobs.taken) == bool(helpers)
    for job, data in jobs.taken.items():
        pid = int(data.split()[0])
        assert pid != os.getpid() and data == f"{pid} did {job}".encode() * 1000


def test_what_a_helper_cannot_do_is_done_here():
    def there(job: int) -> bytes:
        if job % 3 == 0:
            raise ValueError("not this one")
        return name(job)
    jobs = Jobs(30, slow_here=0.02)
    jobs.run(there)
    assert jobs.taken and not [job for job in jobs.taken if job % 3 == 0]


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL),
                                 lambda: time.sleep(3600)], ids=["exits", "is killed", "hangs"])
def test_a_helper_that_ends_or_hangs_loses_nothing(end: Callable[[], None]):
    def there(job: int) -> bytes:
        if job > 10:
            end()
        return name(job)
    jobs = Jobs(24, slow_here=0.02)
    jobs.run(there)
    assert jobs.taken and max(jobs.taken) <= 10


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_here_ends_the_helpers(error: type[BaseException]):
    def here(job: int) -> None:
        raise error
    with pytest.raises(error):
        parallel.share(range(20), here, name, lambda job, data: None, 2)
    assert_no_children()


def test_ctrl_c_while_helpers_work():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        def here(job: int) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        with pytest.raises(KeyboardInterrupt):
            parallel.share(range(20), here, name, lambda job, data: None, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert_no_children()


def test_helpers_need_jobs_a_processor_and_a_single_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parallel.threading, "active_count", lambda: 1)
    with Context(PARALLEL=2):
        assert parallel.helpers_for(100) == 2 and parallel.helpers_for(parallel.JOBS_EACH) == 1
        assert parallel.helpers_for(parallel.JOBS_EACH - 1) == 0
        monkeypatch.setattr(parallel.threading, "active_count", lambda: 2)
        assert parallel.helpers_for(100) == 0
    monkeypatch.setattr(parallel.threading, "active_count", lambda: 1)
    with Context(PARALLEL=0):
        assert parallel.helpers_for(100) == 0
    with Context(PARALLEL=-1):
        monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda pid: set(range(16)))
        for load, helpers in ((0.1, parallel.MOST_HELPERS), (14.2, 2), (16.0, 0), (40.0, 0)):
            monkeypatch.setattr(parallel.os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
            assert parallel.helpers_for(100) == helpers
        monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda pid: {3})
        monkeypatch.setattr(parallel.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
        assert parallel.helpers_for(100) == 0  # one processor


# *** kernels ***
@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch):
    """No cached schedule, plan or program, and a process that may fork helpers."""
    for part in (schedule, plan, program, diskcache):
        part.reset()
    monkeypatch.setattr(parallel, "_may_fork", lambda: True)
    with Context(CACHELEVEL=0, DEV="CPU", DEBUG=0):
        yield


def values() -> list[Tensor]:
    """Graphs of one kernel each, all of them different."""
    return [(Tensor(np.arange(16 + i, dtype=np.float32)).realize() * 2 + i).exp2() for i in range(24)]


def computed(helpers: int) -> tuple[list[bytes], int, int]:
    """(values, kernels compiled, kernels that helpers compiled)"""
    for part in (schedule, plan, program):
        part.reset()
    tensors = values()
    for part in (schedule, plan, program):
        part.reset()
    with Context(PARALLEL=helpers):
        Tensor.realize(*tensors)
    done = program.counters.compiled, program.counters.helped
    return [t.numpy().tobytes() for t in tensors], *done


def test_kernels_of_helpers_are_the_same(fresh: None):
    alone, compiled, helped = computed(0)
    assert helped == 0 and compiled == 24
    together, compiled, helped = computed(2)
    assert together == alone and compiled == 24 and helped > 0


def test_plugins_hear_of_each_kernel_once(fresh: None, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    call = hooks().call

    def listening(hook: str, **kwargs: object) -> list[object]:
        if hook == "tinyhost_kernel_compiled":
            told.append(str(kwargs["name"]))
            assert isinstance(kwargs["seconds"], float) and kwargs["seconds"] > 0 and kwargs["binary"]
        return call(hook, **kwargs)
    monkeypatch.setattr(hooks(), "call", listening)
    tensors = values()
    told.clear()
    with Context(PARALLEL=1):
        Tensor.realize(*tensors)
    assert len(told) == 24


def test_an_error_names_the_line_that_built_the_kernel(fresh: None, monkeypatch: pytest.MonkeyPatch):
    tensors = values()
    compile_kernel = program._compile

    def refusing(ast: object, renderer: object) -> program.Kernel:
        if "arg=23" in repr(ast) or ", 39" in repr(ast):
            raise CompileError("no such kernel")
        return compile_kernel(ast, renderer)
    monkeypatch.setattr(program, "_compile", refusing)
    with Context(PARALLEL=2), pytest.raises(CompileError, match="no such kernel") as caught:
        Tensor.realize(*tensors)
    assert any("test_parallel.py" in note for note in caught.value.__notes__)
    assert_no_children()
    monkeypatch.undo()
    assert tensors[23].numpy()[0] == np.float32(2.0) ** 23
