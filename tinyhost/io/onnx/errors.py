"""What can be wrong with an ONNX model, in one tree under ``TinyhostError``.

    OnnxError(ValueError)
    |-- OnnxPackageMissing(ImportError)      the onnx package is not installed
    |-- OnnxModelError                       the file is damaged, or breaks the rules of the format
    |-- OnnxUnsupported(NotImplementedError) the model is legal, but uses what is not implemented
    `-- OnnxNodeError(RuntimeError)          a node cannot be computed with the values it got
"""
from __future__ import annotations

from tinyhost.errors import TinyhostError


class OnnxError(TinyhostError, ValueError):
    """Root of the errors of ``tinyhost.io.onnx``."""


class OnnxPackageMissing(OnnxError, ImportError):
    """The onnx package is not installed."""


class OnnxModelError(OnnxError):
    """The file is damaged, or breaks the rules of the format."""


class OnnxUnsupported(OnnxError, NotImplementedError):
    """The model is legal, but uses what is not implemented."""


class OnnxNodeError(OnnxError, RuntimeError):
    """A node cannot be computed with the values it got; the cause is chained."""
