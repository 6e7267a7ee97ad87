"""C-like source from linear programs: the base of every renderer whose compiler reads a C dialect.

Takes the list of nodes code generation ends with and gives one function. Each value is one variable, literals and
places are spelled where they are used, loops are ``for`` statements. A dialect overrides spellings (types, literals,
the kernel's head, vectors, work-item indices), never the walk. What an op means is ``tinyhost.uop.semantics``: integers
wrap (the compiler must be told so), counts of shifts and divisors are guarded unless bounds prove the guard away, MAX
keeps NaN.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import UOp

AXIS_LETTERS = {
    AxisType.DEVICE: "d", AxisType.GLOBAL: "g", AxisType.WARP: "w", AxisType.LOCAL: "l", AxisType.WEAK: "L",
    AxisType.GROUP_REDUCE: "G", AxisType.REDUCE: "R", AxisType.UPCAST: "u", AxisType.UNROLL: "r", AxisType.THREAD: "t",
    AxisType.LOOP: "L", AxisType.LANE: "v", AxisType.PLACEHOLDER: "p"}

# names of temporaries, by what they are
_PREFIX = {Ops.LOAD: "val", Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.STACK: "vec", Ops.INDEX: "lane",
           Ops.WMMA: "wmma"}

Code = Callable[..., str]


def range_name(u: UOp) -> str:
    """Variable of a loop: axis letter, ``idx`` and the ids."""
    return f"{AXIS_LETTERS[u.arg[-1]]}idx" + "_".join(str(i).replace("-", "m") for i in u.arg[:-1])


class CStyleRenderer(Renderer):
    """Base of C-like renderers."""

    type_names: dict[DType, str] = {
        dtypes.void: "void", dtypes.bool: "unsigned char", dtypes.int8: "signed char", dtypes.uint8: "unsigned char",
        dtypes.int16: "short", dtypes.uint16: "unsigned short", dtypes.int32: "int", dtypes.uint32: "unsigned int",
        dtypes.int64: "long long", dtypes.uint64: "unsigned long long", dtypes.float16: "half", dtypes.float32: "float",
        dtypes.float64: "double"}
    nan, infinity = "NAN", "INFINITY"
    pointer_space = ""  # qualifier of pointers to device memory
    local_space = ""  # qualifier of workgroup arrays
    barrier = ""
    sqrt, trunc, fma = "sqrt", "trunc", "fma"

    # *** spellings a dialect may change ***
    def type_name(self, dtype: DType, lanes: int = 1) -> str:
        """The dialect's name of a scalar or vector type."""
        return self.type_names[dtype] if lanes == 1 else f"{self.type_names[dtype].replace(' ', '')}{lanes}"

    def literal(self, value: Any, dtype: DType) -> str:
        """A literal of ``dtype``."""
        if dtype.is_float:
            return self.float_literal(float(value), dtype)
        if dtype is dtypes.bool:
            return "1" if value else "0"
        v = truncate[dtype](value)
        if dtype is dtypes.int64:
            return "(-9223372036854775807ll-1)" if v == dtype.min else f"{v}ll"
        if dtype is dtypes.uint64:
            return f"{v}ull"
        if dtype is dtypes.uint32:
            return f"{v}u"
        return "(-2147483647-1)" if v == dtypes.int32.min else str(v)

    def float_literal(self, value: float, dtype: DType) -> str:
        """A float literal; NaN and infinities by name."""
        cast = f"({self.type_names[dtype]})"
        if math.isnan(value):
            return f"({cast}{self.nan})"
        if math.isinf(value):
            return f"({cast}{'-' if value < 0 else ''}{self.infinity})"
        text = repr(value)
        if dtype is dtypes.float64:
            return text
        return f"{text}f" if dtype is dtypes.float32 else f"({cast}{text}f)"

    def head(self, name: str, params: list[tuple[UOp, str]], uops: list[UOp]) -> str:
        """The function's declaration up to its parameter list."""
        args = ", ".join(f"{self.pointer_space}{self.type_name(p.dtype)}* {n}" if p.arg.addrspace is AddrSpace.GLOBAL
                         else f"const {self.type_name(p.dtype)} {n}" for p, n in params)
        return f"void {name}({args})"

    def preamble(self, uops: list[UOp]) -> str:
        """Text before the function."""
        return ""

    def special(self, u: UOp) -> str:
        """A launch index."""
        raise ValueError(f"{type(self).__name__} has no launch indices, got {u.arg}")

    # *** the walk ***
    def render(self, uops: list[UOp]) -> str:
        return _Writer(self, uops).text()

    # *** expressions ***
    def cast(self, x: str, u: UOp) -> str:
        """Value conversion of a scalar."""
        src, dst = u.src[0].dtype, u.dtype
        if dst is dtypes.bool:
            return f"({x} != 0)"
        if src.is_float and not dst.is_float:
            return self.float_to_int(x, src, dst)
        return f"(({self.type_name(dst)})({x}))"

    def float_to_int(self, x: str, src: DType, dst: DType) -> str:
        """Truncation that saturates; NaN gives 0."""
        hi, lo = float_to_int_edges(src, dst)
        hi_text, lo_text = self.literal(hi, src), self.literal(lo, src)
        top, low = self.literal(dst.max, dst), self.literal(dst.min, dst)
        return f"({x} >= {hi_text} ? {top} : {x} > {lo_text} ? ({self.type_name(dst)})({x}) : {x} != {x} ? 0 : {low})"

    def code_shift(self, op: Ops, x: str, n: str, u: UOp) -> str:
        """A shift, guarded unless the count is known to be small."""
        width, sign = u.dtype.bitsize, "<<" if op is Ops.SHL else ">>"
        count, t = u.src[1], self.type_name(u.dtype)
        plain = f"({t})({x} {sign} {n})"
        if 0 <= count.vmin and count.vmax < width:
            return plain
        over = f"({x} < 0 ? -1 : 0)" if op is Ops.SHR and not u.dtype.is_unsigned else "0"
        return f"((unsigned long long){n} < {width} ? {plain} : ({t}){over})"

    def code_divide(self, op: Ops, x: str, y: str, u: UOp) -> str:
        """C division or remainder, guarded unless the divisor is known to be harmless."""
        b, t = u.src[1], self.type_name(u.dtype)
        sign = "/" if op is Ops.CDIV else "%"
        out = f"({t})({x} {sign} {y})"
        if not u.dtype.is_unsigned and b.vmin <= -1 <= b.vmax and u.src[0].vmin == u.dtype.min:
            out = f"({y} == -1 ? {f'({t})-{x}' if op is Ops.CDIV else '0'} : {out})"
        return f"({y} == 0 ? 0 : {out})" if b.vmin <= 0 <= b.vmax else out

    def code_floor(self, op: Ops, x: str, y: str, u: UOp) -> str:
        """Quotient rounded down, or the rest with the sign of the divisor."""
        as_c = self.code_divide(Ops.CDIV if op is Ops.FLOORDIV else Ops.CMOD, x, y, u)
        if u.src[0].vmin >= 0 and u.src[1].vmin >= 0:
            return as_c
        rest = self.code_divide(Ops.CMOD, x, y, u)
        wrong = f"({rest} != 0 && (({x} < 0) != ({y} < 0)))"
        return f"({self.type_name(u.dtype)})({as_c} {'- ' + wrong if op is Ops.FLOORDIV else f'+ ({wrong} ? {y} : 0)'})"

    code_for_op: dict[Ops, Code] = {
        Ops.ADD: lambda r, u, x, y: f"({x} | {y})" if u.dtype is dtypes.bool else r.wrap(u, f"{x} + {y}"),
        Ops.SUB: lambda r, u, x, y: r.wrap(u, f"{x} - {y}"),
        Ops.MUL: lambda r, u, x, y: f"({x} & {y})" if u.dtype is dtypes.bool else r.wrap(u, f"{x} * {y}"),
        Ops.NEG: lambda r, u, x: r.wrap(u, f"-{x}"),
        Ops.FDIV: lambda r, u, x, y: f"({x} / {y})",
        Ops.RECIPROCAL: lambda r, u, x: f"({r.literal(1, u.dtype)} / {x})",
        Ops.CDIV: lambda r, u, x, y: r.code_divide(Ops.CDIV, x, y, u),
        Ops.CMOD: lambda r, u, x, y: r.code_divide(Ops.CMOD, x, y, u),
        Ops.FLOORDIV: lambda r, u, x, y: r.code_floor(Ops.FLOORDIV, x, y, u),
        Ops.FLOORMOD: lambda r, u, x, y: r.code_floor(Ops.FLOORMOD, x, y, u),
        Ops.SHL: lambda r, u, x, y: r.code_shift(Ops.SHL, x, y, u),
        Ops.SHR: lambda r, u, x, y: r.code_shift(Ops.SHR, x, y, u),
        Ops.AND: lambda r, u, x, y: f"({x} & {y})",
        Ops.OR: lambda r, u, x, y: f"({x} | {y})",
        Ops.XOR: lambda r, u, x, y: f"({x} ^ {y})",
        Ops.CMPLT: lambda r, u, x, y: f"({x} < {y})",
        Ops.CMPNE: lambda r, u, x, y: f"({x} != {y})",
        Ops.CMPEQ: lambda r, u, x, y: f"({x} == {y})",
        Ops.WHERE: lambda r, u, c, x, y: f"({c} ? {x} : {y})",
        Ops.MAX: lambda r, u, x, y: f"({x} < {y}{f' || {y} != {y}' if u.dtype.is_float else ''} ? {y} : {x})",
        Ops.SQRT: lambda r, u, x: r.call(r.sqrt, u, x),
        Ops.TRUNC: lambda r, u, x: r.call(r.trunc, u, x) if u.dtype.is_float else x,
        Ops.MULACC: lambda r, u, x, y, z: (r.call(r.fma, u, x, y, z) if u.dtype.is_float
                                           else r.wrap(u, f"{x} * {y} + {z}")),
    }

    def wrap(self, u: UOp, text: str) -> str:
        """An arithmetic result brought back to a dtype narrower than int."""
        return f"({self.type_name(u.dtype)})({text})" if u.dtype.itemsize < 4 and not u.dtype.is_float else f"({text})"

    def call(self, name: str, u: UOp, *args: str) -> str:
        """A math function in the operand's precision."""
        return f"{name}{'' if u.dtype is dtypes.float64 else 'f'}({', '.join(args)})"

    # *** vectors and memory ***
    def expression(self, u: UOp, names: list[str]) -> str:
        """The text of a value node over the names of its operands."""
        op = u.op
        if op is Ops.CAST:
            return self.cast(names[0], u)
        if op is Ops.BITCAST:
            return self.bitcast(names[0], u)
        if op is Ops.STACK:
            return self.vector(names, u)
        if op is Ops.INDEX:
            return self.lane(names[0], u)
        if op is Ops.CUSTOMI:
            return str(u.arg[0]).format(*names)
        code = self.code_for_op.get(op)
        if code is None:
            raise ValueError(f"{type(self).__name__} cannot render {op} of {u.dtype}: it is not in code_for_op and was "
                             "not decomposed")
        return code(self, u, *names)

    def bitcast(self, x: str, u: UOp) -> str:
        """The same bytes as another type."""
        raise ValueError(f"{type(self).__name__} cannot render a BITCAST")

    def vector(self, parts: list[str], u: UOp) -> str:
        """A vector of scalars."""
        return f"({self.type_name(u.dtype, len(parts))}){{{', '.join(parts)}}}"

    def lane(self, x: str, u: UOp) -> str:
        """One lane or a shuffle of a vector."""
        return f"{x}[{u.src[1].const_value}]"

    def load(self, place: str, u: UOp, lanes: int) -> str:
        """The value at a place."""
        return place

    def gated_load(self, place: str, alt: str, gate: str, u: UOp, lanes: int) -> str:
        """The value at a place, ``alt`` where the gate is false."""
        return f"({gate} ? {self.load(place, u, lanes)} : {alt})"

    def vector_place(self, base: str, index: str, u: UOp, lanes: int) -> str:
        """An lvalue of several elements."""
        return f"(*({self.pointer_space}{self.type_name(u.dtype, lanes)}*)({base}+{index}))"

    def declared_type(self, u: UOp) -> str:
        """Type of the variable that holds a value."""
        return self.type_name(u.dtype, lanes_of(u))

    def register_type(self, dtype: DType, lanes: int) -> str:
        """Type of the variable that is an accumulator."""
        return self.type_name(dtype, lanes)

    def register_value(self, value: str, u: UOp, lanes: int) -> str:
        """A value in the form it has in an accumulator."""
        return value

    def store_value(self, value: str, u: UOp, lanes: int) -> str:
        """A value in the form it has in memory."""
        return value

    def assignment(self, place: str, value: str, u: UOp) -> str:
        """The statement of an ungated STORE."""
        return f"{place} = {value};"


def float_to_int_edges(src: DType, dst: DType) -> tuple[float, float]:
    """(first float too large, largest float at or below which values are too small) for a conversion to int."""
    hi = truncate[src](float(dst.max + 1))
    lo = float(dst.min - 1)
    rounded = truncate[src](lo)
    return hi, rounded if rounded <= dst.min - 1 else math.nextafter(rounded, -math.inf)


def lanes_of(u: UOp) -> int:
    """Lanes of a value or place, 1 for a scalar."""
    shape = u._shape
    return int(shape[0]) if shape else 1


class _Writer:
    """One rendering: names, indentation, lines."""

    def __init__(self, renderer: CStyleRenderer, uops: list[UOp]) -> None:
        self.r, self.uops = renderer, uops
        self.names: dict[UOp, str] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.counts: dict[str, int] = {}
        self.registers = _whole_registers(uops)

    def text(self) -> str:
        r, uops = self.r, self.uops
        params = sorted((u for u in uops if u.op is Ops.PARAM), key=_param_order)
        for u in params:
            storage = u.arg.addrspace is AddrSpace.GLOBAL and u.arg.name is None
            self.names[u] = f"data{u.arg.slot}_{u.arg.size}" if storage else u.arg.name or f"p{u.arg.slot}"
        for u in uops:
            self.statement(u)
        sink = uops[-1]
        name = sink.arg.function_name if sink.op is Ops.SINK and sink.arg is not None else "kernel"
        head = r.head(name, [(p, self.names[p]) for p in params], uops)
        return "\n".join([r.preamble(uops) + head + " {", *self.lines, "}"])

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, prefix: str) -> str:
        n = self.counts.get(prefix, 0)
        self.counts[prefix] = n + 1
        return f"{prefix}{n}"

    def statement(self, u: UOp) -> None:
        """Write ``u``, or name it where it needs no statement."""
        op = u.op
        if op in _SILENT:
            return
        handler = _STATEMENTS.get(op)
        if handler is not None:
            handler(self, u)
        elif op is Ops.CAST and u.src[0].op is Ops.CONST:
            self.names[u] = self.r.literal(u.src[0].arg, u.arg)
        elif op is Ops.INDEX and u.src[0].op in _STORAGE:
            self.names[u] = self.place(u)
        else:
            self.value(u, self.r.expression(u, [self.names[s] for s in u.src if s in self.names]))

    def value(self, u: UOp, text: str) -> None:
        """Declare a variable for ``u``."""
        name = self.names[u] = self.fresh(_PREFIX.get(u.op, "alu"))
        self.line(f"{self.r.declared_type(u)} {name} = {text};")

    # *** statements ***
    def const(self, u: UOp) -> None:
        self.names[u] = self.r.literal(u.arg, dtypes.int32 if u.dtype is dtypes.weakint else u.dtype) \
            if not u.dtype.is_float else repr(float(u.arg))

    def special(self, u: UOp) -> None:
        self.names[u] = u.arg
        self.line(f"int {u.arg} = {self.r.special(u)};")

    def buffer(self, u: UOp) -> None:
        space = u.arg.addrspace
        name = self.names[u] = self.fresh("acc" if space is AddrSpace.REG else "local")
        t = self.r.type_name(u.dtype)
        if u in self.registers:
            self.line(f"{self.r.register_type(u.dtype, u.arg.size)} {name};")
        else:
            self.line(f"{self.r.local_space if space is AddrSpace.LOCAL else ''}{t} {name}[{u.arg.size}];")

    def place(self, u: UOp) -> str:
        """The lvalue of an INDEX or SHRINK."""
        base, name = _storage(u.src[0]), self.names[u.src[0]]
        if base in self.registers:
            return name
        if u.op is Ops.INDEX:
            return f"{name}[{self.names[u.src[1]]}]"
        return self.r.vector_place(name, self.names[u.src[1]], u, lanes_of(u))

    def shrink(self, u: UOp) -> None:
        self.names[u] = self.place(u)

    def alias(self, u: UOp) -> None:
        self.names[u] = self.names[u.src[0]]

    def load(self, u: UOp) -> None:
        place, n = self.names[u.src[0]], lanes_of(u)
        if _storage(u.src[0].src[0]) in self.registers:
            self.value(u, place)
        elif len(u.src) == 1:
            self.value(u, self.r.load(place, u, n))
        else:
            self.value(u, self.r.gated_load(place, self.names[u.src[1]], self.names[u.src[2]], u, n))

    def store(self, u: UOp) -> None:
        place, n = u.src[0], lanes_of(u.src[0])
        value = self.names[u.src[1]]
        whole = _storage(place.src[0]) in self.registers
        value = self.r.register_value(value, u.src[1], n) if whole else self.r.store_value(value, u.src[1], n)
        text = self.r.assignment(self.names[place], value, u)
        self.line(text if len(u.src) == 2 else f"if ({self.names[u.src[2]]}) {{ {text} }}")

    def range(self, u: UOp) -> None:
        name = self.names[u] = range_name(u)
        if u.src[0].op is Ops.NOOP:
            self.line("do {")
        else:
            t = self.r.type_name(u.dtype)
            self.line(f"for ({t} {name} = 0; {name} < {self.names[u.src[0]]}; {name}++) {{")
        self.depth += 1

    def end(self, u: UOp) -> None:
        self.depth -= 1
        self.line("}" if u.src[1].src[0].op is not Ops.NOOP else f"}} while ({self.names[u.src[2]]});")

    def barrier(self, u: UOp) -> None:
        self.line(self.r.barrier)

    def begin_if(self, u: UOp) -> None:
        self.line(f"if ({self.names[u.src[0]]}) {{")
        self.depth += 1

    def end_if(self, u: UOp) -> None:
        self.depth -= 1
        self.line("}")

    def custom(self, u: UOp) -> None:
        text = str(u.arg[0]).format(*[self.names[s] for s in u.src if s in self.names])
        if u.arg[1] is dtypes.void:
            self.line(text)
        else:
            self.value(u, text)


_SILENT = frozenset({Ops.PARAM, Ops.NOOP, Ops.GROUP, Ops.SINK})
_STORAGE = frozenset({Ops.PARAM, Ops.BUFFER, Ops.AFTER})
_STATEMENTS: dict[Ops, Callable[[_Writer, UOp], None]] = {
    Ops.CONST: _Writer.const, Ops.SPECIAL: _Writer.special, Ops.BUFFER: _Writer.buffer, Ops.SHRINK: _Writer.shrink,
    Ops.AFTER: _Writer.alias, Ops.LOAD: _Writer.load, Ops.STORE: _Writer.store, Ops.RANGE: _Writer.range,
    Ops.END: _Writer.end, Ops.BARRIER: _Writer.barrier, Ops.IF: _Writer.begin_if, Ops.ENDIF: _Writer.end_if,
    Ops.CUSTOM: _Writer.custom,
}


def _param_order(u: UOp) -> tuple[int, int]:
    """Buffers by slot, then scalars by slot."""
    return u.arg.addrspace is AddrSpace.ALU, u.arg.slot


def _storage(u: UOp) -> UOp:
    while u.op is Ops.AFTER:
        u = u.src[0]
    return u


def _whole_registers(uops: list[UOp]) -> set[UOp]:
    """REG buffers that are only accessed as a whole: they are variables, not arrays."""
    whole = {u for u in uops if u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.REG}
    for u in uops:
        if u.op is Ops.INDEX or u.op is Ops.SHRINK:
            b = _storage(u.src[0])
            if b in whole and (lanes_of(u) != b.arg.size or not u.src[1].is_const):
                whole.discard(b)
    return whole
