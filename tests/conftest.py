"""Every test gets a disk cache of its own, checks graphs between stages, and leaves context variables as they were."""
from __future__ import annotations

import os

os.environ.setdefault("SPEC", "1")

import pytest

from tinyhost.env import CACHEDIR


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """An empty disk cache for this run."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    os.environ["CACHEDIR"] = str(folder)  # what child processes see
    CACHEDIR.value = str(folder)
    yield folder
    os.environ.pop("CACHEDIR", None)
