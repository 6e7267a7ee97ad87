"""Random tensors: distributions over Threefry words.

Takes shapes and parameters; every draw advances its device's counter. Uniform floats are mantissa bits under the
exponent of 1, less 1; normal ones are Box-Muller pairs; integers are the upper part of the product of a word and the
length of the range, the word being so long that no integer is noticeably more likely than another.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import DeviceLike, TensorCore, canonical_device
from tinyhost.dtype import dtypes, to_dtype
from tinyhost.env import TRAINING
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.helpers import argfix, ceildiv, prod
from tinyhost.rng import state

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike

# bits of 1.0
_ONE = {dtypes.float16: 0x3C00, dtypes.bfloat16: 0x3F80, dtypes.float32: 0x3F800000,
        dtypes.float64: 0x3FF0000000000000, dtypes.fp8e4m3: 0x38, dtypes.fp8e5m2: 0x3C,
        dtypes.fp8e4m3fnuz: 0x40, dtypes.fp8e5m2fnuz: 0x40}
_UINT = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


class RandomTensor(TensorCore):
    """rand, randn, randint, uniform, normal, initialisers, multinomial, dropout."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Set the seed of every device and start their counters at 0.

        Raises:
            TypeError: the seed is no int.
        """
        if not isinstance(seed, int):
            raise TypeError(f"a seed is an int, got {seed!r}")
        state.reseed(seed)

    @classmethod
    def rand(cls, *shape: Any, device: DeviceLike = None, dtype: DTypeLike | None = None,
             contiguous: bool = True) -> Self:
        """Uniform floats in [0, 1).

        Raises:
            DTypeError: the dtype is no float with a fixed width.
            ShapeError: an extent is negative or symbolic.
        """
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        if not dt.is_float or dt.is_weak:
            raise DTypeError(f"rand needs a float dtype such as float32, got {dt}: use randint for integers")
        dims = argfix(*shape)
        count = cls._checked_count("rand", dims)
        if count == 0:
            return cls._const(0, dt)._broadcast_to(dims)
        bits = cls._drawn(ceildiv(count * dt.itemsize, 4), device)
        ret = cls._unit_floats(bits, dt, count).reshape(dims)
        return ret.contiguous() if contiguous else ret

    @staticmethod
    def _checked_count(name: str, dims: tuple[Any, ...]) -> int:
        if not all(isinstance(s, int) and s >= 0 for s in dims):
            raise ShapeError(f"{name} needs extents that are non-negative ints, got {dims}")
        count: int = prod(dims)
        return count

    @classmethod
    def _drawn(cls, words: int, device: DeviceLike) -> Self:
        """The next ``words`` words of a device; for several devices those of the first, on each."""
        target = canonical_device(device)
        home = target if isinstance(target, str) else target[0]
        key, counter = state.draw(cls, home, words)
        bits = cls.random_bits(cls._wrap(key.uop), cls._wrap(counter.uop), words)
        return bits if home is target else bits.to(target)

    @classmethod
    def _unit_floats(cls, bits: Self, dtype: Any, count: int) -> Self:
        """Words as floats in [0, 1): the top mantissa bits under the exponent of 1, less 1."""
        mantissa = dtypes.finfo(dtype)[1]
        width = dtype.bitsize
        if width == 64 and bits.shape[0] % 2:
            raise AssertionError("64-bit floats take an even number of words")
        uints = bits.bitcast(_UINT[width])
        one = (uints >> (width - mantissa)) | _ONE[dtype]
        floats: Self = one.bitcast(dtype).shrink(((0, count),))
        return floats - 1

    def rand_like(self, **kwargs: Any) -> Self:
        """``rand`` with self's shape, dtype and device."""
        return self.rand(self.shape, **{"device": self.device, "dtype": self.dtype, **kwargs})

    @classmethod
    def randn(cls, *shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Normal floats of mean 0 and deviation 1."""
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        contiguous = kwargs.pop("contiguous", True)
        pair = cls.rand(2, *argfix(*shape), dtype=dtypes.float32, contiguous=False, **kwargs)
        u0, u1 = (x.reshape(x.shape[1:]) for x in pair.split(1))
        ret = ((u0 * (2 * math.pi)).cos() * ((1 - u1).log() * -2).sqrt()).cast(dt)
        return ret.contiguous() if contiguous else ret

    def randn_like(self, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """``randn`` with self's shape and device, and its dtype unless another is given."""
        return self.randn(self.shape, dtype=self.dtype if dtype is None else dtype, **{"device": self.device, **kwargs})

    @classmethod
    def uniform(cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None,
                **kwargs: Any) -> Self:
        """Numbers in [low, high); an integer dtype truncates.

        Raises:
            ValueError: a bound is not finite, or the dtype does not hold it.
        """
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"uniform needs finite bounds, got low={low}, high={high}")
        dt = dtypes.default_float if dtype is None else to_dtype(dtype)
        if dt.is_int and isinstance(low, int) and isinstance(high, int) and low < high:
            return cls.randint(*shape, low=low, high=high, dtype=dt, **kwargs)
        base = cls.rand(*shape, dtype=dt if dt.is_float else None, **kwargs)
        if not dt.is_float:
            return (base * (high - low) + low).cast(dt)
        ret = (base * (high - low)).cast(dt) + low
        return ret if low >= high else (ret < high).where(ret, low)  # the sum may have been rounded up

    @classmethod
    def randint(cls, *shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = dtypes.int, **kwargs: Any) -> Self:
        """Integers in [low, high).

        Raises:
            TypeError: ``low`` or ``high`` is no int.
            ValueError: no integer lies in [low, high), or the dtype does not hold all of them.
            DTypeError: the dtype is no integer.
        """
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"randint needs ints as bounds, got low={low!r}, high={high!r}")
        dt = to_dtype(dtype)
        if not dt.is_int:
            raise DTypeError(f"randint needs an integer dtype, got {dt}: use uniform for floats")
        if low >= high:
            raise ValueError(f"randint draws from low to high - 1, got low={low}, high={high}: no integer is there")
        if low < dt.min or high - 1 > dt.max:
            raise ValueError(f"randint from {low} to {high} does not fit {dt}: it holds {dt.min} to {dt.max}")
        dims = argfix(*shape)
        count = cls._checked_count("randint", dims)
        if count == 0:
            return cls._const(0, dt)._broadcast_to(dims)
        contiguous = kwargs.pop("contiguous", True)
        offset = cls._below(high - low, count, kwargs.pop("device", None), **kwargs).cast(dt)
        # both wrap, so that their sum is right
        ret = (offset + cls._const(low, dt)).reshape(dims)
        return ret.contiguous() if contiguous else ret

    @classmethod
    def _below(cls, span: int, count: int, device: DeviceLike) -> Self:
        """``count`` uint64 from 0 to span - 1: word * span >> bits of the word, with words of 32, 64 or 128 bits.

        An integer is more likely than another by at most span / 2**bits of the word, that is 2**-16 for one of 32 bits.
        """
        if span <= 1 << 16:
            return (cls._drawn(count, device).cast(dtypes.uint64) * span) >> 32
        if span <= 1 << 32:
            return cls._drawn(2 * count, device).bitcast(dtypes.uint64)._high_product(span)
        pairs = cls._drawn(4 * count, device).bitcast(dtypes.uint64).reshape(2, count)
        high, low = (x.reshape(count) for x in pairs.split(1))
        if span == 1 << 64:
            return high
        carried = low._high_product(span)
        total = high * cls._const(span, dtypes.uint64) + carried
        return high._high_product(span) + (total < carried).cast(dtypes.uint64)

    def _high_product(self, factor: int) -> Self:
        """Upper 64 bits of the product of uint64 numbers and a factor below 2**64."""
        a0, a1 = self & 0xFFFFFFFF, self >> 32
        b0, b1 = (self._const(v, dtypes.uint64) for v in (factor & 0xFFFFFFFF, factor >> 32))
        middle = a1 * b0 + ((a0 * b0) >> 32)
        other = a0 * b1 + (middle & 0xFFFFFFFF)
        return a1 * b1 + (middle >> 32) + (other >> 32)

    @classmethod
    def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, **kwargs: Any) -> Self:
        """Normal floats.

        Raises:
            ValueError: the deviation is negative, or a number is not finite.
        """
        if not (math.isfinite(mean) and math.isfinite(std) and std >= 0):
            raise ValueError(f"normal needs a finite mean and a deviation that is not negative, got mean={mean}, "
                             f"std={std}")
        return cls.randn(*shape, **kwargs) * std + mean

    @classmethod
    def scaled_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform in [-1, 1), divided by the root of the number of elements."""
        return cls.uniform(*shape, low=-1.0, high=1.0, **kwargs) * float(prod(argfix(*shape)) ** -0.5)

    @classmethod
    def glorot_uniform(cls, *shape: Any, **kwargs: Any) -> Self:
        """Uniform after Glorot and Bengio: bound sqrt(6 / (fan in + fan out))."""
        dims = argfix(*shape)
        if not dims:
            raise ShapeError("glorot_uniform needs at least one axis: its bound follows from the extents")
        return cls.uniform(*dims, low=-1.0, high=1.0, **kwargs) * math.sqrt(6 / (dims[0] + prod(dims[1:])))

    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Uniform after He et al. for leaky relu of slope ``a``."""
        bound = math.sqrt(3.0) * math.sqrt(2.0 / (1 + a**2)) / math.sqrt(prod(argfix(*shape)[1:]))
        return cls.uniform(*shape, low=-bound, high=bound, **kwargs)

    @classmethod
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kwargs: Any) -> Self:
        """Normal after He et al. for leaky relu of slope ``a``."""
        std = math.sqrt(2.0 / (1 + a**2)) / math.sqrt(prod(argfix(*shape)[1:]))
        return cls.normal(*shape, mean=0.0, std=std, **kwargs)

    @classmethod
    def randperm(cls, n: int, device: DeviceLike = None, dtype: DTypeLike = dtypes.int) -> Self:
        """The integers below ``n`` in random order: that of random words, long enough to differ.

        Raises:
            ShapeError: ``n`` is no non-negative int.
        """
        if cls._checked_count("randperm", (n,)) == 0:
            return cls._const(0, to_dtype(dtype))._broadcast_to((0,))
        keys = cls._drawn(n, device) if n <= 1 << 12 else cls._drawn(2 * n, device).bitcast(dtypes.uint64)
        return keys.argsort().cast(to_dtype(dtype))

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Indices drawn with the weights of self, one row or a matrix of rows.

        Raises:
            ShapeError: more than two axes, or no sample asked for.
        """
        if not 1 <= self.ndim <= 2 or num_samples <= 0:
            raise ShapeError(f"multinomial takes one or two axes and a positive num_samples, got shape {self.shape} "
                             f"and {num_samples}")
        weight = self.unsqueeze(0) if self.ndim == 1 else self
        if not replacement and num_samples > weight.shape[1]:
            raise ShapeError(f"cannot draw {num_samples} of {weight.shape[1]} without replacement")
        weight = weight.cast(dtypes.float32)
        if replacement or num_samples == 1:
            total = weight.cumsum(1)
            total = total / total.shrink((None, (weight.shape[1] - 1, weight.shape[1])))
            draws = self.rand(num_samples, weight.shape[0], 1, device=self.device)
            out = (draws >= total).sum(2).cast(dtypes.int32).permute((1, 0))
        else:  # exponential race: the largest u^(1/w) are the draws
            race = self.rand(weight.shape, device=self.device).log() / weight
            out = race.topk(num_samples, dim=1)[1].cast(dtypes.int32)
        return out.squeeze(0) if self.ndim == 1 else out

    def dropout(self, p: float = 0.5) -> Self:
        """In training, zero with probability ``p`` and scaled by 1 / (1 - p) otherwise; else self.

        Raises:
            ValueError: ``p`` is no probability.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"dropout needs a probability between 0 and 1, got {p}")
        if not TRAINING.value or p == 0:
            return self
        if p == 1:
            return self.const_like(0)
        keep = self.rand(self.shape, device=self.device, dtype=dtypes.default_float, contiguous=False) >= p
        return keep.contiguous().where(self, 0) / (1.0 - p)
