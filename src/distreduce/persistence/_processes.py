"""The GPs of GPRegressor, GPClassifier, the paper's recipe and earlier formats in model files.

They hold training inputs and hyperparameters, never a factorisation. All targets share the inputs of a view, which are
stored once, and so do the smooth and the rough process on X. Whatever differs between targets is an array with one row
per target. :class:`SparseGP` exists for earlier formats only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from distreduce._utils.tensor_file import Node, Reader, Writer, require
from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.gp._classification import DirichletGP
from distreduce.gp._exact import ExactGP, factorise, find_batches
from distreduce.gp._experts import KERNELS
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._stack import Stack
from distreduce.gp._tails import Tails
from distreduce.kernels import RBF
from distreduce.persistence._schema import Floats, Found, Indices, KeyedList, Kind, Maybe, Record, Scalar, Sizes
from distreduce.persistence._stacks import STACKS, check_size, pack_stacks, reject_numerical_errors

SAME_INPUTS = {"rough_inputs": "inputs"}  # views that share the inputs of another one
HYPERPARAMETERS = ("length_scales", "signal", "noise")
# In the file of a sparse GP, besides its inducing points. Always in double precision: the inverse
# of `inner` magnifies rounding.
SPARSE = ("inner", "projected")


class Stacks(Kind):
    """The predictors of all targets: exact, of an earlier version sparse, or cross-fitted stacks."""

    def write(self, name: str, value: tuple[Stack, ...], write: Writer) -> Node:
        if value[0].calibration:
            return STACKS.write(name, pack_stacks(value), write)
        packed = _pack(value)
        return (SPARSE_STACKS if packed["targets"] is None else EXACT_STACKS).write(name, packed, write)

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Found:
        if isinstance(node, dict) and "views" in node:
            return dict(STACKS.read(name, node, read, sizes))
        exact = isinstance(node, dict) and node.get("targets") is not None
        return dict((EXACT_STACKS if exact else SPARSE_STACKS).read(name, node, read, sizes))


def _pack(stacks: tuple[Stack, ...]) -> Found:
    """Collect the arrays of the predictors, with one row per target."""
    # By view, then by target.
    gps: dict[str, list[Any]] = {view: [stack.processes[view] for stack in stacks] for view in stacks[0].processes}
    exact = isinstance(next(iter(gps.values()))[0], ExactGP)  # all processes of a model are of one kind
    targets = np.stack([gp.target for gp in next(iter(gps.values()))], axis=1) if exact else None
    weights = next(iter(gps.values()))[0].weights if exact else None
    processes = {}
    for view, each in gps.items():
        # Stored once: all targets share the inputs, and some views those of another.
        inputs = None if view in SAME_INPUTS else each[0].inputs if exact else each[0].inducing
        weight = np.array([stack.weights[view] for stack in stacks])
        scales = {name: np.array([getattr(gp.hyperparameters, name) for gp in each]) for name in HYPERPARAMETERS}
        inner = {} if exact else {name: np.array([getattr(gp, name) for gp in each]) for name in SPARSE}
        processes[view] = {"inputs": inputs, "weight": weight, **scales, **inner}
    parts = [stack.tails.parts for stack in stacks]
    two = all(len(own) == 2 for own in parts)  # a model of format 2
    tails = np.array([[wide[0], narrow[2], wide[2]] for narrow, wide in parts]) if two else None
    found = {"targets": targets, "tails": tails, "weights": weights, "processes": processes}
    return found | {"variance_scale": np.array([stack.variance_scale for stack in stacks])}


def _check_stacks(found: Found) -> None:
    processes = found["processes"]
    # Give views without inputs those of the view that they share with.
    for view, arrays in processes.items():
        if arrays["inputs"] is None:
            shared = processes.get(SAME_INPUTS.get(view, ""), {}).get("inputs")
            require(shared is not None, f"the process {view!r} has no inputs")
            arrays["inputs"] = shared
    weights = np.array([arrays["weight"] for arrays in processes.values()])
    require(bool((abs(weights.sum(axis=0) - 1) < 1e-9).all()), "the weights of the processes do not sum to 1")
    if found.get("tails") is not None:
        share, narrow, wide = found["tails"].T  # a share of errors of variance `wide`, the others of variance `narrow`
        sound = (share < 1) & (narrow > 0) & (wide > 0) & (abs((1 - share) * narrow + share * wide - 1) < 1e-6)
        require(bool(sound.all()), "the tails are not a distribution of variance 1")
    # Exact GPs: limit the memory of the factorisations before any is computed.
    if found["targets"] is not None:
        n, n_targets = found["targets"].shape
        check_size(n, n * n_targets * len(processes))


def _stacks(exact: bool) -> Record:
    per_target = Floats(("t",), above=0.0)
    process = Record(
        {
            "inputs": Maybe(Floats(("n", "w"), compact=exact)),
            "weight": Floats(("t",), least=0.0),
            "length_scales": Floats(("t", "w"), above=0.0),
            "signal": per_target,
            "noise": per_target,
            **({} if exact else {"inner": Floats(("t", "n", "n")), "projected": Floats(("t", "n"))}),
        }
    )
    return Record(
        {
            "variance_scale": per_target,
            "targets": Floats(("n", "t"), compact=True) if exact else Maybe(),
            "tails": Maybe(Floats(("t", 3), least=0.0)),  # of format 2
            "weights": Maybe(Floats(("n",), above=0.0)),
            "processes": KeyedList("view", KERNELS, process),
        },
        optional=("tails", "weights"),  # not in format 1
        check=_check_stacks,
    )


EXACT_STACKS, SPARSE_STACKS = _stacks(exact=True), _stacks(exact=False)


def stack_widths(parts: Found) -> dict[str, int]:
    """Return the number of columns of each view."""
    if "views" in parts:
        return {view: arrays["inputs"].shape[1] for view, arrays in parts["views"].items()}
    return {view: arrays["length_scales"].shape[1] for view, arrays in parts["processes"].items()}


def build_stacks(parts: Found) -> tuple[Stack, ...]:
    """Build the predictors of all targets; raise RefusedError unless each can predict."""
    with reject_numerical_errors():
        stacks = tuple(_build_stack(parts, t) for t in range(len(parts["variance_scale"])))
        for view, arrays in parts["processes"].items():
            # One prediction each: with finite parameters, predictions can still overflow.
            moments = [stack.processes[view].moments(arrays["inputs"][:1]) for stack in stacks]
            require(bool(np.isfinite(moments).all()), f"the GP on {view} predicts NaN or infinite values")
    return stacks


def _build_stack(parts: Found, t: int) -> Stack:
    views, tails = parts["processes"], parts.get("tails")
    processes = {view: _build_process(view, arrays, parts, t) for view, arrays in views.items()}
    weights = {view: float(arrays["weight"][t]) for view, arrays in views.items()}
    shape = Tails()
    if tails is not None:  # of format 2: a narrow and a wide Gaussian around zero
        share, narrow, wide = map(float, tails[t])
        shape = Tails(((1.0 - share, 0.0, narrow), (share, 0.0, wide)))
    return Stack(processes, weights, float(parts["variance_scale"][t]), shape)


def _build_process(view: str, arrays: dict[str, Array], parts: Found, t: int) -> Any:
    found = Hyperparameters(arrays["length_scales"][t], float(arrays["signal"][t]), float(arrays["noise"][t]))
    if parts["targets"] is not None:
        return ExactGP(arrays["inputs"], parts["targets"][:, t], found, KERNELS[view], parts.get("weights"))
    return SparseGP(arrays["inputs"], found, arrays["inner"][t], arrays["projected"][t])


def latent_gp(width: str) -> Record:
    """Return the schema of the GP of a classifier, whose inputs have `width` columns."""
    positive = Scalar(float, positive=True)
    return Record(
        {
            "inputs": Floats(("n", width), compact=True),
            "labels": Indices(("n",), below="c"),
            "alpha_epsilon": positive,
            "length_scales": Floats((width,), above=0.0),
            "signal": positive,
            "noise": positive,
        },
        pack=lambda gp: vars(gp) | vars(gp.hyperparameters),
    )


def build_latent_gp(parts: Found, n_classes: int, draws: Array) -> DirichletGP:
    """Build the GP of a classifier; raise RefusedError unless it can predict."""
    inputs = parts["inputs"]
    check_size(len(inputs), len(inputs) + n_classes)
    hyperparameters = Hyperparameters(*(parts[name] for name in HYPERPARAMETERS))
    with reject_numerical_errors():
        gp = DirichletGP(inputs, parts["labels"], n_classes, parts["alpha_epsilon"], hyperparameters)
        # One prediction, for the same reason as in build_stacks.
        finite = np.isfinite(gp.probabilities(inputs[:1], draws)).all()
        require(bool(finite), "gp_ predicts NaN or infinite values")
    return gp


JITTER = 1e-8  # on the covariance of the inducing points, relative to the signal


@dataclass(frozen=True)
class SparseGP:
    r"""Posterior through m inducing points; prior mean 0.

    With :math:`K_{mm} = LL^\top`, :math:`A = L^{-1}K_{mn}/\sigma` and :math:`B = I + AA^\top`,

    .. math::
        m(x) = a_x^\top B^{-1} A y/\sigma, \qquad v(x) = s + \sigma^2 - a_x^\top a_x + a_x^\top B^{-1} a_x, \qquad
        a_x = L^{-1}k_{mx}
    """

    inducing: Array  # (m, d), inducing points
    hyperparameters: Hyperparameters
    inner: Array  # B (m, m)
    projected: Array  # A y/σ (m,)

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance of the target (noise included) at each row, in batches of bounded size."""
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            LB = factorise(self.inner, 0.0)
            solution = solve_triangular(LB, self.projected, lower=True)
        mean, variance = np.empty(len(inputs)), np.empty(len(inputs))
        prior = self.hyperparameters.signal + self.hyperparameters.noise
        for rows in find_batches(len(inputs), len(self.inducing)):
            a = whiten(self.inducing, inputs[rows], self.hyperparameters)
            half = solve_triangular(LB, a, lower=True, check_finite=False)
            mean[rows] = half.T @ solution
            variance[rows] = prior - np.einsum("ij,ij->j", a, a) + np.einsum("ij,ij->j", half, half)
        return mean, np.maximum(variance, self.hyperparameters.noise)

    def covariance(self, inputs: Array) -> Array:
        """Joint covariance (t, t) of the target at the rows, noise included."""
        a = whiten(self.inducing, inputs, self.hyperparameters)
        half = solve_triangular(factorise(self.inner, 0.0), a, lower=True)
        prior = self.hyperparameters.signal * RBF(1.0)(inputs / self.hyperparameters.length_scales)
        return np.asarray(prior - a.T @ a + half.T @ half + self.hyperparameters.noise * np.eye(len(inputs)))


def whiten(inducing: Array, inputs: Array, found: Hyperparameters) -> Array:
    """Return L⁻¹ K(Z, x) (m, t), with K(Z, Z) = L Lᵀ."""
    Z, X = inducing / found.length_scales, inputs / found.length_scales
    L = factorise(found.signal * RBF(1.0)(Z), JITTER * found.signal)
    return np.asarray(solve_triangular(L, found.signal * RBF(1.0)(Z, X), lower=True, check_finite=False))
