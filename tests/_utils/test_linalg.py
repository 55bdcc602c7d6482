"""The inverse from a Cholesky factor, against NumPy's."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor

from distreduce._utils.linalg import inverse_from_factor


def test_inverse_is_numpys_whatever_stands_above_the_diagonal(rng):
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    factor = cho_factor(A, lower=True)[0]  # SciPy leaves the upper triangle of A in place
    np.testing.assert_allclose(inverse_from_factor(factor), np.linalg.inv(A), rtol=1e-9, atol=1e-12)
