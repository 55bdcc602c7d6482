"""Scores of weighted prototypes against the labels of their samples, as defined in the DistR paper [1]_.

The assignment of samples to prototypes is a coupling T (n, m), dense or sparse, whose row maxima are used, or an array
of prototype numbers (n,). Prototypes of weight zero are ignored. Scores are between 0 and 1 (silhouette: −1 and 1); the
paper multiplies them by 100.

References
----------
.. [1] Van Assel et al. (2025). Distributional Reduction: Unifying Dimensionality Reduction and Clustering with
   Gromov-Wasserstein. Transactions on Machine Learning Research. arXiv:2402.02239.
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
from distreduce.estimators._validate import reject_masked
from distreduce.exceptions import InvalidInputError


def homogeneity(labels: ArrayLike, assignment: Any) -> float:
    """Homogeneity [1]_ of the prototypes: 1 if each represents samples of one class only.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Class of every sample.
    assignment : array or sparse matrix of shape (n, m) or (n,)
        Coupling T, or the prototype number of every sample.

    References
    ----------
    .. [1] Rosenberg, Hirschberg (2007). V-measure: a conditional entropy-based external cluster evaluation measure.
       EMNLP-CoNLL.

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
    """Normalised mutual information [1]_ of y and a k-means clustering of the prototypes, k the number of classes.

    The clustering is weighted by the mass of the prototypes and transferred to the samples by the assignment.

    Parameters
    ----------
    prototypes : array of shape (m, p)
        Prototypes Z.
    assignment : array or sparse matrix of shape (n, m) or (n,)
        Coupling T, or the prototype number of every sample.
    y : array-like of shape (n,)
        Class of every sample.
    weights : array-like of shape (m,), optional
        Mass of the prototypes; by default the mass that the assignment gives them.
    n_init : int, default=10
        Number of starts of scikit-learn's ``KMeans``.
    random_state : int or RandomState, default=0
        Seed of ``KMeans``.

    References
    ----------
    .. [1] Strehl, Ghosh (2002). Cluster ensembles: a knowledge reuse framework for combining multiple partitions.
       Journal of Machine Learning Research 3.

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
    # A sample of weight zero can have a prototype without mass, which is assigned to a cluster but not fitted.
    used = mass > 0
    # KMeans warns if it has more clusters than distinct points.
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
    """Silhouette [1]_ of the prototypes, each labelled by its majority class, averaged by mass.

    Parameters are those of :func:`kmeans_nmi`, and `sample_weight` (n,) weights the samples when the majority class is
    determined. All entries of a coupling are used; prototypes without samples have no class and are ignored.

    Returns
    -------
    float
        Between −1 and 1; NaN if all prototypes have the same class. A prototype alone in its class counts as zero.

    References
    ----------
    .. [1] Rousseeuw (1987). Silhouettes: a graphical aid to the interpretation and validation of cluster analysis.
       Journal of Computational and Applied Mathematics 20.

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
    # Mass of each class at each prototype; the largest decides the class of the prototype.
    carried = np.asarray(T.T @ (samples[:, None] * np.eye(len(classes))[codes]))
    used = (mass > 0) & (carried.sum(axis=1) > 0)
    colours = carried[used].argmax(axis=1)
    n_colours = len(np.unique(colours))
    if n_colours < 2:
        return float("nan")
    if n_colours == len(colours):  # every prototype is alone in its class, which scikit-learn rejects
        return 0.0
    return float(np.average(silhouette_samples(prototypes[used], colours), weights=mass[used]))


def hard_assignment(assignment: Any, n: int, m: int | None = None) -> Index:
    """Prototype number (n,) of every sample: the row maxima of a coupling, or the given numbers."""
    return np.asarray(_as_coupling(assignment, n, m).argmax(axis=1), dtype=np.intp).ravel()


def _as_coupling(assignment: Any, n: int, m: int | None) -> sparse.csr_array:
    """The coupling (n, m), which has one entry per row if prototype numbers are given."""
    if sparse.issparse(assignment) or np.ndim(assignment) == 2:
        if assignment.shape[0] != n or (m is not None and assignment.shape[1] != m):
            raise InvalidInputError(f"assignment has shape {assignment.shape}, not {n} samples and {m} prototypes.")
        return sparse.csr_array(assignment)
    numbers = np.asarray(assignment)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InvalidInputError(f"assignment must be {n} prototype numbers or a coupling; got shape {numbers.shape}.")
    # Negative numbers would silently index from the end.
    if numbers.min() < 0 or (m is not None and numbers.max() >= m):
        raise InvalidInputError(f"assignment has prototype numbers {numbers.min()} to {numbers.max()}, not 0 to m − 1.")
    return sparse.csr_array((np.ones(n), numbers, np.arange(n + 1)), shape=(n, m or int(numbers.max()) + 1))


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
    reject_masked(y, "labels")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidInputError(f"labels must be one per sample, (n,); got shape {labels.shape}.")
    return np.unique(labels, return_inverse=True)
