"""Schedules and programs on disk: a second process makes nothing anew, and a cache that cannot be used is one
warning."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhost import Context, GlobalCounters, Tensor
from tinyhost.device.registry import Device
from tinyhost.engine import diskcache, plan, program, schedule
from tinyhost.errors import CacheWarning
from tinyhost.plugin.hooks import hooks

TRAINING_STEP = """
import json, sys
import numpy as np
from tinyhost import Context, Tensor, nn
from tinyhost.engine import diskcache, program, schedule
Tensor.manual_seed(1)
conv, norm, lin = nn.Conv2d(1, 4, 3), nn.BatchNorm(4), nn.Linear(4 * 9, 3)
opt = nn.optim.Adam(nn.state.get_parameters([conv, norm, lin]), lr=0.01)
rng = np.random.default_rng(0)
losses = []
with Context(TRAINING=1):
    for _ in range(2):
        x = Tensor(rng.standard_normal((4, 1, 8, 8)).astype(np.float32))
        y = Tensor(rng.integers(0, 3, 4).astype(np.int32))
        opt.zero_grad()
        loss = lin(norm(conv(x).relu()).max_pool2d().flatten(1)).sparse_categorical_crossentropy(y).backward()
        opt.step()
        losses.append(loss.item())
print(json.dumps({"losses": losses, "compiled": program.counters.compiled, "scheduled": schedule.counters.scheduled,
                  "hits": diskcache.counters.hits, "misses": diskcache.counters.misses,
                  "writes": diskcache.counters.writes}))
"""
# the same, and the warnings it gave
WITH_WARNINGS = (
    "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
    + "".join(f"    {line}\n" for line in TRAINING_STEP.splitlines())
    + "print(json.dumps({'losses': losses, 'compiled': program.counters.compiled, 'warnings': [str(w.message) for w "
      "in seen]}))\n"
)


def child(folder: Path, code: str = TRAINING_STEP, **env: str) -> dict[str, Any]:
    full = {**os.environ, "CACHEDIR": str(folder), "CACHELEVEL": "2", **env}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=full, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


def test_a_second_process_makes_nothing_anew(folder: Path):
    first, second = child(folder), child(folder)
    assert first["compiled"] > 5 and first["scheduled"] >= 2 and first["writes"]["program"] == first["compiled"]
    assert second["compiled"] == second["scheduled"] == 0 and not second["misses"] and not second["writes"]
    assert second["losses"] == first["losses"]
    programs_only = child(folder, CACHELEVEL="1")
    assert programs_only["compiled"] == 0 and programs_only["scheduled"] == first["scheduled"]
    nothing = child(folder, CACHELEVEL="0")
    assert nothing["compiled"] == first["compiled"] and not nothing["hits"] and nothing["losses"] == first["losses"]


WARM_MODULES = """
import json, sys
import numpy as np
from tinyhost import Tensor, nn
from tinyhost.engine import diskcache, program
layers = [nn.Linear(8, 8 + i) if i == 0 else nn.Linear(7 + i, 8 + i) for i in range(4)]
x = Tensor(np.ones((2, 8), np.float32))
for layer in layers:
    x = layer(x).relu()
x.realize()
loaded = [m for m in sys.modules if m.startswith(("tinyhost.codegen.", "tinyhost.schedule."))]
print(json.dumps({"compiled": program.counters.compiled, "hits": diskcache.counters.hits, "loaded": loaded}))
"""


def test_a_warm_process_reads_two_files_and_loads_no_compiler(folder: Path):
    cold, warm = child(folder, WARM_MODULES), child(folder, WARM_MODULES)
    assert cold["compiled"] >= program.SEVERAL and "tinyhost.codegen.program" in cold["loaded"]
    assert warm["compiled"] == 0 and warm["hits"] == {"schedule": 1, "programs": 1}
    assert not {"tinyhost.codegen.program", "tinyhost.codegen.expand", "tinyhost.schedule.driver",
                "tinyhost.schedule.fuse"} & set(warm["loaded"])


def test_settings_that_change_code_have_entries_of_their_own(folder: Path):
    first = child(folder)
    other = child(folder, NOOPT="1")
    assert other["compiled"] > 5 and child(folder, NOOPT="1")["compiled"] == 0
    assert child(folder)["compiled"] == 0 and np.allclose(first["losses"], other["losses"], rtol=1e-4)


def test_damaged_entries_are_made_again(folder: Path):
    first = child(folder)
    entries = sorted(p for p in folder.rglob("*") if p.is_file())
    together = [p for p in entries if p.relative_to(folder).parts[0] == "programs"]  # all kernels of a schedule
    damaged = [*together, *[p for p in entries if p not in together][::2]]
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)
    again = child(folder, WITH_WARNINGS)
    assert again["losses"] == first["losses"] and 0 < again["compiled"] < first["compiled"]
    kinds = {p.relative_to(folder).parts[0] for p in damaged}
    assert kinds == {"program", "programs", "schedule"}
    assert len(again["warnings"]) == len(kinds) and all("is damaged" in w for w in again["warnings"])  # one for each
    last = child(folder)
    assert last["compiled"] == last["scheduled"] == 0


def test_a_folder_that_cannot_be_written_is_one_warning(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    done = child(tmp_path / "file" / "cache", WITH_WARNINGS)
    assert len(done["warnings"]) == 1 and "no disk cache at" in done["warnings"][0] and len(done["losses"]) == 2


def test_two_processes_at_once(folder: Path):
    env = {**os.environ, "CACHEDIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", TRAINING_STEP]
    children = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outs = [json.loads(c.communicate(timeout=120)[0]) for c in children]
    assert outs[0]["losses"] == outs[1]["losses"] and child(folder)["compiled"] == 0
    assert not list(folder.rglob(".new-*"))


# *** in one process ***
@pytest.fixture
def empty(folder: Path):
    """No cached schedule, plan or program, and a disk cache of its own."""
    for part in (schedule, plan, program, diskcache):
        part.reset()
    with Context(CACHEDIR=str(folder)):
        yield folder


def test_equal_graphs_over_other_buffers_share_a_schedule(empty: Path):
    for i in range(4):
        x, y = Tensor(np.full((3, 4), i, np.float32)), Tensor(np.ones((4, 2), np.float32))
        assert ((x @ y) + i * 0).sum().item() == 24 * i
    assert schedule.counters.scheduled <= 2 and schedule.counters.reused >= 3


def test_kernels_that_differ_in_buffers_only_are_one_program(empty: Path):
    xs = [Tensor(np.full(16, i, np.float32)).realize() for i in range(4)]
    before = program.counters.compiled
    Tensor.realize(*[(x.exp() + 1).sin() for x in xs])
    assert program.counters.compiled == before + 1


def test_caches_can_be_switched_off(empty: Path):
    x = Tensor(np.ones(5, np.float32)).realize()
    with Context(SCACHE=0):
        before = schedule.counters.scheduled
        for _ in range(3):
            (x * 3).realize()
        assert schedule.counters.scheduled == before + 3
    with Context(CCACHE=0, CACHELEVEL=1):
        written = diskcache.counters.writes.get("program", 0)
        (x * 7.5 - 2).realize()
    assert diskcache.counters.writes.get("program", 0) == written


def test_an_entry_that_is_whole_but_of_another_kind_is_made_again(empty: Path, monkeypatch: pytest.MonkeyPatch):
    x = Tensor(np.ones(5, np.float32)).realize()
    (x * 2.5).realize()
    kept = diskcache.get

    def other(kind: str, key: str, level: int = 1) -> bytes | None:
        return None if kept(kind, key, level) is None else b"[]"
    monkeypatch.setattr(diskcache, "get", other)
    schedule.reset(), plan.reset(), program.reset()
    with pytest.warns(CacheWarning, match="a disk cache entry of .* is damaged"):
        assert (x * 2.5).tolist() == [2.5] * 5


def test_plugins_salt_the_key_and_hear_of_kernels(empty: Path, monkeypatch: pytest.MonkeyPatch):
    heard, salt = [], ["a"]

    def call(hook: str, **arguments: Any) -> list[Any]:
        if hook == "tinyhost_kernel_compiled":
            heard.append(arguments["name"])
            assert arguments["source"] and arguments["binary"] and arguments["seconds"] > 0
        return salt if hook == "tinyhost_cache_salt" else []
    monkeypatch.setattr(hooks(), "call", call)
    x = Tensor(np.ones(6, np.float32)).realize()
    heard.clear()
    for salt[0], new in (("a", 1), ("b", 1), ("a", 0)):
        program._kernels.clear()
        plan.reset()
        (x * 9.5).realize()
        assert len(heard) == new, salt
        heard.clear()


def test_children_are_told_the_device():
    assert Device.child_state() is not None


def test_keys_do_not_depend_on_the_process():
    code = (
        "import numpy as np, hashlib\nfrom tinyhost import Tensor, nn\nfrom tinyhost.engine.effects import Effects\n"
        "x = Tensor(np.ones((2, 3, 8, 8), np.float32)); e = Effects(); e.add((nn.Conv2d(3, 4, "
        "3)(x).relu().sum(1).softmax()).uop)\n"
        "print('\"' + e.sink.key.hex() + '\"')"
    )
    folder = Path(os.environ["CACHEDIR"])
    keys = {child(folder, code, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")}
    assert len(keys) == 1


def test_reset_forgets_all_of_it(empty: Path):
    import tinyhost
    x = Tensor(np.ones(4, np.float32)).realize()
    y = (x * 3 + 1).realize()
    assert schedule.counters.scheduled and program.counters.compiled
    tinyhost.reset()
    assert not schedule.counters.scheduled and not program.counters.compiled and not diskcache.counters.hits
    assert GlobalCounters.kernel_count == 0 and y.tolist() == [4] * 4
    assert (x * 3 + 1).tolist() == [4] * 4 and schedule.counters.scheduled == 0  # found on disk
