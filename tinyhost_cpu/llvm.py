"""LLVM IR for the host through llvmlite: a renderer and its compiler.

Takes linear programs; gives LLVM IR text, and from it one flat block of position-independent code whose entry is at
offset 0. No fast-math flag is set: float arithmetic is that of ``tinyhost.uop.semantics``, and fused multiply-adds are
explicit. A bool is ``i1`` as a value and one byte in memory. Loop counters and accumulators are stack slots that LLVM's
own passes promote. A program with streamed stores has its body twice, behind one test that their storage is aligned.
"""
from __future__ import annotations

import importlib.util
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.memory import STREAMED, stored_in
from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.errors import CompileError, RendererUnavailable
from tinyhost.ops import AddrSpace, Ops
from tinyhost.renderer.base import Compiler, Renderer, source_key
from tinyhost.target import Target
from tinyhost.uop import UOp
from tinyhost_cpu.levels import Level, parse_level
from tinyhost_cpu.relocate import flat_image
from tinyhost_cpu.x86.caps import STREAM_BYTES

_TYPES = {
    dtypes.bool: "i1", dtypes.int8: "i8", dtypes.uint8: "i8", dtypes.int16: "i16", dtypes.uint16: "i16",
    dtypes.int32: "i32", dtypes.uint32: "i32", dtypes.int64: "i64", dtypes.uint64: "i64",
    dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double"}
def missing() -> str:
    """Why this renderer cannot work here, "" when it can."""
    return "" if importlib.util.find_spec("llvmlite") else "llvmlite is not installed: pip install tinyhost-cpu[llvm]"


def capabilities(target: Target) -> Capabilities:
    """What LLVM code for ``target`` can do."""
    level = parse_level(target.arch)
    return replace(level.capabilities(), masked=True, stream_bytes=STREAM_BYTES if level.is_x86 else 0)


class LLVMRenderer(Renderer):
    """LLVM IR with vectors for a host CPU."""

    name = "LLVM"
    code_for_op = frozenset({
        Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.FDIV, Ops.RECIPROCAL, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR, Ops.AND,
        Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE, Ops.MAX, Ops.SQRT, Ops.TRUNC, Ops.MULACC})

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        if why := missing():
            raise RendererUnavailable(why)
        self.level = parse_level(target.arch)
        self.caps = capabilities(target)
        self.code_for_op = self.code_for_op - self.level.lacking_ops
        self.compiler = LLVMCompiler(self.level)

    def supports(self, op: Ops, dtype: DType, lanes: int = 1) -> bool:
        """Every op exists at every width, except a fused multiply-add without the instruction."""
        if op is Ops.MULACC and dtype.is_float:
            return self.caps.fma and dtype in (dtypes.float32, dtypes.float64)
        return dtype in self.caps.dtypes and lanes & (lanes - 1) == 0

    def render(self, uops: list[UOp]) -> str:
        """LLVM IR of one function."""
        return _Writer(self, uops).text()


def _lanes(u: UOp) -> int:
    shape = u._shape
    return int(shape[0]) if shape else 1


def _literal(value: Any, dtype: DType) -> str:
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(truncate[dtype](value))
    if dtype is dtypes.float16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', truncate[dtype](value)))[0]:04X}"
    x = truncate[dtype](float(value))
    bits = 0x7FF8000000000000 if math.isnan(x) else struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"0x{bits:016X}"


class _Writer:
    """One rendering: every value is an SSA name or a literal."""

    def __init__(self, renderer: LLVMRenderer, uops: list[UOp]) -> None:
        self.r, self.uops = renderer, uops
        self.names: dict[UOp, str] = {}
        self.body: list[str] = []
        self.entry: list[str] = []
        self.declared: dict[str, None] = {}
        self.count = 0
        self.loops: list[tuple[str, UOp, str]] = []  # label prefix, opening node, stack slot of the counter
        self.block = "entry"
        self.streamed: set[UOp] = set()  # stores past the caches, while the body that has them is written
        self.metadata: list[str] = []

    # *** text ***
    def text(self) -> str:
        params = sorted((u for u in self.uops if u.op is Ops.PARAM),
                        key=lambda u: (u.arg.addrspace is AddrSpace.ALU, u.arg.slot))
        args = []
        for i, p in enumerate(params):
            self.names[p] = f"%arg{i}"
            pointer = p.arg.addrspace is AddrSpace.GLOBAL
            args.append(f"{'ptr' if pointer else _TYPES[p.dtype]} %arg{i}")
        self.bodies()
        sink = self.uops[-1]
        name = sink.arg.function_name if sink.op is Ops.SINK and sink.arg is not None else "kernel"
        width = self.r.caps.vector_bytes * 8
        return "\n".join([
            f'define void @"{name}"({", ".join(args)}) #0 section ".text.entry" {{',
            "entry:", *self.entry, *self.body, "  ret void", "}", *self.declared,
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" '
            '"no-builtins" "no-jump-tables"="true" }', *self.metadata, ""])

    def bodies(self) -> None:
        """The statements; twice where stores are streamed, first for aligned storage, then for any."""
        streams = [u for u in self.uops if u.op is Ops.STORE and u.tag == STREAMED]
        if not streams:
            self.statements()
            return
        outer = dict(self.names)
        addresses = [self.emit(f"ptrtoint ptr {outer[p]} to i64") for p in dict.fromkeys(map(stored_in, streams))]
        bits = addresses[0]
        for x in addresses[1:]:
            bits = self.emit(f"or i64 {bits}, {x}")
        rest = self.emit(f"and i64 {bits}, {self.r.caps.vector_bytes - 1}")
        self.line(f"br i1 {self.emit(f'icmp eq i64 {rest}, 0')}, label %past, label %through")
        self.label("past")
        self.streamed, self.metadata = set(streams), ["!0 = !{i32 1}"]
        self.statements()
        self.declared["declare void @llvm.x86.sse.sfence()"] = None
        self.line("call void @llvm.x86.sse.sfence()")
        self.line("ret void")
        self.label("through")
        self.names, self.streamed = outer, set()
        self.statements()

    def statements(self) -> None:
        for u in self.uops:
            self.statement(u)

    def emit(self, text: str, prefix: str = "v") -> str:
        """An instruction with a result."""
        name = f"%{prefix}{self.count}"
        self.count += 1
        self.body.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.body.append(f"  {text}")

    def label(self, name: str) -> None:
        self.body.append(f"{name}:")
        self.block = name

    def fresh_label(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def slot(self, type_name: str, size: int = 1) -> str:
        """Stack memory for the whole call."""
        name = f"%slot{self.count}"
        self.count += 1
        self.entry.append(f"  {name} = alloca {type_name}, i32 {size}, align 64")
        return name

    def intrinsic(self, name: str, result: str, args: list[tuple[str, str]]) -> str:
        """A call of an LLVM intrinsic."""
        self.declared[f"declare {result} @{name}({', '.join(t for t, _ in args)})"] = None
        return self.emit(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})")

    # *** types and operands ***
    @staticmethod
    def type(dtype: DType, lanes: int = 1) -> str:
        return _TYPES[dtype] if lanes == 1 else f"<{lanes} x {_TYPES[dtype]}>"

    @staticmethod
    def memory_type(dtype: DType, lanes: int = 1) -> str:
        t = "i8" if dtype is dtypes.bool else _TYPES[dtype]
        return t if lanes == 1 else f"<{lanes} x {t}>"

    @staticmethod
    def suffix(dtype: DType, lanes: int) -> str:
        t = {"half": "f16", "float": "f32", "double": "f64"}.get(_TYPES[dtype], _TYPES[dtype])
        return t if lanes == 1 else f"v{lanes}{t}"

    def splat(self, value: str, dtype: DType, lanes: int) -> str:
        if lanes == 1:
            return value
        t = self.type(dtype, lanes)
        if not value.startswith("%"):
            return f"<{', '.join([f'{_TYPES[dtype]} {value}'] * lanes)}>"
        first = self.emit(f"insertelement {t} poison, {_TYPES[dtype]} {value}, i32 0")
        return self.emit(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer")

    def operand(self, u: UOp, lanes: int) -> str:
        """The name of ``u`` at ``lanes`` lanes; scalars broadcast."""
        return self.names[u] if _lanes(u) == lanes else self.splat(self.names[u], u.dtype, lanes)

    # *** the walk ***
    def statement(self, u: UOp) -> None:
        handler = _STATEMENTS.get(u.op)
        if handler is not None:
            handler(self, u)
        elif u.op not in _SILENT and u.dtype is not dtypes.weakint:  # weak ones are lane numbers, read where used
            self.names[u] = self.value(u)

    def value(self, u: UOp) -> str:
        n = _lanes(u)
        if u.op is Ops.CAST:
            x = u.src[0]
            return self.literal(u) if x.op is Ops.CONST else self.cast(self.operand(x, n), x.dtype, u.dtype, n)
        if u.op is Ops.BITCAST:
            a, b = self.type(u.src[0].dtype, n), self.type(u.dtype, n)
            return self.names[u.src[0]] if a == b else self.emit(f"bitcast {a} {self.names[u.src[0]]} to {b}")
        if u.op is Ops.STACK:
            return self.stack(u)
        handler = _ALU.get(u.op)
        if handler is None:
            raise CompileError(f"LLVM renderer cannot render {u.op} of {u.dtype}: it is not in code_for_op and was "
                               "not decomposed")
        return handler(self, u, [self.operand(s, n) for s in u.src], u.src[0].dtype, n)

    def literal(self, u: UOp) -> str:
        return _literal(u.src[0].arg, u.dtype)

    def stack(self, u: UOp) -> str:
        n = len(u.src)
        if all(s is u.src[0] for s in u.src):
            return self.splat(self.names[u.src[0]], u.dtype, n)
        t, out = self.type(u.dtype, n), "poison"
        for i, s in enumerate(u.src):
            out = self.emit(f"insertelement {t} {out}, {_TYPES[u.dtype]} {self.names[s]}, i32 {i}")
        return out

    def cast(self, x: str, src: DType, dst: DType, n: int) -> str:
        a, b = self.type(src, n), self.type(dst, n)
        if dst is dtypes.bool:
            zero = self.splat(_literal(0, src), src, n)
            return self.emit(f"fcmp une {a} {x}, {zero}" if src.is_float else f"icmp ne {a} {x}, {zero}")
        if src.is_float and dst.is_float:
            if src is dtypes.float64 and dst is dtypes.float16:
                x, a = self.float_of_double(x, n), self.type(dtypes.float32, n)
            return x if src is dst else self.emit(f"{'fpext' if src.itemsize < dst.itemsize else 'fptrunc'} {a} {x} "
                                                  f"to {b}")
        if src.is_float and n > 1 and (dst.itemsize < 4 or dst is dtypes.int32):
            return self.saturated(x, src, dst, n)
        if src.is_float:
            kind = "fptoui" if dst.is_unsigned else "fptosi"
            return self.intrinsic(f"llvm.{kind}.sat.{self.suffix(dst, n)}.{self.suffix(src, n)}", b, [(a, x)])
        unsigned = src.is_unsigned or src is dtypes.bool
        if dst.is_float:
            return self.emit(f"{'uitofp' if unsigned else 'sitofp'} {a} {x} to {b}")
        if a == b:
            return x
        grow = src is dtypes.bool or src.itemsize < dst.itemsize
        return self.emit(f"{('zext' if unsigned else 'sext') if grow else 'trunc'} {a} {x} to {b}")

    def saturated(self, x: str, src: DType, dst: DType, n: int) -> str:
        """Floats as integers that int32 holds, lane by lane: LLVM makes scalars of its own saturating conversion."""
        if src is dtypes.float16:
            x, src = self.cast(x, src, dtypes.float32, n), dtypes.float32
        t, ints, bools = self.type(src, n), self.type(dtypes.int32, n), self.type(dtypes.bool, n)
        zero, lo, hi = (self.splat(_literal(v, src), src, n) for v in (0, dst.min, dst.max))

        def chosen(condition: str, a: str, b: str) -> str:
            return self.emit(f"select {bools} {self.emit(condition)}, {t} {a}, {t} {b}")
        x = chosen(f"fcmp ord {t} {x}, {x}", x, zero)
        if dst is not dtypes.int32:
            low = chosen(f"fcmp ogt {t} {x}, {lo}", x, lo)
            whole = self.emit(f"fptosi {t} {chosen(f'fcmp olt {t} {low}, {hi}', low, hi)} to {ints}")
            return self.emit(f"trunc {ints} {whole} to {self.type(dst, n)}")
        above = self.emit(f"fcmp oge {t} {x}, {hi}")  # the largest float is 2^31, which int32 does not hold
        low = chosen(f"fcmp olt {t} {x}, {hi}", chosen(f"fcmp ogt {t} {x}, {lo}", x, lo), zero)
        top = self.splat(str(dst.max), dst, n)
        return self.emit(f"select {bools} {above}, {ints} {top}, {ints} {self.emit(f'fptosi {t} {low} to {ints}')}")

    def float_of_double(self, x: str, n: int) -> str:
        """float64 as float32 whose last bit is set where anything was lost: rounding that to half is one rounding."""
        wide, ints = self.type(dtypes.float64, n), self.type(dtypes.int64, n)
        bits = self.emit(f"bitcast {wide} {x} to {ints}")
        low = self.emit(f"and {ints} {bits}, {self.splat(str((1 << 29) - 1), dtypes.int64, n)}")
        lost = self.emit(f"icmp ne {ints} {low}, {self.splat('0', dtypes.int64, n)}")
        sticky = self.emit(f"shl {ints} {self.cast(lost, dtypes.bool, dtypes.int64, n)}, "
                           f"{self.splat('29', dtypes.int64, n)}")
        kept = self.emit(f"and {ints} {bits}, {self.splat(str(-(1 << 29)), dtypes.int64, n)}")
        odd = self.emit(f"bitcast {ints} {self.emit(f'or {ints} {kept}, {sticky}')} to {wide}")
        return self.emit(f"fptrunc {wide} {odd} to {self.type(dtypes.float32, n)}")

    # *** memory ***
    def place(self, u: UOp) -> None:
        if u.op is Ops.INDEX and u.src[0]._addrspace is AddrSpace.ALU:
            self.names[u] = self.lane(u)
            return
        index = u.src[1]
        self.names[u] = self.emit(f"getelementptr inbounds {self.memory_type(u.dtype)}, ptr {self.names[u.src[0]]}, "
                                  f"{self.wide(index)}", "p")

    def wide(self, index: UOp) -> str:
        """An index as i64."""
        name = self.names[index]
        if not name.startswith("%"):
            return f"i64 {name}"
        if index.dtype.itemsize == 8:
            return f"i64 {name}"
        kind = "zext" if index.dtype.is_unsigned else "sext"
        return f"i64 {self.emit(f'{kind} {self.type(index.dtype)} {name} to i64')}"

    def lane(self, u: UOp) -> str:
        vector, lanes = u.src
        t, n = self.type(vector.dtype, _lanes(vector)), _lanes(vector)
        if lanes.op is Ops.STACK:
            mask = ", ".join(f"i32 {i.const_value}" for i in lanes.src)
            return self.emit(f"shufflevector {t} {self.names[vector]}, {t} poison, <{len(lanes.src)} x i32> <{mask}>")
        if n == 1:
            return self.names[vector]
        return self.emit(f"extractelement {t} {self.names[vector]}, i32 {lanes.const_value}")

    def buffer(self, u: UOp) -> None:
        self.names[u] = self.slot(self.memory_type(u.dtype), u.arg.size)

    def from_memory(self, x: str, dtype: DType, n: int) -> str:
        if dtype is not dtypes.bool:
            return x
        t = self.memory_type(dtype, n)
        return self.emit(f"icmp ne {t} {x}, {'0' if n == 1 else 'zeroinitializer'}")

    def to_memory(self, x: str, dtype: DType, n: int) -> str:
        return x if dtype is not dtypes.bool else self.emit(f"zext {self.type(dtype, n)} {x} to "
                                                            f"{self.memory_type(dtype, n)}")

    def plain_load(self, place: UOp, n: int) -> str:
        x = self.emit(f"load {self.memory_type(place.dtype, n)}, ptr {self.names[place]}, align {place.dtype.itemsize}")
        return self.from_memory(x, place.dtype, n)

    def load(self, u: UOp) -> None:
        place, n = u.src[0], _lanes(u)
        if len(u.src) == 1:
            self.names[u] = self.plain_load(place, n)
            return
        alt, gate = u.src[1], u.src[2]
        if _lanes(gate) > 1:
            self.names[u] = self.masked_load(u, n)
            return
        then, join, before = self.fresh_label("then"), self.fresh_label("join"), self.block
        other = self.operand(alt, n)
        self.line(f"br i1 {self.names[gate]}, label %{then}, label %{join}")
        self.label(then)
        x = self.plain_load(place, n)
        end = self.block
        self.line(f"br label %{join}")
        self.label(join)
        self.names[u] = self.emit(f"phi {self.type(u.dtype, n)} [ {x}, %{end} ], [ {other}, %{before} ]")

    def masked_load(self, u: UOp, n: int) -> str:
        place, alt, gate = u.src
        t = self.memory_type(u.dtype, n)
        other = self.to_memory(self.operand(alt, n), u.dtype, n)
        short = self.suffix(dtypes.int8 if u.dtype is dtypes.bool else u.dtype, n)
        x = self.intrinsic(f"llvm.masked.load.{short}.p0", t, [
            ("ptr", self.names[place]), ("i32", str(u.dtype.itemsize)), (f"<{n} x i1>", self.names[gate]), (t, other)])
        return self.from_memory(x, u.dtype, n)

    def store(self, u: UOp) -> None:
        place, value, n = u.src[0], u.src[1], _lanes(u.src[0])
        x = self.to_memory(self.operand(value, n), value.dtype, n)
        t = self.memory_type(value.dtype, n)
        plain = f"store {t} {x}, ptr {self.names[place]}, align {value.dtype.itemsize}"
        if u in self.streamed:
            plain = f"store {t} {x}, ptr {self.names[place]}, align {n * value.dtype.itemsize}, !nontemporal !0"
        if len(u.src) == 2:
            self.line(plain)
            return
        gate = u.src[2]
        if _lanes(gate) > 1:
            short = self.suffix(dtypes.int8 if value.dtype is dtypes.bool else value.dtype, n)
            args = [(t, x), ("ptr", self.names[place]), ("i32", str(value.dtype.itemsize)),
                    (f"<{n} x i1>", self.names[gate])]
            name = f"llvm.masked.store.{short}.p0"
            self.declared[f"declare void @{name}({', '.join(a for a, _ in args)})"] = None
            self.line(f"call void @{name}({', '.join(f'{a} {v}' for a, v in args)})")
            return
        then, join = self.fresh_label("then"), self.fresh_label("join")
        self.line(f"br i1 {self.names[gate]}, label %{then}, label %{join}")
        self.label(then)
        self.line(plain)
        self.line(f"br label %{join}")
        self.label(join)

    # *** control ***
    def const(self, u: UOp) -> None:
        self.names[u] = _literal(u.arg, dtypes.int32 if u.dtype is dtypes.weakint else
                                 dtypes.float32 if u.dtype is dtypes.weakfloat else u.dtype)

    def alias(self, u: UOp) -> None:
        if u.src[0] in self.names:
            self.names[u] = self.names[u.src[0]]

    def range(self, u: UOp) -> None:
        tag = self.fresh_label("loop")
        if u.src[0].op is Ops.NOOP:
            self.loops.append((tag, u, ""))
            self.line(f"br label %{tag}.body")
            self.label(f"{tag}.body")
            return
        t = self.type(u.dtype)
        counter = self.slot(t)
        self.loops.append((tag, u, counter))
        self.line(f"store {t} 0, ptr {counter}")
        self.line(f"br label %{tag}.head")
        self.label(f"{tag}.head")
        i = self.names[u] = self.emit(f"load {t}, ptr {counter}", "i")
        more = self.emit(f"icmp slt {t} {i}, {self.names[u.src[0]]}")
        self.line(f"br i1 {more}, label %{tag}.body, label %{tag}.exit")
        self.label(f"{tag}.body")

    def end(self, u: UOp) -> None:
        tag, rng, counter = self.loops.pop()
        if rng.src[0].op is Ops.NOOP:
            self.line(f"br i1 {self.names[u.src[2]]}, label %{tag}.body, label %{tag}.exit")
        else:
            t = self.type(rng.dtype)
            after = self.emit(f"add nuw nsw {t} {self.names[rng]}, 1")
            self.line(f"store {t} {after}, ptr {counter}")
            self.line(f"br label %{tag}.head")
        self.label(f"{tag}.exit")

    def begin_if(self, u: UOp) -> None:
        tag = self.fresh_label("if")
        self.loops.append((tag, u, ""))
        self.line(f"br i1 {self.names[u.src[0]]}, label %{tag}.then, label %{tag}.exit")
        self.label(f"{tag}.then")

    def end_if(self, u: UOp) -> None:
        tag, _, _ = self.loops.pop()
        self.line(f"br label %{tag}.exit")
        self.label(f"{tag}.exit")

    def refuse(self, u: UOp) -> None:
        raise CompileError(f"LLVM renderer cannot render {u.op} {u.arg}: a host CPU has no launch indices, barriers "
                           "or C text")


# *** arithmetic ***
Handler = Callable[[_Writer, UOp, list[str], DType, int], str]


def _binary(float_op: str, int_op: str, bool_op: str) -> Handler:
    def write(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
        op = float_op if u.dtype.is_float else bool_op if u.dtype is dtypes.bool else int_op
        return w.emit(f"{op} {w.type(u.dtype, n)} {xs[0]}, {xs[1]}")
    return write


def _compare(float_op: str, signed: str, unsigned: str) -> Handler:
    def write(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
        op = float_op if dt.is_float else unsigned if dt.is_unsigned or dt is dtypes.bool else signed
        return w.emit(f"{op} {w.type(dt, n)} {xs[0]}, {xs[1]}")
    return write


def _max(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
    t = w.type(dt, n)
    x, y = xs
    if dt.is_float:
        less, nan = w.emit(f"fcmp olt {t} {x}, {y}"), w.emit(f"fcmp uno {t} {y}, {y}")
        cond = w.emit(f"or {w.type(dtypes.bool, n)} {less}, {nan}")
    else:
        cond = w.emit(f"icmp {'ult' if dt.is_unsigned or dt is dtypes.bool else 'slt'} {t} {x}, {y}")
    return w.emit(f"select {w.type(dtypes.bool, n)} {cond}, {t} {y}, {t} {x}")


def _shift(kind: Ops) -> Handler:
    def write(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
        t, count, width = w.type(u.dtype, n), u.src[1], u.dtype.bitsize
        other = count.dtype in _TYPES and _TYPES[count.dtype] != _TYPES[u.dtype]
        by = w.cast(xs[1], count.dtype, u.dtype, n) if other else xs[1]
        arithmetic = kind is Ops.SHR and not u.dtype.is_unsigned
        op = "shl" if kind is Ops.SHL else "ashr" if arithmetic else "lshr"
        if 0 <= count.vmin and count.vmax < width:
            return w.emit(f"{op} {t} {xs[0]}, {by}")
        ct = w.type(count.dtype, n)
        small = w.emit(f"icmp ult {ct} {xs[1]}, {w.splat(str(width), count.dtype, n)}")
        bt = w.type(dtypes.bool, n)
        if arithmetic:
            last = w.splat(str(width - 1), u.dtype, n)
            return w.emit(f"ashr {t} {xs[0]}, {w.emit(f'select {bt} {small}, {t} {by}, {t} {last}')}")
        zero = w.splat("0", u.dtype, n)
        shifted = w.emit(f"{op} {t} {xs[0]}, {w.emit(f'select {bt} {small}, {t} {by}, {t} {zero}')}")
        return w.emit(f"select {bt} {small}, {t} {shifted}, {t} {zero}")
    return write


def _divide(kind: Ops) -> Handler:
    def write(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
        t, bt, by = w.type(dt, n), w.type(dtypes.bool, n), u.src[1]
        signed = not dt.is_unsigned
        op = f"{'s' if signed else 'u'}{'div' if kind is Ops.CDIV else 'rem'}"
        x, y = xs
        one, zero = w.splat("1", dt, n), w.splat("0", dt, n)
        is_zero = minus = None
        if by.vmin <= 0 <= by.vmax:
            is_zero = w.emit(f"icmp eq {t} {y}, {zero}")
            y = w.emit(f"select {bt} {is_zero}, {t} {one}, {t} {y}")
        if signed and by.vmin <= -1 <= by.vmax and u.src[0].vmin == dt.min:
            minus = w.emit(f"icmp eq {t} {y}, {w.splat('-1', dt, n)}")
            y = w.emit(f"select {bt} {minus}, {t} {one}, {t} {y}")
        out = w.emit(f"{op} {t} {x}, {y}")
        if minus is not None:
            alone = w.emit(f"sub {t} {zero}, {x}") if kind is Ops.CDIV else zero
            out = w.emit(f"select {bt} {minus}, {t} {alone}, {t} {out}")
        return out if is_zero is None else w.emit(f"select {bt} {is_zero}, {t} {zero}, {t} {out}")
    return write


def _unary_float(name: str) -> Handler:
    def write(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
        t = w.type(u.dtype, n)
        return xs[0] if not u.dtype.is_float else w.intrinsic(f"llvm.{name}.{w.suffix(u.dtype, n)}", t, [(t, xs[0])])
    return write


def _reciprocal(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
    return w.emit(f"fdiv {w.type(u.dtype, n)} {w.splat(_literal(1.0, u.dtype), u.dtype, n)}, {xs[0]}")


def _negate(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
    t = w.type(u.dtype, n)
    return w.emit(f"fneg {t} {xs[0]}" if u.dtype.is_float else f"sub {t} {w.splat('0', u.dtype, n)}, {xs[0]}")


def _where(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
    t = w.type(u.dtype, n)
    return w.emit(f"select {w.type(dtypes.bool, n)} {xs[0]}, {t} {xs[1]}, {t} {xs[2]}")


def _mulacc(w: _Writer, u: UOp, xs: list[str], dt: DType, n: int) -> str:
    t = w.type(u.dtype, n)
    if u.dtype.is_float:
        return w.intrinsic(f"llvm.fma.{w.suffix(u.dtype, n)}", t, [(t, x) for x in xs])
    return w.emit(f"add {t} {w.emit(f'mul {t} {xs[0]}, {xs[1]}')}, {xs[2]}")


_ALU: dict[Ops, Handler] = {
    Ops.ADD: _binary("fadd", "add", "or"), Ops.SUB: _binary("fsub", "sub", ""), Ops.MUL: _binary("fmul", "mul", "and"),
    Ops.FDIV: _binary("fdiv", "", ""), Ops.AND: _binary("and", "and", "and"), Ops.OR: _binary("or", "or", "or"),
    Ops.XOR: _binary("xor", "xor", "xor"), Ops.CMPLT: _compare("fcmp olt", "icmp slt", "icmp ult"),
    Ops.CMPNE: _compare("fcmp une", "icmp ne", "icmp ne"), Ops.CMPEQ: _compare("fcmp oeq", "icmp eq", "icmp eq"),
    Ops.MAX: _max, Ops.SHL: _shift(Ops.SHL), Ops.SHR: _shift(Ops.SHR), Ops.CDIV: _divide(Ops.CDIV),
    Ops.CMOD: _divide(Ops.CMOD), Ops.SQRT: _unary_float("sqrt"), Ops.TRUNC: _unary_float("trunc"),
    Ops.RECIPROCAL: _reciprocal, Ops.NEG: _negate, Ops.WHERE: _where, Ops.MULACC: _mulacc,
}
_SILENT = frozenset({Ops.PARAM, Ops.NOOP, Ops.GROUP, Ops.SINK})
_STATEMENTS: dict[Ops, Callable[[_Writer, UOp], None]] = {
    Ops.CONST: _Writer.const, Ops.BUFFER: _Writer.buffer, Ops.INDEX: _Writer.place, Ops.SHRINK: _Writer.place,
    Ops.AFTER: _Writer.alias, Ops.LOAD: _Writer.load, Ops.STORE: _Writer.store, Ops.RANGE: _Writer.range,
    Ops.END: _Writer.end, Ops.IF: _Writer.begin_if, Ops.ENDIF: _Writer.end_if, Ops.BARRIER: _Writer.refuse,
    Ops.SPECIAL: _Writer.refuse, Ops.CUSTOM: _Writer.refuse, Ops.CUSTOMI: _Writer.refuse,
}


@cache
def _machine(level: Level) -> Any:
    import llvmlite.binding as llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "x86_64-unknown-linux-gnu" if level.is_x86 else "aarch64-unknown-linux-gnu"
    features = ",".join(("+" if on else "-") + name for name, on in level.changes)
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=level.name if level.is_x86 else "generic", features=features, opt=2, reloc="pic", codemodel="small")


class LLVMCompiler(Compiler):
    """LLVM IR text to flat code."""

    def __init__(self, level: Level) -> None:
        import llvmlite
        super().__init__(source_key("llvm", llvmlite.__version__, str(level)))
        self.level = level

    def _optimised(self, src: str) -> tuple[Any, Any]:
        import llvmlite.binding as llvm
        machine = _machine(self.level)
        try:
            module = llvm.parse_assembly(src)
            module.verify()
        except RuntimeError as e:
            raise CompileError(f"LLVM rejected the program: {e}\n{src}") from e
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        # a program has its vectors; LLVM 22.1 reads x[(i + c) & m] as one, as if the index did not wrap at first
        options.loop_vectorization = options.loop_interleaving = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return machine, module

    def compile(self, src: str) -> bytes:
        """The flat image of the one function in ``src``."""
        machine, module = self._optimised(src)
        return flat_image(machine.emit_object(module))

    def disassemble(self, lib: bytes) -> str:
        """A hex listing; LLVM's own listing comes from ``assembly``."""
        return lib.hex(" ", 4)

    def assembly(self, src: str) -> str:
        """What LLVM makes of ``src``, as assembly text."""
        machine, module = self._optimised(src)
        return str(machine.emit_assembly(module))
