"""The tree drawn at the top of errors.py is the tree of its classes."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from tinyhost import errors
from tinyhost.errors import TinyhostError, TinyhostWarning

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, (TinyhostError, TinyhostWarning))]


def drawn() -> dict[str, tuple[str | None, set[str]]]:
    """Class -> (the class it hangs on, the names in its brackets)."""
    out: dict[str, tuple[str | None, set[str]]] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        m = re.match(r"^(    +(?:[|`]-- )?)(\w+)(?:\(([\w, ]+)\))?(?:\s|$)", line.replace("|   ", "    "))
        if m is None:
            continue
        depth = len(m[1])
        while path and path[-1][0] >= depth:
            path.pop()
        out[m[2]] = (path[-1][1] if path else None, {n.strip() for n in (m[3] or "").split(",") if n})
        path.append((depth, m[2]))
    return out


def test_the_tree_is_complete_and_true() -> None:
    tree = drawn()
    assert set(tree) == {c.__name__ for c in CLASSES}
    for c in CLASSES:
        parent, others = tree[c.__name__]
        names = {b.__name__ for b in c.__bases__}
        assert names == others | ({parent} if parent else set()), c


@pytest.mark.parametrize(
    "kind", [c for c in CLASSES if issubclass(c, TinyhostError) and c is not TinyhostError], ids=lambda c: c.__name__
)
def test_each_error_is_of_a_builtin_kind_and_survives_pickling(kind: type[TinyhostError]) -> None:
    error = kind("what was asked")
    assert str(error) == "what was asked" and kind.__doc__
    assert any(b.__module__ == "builtins" and b not in (Exception, BaseException, object) for b in kind.__mro__)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)
