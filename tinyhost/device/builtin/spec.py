"""Specs of the devices that the core brings along, behind the same entry points as any backend's."""
from tinyhost.plugin.v1 import DRY, REFERENCE, STORAGE, DeviceSpec, RendererSpec

PYTHON = DeviceSpec(
    "PYTHON",
    device_class="tinyhost.device.builtin.python:PythonDevice",
    capabilities="tinyhost.device.builtin.python:capabilities",
    renderers=("PYTHON.LINEAR",),
    roles=frozenset({REFERENCE}),
)
PYTHON_LINEAR = RendererSpec("PYTHON.LINEAR", renderer_class="tinyhost.device.builtin.python:PythonRenderer")

NULL = DeviceSpec(
    "NULL",
    device_class="tinyhost.device.builtin.null:NullDevice",
    capabilities="tinyhost.device.builtin.python:capabilities",  # those of its renderer
    renderers=("PYTHON.LINEAR",),
    roles=frozenset({DRY}),
)

NPY = DeviceSpec(
    "NPY",
    device_class="tinyhost.device.builtin.npy:NpyDevice",
    capabilities="tinyhost.device.builtin.npy:capabilities",
    roles=frozenset({STORAGE}),
)

DISK = DeviceSpec(
    "DISK",
    device_class="tinyhost.device.builtin.disk:DiskDevice",
    capabilities="tinyhost.device.builtin.disk:capabilities",
    roles=frozenset({STORAGE}),
)
