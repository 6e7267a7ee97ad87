"""Memory at an address: what a device and the host both see.

``HostMemory`` is a piece of memory with the two faces that command streams need: the address the device uses and the
bytes the host writes. ``MMIO`` is a typed view of such bytes for registers, pointers and doorbells: each access is one
load or store of the element's width. Nothing here allocates or frees; ``owner`` keeps memory alive.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_CTYPES: dict[int, Any] = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}


@dataclass(frozen=True, eq=False)
class HostMemory:
    """``len(view)`` bytes.

    Attributes:
        address: of the first byte, as the device sees it.
        view: the same bytes as the host writes them.
        owner: what lives as long as the memory is used.
    """

    address: int
    view: memoryview
    owner: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.view.nbytes

    @property
    def host_address(self) -> int:
        """Address of the first byte in this process."""
        return address_of(self.view)

    def part(self, offset: int, nbytes: int) -> HostMemory:
        """``nbytes`` bytes from ``offset``.

        Raises:
            ValueError: they are not all inside.
        """
        if offset < 0 or nbytes < 0 or offset + nbytes > len(self):
            raise ValueError(f"{nbytes} bytes from byte {offset} do not lie in memory of {len(self)} bytes")
        return HostMemory(self.address + offset, self.view[offset:offset + nbytes], self)

    def mmio(self, bits: int = 32) -> MMIO:
        """The memory as elements of ``bits`` bits."""
        return MMIO(self.host_address, len(self), bits, self)


def address_of(view: memoryview) -> int:
    """Address in this process of the first byte of ``view``, writable or not; 0 for no bytes at all."""
    return int(np.frombuffer(view, dtype=np.uint8).ctypes.data) if view.nbytes else 0


class MMIO:
    """Elements of ``bits`` bits over the ``nbytes`` bytes at ``address`` of this process.

    Indices are elements; slices give and take lists of ints. A value is stored modulo 2^bits.

    Raises:
        ValueError: no such width, an address that is not a multiple of it, or a negative size.
    """

    __slots__ = ("address", "nbytes", "bits", "owner", "_array")

    def __init__(self, address: int, nbytes: int, bits: int = 32, owner: Any = None) -> None:
        if bits not in _CTYPES:
            raise ValueError(f"registers have {', '.join(map(str, _CTYPES))} bits, not {bits}")
        if address % (bits // 8) or nbytes < 0:
            raise ValueError(f"{nbytes} bytes at {address:#x} are no row of {bits}-bit registers: the address must be "
                             f"a multiple of {bits // 8} bytes")
        self.address, self.nbytes, self.bits, self.owner = address, nbytes, bits, owner
        self._array = (_CTYPES[bits] * (nbytes // (bits // 8))).from_address(address)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [int(x) for x in self._array[index]]
        return self._array[self._check(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            if len(places) != len(value):
                raise ValueError(f"{len(value)} values for {len(places)} registers")
            for i, x in zip(places, value):  # in order, each one store
                self._array[i] = x
        else:
            self._array[self._check(index)] = value

    def view(self, offset: int = 0, nbytes: int | None = None, bits: int | None = None) -> MMIO:
        """``nbytes`` bytes from byte ``offset`` (all behind it when None), as elements of ``bits`` bits."""
        size = self.nbytes - offset if nbytes is None else nbytes
        if offset < 0 or size < 0 or offset + size > self.nbytes:
            raise ValueError(f"{size} bytes from byte {offset} do not lie in {self!r}")
        return MMIO(self.address + offset, size, bits or self.bits, self)

    def _check(self, index: int) -> int:
        if not 0 <= index < len(self._array):
            raise IndexError(f"register {index} of {self!r}: the last one is {len(self._array) - 1}")
        return index

    def __repr__(self) -> str:
        return f"<MMIO {self.nbytes} bytes at {self.address:#x} as {self.bits}-bit registers>"
