"""Which renderer, target and capabilities a device has, without opening it."""

from __future__ import annotations

import pytest

from tests.plugin.distributions import IMPL
from tinyhost.device.selection import caps_of, compile_target, renderer_of
from tinyhost.env import Context
from tinyhost.errors import FallbackWarning, RendererNotFound, RendererUnavailable


def test_first_renderer_of_the_spec(site, devices):
    site.device("ACME")
    renderer = renderer_of("ACME:1")
    assert type(renderer).__name__ == "One" and repr(compile_target("acme")) == "ACME:ONE"
    assert renderer_of("ACME") is renderer and not devices._opened_devices
    assert caps_of("ACME").vector_bytes == 16


def test_dev_names_renderer_and_arch(site):
    site.device("ACME")
    with Context(DEV="ACME:TWO:wide"):
        assert type(renderer_of("ACME")).__name__ == "Two" and caps_of("ACME").vector_bytes == 32
    with Context(DEV="SIM:0,1+ACME@acme-acme::wide"):
        assert repr(compile_target("ACME")) == "ACME:ONE:wide"
    assert caps_of("ACME").vector_bytes == 16


def test_default_arch(site):
    site.device(
        "ACME",
        more='default_arch="acme_acme.impl:arch"',
        impl=IMPL.format(probe="None", two="")
        + "\n    def arch(target): return 'wide' if target.renderer == 'ONE' else 'x'",
    )
    assert repr(compile_target("ACME")) == "ACME:ONE:wide" and caps_of("ACME").vector_bytes == 32


def test_renderer_of_another_device(site):
    site.device("ACME")
    with Context(DEV="NULL:ACME.TWO:wide"):
        assert repr(compile_target("NULL")) == "ACME:TWO:wide" and caps_of("NULL").vector_bytes == 32
    with Context(DEV="NULL:TWO"):
        assert repr(compile_target("NULL")) == "ACME:TWO"


def test_only_a_dry_device_takes_the_renderer_of_another(site):
    site.device("ACME")
    site.device("OTHER")
    with Context(DEV="OTHER:ACME.TWO"), pytest.raises(RendererNotFound) as e:
        renderer_of("OTHER")
    assert "the renderer ACME.TWO makes programs that OTHER cannot run" in str(e.value)
    assert "DEV=NULL:ACME.TWO" in str(e.value)


def test_short_name_of_two_devices_lists_both(site):
    site.device("ACME")
    site.device("OTHER")
    with Context(DEV="NULL:ONE:wide"), pytest.raises(RendererNotFound) as e:
        renderer_of("NULL")
    assert (
        "more than one device offers one: ACME.ONE, OTHER.ONE. Write DEV=NULL:ACME.ONE:wide or DEV=NULL:OTHER.ONE:wide"
        in str(e.value)
    )


def test_unknown_renderer(site):
    site.device("ACME")
    with Context(DEV="ACME:ONNE"), pytest.raises(RendererNotFound) as e:
        renderer_of("ACME")
    assert "no installed distribution offers a renderer 'ONNE' for ACME; did you mean ONE" in str(e.value)
    assert "Installed for ACME are: ONE, TWO." in str(e.value)


def test_named_renderer_that_is_missing_lists_those_that_work(site):
    site.device("ACME", two="acmecc is not on PATH")
    with Context(DEV="ACME:TWO"), pytest.raises(RendererUnavailable) as e:
        renderer_of("ACME")
    assert str(e.value) == (
        "DEV asks for the renderer TWO of ACME, which does not work here: acmecc is not on PATH. "
        "Those that work: DEV=ACME:ONE"
    )


def test_bare_device_takes_the_first_that_works_and_says_so(site):
    site.device(
        "ACME",
        impl=IMPL.format(probe="None", two="").replace(
            "super().__init__(target)", "if type(self) is One: raise OSError('no libone')"
        ),
    )
    with pytest.warns(
        FallbackWarning,
        match="ACME uses the renderer TWO, because a better one does not work here: ONE: OSError: no libone",
    ):
        assert type(renderer_of("ACME")).__name__ == "Two"
    assert repr(compile_target("ACME")) == "ACME:TWO"


def test_no_renderer_works(site):
    site.device(
        "ACME",
        two="nothing",
        impl="""
        class One:
            def __init__(self, target): raise SystemExit(1)
        def two_missing(): return "no compiler"
    """,
    )
    with pytest.raises(
        RendererUnavailable,
        match=r"no renderer of ACME works here: ONE: PluginExit: it called sys.exit\(1\); "
        r"TWO: no compiler\. Install the driver\.",
    ):
        renderer_of("ACME")


def test_storage_has_no_renderer():
    with pytest.raises(RendererNotFound, match="NPY holds data and runs no kernels"):
        renderer_of("NPY")
    assert caps_of("NPY").storage_only
