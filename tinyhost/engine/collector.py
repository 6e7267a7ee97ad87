"""Python's collector of cycles, which stands still while graphs are scheduled and compiled.

Passes make nodes and tables by the thousand; almost none are in cycles, and reference counts free them when a pass
ends. But every 700 new ones start a walk over the young objects, and now and then one over all that live: a tenth of
the time of a small program, a third of that of 10,000 nodes, and growing faster than the graph.
"""
from __future__ import annotations

import gc


class collector_paused:
    """A block without collections. The one that entered first turns them on again, unless they were off."""

    __slots__ = ("was_on",)

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        if self.was_on:
            gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self.was_on:
            gc.enable()
