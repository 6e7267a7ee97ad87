"""The catalog: states from metadata alone, look-up by name, and what each error tells."""

from __future__ import annotations

import sys

import pytest

from tinyhost.env import Context
from tinyhost.errors import (
    DeviceAmbiguous,
    DeviceNotFound,
    PluginDisabled,
    PluginError,
    PluginIncompatible,
    PluginWarning,
    VariableError,
)
from tinyhost.plugin.catalog import State, catalog
from tinyhost.plugin.metadata import DEVICES, Entry, Provider
from tinyhost.plugin.policy import Selection, check_required, incompatibility


def states(name):
    return [r.state for r in catalog().of(DEVICES) if r.name == name]


def test_core_devices_come_from_entry_points():
    assert [r.name for r in catalog().of(DEVICES) if r.entry.provider.is_core] == ["DISK", "NPY", "NULL", "PYTHON"]


def test_listing_imports_nothing(site):
    site.device("ACME")
    assert states("ACME") == [State.FOUND]
    assert "acme_acme" not in sys.modules and "acme_acme.spec" not in sys.modules


def test_unknown_name_suggests_installed_and_published_names(site):
    site.device("ACME")
    with pytest.raises(DeviceNotFound) as e:
        catalog().device("ACNE")
    assert "no installed distribution offers a device named 'ACNE'; did you mean ACME?" in str(e.value)
    assert "ACME (acme-acme 1.0)" in str(e.value)
    with pytest.raises(DeviceNotFound, match=r"did you mean WEBGPU \(pip install tinyhost-webgpu\)"):
        catalog().device("WEBGPUU")
    assert issubclass(DeviceNotFound, ValueError) and issubclass(DeviceNotFound, RuntimeError)


def test_published_name_that_is_not_installed_names_the_package():
    with pytest.raises(DeviceNotFound, match="the device QCOM is not installed: pip install tinyhost-qcom"):
        catalog().device("QCOM")
    with pytest.raises(DeviceNotFound, match=r"the device NVIDIA \(NV\) is not installed: pip install tinyhost-nv"):
        catalog().device("NVIDIA")


def test_two_providers_are_an_error_that_names_both(site):
    site.device("ACME")
    site.device("ACME", distribution="other-acme")
    assert states("ACME") == [State.AMBIGUOUS, State.AMBIGUOUS]
    with pytest.raises(DeviceAmbiguous) as e:
        catalog().device("ACME")
    text = str(e.value)
    assert "acme-acme 1.0, acme_acme.spec:ACME" in text and "other-acme 1.0, other_acme.spec:ACME" in text
    assert "Write ACME@acme-acme or ACME@other-acme" in text
    assert catalog().device("ACME", "Other_Acme").entry.provider.distribution == "other-acme"
    with pytest.raises(
        DeviceNotFound, match="no distribution 'third' offers the device ACME; it is offered by acme-acme 1.0, "
    ):
        catalog().device("ACME", "third")


def test_disabling_one_of_two_providers_ends_the_ambiguity(site):
    site.device("ACME")
    site.device("ACME", distribution="other-acme")
    with Context(TINYHOST_PLUGINS="-other-acme"):
        assert catalog().device("ACME").entry.provider.distribution == "acme-acme"


@pytest.mark.parametrize(
    "text, admitted",
    [
        ("*", True),
        ("", False),
        ("acme", True),
        ("ACME", True),
        ("acme-acme", True),
        ("Acme_Acme", True),
        ("cpu", False),
        ("-acme", False),
        ("-cpu", True),
    ],
)
def test_selection(text, admitted):
    entry = Entry(DEVICES, "ACME", "acme.spec:ACME", Provider("acme-acme", "1.0", ""))
    assert Selection.parse(text).admits(entry) is admitted


def test_selection_of_renderers_follows_their_device():
    renderer = Entry("tinyhost.renderers", "ACME.ONE", "x:y", Provider("third-party", "1.0", ""))
    assert Selection.parse("acme").admits(renderer) and not Selection.parse("-acme").admits(renderer)


def test_core_cannot_be_disabled():
    with Context(TINYHOST_PLUGINS=""):
        assert catalog().device("PYTHON").state is State.FOUND


def test_mixed_selection_is_an_error():
    with pytest.raises(VariableError, match=r"TINYHOST_PLUGINS=cpu,-amd: expected either names to use"):
        Selection.parse("cpu,-amd")


def test_disabled_device_says_so(site):
    site.device("ACME")
    with Context(TINYHOST_PLUGINS="-acme"):
        assert states("ACME") == [State.DISABLED]
        with pytest.raises(
            PluginDisabled, match=r"the device ACME of acme-acme 1.0 is installed, but TINYHOST_PLUGINS='-acme'"
        ):
            catalog().device("ACME")


def test_unknown_name_in_selection_is_one_warning(site):
    site.device("ACME")
    with Context(TINYHOST_PLUGINS="-acne"), pytest.warns(PluginWarning, match="names 'acne', .* did you mean acme"):
        catalog()


def test_version_mismatch_costs_no_plugin_code(site):
    site.device(
        "ACME",
        requires=(
            "numpy",
            "tinyhost>=99",
        ),
    )
    assert states("ACME") == [State.INCOMPATIBLE]
    with pytest.raises(PluginIncompatible) as e:
        catalog().device("ACME")
    assert "it requires tinyhost>=99, and tinyhost 0.1.0 is running" in str(e.value)
    assert "pip install -U tinyhost acme-acme" in str(e.value)
    assert "acme_acme" not in sys.modules


@pytest.mark.parametrize(
    "requirement, fits",
    [
        ("tinyhost==0.1.0", True),
        ("tinyhost == 0.1.0", True),
        ("tinyhost>=0.1,<0.2", True),
        ("tinyhost<0.1", False),
        ("tinyhost-extras>=9", True),
        ("tinyhost>=9; extra == 'later'", True),
        ("tinyhost>=9; python_version >= '3'", False),
        ("tinyhost[testing]>=9", False),
        ("tinyhost>=0.1.dev0", True),
    ],
)
def test_requires_dist(requirement, fits):
    entry = Entry(DEVICES, "ACME", "x:y", Provider("acme", "1.0", "", (requirement,)))
    assert (incompatibility(entry, "0.1.0", frozenset()) == "") is fits


def test_names_of_the_core_cannot_be_taken(site):
    site.device("NPY", distribution="evil")
    assert states("NPY") == [State.INCOMPATIBLE, State.FOUND]
    assert catalog().device("NPY").entry.provider.is_core
    record = next(r for r in catalog().of(DEVICES) if r.entry.provider.key == "evil")
    assert record.reason == "the name NPY belongs to the core"


def test_required_distributions():
    check_required("tinyhost>=0.1, numpy")
    with pytest.raises(PluginError) as e:
        check_required("tinyhost-nope>=0.3,tinyhost>=99")
    assert "TINYHOST_REQUIRE=tinyhost-nope>=0.3,tinyhost>=99: tinyhost-nope is not installed" in str(e.value)
    assert "tinyhost 0.1.0 is installed, which is not >=99 (pip install -U 'tinyhost>=99')" in str(e.value)
    with pytest.raises(VariableError, match="expected requirements like"):
        check_required("tinyhost >")


def test_required_is_checked_when_a_device_is_asked_for():
    with Context(TINYHOST_REQUIRE="tinyhost-nope"), pytest.raises(PluginError, match="tinyhost-nope is not installed"):
        catalog().device("PYTHON")


def test_tree_that_was_never_installed(monkeypatch):
    from tinyhost.plugin import catalog as module

    empty = module.Catalog((), Selection.parse("*"))
    with pytest.raises(DeviceNotFound) as e:
        empty.device("PYTHON")
    assert "tinyhost has no entry points: this tree was never installed" in str(e.value)
    assert "pip install -e ." in str(e.value)


def test_damaged_metadata_is_a_row(site):
    site.device("ACME")
    (site.root / "acme_acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    from tinyhost.device.registry import Device

    Device.reset()
    record = next(r for r in catalog().of(DEVICES) if r.name == "ACME")
    assert (record.state, record.reason) == (State.INCOMPATIBLE, "its METADATA has no Name or no Version")


def test_second_copy_of_a_distribution_is_shadowed(site, tmp_path_factory, monkeypatch):
    site.device("ACME")
    other = tmp_path_factory.mktemp("older")
    info = other / "acme_acme-0.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Acme.Acme\nVersion: 0.5\n")
    (info / "entry_points.txt").write_text("[tinyhost.devices]\nACME = acme_acme.spec:ACME\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(other)])
    assert [r.entry.provider.version for r in catalog().of(DEVICES) if r.name == "ACME"] == ["1.0"]


def test_alias(site):
    site.device("ACME", more='aliases=("GADGET",)')
    assert catalog().device("GADGET").name == "ACME"
