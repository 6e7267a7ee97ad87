"""What `import tinyhost` loads: the tensor syntax, and nothing that runs, compiles or opens."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest

# packages whose modules a program pays for at the first realization, not at import
LATER = (
    "tinyhost.schedule",
    "tinyhost.codegen",
    "tinyhost.engine",
    "tinyhost.renderer",
    "tinyhost.realization",
    "tinyhost.plugin",
    "tinyhost.device.base",
    "tinyhost.device.opening",
    "tinyhost.device.selection",
    "tinyhost.uop.rules",
    "tinyhost.uop.spec",
    "tinyhost.nn",
    "tinyhost.jit",
    "tinyhost.cli",
    "tinyhost_",
    "pluggy",
    "packaging",
    "importlib.metadata",
    "importlib_metadata",
    "email",
    "hashlib",
    "subprocess",
    "socket",
    "logging",
    "json",
    "pathlib",
    "tempfile",
    "concurrent",
    "asyncio",
    "llvmlite",
    "torch",
)


def modules(code: str) -> set[str]:
    """Modules that ``code`` adds in a fresh process to those of numpy."""
    program = f"import sys, numpy; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def late(found: set[str]) -> list[str]:
    return sorted(m for m in found if any(m == p or m.startswith(p if p.endswith("_") else p + ".") for p in LATER))


@pytest.mark.parametrize(
    "code",
    [
        "import tinyhost",
        "from tinyhost import Tensor",
        "from tinyhost import Tensor, Device, dtypes, Context, getenv",
        "from tinyhost import UOp, Variable, GlobalCounters",
    ],
)
def test_import_loads_no_machinery(code: str):
    assert late(modules(code)) == []


def test_building_graphs_loads_no_machinery():
    code = "from tinyhost import Tensor, dtypes; x = Tensor([1.0, 2.0], device='NPY'); " \
           "y = (x.reshape(1, 2) @ x.reshape(2, 1)).exp().sum(); " \
           "z = x[0].cast(dtypes.int32) + 1; repr(z); y.shape"
    heavy = "tinyhost.engine", "tinyhost.codegen", "tinyhost.schedule", "tinyhost_"
    assert [m for m in late(modules(code)) if m.startswith(heavy)] == []


def test_import_runs_no_rules_and_opens_nothing():
    code = "import sys; from tinyhost import Tensor, Device; assert not Device._opened_devices; " \
           "from tinyhost.uop import node; assert node.interned_count() < 20, node.interned_count(); print('ok')"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


def test_import_reads_no_variable_but_those_of_the_table():
    code = (
        "import os, json\nread = set()\n"
        "class Env(type(os.environ)):\n    def get(self, k, d=None):\n        read.add(k)\n        return "
        "super().get(k, d)\n"
        "os.environ.__class__ = Env\nfrom tinyhost import Tensor\nfrom tinyhost.env import VARIABLES\n"
        "print(json.dumps(sorted(k for k in read - set(VARIABLES) if not k.startswith(('PYTHON', 'XDG', 'HOME', "
        "'OPENBLAS', 'NPY', 'NUMPY', 'OMP')))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_device_is_loaded_when_a_value_is_asked_for():
    found = modules("from tinyhost import Tensor; Tensor([1, 2]).sum().item()")
    assert {"tinyhost.engine.realize", "tinyhost.schedule.driver"} <= found and "pluggy" not in found


def test_public_names():
    import tinyhost
    for name in tinyhost.__all__:
        assert getattr(tinyhost, name) is not None and name in dir(tinyhost)
    with pytest.raises(AttributeError, match="module 'tinyhost' has no attribute 'nothing'"):
        tinyhost.nothing  # noqa: B018
