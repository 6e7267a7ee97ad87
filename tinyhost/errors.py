"""Every exception and warning class of the core, in one tree.

    TinyhostError(Exception)
    |-- VariableError(ValueError)             an environment or Context variable has a value it cannot have
    |   `-- UnknownVariable(KeyError)         Context(...) names a variable that does not exist
    |-- TargetError(ValueError, RuntimeError) a DEV string does not follow the grammar
    |-- DeviceError(RuntimeError)
    |   |-- DeviceNotFound(ValueError)        no installed distribution offers that name (a typo, a missing package)
    |   |-- DeviceAmbiguous(ValueError)       more than one installed distribution offers it
    |   |-- DeviceUnavailable                 installed, but it does not open here (driver, hardware, library)
    |   `-- DeviceUsageError                  ALLOW_DEVICE_USAGE=0 forbids opening devices
    |-- RendererError(RuntimeError)
    |   |-- RendererNotFound(ValueError)      the device has no renderer of that name
    |   `-- RendererUnavailable               it exists, but what it needs is missing here
    |-- PluginError(RuntimeError)
    |   |-- PluginBroken                      its import or its spec failed
    |   |-- PluginIncompatible                its Requires-Dist does not admit this core
    |   |-- PluginDisabled                    TINYHOST_PLUGINS leaves it out
    |   `-- HookError(TypeError)              a hook implementation does not match its specification
    |-- ShapeError(ValueError)
    |-- DTypeError(TypeError, RuntimeError)
    |-- RewriteError(RuntimeError)            a rewrite does not end, or a rule returned something illegal
    |-- SpecError(RuntimeError)               a graph breaks the grammar of its stage
    |-- ScheduleError(RuntimeError)
    |-- CompileError(RuntimeError)            a renderer or compiler rejected a program
    |-- KernelOptError(ValueError)            an Opt cannot be applied to this kernel
    |-- JitError(RuntimeError)
    `-- OutOfMemory(MemoryError)

    TinyhostWarning(UserWarning)
    |-- CacheWarning                          the disk cache could not be read or written; nothing is lost
    |-- PluginWarning                         a plugin that nobody asked for is left out
    `-- FallbackWarning                       a device was chosen although a better one was rejected

A message says what was asked, the values, why it cannot be, and what to do. Everything here takes one string.
"""
from __future__ import annotations


class TinyhostError(Exception):
    """Root of every exception the core raises on purpose."""

    def __str__(self) -> str:
        # KeyError would print the repr of its message; ours are sentences
        return Exception.__str__(self)


class VariableError(TinyhostError, ValueError):
    """An environment or Context variable has a value it cannot have."""


class UnknownVariable(VariableError, KeyError):
    """``Context(...)`` names a variable that does not exist."""


class TargetError(TinyhostError, ValueError, RuntimeError):
    """A DEV string does not follow the grammar of ``tinyhost.target``."""


class DeviceError(TinyhostError, RuntimeError):
    """A device cannot be found, chosen or opened."""


class DeviceNotFound(DeviceError, ValueError):
    """No installed distribution offers a device of that name."""


class DeviceAmbiguous(DeviceError, ValueError):
    """More than one installed distribution offers that name."""


class DeviceUnavailable(DeviceError):
    """The device's package is installed, but the device does not open here."""


class DeviceUsageError(DeviceError):
    """``ALLOW_DEVICE_USAGE=0`` forbids opening devices."""


class RendererError(TinyhostError, RuntimeError):
    """A renderer cannot be found, chosen or made."""


class RendererNotFound(RendererError, ValueError):
    """The device has no renderer of that name."""


class RendererUnavailable(RendererError):
    """The renderer exists, but what it needs is missing here."""


class PluginError(TinyhostError, RuntimeError):
    """A plugin cannot be used; the message names distribution, version and remedy."""


class PluginBroken(PluginError):
    """The plugin's import or its spec failed; the cause is chained."""


class PluginIncompatible(PluginError):
    """The plugin's Requires-Dist does not admit the running core."""


class PluginDisabled(PluginError):
    """``TINYHOST_PLUGINS`` leaves the plugin out."""


class HookError(PluginError, TypeError):
    """A hook implementation does not match its specification."""


class ShapeError(TinyhostError, ValueError):
    """Shapes, axes or indices do not fit together."""


class DTypeError(TinyhostError, TypeError, RuntimeError):
    """A dtype is not allowed there, or dtypes do not fit together."""


class RewriteError(TinyhostError, RuntimeError):
    """A rewrite does not end, or a rule returned something illegal."""


class SpecError(TinyhostError, RuntimeError):
    """A graph breaks the grammar of its stage."""


class ScheduleError(TinyhostError, RuntimeError):
    """A tensor graph cannot be scheduled."""


class CompileError(TinyhostError, RuntimeError):
    """A renderer or compiler rejected a program."""


class KernelOptError(TinyhostError, ValueError):
    """An Opt cannot be applied to this kernel."""


class JitError(TinyhostError, RuntimeError):
    """A captured function was used in a way it does not allow."""


class OutOfMemory(TinyhostError, MemoryError):
    """A device has no room for an allocation."""


class TinyhostWarning(UserWarning):
    """Root of every warning of the core."""


class CacheWarning(TinyhostWarning):
    """The disk cache could not be read or written; results are not affected."""


class PluginWarning(TinyhostWarning):
    """A plugin that nobody asked for by name is left out."""


class FallbackWarning(TinyhostWarning):
    """A device was chosen although a better one was rejected."""
