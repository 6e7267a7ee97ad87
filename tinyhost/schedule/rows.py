"""Kernels that work on the same rows, one after the other, as one kernel: a softmax, a norm, and their gradients.

Takes items in an order of execution. Items that reduce a row to numbers, and items that read these numbers or other
results of the row where they work on it, become one kernel: its outer ranges are the rows, and whatever is computed for
a row is computed while the row is in the caches. Results that nobody else reads are not stored at all. What such a
kernel computes twice, and what it keeps instead, code generation decides. Without any reduction the rows are single
elements, and outputs that are stored anyway are made side by side: the steps of an optimiser.

Only on host threads (a grid has its own ways to reduce a row), only where a row with all that is read and written for
it fits in half of the second-level cache, and only where there are rows for all threads or little work in all. A merged
kernel runs where the last of its items ran, so everybody else who needs one of them must come later: that is checked,
and keeps the order an order.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tinyhost.capabilities import Capabilities
from tinyhost.helpers import dedup, prod
from tinyhost.schedule.share import Item
from tinyhost.schedule.storage import Region
from tinyhost.uop import AxisType, KernelInfo, Ops, ParamArg, UOp
from tinyhost.uop.rules.free_ranges import exchange

MAX_OPS = 300  # nodes of a merged kernel, so that it compiles in as much time as its parts
MAX_MEMBERS = 12
MAX_OUTPUTS = 6
MAX_READERS = 64  # items that may wait for one that is merged
ROWS_PER_THREAD = 4
SMALL = 1 << 16  # iterations that are not worth a second thread
IsKept: TypeAlias = Callable[[UOp], bool]


class Body:
    """A kernel that works on rows, by slots: its stores, its output ranges, its reductions, where it reads."""

    def __init__(self, stores: list[UOp], outs: tuple[UOp, ...], nodes: list[UOp]) -> None:
        self.stores = {u.src[0].src[0].arg.slot: u for u in stores}
        self.outs, self.nodes = outs, nodes
        self.reduces = [u for u in nodes if u.op is Ops.REDUCE]
        self.reduced = tuple(sorted({r for u in self.reduces for r in u.src[1:]}, key=lambda r: r.arg[:-1]))
        self.loads = [u for u in UOp.sink(*(u.src[1] for u in stores)).toposort() if u.op is Ops.INDEX]
        self.places: dict[int, dict[UOp, None]] = {}
        for u in self.loads:
            self.places.setdefault(u.src[0].arg.slot, {})[u.src[1]] = None
        self._moved: dict[int, tuple[dict[int, int], int]] = {}

    def is_row(self) -> bool:
        """Whether it reads what it writes only where it writes it, and its reductions are no contractions."""
        if any(self.places.get(slot, {}).keys() - {store.src[0].src[1]} for slot, store in self.stores.items()):
            return False
        return all(self._is_plain(u) for u in self.reduces)

    def _is_plain(self, reduce: UOp) -> bool:
        """Whether a reduction reads each element of something once: no product of matrices, no sum over windows."""
        wanted = {*self.outs, *reduce.src[1:]}
        full = [u for u in self.loads if wanted <= u.src[1].ranges.keys()]
        return any(u.src[0].arg.size >= _extent(wanted) for u in full)

    def moved(self, depth: int) -> tuple[dict[int, int], int]:
        """(bytes at each slot that one row of the first ``depth`` axes reads or writes, its longest loop)."""
        known = self._moved.get(depth)
        if known is None:
            rows, longest = set(self.outs[:depth]), 1
            sizes: dict[int, int] = {}
            for u in (*self.loads, *(store.src[0] for store in self.stores.values())):
                inner, slot = _extent(r for r in u.src[1].ranges if r not in rows), u.src[0].arg.slot
                sizes[slot] = max(sizes.get(slot, 0), inner * u.dtype.itemsize)
                longest = max(longest, inner)
            known = self._moved[depth] = sizes, longest
        return known


class Row:
    """An item that works on rows, by storage."""

    def __init__(self, item: Item, body: Body) -> None:
        self.item, self.body = item, body
        self.outs, self.reduces, self.reduced = body.outs, body.reduces, body.reduced
        self.before = set(item.before)
        self.stores: dict[Any, UOp] = {item.args[slot]: u for slot, u in body.stores.items()}
        self.places: dict[Any, dict[UOp, None]] = {item.args[slot]: places for slot, places in body.places.items()}
        self.in_place = not self.places.keys().isdisjoint(self.stores)

    def place(self, root: UOp) -> UOp:
        """The element of one of its outputs that an iteration writes."""
        return self.stores[root].src[0].src[1]


@dataclass(eq=False)
class Group:
    """Items that become one kernel, in an order of execution."""

    rows: tuple[UOp, ...]
    members: list[Row]


def row_kernels(items: list[Item], caps_of: Any, is_kept: IsKept) -> list[tuple[list[Item], Item]]:
    """Items that become one, and the one; ``is_kept`` tells storage that has to be written for others than items."""
    return _Rows(items, caps_of, is_kept).run()


class _Rows:
    def __init__(self, items: list[Item], caps_of: Any, is_kept: IsKept) -> None:
        self.items, self.caps_of, self.is_kept = items, caps_of, is_kept
        self.position = {item: i for i, item in enumerate(items)}
        self.after: dict[Item, list[Item]] = {}
        self.users: dict[UOp, dict[Item, None]] = {}
        self.writers: dict[UOp, list[Item]] = {}
        for item in items:
            for b in dict.fromkeys(item.before):
                self.after.setdefault(b, []).append(item)
            roots = [a.root if isinstance(a, Region) else a for a in item.args]
            for root in roots:
                self.users.setdefault(root, {})[item] = None
            for root in roots[:_outputs(item)]:
                self.writers.setdefault(root, []).append(item)
        self.bodies: dict[UOp, Body | None] = {}  # equal kernels are one node
        self.row_of: dict[Item, Row] = {}
        self.group_of: dict[Row, Group] = {}

    def run(self) -> list[tuple[list[Item], Item]]:
        """All merges."""
        for item in self.items:
            row = self._row(item)
            if row is not None:
                self.row_of[item] = row
                if not self._join(row) and (cut := self._with_cut_axis(row)) is not None and self._join(cut):
                    self.row_of[item] = cut
        groups = dict.fromkeys(self.group_of.values())
        return [([m.item for m in g.members], _Merge(g, self._stored(g.members)).item()) for g in groups]

    def _row(self, item: Item) -> Row | None:
        """``item`` as a row, None where it stays alone."""
        if item.body.op is not Ops.SINK or item.device is None or self.caps_of(item.device).grid:
            return None
        if len(self.after.get(item, ())) > MAX_READERS:
            return None
        if item.body not in self.bodies:
            self.bodies[item.body] = _body(item.body)
        body = self.bodies[item.body]
        return None if body is None else Row(item, body)

    # *** groups ***
    def _join(self, row: Row) -> bool:
        """Put ``row`` into the group of the rows that it reads, if it fits."""
        groups = dict.fromkeys(self.group_of.get(p) or Group(p.outs, [p]) for p in self._producers(row))
        fitting = {g: joined for g in groups if (joined := self._joined([g], row)) is not None}
        group = self._joined(list(fitting), row) if len(fitting) > 1 else None
        if group is None and fitting:
            group = list(fitting.values())[-1]
        if group is not None:
            self.group_of.update(dict.fromkeys(group.members, group))
            return True
        return False

    def _with_cut_axis(self, row: Row) -> Row | None:
        """An element-wise ``row`` with an axis cut in two, so that the outer part is an axis of the rows that it reads:
        channels as groups of channels.
        """
        producers = [p for p in self._producers(row) if p.reduces and not row.reduces]
        for outs in dict.fromkeys(p.outs for p in producers):
            same = next((i for i, (a, b) in enumerate(zip(outs, row.outs)) if a is not b), None)
            if same != len(outs) - 1 or not (outs[-1].src[0].is_const and row.outs[same].src[0].is_const):
                continue
            groups, size = (int(r.src[0].const_value) for r in (outs[-1], row.outs[same]))
            if size % groups == 0:
                return _cut(row, same, groups)
        return None

    def _joined(self, groups: list[Group], row: Row) -> Group | None:
        """One group of ``groups`` and ``row``, None where they do not fit together."""
        members = sorted({m: None for g in groups for m in g.members}, key=lambda m: self.position[m.item])
        members.append(row)
        rows = min((m.outs for m in members if m.reduces or m is not row), key=len)
        known = members[:-1] if len(groups) == 1 and groups[0].rows == rows else []
        return Group(rows, members) if self._fits(rows, members, known) else None

    def _producers(self, row: Row) -> list[Row]:
        """The rows whose results ``row`` reads."""
        out = []
        for root in row.places:
            writers = self.writers.get(root, ())
            producer = self.row_of.get(writers[0]) if len(writers) == 1 else None
            if producer is not None and producer is not row and producer.item in row.before:
                out.append(producer)
        return out

    def _fits(self, rows: tuple[UOp, ...], members: list[Row], known: list[Row]) -> bool:
        """Whether ``members`` may be one kernel over ``rows``; those ``known`` are one already."""
        last = members[-1]
        if len(members) > MAX_MEMBERS or sum(len(m.body.nodes) for m in members) > MAX_OPS:
            return False
        inside = {m.item for m in members}
        limit = self.position[last.item]
        roots = [root for m in members for root in m.stores]
        for m in members:
            if m.item.device != last.item.device or m.outs[:len(rows)] != rows or (m.reduces and m.outs != rows):
                return False
            if any(s not in inside and self.position[s] < limit for s in self.after.get(m.item, ())):
                return False
        if any(m.reduces for m in members):
            if any(m.in_place and m.outs != rows for m in members):
                return False  # another loop over the row might find what was written
            if self._passing(rows, members) > 1:
                return False
        elif not rows or any(m.outs != rows for m in members) or self._passing((), members):
            return False
        caps = self.caps_of(last.item.device)
        stored = self._stored(members)
        storage = {a for m in members for a in m.item.args} - set(roots) | set(stored)
        if len(stored) > MAX_OUTPUTS or sum(len(m.body.nodes) for m in members) > caps.max_kernel_ops:
            return False
        if caps.max_kernel_buffers is not None and len(storage) > caps.max_kernel_buffers:
            return False
        if len(set(roots)) < len(roots):
            return False
        return _pays(rows, members, caps) and _reads_rows(rows, members, known)

    def _passing(self, rows: tuple[UOp, ...], members: list[Row]) -> int:
        """Outputs that may be dead once the last member has run: apart, they would not all take memory at once."""
        inside = {m.item for m in members}
        return sum(not m.in_place and m.outs != rows and inside >= self.users[root].keys() and
                   (self.is_kept(root) or not rows) for m in members[:-1] for root in m.stores)

    def _stored(self, members: list[Row]) -> list[UOp]:
        """What others need of the members' outputs."""
        inside = {m.item for m in members}
        return [r for m in members for r in m.stores if self.is_kept(r) or not inside >= self.users[r].keys()]


def _body(sink: UOp) -> Body | None:
    """The kernel as one that works on rows, None where it has to stay alone."""
    if sink.arg != KernelInfo() or len(sink.src) != 1:
        return None
    end = sink.src[0]
    inside, outs = (end.src[0], end.src[1:]) if end.op is Ops.END else (end, ())
    stores = list(inside.src) if inside.op is Ops.GROUP else [inside]
    if any(u.op is not Ops.STORE or u.src[0].op is not Ops.INDEX or u.src[0].src[1]._gated for u in stores):
        return None
    nodes = list(end.toposort())
    if len(nodes) > MAX_OPS:
        return None
    body = Body(stores, outs, nodes)
    return body if body.is_row() else None


def _cut(row: Row, axis: int, groups: int) -> Row:
    """``row`` with an output axis as ``groups`` times the rest."""
    old = row.outs[axis]
    size = int(old.src[0].const_value) // groups
    outer, inner = UOp.range(groups, old.arg[0]), UOp.range(size, old.arg[0] + 1)
    later = [UOp(Ops.RANGE, r.src, (r.arg[0] + 1, *r.arg[1:])) for r in row.outs[axis + 1:]]
    done: dict[UOp, UOp] = {old: outer * size + inner, **dict(zip(row.outs[axis + 1:], later))}
    for u in row.body.nodes:
        if u not in done and u.op is not Ops.END:
            src = tuple([done[s] for s in u.src])
            if u.op is Ops.INDEX and src != u.src:
                src = (src[0], src[1].simplify())
            done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
    stores = [done[u] for u in row.stores.values()]
    nodes = list(UOp.sink(*stores).toposort())[:-1]
    return Row(row.item, Body(stores, (*row.outs[:axis], outer, inner, *later), nodes))


def _outputs(item: Item) -> int:
    """How many of the first arguments an item may write."""
    if item.body.op is Ops.COPY:
        return 1
    if item.body.op is not Ops.SINK:
        return len(item.args)
    return sum(u.op is Ops.STORE for u in item.body.toposort())


def _reads_rows(rows: tuple[UOp, ...], members: list[Row], known: list[Row]) -> bool:
    """Whether members read what others write after it was written, and only in the row where they are; ``known`` do."""
    checked = set(known)
    for m in members:
        for other in members:
            if other is m or (m in checked and other in checked) or m.stores.keys().isdisjoint(other.places):
                continue
            read = [(root, place) for root in m.stores for place in other.places.get(root, ())]
            if read and m.item not in other.before:
                return False
            if any(_along(rows, m, other, root, place) is None for root, place in read):
                return False
    return True


def _along(rows: tuple[UOp, ...], writer: Row, reader: Row, root: UOp, place: UOp) -> tuple[UOp, ...] | None:
    """The RANGEs of ``reader`` in place of those that ``writer`` has inside of a row, None where it reads an output of
    that otherwise.
    """
    inner = writer.outs[len(rows):]
    if not inner:
        return () if place is writer.place(root) else None
    for ranges in (reader.outs[len(rows):][:len(inner)], reader.reduced[:len(inner)]):
        if len(ranges) == len(inner) and all(a.src == b.src for a, b in zip(inner, ranges)):
            if exchange(writer.place(root), dict(zip(inner, ranges))) is place:
                return ranges
    return None



def _extent(ranges: Any) -> int:
    return int(prod(int(r.vmax) + 1 for r in ranges))


def _pays(rows: tuple[UOp, ...], members: list[Row], caps: Capabilities) -> bool:
    count = _extent(rows)
    moved: dict[Any, int] = {}
    longest = 1
    for m in members:
        sizes, steps = m.body.moved(len(rows))
        longest = max(longest, steps)
        for slot, size in sizes.items():
            root = m.item.args[slot]
            moved[root] = max(moved.get(root, 0), size)
    if 2 * sum(moved.values()) > caps.l2_bytes:
        return False
    return count >= ROWS_PER_THREAD * caps.threads or count * longest <= SMALL


# *** the kernel ***
class _Merge:
    """The merged kernel. Its ranges: rows first, then other axes of outputs, then reductions; axes at the same depth of
    equal length are one range.
    """

    def __init__(self, group: Group, stored: list[UOp]) -> None:
        self.group, self.stored = group, set(stored)
        self.values: dict[Any, UOp] = {}  # what members store, by storage
        self.params: dict[Any, UOp] = {}  # in the order of slots: outputs first, then inputs by first use
        self.writer = {root: m for m in group.members for root in m.stores}
        self.new: dict[Row, dict[UOp, UOp]] = {m: {} for m in group.members}
        self._number()
        for root in stored:
            self._param(root, self.writer[root].stores[root].src[0].src[0])

    def _param(self, root: Any, old: UOp) -> UOp:
        param = self.params.get(root)
        if param is None:
            param = self.params[root] = UOp(Ops.PARAM, (), ParamArg(len(self.params), old.arg.dtype, old.arg.size))
        return param

    def _number(self) -> None:
        count = depth0 = len(self.group.rows)
        made: dict[Any, UOp] = {}
        for kind in (AxisType.WEAK, AxisType.REDUCE):
            for m in self.group.members:
                for depth, r in enumerate(m.reduced if kind is AxisType.REDUCE else m.outs[depth0:]):
                    key = (kind, depth, r.src)
                    if key not in made:
                        made[key] = UOp(Ops.RANGE, r.src, (count, kind))
                        count += 1
                    self.new[m][r] = made[key]

    def item(self) -> Item:
        """One item with the stores of those whose values are needed."""
        ends = []
        for m in self.group.members:
            kept = self._stores(m)
            if kept:
                outs = [self.new[m].get(r, r) for r in m.outs]
                body = kept[0] if len(kept) == 1 else UOp(Ops.GROUP, tuple(kept))
                ends.append(body.end(*outs) if outs else body)
        items = [m.item for m in self.group.members]
        inside = set(items)
        return Item(items[-1].node, UOp(Ops.SINK, tuple(ends), KernelInfo()), list(self.params),
                    dedup([s for i in items for s in i.states]), items[0].device,
                    dedup([v for i in items for v in i.variables]),
                    dedup([b for i in items for b in i.before if b not in inside]))

    def _stores(self, m: Row) -> list[UOp]:
        """The stores of a member that are needed; notes all its values."""
        done: dict[UOp, UOp] = dict(self.new[m])
        dropped = {x for root, u in m.stores.items() if root not in self.stored for x in (u, u.src[0])}
        for u in m.body.nodes:
            if u in done or u in dropped or u.op is Ops.END or u.op is Ops.GROUP:
                continue
            if u.op is Ops.PARAM and u.arg.size is not None:
                root = m.item.args[u.arg.slot]
                if root in self.params or root not in self.writer:
                    done[u] = self._param(root, u)
            elif u.op is Ops.INDEX and (root := m.item.args[u.src[0].arg.slot]) in self.values:
                done[u] = self._value(root, m, u.src[1])
            else:
                src = tuple([done[s] for s in u.src])
                done[u] = u if src == u.src else UOp(u.op, src, u.arg, u.tag)
        self.values.update((root, done[u.src[1]]) for root, u in m.stores.items())
        return [done[u] for root, u in m.stores.items() if root in self.stored]

    def _value(self, root: UOp, reader: Row, place: UOp) -> UOp:
        writer = self.writer[root]
        ranges = _along(self.group.rows, writer, reader, root, place)
        assert ranges is not None
        swap = {self.new[writer][a]: self.new[reader][b] for a, b in zip(writer.outs[len(self.group.rows):], ranges)}
        return exchange(self.values[root], {a: b for a, b in swap.items() if a is not b})
