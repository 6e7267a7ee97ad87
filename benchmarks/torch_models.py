"""The networks of `models.py` as a torch user writes them; attributes are named as ours, so that state dicts fit."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STAGES = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
          (6, 3, 1, 320, 1)]


class Digits(nn.Module):
    """The network of examples/train_mnist.py."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, width, 5), nn.Conv2d(width, width, 5)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv3, self.conv4 = nn.Conv2d(width, 2 * width, 3), nn.Conv2d(2 * width, 2 * width, 3)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.out = nn.Linear(2 * width * 9, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.norm1(F.relu(self.conv2(F.relu(self.conv1(x))))), 2)
        x = F.max_pool2d(self.norm2(F.relu(self.conv4(F.relu(self.conv3(x))))), 2)
        return self.out(x.flatten(1))


def same(x: Tensor, kernel: int, stride: int) -> Tensor:
    """``x`` with zeros around it, so that a convolution gives ceil(size / stride); the odd one goes behind."""
    total = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in x.shape[2:]]
    return F.pad(x, (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2))


class Block(nn.Module):
    """A block of EfficientNet."""

    def __init__(self, expansion: int, kernel: int, stride: int, inputs: int, outputs: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.kernel, self.stride, self.residual = kernel, stride, stride == 1 and inputs == outputs
        self.expanded = expansion > 1
        if self.expanded:
            self._expand_conv, self._bn0 = nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide, eps=1e-3)
        self._depthwise_conv = nn.Conv2d(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, eps=1e-3)
        self._project_conv, self._bn2 = nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expanded else x
        y = F.relu6(self._bn1(self._depthwise_conv(same(y, self.kernel, self.stride))))
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite0(nn.Module):
    """The network of examples/efficientnet_lite0.py."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = nn.Conv2d(3, 32, 3, 2, bias=False), nn.BatchNorm2d(32, eps=1e-3)
        blocks, inputs = [], 32
        for expansion, kernel, stride, outputs, repeats in STAGES:
            for i in range(repeats):
                blocks.append(Block(expansion, kernel, stride if i == 0 else 1, inputs, outputs))
                inputs = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280, eps=1e-3)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self._bn0(self._conv_stem(same(x, 3, 2))))
        for block in self._blocks:
            x = block(x)
        return self._fc(F.relu6(self._bn1(self._conv_head(x))).mean((2, 3)))


class Attention(nn.Module):
    """Attention of every token to all tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n, t, width = x.shape
        q, k, v = (f(x).reshape(n, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(n, t, width)


class EncoderLayer(nn.Module):
    """A layer that normalises first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = Attention(width, heads), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self.attention(self.norm1(x)))
        return x + self.outer(F.gelu(self.inner(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    """Layers in a row."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(width, heads) for _ in range(layers)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Residual(nn.Module):
    """A linear layer whose result is added to what came before, then normalised."""

    def __init__(self, inputs: int, width: int, eps: float) -> None:
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(inputs, width), nn.LayerNorm(width, eps=eps)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x) + before)


class BertLayer(nn.Module):
    """A layer of MiniLM."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.attention = nn.ModuleDict({"self": Attention(width, config["num_attention_heads"]),
                                        "output": Residual(width, width, eps)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = Residual(inner, width, eps)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(F.gelu(self.intermediate["dense"](x)), x)


class Embeddings(nn.Module):
    """Sum of the embeddings of word, position and type."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], width)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], width)
        self.LayerNorm = nn.LayerNorm(width, eps=config["layer_norm_eps"])

    def forward(self, ids: Tensor) -> Tensor:
        places = self.position_embeddings.weight[:ids.shape[1]]
        found = self.word_embeddings(ids) + places + self.token_type_embeddings.weight[0]
        return self.LayerNorm(found)


class MiniLM(nn.Module):
    """The encoder of examples/minilm.py; gives the embeddings of sentences."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList([BertLayer(config) for _ in range(config["num_hidden_layers"])])})

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.embeddings(ids)
        for layer in self.encoder["layer"]:
            x = layer(x, mask[:, None, None, :])
        there = mask.float().unsqueeze(-1)
        return F.normalize((x * there).sum(1) / there.sum(1))


def training_step(model: Digits, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> Tensor:
    """Forward, backward, one step of the optimizer; the loss."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


__all__ = ["Digits", "EfficientNetLite0", "MiniLM", "Transformer", "training_step"]
