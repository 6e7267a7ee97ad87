"""What importing costs: specs and the plugin API are light, and asking for one backend imports no other."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest

from tinyhost.plugin import v1
from tinyhost.plugin.catalog import catalog
from tinyhost.plugin.metadata import DEVICES, RENDERERS

HEAVY = [
    "numpy",
    "pluggy",
    "packaging",
    "importlib.metadata",
    "subprocess",
    "ctypes",
    "asyncio",
    "tinyhost.uop",
    "tinyhost.dtype",
    "tinyhost.device",
    "tinyhost.renderer",
    "tinyhost.codegen",
    "tinyhost.schedule",
    "tinyhost.tensor",
]


def modules_after(code):
    done = subprocess.run(
        [sys.executable, "-c", code + "; import json, sys; print(json.dumps(list(sys.modules)))"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(done.stdout))


def test_plugin_api_is_light():
    assert not modules_after("import tinyhost.plugin.v1") & set(HEAVY)


def test_spec_modules_are_light():
    backends = {r.entry.module for r in catalog().records if not r.entry.provider.is_core}
    for module in backends:
        assert not modules_after(f"import {module}") & set(HEAVY), module


def test_catalog_is_light():
    loaded = modules_after("from tinyhost.plugin.catalog import catalog; catalog()")
    assert not loaded & (set(HEAVY) - {"importlib.metadata"})


def test_asking_for_one_device_imports_no_other(site):
    site.device("ACME")
    site.device("OTHER")
    catalog().load(catalog().device("ACME"))
    assert "acme_acme.spec" in sys.modules and "acme_other" not in sys.modules and "acme_acme.impl" not in sys.modules


def test_every_member_of_the_plugin_api_exists():
    for name in v1.__all__:
        assert getattr(v1, name) is not None
    assert set(v1.__all__) <= set(dir(v1))


def test_unknown_member():
    with pytest.raises(AttributeError, match="the plugin API v1 has no member 'Thing'; it offers AddrSpace, Allocator"):
        v1.Thing  # noqa: B018


@pytest.mark.parametrize("group", [DEVICES, RENDERERS])
def test_specs_pickle(group):
    for record in catalog().of(group):
        spec = catalog().load(record)
        assert pickle.loads(pickle.dumps(spec)) == spec and hash(spec) == hash(pickle.loads(pickle.dumps(spec)))
