"""The map of a fitted model for places without distreduce: a NumPy archive with a reader of 15 lines, and ONNX."""

from distreduce.interop._archive import save_map
from distreduce.interop._checked import load_map
from distreduce.interop._onnx import save_onnx

__all__ = ["load_map", "save_map", "save_onnx"]
