"""Running reductions along an axis.

Takes a node and an axis; gives nodes of its shape. Windows over the padded axis are reduced; a long axis is cut into
blocks whose totals are scanned first, so the work is at most length times block, in three passes over memory.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import dtypes, strong_dtype, sum_acc_dtype
from tinyhost.helpers import round_up
from tinyhost.mixin.creation import CreationMixin
from tinyhost.mixin.padding import PadMixin
from tinyhost.mixin.reduce import Axes, ReduceMixin
from tinyhost.ops import Ops

if TYPE_CHECKING:
    from typing import Self

_WINDOW = 64  # up to here one reduction per element is cheaper than the kernels of a second stage
_BLOCK = 16  # elements of a block, each a sum over up to so many; the totals are scanned in blocks themselves


class ScanMixin(ReduceMixin, PadMixin, CreationMixin):
    """cumsum, cumprod, cummax, cummin, logsumexp, logcumsumexp."""

    __slots__ = ()

    def _identity(self, op: Ops) -> Any:
        """The value that a reduction by ``op`` ignores."""
        return {Ops.ADD: 0, Ops.MUL: 1}[op] if op is not Ops.MAX else self.dtype.min

    def _scan(self, op: Ops, axis: int) -> Self:
        """Inclusive scan by ``op`` in self's dtype, which is strong."""
        axis = self._resolve_dim(axis)
        if self.ndim == 0 or 0 in self.shape:
            return self
        return self.transpose(axis, -1)._scan_last(op).transpose(axis, -1)

    def _scan_last(self, op: Ops) -> Self:
        n = self.shape[-1]
        if not isinstance(n, int) or n <= _WINDOW:
            return self._scan_windows(op)
        blocks = self._in_blocks(n, self._identity(op))
        lead, count, block = blocks.shape[:-2], blocks.shape[-2], blocks.shape[-1]
        before = blocks._reduce(op, -1)._scan_last(op)._shifted(op).reshape((*lead, count, 1))
        ret = blocks._scan_windows(op).alu(op, before).reshape((*lead, count * block))
        return ret.shrink((*(None for _ in lead), (0, n)))

    def _in_blocks(self, n: int, fill: Any) -> Self:
        """The last axis, of extent ``n``, in blocks, the last one filled up."""
        lead = self.shape[:-1]
        size = round_up(n, _BLOCK)
        return self.pad((*(None for _ in lead), (0, size - n)), value=fill).reshape((*lead, size // _BLOCK, _BLOCK))

    def _shifted(self, op: Ops) -> Self:
        """An inclusive scan as an exclusive one."""
        keep = tuple(None for _ in self.shape[:-1])
        return self.pad((*keep, (1, -1)), value=self._identity(op))

    def _scan_windows(self, op: Ops) -> Self:
        n = self.shape[-1]
        x = self.pad((*(None for _ in self.shape[:-1]), (n - 1, 0)), value=self._identity(op))
        return x._pool((n,))._reduce(op, -1)

    def cumsum(self, axis: int = 0) -> Self:
        """Running sum, in the dtype of ``sum``."""
        ret = self.cast(sum_acc_dtype(self.dtype))._scan(Ops.ADD, axis)
        narrow = self.dtype in (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)
        return ret.cast(self.dtype) if narrow else ret

    def cumprod(self, axis: int) -> Self:
        """Running product, of integers and bools in the dtype of their sum."""
        wide = strong_dtype(self.dtype) if self.dtype.is_float else sum_acc_dtype(self.dtype)
        return self.cast(wide)._scan(Ops.MUL, axis)

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Running maximum, and the last index where it was met."""
        x = self.cast(strong_dtype(self.dtype))
        values = x._scan(Ops.MAX, axis)
        return values, x._where_met(values, axis)

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """Running minimum, and the last index where it was met."""
        x = self.cast(strong_dtype(self.dtype))
        values = x._reversed_order()._scan(Ops.MAX, axis)._reversed_order()
        return values, x._where_met(values, axis)

    def _where_met(self, values: Self, axis: int) -> Self:
        if self.ndim == 0:
            return self.const_like(0).cast(dtypes.int32)
        axis = self._resolve_dim(axis)
        met = self.eq(values) | self.isnan() if self.dtype.is_float else self.eq(values)
        return met.where(self._numbered(axis), 0)._scan(Ops.MAX, axis)

    # *** in log space ***
    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """``log(sum(exp(self)))`` without overflow."""
        x = self._float_operand()
        top = x._largest(axis, keepdim=True).detach()
        top = top.isfinite().where(top, 0)
        ret = (x - top).exp().sum(axis, keepdim).log()
        return ret + (top if keepdim else top.reshape(ret.shape))

    def logcumsumexp(self, axis: int = 0) -> Self:
        """``log(cumsum(exp(self)))`` without overflow."""
        x = self._float_operand()
        if x.ndim == 0 or 0 in x.shape:
            x._resolve_dim(axis)
            return x
        axis = x._resolve_dim(axis)
        return x.transpose(axis, -1)._log_scan_last().transpose(axis, -1)

    def _log_scan_last(self) -> Self:
        n = self.shape[-1]
        if not isinstance(n, int) or n <= _WINDOW:
            return self._log_scan_windows()
        blocks = self._in_blocks(n, -math.inf)._log_scan_windows()
        lead, count, block = blocks.shape[:-2], blocks.shape[-2], blocks.shape[-1]
        keep = tuple(None for _ in lead)
        totals = blocks.shrink((*keep, None, (block - 1, block))).reshape((*lead, count))
        before = totals._log_scan_last().pad((*keep, (1, -1)), value=-math.inf).reshape((*lead, count, 1))
        return blocks.logaddexp(before).reshape((*lead, count * block)).shrink((*keep, (0, n)))

    def _log_scan_windows(self) -> Self:
        n = self.shape[-1]
        x = self.pad((*(None for _ in self.shape[:-1]), (n - 1, 0)), value=-math.inf)
        return x._pool((n,)).logsumexp(-1)
