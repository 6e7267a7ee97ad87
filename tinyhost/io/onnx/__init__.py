"""ONNX models run on Tensors.

``OnnxRunner`` loads a model and runs it; ``onnx_load`` reads and checks the file only. The parser and the operator
schemas are those of the ``onnx`` package (``pip install 'tinyhost[onnx]'``), which is loaded on first use. What is
supported is listed in ``docs/onnx.md``.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyhost.io.onnx.errors import OnnxError, OnnxModelError, OnnxNodeError, OnnxPackageMissing, OnnxUnsupported

if TYPE_CHECKING:
    from tinyhost.io.onnx.proto import onnx_load as onnx_load
    from tinyhost.io.onnx.runner import OnnxRunner as OnnxRunner

__all__ = ["OnnxError", "OnnxModelError", "OnnxNodeError", "OnnxPackageMissing", "OnnxRunner", "OnnxUnsupported",
           "onnx_load"]

_HOME = {"OnnxRunner": "tinyhost.io.onnx.runner", "onnx_load": "tinyhost.io.onnx.proto"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tinyhost.io.onnx' has no attribute {name!r}")
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise OnnxPackageMissing(f"{name} needs the onnx package, which cannot be imported ({error}): install it with "
                                 "pip install 'tinyhost[onnx]'") from error
    return getattr(importlib.import_module(_HOME[name]), name)
