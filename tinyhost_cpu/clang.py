"""C for the host: a renderer with vector types.

Takes linear programs; gives C with the ``vector_size`` extension, for clang or gcc (``ccompiler``). Bool vectors are
masks of the width of what was compared; in memory a bool is one byte, 0 or 1. Float arithmetic is exactly that of
``tinyhost.uop.semantics``: contraction is off, fused multiply-adds are explicit, half arithmetic rounds each operation
from float32. A program with streamed stores has its body twice, behind one test that their storage is aligned.
"""
from __future__ import annotations

from copy import copy
from dataclasses import replace

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.memory import STREAMED, stored_in
from tinyhost.dtype import DType, dtypes
from tinyhost.env import CC
from tinyhost.errors import RendererUnavailable
from tinyhost.ops import Ops
from tinyhost.renderer.cstyle import CStyleRenderer, float_to_int_edges, lanes_of
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost_cpu.ccompiler import CCompiler, abilities, find_compiler
from tinyhost_cpu.levels import NATIVE, parse_level
from tinyhost_cpu.x86.caps import STREAM_BYTES

_MASK_INT = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def missing() -> str:
    """Why this renderer cannot work here, "" if it can."""
    try:
        find_compiler(CC.value)
    except RendererUnavailable as e:
        return str(e)
    return ""


def clang_capabilities(target: Target) -> Capabilities:
    """Capabilities of C code for ``target``.

    Raises:
        RendererUnavailable: there is no C compiler, or no such level.
    """
    able, level = abilities(find_compiler(CC.value)), parse_level(target.arch)
    caps = level.capabilities(frozenset() if able.half else frozenset({dtypes.float16}))
    return replace(caps, stream_bytes=STREAM_BYTES if able.clang and level.is_x86 else 0)


class ClangRenderer(CStyleRenderer):
    """C source with vectors for a host CPU."""

    name = "CLANG"
    type_names = {**CStyleRenderer.type_names, dtypes.float16: "_Float16"}
    nan, infinity = '__builtin_nanf("")', "__builtin_inff()"
    sqrt, trunc, fma = "__builtin_sqrt", "__builtin_trunc", "__builtin_fma"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.level = parse_level(target.arch)
        self.compiler = compiler = CCompiler(self.level)
        self.abilities = compiler.abilities
        self.caps = clang_capabilities(target)
        self.masks: dict[UOp, int] = {}  # of the program that is being rendered
        self.streams: tuple[UOp, ...] = ()  # its storages with stores past the caches
        self.tail = ""  # what follows the function
        lacking = self.level.lacking_ops
        self.code_for_op = {op: code for op, code in self.code_for_op.items() if op not in lacking}

    # *** what exists ***
    def supports(self, op: Ops, dtype: DType, lanes: int = 1) -> bool:
        if lanes == 1:
            return dtype in self.caps.dtypes
        if lanes & (lanes - 1) or dtype not in self.caps.dtypes:
            return False
        if op in (Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD):
            return False
        if op is Ops.MULACC:
            return not dtype.is_float or (dtype in (dtypes.float32, dtypes.float64) and self.caps.fma)
        return True

    def supports_cast(self, src: DType, dst: DType, lanes: int = 1) -> bool:
        if lanes > 1 and src is dtypes.float64 and dst is dtypes.float16:
            return False
        return lanes & (lanes - 1) == 0 and {src, dst} <= NATIVE

    # *** types ***
    def type_name(self, dtype: DType, lanes: int = 1) -> str:
        if lanes == 1:
            return self.type_names[dtype]
        return f"{_short(dtype)}x{lanes}"

    def preamble(self, uops: list[UOp]) -> str:
        lines = []
        for n in sorted({n for u in uops if u.op not in _NO_VALUE and (n := lanes_of(u)) > 1}):
            lines.append(f"#define x{n}(v) {', '.join(['v'] * n)}")
            for dt in sorted(self.caps.dtypes - {dtypes.bool}):
                attributes, name = f"vector_size({n * dt.itemsize})", self.type_name(dt, n)
                lines.append(f"typedef {self.type_names[dt]} {name} __attribute__(({attributes}));")
                lines.append(f"typedef {self.type_names[dt]} {name}u "
                             f"__attribute__(({attributes}, aligned({dt.itemsize}), may_alias));")
        if not self.abilities.clang and any(u.dtype is dtypes.float16 for u in uops):
            lines.append(_FLOAT_OF_HALF.replace("REGISTER", "x" if self.level.is_x86 else "w"))
        if any(u.op is Ops.CAST and u.arg is dtypes.float16 and u.src[0].dtype is dtypes.float64 for u in uops):
            lines.append(_HALF_OF_DOUBLE)
        return "\n".join([*lines, ""]) if lines else ""

    def head(self, name: str, params: list[tuple[UOp, str]], uops: list[UOp]) -> str:
        entry = f"__attribute__((section(\".text.entry\"))) {super().head(name, params, uops)}"
        if not self.streams:
            return entry
        own = super().head(f"{name}_body", params, uops)
        self.tail = self.choice(entry, f"{name}_body", params)
        return f"static inline __attribute__((always_inline)) {own[:-1]}, const int past)"

    def choice(self, entry: str, body: str, params: list[tuple[UOp, str]]) -> str:
        """The function that calls the body with stores past the caches where their storage is aligned."""
        names = dict(params)
        bits = " | ".join(f"(unsigned long long){names[p]}" for p in self.streams)
        args = ", ".join(name for _, name in params)
        return (f"{entry} {{\n  if ((({bits}) & {self.caps.vector_bytes - 1}) == 0) {{\n    {body}({args}, 1);\n"
                f"    __builtin_ia32_sfence();\n  }} else {body}({args}, 0);\n}}")

    def assignment(self, place: str, value: str, u: UOp) -> str:
        plain = super().assignment(place, value, u)
        if u.tag != STREAMED or not self.streams:
            return plain
        dt = u.src[1].dtype
        t = self.type_name(dtypes.int8 if dt is dtypes.bool else dt, lanes_of(u.src[0]))
        return f"if (past) __builtin_nontemporal_store({value}, ({t}*)&{place}); else {plain}"

    # *** masks ***
    def render(self, uops: list[UOp]) -> str:
        one = copy(self)
        one.masks, one.tail = _mask_sizes(uops), ""
        one.streams = tuple(dict.fromkeys([stored_in(u) for u in uops if u.op is Ops.STORE and u.tag == STREAMED]))
        text = CStyleRenderer.render(one, uops)
        return f"{text}\n{one.tail}" if one.tail else text

    def mask_bytes(self, u: UOp) -> int:
        """Element size of the mask that a bool vector is."""
        return self.masks.get(u, 1)

    def mask_type(self, size: int, lanes: int) -> str:
        """The integer vector that holds a mask."""
        return self.type_name(_MASK_INT[size], lanes)

    def as_mask(self, name: str, u: UOp, size: int, lanes: int) -> str:
        """A bool operand as a mask of ``size``-byte lanes."""
        t = self.mask_type(size, lanes)
        if not u._shape:
            return f"(({t}){{}} - ({_c(_MASK_INT[size])})({name} != 0))"
        return name if self.mask_bytes(u) == size else f"__builtin_convertvector({name}, {t})"

    def expression(self, u: UOp, names: list[str]) -> str:
        n = lanes_of(u)
        if n == 1 and u.op is not Ops.INDEX and u.op is not Ops.CUSTOMI:
            if u.dtype is dtypes.float16 and u.op in self.code_for_op and u.op is not Ops.WHERE:
                return self.half(u, names)
            if u.op in _COMPARES and u.src[0].dtype is dtypes.float16:
                names = [self.widened(x) for x in names]
            return super().expression(u, names)
        if u.op in (Ops.INDEX, Ops.CUSTOMI):
            return super().expression(u, names)
        return _VectorText(self, u, names, n).text()

    def widened(self, x: str) -> str:
        """A half as float; gcc would make one library call of the conversion and what follows."""
        return f"((float){x})" if self.abilities.clang else f"float_of_half({x})"

    def cast(self, x: str, u: UOp) -> str:
        src, dst = u.src[0].dtype, u.dtype
        if dst is dtypes.float16 and src is not dtypes.float32:
            # every integer a half can hold is a float; a double must not be rounded twice
            return f"half_of_double({x})" if src is dtypes.float64 else f"((_Float16)(float){x})"
        if src is dtypes.float16:
            x, u = self.widened(x), u.replace(src=(UOp.const(0.0, dtypes.float32),))
        return super().cast(x, u)

    def half(self, u: UOp, names: list[str]) -> str:
        """Half arithmetic: float32, then one rounding."""
        wide = [self.widened(x) for x in names]
        if u.op is Ops.MAX:
            x, y = wide
            return f"({x} < {y} || {y} != {y} ? {names[1]} : {names[0]})"
        as_float = UOp(u.op, tuple(UOp.const(0.0, dtypes.float32) for _ in u.src))
        return f"((_Float16){super().expression(as_float, wide)})"

    def bitcast(self, x: str, u: UOp) -> str:
        a, b = self.type_name(u.src[0].dtype), self.type_name(u.dtype)
        return f"((union {{ {a} a; {b} b; }}){{ .a = {x} }}).b"

    def vector(self, parts: list[str], u: UOp) -> str:
        n = len(parts)
        if u.dtype is dtypes.bool:
            t, parts = self.mask_type(1, n), [f"-({p} != 0)" for p in parts]
        else:
            t = self.type_name(u.dtype, n)
        return _splat(parts[0], t, n) if n > 1 and len(set(parts)) == 1 else f"({t}){{{', '.join(parts)}}}"

    def lane(self, x: str, u: UOp) -> str:
        lanes = u.src[1]
        if lanes.op is Ops.STACK:
            return f"__builtin_shufflevector({x}, {x}, {', '.join(str(i.const_value) for i in lanes.src)})"
        text = f"{x}[{lanes.const_value}]"
        return f"(-{text})" if u.dtype is dtypes.bool else text

    def declared_type(self, u: UOp) -> str:
        """Type of the variable of a node."""
        n = lanes_of(u)
        if n > 1 and u.dtype is dtypes.bool:
            return self.mask_type(self.mask_bytes(u), n)
        return self.type_name(u.dtype, n)

    def register_type(self, dtype: DType, lanes: int) -> str:
        return self.type_name(dtypes.int8 if dtype is dtypes.bool and lanes > 1 else dtype, lanes)

    def register_value(self, value: str, u: UOp, lanes: int) -> str:
        return self.as_mask(value, u, 1, lanes) if lanes > 1 and u.dtype is dtypes.bool else value

    # *** memory ***
    def vector_place(self, base: str, index: str, u: UOp, lanes: int) -> str:
        dt = dtypes.int8 if u.dtype is dtypes.bool else u.dtype
        return f"(*({self.type_name(dt, lanes)}u*)({base}+{index}))"

    def load(self, place: str, u: UOp, lanes: int) -> str:
        if lanes == 1:
            return place
        # the type of the place is not quite that of the value: a conditional does not take both
        value = f"{place} != 0" if u.dtype is dtypes.bool else place
        return f"(({self.declared_type(u)})({value}))"

    def gated_load(self, place: str, alt: str, gate: str, u: UOp, lanes: int) -> str:
        if lanes > 1 and u.src[2]._shape:
            raise ValueError("C vectors have no masked loads")
        return f"({gate} ? {self.load(place, u, lanes)} : {alt})"

    def store_value(self, value: str, u: UOp, lanes: int) -> str:
        if lanes == 1 or u.dtype is not dtypes.bool:
            return value
        return f"({self.as_mask(value, u, 1, lanes)} & 1)"


class _VectorText:
    """The text of one vector operation."""

    def __init__(self, r: ClangRenderer, u: UOp, names: list[str], n: int) -> None:
        self.r, self.u, self.names, self.n = r, u, names, n

    def t(self, dt: DType) -> str:
        return self.r.type_name(dt, self.n)

    def operand(self, i: int, dt: DType | None = None) -> str:
        """Operand ``i`` as a vector (of ``dt``)."""
        s, name = self.u.src[i], self.names[i]
        t = self.t(dt or s.dtype)
        if not s._shape:
            return f"(({t}){{}} + ({_c(dt or s.dtype)}){name})" if not s.dtype.is_float else _splat(name, t, self.n)
        return name if dt is None or dt is s.dtype else f"__builtin_convertvector({name}, {t})"

    def text(self) -> str:
        u, r = self.u, self.r
        if u.op is Ops.STACK:
            return r.vector(self.names, u)
        if u.op is Ops.CAST:
            return self.cast()
        if u.op is Ops.BITCAST:
            return f"(({self.t(u.dtype)}){self.names[0]})"
        if u.op is Ops.WHERE:
            return self.where()
        if u.dtype is dtypes.bool:
            return self.boolean()
        if u.dtype is dtypes.float16:
            return self.half()
        return self.arithmetic([self.operand(i) for i in range(len(u.src))], u.dtype)

    def comparable(self, x: str) -> str:
        """A half widened to float; gcc narrows a bare comparison to a library call."""
        return f"({x} + {self.operand_of('0', dtypes.float32)})"

    def half(self) -> str:
        xs = [self.operand(i, dtypes.float32) for i in range(len(self.u.src))]
        if self.u.op is Ops.MAX:
            x, y = (self.comparable(x) for x in xs)
            cond = f"__builtin_convertvector((({x} < {y}) | ({y} != {y})), {self.t(dtypes.int16)})"
            return self.blend(cond, self.operand(1), self.operand(0), dtypes.float16)
        return f"__builtin_convertvector({self.arithmetic(xs, dtypes.float32)}, {self.t(dtypes.float16)})"

    def arithmetic(self, xs: list[str], dt: DType) -> str:
        u, op = self.u, self.u.op
        if op is Ops.MAX:
            cond = f"({xs[0]} < {xs[1]})" + (f" | ({xs[1]} != {xs[1]})" if dt.is_float else "")
            return self.blend(f"({cond})", xs[1], xs[0], dt)
        if op is Ops.SHL or op is Ops.SHR:
            return self.shift(xs, dt)
        if op is Ops.MULACC and dt.is_float:
            return self.builtin(_FMA_X86, "__builtin_elementwise_fma", xs, dt)
        if op is Ops.SQRT:
            return self.builtin(_SQRT_X86, "__builtin_elementwise_sqrt", xs, dt)
        if op is Ops.TRUNC:
            return self.truncate(xs[0], dt) if dt.is_float else xs[0]
        if op is Ops.RECIPROCAL:
            return f"({self.operand_of('1', dt)} / {xs[0]})"
        sign = _SIGNS.get(op)
        if sign is not None:
            return f"({xs[0]} {sign} {xs[1]})"
        if op is Ops.NEG:
            return f"(-{xs[0]})"
        if op is Ops.MULACC:
            return f"({xs[0]} * {xs[1]} + {xs[2]})"
        raise ValueError(f"no C vector form of {op} on {u.dtype} x {self.n}")

    def operand_of(self, text: str, dt: DType) -> str:
        return _splat(f"({_c(dt)}){text}", self.t(dt), self.n)

    def shift(self, xs: list[str], dt: DType) -> str:
        u, w = self.u, self.u.dtype.bitsize
        count, by = u.src[1], xs[1]
        counts = dt if count.dtype.is_weak else count.dtype
        if not count._shape:
            by = self.operand_of(f"({self.names[1]})", counts)
        sign = "<<" if u.op is Ops.SHL else ">>"
        amount = by if counts.itemsize == dt.itemsize else f"__builtin_convertvector({by}, {self.t(dt)})"
        if counts is not dt:
            amount = f"({self.t(dt)})({amount})"
        if 0 <= count.vmin and count.vmax < w:
            return f"({xs[0]} {sign} {amount})"
        unsigned = _UNSIGNED[counts.itemsize]
        small = f"(({self.t(unsigned)})({by}) < ({_c(unsigned)}){w})"
        if counts.itemsize != dt.itemsize:
            small = f"__builtin_convertvector({small}, {self.t(_MASK_INT[dt.itemsize])})"
        over = f"({xs[0]} < 0)" if u.op is Ops.SHR and not dt.is_unsigned else f"({self.t(dt)}){{}}"
        return self.blend(small, f"({xs[0]} {sign} (({amount}) & ({_c(dt)}){w - 1}))", over, dt)

    def blend(self, mask: str, x: str, y: str, dt: DType) -> str:
        """``x`` where the mask is all ones, else ``y``."""
        it = self.t(_MASK_INT[dt.itemsize])
        return f"(({self.t(dt)})((({it}){mask} & ({it}){x}) | (~({it}){mask} & ({it}){y})))"

    def builtin(self, table: dict[tuple[DType, int], str], generic: str, xs: list[str], dt: DType) -> str:
        """The generic builtin of a new clang, an x86 builtin of gcc, else lane by lane, which clang puts together."""
        if self.r.abilities.elementwise:
            return f"{generic}({', '.join(xs)})"
        known = table.get((dt, self.n))
        if known is not None and self.r.level.is_x86 and self.r.caps.vector_bytes >= 32 and not self.r.abilities.clang:
            return known.format(*xs)
        name = {Ops.SQRT: self.r.sqrt, Ops.MULACC: self.r.fma}[self.u.op] + ("" if dt is dtypes.float64 else "f")
        lanes = [f"{name}({', '.join(f'({x})[{i}]' for x in xs)})" for i in range(self.n)]
        return f"(({self.t(dt)}){{{', '.join(lanes)}}})"

    def truncate(self, x: str, dt: DType) -> str:
        """Toward zero: through an integer where the fraction has bits, the sign kept."""
        it, i = self.t(_MASK_INT[dt.itemsize]), _MASK_INT[dt.itemsize]
        big = "0x1p23f" if dt is dtypes.float32 else "0x1p52"
        top = f"(({it}){{}} + ({_c(i)})(1{'ll' if dt is dtypes.float64 else 'u'} << {dt.bitsize - 1}))"
        if dt is dtypes.float64:
            top = f"(({it}){{}} + (-9223372036854775807ll-1))"
        size = f"(({self.t(dt)})(({it}){x} & ~{top}))"
        small = f"({size} < {self.operand_of(big, dt)})"
        whole = f"__builtin_convertvector(({self.t(dt)})(({it}){x} & ({it}){small}), {it})"
        cut = f"__builtin_convertvector({whole}, {self.t(dt)})"
        return self.blend(small, f"({self.t(dt)})(({it})({cut}) | (({it}){x} & {top}))", x, dt)

    # *** bools and selection ***
    def boolean(self) -> str:
        u, r, n = self.u, self.r, self.n
        a = u.src[0].dtype
        size = r.mask_bytes(u)
        if a is not dtypes.bool:
            if a is dtypes.float16:
                xs = [self.comparable(self.operand(i, dtypes.float32)) for i in range(2)]
            else:
                xs = [self.operand(i) for i in range(2)]
            return f"({r.mask_type(size, n)})({xs[0]} {_COMPARES[u.op]} {xs[1]})"
        xs = [r.as_mask(x, s, size, n) for x, s in zip(self.names, u.src)]
        if u.op is Ops.CMPEQ:
            return f"(~({xs[0]} ^ {xs[1]}))"
        if u.op is Ops.CMPLT:
            return f"(~{xs[0]} & {xs[1]})"
        return f"({xs[0]} {_BOOL_SIGNS[u.op]} {xs[1]})"

    def where(self) -> str:
        u, r, n = self.u, self.r, self.n
        if u.dtype is dtypes.bool:
            size = r.mask_bytes(u)
            m, x, y = [r.as_mask(name, s, size, n) for name, s in zip(self.names, u.src)]
            return f"(({m} & {x}) | (~{m} & {y}))"
        x, y = self.operand(1), self.operand(2)
        if not u.src[0]._shape:
            return f"({self.names[0]} ? {x} : {y})"
        return self.blend(r.as_mask(self.names[0], u.src[0], u.dtype.itemsize, n), x, y, u.dtype)

    # *** conversions ***
    def cast(self) -> str:
        u, r, n = self.u, self.r, self.n
        src, dst, x = u.src[0].dtype, u.dtype, self.names[0]
        if dst is dtypes.bool:
            size = r.mask_bytes(u)
            x = self.comparable(self.operand(0, dtypes.float32)) if src is dtypes.float16 else x
            return f"({r.mask_type(size, n)})({x} != 0)"
        if src is dtypes.bool:
            x = f"({x} & 1)"
            if dst is dtypes.float16:
                return self.through_float(x, dst)
            return f"__builtin_convertvector({x}, {self.t(dst)})"
        if src.is_float and dst.is_int:
            return self.float_to_int(x, src, dst)
        if src is dtypes.float16 and dst is dtypes.float64 and not r.abilities.clang:
            lanes = ", ".join(f"(double){r.widened(f'{x}[{i}]')}" for i in range(n))
            return f"({self.t(dst)}){{{lanes}}}"
        if dst is dtypes.float16 and src is not dtypes.float32 or src is dtypes.float16 and dst is dtypes.float64:
            return self.through_float(x, dst)
        return f"__builtin_convertvector({x}, {self.t(dst)})"

    def through_float(self, x: str, dst: DType) -> str:
        return f"__builtin_convertvector(__builtin_convertvector({x}, {self.t(dtypes.float32)}), {self.t(dst)})"

    def float_to_int(self, x: str, src: DType, dst: DType) -> str:
        r = self.r
        if src is dtypes.float16:
            x, src = self.comparable(f"__builtin_convertvector({x}, {self.t(dtypes.float32)})"), dtypes.float32
        hi, lo = float_to_int_edges(src, dst)
        it, t = self.t(_MASK_INT[src.itemsize]), self.t(dst)
        high = f"({x} >= {self.operand_of(r.literal(hi, src), src)})"
        inside = f"(({x} > {self.operand_of(r.literal(lo, src), src)}) & ~{high})"
        low = f"({x} <= {self.operand_of(r.literal(lo, src), src)})"
        masked = f"({self.t(src)})(({it}){x} & ({it}){inside})"
        wide = _MASK_INT[dst.itemsize]

        def to(mask: str) -> str:
            return f"({t})__builtin_convertvector(({it}){mask}, {self.t(wide)})"
        top, bottom = self.operand_of(r.literal(dst.max, dst), dst), self.operand_of(r.literal(dst.min, dst), dst)
        return f"(__builtin_convertvector({masked}, {t}) | ({to(high)} & {top}) | ({to(low)} & {bottom}))"


_NO_VALUE = frozenset({Ops.PARAM, Ops.BUFFER, Ops.AFTER, Ops.SINK, Ops.GROUP, Ops.END, Ops.BARRIER, Ops.NOOP})
_SIGNS = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^"}
_BOOL_SIGNS = {Ops.AND: "&", Ops.MUL: "&", Ops.OR: "|", Ops.ADD: "|", Ops.MAX: "|", Ops.XOR: "^", Ops.CMPNE: "^"}
_MASK_OPS = frozenset({Ops.AND, Ops.OR, Ops.XOR, Ops.CMPNE, Ops.CMPEQ, Ops.CMPLT, Ops.WHERE, Ops.ADD, Ops.MUL, Ops.MAX})
_COMPARES = {Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "=="}
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
# the part of the mantissa that a float lacks becomes one sticky bit, so that the second rounding sees it
_HALF_OF_DOUBLE = """static inline _Float16 half_of_double(double x) {
  union { double d; unsigned long long u; } v = { .d = x };
  unsigned long long low = v.u & 0x1fffffffull;
  v.u = (v.u & ~0x1fffffffull) | (low ? 0x20000000ull : 0);
  return (_Float16)(float)v.d;
}"""
_FLOAT_OF_HALF = """static inline float float_of_half(_Float16 x) {
  float y = x;
  __asm__("" : "+REGISTER"(y));
  return y;
}"""
# gcc's names of the x86 instructions behind vector fma and sqrt
_FMA_X86 = {
    (dtypes.float32, 4): "__builtin_ia32_vfmaddps({}, {}, {})",
    (dtypes.float32, 8): "__builtin_ia32_vfmaddps256({}, {}, {})",
    (dtypes.float32, 16): "__builtin_ia32_vfmaddps512_mask({}, {}, {}, -1, 4)",
    (dtypes.float64, 2): "__builtin_ia32_vfmaddpd({}, {}, {})",
    (dtypes.float64, 4): "__builtin_ia32_vfmaddpd256({}, {}, {})",
    (dtypes.float64, 8): "__builtin_ia32_vfmaddpd512_mask({}, {}, {}, -1, 4)"}
_SQRT_X86 = {
    (dtypes.float32, 4): "__builtin_ia32_sqrtps({})", (dtypes.float32, 8): "__builtin_ia32_sqrtps256({})",
    (dtypes.float32, 16): "__builtin_ia32_sqrtps512_mask({0}, {0}, -1, 4)",
    (dtypes.float64, 2): "__builtin_ia32_sqrtpd({})", (dtypes.float64, 4): "__builtin_ia32_sqrtpd256({})",
    (dtypes.float64, 8): "__builtin_ia32_sqrtpd512_mask({0}, {0}, -1, 4)"}


def _mask_sizes(uops: list[UOp]) -> dict[UOp, int]:
    """Element sizes of the masks that the bools of a program are where they are vectors, without those of 1 byte."""
    sizes: dict[UOp, int] = {}
    for u in uops:
        op = u.op
        if op in _COMPARES and u.src[0].dtype is not dtypes.bool or op is Ops.CAST and u.arg is dtypes.bool:
            size = max(u.src[0].dtype.itemsize, 4 if u.src[0].dtype is dtypes.float16 else 1)
        elif op in _MASK_OPS and u.dtype is dtypes.bool:
            size = max([sizes.get(s, 1) for s in u.src if s._shape and s.dtype is dtypes.bool], default=1)
        elif op in (Ops.AFTER, Ops.INDEX) and u.src:
            size = sizes.get(u.src[0], 1)
        else:
            continue
        if size > 1:
            sizes[u] = size
    return sizes


def _c(dt: DType) -> str:
    return ClangRenderer.type_names[dt]


def _short(dt: DType) -> str:
    return {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double"}.get(dt) or repr(
        dt).rpartition(".")[2]


def _splat(name: str, t: str, n: int) -> str:
    return f"({t}){{x{n}({name})}}"  # the macro of the preamble
