"""What a command has to wait for: accesses to byte ranges of memory, each with a token of the command that makes it.

Takes accesses in program order; gives the tokens of earlier ones that must be over first: a read waits for the writes
of its bytes, a write for their reads and writes. Memory is named by a key (its base buffer: arenas alias, so ranges
count, not buffers). Ranges that are partly accessed are split; a write that covers several joins them. Nothing here
knows a queue, except ``newest``, which reduces tokens to what a queue has to be told.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Token = TypeVar("Token", bound=Hashable)
Queue = TypeVar("Queue", bound=Hashable)


@dataclass(slots=True)
class _Span(Generic[Token]):
    """The history of some bytes: who wrote them last (None: nobody), and who read that."""

    end: int
    writer: Token | None = None
    readers: dict[Token, None] = field(default_factory=dict)


class _Memory(Generic[Token]):
    """The spans of one piece of memory by their first byte, in order, without overlap; gaps were never accessed."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.spans: list[_Span[Token]] = []

    def cut(self, at: int) -> None:
        """Make ``at`` a border."""
        i = bisect_right(self.starts, at) - 1
        if i < 0 or self.starts[i] == at or self.spans[i].end <= at:
            return
        whole = self.spans[i]
        self.starts.insert(i + 1, at)
        self.spans.insert(i + 1, _Span(whole.end, whole.writer, dict(whole.readers)))
        whole.end = at

    def within(self, start: int, end: int) -> slice:
        """The spans between two borders."""
        return slice(bisect_left(self.starts, start), bisect_left(self.starts, end))

    def fill(self, start: int, end: int) -> None:
        """Give every gap between two borders a span."""
        at, starts, spans = start, list[int](), list[_Span[Token]]()
        part = self.within(start, end)
        for s, span in zip(self.starts[part], self.spans[part]):
            if at < s:
                starts.append(at)
                spans.append(_Span(s))
            starts.append(s)
            spans.append(span)
            at = span.end
        if at < end:
            starts.append(at)
            spans.append(_Span(end))
        self.starts[part], self.spans[part] = starts, spans


class DepsTracker(Generic[Token]):
    """Who accessed which bytes."""

    def __init__(self) -> None:
        self._memory: dict[Hashable, _Memory[Token]] = {}

    def access(self, key: Hashable, start: int, end: int, write: bool, token: Token) -> list[Token]:
        """Note that ``token`` reads or writes the bytes from ``start`` to ``end`` of the memory ``key``.

        Returns:
            The tokens of accesses that must be over first, each once, in the order of the bytes; ``token`` itself is
            never among them. A write also stands for a read of the same bytes by the same command.
        """
        if end <= start:
            return []
        memory = self._memory.setdefault(key, _Memory())
        memory.cut(start)
        memory.cut(end)
        part = memory.within(start, end)
        waits: dict[Token, None] = {}
        for span in memory.spans[part]:
            if span.writer is not None:
                waits[span.writer] = None
            if write:
                waits.update(span.readers)
        if write:
            memory.starts[part], memory.spans[part] = [start], [_Span(end, token)]
        else:
            memory.fill(start, end)
            for span in memory.spans[memory.within(start, end)]:
                if span.writer != token:  # who wrote the bytes need not be named twice
                    span.readers[token] = None
        waits.pop(token, None)
        return list(waits)

    def forget(self, key: Hashable | None = None) -> None:
        """Forget what happened to one piece of memory, or to all: it is over."""
        if key is None:
            self._memory.clear()
        else:
            self._memory.pop(key, None)

    def spans(self, key: Hashable) -> int:
        """How many spans a piece of memory is cut into."""
        return len(self._memory[key].starts) if key in self._memory else 0


def newest(tokens: Iterable[tuple[Queue, int]], own: Queue | None = None, fifo: bool = True) -> dict[Queue, int]:
    """What a command has to wait for, from tokens (queue, number of a command in it): the newest of each queue.

    Waiting for a command is waiting for all in front of it in its queue. Where queues are ``fifo`` (capability
    ``fifo_queues``: a command begins when the one before has ended), nothing is needed for the queue ``own`` itself.
    """
    out: dict[Queue, int] = {}
    for queue, number in tokens:
        if not (fifo and queue == own) and number > out.get(queue, -1):
            out[queue] = number
    return out
