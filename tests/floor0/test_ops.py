"""Enumerations of the IR: read as plain attributes, and enumerations all the same."""
from __future__ import annotations

import copy
import pickle
import sys
from enum import Enum, EnumType

import pytest

from tinyhost.ops import AddrSpace, AxisType, FastEnum, Ops, direct
from tinyhost.uop.kernel_info import OptOps

ENUMERATIONS = [Ops, AxisType, AddrSpace, OptOps]


@pytest.mark.parametrize("cls", ENUMERATIONS)
def test_nothing_stands_between_a_class_and_its_members(cls: type[Enum]):
    assert not hasattr(type(cls), "__getattr__")
    assert (type(cls) is EnumType) == (sys.version_info >= (3, 12))


@pytest.mark.parametrize("cls", ENUMERATIONS)
def test_they_are_enumerations(cls: type[Enum]):
    members = list(cls)
    assert len(members) == len(cls) == len(cls.__members__) and list(reversed(cls)) == members[::-1]
    for m in members:
        assert isinstance(m, cls) and m in cls and cls(m.value) is m and cls[m.name] is m
        assert getattr(cls, m.name) is m and cls.__members__[m.name] is m
        assert pickle.loads(pickle.dumps(m)) is m and copy.deepcopy(m) is m
        assert repr(m) == f"{cls.__name__}.{m.name}"
    assert repr(cls).startswith("<enum") or repr(cls).startswith("<class")
    with pytest.raises(ValueError, match="is not a valid"):
        cls(-1)
    with pytest.raises(AttributeError):
        cls.NO_SUCH_MEMBER  # noqa: B018
    with pytest.raises(KeyError):
        cls["NO_SUCH_MEMBER"]


def test_a_new_enumeration_may_be_direct():
    @direct
    class Color(FastEnum):
        RED = 1
        BLUE = 2
    assert [str(c) for c in Color] == ["Color.RED", "Color.BLUE"] and Color(2) is Color.BLUE and {Color.RED: 1}[1] == 1
