"""State of the classifiers' Gaussian process: training inputs, labels and hyperparameters, never a factorisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Node, Writer
from distreduce._utils.typing import Array
from distreduce.gp._classification import DirichletGP
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.persistence._checks import (
    check_floats,
    check_keys,
    check_positive,
    check_shape,
    check_size,
    check_table,
    read_positive,
    refusing_numbers,
)

HYPERPARAMETERS = ("length_scales", "signal", "noise")


def write_classification(gp: DirichletGP, write: Writer) -> Node:
    """The posterior of the latent functions, as what it was made of."""
    return {
        "inputs": write.array("inputs", gp.inputs, compact=True),
        "labels": write.array("labels", gp.labels),
        "alpha_epsilon": write.value("alpha_epsilon", gp.alpha_epsilon),
        **{name: write.value(name, getattr(gp.hyperparameters, name)) for name in HYPERPARAMETERS},
    }


@dataclass(frozen=True)
class ClassificationParts:
    """What a :class:`DirichletGP` is made of, checked but not yet built."""

    inputs: Array
    labels: NDArray[np.intp]
    alpha_epsilon: float
    hyperparameters: Hyperparameters

    def build(self, n_classes: int, draws: Array) -> DirichletGP:
        """The posterior; refused unless it can predict."""
        check_size(len(self.inputs), len(self.inputs) + n_classes)
        with refusing_numbers():
            gp = DirichletGP(self.inputs, self.labels, n_classes, self.alpha_epsilon, self.hyperparameters)
            probabilities = gp.probabilities(self.inputs[:1], draws)
            require(bool(np.isfinite(probabilities).all()), "gp_ predicts no finite numbers")
        return gp


def read_classification(node: Node, read: Reader) -> ClassificationParts:
    """What :func:`write_classification` wrote."""
    check_keys("gp_", node, {"inputs", "labels", "alpha_epsilon", *HYPERPARAMETERS})
    inputs, labels, scales = (read.array(name, node[name]) for name in ("inputs", "labels", "length_scales"))
    check_table("gp_.inputs", inputs)
    check_floats("gp_.inputs", inputs)
    check_shape("gp_.length_scales", scales, inputs.shape[1])
    check_positive("gp_.length_scales", scales)
    alpha, signal, noise = (read_positive(f"gp_.{name}", node[name]) for name in ("alpha_epsilon", "signal", "noise"))
    return ClassificationParts(inputs, labels, alpha, Hyperparameters(scales, signal, noise))
