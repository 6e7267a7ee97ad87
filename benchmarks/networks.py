"""The networks of the examples as benchmarks run them: the modules, and one captured training step of the digits."""
from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

from tinyhost import Context, Tensor, TinyJit, nn

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digits_step(width: int = 32) -> tuple[Any, Any]:
    """Model of examples/train_mnist.py and a captured Adam step of it: (images, labels) to the loss."""
    model = example("train_mnist").Model(width)
    opt = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = model(x).sparse_categorical_crossentropy(y).backward()
            return loss.realize(*opt.schedule_step())
    return model, step
