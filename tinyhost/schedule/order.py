"""From kernels, copies and calls to an ordered LINEAR.

Takes the fusion decision; gives LINEAR(CALL...), each CALL with its buffers. What runs before what follows from
states: an item that reads a state comes after everything that produced it (the effects of an AFTER, and of the
states before it), and before every effect that replaces that state. Items without an order between them run as they
are first needed, depth first, so temporaries die early. New storage is numbered in order of execution.
"""
from __future__ import annotations

from tinyhost.dtype import strong_dtype
from tinyhost.errors import ScheduleError, StateCycle
from tinyhost.schedule.fuse import Fusion
from tinyhost.schedule.graph import Kernel
from tinyhost.schedule.lower import Lowered, lower_kernel
from tinyhost.schedule.prepare import CapsOf
from tinyhost.schedule.rows import row_kernels
from tinyhost.schedule.share import Item, merge, shared_kernels
from tinyhost.schedule.storage import Region, region_of, state_of, storage_root
from tinyhost.uop import CallInfo, GroupOp, Ops, ParamArg, UOp


class Ordering:
    """Collects items, links them and emits them."""

    def __init__(self, fusion: Fusion, bindings: dict[str, UOp], caps_of: CapsOf) -> None:
        self.fusion, self.bindings, self.caps_of = fusion, bindings, caps_of
        self.items: dict[UOp, Item] = {}  # by the node whose storage or effect it makes
        self.buffers: dict[UOp, UOp] = {}
        self._producers: dict[UOp, list[Item]] = {}

    def run(self) -> UOp:
        """The LINEAR of the whole graph."""
        for u in self.fusion.graph.order:
            self._collect(u)
        self._link()
        self._share()
        return UOp(Ops.LINEAR, tuple([self._emit(item) for item in self._sorted()]))

    # *** items ***
    def _collect(self, u: UOp) -> None:
        kernel = self.fusion.kernels.get(u)
        if kernel is not None:
            self._check_runs(kernel)
            for k, lowered in lower_kernel(self.fusion, kernel):
                self.items[k.node] = _kernel_item(k, lowered)
        elif u.op is Ops.COPY:
            self._collect_copy(u)
        elif u.op is Ops.STORE:
            self._collect_direct_copy(u)
        elif u.op is Ops.CALL:
            states = [self._state(state_of(a)) for a in u.src[1:] if a.shape != ()]
            self.items[u] = Item(u, u.src[0], [_argument(a) for a in u.src[1:]], states)

    def _check_runs(self, kernel: Kernel) -> None:
        if self.caps_of(kernel.device).storage_only:
            what = f"{kernel.value.op} of shape {kernel.shape}"
            raise ScheduleError(f"cannot run a kernel on {kernel.device} (for {what}): it only stores data; "
                                "copy to another device before computing")

    def _collect_copy(self, u: UOp) -> None:
        users = self.fusion.graph.consumers[u]
        if len(users) == 1 and users[0].op is Ops.STORE and users[0] not in self.fusion.kernels:
            return
        self._add_copy(u, u, u)

    def _collect_direct_copy(self, u: UOp) -> None:
        region = region_of(u.src[0])
        assert region is not None, f"store without a kernel: {u.src[0]}"
        self._add_copy(u, u.src[1], region)

    def _add_copy(self, node: UOp, copy: UOp, target: UOp | Region) -> None:
        source = region_of(copy.src[0])
        assert source is not None, f"copy of {copy.src[0].op} without storage"
        param = UOp(Ops.PARAM, (), ParamArg(1, source.dtype, source.size, device=copy.src[0].device))
        body = UOp(Ops.COPY, (param,), copy.arg)
        self.items[node] = Item(node, body, [target, source], [self._state(source.state)])

    def _state(self, state: UOp) -> UOp:
        """What a reader of a state waits for: of a value that an output holds, the store of that output."""
        home = self.fusion.homes.get(state)
        return state if home is None else home.state

    # *** order ***
    def producers(self, state: UOp) -> list[Item]:
        """Items after which storage is in ``state``."""
        out = self._producers.get(state)
        if out is None:
            chain = []
            while state not in self._producers and state.op is Ops.AFTER:
                chain.append(state)
                state = state_of(state.src[0])
            out = self._producers.get(state)
            if out is None:
                item = self.items.get(state)
                out = self._producers[state] = [] if item is None else [item]
            for after in reversed(chain):
                out = self._producers[after] = [self.items[d] for d in after.src[1:] if d in self.items] or out
        return out

    def _link(self) -> None:
        readers: dict[UOp, list[Item]] = {}
        for item in self.items.values():
            for state in item.states:
                readers.setdefault(state, []).append(item)
                item.before += self.producers(state)
            if item.node.op is Ops.STORE:
                item.before += self.producers(state_of(item.node.src[0]))
        for after in self.fusion.graph.order:
            if after.op is Ops.AFTER:
                effects = [self.items[d] for d in after.src[1:] if d in self.items]
                old = readers.get(state_of(after.src[0]), ())
                for effect in effects:
                    effect.before += [r for r in old if r not in effects]

    def _share(self) -> None:
        """Merge kernels that read the same large input, then kernels that work on the same rows."""
        merged: dict[Item, Item] = {}
        for group in shared_kernels(self._sorted(), self.caps_of):
            one = merge(group)
            merged.update((c.item, one) for c in group)
        self._exchange(merged)
        merged = {}
        for items, one in row_kernels(self._sorted(), self.caps_of, self._is_kept):
            merged.update(dict.fromkeys(items, one))
        self._exchange(merged)

    def _exchange(self, merged: dict[Item, Item]) -> None:
        if merged:
            self.items = {node: merged.get(item, item) for node, item in self.items.items()}
            for item in self.items.values():
                item.before = [merged.get(b, b) for b in item.before]

    def _is_kept(self, root: UOp) -> bool:
        """Whether storage is no temporary of this schedule."""
        return root.op in (Ops.PARAM, Ops.BUFFER) or root in self.fusion.homes

    def _sorted(self) -> list[Item]:
        """Items in an order of execution, depth first."""
        out: list[Item] = []
        status: dict[Item, bool] = {}  # absent: not seen, False: waits for what comes before it, True: done
        for first in self.items.values():
            stack = [(first, False)]
            while stack:
                item, ready = stack.pop()
                if ready:
                    status[item] = True
                    out.append(item)
                    continue
                if item in status:
                    continue
                status[item] = False
                stack.append((item, True))
                for b in reversed(item.before):
                    if b not in status:
                        stack.append((b, False))
                    elif not status[b]:
                        self._cycle(b)
        return out

    def _cycle(self, item: Item) -> None:
        what = storage_root(item.node.src[0]) if item.node.op is Ops.STORE else item.node
        raise StateCycle(f"cycle detected in assign graph: {what.op} of shape {what.shape} on {what.device} is "
                         "read in its old and its new state by computations that need each other; realize a "
                         "contiguous() copy of the old value first")

    # *** calls ***
    def _emit(self, item: Item) -> UOp:
        variables = [self.bindings[v.arg.name] for v in item.variables]
        return UOp(Ops.CALL, (item.body, *(self._argument(a) for a in item.args), *variables), _call_info(item))

    def _argument(self, arg: UOp | Region) -> UOp:
        if isinstance(arg, Region):
            return self._view(arg)
        if arg.op in GroupOp.Defines and arg.arg.size is None:
            return self.bindings[arg.arg.name]
        return self._buffer(arg)

    def _buffer(self, root: UOp) -> UOp:
        if root.op in (Ops.PARAM, Ops.BUFFER):
            return root
        home = self.fusion.homes.get(root)
        if home is not None:
            return self._buffer(storage_root(home.node.src[0]))
        buffer = self.buffers.get(root)
        if buffer is None:
            kernel = self.fusion.kernels.get(root)
            device = root.device if kernel is None else kernel.device
            assert device is not None, f"storage of {root.op} has no device"
            buffer = UOp.new_buffer(device, root.max_numel(), strong_dtype(root.dtype), len(self.buffers))
            self.buffers[root] = buffer
        return buffer

    def _view(self, region: Region) -> UOp:
        """The buffer, or a SHRINK and BITCAST of it."""
        buffer = self._buffer(region.root)
        if region.whole:
            return buffer
        own, size = buffer.dtype.itemsize, region.size * region.dtype.itemsize
        if region.start % own == 0 and size % own == 0:
            return buffer._mop(Ops.SHRINK, ((region.start // own, size // own),)).bitcast(region.dtype)
        return buffer.bitcast(region.dtype)._mop(Ops.SHRINK, ((region.start // region.dtype.itemsize, region.size),))


def _kernel_item(kernel: Kernel, lowered: Lowered) -> Item:
    return Item(kernel.node, lowered.ast, list(lowered.storage), lowered.states, kernel.device, lowered.variables)


def _argument(a: UOp) -> UOp:
    return a if a.shape == () and a.op is Ops.PARAM else storage_root(a)


def _call_info(item: Item) -> object:
    return item.node.arg if item.node.op is Ops.CALL else CallInfo()
