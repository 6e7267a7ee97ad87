"""Sharing is decided by capabilities, never by a device's name: the same device without host-visible memory copies."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import tinyhost.device
from tinyhost import Tensor
from tinyhost.device import Device
from tinyhost.errors import ExchangeError


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """No device shows its memory to the host."""
    known = tinyhost.device.caps_of
    monkeypatch.setattr(tinyhost.device, "caps_of", lambda device: replace(known(device), host_visible=False))


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_hidden_memory_is_copied(hidden: None, device: str) -> None:
    x = Tensor([1.0, 2.0], device=device).contiguous().realize()
    a = torch.from_dlpack(x)
    a[0] = 9
    assert np.from_dlpack(x).flags.writeable and x.data().tolist() == x.tolist() == [1, 2]
    with pytest.raises(ExchangeError, match="cannot be exported without a copy"):
        x.__dlpack__(copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, copy=False)
    source = torch.ones(2)
    y = Tensor.from_dlpack(source, device=device)
    source[0] = 3
    assert y.tolist() == [1, 1]
    with pytest.raises(ExchangeError, match="cannot be shared with"):
        Tensor.from_dlpack(source, device=device, copy=False)


def test_a_device_that_takes_no_foreign_memory_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(Device["CPU"].allocator), "foreign", False)
    source = torch.ones(2)
    y = Tensor.from_dlpack(source, device="CPU")
    source[0] = 3
    assert y.tolist() == [1, 1]
    with pytest.raises(ExchangeError, match="cannot be shared with CPU"):
        Tensor.from_dlpack(source, device="CPU", copy=False)
