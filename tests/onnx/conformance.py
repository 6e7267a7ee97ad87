"""The node cases that the onnx package generates, run and compared by its own tolerances.

``EXPECTED`` lists the cases that do not pass, with the reason. It must be exact: a case that is listed and passes is a
failure.
"""
from __future__ import annotations

import functools
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from tinyhost import Tensor
from tinyhost.io.onnx import OnnxRunner
from tinyhost.io.onnx.types import to_array

_RANDOM = "the expected values are those of numpy's random generator"
_NOISE = "the expected values hold rounding errors of a float32 FFT (2e-7 where 0 is exact), beyond the tolerance"

EXPECTED: dict[str, str] = {
    "test_bernoulli": _RANDOM, "test_bernoulli_double": _RANDOM, "test_bernoulli_double_expanded": _RANDOM,
    "test_bernoulli_expanded": _RANDOM, "test_bernoulli_seed": _RANDOM, "test_bernoulli_seed_expanded": _RANDOM,
    "test_training_dropout": _RANDOM, "test_training_dropout_default": _RANDOM,
    "test_training_dropout_default_mask": _RANDOM, "test_training_dropout_mask": _RANDOM,
    "test_dft_inverse": _NOISE, "test_dft_inverse_opset19": _NOISE,
}


@functools.cache
def cases() -> dict[str, Any]:
    """All node cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's generators divide by zero and cast NaN
        from onnx.backend.test.case.node import collect_testcases
        return {c.name: c for c in collect_testcases(None)}


def array_of(value: Any) -> Any:
    """A value of a case's data as numpy arrays."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [array_of(v) for v in value] if isinstance(value, (list, tuple)) else value


def result_of(value: Any) -> Any:
    """A value of a run as numpy arrays."""
    if isinstance(value, list):
        return [result_of(v) for v in value]
    return None if value is None else to_array(value)


def assert_close(got: Any, want: Any, rtol: float, atol: float, what: str) -> None:
    """Kinds, dtypes and shapes are equal, numbers within the tolerance; bfloat16 within two units as in the package."""
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{what}: {got} is no sequence like {want}"
        for i, (g, w) in enumerate(zip(got, want)):
            assert_close(g, w, rtol, atol, f"{what}[{i}]")
        return
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    if want.dtype == object:
        assert got.tolist() == [str(v) for v in want] if want.ndim == 1 else (got == want).all(), what
        return
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, not {want.dtype}"
    if want.dtype == ml_dtypes.bfloat16:
        got, want, rtol = got.astype(np.float32), want.astype(np.float32), max(rtol, 2**-6)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)


def run_case(case: Any) -> None:
    """Run one case on the default device.

    Raises:
        AssertionError, OnnxError: it does not pass.
    """
    Tensor.manual_seed(0)  # cases of random numbers fail, or not, each time alike
    runner = OnnxRunner(case.model)
    names = [v.name for v in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = runner({name: array_of(v) for name, v in zip(names, inputs)})
        for (name, got), want in zip(found.items(), outputs, strict=True):
            assert_close(result_of(got), array_of(want), case.rtol, case.atol, f"{case.name}: output {name!r}")


def verdict(name: str) -> str:
    """"" if a case does as expected, else what is wrong."""
    try:
        run_case(cases()[name])
    except Exception as error:
        return "" if name in EXPECTED else f"{name}: {type(error).__name__}: {str(error)[:300]}"
    return f"{name} passes, but is listed as failing" if name in EXPECTED else ""
