"""Use fitted models elsewhere: the map as a NumPy archive or an ONNX graph, and SDR on AnnData."""

from distreduce.interop.numpy import load_map, save_map
from distreduce.interop.onnx import save_onnx

__all__ = ["load_map", "save_map", "save_onnx"]
