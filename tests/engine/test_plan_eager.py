"""Memory of values inside of one graph: it ends with the last step that uses them, unless a tensor shows them."""
from __future__ import annotations

import gc

import numpy as np
import pytest

from tinyhost import Context, GlobalCounters, Tensor, nn
from tinyhost.device import Buffer

SIZE = 1 << 16
LARGE = 4 * SIZE


@pytest.fixture
def most_used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes in use after each allocation, above those at the first look."""
    gc.collect()
    before, seen, allocate = GlobalCounters.mem_used, [0], Buffer.allocate

    def counted(self: Buffer, *args: object, **kwargs: object) -> Buffer:
        out = allocate(self, *args, **kwargs)  # type: ignore[arg-type]
        seen.append(GlobalCounters.mem_used - before)
        return out
    monkeypatch.setattr(Buffer, "allocate", counted)
    return seen


def test_stored_values_in_a_chain_take_two(most_used: list[int]):
    y = x = Tensor(np.arange(SIZE, dtype=np.float32)).realize()
    want = x.numpy()
    for i in range(8):
        y = (y * 2 + i).contiguous()
        want = want * 2 + i
    y.realize()
    assert y.numpy().tobytes() == want.tobytes()
    assert max(most_used) <= 3 * LARGE + 4096  # the input, and two


def test_a_value_that_a_tensor_shows_stays(most_used: list[int]):
    x = Tensor(np.arange(SIZE, dtype=np.float32)).realize()
    shown = (x * 2 + 1).contiguous()
    part = (shown + 1).contiguous()[5:9]
    lazy = (shown * 3).contiguous().sum() + 1
    y = ((shown - 4).contiguous() + part.sum()).contiguous()
    y.realize()
    kernels = GlobalCounters.kernel_count
    assert (shown.numpy() == x.numpy() * 2 + 1).all() and part.tolist() == [12.0, 14.0, 16.0, 18.0]
    assert GlobalCounters.kernel_count == kernels, "both were computed with the rest"
    assert lazy.item() == pytest.approx(float((x.numpy().astype(np.float64) * 2 + 1).sum() * 3 + 1))
    assert (y.numpy() == x.numpy() * 2 + 1 - 4 + 60).all()


def test_new_values_of_optimizer_state_do_not_all_live_at_once(most_used: list[int]):
    weights = [Tensor(np.ones(SIZE, np.float32)).realize() for _ in range(4)]
    opt = nn.optim.AdamW(weights, lr=1e-3)
    for _ in range(3):
        with Context(TRAINING=1):
            opt.zero_grad()
            sum((w * w).sum() for w in weights).backward()
            opt.step()
    # weights, gradients, two moments; and what one weight needs
    assert max(most_used) <= 4 * 4 * LARGE + 4 * LARGE
