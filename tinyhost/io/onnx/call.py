"""What an operator's function may ask of the run it is part of, and the casts that schemas demand.

``Call`` gives the node, its opset, which outputs are wanted, and runs subgraphs.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhost.dtype import DType, strong_dtype
from tinyhost.io.onnx.types import BY_NAME, Narrow, to_array
from tinyhost.tensor import Tensor

if TYPE_CHECKING:
    from tinyhost.io.onnx.model import Graph, Node
    from tinyhost.io.onnx.runner import OnnxRunner

HOST_LIMIT = 1 << 16  # elements that a result on the host may have
TABLE_LIMIT = 1 << 26  # elements of tables that operators build on the host


class Call:
    """One execution of one node."""

    __slots__ = ("runner", "node", "env")

    def __init__(self, runner: OnnxRunner, node: Node, env: dict[str, Any]) -> None:
        self.runner, self.node, self.env = runner, node, env

    @property
    def opset(self) -> int:
        """Opset of the node's domain."""
        return self.node.opset

    @property
    def device(self) -> str | None:
        """Device of the run."""
        return self.runner.device

    @property
    def outputs(self) -> int:
        """Number of outputs up to the last that has a name."""
        return max((i + 1 for i, n in enumerate(self.node.outputs) if n), default=0)

    def wants(self, i: int) -> bool:
        """Whether output ``i`` is asked for."""
        return i < len(self.node.outputs) and bool(self.node.outputs[i])

    def run(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """Outputs of a subgraph of the node."""
        return self.runner.run_graph(graph, values, self.env)

    def is_constant(self, value: Any) -> bool:
        """Whether an array on the host is part of the model, not computed in this run."""
        return self.runner.is_constant(value)

    def lift(self, value: Any) -> Tensor:
        """A tensor value on the device."""
        return self.runner.lift(value)


def with_dtype(value: Tensor, wanted: str) -> Tensor:
    """A value of weak type at the type that is wanted, or at the default."""
    kind = BY_NAME.get(wanted[len("tensor("):-1]) if wanted.startswith("tensor(") else None
    return value.cast(kind.dtype if kind is not None and kind.dtype is not None else strong_dtype(value.dtype))


def narrowed(value: Tensor, wanted: str) -> Any:
    """A Tensor as an element type by its type string: cast, and marked where no device has the type."""
    kind = BY_NAME[wanted[len("tensor("):-1]]
    if kind.dtype is None:
        return value
    cast = value.cast(kind.dtype)
    return cast if kind.native else Narrow(cast, kind)


def filled(shape: tuple[int, ...], value: Any, dtype: DType) -> Tensor:
    """One value at a shape, without storage or device."""
    return Tensor.const(value, dtype).reshape((1,) * len(shape)).expand(shape)


def check_host_size(count: int, what: str) -> None:
    """Raises:
        ValueError: a table on the host would have more elements than any model needs.
    """
    if count > TABLE_LIMIT:
        raise ValueError(f"{what} needs a table of {count} elements on the host, more than {TABLE_LIMIT}: refused")


def scalar(value: Any) -> Any:
    """The only element of a tensor value as a Python number or str."""
    return to_array(value).reshape(()).item()


def boolean(value: Any) -> bool:
    """The truth of a condition; a Tensor is realized.

    Raises:
        ValueError: there is not exactly one element.
    """
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"a condition is one bool, got shape {value.shape}")
    return bool(to_array(value).reshape(()).item())


__all__ = ["Call", "HOST_LIMIT", "boolean", "check_host_size", "filled", "narrowed", "scalar", "with_dtype"]
