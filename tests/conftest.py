"""Every test gets a disk cache of its own, checks graphs between stages, and leaves context variables as they were."""
from __future__ import annotations

import os
import signal
from pathlib import Path

os.environ.setdefault("SPEC", "1")

import pytest

from tests.resume import Resume
from tinyhost.env import CACHEDIR


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--resume FILE``: go on with an interrupted run."""
    parser.addoption("--resume", type=Path, help="leave out tests that passed in an earlier run of the same code")


def pytest_configure(config: pytest.Config) -> None:
    """Load what the options ask for."""
    # a shell without job control ignores Ctrl-C for its background jobs, and so would the programs that tests interrupt
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if path := config.getoption("--resume"):
        config.pluginmanager.register(Resume(path))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """An empty disk cache for this run."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    os.environ["CACHEDIR"] = str(folder)  # what child processes see
    CACHEDIR.value = str(folder)
    yield folder
    os.environ.pop("CACHEDIR", None)
