"""Indexing: items, gather, scatter, selection by masks, places in sorted sequences."""
from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from .case import FLOATS, INTS, UINTS, Input, by_numpy, case, ints

MASK = np.array([True, False, True, True])
MASK2 = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])
ROWS = ints([[0, 3], [1, 1], [2, 0]])

# *** reading: views ***
case("getitem_int", lambda x: x[1], (3, 4), op="getitem", dtypes=FLOATS)
case("getitem negative int", lambda x: x[-2, 1:], (3, 4), op="getitem")
case("getitem_slices", lambda x: x[1:, ::2, None, -1], (3, 5, 4), op="getitem", dtypes=("float32", *INTS[:2]))
case("getitem clipped slices", lambda x: x[-9:2, 3:99], (3, 4), op="getitem")
case("getitem empty slice", lambda x: x[2:1], (3, 4), op="getitem")
case("getitem_negative_step", lambda x: x[::-1, 4:1:-2], (3, 6), op="getitem", ref=lambda x: x.flip(0)[:, [4, 2]])
case("getitem negative step to the start", lambda x: x[:, 4::-3], (2, 6), op="getitem", ref=lambda x: x[:, [4, 1]])
case("getitem step beyond", lambda x: x[::7], (3, 2), op="getitem")
case("getitem_ellipsis", lambda x: x[..., 0], (3, 5, 4), op="getitem")
case("getitem ellipsis between", lambda x: x[0, ..., 1:], (3, 5, 4), op="getitem")
case("getitem none", lambda x: x[None, :, None], (2, 3), op="getitem")
case("getitem whole", lambda x: x[...], (2, 3), op="getitem")
case("getitem scalar", lambda x: x[()], (), op="getitem")
case("getitem scalar none", lambda x: x[None, ...], (), op="getitem")

# *** reading: integers ***
case("getitem_tensor", lambda x, i: x[i], (5, 3), ints([4, 0, -1, 0]), op="getitem", ref=lambda x, i: x[i.long()],
     dtypes=(*FLOATS, *INTS))
case("getitem_tensor_2d", lambda x, i: x[:, i], (2, 5, 3), ints([[4, 0], [1, 1]]), op="getitem",
     ref=lambda x, i: x[:, i.long()])
case("getitem tensor 0d", lambda x, i: x[:, i], (2, 5, 3), ints(3), op="getitem", ref=lambda x, i: x[:, i.long()])
case("getitem tensor 0d beside", lambda x, i, j: x[i, :, j], (2, 3, 5), ints(1), ints([4, 0]), op="getitem",
     ref=lambda x, i, j: x[i.long(), :, j.long()])
case("getitem_two_tensors", lambda x, i, j: x[i, :, j], (4, 3, 5), ints([0, 3, 1]), ints([[4], [2]]), op="getitem",
     ref=lambda x, i, j: x[i.long(), :, j.long()])
case("getitem_adjacent_tensors", lambda x, i, j: x[:, i, j], (2, 3, 5), ints([0, 2, 1]), ints([4, 2, 0]), op="getitem",
     ref=lambda x, i, j: x[:, i.long(), j.long()])
case("getitem three tensors", lambda x, i, j, k: x[i, j, k], (2, 3, 5), ints([0, 1]), ints([[2], [0]]), ints(4),
     op="getitem", ref=lambda x, i, j, k: x[i.long(), j.long(), k.long()])
case("getitem tensor and none", lambda x, i: x[:, None, i], (2, 5), ints([4, 1]), op="getitem",
     ref=lambda x, i: x[:, None, i.long()])
case("getitem tensors around none", lambda x, i, j: x[i, None, j], (2, 5), ints([0, 1]), ints([4, 1]), op="getitem",
     ref=lambda x, i, j: x[i.long(), None, j.long()])
case("getitem tensor and int", lambda x, i: x[0, :, i], (2, 3, 5), ints([0, 4]), op="getitem",
     ref=lambda x, i: x[0, :, i.long()])
case("getitem tensor and steps", lambda x, i: x[::-2, i, 1:], (5, 3, 4), ints([0, 2]), op="getitem",
     ref=lambda x, i: x.flip(0)[::2, i.long(), 1:])
case("getitem empty tensor", lambda x, i: x[i], (5, 3), ints([]), op="getitem", ref=lambda x, i: x[i.long()])
case("getitem_list", lambda x: x[[2, 0], 1:], (3, 4), op="getitem")
case("getitem nested list", lambda x: x[:, [[0, 1], [2, -1]]], (3, 4), op="getitem")
case("getitem range", lambda x: x[range(0, 4, 2)], (5, 2), op="getitem", ref=lambda x: x[[0, 2]])
case("getitem array", lambda x: x[np.array([1, -1])], (5, 2), op="getitem", ref=lambda x: x[[1, -1]])
for _dtype in ("uint8", "int8", "int16", "int64"):
    case(f"getitem_{_dtype}", lambda x, i: x[i], (300, 2), Input((5,), _dtype, 0, 255), op="getitem",
         ref=lambda x, i: x[i.long()])

# *** reading: bools ***
case("getitem mask", lambda x: x[MASK], (4, 3), op="getitem", ref=lambda x: x[torch.from_numpy(MASK)],
     dtypes=("float32", "int32"))
case("getitem mask of two axes", lambda x: x[MASK2, 1:], (3, 4, 3), op="getitem",
     ref=lambda x: x[torch.from_numpy(MASK2), 1:])
case("getitem mask behind", lambda x: x[:, MASK], (2, 4), op="getitem", ref=lambda x: x[:, torch.from_numpy(MASK)])
case("getitem mask and list", lambda x: x[MASK, [0, 1, 2]], (4, 3), op="getitem",
     ref=lambda x: x[torch.from_numpy(MASK), [0, 1, 2]])
case("getitem list of bools", lambda x: x[[True, False, True]], (3, 2), op="getitem")
case("getitem true", lambda x: x[True], (3, 2), op="getitem")
case("getitem false", lambda x: x[:, False], (3, 2), op="getitem")

# *** writing ***


def _written(index, use_source=True):
    """A copy of x with an assignment at ``index(further inputs)``."""
    def ours(x, s, *rest):
        y = x * 1
        y[index(*rest)] = s
        return y

    def theirs(x, s, *rest):
        y = x * 1
        y[index(*(r.long() if not r.is_floating_point() and r.dtype is not torch.bool else r for r in rest))] = s
        return y
    return {"fn": ours, "ref": theirs, "op": "setitem"}


def _set(name: str, index, *inputs, **kwargs) -> None:
    made = _written(index)
    case(f"setitem {name}", made.pop("fn"), *inputs, **made, **kwargs)


_set("int", lambda: 1, (3, 4), (4,), dtypes=FLOATS)
_set("slices", lambda: (slice(1, None), slice(None, None, 2)), (3, 5), (2, 3), dtypes=("float32", *INTS[:2]))
_set("broadcast", lambda: (slice(0, 2),), (3, 4), (1, 4))
_set("everything", lambda: Ellipsis, (3, 4), ())
_set("none", lambda: (0, None), (3, 4), (1, 4))
_set("empty slice", lambda: slice(2, 2), (3, 4), (4,))
_set("list", lambda: [2, 0], (3, 4), (2, 4))
_set("tensor", lambda i: i, (5, 3), (2, 3), ints([4, -2]), dtypes=("float32", "float16", *INTS[:2]))
_set("tensor broadcast", lambda i: i, (5, 3), (3,), ints([4, -2]))
_set("two tensors", lambda i, j: (i, j), (3, 4), (2,), ints([0, 2]), ints([1, 3]))
_set("tensors around a slice", lambda i, j: (i, slice(None), j), (2, 3, 4), (2, 3), ints([0, 1]), ints([1, 2]))
_set("tensor behind a slice", lambda i: (slice(1, None), i), (3, 5), (2, 2), ints([4, 0]))
case("setitem negative step", lambda x, s: _stepped(x, s), (6, 2), (3, 2), op="setitem",
     ref=lambda x, s: torch.cat([x[:1], s[2:], x[2:3], s[1:2], x[4:5], s[:1]]))
case("setitem mask scalar", lambda x: _masked(x, MASK2, 7.0), (3, 4), op="setitem",
     ref=lambda x: _masked(x, torch.from_numpy(MASK2), 7.0))
case("setitem mask values", lambda x, s: _masked(x, MASK, s), (4, 2), (3, 2), op="setitem",
     ref=lambda x, s: _masked(x, torch.from_numpy(MASK), s))
case("setitem lazy mask", lambda x, s: _masked(x, x > 0, s), (4, 2), (1,), op="setitem")
case("setitem twice, the last stays", lambda x: _doubled(x), (4,), op="setitem",
     ref=lambda x: torch.stack([x[0], x[0] * 0 + 3, x[2], x[3]]))


def _stepped(x, s):
    y = x * 1
    y[5::-2] = s
    return y


def _masked(x, mask, value):
    y = x * 1
    y[mask] = value
    return y


def _doubled(x):
    y = x * 1
    y[[1, 1, -3]] = type(x)([1.0, 2.0, 3.0], device=x.device)
    return y


# *** gather ***
case("gather", lambda x, i: x.gather(1, i), (3, 4), ROWS, ref=lambda x, i: x.gather(1, i.long()),
     dtypes=(*FLOATS, *INTS))
case("gather first axis", lambda x, i: x.gather(0, i), (4, 3), ints([[0, 2, 3], [1, 0, 0]]),
     ref=lambda x, i: x.gather(0, i.long()))
case("gather longer than the axis", lambda x, i: x.gather(1, i), (2, 3), ints([[0, 2, 1, 1, 0], [2, 2, 2, 0, 1]]),
     ref=lambda x, i: x.gather(1, i.long()))
case("gather narrower than self", lambda x, i: x.gather(-1, i), (3, 4, 5), ints([[[0, 4]]]),
     ref=lambda x, i: x.gather(-1, i.long()))
case("gather empty index", lambda x, i: x.gather(1, i), (3, 4), Input(dtype="int32", data=np.zeros((3, 0))),
     ref=lambda x, i: x.gather(1, i.long()))
case("gather unsigned", lambda x, i: x.gather(1, i), Input((3, 4), low=0, high=60000), ROWS, dtypes=UINTS, grad=False,
     ref=by_numpy(lambda x, i: np.take_along_axis(x, i, 1)))
case("gather bool", lambda x, i: x.gather(1, i), Input((3, 4), "bool"), ROWS, ref=lambda x, i: x.gather(1, i.long()),
     grad=False)
case("gather int8 index", lambda x, i: x.gather(0, i), (200,), ints([0, 127, 5], dtype="int8"),
     ref=lambda x, i: x.gather(0, i.long()))
case("gather uint8 index", lambda x, i: x.gather(0, i), (256,), ints([0, 255, 128], dtype="uint8"),
     ref=lambda x, i: x.gather(0, i.long()))
case("index_select", lambda x, i: x.index_select(1, i), (3, 4, 2), ints([3, 0, 0]),
     ref=lambda x, i: x.index_select(1, i.long()), dtypes=("float32", "float16", "int32"))
case("index_select of nothing", lambda x, i: x.index_select(0, i), (3, 4), ints([]),
     ref=lambda x, i: x.index_select(0, i.long()))
case("take_along_dim", lambda x, i: x.take_along_dim(i, 1), (3, 4), ints([[0, 3, 1]]),
     ref=lambda x, i: torch.take_along_dim(x, i.long(), 1))
case("take_along_dim flat", lambda x, i: x.take_along_dim(i), (3, 4), ints([0, 11, 5]),
     ref=lambda x, i: torch.take_along_dim(x, i.long()))
case("one_hot", lambda x: x.one_hot(5), ints([0, 4, 2]), ref=lambda x: F.one_hot(x.long(), 5), grad=False)
case("one_hot of two axes", lambda x: x.one_hot(3), ints([[0, 1], [2, 2]], dtype="int64"),
     ref=lambda x: F.one_hot(x, 3), grad=False)
case("one_hot uint8", lambda x: x.one_hot(300), ints([0, 255], dtype="uint8"), ref=lambda x: F.one_hot(x.long(), 300),
     grad=False)

# *** scatter ***
case("scatter", lambda x, i, s: x.scatter(1, i, s), (3, 4), ints([[0, 3], [1, 2], [2, 0]]), (3, 2),
     ref=lambda x, i, s: x.scatter(1, i.long(), s), dtypes=(*FLOATS, *INTS))
case("scatter into larger", lambda x, i, s: x.scatter(0, i, s), (5, 4), ints([[0, 3], [4, 1]]), (3, 3),
     ref=lambda x, i, s: x.scatter(0, i.long(), s[:2, :2]))
case("scatter bool", lambda x, i, s: x.scatter(1, i, s), Input((2, 3), "bool"), ints([[2], [0]]), Input((2, 1), "bool"),
     ref=lambda x, i, s: x.scatter(1, i.long(), s), grad=False)
case("scatter empty index", lambda x, i, s: x.scatter(1, i, s), (3, 4), Input(dtype="int32", data=np.zeros((3, 0))),
     (3, 2), ref=lambda x, i, s: x.scatter(1, i.long(), s[:, :0]))
case("scatter_add", lambda x, i, s: x.scatter(0, i, s, reduce="add"), (3, 4), ints([[0, 2, 1], [0, 1, 1]]), (2, 3),
     ref=lambda x, i, s: x.scatter_add(0, i.long(), s), dtypes=("float32", "float64", *INTS))
case("scatter multiply", lambda x, i, s: x.scatter(0, i, s, reduce="multiply"), (3, 4), ints([[0, 2, 1], [0, 1, 1]]),
     (2, 3), ref=lambda x, i, s: x.scatter_reduce(0, i.long(), s, "prod"))
case("scatter_scalar", lambda x, i: x.scatter(1, i, 9.0), (3, 4), ints([[0], [1], [2]]),
     ref=lambda x, i: x.scatter(1, i.long(), 9.0))
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    for _own in (True, False):
        case(f"scatter_reduce_{_reduce}_{_own}",
             lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(0, i, s, r, include_self=o), (4, 2),
             ints([[0, 2], [0, 1], [3, 1]]), (3, 2), dtypes=("float32", "float64"),
             ref=lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(0, i.long(), s, r, include_self=o))
        case(f"scatter_reduce of integers {_reduce} {_own}",
             lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(1, i, s, r, include_self=o),
             Input((2, 4), low=-9, high=9), ints([[0, 2, 0], [3, 3, 3]]), Input((2, 3), low=-9, high=9),
             dtypes=("int32", "uint8", "int64"), grad=False,
             ref=lambda x, i, s, r=_reduce, o=_own: x.scatter_reduce(1, i.long(), s, r, include_self=o))
case("scatter_reduce nan", lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), Input(data=[1.0, 2.0]), ints([0, 0]),
     Input(data=[float("nan"), 3.0]), ref=lambda x, i, s: x.scatter_reduce(0, i.long(), s, "amax"), grad=False)
case("scatter_reduce bools", lambda x, i, s: x.scatter_reduce(0, i, s, "sum"), Input((4,), "bool"), ints([0, 0, 2]),
     Input((3,), "bool"), ref=lambda x, i, s: x.scatter_reduce(0, i.long(), s, "sum"), grad=False)

# *** selections of known size ***
case("nonzero of known size", lambda x: x.nonzero(size=4, fill_value=-1), ints([[0, 2], [3, 0]]), op="nonzero",
     ref=lambda x: torch.cat([x.nonzero(), torch.full((2, 2), -1)]), grad=False)
case("nonzero of fewer", lambda x: x.nonzero(size=1), ints([[0, 2], [3, 0]]), op="nonzero",
     ref=lambda x: x.nonzero()[:1], grad=False)
case("masked_select of known size", lambda x: x.masked_select(MASK, size=5, fill_value=9.0), (4,), op="masked_select",
     ref=lambda x: torch.cat([x[torch.from_numpy(MASK)], torch.full((2,), 9.0, dtype=x.dtype)]))
case("masked_select broadcast", lambda x: x.masked_select(MASK, size=6), (2, 4), op="masked_select",
     ref=lambda x: x.masked_select(torch.from_numpy(MASK)))

# *** places in sorted sequences ***
SORTED = Input(dtype="float32", data=[-1.5, -0.5, 0.0, 0.0, 0.7, 1.9])
for _right in (False, True):
    _side = "right" if _right else "left"
    case(f"searchsorted {_side}", lambda s, x, r=_right: s.searchsorted(x, right=r), SORTED, (3, 5),
         ref=lambda s, x, r=_right: torch.searchsorted(s, x, right=r), grad=False)
    case(f"bucketize {_side}", lambda x, s, r=_right: x.bucketize(s, right=r), (7,), SORTED,
         ref=lambda x, s, r=_right: torch.bucketize(x, s, right=r), grad=False)
case("searchsorted rows", lambda s, x: s.searchsorted(x), Input(dtype="float32", data=[[0, 1, 2], [-1, 0, 1]]), (2, 4),
     ref=torch.searchsorted, grad=False)
case("searchsorted integers", lambda s, x: s.searchsorted(x), Input(data=[1, 3, 3, 9]), Input((6,), low=0, high=12),
     ref=torch.searchsorted, dtypes=INTS, grad=False)
