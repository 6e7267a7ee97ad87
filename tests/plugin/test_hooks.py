"""Hook plugins: checked when they come, called one by one, taken out when they fail."""

from __future__ import annotations

import sys

import pytest

from tinyhost.env import Context
from tinyhost.errors import HookError, PluginBroken, PluginWarning
from tinyhost.plugin.catalog import State, catalog
from tinyhost.plugin.hooks import HookHost, hooks
from tinyhost.plugin.metadata import PLUGINS


def add(site, name, body):
    site.add(
        name,
        plugins={name: f"{name}_plugin"},
        files={f"{name}_plugin.py": "from tinyhost.plugin.v1 import hookimpl\n" + body},
    )


def record(name):
    return next(r for r in catalog().of(PLUGINS) if r.name == name)


def test_results_of_all(site):
    add(site, "aaa", "@hookimpl\ndef tinyhost_cache_salt(target): return 'a' + target\n")
    add(site, "bbb", "@hookimpl\ndef tinyhost_cache_salt(): return 'b'\n")
    add(site, "ccc", "@hookimpl\ndef tinyhost_cache_salt(): return None\n")
    assert sorted(hooks().call("tinyhost_cache_salt", target="x")) == ["ax", "b"]
    assert hooks().first("tinyhost_cache_salt", target="x") in ("ax", "b")
    assert hooks().call("tinyhost_doctor", device="X") == []


def test_raising_hook_is_quarantined_with_one_warning(site):
    add(site, "good", "@hookimpl\ndef tinyhost_cache_salt(): return 'good'\n")
    add(site, "bad", "@hookimpl\ndef tinyhost_cache_salt(): raise KeyError('x')\n")
    with pytest.warns(
        PluginWarning,
        match="the plugin bad of bad 1.0 is installed and broken: its hook tinyhost_cache_salt raised KeyError: 'x'",
    ) as caught:
        assert hooks().call("tinyhost_cache_salt", target=None) == ["good"]
    assert len(caught) == 1
    assert hooks().call("tinyhost_cache_salt", target=None) == ["good"]
    assert record("bad").state is State.BROKEN and record("good").state is State.LOADED


def test_exit_in_a_hook(site):
    add(site, "bad", "@hookimpl\ndef tinyhost_profile(events): raise SystemExit(1)\n")
    with pytest.warns(PluginWarning, match=r"tinyhost_profile called sys.exit\(1\)"):
        assert hooks().call("tinyhost_profile", events=[]) == []


def test_interrupt_in_a_hook_passes(site):
    add(site, "bad", "@hookimpl\ndef tinyhost_profile(events): raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        hooks().call("tinyhost_profile", events=[])


def test_strict(site):
    add(site, "bad", "@hookimpl\ndef tinyhost_profile(events): raise KeyError('x')\n")
    with Context(TINYHOST_STRICT=1), pytest.raises(PluginBroken, match="its hook tinyhost_profile raised KeyError"):
        hooks().call("tinyhost_profile", events=[])


@pytest.mark.parametrize(
    "body, text",
    [
        (
            "@hookimpl\ndef tinyhost_profile(event): pass\n",
            "bad 1.0 (bad_plugin): Plugin 'bad:bad' for hook 'tinyhost_profile'",
        ),
        (
            "@hookimpl\ndef tinyhost_profil(events): pass\n",
            "implements tinyhost_profil, which is no hook of tinyhost; did you mean tinyhost_profile?",
        ),
        (
            "@hookimpl(wrapper=True)\ndef tinyhost_profile(events):\n    yield\n",
            "bad 1.0 (bad_plugin) wraps tinyhost_profile",
        ),
    ],
)
def test_rejected_plugin_leaves_no_trace(site, body, text):
    add(site, "bad", "@hookimpl\ndef tinyhost_cache_salt(): return 'half'\n" + body)
    with pytest.warns(PluginWarning) as caught:
        assert hooks().call("tinyhost_cache_salt", target=None) == []
    assert text in str(caught[0].message) and len(caught) == 1
    assert isinstance(record("bad").error, HookError) and issubclass(HookError, TypeError)
    manager = hooks()._manager
    assert (
        manager is not None
        and not manager.has_plugin("bad:bad")
        and not manager.hook.tinyhost_cache_salt.get_hookimpls()
    )


def test_broken_module_is_one_warning(site):
    add(site, "bad", "import sys; sys.exit()\n")
    with pytest.warns(PluginWarning, match="the plugin bad of bad 1.0 is installed and broken: PluginExit"):
        assert hooks().call("tinyhost_profile", events=[]) == []


def test_disabled_module_is_not_imported(site):
    add(site, "aaa", "@hookimpl\ndef tinyhost_cache_salt(): return 'a'\n")
    with Context(TINYHOST_PLUGINS="-aaa"):
        assert hooks().call("tinyhost_cache_salt", target=None) == []
    assert "aaa_plugin" not in sys.modules


def test_device_opened_is_told_and_told_again_to_late_plugins(site, devices):
    site.device("ACME")
    add(site, "aaa", "seen = []\n@hookimpl\ndef tinyhost_device_opened(device): seen.append(device)\n")
    opened = devices["ACME"]
    assert sys.modules["aaa_plugin"].seen == [opened]
    add(site, "late", "seen = []\n@hookimpl\ndef tinyhost_device_opened(device): seen.append(device)\n")
    host = HookHost(catalog())
    host.call("tinyhost_device_opened", device=1)
    sys.modules["late_plugin"].seen.clear()
    late = record("late")
    host._manager.unregister(name="late:late")
    host.register(late.spec, late)
    assert sys.modules["late_plugin"].seen == [1]


def test_nothing_is_imported_without_plugins(tmp_path):
    import subprocess

    code = (
        "import sys; from tinyhost.plugin.hooks import hooks; hooks().call('tinyhost_profile', events=[]);"
        "assert 'pluggy' not in sys.modules and 'packaging' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
