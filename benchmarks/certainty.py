"""How often the 95 % intervals of held-out scores cover the best possible score, and what strata of y are worth.

    PYTHONPATH=src python benchmarks/certainty.py               # two minutes
    PYTHONPATH=src python benchmarks/certainty.py --draws 100

The rows are generated, so that the score of the true function on new rows is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from distreduce.metrics.held_out import accuracy_interval, r2_interval

RNG = np.random.default_rng(0)
SHARES = (0.3, 0.57, 0.9)  # of the variance that the signal explains
# Signal and noise of variance one.
LAWS: dict[str, tuple[Callable[[int], np.ndarray], Callable[[int], np.ndarray]]] = {
    "normal": (RNG.standard_normal, RNG.standard_normal),
    "exponential noise": (RNG.standard_normal, lambda n: RNG.exponential(size=n) - 1),
    "noise t(3)": (RNG.standard_normal, lambda n: RNG.standard_t(3, size=n) / np.sqrt(3)),
    "log-normal signal": (
        lambda n: (RNG.lognormal(size=n) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
        RNG.standard_normal,
    ),
}


def covers(ends: tuple[float, float], truth: float) -> tuple[bool, bool]:
    """Return whether the interval covers, and whether its lower end is too high."""
    return ends[0] <= truth <= ends[1], ends[0] > truth


def cover_rows(draws: int) -> None:
    """Independent rows."""
    for n, (name, (signal, noise)) in product((12, 43, 200), LAWS.items()):
        found = []
        for share in SHARES:
            hits = []
            for _ in range(draws):
                f = np.sqrt(share) * signal(n)
                hits.append(covers(r2_interval(f + np.sqrt(1 - share) * noise(n), f), share))
            found.append(np.mean(hits, axis=0))
        low, high = np.array(found).T
        print(f"{n:4} rows, {name:18} R² {low.min():.2f} to {low.max():.2f}, too high {high.max():.3f}")
    for n in (12, 43, 200):
        found = [
            np.mean([covers(accuracy_interval(RNG.random(n) < p), p)[0] for _ in range(draws)])
            for p in (0.5, 0.8, 0.95)
        ]
        print(f"{n:4} rows, accuracy {min(found):.2f} to {max(found):.2f}")


def cover_groups(draws: int) -> None:
    """Groups of eight rows that share an effect, which the model does not know."""
    for n in (3, 5, 10, 30):
        groups, found = np.repeat(np.arange(n), 8), []
        for _ in range(draws):
            x = RNG.normal(size=8 * n)
            y = x + np.sqrt(0.5) * (RNG.normal(size=n)[groups] + RNG.normal(size=8 * n))
            right = RNG.random(8 * n) < RNG.beta(3.2, 0.8, size=n)[groups]
            each = [covers(r2_interval(y, x, None, own), 0.5)[0] for own in (groups, None)]
            found.append([*each, *(covers(accuracy_interval(right, None, own), 0.8)[0] for own in (groups, None))])
        means = "R² {:.2f}, by rows {:.2f}; accuracy {:.2f}, by rows {:.2f}".format(*np.mean(found, axis=0))
        print(f"{n:4} groups of 8 rows: {means}")


def draw_table(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Five features, of which a ridge regression finds the linear part, and a target with normal or skewed noise."""
    X = RNG.normal(size=(n, 5))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 1.2 * RNG.normal(size=n)
    return X, np.exp(0.6 * y) if name == "log-normal" else y


def cut_tenths(y: np.ndarray) -> np.ndarray:
    """Number ten equal parts of y."""
    return np.argsort(np.argsort(y)) * 10 // len(y)


def cover_splits(draws: int) -> None:
    """Whole tables: the interval of a ridge regression from a fifth held out, against its R² on 20,000 new rows."""
    for name, n in product(("normal", "log-normal"), (60, 216, 1000)):
        hits, (new, truth) = [], draw_table(name, 20_000)
        for _ in range(draws // 2):
            X, y = draw_table(name, n)
            X, held, y, known = train_test_split(X, y, test_size=0.2, stratify=cut_tenths(y))
            model = Ridge(1.0).fit(X, y)
            hits.append(covers(r2_interval(known, model.predict(held)), float(r2_score(truth, model.predict(new)))))
        cover, high = np.mean(hits, axis=0)
        print(f"{n:4} rows, {name} y, ridge on a split by strata: {cover:.2f}, too high {high:.3f}")


def compare_strata(tables: int = 8, splits: int = 40) -> None:
    """Standard deviation of the held-out R² of a ridge regression between splits, without and with strata of y."""
    for name, n in product(("normal", "log-normal"), (60, 216, 1000)):
        found = []
        for _ in range(tables):
            X, y = draw_table(name, n)
            scores = [
                [_score(X, y, *train_test_split(np.arange(n), test_size=0.2, stratify=strata, random_state=seed))
                 for strata in (None, cut_tenths(y))]
                for seed in range(splits)
            ]  # fmt: skip
            found.append(np.std(scores, axis=0))
        print(f"{n:4} rows, {name} y: deviation of R² {{:.2f}}, with strata {{:.2f}}".format(*np.mean(found, axis=0)))


def _score(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    return float(r2_score(y[test], Ridge(1.0).fit(X[train], y[train]).predict(X[test])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    cover_rows(draws)
    cover_groups(draws)
    cover_splits(draws)
    compare_strata()
