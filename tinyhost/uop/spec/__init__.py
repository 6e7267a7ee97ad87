"""The grammar of the IR and its verifier; ``docs/spec.md`` is its printed form.

``grammar.py`` is the table, ``kinds.py`` its predicates, ``verify.py`` checks nodes, ``document.py`` prints.
"""
from tinyhost.uop.spec.verify import (
    Spec,
    spec_full,
    spec_hcq,
    spec_kernel_graph,
    spec_program,
    spec_shared,
    spec_tensor,
    type_verify,
    verify_node,
)

__all__ = ["Spec", "spec_full", "spec_hcq", "spec_kernel_graph", "spec_program", "spec_shared", "spec_tensor",
           "type_verify", "verify_node"]
