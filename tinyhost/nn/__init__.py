"""Layers, optimizers, schedules and model files.

A layer is an object that holds parameters as plain attributes (found by ``nn.state``) and maps tensors to tensors.
Initial values follow torch: uniform in +-1/sqrt(fan in). Layers that behave differently in training read the context
variable TRAINING.
"""
from tinyhost.nn import optim, schedule, state
from tinyhost.nn.layers import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, Embedding, Linear, LSTMCell
from tinyhost.nn.norm import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)

__all__ = [
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm2d",
    "Linear",
    "RMSNorm",
    "optim",
    "schedule",
    "state",
]
