"""scipy runs on Tensors through the standard, and gradients flow through the namespace."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tinyhost.array_api as xp

pytest.importorskip("scipy", minversion="1.15")

PROGRAM = """
import json
import numpy as np
import scipy.cluster.vq as vq, scipy.special as special, scipy.stats as stats
import tinyhost.array_api as xp
from tinyhost import Tensor
data = np.random.default_rng(0).uniform(0.1, 1, (6, 3)).astype(np.float32)
calls = {
    "logsumexp": lambda x: special.logsumexp(x, axis=1), "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x, axis=0), "zscore": stats.zscore, "gmean": stats.gmean,
    "hmean": stats.hmean, "moment": lambda x: stats.moment(x, order=2), "skew": stats.skew, "kurtosis": stats.kurtosis,
    "entropy": stats.entropy, "ttest_1samp": lambda x: stats.ttest_1samp(x, 0.5).statistic,
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic, "whiten": vq.whiten, "sem": stats.sem,
    "variation": stats.variation}
out = {}
for name, call in calls.items():
    got, want = call(xp.asarray(data)), call(data)
    out[name] = [isinstance(got, Tensor), got.tolist(), np.asarray(want).tolist()]
print(json.dumps(out))
"""


def test_scipy_on_tensors() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "SCIPY_ARRAY_API": "1"}, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for name, (is_tensor, got, want) in json.loads(done.stdout).items():
        assert is_tensor, name
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=name)


def test_gradients_flow_through_the_namespace() -> None:
    x = xp.asarray([0.5, 1.0, 2.0])
    loss = xp.sum(xp.where(x > 0.7, xp.exp(x), xp.log1p(x)) * xp.take(x, xp.asarray([2, 0, 1])))
    (grad,) = loss.gradient(x)
    a = x.numpy().astype(np.float64)
    step = 1e-6

    def value(v: np.ndarray) -> float:
        return float((np.where(v > 0.7, np.exp(v), np.log1p(v)) * v[[2, 0, 1]]).sum())
    want = [(value(a + step * e) - value(a - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(grad.numpy(), want, rtol=1e-5)
