"""The peers that are installed, and what it takes to time them fairly.

Each function gives callables that do the whole work when called and wait for it. A peer that is not installed, or that
has no compiler to work with, is left out: rows then have fewer contenders. Peers come with ``pip install
tinyhost[bench]``; all run with as many threads as ours.
"""
from __future__ import annotations

import functools
import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyhost import Device, Tensor, TinyJit

Run = Callable[[], object]
THREADS = int(os.environ.get("NUM_CPU_THREADS") or 0) or len(os.sched_getaffinity(0))
WANTED = set(filter(None, os.environ.get("BENCH_PEERS", "numpy,torch,torch.compile,jax,onnxruntime").split(",")))


def has(name: str) -> bool:
    """Whether a peer is installed and wanted (BENCH_PEERS lists those that are; default all)."""
    return name in WANTED and importlib.util.find_spec(name.partition(".")[0]) is not None


@functools.cache
def torch_module() -> Any:
    """torch, held to the threads we use."""
    import torch
    torch.set_num_threads(THREADS)
    return torch


def torch_runs(name: str, fn: Callable[..., Any], *arrays: np.ndarray, grad: bool = False) -> dict[str, Run]:
    """``fn`` over tensors of the arrays, eager and compiled."""
    if not has("torch"):
        return {}
    torch = torch_module()
    args = [torch.from_numpy(a) for a in arrays]

    def eager() -> object:
        with torch.set_grad_enabled(grad):
            return fn(*args)
    runs: dict[str, Run] = {"torch" + name: eager}
    if has("torch.compile") and shutil.which("g++"):
        compiled = torch.compile(fn)

        def fused() -> object:
            with torch.set_grad_enabled(grad):
                return compiled(*args)
        runs["torch.compile" + name] = fused
    return runs


def jax_runs(fn: Callable[..., Any], *arrays: np.ndarray) -> dict[str, Run]:
    """``fn`` (of jax.numpy arrays) compiled by jax."""
    if not has("jax"):
        return {}
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    args = [jax.device_put(a) for a in arrays]
    compiled = jax.jit(fn)
    return {"jax": lambda: jax.block_until_ready(compiled(*args))}


def numpy_run(fn: Callable[[], object]) -> dict[str, Run]:
    """``fn`` as numpy's entry."""
    return {"numpy": fn} if has("numpy") else {}


def captured(fn: Callable[..., Tensor], *arrays: np.ndarray) -> Run:
    """What ``fn`` computes on tensors of the arrays, captured and replayed; the run waits for the result."""
    args = [Tensor(a).clone().realize() for a in arrays]
    step = TinyJit(lambda *xs: fn(*xs).realize())
    for _ in range(3):
        step(*args)
    device = Device[Device.DEFAULT]

    def run() -> object:
        out = step(*args)
        device.synchronize()
        return out
    return run


def arrays(*shapes: Sequence[int], seed: int = 0) -> list[np.ndarray]:
    """Normal float32 arrays of the shapes."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(tuple(s), dtype=np.float32) for s in shapes]
