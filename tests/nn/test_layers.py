"""Every layer against torch: values, gradients of input and parameters, what training changes, and bad arguments."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tinyhost import Context, Tensor, nn
from tinyhost.errors import DTypeError, ShapeError

RNG = np.random.default_rng(0)


def data(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def copy_parameters(ours: Any, theirs: torch.nn.Module) -> None:
    """Give the torch layer our parameters; names are the same."""
    state = nn.state.get_state_dict(ours)
    assert set(state) == set(theirs.state_dict()), (sorted(state), sorted(theirs.state_dict()))
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in state.items()})


def close(ours: Tensor, theirs: torch.Tensor, tol: float = 2e-5) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=tol, atol=tol)


def first(x: Any) -> Any:
    return x[0] if isinstance(x, tuple) else x


LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (4, 5)),
    "linear-3d": (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (2, 4, 5)),
    "linear-no-bias": (lambda: nn.Linear(5, 3, bias=False), lambda: torch.nn.Linear(5, 3, bias=False), (4, 5)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), lambda: torch.nn.Conv2d(3, 4, 3), (2, 3, 7, 6)),
    "conv2d-strided": (
        lambda: nn.Conv2d(2, 4, (3, 2), stride=2, padding=(1, 2)),
        lambda: torch.nn.Conv2d(2, 4, (3, 2), stride=2, padding=(1, 2)),
        (2, 2, 8, 7),
    ),
    "conv2d-groups": (
        lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False),
        lambda: torch.nn.Conv2d(4, 6, 3, groups=2, bias=False),
        (1, 4, 5, 5),
    ),
    "conv2d-dilated": (
        lambda: nn.Conv2d(2, 2, 3, dilation=2, padding=2),
        lambda: torch.nn.Conv2d(2, 2, 3, dilation=2, padding=2),
        (1, 2, 7, 7),
    ),
    "conv2d-same": (
        lambda: nn.Conv2d(2, 3, (3, 5), padding="same"),
        lambda: torch.nn.Conv2d(2, 3, (3, 5), padding="same"),
        (1, 2, 6, 5),
    ),
    "conv2d-valid": (lambda: nn.Conv2d(2, 3, 3, padding="valid"), lambda: torch.nn.Conv2d(2, 3, 3), (1, 2, 6, 5)),
    "conv1d": (
        lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1),
        lambda: torch.nn.Conv1d(3, 4, 3, stride=2, padding=1),
        (2, 3, 9),
    ),
    "conv1d-same": (
        lambda: nn.Conv1d(2, 4, 5, padding="same"),
        lambda: torch.nn.Conv1d(2, 4, 5, padding="same"),
        (2, 2, 9),
    ),
    "conv3d": (lambda: nn.Conv2d(2, 3, (2, 2, 2)), lambda: torch.nn.Conv3d(2, 3, (2, 2, 2)), (1, 2, 4, 3, 4)),
    "conv-transpose2d": (
        lambda: nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1),
        lambda: torch.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1),
        (2, 3, 4, 5),
    ),
    "conv-transpose2d-groups": (
        lambda: nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=2),
        lambda: torch.nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=2),
        (1, 4, 4, 3),
    ),
    "conv-transpose1d": (
        lambda: nn.ConvTranspose1d(3, 2, 3, stride=2),
        lambda: torch.nn.ConvTranspose1d(3, 2, 3, stride=2),
        (2, 3, 6),
    ),
    "groupnorm": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (3, 6, 4, 2)),
    "groupnorm-plain": (
        lambda: nn.GroupNorm(3, 6, affine=False),
        lambda: torch.nn.GroupNorm(3, 6, affine=False),
        (2, 6, 5),
    ),
    "instancenorm": (lambda: nn.InstanceNorm(3), lambda: torch.nn.GroupNorm(3, 3), (2, 3, 4, 5)),
    "layernorm": (lambda: nn.LayerNorm(6), lambda: torch.nn.LayerNorm(6), (3, 4, 6)),
    "layernorm-2axes": (
        lambda: nn.LayerNorm((4, 6), eps=1e-3),
        lambda: torch.nn.LayerNorm((4, 6), eps=1e-3),
        (3, 4, 6),
    ),
    "layernorm-plain": (
        lambda: nn.LayerNorm(6, elementwise_affine=False),
        lambda: torch.nn.LayerNorm(6, elementwise_affine=False),
        (2, 6),
    ),
    "rmsnorm": (lambda: nn.RMSNorm(6), lambda: torch.nn.RMSNorm(6, eps=1e-6), (3, 4, 6)),
    "rmsnorm-plain": (
        lambda: nn.RMSNorm(6, elementwise_affine=False),
        lambda: torch.nn.RMSNorm(6, eps=1e-6, elementwise_affine=False),
        (3, 6),
    ),
    "lstmcell": (lambda: nn.LSTMCell(4, 5), lambda: torch.nn.LSTMCell(4, 5), (3, 4)),
    "lstmcell-no-bias": (lambda: nn.LSTMCell(4, 5, bias=False), lambda: torch.nn.LSTMCell(4, 5, bias=False), (3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_value_and_gradients(name: str):
    make, make_torch, shape = LAYERS[name]
    layer, reference = make(), make_torch()
    for t in nn.state.get_parameters(layer):  # ones and zeros of norm layers hide mistakes
        t.assign(Tensor(data(*t.shape))).realize()
    copy_parameters(layer, reference)
    x = data(*shape)
    ours, theirs = Tensor(x).is_param_(), torch.tensor(x, requires_grad=True)
    out, want = first(layer(ours)), first(reference(theirs))
    weight = data(*want.shape)
    (out * Tensor(weight)).sum().backward()
    (want * torch.tensor(weight)).sum().backward()
    close(out, want)
    close(ours.grad, theirs.grad, 1e-4)
    grads = {k: v.grad for k, v in reference.named_parameters()}
    for key, t in nn.state.get_state_dict(layer).items():
        close(t.grad, grads[key], 1e-4)


def test_lstm_cell_takes_its_state():
    layer, reference = nn.LSTMCell(3, 4), torch.nn.LSTMCell(3, 4)
    copy_parameters(layer, reference)
    ours, theirs = None, None
    for _ in range(3):
        x = data(2, 3)
        ours, theirs = layer(Tensor(x), ours), reference(torch.tensor(x), theirs)
        for a, b in zip(ours, theirs):
            close(a, b)


def test_layernorm2d_is_layernorm_over_channels():
    layer, reference = nn.LayerNorm2d(3), torch.nn.LayerNorm(3)
    x = data(2, 3, 4, 5)
    close(layer(Tensor(x)), reference(torch.tensor(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))


def test_rmsnorm_of_half_is_computed_in_float():
    x = np.full((1, 8), 300.0, np.float16)  # squares overflow half
    assert np.allclose(nn.RMSNorm(8)(Tensor(x)).numpy(), 1.0)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_embedding(dtype: str):
    layer = nn.Embedding(10, 4)
    weight, idx = layer.weight.numpy(), np.array([[1, 9], [0, 1]])
    reference = torch.nn.Embedding(10, 4, _weight=torch.tensor(weight))
    out, want = layer(Tensor(idx.astype(dtype))), reference(torch.tensor(idx))
    out.square().sum().backward()
    want.square().sum().backward()
    close(out, want)
    close(layer.weight.grad, reference.weight.grad)


# *** batch norm ***
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (4, 3, 5, 2), (2, 3, 2, 2, 3)])
@pytest.mark.parametrize("affine", [True, False])
def test_batchnorm_over_steps(shape: tuple[int, ...], affine: bool):
    layer = nn.BatchNorm(3, eps=1e-3, affine=affine, momentum=0.3)
    kinds = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}
    kind = kinds[len(shape)]
    reference = kind(3, eps=1e-3, affine=affine, momentum=0.3)
    if affine:
        layer.weight.assign(Tensor(data(3))), layer.bias.assign(Tensor(data(3)))
    copy_parameters(layer, reference)
    for step in range(4):
        x = data(*shape) * 3 + step
        ours, theirs = Tensor(x).is_param_(), torch.tensor(x, requires_grad=True)
        with Context(TRAINING=1):
            out, want = layer(ours), reference(theirs)
            weight = data(*shape)
            (out * Tensor(weight)).sum().backward()
            (want * torch.tensor(weight)).sum().backward()
        close(out, want, 1e-4)
        close(ours.grad, theirs.grad, 2e-4)
        for key, value in reference.state_dict().items():
            close(nn.state.get_state_dict(layer)[key], value, 1e-4)
    reference.eval()
    x = data(*shape)
    close(layer(Tensor(x)), reference(torch.tensor(x)), 1e-4)
    for key, value in reference.state_dict().items():
        close(nn.state.get_state_dict(layer)[key], value, 1e-4)
    assert layer.num_batches_tracked.item() == 4


def test_batchnorm_without_running_statistics():
    layer = nn.BatchNorm(3, track_running_stats=False)
    reference = torch.nn.BatchNorm2d(3, track_running_stats=False)
    x = data(4, 3, 2, 2)
    close(layer(Tensor(x)), reference(torch.tensor(x)), 1e-4)
    with Context(TRAINING=1):
        close(layer(Tensor(x)), reference(torch.tensor(x)), 1e-4)
    assert set(nn.state.get_state_dict(layer)) == {"weight", "bias"}


def test_batchnorm_needs_two_values():
    layer = nn.BatchNorm(3)
    with Context(TRAINING=1), pytest.raises(ShapeError, match=r"more than one value a channel, got shape \(1, 3\): use "
                                                              r"a larger batch, or Context\(TRAINING=0\)"):
        layer(Tensor.ones(1, 3))
    assert layer(Tensor.ones(1, 3)).shape == (1, 3)


def test_batchnorm_statistics_move_when_nothing_reads_them():
    layer = nn.BatchNorm(2)
    with Context(TRAINING=1):
        for _ in range(3):
            layer(Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))).realize()
    assert layer.num_batches_tracked.item() == 3
    np.testing.assert_allclose(layer.running_mean.numpy(), np.array([2.0, 3.0]) * (1 - 0.9**3), rtol=1e-5)


# *** initial values and arguments ***
@pytest.mark.parametrize("make, fan_in", [(lambda: nn.Linear(50, 400), 50), (lambda: nn.Conv2d(6, 64, 5), 150),
                                          (lambda: nn.Conv1d(9, 100, 7),
                                           63), (lambda: nn.Conv2d(8, 64, 3, groups=4), 18)])
def test_initial_values_are_uniform(make: Callable[[], Any], fan_in: int):
    Tensor.manual_seed(3)
    layer = make()
    bound = fan_in**-0.5
    for values in (layer.weight.numpy(), layer.bias.numpy()):
        assert np.abs(values).max() <= bound
    assert np.abs(layer.weight.numpy()).max() > 0.98 * bound
    assert abs(layer.weight.numpy().mean()) < 0.05 * bound
    assert layer.weight.is_param and layer.bias.is_param


BAD = {
    "conv groups": (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError,
        "groups=2 must divide in_channels=3 and out_channels=4"),
    "conv padding name": (lambda: nn.Conv2d(1, 1, 3, padding="full"), ValueError,
                          "Invalid padding string 'full', only 'same' and 'valid' are supported"),
    "conv same strided": (lambda: nn.Conv2d(1, 1, 3, padding="same", stride=2), ValueError,
                          "padding='same' is not supported for strided convolutions, got stride=2"),
    "group norm": (lambda: nn.GroupNorm(4, 6), ValueError, "num_groups=4 must divide num_channels=6"),
    "layer norm shape": (lambda: nn.LayerNorm(5)(Tensor.ones(2, 4)), ShapeError,
        r"last dimensions of \(2, 4\) must match \(5,\)"),
    "embedding dtype": (lambda: nn.Embedding(3, 2)(Tensor([0.0, 1.0])), DTypeError,
                        "Expected integer dtype for index in embedding, got dtypes.float"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name: str):
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


def test_linear_of_a_wrong_size_names_both():
    with pytest.raises((ValueError, IndexError), match=r"3.*4|4.*3"):
        nn.Linear(4, 2)(Tensor.ones(5, 3)).realize()


def test_attention_dropout_acts_in_training_only():
    q = Tensor(data(1, 2, 4, 8))
    plain = q.scaled_dot_product_attention(q, q)
    close(q.scaled_dot_product_attention(q, q, dropout_p=1.0), torch.tensor(plain.numpy()))
    with Context(TRAINING=1):
        assert not q.scaled_dot_product_attention(q, q, dropout_p=1.0).numpy().any()
        Tensor.manual_seed(1)
        some = q.scaled_dot_product_attention(q, q, dropout_p=0.5).numpy()
    assert some.any() and not np.allclose(some, plain.numpy())
