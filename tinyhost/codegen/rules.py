"""Hand rules: which rules a target's capabilities call for."""
from __future__ import annotations

from tinyhost.codegen.cpu_rules import optimise_cpu
from tinyhost.codegen.gpu_rules import optimise_gpu
from tinyhost.codegen.kernel import Kernel


def hand_rules(k: Kernel) -> None:
    """Apply the Opts that the rules of this target choose."""
    caps = k.caps
    if caps.grid:
        if caps.locals:
            optimise_gpu(k)
    elif caps.vector_bytes or caps.threads > 1:
        optimise_cpu(k)
