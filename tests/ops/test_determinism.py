"""The same program gives the same bytes: in one process again, and in another process with another hash seed."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tinyhost.env import DEV
from tinyhost.tensor import Tensor

ROOT = Path(__file__).parents[2]


def fingerprints() -> list[str]:
    """Hashes of results whose sums depend on the order of additions."""
    rng = np.random.default_rng(5)
    size = 4 if DEV.value and str(DEV).startswith("CPU") else 1
    a = rng.standard_normal((48 * size, 100)).astype(np.float32)
    b = rng.standard_normal((100, 40 * size)).astype(np.float32)
    image, kernel = rng.standard_normal((2, 3, 12, 12)), rng.standard_normal((4, 3, 3, 3))
    x, y = Tensor(a), Tensor(b)
    results = [x @ y, x.sum(), x.sum(0), x.softmax(1), x.layernorm(), (x.exp() * x.sin()).mean(1), x.cumsum(1),
               x.std(0), Tensor(image.astype(np.float32)).conv2d(Tensor(kernel.astype(np.float32))),
               x.half() @ y.half(), Tensor(image).sum((2, 3)), x.logsumexp(0)]
    return [hashlib.sha256(r.contiguous().numpy().tobytes()).hexdigest()[:16] for r in results]


def test_again_in_this_process(dev: str) -> None:
    first = fingerprints()
    for _ in range(2):
        assert fingerprints() == first


def test_in_another_process(dev: str) -> None:
    command = [sys.executable, "-c", "from tests.ops.test_determinism import fingerprints; print(fingerprints())"]
    env = {**os.environ, "DEV": dev, "PYTHONHASHSEED": "77", "CACHELEVEL": "0"}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(fingerprints())
