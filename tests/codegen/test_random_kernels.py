"""Random kernels at random Opts or those of the hand rules, as machine code of each level, against the executable
definition without any Opt.

Bit-equal where no float sum is reordered, else within a bound of n eps. The allocation checker runs on every kernel.
"""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.codegen.random_tensors import program
from tinyhost import Context, _reset
from tinyhost.codegen import neighbours
from tinyhost.codegen import program as codegen_program
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.opt import apply_opt
from tinyhost.engine import program as engine_program
from tinyhost.errors import KernelOptError, RendererUnavailable
from tinyhost.target import Target
from tinyhost_cpu.x86.caps import check_features, host_features, level_features
from tinyhost_cpu.x86.renderer import X86Renderer

LEVELS = ("x86-64-v3", "x86-64-v4")
SAMPLE, BLOCK, ALL = 24, 50, 10_000


def randomly(rng: random.Random, k: Kernel) -> None:
    """Up to eight actions in place of the hand rules."""
    for _ in range(rng.randint(0, 8)):
        known = list(neighbours.actions(k))
        if not known:
            return
        try:
            apply_opt(k, rng.choice(known))
        except KernelOptError:
            continue


def check(seed: int, level: str) -> int:
    """One program; how many kernels it compiled."""
    p = program(seed)
    with Context(NOOPT=1):
        want = p.make("PYTHON").numpy()
    rng = random.Random(seed)
    renderer = X86Renderer(Target("CPU", "X86", level))
    renderer.checked = True
    with pytest.MonkeyPatch.context() as m, Context(CACHELEVEL=0):
        _reset.reset()  # programs of other seeds may have been made with other Opts
        if seed % 3:
            m.setattr(codegen_program, "hand_rules", lambda k: randomly(rng, k))
        m.setattr(engine_program, "renderer_of", lambda device: renderer)
        got = p.make("CPU").numpy()
        compiled = engine_program.counters.compiled
        _reset.reset()
    assert got.dtype == want.dtype and got.shape == want.shape
    if p.exact:
        same = np.array_equal(got, want, equal_nan=got.dtype.kind == "f")
        assert same, f"seed {seed}: differs at {np.argwhere(got != want)[:5].tolist()}"
    else:
        off = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0.0)
        assert off <= p.bound, f"seed {seed}: {off} is more than {p.bound}"
    return compiled


def needs(level: str) -> None:
    """Skip what this machine cannot run."""
    try:
        check_features(level)
    except RendererUnavailable as e:
        pytest.skip(str(e))
    if not level_features(level) <= host_features():
        pytest.skip(f"this processor is no {level}")


@pytest.mark.fuzz
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("block", range(4))
def test_random_kernels(block: int, level: str) -> None:
    needs(level)
    assert sum(check(seed, level) for seed in range(block * SAMPLE, (block + 1) * SAMPLE)) >= SAMPLE


@pytest.mark.soak
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("block", range(ALL // BLOCK))
def test_all_random_kernels(block: int, level: str) -> None:
    needs(level)
    for seed in range(100_000 + block * BLOCK, 100_000 + (block + 1) * BLOCK):
        check(seed, level)
