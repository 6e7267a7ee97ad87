"""Offsets out of a range: two-level segregated fit for long lives, a bump allocator for short ones.

Both take sizes in bytes and give offsets; neither touches memory, so one serves VRAM, address space, arenas of kernel
arguments and the plan of a captured graph alike. ``TLSF`` allocates and frees in constant time: free blocks hang in
lists by size class (a power of two, cut into ``CLASSES`` equal parts), two bitmaps find the first class that fits, and
a freed block joins free neighbours at once (Masmano, Ripoll, Crespo and Real: TLSF, a new dynamic memory allocator for
real-time systems, ECRTS 2004). ``Bump`` hands out a ring front to back; who frees what is the caller's order.
"""
from __future__ import annotations

from tinyhost.errors import OutOfMemory
from tinyhost.helpers import round_up

CLASSES_LOG2 = 4
CLASSES = 1 << CLASSES_LOG2


class _Block:
    """A run of bytes: its neighbours in memory and, while it is free, in the list of its class."""

    __slots__ = ("offset", "size", "free", "before", "behind", "previous", "next")

    def __init__(self, offset: int, size: int, before: _Block | None, behind: _Block | None) -> None:
        self.offset, self.size, self.free = offset, size, False
        self.before, self.behind = before, behind
        self.previous: _Block | None = None
        self.next: _Block | None = None


class TLSF:
    """Two-level segregated fit over ``size`` bytes from ``base``; sizes are rounded up to ``unit``, a power of two.

    Raises:
        ValueError: a unit that is no power of two, or a range of less than one unit.
    """

    def __init__(self, size: int, base: int = 0, unit: int = 16) -> None:
        if unit < 1 or unit & unit - 1:
            raise ValueError(f"unit must be a power of two, got {unit}")
        if size < unit or base % unit:
            raise ValueError(f"a range of {size} bytes from {base} holds no unit of {unit} bytes at a multiple of it")
        self.base, self.size, self.unit = base, size // unit * unit, unit
        self.used = 0
        self._blocks: dict[int, _Block] = {}  # allocated ones, by offset
        self._lists: dict[int, _Block] = {}  # class number -> first free block
        self._levels = 0  # bit per power of two that has a free block
        self._classes: dict[int, int] = {}  # power of two -> bit per class with a free block
        self._release(_Block(base, self.size, None, None))

    # *** interface ***
    def alloc(self, size: int, align: int = 1) -> int:
        """Offset of ``size`` bytes at a multiple of ``align``, a power of two; a size of 0 takes one unit.

        Raises:
            OutOfMemory: no free run is long enough.
            ValueError: a negative size, or an align that is no power of two.
        """
        if size < 0 or align < 1 or align & align - 1:
            raise ValueError(f"cannot allocate {size} bytes aligned to {align}: sizes are not negative, "
                             "alignments powers of two")
        want = max(round_up(size, self.unit), self.unit)
        block = self._find(want + max(align - self.unit, 0))
        if block is None:
            raise OutOfMemory(f"cannot allocate {size} bytes aligned to {align}: {self.used} of {self.size} bytes are "
                              f"used, the longest free run has {self.largest_free()} bytes")
        self._unlink(block)
        gap = -block.offset % align
        if gap:
            front, block = block, self._cut(block, gap)
            self._release(front)
        if block.size > want:
            self._release(self._cut(block, want))
        self._blocks[block.offset] = block
        self.used += block.size
        return block.offset

    def free(self, offset: int) -> None:
        """Give back what ``alloc`` gave.

        Raises:
            ValueError: nothing is allocated at ``offset``.
        """
        block = self._blocks.pop(offset, None)
        if block is None:
            raise ValueError(f"nothing is allocated at offset {offset}: freed twice, or not from this allocator")
        self.used -= block.size
        before, behind = block.before, block.behind
        if before is not None and before.free:
            self._unlink(before)
            block = self._join(before, block)
        if behind is not None and behind.free:
            self._unlink(behind)
            block = self._join(block, behind)
        self._release(block)

    def size_of(self, offset: int) -> int:
        """Bytes allocated at ``offset``."""
        return self._blocks[offset].size

    def largest_free(self) -> int:
        """Length of the longest free run."""
        if not self._levels:
            return 0
        level = self._levels.bit_length() - 1
        block: _Block | None = self._lists[level << CLASSES_LOG2 | self._classes[level].bit_length() - 1]
        longest = 0
        while block is not None:
            longest, block = max(longest, block.size), block.next
        return longest

    # *** classes ***
    def _class_of(self, size: int) -> int:
        """Number of the class that holds free runs of ``size`` bytes."""
        units = size // self.unit
        level = units.bit_length() - 1
        part = units - (1 << level)
        return level << CLASSES_LOG2 | (part << CLASSES_LOG2) >> level

    def _find(self, size: int) -> _Block | None:
        """A free block of at least ``size`` bytes: one of the smallest class where all fit, else any that fits."""
        own = self._class_of(size)
        level, part = own >> CLASSES_LOG2, own & CLASSES - 1
        above = self._classes.get(level, 0) >> part + 1 << part + 1
        if not above:
            higher = self._levels >> level + 1 << level + 1
            if higher:
                level = (higher & -higher).bit_length() - 1
                above = self._classes[level]
        if above:
            return self._lists[level << CLASSES_LOG2 | (above & -above).bit_length() - 1]
        block = self._lists.get(own)  # only the class of the size itself is left, where not every block fits
        while block is not None and block.size < size:
            block = block.next
        return block

    def _release(self, block: _Block) -> None:
        """Enter a free block into the list of its class."""
        number = self._class_of(block.size)
        level = number >> CLASSES_LOG2
        first = self._lists.get(number)
        block.free, block.previous, block.next = True, None, first
        if first is not None:
            first.previous = block
        self._lists[number] = block
        self._classes[level] = self._classes.get(level, 0) | 1 << (number & CLASSES - 1)
        self._levels |= 1 << level

    def _unlink(self, block: _Block) -> None:
        """Take a free block out of its list."""
        block.free = False
        if block.next is not None:
            block.next.previous = block.previous
        if block.previous is not None:
            block.previous.next = block.next
            return
        number = self._class_of(block.size)
        if block.next is not None:
            self._lists[number] = block.next
            return
        level = number >> CLASSES_LOG2
        del self._lists[number]
        self._classes[level] &= ~(1 << (number & CLASSES - 1))
        if not self._classes[level]:
            self._levels &= ~(1 << level)

    # *** blocks in memory ***
    def _cut(self, block: _Block, size: int) -> _Block:
        """Shorten ``block`` to ``size`` bytes; the block of the rest."""
        rest = _Block(block.offset + size, block.size - size, block, block.behind)
        if block.behind is not None:
            block.behind.before = rest
        block.behind, block.size = rest, size
        return rest

    def _join(self, first: _Block, second: _Block) -> _Block:
        """``first`` and its neighbour behind as one block."""
        first.size += second.size
        first.behind = second.behind
        if second.behind is not None:
            second.behind.before = first
        return first


class Bump:
    """Consecutive offsets in a ring of ``size`` bytes from ``base``.

    The ring forgets: whoever allocates makes sure that what an offset held before is no longer in use.
    """

    def __init__(self, size: int, base: int = 0, wrap: bool = True) -> None:
        self.size, self.base, self.wrap = size, base, wrap
        self.position = 0
        self.rounds = 0  # times the ring began anew

    def alloc(self, size: int, align: int = 1) -> int:
        """Offset of the next ``size`` bytes at a multiple of ``align``; begins anew where the rest is too short.

        Raises:
            OutOfMemory: more than the whole ring, or more than the rest of one that does not wrap.
        """
        start: int = round_up(self.base + self.position, align) - self.base
        if start + size > self.size:
            first = -self.base % align
            if not self.wrap or first + size > self.size:
                raise OutOfMemory(f"cannot allocate {size} bytes aligned to {align} from a ring of {self.size} bytes "
                                  f"at position {self.position}{'' if self.wrap else ', which does not wrap'}")
            start, self.rounds = first, self.rounds + 1
        self.position = start + size
        return self.base + start

    def reset(self) -> None:
        """Begin anew."""
        self.position = 0
