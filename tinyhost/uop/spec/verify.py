"""Checks nodes against the grammar.

Takes a list of nodes or a root and a ``Spec`` (a name and its stages), gives nothing or raises on the first node that
no form accepts. A spec is a set of stages; ``spec_shared`` holds what is legal both in tensor graphs and in programs.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinyhost.ops import Ops
from tinyhost.uop.spec.grammar import STAGES, Form, forms
from tinyhost.uop.spec.kinds import ARG_KINDS, CONDITIONS, source_ok

Node = Any


class Spec:
    """What is legal at one place of the pipeline: a node that is legal at any of ``some``, or at all of ``every``."""

    def __init__(self, name: str, some: str = "", every: str = "") -> None:
        self.name, self.stages, self.needed = name, some or every, len(every) or 1
        self._forms: dict[Ops, tuple[tuple[Form, str], ...]] | None = None

    def forms_of(self, op: Ops) -> tuple[tuple[Form, str], ...]:
        """The forms of ``op`` that may apply, each with the stage under which it is checked."""
        if self._forms is None:
            self._forms = {o: tuple([(f, stage) for stage in self.stages for f in fs if stage in f.stages])
                           for o, fs in forms().items()}
        return self._forms.get(op, ())

    def accepts(self, u: Node) -> bool:
        """Whether some form takes this node; its sources are looked at, not checked."""
        agreed = set()
        for form, stage in self.forms_of(u.op):
            if stage not in agreed and _why_not(u, form, stage) is None:
                agreed.add(stage)
                if len(agreed) == self.needed:
                    return True
        return False

    def __repr__(self) -> str:
        return self.name


spec_shared = Spec("spec_shared", every="TP")
spec_tensor = Spec("spec_tensor", some="T")
spec_kernel_graph = Spec("spec_kernel_graph", some="K")
spec_program = Spec("spec_program", some="P")
spec_hcq = Spec("spec_hcq", some="H")
spec_full = Spec("spec_full", some="".join(STAGES))


def _why_not(u: Node, form: Form, stage: str) -> str | None:
    """The reason why ``form`` does not take ``u``, None when it does."""
    if not ARG_KINDS[form.arg][0](u.arg):
        return f"the argument is not {ARG_KINDS[form.arg][1]}"
    src, pos = u.src, 0
    for want in form.src:
        if want.repeat == "*":
            for s in src[pos:]:
                if not source_ok(s, want.kind):
                    return f"{want.name} is {s.op} of {s.dtype}, not {want.kind}"
            pos = len(src)
        elif pos < len(src):
            if not source_ok(src[pos], want.kind):
                return f"{want.name} is {src[pos].op} of {src[pos].dtype}, not {want.kind}"
            pos += 1
        elif not want.repeat:
            return f"source {want.name} is missing"
    if pos < len(src):
        return f"{len(src)} sources, {pos} expected"
    for name in form.check.split():
        if not CONDITIONS[name][0](u, stage):
            return f"broken: {CONDITIONS[name][1]}"
    return None


def _dtype_of(u: Node) -> str:
    """Text of the dtype, or of the reason why there is none."""
    try:
        return repr(u.dtype)
    except (RuntimeError, TypeError) as e:
        return f"({e})"


def _describe(i: int, u: Node, spec: Spec) -> str:
    srcs = ", ".join(f"{s.op} of {_dtype_of(s)}" for s in u.src)
    head = f"UOp verification failed at {i} on {u.op} {_dtype_of(u)} with arg {u.arg!r} and sources ({srcs})"
    tried = [f"{form}: {_why_not(u, form, stage)}" for form, stage in spec.forms_of(u.op)]
    if not tried:
        return f"{head}: {spec} has no {u.op.name}"
    return f"{head}: no form of {spec} takes it\n  " + "\n  ".join(dict.fromkeys(tried))


def verify_node(u: Node) -> None:
    """Check one node against all stages, as SPEC=2 does for every node that is built.

    Raises:
        RuntimeError: the node has no legal form anywhere.
    """
    if not spec_full.accepts(u):
        raise RuntimeError(_describe(0, u, spec_full))


def type_verify(uops: Node | Iterable[Node], spec: Spec) -> None:
    """Check each node of a list, or of the graph under a root (bodies of calls are not entered).

    Raises:
        RuntimeError: a node has no legal form; the text names its position, the node and the forms that were tried.
    """
    nodes = uops.toposort(enter_calls=False) if hasattr(uops, "toposort") else uops
    for i, u in enumerate(nodes):
        if not spec.accepts(u):
            raise RuntimeError(_describe(i, u, spec))
