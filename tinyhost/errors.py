"""Every exception and warning class of the core, in one tree.

    TinyhostError(Exception)
    |-- VariableError(ValueError)             an environment or Context variable has a value it cannot have
    |   `-- UnknownVariable(KeyError)         Context(...) names a variable that does not exist
    |-- TargetError(ValueError, RuntimeError) a DEV string does not follow the grammar
    |-- DeviceError(RuntimeError)
    |   |-- DeviceNotFound(ValueError)        no installed distribution offers that name (a typo, a missing package)
    |   |-- DeviceAmbiguous(ValueError)       more than one installed distribution offers it
    |   |-- DeviceUnavailable                 installed, but it does not open here (driver, hardware, library)
    |   |-- DeviceUsageError                  ALLOW_DEVICE_USAGE=0 forbids opening devices
    |   |-- DeviceTimeout(TimeoutError)       a device made no progress for too long
    |   `-- KernelFault                       a kernel ended with a fault of the hardware, or does not end
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
    |   `-- StateCycle                        kernels read old and new states of storage that need each other
    |-- CompileError(RuntimeError)            a renderer or compiler rejected a program
    |-- KernelOptError(ValueError)            an Opt cannot be applied to this kernel
    |-- JitError(RuntimeError)
    |-- PlacementError(RuntimeError)          operands lie on different devices
    |-- GradientError(RuntimeError)           there is no gradient, or none that is right
    |-- CallError(TypeError)                  arguments or results do not fit a function
    |-- FunctionError(RuntimeError)           a function reads what it was not given
    |-- ExchangeError(BufferError)            memory cannot be shared with another library
    |-- DownloadError(OSError)                a file of the network cannot be had
    |-- ProfileError(OSError)                 a profile cannot be made or written
    `-- OutOfMemory(MemoryError)

    TinyhostWarning(UserWarning)
    |-- CacheWarning                          the disk cache could not be read or written; nothing is lost
    |-- PluginWarning                         a plugin that nobody asked for is left out
    `-- FallbackWarning                       a device was chosen although a better one was rejected

A message says what was asked, the values, why it cannot be, and what to do. Everything here takes one string, and notes
the line of the program that called into this package: the last lines of a traceback are ours, not the user's.
"""
from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

_HERE = os.path.dirname(os.path.abspath(__file__))
_OURS = (_HERE + os.sep, _HERE + "_", "<frozen")  # this package and its backends


def _calling_line() -> str | None:
    """``file:line, in function: source`` of the innermost frame outside of this package."""
    f: FrameType | None = sys._getframe(2)
    while f is not None and f.f_code.co_filename.startswith(_OURS):
        f = f.f_back
    if f is None:
        return None
    source = linecache.getline(f.f_code.co_filename, f.f_lineno).strip()
    place = f"{f.f_code.co_filename}:{f.f_lineno}, in {f.f_code.co_name}"
    return f"{place}: {source}" if source else place


class TinyhostError(Exception):
    """Root of every exception the core raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if (line := _calling_line()) is not None:
            self.add_note(f"called at {line}")

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


class DeviceTimeout(DeviceError, TimeoutError):
    """A device made no progress for as long as HCQDEV_WAIT_TIMEOUT_MS allows."""


class KernelFault(DeviceError):
    """A kernel ended with a fault of the hardware, or does not end."""


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


class StateCycle(ScheduleError):
    """Computations of a graph read old and new states of storage that need each other."""


class CompileError(TinyhostError, RuntimeError):
    """A renderer or compiler rejected a program."""


class KernelOptError(TinyhostError, ValueError):
    """An Opt cannot be applied to this kernel."""


class JitError(TinyhostError, RuntimeError):
    """A captured function was used in a way it does not allow."""


class PlacementError(TinyhostError, RuntimeError):
    """Operands of one operation, or a value and the place it is written to, lie on different devices."""


class GradientError(TinyhostError, RuntimeError):
    """There is no gradient of that, or none that would be right."""


class CallError(TinyhostError, TypeError):
    """Arguments of a call do not fit the parameters of its body in number or shape, or a result is no tensor."""


class FunctionError(TinyhostError, RuntimeError):
    """A traced function reads tensors that are not among its arguments."""


class ExchangeError(TinyhostError, BufferError):
    """Memory cannot be shared with another library in the way that was asked for."""


class DownloadError(TinyhostError, OSError):
    """A file of the network cannot be had, or arrived incomplete."""


class ProfileError(TinyhostError, OSError):
    """A script cannot be profiled, or its profile cannot be written where it should go."""


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
