"""Use fitted models elsewhere: maps and predictors for NumPy and as ONNX graphs, and SDR on AnnData."""

from distreduce.interop.numpy import load_map, load_predictor, save_map, save_predictor
from distreduce.interop.onnx import save_onnx, save_predictor_onnx

__all__ = ["load_map", "load_predictor", "save_map", "save_onnx", "save_predictor", "save_predictor_onnx"]
