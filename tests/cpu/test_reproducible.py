"""The same bytes from run to run at a fixed number of threads; programs of one processor are not run on another."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tinyhost import Context, Tensor, TinyJit
from tinyhost_cpu.x86.caps import host_features, level_features

RUNS = 100


def arrays(*shapes: tuple[int, ...]) -> list[Tensor]:
    """Normal float32 tensors."""
    rng = np.random.default_rng(0)
    return [Tensor(rng.standard_normal(s, dtype=np.float32)).clone().realize() for s in shapes]


WORK: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "sum": (lambda x: x.sum(), ((300_001,),)),
    "mean over rows": (lambda x: x.mean(0), ((1000, 333),)),
    "softmax": (lambda x: x.softmax(1), ((257, 513),)),
    "product": (lambda a, b: a @ b, ((301, 517), (517, 259))),
    "convolution": (lambda x, w: x.conv2d(w, padding=1), ((4, 16, 28, 28), (32, 16, 3, 3))),
    "weight gradient": (lambda x, w: x.conv2d(w, padding=1).square().sum().gradient(w)[0],
                        ((4, 16, 28, 28), (32, 16, 3, 3))),
    "scatter": (lambda x: x.scatter_reduce(0, (x * 0).cast("int32") + Tensor.arange(999) % 7, x, "sum"), ((999,),)),
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_runs_give_the_same_bytes(name: str, threads: int) -> None:
    fn, shapes = WORK[name]
    given = arrays(*shapes)
    with Context(DEV="CPU", NUM_CPU_THREADS=threads):
        step = TinyJit(lambda *xs: fn(*xs).contiguous().realize())
        first = step(*given).numpy().tobytes()
        assert all(step(*given).numpy().tobytes() == first for _ in range(RUNS))


CHILD = """
import json, sys
from tinyhost_cpu.x86 import caps
if sys.argv[1:]:
    caps.host_features = lambda: frozenset(sys.argv[1].split(","))
import numpy as np
from tinyhost import Tensor
from tinyhost.engine import program, diskcache
x = Tensor(np.arange(4096, dtype=np.float32)).realize()
out = ((x * 2 + 1).sum()).item()
codes = [k.elf.lib.hex() for k in program._kernels.values()]
print(json.dumps({"out": out, "compiled": program.counters.compiled, "codes": codes}))
"""


def child(folder: Path, *features: str) -> dict[str, object]:
    """A process that computes one sum, on a processor with just the features given."""
    env = {**os.environ, "CACHEDIR": str(folder), "CACHELEVEL": "2", "DEV": "CPU"}
    command = [sys.executable, "-c", CHILD, *features]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def wide(codes: object) -> bool:
    """Whether an instruction has an EVEX prefix."""
    iced_x86 = pytest.importorskip("iced_x86")
    assert isinstance(codes, list)
    return any(i.encoding == iced_x86.EncodingKind.EVEX for code in codes
               for i in iced_x86.Decoder(64, bytes.fromhex(code)))


@pytest.mark.skipif(not level_features("x86-64-v4") <= host_features(), reason="this processor has no AVX-512")
def test_a_cache_of_a_larger_processor_is_not_run_on_a_smaller_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    small = ",".join(sorted(level_features("x86-64-v3")))
    first, again = child(tmp_path), child(tmp_path)
    assert first["compiled"] and not again["compiled"] and again["codes"] == first["codes"]
    assert wide(first["codes"])
    other = child(tmp_path, small)
    assert other["compiled"] == first["compiled"] and other["out"] == first["out"]
    assert not wide(other["codes"])
    assert not child(tmp_path, small)["compiled"] and not child(tmp_path)["compiled"]
