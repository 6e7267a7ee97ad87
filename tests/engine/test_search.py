"""The search over optimisations: neighbours apply, results are kept and not timed again, it can be cancelled."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen import kernels as K
from tinyhost import Context, Tensor
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.neighbours import applied, neighbours
from tinyhost.codegen.program import optimised, prepared
from tinyhost.device.builtin.python import PythonRenderer
from tinyhost.engine import diskcache, plan, program, search
from tinyhost.errors import KernelFault
from tinyhost.target import Target
from tinyhost.uop import Opt, OptOps

KERNELS = {"add": K.add(60)[0], "matmul": K.matmul(7, 13, 11)[0], "row": K.row_reduce(6, 40)[0],
           "softmax": K.softmax(4, 24)[0]}


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path) -> Iterator[None]:
    """No results of other tests, in memory or on disk."""
    with Context(CACHEDIR=str(tmp_path), CACHELEVEL=2, DEV="CPU"):
        tmp_path.chmod(0o700)
        forget(), diskcache.reset(), search.reset()
        yield
        forget(), diskcache.reset(), search.reset()


def forget() -> None:
    """Make programs anew."""
    plan.reset(), program.reset()


def product() -> tuple[Tensor, np.ndarray]:
    """A product and what it should be."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (24, 24)).astype(np.float32) for _ in range(2))
    return Tensor(a).realize() @ Tensor(b).realize(), a @ b


@pytest.mark.parametrize("target", ["gpu", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", KERNELS)
def test_neighbours_apply_and_are_the_same_each_time(name: str, target: str) -> None:
    renderer = PythonRenderer(Target("PYTHON", "", target))
    sink = prepared(KERNELS[name], renderer).sink

    def make() -> Kernel:
        return Kernel(sink, renderer)
    start = optimised(KERNELS[name], renderer).arg.applied_opts
    found = neighbours(make, start)
    assert len(found) == len(set(found)) > 5 and start not in found
    assert all(applied(make, opts) is not None for opts in found)
    assert found == neighbours(make, start)
    assert applied(make, (*start, Opt(OptOps.UNROLL, 99, 2))) is None
    assert neighbours(make, (Opt(OptOps.LANE, 9, 3),)) == []


def test_a_search_gives_the_same_values_and_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out, want = product()
    with Context(BEAM=2, BEAM_SECONDS=2.0):
        assert np.array_equal(out.numpy(), want)
        assert search.counters.searched == 1 and search.counters.timed > 3
        timed = search.counters.timed
        forget()  # the program is made anew, with the Opts found before
        assert np.array_equal(product()[0].numpy(), want)
        assert (search.counters.searched, search.counters.timed) == (1, timed)
        forget()
        search.reset()  # as in a new process: from disk
        monkeypatch.setattr(program, "_from_bytes", lambda data: (_ for _ in ()).throw(ValueError("damaged")))
        with pytest.warns(match="damaged"):
            assert np.array_equal(product()[0].numpy(), want)
        assert search.counters.searched == search.counters.timed == 0 and search.counters.reused == 1


def test_without_time_the_hand_rules_stand() -> None:
    seen: list[Any] = []
    real = search.to_program

    def watched(ast: Any, *args: Any) -> Any:
        seen.append(real(ast, *args))
        return seen[-1]
    out, want = product()
    with pytest.MonkeyPatch.context() as m, Context(BEAM=2, BEAM_SECONDS=0.0):
        m.setattr(search, "to_program", watched)
        assert np.array_equal(out.numpy(), want)
    assert len(seen) == 1 and search.counters.timed == 1


def test_opts_that_are_given_are_not_searched() -> None:
    out, want = product()
    with Context(BEAM=2, BEAM_SECONDS=1.0):
        assert np.array_equal(out.contiguous((Opt(OptOps.UPCAST, 0, 2),)).numpy(), want)
    assert search.counters.searched == 0


def test_ctrl_c_ends_a_search_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = search.Timer.__call__, []

    def interrupted(self: search.Timer, compiled: Any, best: float) -> float:
        calls.append(best)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(self, compiled, best)
    out, want = product()
    with Context(BEAM=2, BEAM_SECONDS=60.0), monkeypatch.context() as m:
        m.setattr(search.Timer, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            out.realize()
    assert len(calls) == 4 and "beam" not in diskcache.counters.writes
    with Context(BEAM=1, BEAM_SECONDS=0.5):  # and the next try searches
        assert np.array_equal(product()[0].numpy(), want)
    assert search.counters.searched == 2


def test_a_candidate_that_faults_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = search.Timer.__call__, []

    def faulty(self: search.Timer, compiled: Any, best: float) -> float:
        calls.append(compiled)
        if len(calls) > 1:
            raise KernelFault("kernel r_9 ended with SIGSEGV")
        return real(self, compiled, best)
    out, want = product()
    monkeypatch.setattr(search.Timer, "__call__", faulty)
    with Context(BEAM=2, BEAM_SECONDS=1.0):
        assert np.array_equal(out.numpy(), want)
    assert len(calls) > 2


def test_symbolic_sizes_are_timed_at_their_middle() -> None:
    from tinyhost import Variable
    n = Variable("n", 1, 64).bind(20)
    x = np.arange(64, dtype=np.float32)
    with Context(BEAM=2, BEAM_SECONDS=1.0):
        assert float((Tensor(x).realize().shrink(((0, n),)) * 2).sum().item()) == 2 * x[:20].sum()
    assert search.counters.searched >= 1


def test_a_second_process_takes_what_the_first_found(tmp_path: Path) -> None:
    code = ("import json, numpy as np\nfrom tinyhost import Tensor\nfrom tinyhost.engine import search\n"
            "a = Tensor(np.ones((40, 40), np.float32)).realize()\n(a @ a).realize()\n"
            "print(json.dumps([search.counters.searched, search.counters.timed]))")
    env = {**os.environ, "CACHEDIR": str(tmp_path), "CACHELEVEL": "2", "BEAM": "2", "BEAM_SECONDS": "1", "DEV": "CPU",
           "CCACHE": "0"}
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120) for _ in range(2)]
    counts = [json.loads(done.stdout) for done in runs]
    assert counts[0][0] == 1 and counts[0][1] > 1 and counts[1] == [0, 0]
