"""Bad input to tensors: each row is a mistake people make, the exception it must be, and words the message must hold.

A message says what was asked, the values, why it cannot be and what to do; it never is one of the implementation.
"""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhost import Device, Tensor, Variable, dtypes
from tinyhost.errors import DeviceNotFound, DTypeError, OutOfMemory, ScheduleError, ShapeError

NAN, INF = math.nan, math.inf
ELSEWHERE = "NPY"
MEMORY = ctypes.create_string_buffer(64)


def x() -> Tensor:
    return Tensor(np.ones((2, 3), np.float32)).realize()


def i() -> Tensor:
    return Tensor(np.array([1, 2], np.int32)).realize()


def m() -> Tensor:
    return Tensor.ones(1, 3, 4, 4)


Row = tuple[str, Callable[[], Any], type[BaseException], str]

CREATION: list[Row] = [
    ("text", lambda: Tensor("abc"), TypeError,
     "cannot make a tensor from str 'abc': use a number, a nested list, bytes, a numpy array, a path or a UOp"),
    ("object", lambda: Tensor(object()), TypeError, "cannot make a tensor from object <object object at"),
    ("set", lambda: Tensor({1, 2}), TypeError, r"cannot make a tensor from set \{1, 2\}"),
    ("tensor", lambda: Tensor(x()), TypeError,
     r"Tensor\(tensor\) would hide the graph: use .clone\(\), .cast\(\) or .to\(\) instead"),
    ("ragged list", lambda: Tensor([[1, 2], [3]]), ValueError, r"inhomogeneous shape from \[\[1, 2\], \[3\]\]"),
    ("text in a list", lambda: Tensor([1, "a"]), DTypeError,
     "cannot make a tensor from an element of type str: 'a'; use numbers, or stack tensors with Tensor.stack"),
    ("None in a list", lambda: Tensor([None]), TypeError, "None"),
    ("too large an integer", lambda: Tensor([2**64]), OverflowError,
     "integers from 18446744073709551616 to 18446744073709551616 fit no dtype"),
    ("too wide a range", lambda: Tensor([-1, 2**64 - 1]), OverflowError,
     "integers from -1 to 18446744073709551615 fit no dtype"),
    ("complex array", lambda: Tensor(np.ones(2, complex)), DTypeError,
     "numpy dtype 'complex128' has no tinyhost dtype: convert the array first, for example with "
     r".astype\('float32'\); supported are bool"),
    ("array of objects", lambda: Tensor(np.array([object()])), DTypeError,
     "numpy dtype 'object' has no tinyhost dtype"),
    ("array of text", lambda: Tensor(np.array(["a"])), DTypeError, "has no tinyhost dtype"),
    ("array of dates", lambda: Tensor(np.array(["2020-01-01"], "datetime64[D]")), DTypeError, "has no tinyhost dtype"),
    ("unknown dtype", lambda: Tensor([1], dtype="float33"), DTypeError,
     "unknown dtype 'float33': the names are bfloat16, bool"),
    ("dtype that is a number", lambda: Tensor([1], dtype=3), DTypeError, "unknown dtype 3: the names are"),
    ("weak dtype", lambda: Tensor([1], dtype=dtypes.weakint), RuntimeError,
     "cannot create storage for weak dtype .*weakint: use a concrete dtype"),
    ("missing file", lambda: Tensor(Path("/nope/x")), FileNotFoundError, "/nope/x"),
    ("odd number of bytes", lambda: Tensor(b"abc", dtype=dtypes.int32), RuntimeError,
     "unsupported size in bitcast: 3 elements of 1 bytes are no multiple of 4"),
    ("negative extent", lambda: Tensor.zeros(-3), ShapeError, r"an extent cannot be negative, got shape \(-3,\)"),
    ("negative extent of empty", lambda: Tensor.empty(2, -1), ShapeError,
     r"an extent cannot be negative, got shape \(2, -1\)"),
    ("float extent", lambda: Tensor.zeros(2.0), (TypeError, ShapeError), r"2\.0"),
    ("text extent", lambda: Tensor.zeros("a"), (TypeError, ShapeError), "'a'"),
    ("None as extent", lambda: Tensor.ones(None), (TypeError, ShapeError), "None"),
    ("more than fits", lambda: Tensor.zeros(2**62).realize(), (OutOfMemory, OverflowError), "failed on|exceed"),
    ("negative eye", lambda: Tensor.eye(-1), ValueError, "eye needs extents that are not negative, got -1 and -1"),
]

RANGES: list[Row] = [
    ("arange step 0", lambda: Tensor.arange(0, 5, 0), ValueError, "arange needs a step that is not 0"),
    ("arange to nan", lambda: Tensor.arange(NAN), ValueError, "arange.*nan"),
    ("arange to infinity", lambda: Tensor.arange(INF), (ValueError, OverflowError), "arange.*inf"),
    ("arange step nan", lambda: Tensor.arange(0, 5, NAN), ValueError, "arange.*nan"),
    ("arange of text", lambda: Tensor.arange("5"), TypeError, "arange.*'5'"),
    ("arange over its dtype", lambda: Tensor.arange(0, 200, dtype=dtypes.int8), OverflowError,
     r"arange\(0, 200, 1\) does not fit dtypes.char: it holds -128 to 127"),
    ("arange of 2**70", lambda: Tensor.arange(2**70), OverflowError, "arange"),
    ("linspace of -1", lambda: Tensor.linspace(0, 1, -1), ValueError,
     "linspace needs a number of steps that is not negative, got -1"),
    ("linspace of 2.5", lambda: Tensor.linspace(0, 1, 2.5), (TypeError, ValueError), r"linspace.*2\.5"),
    ("linspace of bool", lambda: Tensor.linspace(0, 1, 3, dtype=dtypes.bool), ValueError,
     "linspace with bool dtype is not supported"),
]

RANDOM: list[Row] = [
    ("rand -1", lambda: Tensor.rand(-1), ShapeError, r"rand needs extents that are non-negative ints, got \(-1,\)"),
    ("rand 2.5", lambda: Tensor.rand(2.5), ShapeError, r"rand needs extents that are non-negative ints, got \(2.5,\)"),
    ("rand of ints", lambda: Tensor.rand(2, dtype=dtypes.int32), DTypeError,
     "rand needs a float dtype such as float32, got dtypes.int: use randint for integers"),
    ("randint with low above high", lambda: Tensor.randint(3, low=5, high=2), ValueError, "randint.*5.*2"),
    ("randint of nothing", lambda: Tensor.randint(3, low=5, high=5), ValueError, "randint.*5.*5"),
    ("randint with float bounds", lambda: Tensor.randint(3, low=0.5, high=2), TypeError,
     "randint needs ints as bounds, got low=0.5, high=2"),
    ("randint of floats", lambda: Tensor.randint(3, dtype=dtypes.float32), DTypeError,
     "randint needs an integer dtype, got dtypes.float: use uniform for floats"),
    ("randint over its dtype", lambda: Tensor.randint(3, low=0, high=300, dtype=dtypes.int8),
     (ValueError, OverflowError), "300"),
    ("randint over int32", lambda: Tensor.randint(3, low=0, high=2**40), (ValueError, OverflowError), str(2**40)),
    ("uniform to nan", lambda: Tensor.uniform(3, high=NAN), ValueError, "uniform.*nan"),
    ("uniform to infinity", lambda: Tensor.uniform(3, high=INF), ValueError, "uniform.*inf"),
    ("normal of deviation -1", lambda: Tensor.normal(3, std=-1.0), ValueError, r"normal.*-1\.0"),
    ("dropout -0.1", lambda: x().dropout(-0.1), ValueError, "dropout needs a probability between 0 and 1, got -0.1"),
    ("dropout 1.1", lambda: x().dropout(1.1), ValueError, "dropout needs a probability between 0 and 1, got 1.1"),
    ("dropout nan", lambda: x().dropout(NAN), ValueError, "dropout needs a probability between 0 and 1, got nan"),
    ("multinomial of none", lambda: x().multinomial(0), ShapeError,
     "multinomial takes one or two axes and a positive num_samples"),
    ("multinomial of too many", lambda: x().multinomial(7), ShapeError, "cannot draw 7 of 3 without replacement"),
    ("randperm -1", lambda: Tensor.randperm(-1), (ShapeError, ValueError), "-1"),
    ("glorot of a scalar", lambda: Tensor.glorot_uniform(), (ShapeError, ValueError), "glorot_uniform"),
    ("text seed", lambda: Tensor.manual_seed("a"), TypeError, "seed.*'a'"),
]

OPERANDS: list[Row] = [
    ("shapes", lambda: x() + Tensor.ones(2), IndexError,
     r"cannot broadcast \(2, 3\) and \(2,\): axis -1 is 3 and 2; make them equal or one of them 1"),
    ("matrix product", lambda: x() @ x(), ShapeError,
     r"cannot dot \(2, 3\) and \(2, 3\): contracted extents 3 and 2 differ"),
    ("product with a number", lambda: x() @ 3, ShapeError,
     r"dot needs operands of one axis or more, got shapes \(2, 3\) and \(\): use \*"),
    ("devices", lambda: x() + x().to(ELSEWHERE), RuntimeError,
     r"all operands of ADD must be on one device, got \w+, NPY: operand 1 of shape \(2, 3\) is on NPY and was not "
     r"moved "
     r"with the others on \w+; move it with .to\(\) or .shard\(\)"),
    ("devices of an index", lambda: x()[i().to(ELSEWHERE)], RuntimeError,
     r"index on NPY for a tensor on \w+: move it with .to\(\)"),
    ("text", lambda: x() + "a", TypeError, "'a'"),
    ("None", lambda: x() + None, TypeError, "None"),
    ("complex", lambda: x() + 1j, TypeError, "1j"),
    ("and of floats", lambda: x() & 1, DTypeError,
     "AND needs integers or bools, got dtypes.float and dtypes.weakfloat: cast or bitcast"),
    ("shift of floats", lambda: x() << 1, DTypeError,
     "shift operands must be int, got dtypes.float and dtypes.weakint: cast or bitcast floats and bools"),
    ("not of floats", lambda: ~x(), DTypeError, "XOR needs integers or bools"),
    ("negative power of ints", lambda: i() ** -1, DTypeError,
     r"dtypes.int \*\* -1: an integer to a negative power is no integer; cast it to float"),
    ("rounding mode", lambda: x().div(2, rounding_mode="up"), ValueError,
     "unknown rounding_mode 'up': use None, 'trunc' or 'floor'"),
    ("where of a float", lambda: x().where(1, 2), DTypeError,
     "where cond must be bool, got dtypes.float: compare it, or cast it to bool"),
    ("clip to nothing", lambda: x().clip(), RuntimeError, "clip needs min_ or max_, got neither"),
    ("cast to nothing", lambda: x().cast("x"), DTypeError, "unknown dtype 'x': the names are"),
    ("cast to void", lambda: x().cast(dtypes.void).realize(), DTypeError, "void"),
    ("bitcast of 3 x 4 bytes to 8", lambda: x().bitcast(dtypes.float64), RuntimeError,
     "unsupported size in bitcast: 3 elements of 4 bytes are no multiple of 8"),
    ("bitcast of a literal", lambda: Tensor(1).bitcast(dtypes.int32), DTypeError,
     "a weak dtype has no bytes, cast it first"),
]

SHAPES: list[Row] = [
    ("reshape", lambda: x().reshape(4), ShapeError, r"cannot reshape \(2, 3\) \(6 elements\) to \(4,\) \(4 elements\)"),
    ("reshape with two unknowns", lambda: x().reshape(-1, -1), ShapeError,
     r"only one extent can be inferred \(-1\), got \(-1, -1\)"),
    ("reshape to -2", lambda: x().reshape(-2, 3), ShapeError,
     r"cannot reshape \(2, 3\) to \(-2, 3\): an extent is negative"),
    ("reshape to 2.0", lambda: x().reshape(2.0, 3), (TypeError, ShapeError), r"2\.0"),
    ("permute twice the same", lambda: x().permute(0, 0), RuntimeError,
     r"order \(0, 0\) is not a permutation of the 2 axes of shape \(2, 3\)"),
    ("permute too few", lambda: x().permute(0), RuntimeError, "is not a permutation of the 2 axes"),
    ("transpose", lambda: x().transpose(0, 2), IndexError, r"axis 2 is outside of -2 to 1 of \(2, 3\)"),
    ("expand", lambda: x().expand(4, 3), ShapeError, r"cannot expand \(2, 3\) to \(4, 3\): axis 0 is 2, not 1"),
    ("expand to fewer", lambda: x().expand(3), ShapeError,
     r"cannot expand \(2, 3\) to \(3,\): the result has fewer axes"),
    ("flip", lambda: x().flip(2), IndexError, "axis 2 is outside of -2 to 1"),
    ("shrink", lambda: x().shrink(((0, 3), None)), ShapeError,
     r"cannot shrink \(2, 3\) to \(\(0, 3\), None\): 0 to 3 is not in 2"),
    ("shrink from -1", lambda: x().shrink(((-1, 1), None)), ShapeError, "-1 to 1 is not in 2"),
    ("shrink of one axis", lambda: x().shrink(((0, 1),)), ShapeError,
     r"shrink needs a pair for each axis of shape \(2, 3\)"),
    ("pad by three", lambda: x().pad((1, 2, 3)), ShapeError,
     r"flat padding needs an even number of values, got \(1, 2, 3\)"),
    ("pad mode", lambda: x().pad((1, 1), mode="x"), ValueError,
     "unknown padding mode 'x': use 'constant', 'reflect', 'replicate' or 'circular'"),
    ("reflect too far", lambda: x().pad((5, 5), mode="reflect"), ShapeError,
     r"reflect padding \(5, 5\) of axis 1 of \(2, 3\) is over 2"),
    ("cat of shapes", lambda: x().cat(Tensor.ones(2, 4)), ShapeError,
     r"cat along axis 0 needs equal other axes, got \[\(2, 3\), \(2, 4\)\]"),
    ("stack of shapes", lambda: Tensor.stack(x(), i()), ShapeError,
     r"stack needs equal shapes, got \[\(2, 3\), \(2,\)\]"),
    ("split into zero", lambda: x().split(0), ShapeError, "split needs a positive size, got 0"),
    ("split into four", lambda: x().split([1, 3]), ShapeError,
     r"sizes \[1, 3\] do not add up to 2, the extent of axis 0 of \(2, 3\)"),
    ("no chunks", lambda: x().chunk(0), ShapeError, "chunk needs a positive number of chunks, got 0"),
    ("repeat -1", lambda: x().repeat(-1, 2), ShapeError, "repeat.*-1|-1.*repeat"),
    ("repeat too few", lambda: x().repeat(2), ShapeError,
     r"repeat needs a count for each axis of shape \(2, 3\), got \(2,\)"),
    ("unfold", lambda: x().unfold(0, 5, 1), ShapeError,
     r"cannot unfold axis 0 of \(2, 3\): size 5 must be at most 2 and step 1 positive"),
    ("tril of a vector", lambda: Tensor.ones(3).tril(), (ShapeError, IndexError), "tril"),
    ("squeeze", lambda: x().squeeze(3), IndexError, "axis 3 is outside of -2 to 1"),
    ("unsqueeze", lambda: x().unsqueeze(5), IndexError, "axis 5 is outside of -3 to 2"),
    ("sum over an axis that is not there", lambda: x().sum(2), IndexError, "axis 2 is outside of -2 to 1"),
    ("sum over an axis twice", lambda: x().sum((0, 0)), (ShapeError, ValueError, IndexError), "0"),
    ("sum over axis 0.5", lambda: x().sum(0.5), TypeError, r"0\.5"),
    ("topk 5 of 3", lambda: x().topk(5), ShapeError, r"topk of 5 elements, but axis 1 of shape \(2, 3\) has 3"),
    ("topk -1", lambda: x().topk(-1), ShapeError, "topk of -1"),
    ("one_hot -1", lambda: i().one_hot(-1), (ShapeError, ValueError), "one_hot.*-1"),
    ("one_hot of floats", lambda: x().one_hot(3), DTypeError, "one_hot needs integers, got dtypes.float"),
    ("einsum", lambda: Tensor.einsum("ij,jk->ik", x(), x()), ShapeError, "einsum 'ij,jk->ik': axis j is 3 and 2"),
    ("rearrange", lambda: x().rearrange("a b -> b c"), ShapeError,
     r"both sides of rearrange formula 'a b -> b c' need the same axes: \['a', 'c'\]"),
    ("qr of a vector", lambda: Tensor.ones(3).qr(), ShapeError, r"qr needs a matrix, got shape \(3,\)"),
]

WINDOWS: list[Row] = [
    ("channels", lambda: m().conv2d(Tensor.ones(2, 2, 3, 3)), ShapeError,
     r"conv of input \(1, 3, 4, 4\) with weight \(2, 2, 3, 3\) and 1 groups: the input needs 2 channels"),
    ("kernel too large", lambda: m().conv2d(Tensor.ones(1, 3, 5, 5)), ShapeError,
     r"kernel \(5, 5\) with dilation \(1, 1\) is larger than the input \(1, 3, 4, 4\)"),
    ("three paddings", lambda: m().conv2d(Tensor.ones(1, 3, 3, 3), padding=(1, 2, 3)), ShapeError,
     r"padding needs 1, 2 or 4 values for 2 spatial axes, got \(1, 2, 3\)"),
    ("stride 0", lambda: m().conv2d(Tensor.ones(1, 3, 3, 3), stride=0), ShapeError, "stride"),
    ("dilation 0", lambda: m().conv2d(Tensor.ones(1, 3, 3, 3), dilation=0), ShapeError, "dilation"),
    ("no groups", lambda: m().conv2d(Tensor.ones(1, 3, 3, 3), groups=0), ShapeError, "0 groups"),
    ("pool kernel 0", lambda: m().max_pool2d(0), ShapeError, "kernel"),
    ("pool stride 0", lambda: m().avg_pool2d((2, 2), stride=0), ShapeError, "stride"),
    ("pool kernel too large", lambda: m().max_pool2d((5, 5)), ShapeError,
     r"kernel \(5, 5\) with dilation \(1, 1\) is larger than the input"),
    ("interpolate to nothing", lambda: m().interpolate((0,)), ShapeError,
     "interpolate needs positive sizes of the last axes"),
    ("interpolation mode", lambda: m().interpolate((2,), mode="x"), ValueError,
     "unknown interpolation mode 'x': use 'linear', 'cubic', 'nearest', 'nearest-exact'"),
]

LOSSES: list[Row] = [
    ("targets of another length", lambda: x().cross_entropy(Tensor([0, 1, 1])), ShapeError,
     r"cross_entropy of \(2, 3\) needs targets of that shape or without axis 1, got \(3,\)"),
    ("label smoothing 2", lambda: x().cross_entropy(Tensor([0, 1]), label_smoothing=2.0), ValueError,
     "label_smoothing must lie between 0 and 1, got 2.0"),
    ("reduction", lambda: x().cross_entropy(Tensor([0, 1]), reduction="x"), ValueError,
     "unknown reduction 'x': use 'mean', 'sum' or 'none'"),
    ("head sizes",
     lambda: Tensor.ones(1, 2, 3).scaled_dot_product_attention(Tensor.ones(1, 2, 4), Tensor.ones(1, 2, 4)), ShapeError,
     "need the same head size"),
    ("gradient of a vector", lambda: x().is_param_().backward(), ShapeError,
     r"a tensor of shape \(2, 3\) needs a gradient= of that shape: give one, or reduce it"),
    ("gradient of integers", lambda: i().sum().backward(), DTypeError,
     "only floats have gradients, got a tensor of dtypes.int"),
    ("gradient for a stranger", lambda: x().sum().gradient(Tensor.ones(2)), RuntimeError,
     r"target 0 <Tensor \(2,\) .* has no gradient: .* does not depend on it"),
    ("integer parameter", lambda: i().is_param_(), DTypeError,
     "only float tensors have gradients, got dtypes.int: cast it first"),
]

ITEMS: list[Row] = [
    ("index 2 of 2", lambda: x()[2], IndexError, "index 2 is out of bounds for axis 0 of size 2"),
    ("three indices", lambda: x()[0, 0, 0], IndexError, r"too many indices: 3 for shape \(2, 3\) of 2 axes"),
    ("float index", lambda: x()[0.5], IndexError,
     "float 0.5 is no index for axis 0: use ints, slices, None, ..., int tensors"),
    ("text index", lambda: x()["a"], IndexError, "str 'a' is no index for axis 0"),
    ("step 0", lambda: x()[::0], ValueError, "slice step cannot be 0"),
    ("two ellipses", lambda: x()[..., ...], IndexError, "indices can only have a single ellipsis"),
    ("list of floats", lambda: x()[[0.5]], DTypeError,
     "an index holds integers or bools, got list of float64: cast it first"),
    ("list out of range", lambda: x()[[5]], IndexError, "index 5 is out of bounds for axis 0 of size 2"),
    ("float tensor", lambda: x()[Tensor([0.5])], DTypeError,
     "an index is an integer tensor, got dtypes.float for axis 0: cast it to int32"),
    ("mask of another shape", lambda: x()[Tensor([True, False, True])], IndexError,
     r"a bool mask of shape \(3,\) cannot select from axes 0 to 0 of shape \(2, 3\): the extents must be equal"),
    ("values for a mask", lambda: x().__setitem__(x() > 0, Tensor.ones(2)), ShapeError,
     r"setitem of 2 values where the mask of shape \(2, 3\) is true 6 times"),
    ("write of another shape", lambda: x().__setitem__(0, Tensor.ones(2)), ShapeError,
     r"setitem shape mismatch \(3,\) != \(2,\): the value must broadcast"),
    ("write of another dtype", lambda: i().__setitem__(0, 1.5), DTypeError,
     "setitem dtype mismatch dtypes.int != dtypes.weakfloat: cast the value to dtypes.int"),
    ("assign another shape", lambda: x().assign(Tensor.ones(5)), ShapeError,
     r"assign shape mismatch \(2, 3\) != \(5,\): the value must broadcast"),
    ("assign another dtype", lambda: i().assign(Tensor.ones(2)), DTypeError,
     "assign dtype mismatch dtypes.int != dtypes.float: cast the value to dtypes.int"),
    ("assign from another device", lambda: x().assign(x().to(ELSEWHERE)), RuntimeError,
     r"assign device mismatch \w+ != NPY: move the value with .to\(\)"),
    ("replace by another shape", lambda: x().replace(Tensor.ones(2)), ShapeError,
     r"cannot replace a tensor of shape \(2, 3\) by one of shape \(2,\)"),
    ("item of six", lambda: x().item(), ValueError,
     r"item\(\) needs exactly one element, got shape \(2, 3\): use tolist\(\) or index first"),
    ("truth of six", lambda: bool(x()), TypeError,
     r"only a 0-d bool tensor has a truth value, got shape \(2, 3\) of dtypes.float: use .any\(\), .all\(\) or "
     r".item\(\)"),
    ("length of a scalar", lambda: len(Tensor(1)), TypeError, r"len\(\) of a 0-d tensor"),
    ("iteration of a scalar", lambda: list(Tensor(1)), TypeError, "iteration over a 0-d tensor"),
    ("float tensor as index", lambda: [1, 2][Tensor(1.0)], TypeError, "only an integer tensor can be an index"),
]

DEVICES: list[Row] = [
    ("unknown device", lambda: Tensor([1], device="NOPE").realize(), DeviceNotFound,
     "no installed distribution offers a device named 'NOPE'. Installed are: "),
    ("near miss", lambda: x().to("PYTHONN").realize(), DeviceNotFound,
     r"device named 'PYTHONN'; did you mean PYTHON\?"),
    ("text for a number", lambda: x().to("PYTHON:one").realize(), DeviceNotFound,
     "'PYTHON:one' is not a device string: after ':' stands the device's number"),
    ("number for a device", lambda: Tensor([1], device=5), TypeError,
     "a device is named by text such as 'NAME' or 'NAME:1', or None, got 5"),
    ("move to a number", lambda: x().to(3), TypeError, "a device is named by text .* got 3"),
    ("set the default", lambda: setattr(Device, "DEFAULT", "PYTHON"), AttributeError,
     r"Device.DEFAULT cannot be set: write Context\(DEV='PYTHON'\) around the code"),
    ("read from NULL", lambda: Tensor([1.0], device="NULL").tolist(), RuntimeError,
     "no copyout on NULL: it computes nothing, so there is nothing to read; use another device"),
    ("compute on host data", lambda: (Tensor([1.0], device=ELSEWHERE) + 1).realize(), ScheduleError,
     "cannot run a kernel on NPY .*: it only stores data; copy to another device before computing"),
    ("file in no folder",
     lambda: Tensor.empty(2, device="DISK:/nope/f").assign(Tensor.ones(2).to("DISK:/nope/f")).realize(),
     FileNotFoundError, "/nope/f"),
    ("no file", lambda: Device["DISK"], RuntimeError, "DISK names no file: write DISK:/path/to/file"),
]

FOREIGN: list[Row] = [
    (
        "unaligned",
        lambda: Tensor.from_blob(ctypes.addressof(MEMORY) + 1, (2,), dtype=dtypes.float32, device=ELSEWHERE),
        ValueError,
        "foreign memory at 0x[0-9a-f]+ is not aligned to the 4 bytes of dtypes.float: copy it to aligned memory first",
    ),
    (
        "null",
        lambda: Tensor.from_blob(0, (2,), device=ELSEWHERE),
        ValueError,
        "foreign memory at 0: an address is a positive number",
    ),
    (
        "negative",
        lambda: Tensor.from_blob(-8, (2,), device=ELSEWHERE),
        ValueError,
        "foreign memory at -8: an address is a positive number",
    ),
    ("negative size", lambda: Tensor.from_blob(64, (-2,), device=ELSEWHERE), ValueError, "-2"),
    (
        "unknown argument",
        lambda: Tensor.from_blob(64, (2,), foo=1),
        TypeError,
        r"from_blob takes device and dtype, got \['foo'\]",
    ),
    (
        "on a file",
        lambda: Tensor.from_blob(64, (2,), device="DISK:/tmp/none"),
        ValueError,
        "DISK:/tmp/none cannot take foreign memory over: make the tensor on a device that can, and move it with "
        r".to\(\)",
    ),
]

SYMBOLS: list[Row] = [
    ("empty range", lambda: Variable("n", 5, 1), ValueError, "variable 'n' has an empty range 5 to 1"),
    ("bound outside", lambda: Variable("n", 1, 5).bind(9), AssertionError,
     r"bind 9 not in range \[1, 5\] of variable 'n'"),
]

TABLES = {
    "creation": CREATION,
    "ranges": RANGES,
    "random": RANDOM,
    "operands": OPERANDS,
    "shapes": SHAPES,
    "windows": WINDOWS,
    "losses": LOSSES,
    "items": ITEMS,
    "devices": DEVICES,
    "foreign": FOREIGN,
    "symbols": SYMBOLS,
}


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{table}-{row[0]}") for table, rows in TABLES.items() for row in rows]
)
def test_row(row: Row):
    _, call, kind, text = row
    with pytest.raises(kind, match=f"(?s){text}") as caught:
        call()
    assert len(str(caught.value)) < 1500  # a sentence, no dump of a graph


def test_foreign_memory_is_used_in_place():
    memory = np.arange(6, dtype=np.float32)
    t = Tensor.from_blob(memory.ctypes.data, (2, 3), dtype=dtypes.float32, device="NPY")
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    memory[4] = 40
    assert t.tolist() == [[0, 1, 2], [3, 40, 5]] and t.to(None).realize().tolist()[1] == [3, 40, 5]


def test_foreign_memory_on_the_default_device():
    memory = np.arange(16, dtype=np.float32)
    if not Device.default.allocator.foreign:
        with pytest.raises(ValueError, match="cannot take foreign memory over"):
            Tensor.from_blob(memory.ctypes.data, (16,))
        return
    t = Tensor.from_blob(memory.ctypes.data, (4, 4))
    t += 1
    assert t.realize().sum().item() == sum(range(16)) + 16 and memory[3] == 4.0
