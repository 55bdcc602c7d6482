"""The objective J of the reduction, and its record in the history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distreduce._utils.typing import Array, Plan
from distreduce.embedding import EmbeddingProblem, Terms, plain
from distreduce.solver.oracle import SampleOracle


@dataclass(frozen=True)
class Record:
    """One row of the history: J, its four terms with their weights, the CKA (NaN if unused), and the cost.

    The names are the columns of ``history_`` and part of the file format.
    """

    iteration: int
    objective: float
    supervision: float
    gromov_wasserstein: float
    dependence: float
    projection: float
    cka: float
    n_evaluations: int = 0
    seconds: float = 0.0


def objective(
    oracle: SampleOracle,
    plan: Plan,
    prototypes: Array,
    problem: EmbeddingProblem,
    terms: Terms,
    constant: float,
    *,
    iteration: int,
) -> Record:
    r"""Assemble J at a coupling T and prototypes Z from its four terms.

    .. math::
        J(T, Z) = (1-\alpha)\sum_{ij} L_s\big(y_i, g_j^*(T)\big)\,T_{ij} + \alpha\,GW(Z; T) - \eta\,D(Z, Y)
                + \min_L \Big[\tfrac{\mu}{2}\sum_i h_i\,\big|(W^{-1}TZ)_i - (KL)_i\big|^2
                + \tfrac{\lambda}{2}\,\mathrm{Tr}(L^\top K L)\Big], \qquad W = \mathrm{diag}(h)

    For unit weights h the map's term is the paper's :math:`\tfrac{\mu}{2}\|TZ - KL\|^2`. L is eliminated in closed form
    in :mod:`distreduce.mapping`.

    The oracle evaluates the supervision term, the only one that needs the samples. The `problem` of the Z-step at T
    holds α, η and the targets of the dependence D; `terms` are GW without its `constant`, D, and the map's term, at Z.
    """
    # The four terms, each with its weight.
    supervision = (1 - problem.alpha) * oracle.supervision(plan)
    structure = problem.alpha * (terms.gromov_wasserstein + constant)  # the Z-step leaves the constant out; J needs it
    dependence = -problem.eta * terms.dependence
    total = supervision + structure + dependence + terms.projection
    # The CKA is reported even where η is 0 and it has no part in J.
    cka = np.nan
    if problem.target is not None and problem.dependence == "cka":
        cka = plain.dependence(problem, problem.kernel(prototypes))[0]
    return Record(iteration, total, supervision, structure, dependence, terms.projection, cka)
