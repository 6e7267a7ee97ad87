"""Levels, features and refusals of the X86 back end."""

from __future__ import annotations

import pickle

import pytest

from tinyhost.dtype import dtypes
from tinyhost.errors import RendererUnavailable, TargetError
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost_cpu.x86 import caps
from tinyhost_cpu.x86.renderer import X86Renderer


def test_levels_contain_each_other() -> None:
    names = list(caps.LEVELS)
    for low, high in zip(names, names[1:]):
        assert caps.level_features(low) < caps.level_features(high)
    assert {"avx2", "fma", "sse2"} <= caps.level_features("x86-64-v3")


def test_arch_grammar() -> None:
    assert caps.parse_arch("x86-64-v3") == caps.level_features("x86-64-v3")
    assert "fma" not in caps.parse_arch("x86-64-v3,-fma")
    assert "gfni" in caps.parse_arch("x86-64-v3,+gfni,-movbe")
    assert caps.parse_arch("") == caps.host_features() == caps.parse_arch("native")
    with pytest.raises(TargetError, match=r"unknown x86 level 'v9' in arch 'v9'; levels are x86-64, x86-64-v2"):
        caps.parse_arch("v9")
    with pytest.raises(TargetError, match=r"feature 'fma' in arch 'x86-64-v3,fma' has no sign; write level,\+feature"):
        caps.parse_arch("x86-64-v3,fma")


def test_a_machine_without_avx2_is_told_so() -> None:
    with pytest.raises(
        RendererUnavailable, match=r"needs x86-64-v3, but arch 'x86-64-v2' lacks avx, avx2, bmi2, f16c, fma"
    ):
        X86Renderer(Target("CPU", "X86", "x86-64-v2"))
    with pytest.raises(RendererUnavailable, match=r"lacks fma; use CPU:LLVM or CPU:CLANG"):
        X86Renderer(Target("CPU", "X86", "x86-64-v3,-fma"))


def test_another_architecture_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    caps.host_features.cache_clear()
    monkeypatch.setattr(caps.platform, "machine", lambda: "aarch64")
    try:
        assert caps.host_features() == frozenset() and caps.host_level() == ""
        with pytest.raises(RendererUnavailable, match="but this processor lacks avx"):
            caps.capabilities("")
    finally:
        caps.host_features.cache_clear()


def test_renderer_is_its_target() -> None:
    renderer = X86Renderer(Target("CPU", "X86", "x86-64-v3"))
    again = pickle.loads(pickle.dumps(renderer))
    assert again.target == renderer.target and again.caps.vector_bytes == 32 and again.caps.fma


def test_v4_has_wider_registers_and_more_of_them() -> None:
    """All five features of the level, or none of its code."""
    r = X86Renderer(Target("CPU", "X86", "x86-64-v4"))
    assert (r.caps.vector_bytes, r.caps.vector_registers, r.caps.masked) == (64, 32, True)
    assert [len(c.order) for c in r.env.classes] == [15, 32, 7]
    less = X86Renderer(Target("CPU", "X86", "x86-64-v4,-avx512dq"))
    assert (less.caps.vector_bytes, less.caps.vector_registers, less.level.evex) == (32, 16, False)
    assert [len(c.order) for c in less.env.classes] == [15, 16]


def test_what_exists_at_v4() -> None:
    r = X86Renderer(Target("CPU", "X86", "x86-64-v4"))
    assert r.supports(Ops.ADD, dtypes.float32, 16) and not r.supports(Ops.ADD, dtypes.float32, 32)
    assert r.supports(Ops.ADD, dtypes.float16, 16) and not r.supports(Ops.ADD, dtypes.float16, 32)
    assert r.supports(Ops.XOR, dtypes.bool, 64) and r.supports(Ops.MAX, dtypes.int8, 64)
    assert r.supports_cast(dtypes.int64, dtypes.float64, 8) and r.supports_cast(dtypes.float32, dtypes.uint64, 8)
    assert not r.supports_cast(dtypes.float32, dtypes.float64, 16)
    assert not r.supports_cast(dtypes.bool, dtypes.int32, 32)


def test_the_default_arch_names_what_is_used_beyond_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the key of a program on disk differs where a processor lacks the feature."""
    v4 = caps.level_features("x86-64-v4")
    for features, want in (
        (v4 | {"avx512vbmi", "avx512_vnni"}, "x86-64-v4,+avx512vbmi"),
        (v4, "x86-64-v4"),
        (caps.level_features("x86-64-v3") | {"avx512vbmi"}, "x86-64-v3"),
    ):
        monkeypatch.setattr(caps, "host_features", lambda features=features: features)
        assert caps.host_arch() == want
        assert caps.level_of(caps.parse_arch(want)).byte_permutes == ("vbmi" in want)


def test_what_exists() -> None:
    r = X86Renderer(Target("CPU", "X86", "x86-64-v3"))
    assert r.supports(Ops.ADD, dtypes.float32, 8) and not r.supports(Ops.ADD, dtypes.float32, 16)
    assert r.supports(Ops.MUL, dtypes.int64, 4) and not r.supports(Ops.CDIV, dtypes.int32, 8)
    assert r.supports(Ops.CDIV, dtypes.int32) and not r.supports(Ops.SIN, dtypes.float32)
    assert r.supports(Ops.SHL, dtypes.int32, 8) and r.supports(Ops.SHL, dtypes.int8, 16)
    assert not r.supports(Ops.AND, dtypes.float32) and not r.supports(Ops.ADD, dtypes.fp8e4m3)
    assert r.supports_cast(dtypes.float32, dtypes.int8, 8) and not r.supports_cast(dtypes.int64, dtypes.float64, 4)
    assert not r.supports_cast(dtypes.float32, dtypes.float64, 8)
