"""Leave-one-out embeddings: where the out-of-sample map would put a training sample that it had not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from distreduce._utils.linalg import inverse_from_factor
from distreduce._utils.typing import Array
from distreduce.mapping.kernel_map import factorise_kernel


def left_out_embedding(K: Array, F: Array, regularisation: float, groups: NDArray[np.intp]) -> Array:
    r"""Embedding (n, p) of each sample by the map fitted to the samples outside its group, in closed form.

    .. math::
        z_{-G}(x_G) = F_G - (P_{GG})^{-1} [P F]_G, \qquad P = (K + \lambda I)^{-1}

    A group holds samples with equal inputs, which reveal each other's place. A group of one is the usual leave-one-out,
    :math:`z_i - [PF]_i / P_{ii}`.

    Parameters
    ----------
    K : (n, n) array
        Input kernel of the training samples.
    F : (n, p) array
        Embedding of the samples by the reduction.
    regularisation : float
        λ/μ.
    groups : (n,) array
        Group number of each sample.
    """
    factor, _ = factorise_kernel(K + regularisation * np.eye(len(K)))
    P = inverse_from_factor(factor)
    coefficients = P @ F
    # All samples as groups of one; larger groups are overwritten below.
    left_out = F - coefficients / P.diagonal()[:, None]
    sizes = np.bincount(groups)
    for group in np.flatnonzero(sizes > 1):  # one block of P per group: copies must leave together
        rows = np.flatnonzero(groups == group)
        left_out[rows] = F[rows] - solve(P[np.ix_(rows, rows)], coefficients[rows], assume_a="pos")
    return np.asarray(left_out)
