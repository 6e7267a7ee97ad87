"""The same program on one device in numpy and on 2 to 6 devices: the same elements."""
from __future__ import annotations

import numpy as np
import pytest

from tests.multi.devices import names
from tests.multi.programs import AXES, Program, X
from tinyhost import Context, Tensor

RNG = np.random.default_rng(7)
DATA = tuple(RNG.integers(-9, 10, X).astype(np.float32) for _ in range(2))


def check(program: Program, count: int, axes: tuple[int | None, int | None], realized: bool) -> None:
    """One program with its inputs split along ``axes``."""
    devices = names(count)

    def split(t: Tensor, axis: int | None) -> Tensor:
        return t.shard(devices, axis)
    x, y = (split(Tensor(d), a) for d, a in zip(DATA, axes))
    if realized:
        x.realize(y)
    got = program.run(x, y, split)
    want = np.asarray(program.ref(*DATA, lambda a, _: a))
    assert got.device == devices, got.device
    assert got.shape == want.shape
    result = got.numpy()
    assert result.dtype.kind == want.dtype.kind or want.dtype.kind == "f"
    np.testing.assert_array_equal(result, want)
    np.testing.assert_array_equal(got.realize().numpy(), want)  # stored on the devices, then read


SAMPLE = [(p, 2 + i % 5) for i, p in enumerate(AXES)]


@pytest.mark.parametrize("program, count", SAMPLE, ids=lambda v: getattr(v, "name", str(v)))
def test_split_along_rows(program: Program, count: int):
    check(program, count, (0, 0), realized=True)


@pytest.mark.parametrize("program", AXES[::3], ids=lambda p: p.name)
def test_split_along_columns_and_not_at_all(program: Program):
    check(program, 3, (1, None), realized=False)


UNEVEN = [(p, (7, 8)[i % 2], ((0, 0), (1, 0), (1, 1))[i % 3]) for i, p in enumerate(AXES)]


@pytest.mark.parametrize("program, count, axes", UNEVEN[::2], ids=lambda v: getattr(v, "name", str(v)))
def test_shards_of_unequal_length(program: Program, count: int, axes: tuple[int, int]):
    check(program, count, axes, realized=True)



@pytest.mark.soak
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("program", AXES, ids=lambda p: p.name)
def test_every_split(program: Program, count: int):
    for axes in [(0, 0), (0, 1), (1, 0), (1, 1), (None, 0), (None, None)]:
        for algorithm in ({"RING": 0}, {"RING": 2}, {"ALL2ALL": 2}):
            with Context(**algorithm):
                check(program, count, axes, realized=axes[0] == 0)
