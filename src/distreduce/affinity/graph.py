"""A graph, or any similarity of the samples, as the input affinity C."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.typing import Array

MOST_STEPS = 1000
TOL = 1e-8  # of the row sums


def graph_affinity(graph: Any, weights: Array) -> Array:
    r"""Scale a similarity A to :math:`C = D(A + A^\top)D` with rows :math:`\sum_j h_j C_{ij} = 1`, like every other C.

    The diagonal is at least the largest entry of its row, because a sample is nearest to itself. With a positive
    diagonal the scaling D exists for every graph, also one with loose ends or unconnected parts [1]_.

    The graph (n, n), dense or sparse, has non-negative weights of edges; h are the positive weights of the samples.

    References
    ----------
    .. [1] Knight, Ruiz, Uçar (2014). A symmetry preserving algorithm for matrix scaling. SIAM Journal on Matrix
       Analysis and Applications 35.

    Examples
    --------
    >>> graph_affinity(np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.ones(3))
    array([[0.5, 0.5, 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    A = sparse.csr_array(graph, dtype=np.float64)
    A = A + A.T
    peak = A.max(axis=1).toarray().ravel()
    missing = np.where(peak > 0, peak, 1.0) - A.diagonal()
    A = sparse.csr_array(A + sparse.diags_array(missing)) / max(1.0, float(peak.max()))
    scale = np.ones(len(weights))
    for _ in range(MOST_STEPS):
        sums = scale * (A @ (weights * scale))
        if np.abs(sums - 1.0).max() < TOL:
            break
        scale = scale / np.sqrt(sums)
    C = A.toarray()
    C *= scale[:, None]
    C *= scale
    return np.asarray(0.5 * (C + C.T))
