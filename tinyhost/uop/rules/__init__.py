"""Rewrite rules by theme, loaded when first used.

``fold`` literals and identities, ``linear`` sums and comparisons, ``divmod`` division, ``invalid`` gates, ``valid``
what a gate implies, ``weak`` width of weak dtypes, ``movement`` views, ``reduce_collapse`` sums with a closed form;
``rulesets`` assembles them. ``docs/writing-rules.md`` holds the rules for writing rules.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.uop.node import UOp

_LAZY = {
    "symbolic_simple": "rulesets", "symbolic": "rulesets", "sym": "rulesets",
    "pm_fold": "fold", "pm_structure": "fold", "pm_linear": "linear", "pm_divmod": "divmod", "pm_invalid": "invalid",
    "pm_valid": "valid", "sym_valid": "valid", "uop_given_valid": "valid", "simplify_valid": "valid",
    "pm_lower_weak": "weak", "pm_weak_floor": "weak", "lower_weak": "weak", "index_dtype": "weak",
    "pm_movement": "movement", "pm_reduce_collapse": "reduce_collapse",
}

__all__ = [
    "index_dtype", "lower_weak", "pm_divmod", "pm_fold", "pm_invalid", "pm_linear", "pm_lower_weak", "pm_movement",
    "pm_reduce_collapse", "pm_structure", "pm_valid", "pm_weak_floor", "simplify", "simplify_valid", "sym", "sym_valid",
    "symbolic", "symbolic_simple", "uop_given_valid"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(sorted(_LAZY))}")
    import importlib
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def simplify(u: "UOp") -> "UOp":
    """``u`` after the ``symbolic`` rules."""
    from tinyhost.uop.rewrite import graph_rewrite
    from tinyhost.uop.rules.rulesets import symbolic
    return graph_rewrite(u, symbolic, name="simplify")
