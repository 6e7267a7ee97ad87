"""The DEV grammar: what parses, what its canonical text is, and what each malformed string is told."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhost.errors import TargetError
from tinyhost.target import Target, format_targets, parse_targets


@pytest.mark.parametrize(
    "text, fields",
    [
        ("amd", {"device": "AMD"}),
        ("AMD:llvm", {"device": "AMD", "renderer": "LLVM"}),
        ("AMD::gfx1100", {"device": "AMD", "arch": "gfx1100"}),
        (":llvm", {"renderer": "LLVM"}),
        ("MOCK+AMD::gfx942", {"device": "AMD", "interface": "MOCK", "arch": "gfx942"}),
        ("KFD:0,2+amd", {"device": "AMD", "interface": "KFD", "indices": "0,2"}),
        ("KFD:0-3+", {"interface": "KFD", "indices": "0-3"}),
        ("CPU:X86:x86-64-v3,+fma,-avx2", {"device": "CPU", "renderer": "X86", "arch": "x86-64-v3,+fma,-avx2"}),
        ("MOCK+CPU:X86:v3,+fma", {"device": "CPU", "renderer": "X86", "arch": "v3,+fma", "interface": "MOCK"}),
        ("AMD@Acme_amd:LLVM", {"device": "AMD", "renderer": "LLVM", "provider": "Acme_amd"}),
        ("NV?", {"device": "NV", "optional": True}),
        ("NULL:AMD.LLVM:gfx1100", {"device": "NULL", "renderer": "AMD.LLVM", "arch": "gfx1100"}),
        ("CL::IMAGE_PITCH_ALIGNMENT=64", {"device": "CL", "arch": "IMAGE_PITCH_ALIGNMENT=64"}),
        ("", {}),
    ],
)
def test_parse(text, fields):
    assert Target.parse(text) == Target(**fields)


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("amd", "AMD"),
        ("AMD:", "AMD"),
        ("AMD::", "AMD"),
        ("MOCK:+amd", "MOCK+AMD"),
        (" amd:llvm ", "AMD:LLVM"),
        ("amd?", "AMD?"),
    ],
)
def test_canonical_text(text, canonical):
    assert repr(Target.parse(text)) == str(Target.parse(text)) == canonical


NAMES = st.from_regex(r"[A-Z][A-Z0-9_.-]{0,6}", fullmatch=True)
ARCHES = st.from_regex(r"([a-z0-9_-]{1,8}(,[+-][a-z0-9]{1,4}){0,2})?", fullmatch=True)


@given(
    st.lists(
        st.builds(
            Target,
            device=NAMES,
            renderer=st.just("") | NAMES,
            arch=ARCHES,
            interface=st.just("") | NAMES,
            provider=st.just("") | NAMES,
            optional=st.booleans(),
        ),
        max_size=3,
    )
)
def test_text_and_targets_agree(targets):
    assert parse_targets(format_targets(targets)) == targets


@pytest.mark.parametrize(
    "text, message",
    [
        ("A+B+C", "too many '+' in target string: 'A+B+C'"),
        ("A:B:C:D", "too many ':' in target string: 'A:B:C:D'"),
        ("AMD:1", "'1' is not a renderer name in target string: 'AMD:1'; in DEV, device numbers stand before '+'"),
        ("7", "'7' is not a device name in target string: '7'; in DEV, device numbers stand before '+'"),
        ("+AMD", "'+' without an interface in target string: '+AMD'; write INTERFACE+NAME"),
        ("@x", "'@' without a device in target string: '@x'; write NAME@distribution"),
        ("A@", "'@' without a distribution in target string: 'A@'; write NAME@distribution"),
        ("?", "'?' without a device in target string: '?'; it marks a named device as a preference"),
        ("A B", "white space or ';' in target string: 'A B'; ';' separates the targets of DEV"),
        ("A,B", "'A,B' is not a device name in target string: 'A,B'; names are letters"),
        ("KFD:x+AMD", "device numbers are '0,2' or '0-3', got 'x'"),
    ],
)
def test_malformed(text, message):
    for kind in (ValueError, RuntimeError, TargetError):
        with pytest.raises(kind) as e:
            Target.parse(text)
        assert message in str(e.value)


def test_list():
    assert list(map(str, parse_targets("nv?; cpu:x86 ;"))) == ["NV?", "CPU:X86"]


def test_replacedefault_fills_only_empty_fields():
    target = Target.parse("AMD:LLVM").replacedefault(renderer="HIP", arch="gfx1100", interface="KFD")
    assert repr(target) == "KFD+AMD:LLVM:gfx1100"


def test_index_list():
    assert Target.parse("KFD:0,2-3+AMD").index_list(4) == [0, 2, 3]
    assert Target.parse("AMD").index_list(2) == [0, 1]
    with pytest.raises(RuntimeError) as e:
        Target.parse("KFD:0,5+AMD").index_list(2)
    assert str(e.value) == "invalid visibility filter: [0, 5] (2 devices available)"


def test_frozen_hashable_picklable():
    target = Target.parse("KFD:0+AMD@x:LLVM:gfx1100?")
    assert pickle.loads(pickle.dumps(target)) == target and len({target, Target.parse(str(target))}) == 1
    with pytest.raises(AttributeError):
        target.device = "NV"
