"""docs/onnx.md says what the code does."""
from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")


def test_tables_are_current():
    from tests.onnx.document import PAGE, rendered
    page = PAGE.read_text()
    if f"onnx {onnx.__version__}:" not in page:
        pytest.skip(f"the tables are of another onnx than {onnx.__version__}")
    assert rendered(page) == page, "run python -m tests.onnx.document"
