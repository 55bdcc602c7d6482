"""DistR: distributional reduction without targets."""

from __future__ import annotations

from typing import Any

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction


class DistR(BaseReduction):
    """Distributional reduction (DistR), the unsupervised counterpart of :class:`SDR`, with the same solver.

    Reduces X to a small weighted set of low-dimensional prototypes that preserve its geometry [1]_, and learns a map
    that embeds every sample among them.
    The objective is the Gromov-Wasserstein term and the out-of-sample map alone.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int or None, default=None
        Number m of prototypes. None gives every sample its own prototype (pure dimensionality reduction), but 200 in
        all where the affinity is sparse: by default, above 10,000 samples. With fewer prototypes than samples, some may
        end up unused, with weight zero.
    mu : float, default=1.0
        Weight of the squared distance between the prototypes and the out-of-sample map.
    map_reg : float, default=1e-2
        Ridge penalty (lambda) of the out-of-sample map.
    perplexity : float, default=30.0
        Effective number of neighbours in the input affinity; with fewer than 90 samples a third of them by default.
    loss : {"kl", "square"}, default="kl"
        Inner loss of the Gromov-Wasserstein term.
    input_kernel : {"rbf", "rq", "linear"} or callable, default="rbf"
        Kernel of the out-of-sample map.
    length_scale : {"median"}, float or array-like, default="median"
        Length scale of `input_kernel`. "median" gives ``exp(−|x − x'|² / median squared distance)``. Ignored if
        `input_kernel` is "linear" or a callable.
    metric : {"euclidean", "precomputed"}, default="euclidean"
        If "precomputed", X is a symmetric matrix of distances.
    affinity : {"auto", "dense", "sparse", "precomputed"}, int or array of shape (n_samples, n_samples), default="auto"
        How the affinity of the samples is stored, or a graph in its place, as in :class:`SDR`.
    init : {"auto", "identity", "random", "kmeans", "spectral"} or array-like, default="auto"
        Initial coupling: a name, prototype indices of shape (n_samples,), or shares of shape (n_samples,
        n_prototypes). "auto" is "identity" for ``n_prototypes=None``, else "spectral".
    solver : {"joint", "alternating"}, default="joint"
        "joint" eliminates the map in closed form; "alternating" with ``optimizer="adam"`` is the paper's algorithm.
    optimizer : {"lbfgs", "adam"}, default="lbfgs"
        Optimizer of the prototypes in the Z-step.
    beta : float in [0, 1], default=0.5
        Relaxation of the prototypes towards the map. Only used by ``solver="alternating"``.
    learning_rate : float, default=1e-3
        Step size of Adam. Only used by ``optimizer="adam"``.
    max_iter : int, default=50
        Maximum number of outer iterations. 0 keeps the initial coupling and optimizes the prototypes alone.
    max_inner_iter : int, default=100
        Maximum number of optimizer steps in one Z-step.
    tol : float, default=1e-6
        The fit ends when an outer iteration lowers the objective by less than this, relative to the objective.
    backend : {"auto", "numba", "numpy", "torch"} or "torch:DEVICE", default="auto"
        Implementation of the Z-step, as in :class:`SDR`.
    n_jobs : int or None, default=None
        Number of threads; None uses every core. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the initial coupling and of the initial prototypes.
    verbose : int, default=0
        If positive, show a progress bar.
    checkpoint : str, path-like or None, default=None
        File from which the same call resumes if the process ends early. Needs a `random_state`.

    Attributes
    ----------
    prototypes_, prototype_weights_, coupling_, labels_, embedding_, map_ : arrays and KernelMap
        Prototypes Z, their weights, the coupling T, hard labels, and the map with its embedding, as in :class:`SDR`.
    prototype_medoids_ : array of shape (n_prototypes,)
        Row index of the sample that represents each prototype: among its own samples, the nearest to their mean in X.
    history_, objective_, n_iter_, converged_, perplexity_ : DataFrame, float, int, bool and float
        The course of the fit, as in :class:`SDR`; so are `n_features_in_` and `feature_names_in_`.

    References
    ----------
    .. [1] H. Van Assel, C. Vincent-Cuaz, N. Courty, R. Flamary, P. Frossard, T. Vayer (2025). Distributional
       Reduction: Unifying Dimensionality Reduction and Clustering with Gromov-Wasserstein. TMLR. arXiv:2402.02239.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import DistR
    >>> X, _ = load_iris(return_X_y=True)
    >>> DistR(n_prototypes=10, random_state=0).fit(X).prototype_weights_.shape
    (10,)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DistR:
        """Fit to samples X, with weights as counts, as in :meth:`SDR.fit`; y is ignored."""
        self._fit(X, None, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the embedding of the samples, equal to ``fit(X).transform(X)``."""
        return self.fit(X, y, sample_weight).embedding_
