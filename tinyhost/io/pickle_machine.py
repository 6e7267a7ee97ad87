"""Reads pickles without running anything: a stack machine whose only calls are to the functions of a given table.

Takes bytes through a cursor and a table from global names to makers; gives plain values and what the makers return. A
name that is not in the table is an error, so nothing is imported, and no attribute of any object is read or set.
Lengths are checked against the bytes that are left, keys of dicts are plain, and every opcode is charged with the
memory it may take: twice the size of the file and ``MAX_COST`` in all. (Opcodes: the module pickletools of the Python
library, protocols 0 to 5.)
"""
from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tinyhost.io.source import Cursor

__all__ = ["PLAIN_KEYS", "Global", "PickleMachine", "Refused", "Stateful"]

MAX_COST = 1 << 28  # bytes that a pickle may take in memory beyond twice its file
_MARK: Any = type("Mark", (), {})()
PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


@dataclass(frozen=True)
class Global:
    """An allowed function or class: ``make`` is what a call of it does, None if it is only mentioned."""

    name: str
    make: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Refused:
    """A name that is known and not read, and why."""

    reason: str


class Stateful:
    """An object that a maker made and that takes state afterwards."""

    def set_state(self, state: Any) -> None:
        """Raises:
            ValueError: the state is not what is expected.
        """
        raise ValueError(f"a {type(self).__name__} takes no state")


class PickleMachine:
    """One pickle: ``load`` reads it and leaves the cursor behind it.

    Args:
        cursor: where the pickle begins.
        globals: what each "module.name" stands for: a Global, or a plain value.
        persistent: the object of a persistent id.
    """

    def __init__(self, cursor: Cursor, globals: Mapping[str, Any], persistent: Callable[[Any], Any]) -> None:
        self.cursor, self.globals, self.persistent = cursor, globals, persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.left = MAX_COST + 2 * cursor.source.size
        self.opcode_at = cursor.at

    def error(self, text: str) -> ValueError:
        """A ValueError that names file and position."""
        return self.cursor.source.error(f"pickle at byte {self.opcode_at}: {text}")

    def load(self) -> Any:
        """The object.

        Raises:
            ValueError: the pickle is truncated or malformed, or names a global outside the table.
        """
        take, opcodes, costs = self.cursor.take, OPCODES, _COSTS
        while True:
            self.opcode_at = self.cursor.at
            code = take(1, "a pickle")
            self.spend(costs.get(code, 32))
            if code == b".":
                value = self.pop()
                if self.stack or self.marks:
                    raise self.error(f"it ends with {len(self.stack)} values left over: damaged")
                return self.plain(value)
            run = opcodes.get(code)
            if run is None:
                raise self.error(f"opcode {code!r} is not read here: "
                                 f"{_UNREAD.get(code, 'there is none of that number, damaged')}")
            run(self)

    def spend(self, size: int) -> None:
        """Charge ``size`` bytes.

        Raises:
            ValueError: the pickle takes more than it may.
        """
        self.left -= size
        if self.left < 0:
            raise self.error(f"its objects take more than {MAX_COST} bytes and twice the file: too large for a "
                             "checkpoint")

    # *** stack ***
    def pop(self) -> Any:
        """The value on top."""
        if not self.stack or (self.marks and self.marks[-1] == len(self.stack)):
            raise self.error("a value is needed where there is none: damaged")
        return self.stack.pop()

    def pop_mark(self) -> list[Any]:
        """The values above the last mark."""
        if not self.marks:
            raise self.error("a mark is needed where there is none: damaged")
        at = self.marks.pop()
        values = self.stack[at:]
        del self.stack[at:]
        return values

    def top(self, kind: type, what: str) -> Any:
        """The value on top, which must be of one kind."""
        value = self.pop()
        self.stack.append(value)
        if not isinstance(value, kind):
            raise self.error(f"{what} into a {type(value).__name__}: only a {kind.__name__} takes that, damaged or not "
                             "a checkpoint")
        return value

    def plain(self, value: Any) -> Any:
        """The value, which must not be a function or class."""
        if isinstance(value, Global):
            raise self.error(f"the global {value.name} stands where a value is expected: it can only be called")
        return value

    def find(self, module: str, name: str) -> Any:
        """The table's entry for a name."""
        full = f"{module}.{name}"
        if (found := self.globals.get(full)) is None:
            raise self.error(f"the global {full[:200]!r} is not allowed: code of a checkpoint is never run, only "
                             "tensors and plain containers, numbers and text are read. Save a state dict instead of "
                             "the object")
        if isinstance(found, Refused):
            raise self.error(f"the global {full!r} is not allowed: {found.reason}")
        return found

    def call(self, function: Any, args: Any) -> Any:
        """What the table makes of a call."""
        if not isinstance(function, Global) or function.make is None:
            name = function.name if isinstance(function, Global) else f"a {type(function).__name__}"
            raise self.error(f"{name} is called, it is no function that this reader knows")
        if not isinstance(args, tuple):
            raise self.error(f"{function.name} is called with a {type(args).__name__}, not a tuple: damaged")
        try:
            return function.make(*args)
        except (TypeError, ValueError, OverflowError) as e:
            raise self.error(f"{function.name}: {e}") from e

    def key(self, key: Any) -> Any:
        """A key of a dict or item of a set: plain, so that hashing it is cheap and runs nothing."""
        if type(key) in PLAIN_KEYS or (type(key) is tuple and all(type(k) in PLAIN_KEYS for k in key)):
            return key
        raise self.error(f"a {type(key).__name__} as the key of a dict: text, numbers, and tuples of these can be keys")

    def remember(self, index: int) -> None:
        """Put the value on top into the memo."""
        value = self.pop()
        self.stack.append(value)
        self.memo[index] = value

    def recall(self, index: int) -> None:
        """Push a value of the memo."""
        if index not in self.memo:
            raise self.error(f"memo {index} is read before it is written: damaged")
        self.stack.append(self.memo[index])

    # *** containers ***
    def set_items(self, pairs: list[Any]) -> None:
        """Keys and values in turn into the dict on top."""
        if len(pairs) % 2:
            raise self.error("a key without a value: damaged")
        target = self.top(dict, "items are put")
        for k, v in zip(pairs[::2], pairs[1::2]):
            target[self.key(k)] = self.plain(v)

    def append(self, values: list[Any]) -> None:
        """Values onto the list on top."""
        self.top(list, "values are appended").extend(self.plain(v) for v in values)

    def add(self, values: list[Any]) -> None:
        """Values into the set on top."""
        self.top(set, "values are added").update(self.key(v) for v in values)

    def push_dict(self, pairs: list[Any]) -> None:
        """A new dict of keys and values in turn."""
        self.stack.append({})
        self.set_items(pairs)

    def build(self) -> None:
        """State for the object below: attributes of an OrderedDict (as ``_metadata`` of a state dict) are dropped."""
        state, target = self.pop(), self.pop()
        self.stack.append(target)
        if isinstance(target, Stateful):
            try:
                target.set_state(state)
            except ValueError as e:
                raise self.error(str(e)) from e
        elif not isinstance(target, OrderedDict):
            raise self.error(f"attributes of a {type(target).__name__} are set: only plain values can be read")

    # *** text ***
    def text(self, size: int) -> str:
        """Text of ``size`` bytes in UTF-8."""
        raw = self.cursor.take(size, "text of a pickle")
        self.spend(4 * size)  # one wide character makes all of them wide
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as e:
            raise self.error(f"text that is no UTF-8: {e}") from e

    def line(self) -> str:
        """Text up to the end of the line, as protocol 0 writes numbers and names."""
        raw = self.cursor.line("a line of a pickle")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as e:
            raise self.error(f"text that is no UTF-8: {e}") from e

    def legacy_text(self, size: int) -> str | bytes:
        """A string of Python 2: text if it is UTF-8, bytes if not."""
        raw = self.cursor.take(size, "a string of a pickle")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw

    def number(self, convert: Callable[[str], Any]) -> Any:
        """A number written as text."""
        text = self.line()
        try:
            return convert(text)
        except ValueError as e:
            raise self.error(f"{text[:40]!r} is no number: damaged") from e

    def unsigned(self, size: int) -> int:
        """A length or index of ``size`` bytes."""
        return self.cursor.integer(size, "a number of a pickle")

    def signed(self, size: int) -> int:
        """A two's complement number of ``size`` bytes."""
        return self.cursor.integer(size, "a number of a pickle", signed=True)

    def real(self) -> float:
        """A double, most significant byte first."""
        return float(struct.unpack(">d", self.cursor.take(8, "a number of a pickle"))[0])

    def skip_protocol(self) -> None:
        """The protocol number."""
        if (version := self.unsigned(1)) > 5:
            raise self.error(f"protocol {version}: 0 to 5 can be read")

    def skip_frame(self) -> None:
        """The length of a frame; what is in it is read like the rest."""
        if (size := self.unsigned(8)) > self.cursor.left:
            raise self.error(f"a frame of {size} bytes, {self.cursor.left} are left: truncated or damaged")

    def named(self) -> Any:
        """A global written as two lines."""
        module, name = self.line(), self.line()
        return self.find(module, name)

    def stacked_name(self) -> Any:
        """A global whose names are on the stack."""
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise self.error("a global whose name is no text: damaged")
        return self.find(module, name)

    def called(self) -> Any:
        """The call of what lies below the arguments."""
        args = self.pop()
        return self.call(self.pop(), args)

    def identified(self, key: Any) -> Any:
        """The object of a persistent id."""
        try:
            return self.persistent(key)
        except (TypeError, ValueError, OverflowError) as e:
            raise self.error(str(e)) from e

    def tuple_of(self, n: int) -> tuple[Any, ...]:
        """The top ``n`` values."""
        return tuple(reversed([self.pop() for _ in range(n)]))


def _decimal(text: str) -> Any:
    return {"00": False, "01": True}[text] if text in ("00", "01") else int(text)


def _mark(m: PickleMachine) -> None:
    m.marks.append(len(m.stack))


def _dup(m: PickleMachine) -> None:
    m.stack.extend([m.pop()] * 2)


def _pop(m: PickleMachine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.pop()


def _pop_mark(m: PickleMachine) -> None:
    m.pop_mark()


def _setitem(m: PickleMachine) -> None:
    value, key = m.pop(), m.pop()
    m.set_items([key, value])


def _pushes(make: Callable[[PickleMachine], Any]) -> Callable[[PickleMachine], None]:
    def run(m: PickleMachine) -> None:
        m.stack.append(make(m))
    return run


OPCODES: dict[bytes, Callable[[PickleMachine], None]] = {
    b"\x80": lambda m: m.skip_protocol(),                                         # PROTO
    b"\x95": lambda m: m.skip_frame(),                                            # FRAME
    b"(": _mark, b"0": _pop, b"1": _pop_mark, b"2": _dup,
    # values
    b"N": _pushes(lambda m: None), b"\x88": _pushes(lambda m: True), b"\x89": _pushes(lambda m: False),
    b"I": _pushes(lambda m: m.number(_decimal)),                                  # INT
    b"L": _pushes(lambda m: m.number(lambda t: int(t.removesuffix("L")))),        # LONG
    b"F": _pushes(lambda m: m.number(float)),                                     # FLOAT
    b"J": _pushes(lambda m: m.signed(4)), b"K": _pushes(lambda m: m.unsigned(1)),
    b"M": _pushes(lambda m: m.unsigned(2)),
    b"\x8a": _pushes(lambda m: m.signed(m.unsigned(1))), b"\x8b": _pushes(lambda m: m.signed(m.unsigned(4))),
    b"G": _pushes(lambda m: m.real()),
    # text and bytes
    b"X": _pushes(lambda m: m.text(m.unsigned(4))), b"\x8c": _pushes(lambda m: m.text(m.unsigned(1))),
    b"\x8d": _pushes(lambda m: m.text(m.unsigned(8))), b"V": _pushes(lambda m: m.line()),
    b"T": _pushes(lambda m: m.legacy_text(m.unsigned(4))), b"U": _pushes(lambda m: m.legacy_text(m.unsigned(1))),
    b"B": _pushes(lambda m: m.cursor.take(m.unsigned(4), "bytes of a pickle")),
    b"C": _pushes(lambda m: m.cursor.take(m.unsigned(1), "bytes of a pickle")),
    b"\x8e": _pushes(lambda m: m.cursor.take(m.unsigned(8), "bytes of a pickle")),
    b"\x96": _pushes(lambda m: bytearray(m.cursor.take(m.unsigned(8), "bytes of a pickle"))),
    # containers
    b")": _pushes(lambda m: ()), b"]": _pushes(lambda m: []), b"}": _pushes(lambda m: {}),
    b"\x8f": _pushes(lambda m: set()),
    b"t": _pushes(lambda m: tuple(m.pop_mark())),
    b"\x85": _pushes(lambda m: m.tuple_of(1)), b"\x86": _pushes(lambda m: m.tuple_of(2)),
    b"\x87": _pushes(lambda m: m.tuple_of(3)),
    b"l": _pushes(lambda m: [m.plain(v) for v in m.pop_mark()]), b"d": lambda m: m.push_dict(m.pop_mark()),
    b"\x91": _pushes(lambda m: frozenset(m.key(v) for v in m.pop_mark())),
    b"a": lambda m: m.append([m.pop()]), b"e": lambda m: m.append(m.pop_mark()),
    b"s": _setitem, b"u": lambda m: m.set_items(m.pop_mark()), b"\x90": lambda m: m.add(m.pop_mark()),
    # memo
    b"p": lambda m: m.remember(m.number(int)), b"q": lambda m: m.remember(m.unsigned(1)),
    b"r": lambda m: m.remember(m.unsigned(4)),
    b"\x94": lambda m: m.remember(len(m.memo)),
    b"g": lambda m: m.recall(m.number(int)), b"h": lambda m: m.recall(m.unsigned(1)),
    b"j": lambda m: m.recall(m.unsigned(4)),
    # names and calls
    b"c": _pushes(lambda m: m.named()), b"\x93": _pushes(lambda m: m.stacked_name()),
    b"R": _pushes(lambda m: m.called()), b"\x81": _pushes(lambda m: m.called()), b"b": lambda m: m.build(),
    b"Q": _pushes(lambda m: m.identified(m.pop())), b"P": _pushes(lambda m: m.identified(m.line())),
}
# bytes that what an opcode makes takes in memory, some 32 for the others
_COSTS = {b"]": 96, b"}": 96, b"l": 96, b"d": 96, b"\x8f": 256, b"\x91": 256, b"t": 80, b"\x85": 80, b"\x86": 80,
          b"\x87": 80, b"q": 112, b"r": 112, b"p": 112, b"\x94": 112, b"X": 96, b"\x8c": 96, b"\x8d": 96, b"V": 96,
          b"B": 64, b"C": 64, b"\x8e": 64, b"\x96": 96, b"Q": 256, b"P": 256, b"R": 3072, b"\x81": 512}
_UNREAD = {
    b"i": "it makes instances of old classes", b"o": "it makes instances of old classes",
    b"S": "a quoted string of protocol 0, save with protocol 2",
    b"\x82": "it names code of a registry", b"\x83": "it names code of a registry",
    b"\x84": "it names code of a registry",
    b"\x92": "it calls a class with keywords",
    b"\x97": "its buffers lie outside the file", b"\x98": "its buffers lie outside the file"}
