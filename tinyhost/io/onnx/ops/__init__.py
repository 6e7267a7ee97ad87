"""The operators, one module a family; importing this registers all of them."""
from tinyhost.io.onnx.ops import (
    activation,
    casting,
    control,
    detection,
    host,
    image,
    indexing,
    math,
    ml,
    nn,
    normalization,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    sequence,
    shape,
    signal,
    text,
    training,
)

__all__ = ["activation", "casting", "control", "detection", "host", "image", "indexing", "math", "ml",
           "nn", "normalization", "pooling", "quantization", "random", "recurrent", "reduction", "sequence", "shape",
           "signal", "text", "training"]
