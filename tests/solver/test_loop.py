"""The outer loop: J falls, is what the paper says it is, and the paper's own algorithm is there by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import distreduce.solver.dense
import distreduce.solver.objective
from distreduce._utils.threads import single_threaded_blas
from distreduce.affinity import symmetric_entropic_affinity
from distreduce.coupling.problem import hard_plan
from distreduce.kernels import RBF, RationalQuadratic
from distreduce.mapping import MapRegression
from distreduce.sharding.sample import Sample
from distreduce.solver.dense import DenseOracle
from distreduce.solver.loop import Monitor, solve
from distreduce.solver.problem import Settings

MU, LAM = 1.5, 0.1
DEFAULTS = Settings(alpha=0.3, eta=5.0, max_iter=6, max_inner_iter=40)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: on small arrays threads of BLAS only wait for one another."""
    with single_threaded_blas():
        yield


def random_problem(seed=0, *, n=30, m=7, weighted=False, unknown=False, with_map=True) -> DenseOracle:
    """Points with one target; as many prototypes as samples is the balanced problem."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(n, 1))
    if unknown:
        Y[::4] = np.nan
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    assignment = np.arange(n) if m == n else rng.permutation(np.arange(n) % m)
    return DenseOracle(
        sample=Sample(X, weights, targets=Y, kernel_targets=Y),
        affinity=symmetric_entropic_affinity(cdist(X, X, "sqeuclidean"), 5.0, weights).matrix,
        plan=hard_plan(assignment, weights, m),
        prototypes=0.1 * rng.normal(size=(m, 2)),
        target_kernel=RBF(),
        projection=MapRegression(input_kernel(X), weights, MU, LAM) if with_map else None,
    )


def one_to_one(problem):
    return problem.plan.shape[0] == problem.plan.shape[1]


def input_kernel(X):
    return np.exp(-0.5 * cdist(X, X, "sqeuclidean"))


def inputs(seed, n=30):
    return np.random.default_rng(seed).normal(size=(n, 3))


def centred_cka(K, K_Y, w):
    """CKA with weights, by explicit centring matrices."""
    H = np.eye(len(w)) - np.outer(np.ones(len(w)), w / w.sum())
    A, B = H @ K @ H.T, H @ K_Y @ H.T
    return (w @ (A * B) @ w) / np.sqrt((w @ A**2 @ w) * (w @ B**2 @ w))


def whole_objective(problem, settings, found, K):
    """J from the definitions alone: n×n×m×m losses, barycentres, CKA, and the map's minimum by least squares."""
    T, Z, h = found.plan.toarray(), found.prototypes, problem.sample.weights
    q = T.sum(axis=0)
    reference = q if one_to_one(problem) else (q > 0).astype(float)
    w = 1.0 / (1.0 + cdist(Z, Z, "sqeuclidean"))
    C, C_bar = problem.affinity, w / (reference @ w @ reference)
    a, b = C[:, :, None, None], C_bar[None, None]
    losses = a * np.log(a / b) - a + b if settings.loss == "kl" else (a - b) ** 2
    J = settings.alpha * np.einsum("ijkl,ik,jl->", losses, T, T)
    known = ~np.isnan(problem.sample.targets[:, 0])
    carried = T[known].sum(axis=0)
    means = T[known].T @ problem.sample.targets[known] / np.where(carried > 0, carried, 1.0)[:, None]
    J += (1 - settings.alpha) * (T[known] * 0.5 * cdist(problem.sample.targets[known], means, "sqeuclidean")).sum()
    omega = carried if one_to_one(problem) else (carried > 0).astype(float)
    K_Z, K_Y = 1.0 / (1.0 + 0.5 * cdist(Z, Z, "sqeuclidean")), np.exp(-0.5 * cdist(means, means, "sqeuclidean"))
    J -= settings.eta * centred_cka(K_Z, K_Y, omega)
    F = (T / h[:, None]) @ Z
    L = np.linalg.solve(MU * K @ np.diag(h) @ K + LAM * K, MU * K @ (h[:, None] * F))
    return J + 0.5 * MU * (h[:, None] * (F - K @ L) ** 2).sum() + 0.5 * LAM * np.trace(L.T @ K @ L)


VARIANTS = pytest.mark.parametrize(
    "options", [{}, {"m": 30}, {"weighted": True}, {"m": 30, "weighted": True}, {"unknown": True}], ids=str
)
LOSSES = pytest.mark.parametrize("loss", ["kl", "square"])


@LOSSES
@VARIANTS
def test_objective_never_rises(options, loss):
    for seed in range(3):
        found = solve(random_problem(seed, **options), replace(DEFAULTS, loss=loss))
        history = [record.objective for record in found.history]
        assert len(history) > 1 and max(np.diff(history)) <= 0


@LOSSES
@VARIANTS
def test_last_record_is_the_objective_of_the_result(options, loss):
    problem, settings = random_problem(1, **options), replace(DEFAULTS, loss=loss, max_iter=3)
    found = solve(problem, settings)
    expected = whole_objective(problem, settings, found, input_kernel(inputs(1)))
    assert found.objective == pytest.approx(expected, rel=1e-8)


def test_terms_add_up_to_the_objective():
    for record in solve(random_problem(2), DEFAULTS).history:
        terms = record.supervision + record.gromov_wasserstein + record.dependence + record.projection
        assert record.objective == pytest.approx(terms, rel=1e-12)
        assert record.dependence == pytest.approx(-DEFAULTS.eta * record.cka, rel=1e-12)


def test_result_is_better_than_its_start():
    problem = random_problem(3)
    found = solve(problem, DEFAULTS)
    start = whole_objective(problem, DEFAULTS, problem, input_kernel(inputs(3)))
    assert found.objective < found.history[0].objective < start


@pytest.mark.parametrize("m", [7, 30])
def test_plans_keep_their_marginals(m):
    problem = random_problem(4, m=m, weighted=True)
    plan = solve(problem, DEFAULTS).plan
    np.testing.assert_allclose(plan.sum(axis=1), problem.sample.weights, rtol=1e-10)
    if one_to_one(problem):
        np.testing.assert_allclose(plan.sum(axis=0), problem.plan.sum(axis=0), rtol=1e-10)


def test_no_targets_no_map():
    problem = random_problem(5, with_map=False)
    problem = replace(problem, sample=Sample(None, problem.sample.weights), target_kernel=None)
    last = solve(problem, DEFAULTS).history[-1]
    assert last.supervision == last.dependence == last.projection == 0.0 and np.isnan(last.cka)
    assert last.objective == last.gromov_wasserstein


def test_without_eta_the_cka_is_reported_all_the_same():
    record = solve(random_problem(6), replace(DEFAULTS, eta=0.0)).history[-1]
    assert record.dependence == 0.0 and 0 < record.cka < 1


def relaxed_in_the_paper(problem, Z, K, beta):
    """One move towards the map, as the paper writes it with T of unit row masses."""
    T = problem.plan.toarray()
    fitted = K @ np.linalg.solve(MU * K + LAM * np.eye(len(K)), MU * T @ Z)
    if one_to_one(problem):
        return (1 - beta) * Z + beta * fitted
    return np.linalg.inv(np.eye(T.shape[1]) + beta * T.T @ T) @ (Z + beta * T.T @ fitted)


@pytest.mark.parametrize("m", [7, 30])
def test_one_iteration_of_the_papers_algorithm(m):
    """Adam on the terms without the map, then the printed move towards it."""
    torch = pytest.importorskip("torch")
    problem = random_problem(7, m=m)
    settings = replace(
        DEFAULTS, solver="alternating", optimizer="adam", learning_rate=0.02, max_iter=0, max_inner_iter=5, tol=0.0
    )
    T, C, K = (torch.tensor(np.asarray(a)) for a in (problem.plan.toarray(), problem.affinity, input_kernel(inputs(7))))
    means = torch.tensor(problem.sample.targets).T @ T / T.sum(dim=0)
    K_Y = torch.exp(-0.5 * (means.T - means) ** 2)
    H = torch.eye(m, dtype=torch.float64) - 1.0 / m
    z = torch.tensor(problem.prototypes, requires_grad=True)
    adam, seen = torch.optim.Adam([z], lr=0.02), []
    for _ in range(6):
        d2 = ((z[:, None] - z[None]) ** 2).sum(dim=2)
        C_bar = 1 / (1 + d2)
        C_bar = C_bar / C_bar.sum()
        q = T.sum(dim=0)
        structure = q @ C_bar @ q - ((T.T @ C @ T) * C_bar.log()).sum()
        K_Z = H @ (1 / (1 + d2 / 2)) @ H
        aligned = (K_Z * (H @ K_Y @ H)).sum() / (K_Z.norm() * (H @ K_Y @ H).norm())
        loss = settings.alpha * structure - settings.eta * aligned
        seen.append((loss.item(), z.detach().numpy().copy()))
        adam.zero_grad()
        loss.backward()
        adam.step()
    lowest = min(seen, key=lambda pair: pair[0])[1]
    expected = relaxed_in_the_paper(problem, lowest, K.numpy(), settings.beta)
    np.testing.assert_allclose(solve(problem, settings).prototypes, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
@pytest.mark.parametrize("m", [7, 30])
def test_the_papers_algorithm_descends(m, optimizer):
    settings = replace(DEFAULTS, solver="alternating", optimizer=optimizer, learning_rate=0.01)
    history = [record.objective for record in solve(random_problem(8, m=m), settings).history]
    assert max(np.diff(history), default=0.0) <= 0


def prototypes_affinity(monkeypatch, problem, settings):
    """C̄ that the first T-step sees."""
    seen = []
    original = distreduce.solver.objective.structure_matrices

    def watched(affinity, loss):
        seen.append(affinity)
        return original(affinity, loss)

    monkeypatch.setattr(distreduce.solver.objective, "structure_matrices", watched)
    solve(problem, replace(settings, max_iter=1))
    return seen[0]


@pytest.mark.parametrize(("m", "mean"), [(4, 1 / 64), (8, 1 / 64), (16, 1 / 256)])
def test_affinities_of_few_prototypes_have_the_mean_of_the_inputs(monkeypatch, m, mean):
    """1/n where n > m²; else 1/m², as in the paper, which is less."""
    affinity = prototypes_affinity(monkeypatch, random_problem(12, n=64, m=m), DEFAULTS)
    assert affinity.mean() == pytest.approx(mean)


def test_affinities_of_the_papers_algorithm_sum_to_one(monkeypatch):
    affinity = prototypes_affinity(monkeypatch, random_problem(12, n=64, m=4), replace(DEFAULTS, solver="alternating"))
    assert affinity.sum() == pytest.approx(1.0)


def linear_costs(monkeypatch, problem, settings):
    """The linear costs that the T-steps of a run are given, with the embedding of the first."""
    seen = []
    original = distreduce.solver.dense.solve_semirelaxed

    def watched(coupling, *args, **options):
        seen.append(coupling.linear)
        return original(coupling, *args, **options)

    first = solve(problem, replace(settings, max_iter=0)).prototypes
    monkeypatch.setattr(distreduce.solver.dense, "solve_semirelaxed", watched)
    solve(problem, replace(settings, max_iter=1))
    return seen, first


def test_joint_coupling_pays_for_the_distance_to_the_map(monkeypatch):
    """(μ/2)|z_k − (KL)_i|², with L the best for the embedding at hand."""
    problem, K = random_problem(9, weighted=True), input_kernel(inputs(9))
    (cost,), Z = linear_costs(monkeypatch, problem, DEFAULTS)
    F = (problem.plan.toarray() / problem.sample.weights[:, None]) @ Z
    fitted = K @ np.linalg.solve(MU * K + LAM * np.diag(1 / problem.sample.weights), MU * F)
    np.testing.assert_allclose(cost, 0.5 * MU * cdist(fitted, Z, "sqeuclidean"), rtol=1e-6, atol=1e-9)


def test_alternating_coupling_does_not_see_the_map(monkeypatch):
    costs, _ = linear_costs(monkeypatch, random_problem(9), replace(DEFAULTS, solver="alternating"))
    assert costs == [None]


def test_callback_sees_the_history():
    seen = []
    found = solve(random_problem(10), replace(DEFAULTS, tol=0.0), monitor=Monitor(callback=seen.append))
    assert len(seen) >= len(found.history) - 1 >= 1
    assert seen[0] == found.history[0] and set(seen) <= set(found.history)


def test_a_coupling_that_raises_the_objective_is_not_taken(monkeypatch):
    """With a T-step that answers nonsense the plan stays as it was, and the embedding is finished on it."""
    problem = random_problem(11)
    rng = np.random.default_rng(0)

    def nonsense(coupling, start, **options):
        plan = hard_plan(rng.integers(7, size=30), coupling.weights, 7)
        return type("Found", (), {"plan": plan})

    monkeypatch.setattr(distreduce.solver.dense, "solve_semirelaxed", nonsense)
    found = solve(problem, replace(DEFAULTS, max_iter=50, max_inner_iter=5))
    np.testing.assert_array_equal(found.plan.toarray(), problem.plan.toarray())
    history = [record.objective for record in found.history]
    assert len(history) > 2 and max(np.diff(history)) <= 0 and found.converged


def test_running_out_of_iterations_is_not_convergence():
    found = solve(random_problem(12), replace(DEFAULTS, max_iter=1, max_inner_iter=2))
    assert not found.converged and len(found.history) <= 2


def test_embedding_kernel_is_used():
    sharp = replace(DEFAULTS, embedding_kernel=RationalQuadratic(length_scale=0.1))
    assert solve(random_problem(13), sharp).objective != solve(random_problem(13), DEFAULTS).objective
