"""Scores of weighted prototypes against the labels of the samples they stand for, as DistR defines them.

Every score takes the assignment of samples to prototypes as a coupling T (n, m), dense or sparse, of which the row
maximum counts, or as prototype numbers (n,). Prototypes of weight zero take no part. Scores lie in 0..1 (silhouette
−1..1); the paper prints them times 100.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import homogeneity_score, normalized_mutual_info_score, silhouette_samples

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError


def homogeneity(labels: ArrayLike, assignment: Any) -> float:
    """Homogeneity of the prototypes: 1 if each stands for samples of one class only.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Class of every sample.
    assignment : array or sparse matrix of shape (n, m) or (n,)
        Coupling T, or the prototype number of every sample.

    Returns
    -------
    float

    Examples
    --------
    >>> round(homogeneity(["a", "a", "b", "b"], [0, 1, 2, 2]), 12)
    1.0
    """
    return float(homogeneity_score(_classes(labels)[1], hard_assignment(assignment, np.shape(labels)[0])))


def kmeans_nmi(
    prototypes: Array,
    assignment: Any,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    n_init: int = 10,
    random_state: Any = 0,
) -> float:
    """Normalised mutual information of y and a k-means clustering of the prototypes, k the number of classes.

    The clustering is weighted by the prototypes' mass and carried back to the samples through the assignment.

    Parameters
    ----------
    prototypes : array of shape (m, p)
        Z.
    assignment : array or sparse matrix of shape (n, m) or (n,)
        Coupling T, or the prototype number of every sample.
    y : array-like of shape (n,)
        Class of every sample.
    weights : array-like of shape (m,), optional
        Mass of the prototypes; by default what the assignment puts on them.
    n_init, random_state : int
        Of scikit-learn's ``KMeans``.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
    >>> kmeans_nmi(Z, [0, 0, 1, 2, 2], ["a", "a", "a", "b", "b"])
    1.0
    """
    prototypes, mass = _prototypes(prototypes, assignment, weights)
    classes, codes = _classes(y)
    hard = hard_assignment(assignment, len(codes), len(prototypes))
    # A sample can sit on a prototype without mass when its own weight is zero: that prototype is placed, not fitted.
    used = mass > 0
    k = min(len(classes), len(np.unique(prototypes[used], axis=0)))
    with single_threaded_blas():
        kmeans = KMeans(k, n_init=n_init, random_state=random_state).fit(prototypes[used], sample_weight=mass[used])
        clusters = kmeans.predict(prototypes)
    return float(normalized_mutual_info_score(codes, clusters[hard]))


def weighted_silhouette(
    prototypes: Array,
    assignment: Any,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Silhouette of the prototypes, each coloured by the class it carries most of, averaged by mass.

    Parameters
    ----------
    prototypes, assignment, y, weights
        As for :func:`kmeans_nmi`; here a soft coupling counts with all its entries. Prototypes to which no sample is
        assigned have no class and take no part.
    sample_weight : array-like of shape (n,), optional
        Weights of the samples in the prototypes' classes.

    Returns
    -------
    float
        NaN if all prototypes have one class: a silhouette compares two. A prototype alone in its class counts zero.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [9.0, 9.1]])
    >>> round(weighted_silhouette(Z, [0, 1, 2, 3, 3], ["a", "a", "b", "b", "b"]), 2)
    0.99
    """
    prototypes, mass = _prototypes(prototypes, assignment, weights)
    classes, codes = _classes(y)
    T = _as_coupling(assignment, len(codes), len(prototypes))
    samples = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    carried = np.asarray(T.T @ (samples[:, None] * np.eye(len(classes))[codes]))
    used = (mass > 0) & (carried.sum(axis=1) > 0)
    colours = carried[used].argmax(axis=1)
    n_colours = len(np.unique(colours))
    if n_colours < 2:
        return float("nan")
    if n_colours == len(colours):  # every prototype alone in its class, which scikit-learn refuses as a whole
        return 0.0
    return float(np.average(silhouette_samples(prototypes[used], colours), weights=mass[used]))


def hard_assignment(assignment: Any, n: int, m: int | None = None) -> Index:
    """Prototype number (n,) of every sample: the row maximum of a coupling, or the numbers as given."""
    if sparse.issparse(assignment) or np.ndim(assignment) == 2:
        if assignment.shape[0] != n or (m is not None and assignment.shape[1] != m):
            raise InvalidInputError(
                f"assignment has shape {assignment.shape}; expected {n} samples and {m} prototypes."
            )
        return np.asarray(assignment.argmax(axis=1), dtype=np.intp).ravel()
    numbers = np.asarray(assignment)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InvalidInputError(f"assignment must be {n} prototype numbers or a coupling; got shape {numbers.shape}.")
    if numbers.min() < 0 or (m is not None and numbers.max() >= m):
        raise InvalidInputError(f"assignment has prototype numbers {numbers.min()} to {numbers.max()}, not 0 to m − 1.")
    return numbers.astype(np.intp)


def _as_coupling(assignment: Any, n: int, m: int) -> sparse.csr_array:
    hard = hard_assignment(assignment, n, m)
    if sparse.issparse(assignment) or np.ndim(assignment) == 2:
        return sparse.csr_array(assignment)
    return sparse.csr_array((np.ones(n), hard, np.arange(n + 1)), shape=(n, m))


def _prototypes(prototypes: Any, assignment: Any, weights: ArrayLike | None) -> tuple[Array, Array]:
    Z = np.asarray(prototypes, dtype=np.float64)
    if Z.ndim != 2:
        raise InvalidInputError(f"prototypes must have shape (m, p); got {Z.shape}.")
    if weights is None:
        n = assignment.shape[0] if hasattr(assignment, "shape") else len(assignment)
        return Z, np.asarray(_as_coupling(assignment, n, len(Z)).sum(axis=0)).ravel()
    mass = np.asarray(weights, dtype=np.float64)
    if mass.shape != (len(Z),) or not (mass >= 0).all() or not mass.sum() > 0:
        raise InvalidInputError(f"weights must be {len(Z)} numbers ≥ 0, not all zero; got shape {mass.shape}.")
    return Z, mass


def _classes(y: ArrayLike) -> tuple[NDArray[Any], Index]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidInputError(f"labels must be one a sample, (n,); got shape {labels.shape}.")
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes
