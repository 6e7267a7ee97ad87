"""Files of other tools: torch checkpoints, npy and npz arrays, gguf models, zip and tar archives.

Every reader checks what a file states against the bytes that are there and never runs code from a file. Tensors are
lazy views of the file where the layout allows it. safetensors is in ``tinyhost.nn.state``.
"""
from tinyhost.io.archive import tar_extract, zip_extract
from tinyhost.io.gguf import gguf_load
from tinyhost.io.npy import npy_load, npy_save, npz_load, npz_save
from tinyhost.io.torch_pickle import torch_load

__all__ = ["gguf_load", "npy_load", "npy_save", "npz_load", "npz_save", "tar_extract", "torch_load", "zip_extract"]
