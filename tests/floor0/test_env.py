"""Context variables: read once, checked, changed for a block or a thread, never written to the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from tinyhost import env
from tinyhost.env import DEBUG, DEV, SPEC, TINYHOST_OPEN_TIMEOUT, VARIABLES, Context, ContextVar, codegen_values, getenv
from tinyhost.errors import UnknownVariable, VariableError
from tinyhost.target import Target


@pytest.fixture
def variable(monkeypatch):
    """Make a variable of a given default whose environment text is given, and forget it afterwards."""
    made = []

    def make(default, text=None, **how):
        name = f"TEST_VARIABLE_{len(made)}"
        if text is not None:
            monkeypatch.setenv(name, text)
        made.append(name)
        return ContextVar(name, default, "for tests", **how)

    yield make
    for name in made:
        VARIABLES.pop(name, None)


@pytest.mark.parametrize(
    "default, text, value",
    [(0, "3", 3), (0, "-1", -1), (0, "0x10", 16), (1.5, "2", 2.0), ("", "abc", "abc"), (7, None, 7)],
)
def test_read_from_the_environment(variable, default, text, value):
    assert variable(default, text).value == value


@pytest.mark.parametrize(
    "default, text, message, how",
    [
        (0, "abc", "TEST_VARIABLE_0=abc: expected an integer", {}),
        (0, "", "TEST_VARIABLE_0=: expected an integer", {}),
        (1.0, "x", "TEST_VARIABLE_0=x: expected a number", {}),
        (0, "7", "TEST_VARIABLE_0=7: expected one of 0, 1, 2 (for tests)", {"choices": (0, 1, 2)}),
        (0, "-1", "TEST_VARIABLE_0=-1: expected an integer of at least 0 (for tests)", {"minimum": 0}),
    ],
)
def test_malformed_environment(variable, default, text, message, how):
    with pytest.raises(VariableError) as e:
        variable(default, text, **how)
    assert str(e.value) == message and isinstance(e.value, ValueError)


def test_malformed_environment_in_a_fresh_process():
    done = subprocess.run(
        [sys.executable, "-c", "import tinyhost.env"],
        env={**os.environ, "DEBUG": "abc"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "DEBUG=abc: expected an integer" in done.stderr


def test_defined_twice(variable):
    made = variable(0)
    with pytest.raises(ValueError, match="TEST_VARIABLE_0 is defined twice"):
        ContextVar(made.name, 0)


def test_comparisons():
    with Context(DEBUG=2):
        assert (
            DEBUG
            and int(DEBUG) == 2
            and DEBUG == 2
            and DEBUG != 1
            and DEBUG >= 2
            and DEBUG > 1
            and DEBUG < 3
            and DEBUG <= 2
        )
        assert range(5)[DEBUG] == 2 and repr(DEBUG) == "ContextVar(DEBUG=2)" and DEBUG.key == "DEBUG"
    with Context(DEBUG=0):
        assert not DEBUG


def test_nested_contexts_and_exceptions():
    before = DEBUG.value
    with pytest.raises(KeyError), Context(DEBUG=3):
        with Context(DEBUG=4, SPEC=2):
            assert (DEBUG.value, SPEC.value) == (4, 2)
        assert DEBUG.value == 3
        raise KeyError
    assert DEBUG.value == before


def test_decorator_is_reentrant():
    @Context(DEBUG=5)
    def descend(n):
        return DEBUG.value if n == 0 else descend(n - 1)

    assert descend(3) == 5 and DEBUG.value != 5


def test_one_context_used_again():
    context = Context(DEBUG=6)
    before = DEBUG.value
    with context, context:
        assert DEBUG.value == 6
    assert DEBUG.value == before


def test_threads_do_not_see_each_other():
    seen = []
    with Context(DEBUG=7):
        thread = threading.Thread(target=lambda: seen.append(DEBUG.value))
        thread.start()
        thread.join()
    assert seen == [DEBUG.initial]


def test_unknown_variable():
    with pytest.raises(UnknownVariable) as e:
        Context(DEBIG=1)
    assert str(e.value) == "no context variable is named 'DEBIG'; did you mean DEBUG?" and isinstance(e.value, KeyError)
    with pytest.raises(UnknownVariable, match="tinyhost.env lists all of them"):
        Context(XQZWV=1)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"DEBUG": "abc"}, "DEBUG=abc: expected an integer"),
        ({"DEBUG": 1.5}, "DEBUG=1.5"),
        ({"SPEC": 9}, "SPEC=9: expected one of 0, 1, 2"),
        ({"CC": 1}, "CC=1: expected text"),
        ({"DEBUG": None}, "DEBUG=None"),
    ],
)
def test_wrong_values(values, message):
    with pytest.raises(VariableError) as e:
        Context(**values)
    assert message in str(e.value)


def test_accepted_conversions():
    with Context(DEBUG=True, SPEC="2", TINYHOST_OPEN_TIMEOUT=3):
        assert DEBUG.value == 1 and SPEC.value == 2 and TINYHOST_OPEN_TIMEOUT.value == 3.0


def test_dev():
    with Context(DEV="kfd:0+amd:llvm:gfx1100;cpu:x86"):
        assert (DEV.device, DEV.renderer, DEV.arch, DEV.interface, DEV.indices) == (
            "AMD",
            "LLVM",
            "gfx1100",
            "kfd",
            "0",
        )
        assert repr(DEV.target("cpu", arch="v3")) == "CPU:X86:v3" and repr(DEV.target("nv", renderer="PTX")) == "NV:PTX"
        assert str(DEV) == "kfd:0+AMD:LLVM:gfx1100;CPU:X86"
    with Context(DEV=":llvm"):
        assert repr(DEV.target("cpu")) == "CPU:LLVM" and DEV.device == ""
    with Context(DEV=Target("CPU")):
        assert DEV.value == [Target("CPU")]
    with Context(DEV=[Target("CPU"), "nv?"]):
        assert str(DEV) == "CPU;NV?"
    with Context(DEV=""):
        assert DEV.value == [] and not DEV and DEV.device == ""
    with pytest.raises(ValueError, match="too many '\\+' in target string"):
        Context(DEV="A+B+C")
    with pytest.raises(VariableError, match="DEV=3: expected a DEV string, a Target or a list of them"):
        Context(DEV=3)


def test_codegen_values_are_those_off_default():
    with Context(NOOPT=0, DEBUG=2, BEAM=0, CC="", NUM_CPU_THREADS=0, SPEC=2):
        assert codegen_values() == ()
        with Context(NOOPT=1, BEAM=2):
            assert codegen_values() == (("BEAM", 2), ("NOOPT", 1))


def test_snapshot_is_plain_and_restores():
    with Context(DEV="cpu:x86", DEBUG=2 + DEBUG.initial):
        state = json.loads(json.dumps(env.snapshot()))
    assert state["DEV"] == "CPU:X86" and state["DEBUG"] == 2 + DEBUG.initial
    with Context(DEV="", DEBUG=DEBUG.initial):
        env.restore({**state, "DEFINED_NOWHERE": 1})
        assert DEV.device == "CPU" and DEBUG.value == 2 + DEBUG.initial
        DEV.value, DEBUG.value = [], DEBUG.initial


def test_getenv(monkeypatch):
    monkeypatch.setenv("SOME_SETTING", "4")
    assert getenv("SOME_SETTING") == 4 and getenv("SOME_SETTING", "") == "4" and getenv("SOME_OTHER", 1.5) == 1.5
    monkeypatch.setenv("SOME_SETTING", "four")
    with pytest.raises(ValueError, match="SOME_SETTING=four: expected an integer"):
        getenv("SOME_SETTING")


def test_every_row_has_a_doc():
    assert all(v.doc for v in VARIABLES.values())
