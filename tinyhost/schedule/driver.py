"""The passes of scheduling, in order."""
from __future__ import annotations

from tinyhost.env import SPEC
from tinyhost.schedule.fuse import Fusion
from tinyhost.schedule.graph import TensorGraph
from tinyhost.schedule.indexing import Indexing
from tinyhost.schedule.limits import apply_limits, narrowed
from tinyhost.schedule.order import Ordering
from tinyhost.schedule.prepare import CapsOf, Preparation
from tinyhost.uop import Ops, UOp


def create_linear(sink: UOp, caps_of: CapsOf) -> UOp:
    """Schedule the effects under ``sink``.

    ``sink`` is a SINK of AFTER(place, STORE(place, value)), storage as PARAM or BUFFER; ``caps_of`` gives the
    capabilities of a device by name. The result is LINEAR of CALL(kernel SINK, buffers..., variables...), CALL(COPY,
    destination, source) and the opaque CALLs of the graph, in an order of execution. New storage is a BUFFER numbered
    from 0.

    Raises:
        ScheduleError: the effects need each other ("cycle detected in assign graph"), or a device cannot run them.
        TypeError: a FUNCTION is called with arguments that do not fit.
    """
    caps_of = narrowed(caps_of)
    preparation = Preparation(caps_of)
    prepared = preparation.run(sink)
    fusion = Fusion(TensorGraph(prepared), Indexing())
    fusion.run()
    apply_limits(fusion, caps_of)
    linear = Ordering(fusion, preparation.bindings, caps_of).run()
    if SPEC.value:
        _verify(prepared, linear)
    return linear


def _verify(prepared: UOp, linear: UOp) -> None:
    """Check the graph that was fused, the calls and the kernels against the grammar."""
    from tinyhost.uop.spec import spec_kernel_graph, spec_tensor, type_verify
    type_verify(prepared, spec_tensor)
    type_verify((u for u in linear.toposort(enter_calls=False) if u is not linear), spec_kernel_graph)
    for body in dict.fromkeys(call.src[0] for call in linear.src if call.src[0].op is Ops.SINK):
        type_verify(body, spec_tensor)
