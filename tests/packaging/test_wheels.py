"""Distributions: both wheels are built, and installed from there into clean environments; an editable tree proves
nothing."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import tinyhost

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {"tinyhost": ROOT, "tinyhost_cpu": ROOT / "tinyhost_cpu"}


def run(*command: object, **kwargs: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def build(project: Path, out: Path, kind: str) -> Path:
    """One distribution, built by the backend itself without an isolated environment."""
    run(sys.executable, "-m", "hatchling", "build", "-d", out, "-t", kind, cwd=project)
    [made] = [p for p in out.iterdir() if p.suffix == (".whl" if kind == "wheel" else ".gz")]
    return made


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build(project, tmp_path_factory.mktemp(name), "wheel") for name, project in PROJECTS.items()}


def plain_requirements(requirements: list[str] | None) -> list[str]:
    """Names of what is required without a condition."""
    return [re.split(r"[^\w-]", r)[0] for r in requirements or [] if ";" not in r]


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the core depends on, and nothing else of this environment."""
    folder = tmp_path_factory.mktemp("dependencies")
    wanted = plain_requirements(metadata.requires("tinyhost"))
    while wanted:
        dist = metadata.distribution(wanted.pop())
        for top in {f.parts[0] for f in dist.files or [] if f.parts[0] != ".."}:
            if not (folder / top).exists():
                (folder / top).symlink_to(dist.locate_file(top))
        wanted += plain_requirements(dist.requires)
    return folder


def environment(folder: Path, wheels: list[Path], dependencies: Path) -> dict[str, str]:
    """A virtual environment with the wheels installed; what runs in it sees nothing else but the dependencies."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", *wheels)
    site = run(python, "-c", "import site; print(site.getsitepackages()[0])").stdout.strip()
    Path(site, "dependencies.pth").write_text(f"{dependencies}\n")
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {**kept, "PYTHON": str(python), "CACHEDIR": str(folder / "cache")}


def ask(env: dict[str, str], code: str, *flags: str) -> "subprocess.CompletedProcess[str]":
    return run(env["PYTHON"], *flags, "-c", code, env=env, cwd="/")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path], dependencies: Path) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("core"), [wheels["tinyhost"]], dependencies)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path], dependencies: Path) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("both"), list(wheels.values()), dependencies)


# *** contents ***
def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as z:
        return set(z.namelist())


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_holds_the_whole_package(wheels: dict[str, Path], name: str):
    files, info = contents(wheels[name]), f"{name}-{tinyhost.__version__}.dist-info"
    sources = {str(p.relative_to(ROOT)) for p in (ROOT / name).rglob("*.py") if "__pycache__" not in p.parts}
    assert sources - files == set()
    assert {f"{name}/py.typed", f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"} <= files
    assert all(f.startswith((f"{name}/", info)) for f in files)
    assert not [f for f in files if f.endswith((".pyc", ".toml")) or "/tests/" in f]
    assert name != "tinyhost" or "tinyhost/plugin/known.json" in files


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_metadata(wheels: dict[str, Path], name: str):
    info = f"{name}-{tinyhost.__version__}.dist-info"
    with zipfile.ZipFile(wheels[name]) as z:
        text = z.read(f"{info}/METADATA").decode()
        points = z.read(f"{info}/entry_points.txt").decode()
    for line in (f"Version: {tinyhost.__version__}", "License-Expression: MIT", "Requires-Python: >=3.11"):
        assert f"{line}\n" in text
    if name == "tinyhost_cpu":
        assert f"Requires-Dist: tinyhost=={tinyhost.__version__}\n" in text and "CPU = tinyhost_cpu.spec:CPU" in points
    else:
        assert "tinyhost = tinyhost.cli:main" in points
        assert "PYTHON.LINEAR = tinyhost.device.builtin.spec:PYTHON_LINEAR" in points


@pytest.mark.parametrize("name", PROJECTS)
def test_source_distribution_builds_the_same_wheel(tmp_path: Path, wheels: dict[str, Path], name: str):
    source = build(PROJECTS[name], tmp_path / "sdist", "sdist")
    with tarfile.open(source) as t:
        t.extractall(tmp_path / "tree", filter="data")
    [tree] = (tmp_path / "tree").iterdir()
    assert (tree / "LICENSE").exists() and (tree / "README.md").exists() and not (tree / "tests").exists()
    again = build(tree, tmp_path / "wheel", "wheel")
    assert contents(again) == contents(wheels[name])
    with zipfile.ZipFile(again) as a, zipfile.ZipFile(wheels[name]) as b:
        assert [f for f in a.namelist() if a.read(f) != b.read(f) and not f.endswith("RECORD")] == []


# *** in clean environments ***
def test_the_core_alone_computes(core: dict[str, str]):
    done = ask(core, "from tinyhost import Tensor\nprint(Tensor([1, 2, 3]).sum().item())\nprint((Tensor([1.0]) + "
                     "1).item())")
    assert done.stdout.split() == ["6", "2.0"]
    assert done.stderr.count("using PYTHON, which is slow") == 1 and "pip install tinyhost-cpu" in done.stderr
    quiet = ask({**core, "DEV": "PYTHON"}, "from tinyhost import Tensor, Device; print(Tensor([1, 2, "
                                           "3]).sum().item(), Device.DEFAULT)", "-W", "error")
    assert quiet.stdout.split() == ["6", "PYTHON"] and quiet.stderr == ""


def test_the_core_alone_names_the_missing_package(core: dict[str, str]):
    command = [core["PYTHON"], "-c", "from tinyhost import Tensor; Tensor([1]).sum().item()"]
    done = subprocess.run(command, env={**core, "DEV": "CPU"}, cwd="/", capture_output=True, text=True)
    assert done.returncode != 0 and "the device CPU is not installed: pip install tinyhost-cpu" in done.stderr


def test_both_run_on_the_cpu(both: dict[str, str]):
    code = (
        "from tinyhost import Tensor, Device; import tinyhost, tinyhost_cpu; x = Tensor.rand(32, 32); "
        "print(abs((x @ x).sum().item() - float((x.numpy() @ x.numpy()).sum())) < 0.1, Device.DEFAULT, "
        "tinyhost.__file__, tinyhost_cpu.__file__)"
    )
    ok, device, *files = ask(both, code, "-W", "error").stdout.split()
    assert (ok, device) == ("True", "CPU") and all("site-packages" in f for f in files)


def test_training_and_files_from_wheels(both: dict[str, str], tmp_path: Path):
    code = f"""
from tinyhost import Context, Tensor, TinyJit, nn
lin = nn.Linear(4, 1)
opt = nn.optim.SGD(nn.state.get_parameters(lin), lr=0.1)
@TinyJit
def step(x, y):
    opt.zero_grad()
    loss = (lin(x) - y).square().mean().backward()
    return loss.realize(*opt.schedule_step())
with Context(TRAINING=1):
    losses = [step(Tensor.ones(8, 4).contiguous(), Tensor.zeros(8, 1).contiguous()).item() for _ in range(6)]
nn.state.safe_save(nn.state.get_state_dict(lin), {str(tmp_path / 'f')!r})
nn.state.load_state_dict(lin, nn.state.safe_load({str(tmp_path / 'f')!r}))
print(losses[-1] < losses[0] or losses[0] < 1e-9)
"""
    assert ask(both, code, "-W", "error").stdout.split() == ["True"]


def test_command_line(core: dict[str, str], both: dict[str, str]):
    script = str(Path(both["PYTHON"]).with_name("tinyhost"))
    listed = run(script, "plugins", env=both, cwd="/").stdout
    assert "tinyhost-cpu" in listed and "CPU" in listed
    assert "CPU.X86" not in run(core["PYTHON"], "-m", "tinyhost", "plugins", env=core, cwd="/").stdout


def test_type_information_is_found(both: dict[str, str]):
    code = "from importlib.resources import files; " \
           "print(*[files(p).joinpath('py.typed').is_file() for p in ('tinyhost', 'tinyhost_cpu')])"
    assert ask(both, code).stdout.split() == ["True", "True"]
