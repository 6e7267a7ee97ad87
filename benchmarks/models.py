"""Whole networks on DEV=CPU beside torch, torch.compile and onnxruntime.

    DEV=CPU python benchmarks/models.py [NAME ...]

efficientnet (batch 1), minilm (1x128 tokens), transformer (forward, dim 256, 6 layers, 4x128 tokens), mnist (one Adam
step, batch 128) and first (the first step of a process, import left out, without and with a filled disk cache). Both
sides run the same weights, and results are compared before anything is timed.
"""
from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from rounds import fair_numpy, medians

fair_numpy()

import numpy as np  # noqa: E402
from networks import digits_step, example  # noqa: E402
from peers import Run, has, torch_module  # noqa: E402
from records import OURS, Record, show  # noqa: E402

from tinyhost import Device, Tensor, TinyJit, nn  # noqa: E402
from tinyhost.nn.state import get_state_dict  # noqa: E402

GROUP = "models"
GOAL = "<= the best peer"


# *** the same weights on both sides ***
def load_torch(theirs: Any, ours: Any) -> Any:
    """``theirs`` with the weights of ours, for inference."""
    torch = torch_module()
    state = {k: torch.from_numpy(v.numpy().copy()) for k, v in get_state_dict(ours).items()}
    missing, _ = theirs.load_state_dict(state, strict=False)
    assert all("num_batches_tracked" in k for k in missing), missing
    return theirs.eval()


def torch_inference(model: Any, *args: Any) -> dict[str, Run]:
    """Eager, compiled, and through onnxruntime."""
    torch = torch_module()

    def eager() -> object:
        with torch.inference_mode():
            return model(*args)
    runs: dict[str, Run] = {"torch": eager}
    if has("torch.compile"):
        compiled = torch.compile(model)

        def fused() -> object:
            with torch.inference_mode():
                return compiled(*args)
        runs["torch.compile"] = fused
    if has("onnxruntime"):
        runs["onnxruntime"] = onnxruntime_run(model, *args)
    return runs


def onnxruntime_run(model: Any, *args: Any) -> Run:
    """The model exported and run by onnxruntime."""
    import onnxruntime
    from peers import THREADS
    torch = torch_module()
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no further package is deprecated
        torch.onnx.export(model, args, file, dynamo=False, input_names=[f"x{i}" for i in range(len(args))])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    given = {f"x{i}": a.numpy() for i, a in enumerate(args)}
    return lambda: session.run(None, given)


def captured_model(call: Callable[..., Tensor], *args: Tensor) -> Run:
    """A captured forward pass."""
    step = TinyJit(lambda *xs: call(*xs).realize())
    for _ in range(3):
        step(*args)

    def run() -> object:
        out = step(*args)
        Device[Device.DEFAULT].synchronize()
        return out
    return run


def compare(name: str, runs: dict[str, Run], rounds: int, flops: float, tolerance: float) -> None:
    """Check that all agree, then time them."""
    want: np.ndarray | None = None
    for who, run in runs.items():
        out: Any = run()
        got = np.asarray(out[0] if isinstance(out, list) else out.numpy(), dtype=np.float64)
        want = got if want is None else want
        assert np.abs(got - want).max() <= tolerance * np.abs(want).max(), f"{name}: {who} differs"
    show(Record(GROUP, name, medians(runs, rounds), flops, goal=GOAL, share=1.0, rounds=rounds))


# *** the networks ***
def efficientnet(rounds: int) -> None:
    """EfficientNet-Lite0, one image."""
    ours = example("efficientnet_lite0").load_model()
    x = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32) * 2 - 1
    runs = {OURS: captured_model(ours, Tensor(x).clone().realize())}
    if has("torch"):
        from torch_models import EfficientNetLite0
        runs |= torch_inference(load_torch(EfficientNetLite0(), ours), torch_module().from_numpy(x))
    compare("EfficientNet-Lite0, batch 1", runs, rounds, 2 * 0.407e9, 1e-3)


def minilm(rounds: int) -> None:
    """all-MiniLM-L6-v2, one sentence of 128 tokens."""
    module = example("minilm")
    folder = module.model_folder()
    ours, config = module.load_model(folder), json.loads((folder / "config.json").read_text())
    ids = np.random.default_rng(0).integers(1000, 20000, (1, 128))
    mask = np.ones((1, 128), dtype=np.bool_)
    runs = {OURS: captured_model(ours, Tensor(ids).clone().realize(), Tensor(mask).clone().realize())}
    if has("torch"):
        from torch_models import MiniLM
        torch = torch_module()
        runs |= torch_inference(load_torch(MiniLM(config), ours), torch.from_numpy(ids), torch.from_numpy(mask))
    width, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    flops = layers * 2.0 * 128 * (4 * width * width + 2 * width * inner + 2 * 128 * width)
    compare("MiniLM, 1x128 tokens", runs, rounds, flops, 1e-3)


class EncoderLayer:
    """A layer that normalises first."""

    def __init__(self, width: int, heads: int) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = example("minilm").SelfAttention(width, heads)
        self.out, self.inner = nn.Linear(width, width), nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        """(N, T, width) to the same shape."""
        n, t, width = x.shape
        a, y = self.attention, self.norm1(x)
        q, k, v = (f(y).reshape(n, t, a.heads, -1).transpose(1, 2) for f in (a.query, a.key, a.value))
        x = x + self.out(q.scaled_dot_product_attention(k, v).transpose(1, 2).reshape(n, t, width))
        return x + self.outer(self.inner(self.norm2(x)).gelu())


class Transformer:
    """Layers in a row."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        self.layers = [EncoderLayer(width, heads) for _ in range(layers)]

    def __call__(self, x: Tensor) -> Tensor:
        """(N, T, width) to the same shape."""
        return x.sequential(self.layers)


def transformer(rounds: int) -> None:
    """Forward pass, dim 256, 8 heads, 6 layers, 4x128 tokens."""
    Tensor.manual_seed(0)
    ours = Transformer(256, 8, 6)
    Tensor.realize(*get_state_dict(ours).values())
    x = np.random.default_rng(0).standard_normal((4, 128, 256), dtype=np.float32)
    runs = {OURS: captured_model(ours, Tensor(x).clone().realize())}
    if has("torch"):
        from torch_models import Transformer as Theirs
        runs |= torch_inference(load_torch(Theirs(256, 8, 6), ours), torch_module().from_numpy(x))
    flops = 6 * 2.0 * 512 * (12 * 256 * 256 + 2 * 128 * 256)
    compare("transformer forward, dim 256, 6 layers, 4x128 tokens", runs, rounds, flops, 1e-3)


def mnist(rounds: int) -> None:
    """One Adam step at batch 128."""
    rng = np.random.default_rng(0)
    x, y = rng.random((128, 1, 28, 28), dtype=np.float32), rng.integers(0, 10, 128)
    model, step = digits_step()
    tx, ty = Tensor(x).clone().realize(), Tensor(y.astype(np.int32)).clone().realize()
    runs: dict[str, Run] = {}
    if has("torch"):
        from torch_models import Digits, training_step
        torch = torch_module()
        theirs = load_torch(Digits(32), model).train()
        opt = torch.optim.Adam(theirs.parameters(), lr=1e-3)
        images, labels = torch.from_numpy(x), torch.from_numpy(y)
        runs["torch"] = lambda: training_step(theirs, opt, images, labels).item()
    losses = [float(step(tx, ty).item()) for _ in range(3)]
    if has("torch"):
        expected = [runs["torch"]() for _ in range(3)]
        assert np.allclose(losses, expected, rtol=2e-2), f"losses {losses}, torch {expected}"
    runs = {OURS: lambda: step(tx, ty).item(), **runs}
    flops = 3 * 128 * 2.0 * (24**2 * 32 * 25 + 20**2 * 32 * 32 * 25 + 8**2 * 64 * 32 * 9 + 6**2 * 64 * 64 * 9)
    show(Record(GROUP, "MNIST step, batch 128", medians(runs, rounds), flops, goal=GOAL, share=1.0, rounds=rounds))


# *** the first step of a process ***
def first_step() -> float:
    """Seconds from here to the loss of the first step; import of the library is over."""
    import time
    x = np.random.default_rng(0).random((128, 1, 28, 28), dtype=np.float32)
    y = np.zeros(128, dtype=np.int32)
    start = time.perf_counter()
    _, step = digits_step()
    step(Tensor(x), Tensor(y)).item()
    return time.perf_counter() - start


def first(rounds: int) -> None:
    """The first step of a fresh process, with an empty and a filled disk cache."""
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for found in times.values():
                env = {**os.environ, "CACHEDIR": os.path.join(folder, "cache")}
                out = subprocess.run([sys.executable, __file__, "--first"], env=env, capture_output=True, text=True,
                                     check=True)
                found.append(float(out.stdout))
    for name, limit in (("cold", 1.5), ("warm", 0.3)):
        title = f"MNIST step, batch 128, first of a process, {'empty' if name == 'cold' else 'filled'} disk cache"
        show(Record(GROUP, title, {OURS: statistics.median(times[name])}, goal=f"<= {limit * 1e3:.0f} ms", limit=limit,
                    rounds=rounds))


ROWS: dict[str, Callable[[int], None]] = {"efficientnet": efficientnet, "minilm": minilm, "transformer": transformer,
                                          "mnist": mnist, "first": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", nargs="*", help=f"some of {', '.join(ROWS)}; all by default")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.first:
        print(first_step())
        return
    unknown = sorted(set(args.rows) - set(ROWS))
    if unknown:
        parser.error(f"no row named {', '.join(unknown)}: there are {', '.join(ROWS)}")
    for name in args.rows or ROWS:
        ROWS[name](args.rounds)


if __name__ == "__main__":
    main()
