"""The assembled rule sets.

``symbolic_simple``: folding and identities, legal on any graph. ``symbolic``: also canonical sums, products and
comparisons of index math. ``sym``: also division, gates and memory. Each contains the one before; all settle.
"""
from __future__ import annotations

from tinyhost.uop.rules.divmod import pm_divmod
from tinyhost.uop.rules.fold import pm_fold
from tinyhost.uop.rules.invalid import pm_invalid, pm_memory_of_nowhere
from tinyhost.uop.rules.linear import pm_linear

symbolic_simple = pm_invalid + pm_fold
symbolic = symbolic_simple + pm_linear + pm_divmod
sym = symbolic + pm_memory_of_nowhere
