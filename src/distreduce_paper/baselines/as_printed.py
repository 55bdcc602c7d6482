"""The paper's reduction to prototypes as it is printed, in plain NumPy and POT, with a switch for every open reading.

The text leaves open how several symbols are normalised and how the solvers stop. Where it is silent, the default is
what the public code of DistR [1]_ does, on which the paper's implementation builds. The library's solver is not used.

References
----------
.. [1] Van Assel et al. (2025). Distributional Reduction: Unifying Dimensionality Reduction and Clustering with
   Gromov-Wasserstein. Transactions on Machine Learning Research. arXiv:2402.02239.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import ot
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import PCA
from sklearn.manifold import spectral_embedding

from distreduce.affinity import symmetric_entropic_affinity
from distreduce.dependence import center
from distreduce_paper.problems import Array

NO_SELF = 1e-12  # ω_kk where the diagonal is left out, as the public code has it
ALPHA, OUTER, INNER = 0.2, 10, 1000  # the paper's α and inner steps, and DistR's outer iterations
INNER_TOL = 1e-6  # relative change of the loss at which the public code leaves the inner loop
COUPLING_STEPS = 200  # of POT's solver


@dataclass(frozen=True)
class Reading:
    """One way to read the paper; the defaults are the literal one.

    Attributes
    ----------
    mass : {"one", "1/n"}
        Row sums of T. The text says 1/n, and the public code of DistR has 1.
    input_sum : {"rows", "total"}
        Whether each row of C sums to one, or the whole matrix.
    diagonal : {"both", "X", "none"}
        Which of C and C̄ keep their diagonal: both, C alone, or neither.
    affinity : {"converged", "adam"}
        C solved to 1e-6, or by 500 steps of Adam on the dual with the paper's learning rates.
    inner_loss : {"kl", "kl-", "square"}
        L_u; "kl-" leaves out its marginal terms in the Z-step.
    gw : {"alpha", "one"}
        Weight of GW in the Z-step: α as in the objective, or 1 ("the sum of the GW and CKA terms").
    target_loss : {"ce", "square"}
        L_s: the modified cross-entropy, or squares of one-hot targets.
    floor : float
        Smallest share inside the logarithm of the cross-entropy.
    refresh : {"outer", "step"}
        Whether g*(T) is computed once before POT's solver runs, or before each of its steps.
    solver : {"cg", "mirror"}
        POT's conditional gradient, or its mirror descent.
    order : {"ZT", "TZ"}
        Which step comes first; the other one is the last before the loss is judged, and before the end.
    lr : float
        Learning rate of Adam.
    outer : int
        Number of outer iterations at most.
    inner_tol : float
        Relative change of the loss that ends the inner loop.
    init : {"normal", "pca", "spectral"}
        Where Z starts.
    columns : {"unit", "normalised"}
        Tᵀ K_Y T with T as it is, or with columns that sum to one.
    centred : bool
        Whether CKA centres its kernels; the formula is printed without.
    length : {"one", "median"}
        Squared length scale of the RQ kernel: 1, or the median squared distance of the prototypes.
    stop : {"rises", "never"}
        Whether the outer loop ends when the loss rises.
    """

    mass: str = "one"
    input_sum: str = "rows"
    diagonal: str = "both"
    affinity: str = "converged"
    inner_loss: str = "kl"
    gw: str = "alpha"
    target_loss: str = "ce"
    floor: float = 1e-10
    refresh: str = "outer"
    solver: str = "cg"
    order: str = "ZT"
    lr: float = 1e-3
    outer: int = OUTER
    inner_tol: float = INNER_TOL
    init: str = "normal"
    columns: str = "unit"
    centred: bool = False
    length: str = "one"
    stop: str = "rises"

    @classmethod
    def parse(cls, words: str) -> Reading:
        """Read "lr=0.1 centred=True", the switches that differ from the literal reading."""
        kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(cls)}
        pairs = dict(word.split("=") for word in words.split())
        read: dict[str, Any] = {}
        for name, text in pairs.items():
            read[name] = text == "True" if kinds[name] is bool else kinds[name](text)
        return cls(**read)

    def words(self) -> str:
        """Return the switches that differ from the literal reading, sorted; the inverse of `parse`."""
        literal = Reading()
        changed = [field.name for field in fields(self) if getattr(self, field.name) != getattr(literal, field.name)]
        return " ".join(f"{name}={getattr(self, name)}" for name in sorted(changed))

    def without_dependence(self) -> Reading:
        """Return what is left of the reading when η = 0: all switches of CKA at their defaults."""
        return replace(self, columns="unit", centred=False, length="one", gw="alpha")


def fit_as_printed(X: Array, y: Array, m: int, reading: Reading, *, perplexity: float, seed: int, eta: float) -> Any:
    """Return Z (m, 2), T (n, m) with rows that sum to one, and the number of outer iterations.

    Minimises (1 − α) Σ L_s(y_i, g_j*(T)) T_ij + α GW(Z; T) − η CKA(Z, TᵀK_Y T) over T and Z in turn.
    """
    C, labels = _prepare(X.tobytes(), X.shape, m, reading.diagonal, reading.affinity, perplexity, seed)
    C = C / len(C) if reading.input_sum == "total" else C
    Y = (np.unique(y)[None, :] == y[:, None]).astype(float)
    row = 1.0 if reading.mass == "one" else 1.0 / len(X)
    T = row * np.eye(m)[labels]
    if reading.solver == "mirror":  # whose steps keep zeros: DistR's start is then half uniform
        T = (T + row / m) / 2
    Z = _start(X, C, T, reading.init, seed)
    adam, best = Adam(Z.shape, reading.lr), np.inf
    for done in range(1, reading.outer + 1):  # noqa: B007  (returned)
        if reading.order == "TZ":
            T = _update_coupling(C, Y, Z, T, row, reading)
        Z = _update_prototypes(_EmbeddingLoss(C, Y, T, reading, eta), Z, adam, reading.inner_tol)
        if reading.order == "ZT":
            T = _update_coupling(C, Y, Z, T, row, reading)
        value = _EmbeddingLoss(C, Y, T, reading, eta)(Z)[0]
        if value > best and reading.stop == "rises":
            break  # the public code keeps T and Z as they are here
        best = value
    return Z, T / row, done


@lru_cache(maxsize=8)
def _prepare(
    data: bytes, shape: tuple[int, int], m: int, diagonal: str, affinity: str, perplexity: float, seed: int
) -> tuple[Array, Array]:
    """Return C with row sums of one, and the spectral clusters of the samples."""
    X = np.frombuffer(data).reshape(shape)
    D = squareform(pdist(X, "sqeuclidean"))
    C = symmetric_entropic_affinity(D, perplexity).matrix if affinity == "converged" else _adam_affinity(D, perplexity)
    if diagonal == "none":
        C = C - np.diag(np.diag(C))
        C *= len(C) / C.sum()
    clusters = SpectralClustering(m, affinity="precomputed", n_init=10, random_state=seed, assign_labels="kmeans")
    return C, clusters.fit(C).labels_


def _adam_affinity(D: Array, perplexity: float) -> Array:
    """500 steps of Adam on the dual of the symmetric entropic affinity; the paper's rate if it does not diverge."""
    for lr in (0.1, 0.01):
        dual, adam = np.stack([np.ones(len(D)), np.zeros(len(D))]), Adam((2, len(D)), lr)
        for _ in range(500):
            eps, mu = dual
            log_C = (mu[:, None] + mu - 2 * D) / np.maximum(eps[:, None] + eps, 1e-300)
            C = np.exp(np.minimum(log_C, 50.0))
            entropy = C.sum(axis=1) - (C * log_C).sum(axis=1)
            dual = dual - adam.step(np.stack([entropy - np.log(perplexity) - 1, C.sum(axis=1) - 1]))
            dual[0] = np.maximum(dual[0], 0.0)
        if np.isfinite(C).all() and C.max() <= 1.5:
            return np.asarray((C + C.T) / 2)
    raise FloatingPointError("Adam on the dual diverges with both learning rates.")


def _start(X: Array, C: Array, T: Array, init: str, seed: int) -> Array:
    if init == "normal":
        return np.random.default_rng(seed).standard_normal((T.shape[1], 2))
    if init == "pca":
        places = PCA(2, random_state=0).fit_transform(X)
    else:
        places = spectral_embedding(C, n_components=2, random_state=0)
    means = T.T @ (places / places.std()) / T.sum(axis=0)[:, None]
    return np.asarray(means)


class Adam:
    """Adam with its usual constants. Its moments live on from one outer iteration to the next."""

    def __init__(self, shape: tuple[int, ...], lr: float) -> None:
        self.lr, self.t, self.mean, self.square = lr, 0, np.zeros(shape), np.zeros(shape)

    def step(self, gradient: Array) -> Array:
        self.t += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        root = np.sqrt(self.square / (1 - 0.999**self.t)) + 1e-8
        return np.asarray(self.lr * self.mean / (1 - 0.9**self.t) / root)


def _update_prototypes(loss: _EmbeddingLoss, Z: Array, adam: Adam, tol: float) -> Array:
    """The Z-step: at most 1000 steps of Adam."""
    before = np.nan
    for i in range(INNER):
        value, gradient = loss(Z)
        Z = Z - adam.step(gradient)
        if i > 1 and abs(value - before) < tol * abs(before):
            break
        before = value
    return Z


class _EmbeddingLoss:
    """Weight · GW(Z; T) − η CKA(Z, TᵀK_Y T) with its gradient; n is summed out first.

    All matrices are symmetric: those of (m, m) entries are held as their diagonal and the pairs k < l.
    """

    def __init__(self, C: Array, Y: Array, T: Array, reading: Reading, eta: float) -> None:
        self.reading, self.eta = reading, eta
        self.weight = ALPHA if reading.gw == "alpha" else 1.0
        self.w_self = 1.0 if reading.diagonal == "both" else NO_SELF
        q, A = T.sum(axis=0), T.T @ C @ T
        B = target_kernel(Y, T, normalised=reading.columns == "normalised", centred=reading.centred)
        self.m, self.total, self.pairs = len(q), A.sum(), np.triu_indices(len(q), 1)
        self.A, self.qq, self.B = (matrix[self.pairs] for matrix in (A, np.outer(q, q), B))
        self.diagonals = np.trace(A), q @ q, np.trace(B)

    def __call__(self, Z: Array) -> tuple[float, Array]:
        D = pdist(Z, "sqeuclidean")
        value, slope = self._structure(D)
        value, slope = self.weight * value, self.weight * slope
        if self.eta:
            aligned, direction = self._alignment(D)
            value, slope = value - self.eta * aligned, slope - self.eta * direction
        matrix = squareform(slope)
        return value, 4.0 * (matrix.sum(axis=1)[:, None] * Z - matrix @ Z)

    def _structure(self, D: Array) -> tuple[float, Array]:
        """GW without its constant, and its derivative by D; C̄ = ω / Σω with ω = 1 / (1 + D), so dω/dD = −ω²."""
        w, w_self = 1.0 / (1.0 + D), self.w_self
        S, (trace, own, _) = self.m * w_self + 2 * w.sum(), self.diagonals
        if self.reading.inner_loss == "square":
            cross, squares = trace * w_self + 2 * self.A @ w, own * w_self**2 + 2 * self.qq @ w**2
            slope = 2 * (self.qq * w / S - squares / S**2 - self.A + cross / S) / S
            return float(squares / S**2 - 2 * cross / S), -slope * w**2
        value = self.total * np.log(S) - trace * np.log(w_self) - 2 * self.A @ np.log(w)
        slope = self.total / S - self.A / w
        if self.reading.inner_loss == "kl":
            mass = own * w_self + 2 * self.qq @ w
            value, slope = value + mass / S, slope + self.qq / S - mass / S**2
        return float(value), -slope * w**2

    def _alignment(self, D: Array) -> tuple[float, Array]:
        """CKA of the rational quadratic kernel with α = 1, and its derivative by D for a given length scale."""
        K, squared_length = rational_quadratic(D, self.reading.length)
        used, used_self = K, np.ones(self.m)
        if self.reading.centred:
            means = (squareform(K).sum(axis=1) + 1.0) / self.m
            used = K - means[self.pairs[0]] - means[self.pairs[1]] + means.mean()
            used_self = 1.0 - 2 * means + means.mean()
        norm = np.sqrt(used_self @ used_self + 2 * used @ used)
        aligned = (self.diagonals[2] + 2 * K @ self.B) / norm  # B is centred if K is to be, and has norm one
        by_kernel = self.B / norm - aligned * used / norm**2
        return float(aligned), -0.5 / squared_length * K**2 * by_kernel  # dK/dD = −K²/(2l²)


def rational_quadratic(D: Array, length: str) -> tuple[Array, float]:
    """Return (1 + D / 2l²)⁻¹ of the squared distances D of all pairs, and l²."""
    squared_length = 1.0 if length == "one" else float(np.median(D))
    return 1.0 / (1.0 + D / (2.0 * squared_length)), squared_length


def target_kernel(Y: Array, T: Array, *, normalised: bool, centred: bool) -> Array:
    """Tᵀ K_Y T of the delta kernel, divided by its Frobenius norm."""
    sums = T.T @ Y
    if normalised:
        sums = sums / np.maximum(T.sum(axis=0), 1e-300)[:, None]
    K = center(sums @ sums.T) if centred else sums @ sums.T
    return np.asarray(K / np.sqrt((K**2).sum()))


def _update_coupling(C: Array, Y: Array, Z: Array, T: Array, row: float, reading: Reading) -> Array:
    """The T-step: POT's semi-relaxed FGW, with the prototype targets of the coupling so far."""
    D = squareform(pdist(Z, "sqeuclidean"))
    w = 1.0 / (1.0 + D)
    if reading.diagonal != "both":
        np.fill_diagonal(w, NO_SELF)
    loss, Cbar = "square_loss" if reading.inner_loss == "square" else "kl_loss", w / w.sum()
    if reading.solver == "mirror":
        solve = ot.gromov.entropic_semirelaxed_fused_gromov_wasserstein
        options: dict[str, Any] = {"loss_fun": loss, "alpha": ALPHA, "symmetric": True, "epsilon": 1.0, "G0": T}
        costs, masses = _target_costs(Y, T, reading), np.full(len(C), row)
        return np.asarray(solve(costs, C, Cbar, masses, max_iter=COUPLING_STEPS, **options))
    if reading.refresh == "outer":
        return descend_coupling(_target_costs(Y, T, reading), C, Cbar, T, loss, COUPLING_STEPS)
    for _ in range(COUPLING_STEPS // 4):
        before, T = T, descend_coupling(_target_costs(Y, T, reading), C, Cbar, T, loss, 1)
        if np.abs(T - before).sum() < 1e-6 * T.sum():
            break
    return T


def descend_coupling(M: Array, C: Array, Cbar: Array, T: Array, loss: str, steps: int) -> Array:
    """Minimise (1 − α) ⟨M, T⟩ + α Σ L(C_ij, C̄_kl) T_ik T_jl with POT's conditional gradient, its steps and its stop.

    L(a, b) = f(b) − a h(b) but for a constant. POT forms C T h(C̄) anew several times in a step. Here it is kept: it
    changes by the step's share of C V h(C̄), and the vertex V has one entry per row. That takes a tenth of the time.
    Where two prototypes cost exactly the same, POT shares the row between them and this takes the first.
    """
    h, f = (2 * Cbar, Cbar**2) if loss == "square_loss" else (np.log(Cbar + 1e-18), Cbar)
    fixed = C**2 if loss == "square_loss" else C * np.log(C + 1e-18) - C  # POT's stop needs the constant too
    mass, rows, T = T.sum(axis=1), np.arange(len(C)), T.copy()
    M, G = (1 - ALPHA) * M, T.sum(axis=0) @ f - C @ T @ h
    value = (M * T).sum() + ALPHA * ((fixed @ mass) @ mass + (G * T).sum())
    for _ in range(steps):
        vertex = np.argmin(M + 2 * ALPHA * G, axis=1)
        V = csr_array((mass, (vertex, rows)), shape=T.shape[::-1])  # (m, n)
        change = V.sum(axis=1) @ f - (V @ C).T @ h - G
        # The objective along T + s (V − T) is value + b s + a s².
        slope, cross = M + ALPHA * G, (change * T).sum()
        a = ALPHA * (change[rows, vertex] @ mass - cross)
        b = slope[rows, vertex] @ mass - (slope * T).sum() + ALPHA * cross
        s = min(1.0, max(0.0, -b / (2 * a))) if a > 0 else float(a + b < 0)
        T, G = (1 - s) * T, G + s * change
        T[rows, vertex] += s * mass
        value += a * s**2 + b * s
        if abs(a * s**2 + b * s) < 1e-9 * max(1.0, abs(value)):
            break
    return T


def _target_costs(Y: Array, T: Array, reading: Reading) -> Array:
    """L_s(y_i, g_j*(T)) for all samples and prototypes; an empty prototype has no class, and all floors."""
    g = (T.T @ Y) / np.maximum(T.sum(axis=0), 1e-300)[:, None]
    if reading.target_loss == "square":
        return np.asarray((Y**2).sum(axis=1)[:, None] + (g**2).sum(axis=1) - 2 * Y @ g.T)
    # Of a one-hot y: −log g_y + Σ g − 1.
    return np.asarray(-Y @ np.log(g + reading.floor).T + g.sum(axis=1) - 1.0)
