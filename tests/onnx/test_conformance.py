"""Node cases of the onnx package: a fixed sample by default, all of them under soak."""
from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")

from tests.onnx.conformance import EXPECTED, cases, verdict

PARTS = 8  # of the sample, 20 cases each
SOAK_PARTS = 48


def names() -> list[str]:
    return sorted(cases())


def sample() -> list[str]:
    """160 cases: every eleventh."""
    return names()[3::11][:160]


def check(chosen: list[str]) -> None:
    assert chosen
    wrong = [text for text in map(verdict, chosen) if text]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)} cases are not as expected", *wrong])


@pytest.mark.parametrize("part", range(PARTS))
def test_sample(part: int):
    check(sample()[part::PARTS])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(SOAK_PARTS))
def test_all(part: int):
    check(names()[part::SOAK_PARTS])


def test_expected_failures_are_few_and_exist():
    assert set(EXPECTED) <= set(cases())
    assert len(EXPECTED) <= 0.05 * len(cases())
