"""The grammar of the IR as data: for each op its legal forms (sources by position, argument, stages) and its meaning.

Takes nothing, gives ``FORMS``: op -> forms. A node is legal at a stage when one of the forms of its op that name the
stage accepts it. Sources are written ``name:kind``, with ``?`` for optional and ``*`` for any number; a kind is a
predicate of ``kinds.py`` or op names joined by ``|``. ``docs/spec.md`` is printed from this table.

Stages: T tensor graph and kernels before lowering, K kernel graph (what the scheduler hands over, call bodies not
entered), P program (what a renderer takes), H host command stream, X inside a pass only.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tinyhost.ops import GroupOp, Ops

STAGES = {"T": "tensor graph", "K": "kernel graph", "P": "program", "H": "host command stream", "X": "inside a pass"}


@dataclass(frozen=True, slots=True)
class Source:
    """One position of the source list."""

    name: str
    kind: str
    repeat: str = ""  # "", "?" or "*"

    def __str__(self) -> str:
        return f"{self.name}:{self.kind}{self.repeat}"


@dataclass(frozen=True, slots=True)
class Form:
    """One legal form of an op."""

    op: Ops
    src: tuple[Source, ...]
    arg: str
    stages: str
    check: str  # names of conditions over the whole node, see kinds.py
    meaning: str

    def __str__(self) -> str:
        text = f"{self.op.name}({', '.join(map(str, self.src))})"
        text += f" arg {self.arg}" if self.arg != "none" else ""
        return text + (f" [{self.check}]" if self.check else "")


def _source(text: str) -> Source:
    name, _, kind = text.partition(":")
    repeat = kind[-1] if kind[-1] in "?*" else ""
    return Source(name, kind.removesuffix(repeat), repeat)


# (op, sources, argument, stages, conditions, meaning)
_Row = tuple[Ops, str, str, str, str, str]
_OPAQUE = "SINK|LINEAR|PROGRAM|COPY|CUSTOM_FUNCTION"
_STORAGE = "PARAM|BUFFER|AFTER"
_VIEWED = "RESHAPE|EXPAND|PERMUTE|PAD|SHRINK|FLIP|PARAM|BUFFER|AFTER|BITCAST"

_VALUES: list[_Row] = [
    (Ops.CONST, "", "literal", "TKH", "", "a literal, weak or bool; a strong one is CAST(dt) over it"),
    (Ops.CONST, "", "literal", "P", "not_invalid", "the number under a CAST, a lane, or the size of a vector access"),
    (Ops.PARAM, "", "ParamArg", "TKH", "", "argument `slot` of a call, flat; a scalar in the ALU space"),
    (Ops.PARAM, "", "ParamArg", "P", "strong", "argument `slot` of the program"),
    (Ops.BUFFER, "", "ParamArg", "TKH", "global_buffer", "flat storage on a device"),
    (Ops.BUFFER, "", "ParamArg", "TK", "variable", "a Variable: a bounded scalar"),
    (Ops.BUFFER, "", "ParamArg", "TP", "local_buffer", "workgroup memory or registers"),
    (Ops.SPECIAL, "bound:weakint", "str", "T", "", "launch index 0 .. bound-1 of the hardware"),
    (Ops.SPECIAL, "bound:int32", "str", "P", "", "launch index 0 .. bound-1 of the hardware"),
    (Ops.RANGE, "bound:int deps:any*", "axis", "TP", "strong_in_program", "loop variable 0 .. bound-1"),
    (Ops.RANGE, "bound:NOOP deps:any*", "axis", "TP", "", "loop without a bound, closed by END(body, loop, condition)"),
    (Ops.RANGE, "bound:int deps:any*", "axis", "K", "device_axis", "device number of a sharded value"),
    (Ops.STACK, "x:value*", "none", "TPH", "same_shape", "new leading axis; lanes of a vector; dimensions of a shape"),
    (Ops.STACK, "x:CONST|PARAM|BUFFER|AFTER|CAST*", "none", "K", "", "dimensions of a shape"),
    (Ops.NOOP, "x:any?", "none", "TP", "", "a hole: no gradient, a deleted store"),
]

_ARITHMETIC: list[_Row] = [
    (Ops.CAST, "x:value", "DType", "TKP", "", "by value: integers wrap, floats truncate and saturate"),
    (Ops.BITCAST, "x:value", "DType", "TKP", "", "the same bytes read as another type"),
    *[(op, "x:value", "none", "T", "", meaning) for op, meaning in (
        (Ops.EXP2, "2 to the power x"), (Ops.LOG2, "logarithm to base 2"), (Ops.SIN, "sine"),
        (Ops.SQRT, "square root"), (Ops.RECIPROCAL, "1/x"))],
    *[(op, "x:float", "none", "P", "strong", "at the dtype of its operand")
      for op in (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL)],
    (Ops.NEG, "x:value", "none", "PX", "strong_in_program", "-x"),
    (Ops.TRUNC, "x:value", "none", "TP", "strong_in_program", "toward zero"),
    (Ops.ADD, "a:value b:value", "none", "TP", "match", "sum; OR on bool"),
    (Ops.MUL, "a:value b:value", "none", "TP", "match", "product; AND on bool"),
    (Ops.MAX, "a:value b:value", "none", "TP", "match", "the larger one; NaN if either is"),
    (Ops.SUB, "a:value b:value", "none", "PX", "match", "a-b"),
    (Ops.FDIV, "a:float b:float", "none", "TP", "match", "a/b on floats, rounded once"),
    (Ops.POW, "base:value exponent:value", "none", "TPX", "match", "power"),
    (Ops.MULACC, "a:value b:value c:value", "none", "TPX", "match", "a*b+c, fused on floats"),
    (Ops.SHL, "x:int count:int", "none", "TP", "strong_in_program", "x * 2**count; 0 from the width on"),
    (Ops.SHR, "x:int count:int", "none", "TP", "strong_in_program", "x / 2**count rounded down; arithmetic on signed"),
    (Ops.CDIV, "a:int b:int", "none", "TP", "match", "quotient toward zero; 0 where b is 0"),
    (Ops.CMOD, "a:int b:int", "none", "TP", "match", "remainder with the sign of a; 0 where b is 0"),
    (Ops.FLOORDIV, "a:int b:int", "none", "TP", "match", "quotient rounded down; 0 where b is 0"),
    (Ops.FLOORMOD, "a:int b:int", "none", "TP", "match", "remainder with the sign of b; 0 where b is 0"),
    (Ops.CMPLT, "a:value b:value", "none", "TP", "match", "a < b; false on NaN"),
    (Ops.CMPNE, "a:value b:value", "none", "TP", "match", "a != b; true on NaN"),
    (Ops.CMPEQ, "a:value b:value", "none", "TP", "match", "a == b; false on NaN"),
    (Ops.XOR, "a:bits b:bits", "none", "TP", "match", "bitwise or logical exclusive or"),
    (Ops.OR, "a:bits b:bits", "none", "TP", "match", "bitwise or logical or"),
    (Ops.AND, "a:bits b:bits", "none", "TP", "match", "bitwise or logical and"),
    (Ops.THREEFRY, "counter:uint64 key:uint64", "none", "TPX", "", "Threefry-2x32, 20 rounds, low word first"),
    (Ops.WHERE, "cond:bool x:value y:value", "none", "TP", "match_arms", "x where cond, else y; y Invalid is a gate"),
    (Ops.WMMA, "a:value b:value acc:value ranges:RANGE*", "wmma", "TP", "", "matrix multiply-accumulate"),
]

_MEMORY: list[_Row] = [
    (Ops.INDEX, "x:value index:index*", "none", "TP", "", "element, or gather, by indices from the left"),
    (Ops.SHRINK, "x:value offsets:dims sizes:dims", "none", "TK", "", "sub-box"),
    (Ops.SHRINK, f"x:{_STORAGE} offset:index size:literal", "none", "P", "", "place of a vector access"),
    (Ops.LOAD, "place:place", "hint", "TP", "", "read memory"),
    (Ops.LOAD, "place:place alt:value gate:bool", "hint", "TP", "alt_dtype", "memory, or alt where the gate is false"),
    (Ops.LOAD, "x:any*", "any", "X", "", "a read whose place is not decided"),
    (Ops.STORE, "target:value value:value", "none", "T", "", "write"),
    (Ops.STORE, "place:place value:value gate:bool?", "none", "TP", "stored_dtype", "write where the gate is true"),
    (Ops.STORE, "variable:BUFFER|PARAM value:CONST|CAST", "none", "K", "", "bind a Variable"),
    (Ops.GETADDR, "x:BUFFER|PARAM|SHRINK|BITCAST|MSTACK|AFTER", "device", "H", "", "address of storage for a device"),
]

_CONTROL: list[_Row] = [
    (Ops.SINK, "effects:any*", "kernel_info", "TKPH", "", "root; with a KernelInfo it is a kernel"),
    (Ops.AFTER, f"x:{_VIEWED}|CONTIGUOUS|INDEX|UNSHARD|INS|MSTACK|MSELECT deps:any*", "none", "TP", "",
     "x as of after deps"),
    (Ops.AFTER, f"x:{_VIEWED}|MSTACK|MSELECT deps:any*", "none", "K", "", "x as of after deps"),
    (Ops.AFTER, "x:any deps:any*", "none", "XH", "", "x as of after deps"),
    (Ops.GROUP, "x:GROUP|STORE|NOOP|INS|END|CALL|AFTER|BARRIER*", "none", "TP", "", "effects without an order"),
    (Ops.END, "body:any ranges:RANGE*", "none", "TP", "", "closes loops"),
    (Ops.END, "body:any loop:RANGE cond:bool", "none", "TP", "void_loop", "repeats the loop while cond is true"),
    (Ops.END, "body:any ranges:closed*", "none", "X", "", "closes what a substitution left of its loops"),
    (Ops.BARRIER, "deps:any*", "none", "TP", "", "workgroup barrier"),
    (Ops.IF, "gate:bool place:place", "none", "P", "", "opens a guarded store"),
    (Ops.ENDIF, "if:IF", "none", "P", "", "closes it"),
    (Ops.CUSTOM, "x:any*", "custom", "TP", "", "text of a statement; operands are {0} {1} .."),
    (Ops.CUSTOMI, "x:any*", "custom", "TP", "", "text of an expression"),
    (Ops.INS, "x:any*", "instruction", "TPH", "", "one machine instruction or host command"),
]

_CALLS: list[_Row] = [
    (Ops.CALL, f"body:{_OPAQUE} args:any*", "CallInfo", "TK", "closed_body",
     "opaque call; argument i is the body's PARAM slot i"),
    (Ops.CALL, "address:uint64 args:any*", "DType", "TPH", "", "call of an address"),
    (Ops.FUNCTION, "body:TUPLE args:any*", "CallInfo", "T", "closed_body", "differentiable call"),
    (Ops.TUPLE, "values:any*", "none", "T", "", "results of a FUNCTION"),
    (Ops.GETTUPLE, "x:FUNCTION|TUPLE", "int", "T", "", "one result"),
    (Ops.PROGRAM, "sink:SINK linear:LINEAR? source:SOURCE? binary:BINARY?", "ProgramInfo", "T", "",
     "kernel, as far as it is compiled"),
    (Ops.PROGRAM, "image:any", "tuple", "H", "", "buffer that holds the image"),
    (Ops.LINEAR, "items:any*", "none", "TX", "", "calls or instructions in order"),
    (Ops.LINEAR, "items:any*", "tuple", "H", "", "commands of one queue"),
    (Ops.SOURCE, "", "str", "TX", "", "rendered text, or hex of machine code"),
    (Ops.BINARY, "", "bytes", "TH", "", "machine code or raw data"),
    (Ops.CUSTOM_FUNCTION, "meta:any*", "str", "TK", "", "call body that the engine runs by name"),
]

_TENSOR: list[_Row] = [
    (Ops.CONTIGUOUS, "x:value", "opts", "T", "", "make storage here; the actions go to the kernel"),
    (Ops.CONTIGUOUS_BACKWARD, "x:value", "none", "T", "", "make storage for the gradient"),
    (Ops.DETACH, "x:value", "none", "T", "", "cut the gradient"),
    (Ops.STAGE, "x:value ranges:closed*", "BufferizeOpts", "TX", "", "make storage indexed by the ranges"),
    (Ops.COPY, "x:any", "device", "TX", "", "the value on another device"),
    (Ops.MSELECT, "x:value", "int", "TK", "", "one device's part of a multi-device value"),
    (Ops.MSTACK, "x:value*", "none", "TK", "", "one value per device"),
    (Ops.RESHAPE, "x:value shape:dims", "none", "T", "", "the same elements, row-major, in another shape"),
    (Ops.PERMUTE, "x:value", "axes", "T", "", "out axis i is in axis order[i]"),
    (Ops.EXPAND, "x:value dims:dims", "none", "T", "", "new leading axes"),
    (Ops.PAD, "x:value offsets:dims sizes:dims", "none", "T", "", "x placed in a box of Invalid"),
    (Ops.FLIP, "x:value", "flags", "T", "", "reverse the flagged axes"),
    (Ops.UNSHARD, "x:value ranges:value*", "axes", "T", "", "shards side by side"),
    (Ops.REDUCE, "x:value ranges:closed*", "reduction", "T", "", "reduce the n leading axes, or the ranges"),
    (Ops.ALLREDUCE, "x:value", "tuple", "T", "", "combine all shards on a device"),
    (Ops.REWRITE_ERROR, "x:any*", "str", "X", "", "a failed rewrite, in traces"),
    (Ops.PYLITERAL, "x:any*", "any", "X", "", "a Python value in pattern code"),
]

SECTIONS: dict[str, list[_Row]] = {
    "Values": _VALUES, "Arithmetic": _ARITHMETIC, "Memory": _MEMORY, "Control": _CONTROL, "Calls": _CALLS,
    "Tensors": _TENSOR}

# in the enumeration without a form: reserved
RESERVED = frozenset({Ops.WAIT})


@cache
def forms() -> dict[Ops, tuple[Form, ...]]:
    """All legal forms by op."""
    out: dict[Ops, list[Form]] = {}
    for rows in SECTIONS.values():
        for op, src, arg, stages, check, meaning in rows:
            out.setdefault(op, []).append(Form(op, tuple(map(_source, src.split())), arg, stages, check, meaning))
    if missing := GroupOp.All - out.keys() - RESERVED:
        raise RuntimeError(f"ops without a form: {sorted(missing)}; add a row for each in tinyhost/uop/spec/grammar.py")
    return {op: tuple(rows) for op, rows in out.items()}
