"""Captured: what a replay needs, and its pickled form.

The pickled form holds the schedules that ran, the buffers of state with their content, and the result as a graph over
numbered places for inputs and outputs. It starts with the version that made it, which is compared before anything else
is loaded. Kernels come from the disk cache or are compiled again; the Python function is not part of it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tinyhost
from tinyhost.engine.arrange import Recorded
from tinyhost.engine.replay import Replay
from tinyhost.errors import JitError
from tinyhost.jit.arguments import Demands
from tinyhost.jit.results import Output, Result
from tinyhost.jit.state import State
from tinyhost.uop import UOp


@dataclass(frozen=True)
class Version:
    """The version that pickled a capture; loading one of another version is a JitError."""

    text: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _checked_version, (self.text,)


def _checked_version(text: str) -> Version:
    if text != tinyhost.__version__:
        raise JitError(f"this capture was made by tinyhost {text}, this is {tinyhost.__version__}: re-capture it")
    return Version(text)


@dataclass(eq=False)
class Captured:
    """What one set of arguments ran; ``replay`` is None while it was called only once."""

    demands: Demands
    texts: list[str] = field(default_factory=list)  # the arguments in words
    replay: Replay | None = None
    inputs: list[UOp] = field(default_factory=list)  # what stands for the storage of each input tensor
    bound: dict[str, UOp] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    result: Result = field(default_factory=Result)
    state: State | None = None  # None where the capture owns all that it uses

    def __reduce__(self) -> tuple[Any, ...]:
        assert self.replay is not None, "nothing was captured"
        places = [*self.inputs, *(o.slot for o in self.outputs)]
        numbered = {u: UOp.param(i, u.dtype, (u.arg.size,), u.device) for i, u in enumerate(places)}
        kinds = [(u.arg.device, u.arg.size, u.arg.dtype) for u in places]
        return _restored, (Version(tinyhost.__version__), self.demands, self.texts, self.bound,
                           self.result.moved(numbered), kinds, len(self.inputs), self.replay.recorded)


def _restored(version: Version, demands: Demands, texts: list[str], bound: dict[str, UOp], result: Result,
              kinds: Sequence[Any], inputs: int, recorded: list[Recorded]) -> Captured:
    """A capture from its parts, over new places.

    Raises:
        JitError: they do not fit together.
    """
    try:
        nodes = [UOp.new_buffer(*kind) for kind in kinds]
        outputs = [Output(u) for u in nodes[inputs:]]
        places = {UOp.param(i, u.dtype, (u.arg.size,), u.device): u if i < inputs else outputs[i - inputs].slot
                  for i, u in enumerate(nodes)}
        replay = Replay.from_recorded(recorded)
        return Captured(demands, texts, replay, nodes[:inputs], bound, outputs, result.moved(places))
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise JitError(f"a pickled capture is damaged ({type(e).__name__}: {e}): capture it again") from e
