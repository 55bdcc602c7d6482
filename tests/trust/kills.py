"""Fits killed (-9) at random moments and started again till they end, compared with one that was left alone."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distreduce import SDR, DistR
from distreduce.solver import loop as solve

SLOW: dict[str, Any] = {"random_state": 0, "tol": 0.0, "max_iter": 25, "n_jobs": 1, "perplexity": 15.0}
KINDS: dict[str, tuple[int, Any]] = {
    "SDR, dense": (400, SDR(n_prototypes=30, max_inner_iter=4, **SLOW)),
    "SDR, sparse": (1500, SDR(n_prototypes=30, max_inner_iter=4, affinity="sparse", **SLOW)),
    "DistR, dense": (400, DistR(n_prototypes=30, max_inner_iter=4, **SLOW)),
    "SDR, one prototype per sample": (120, SDR(max_inner_iter=4, **SLOW)),
}
PROCESSES = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
LONGEST = 600.0  # seconds of a fit, far more than one takes


@dataclass
class Tally:
    """Of one kind of fit: how many ended, how often they were killed, iterations lost by a kill, bits that differed."""

    fits: int = 0
    kills: int = 0
    lost: Counter[int] = field(default_factory=Counter)
    differ: int = 0

    def as_json(self) -> dict[str, Any]:
        lost = {str(count): kills for count, kills in sorted(self.lost.items())}
        return {"fits": self.fits, "kills": self.kills, "iterations lost": lost, "differ": self.differ}


def data(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(KINDS[kind][0], 6)) + 3.0 * rng.integers(0, 4, size=(KINDS[kind][0], 1))
    return X, X[:, 0] * np.sin(X[:, 1]) + 0.1 * rng.normal(size=len(X))


def fit(kind: str, seed: int, folder: Path, checkpoint: bool) -> None:
    """In a child: fit, telling of every iteration, and write what was found."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    real = solve._advance

    def told(steps: Any, at: Any) -> Any:
        os.write(log, f"begin {at.iteration + 1}\n".encode())
        found = real(steps, at)
        os.write(log, f"end {at.iteration + 1}\n".encode())
        return found

    solve._advance = told
    model = KINDS[kind][1].set_params(checkpoint=folder / "checkpoint" if checkpoint else None)
    os.write(log, b"start\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*data(kind, seed))
    arrays = {name: np.asarray(value) for name, value in vars(model).items() if isinstance(value, np.ndarray | float)}
    history = model.history_.drop(columns="seconds").to_numpy()
    plan = model.coupling_
    np.savez(
        folder / "found.npz", **arrays, history=history, map=model.map_.coefficients,
        plan=plan.data, indices=plan.indices, indptr=plan.indptr,
    )  # fmt: skip
    os.write(log, b"done\n")


def run(kind: str, seed: int, place: Path, checkpoint: bool, moment: float | None = None) -> bool:
    """Fit in a child, killed so many seconds after its start; whether it ended by itself."""
    place.mkdir(parents=True, exist_ok=True)
    starts = _log(place).count("start")
    child = PROCESSES.Process(target=fit, args=(kind, seed, place, checkpoint))
    child.start()
    while moment is not None and child.is_alive() and _log(place).count("start") == starts:
        time.sleep(0.002)
    child.join(LONGEST if moment is None else moment)
    ended = child.exitcode == 0
    child.kill()
    child.join()
    assert ended or moment is not None, f"the fit of {kind} failed by itself"
    return ended


def _log(place: Path) -> list[str]:
    return (place / "log").read_text().splitlines() if (place / "log").exists() else []


def same_bits(one: Path, other: Path) -> bool:
    with np.load(one / "found.npz") as a, np.load(other / "found.npz") as b:
        return a.files == b.files and all(a[name].tobytes() == b[name].tobytes() for name in a.files)


def campaign(kind: str, kills: int, rng: np.random.Generator, place: Path, tally: Tally) -> Tally:
    """Fits to new data, each killed again and again, until there were so many kills."""
    run(
        kind, 0, place / "first", checkpoint=False
    )  # the first ever compiles loops, which round otherwise than later ones
    while tally.kills < kills:
        seed = int(rng.integers(2**31))
        alone, killed = place / f"alone-{seed}", place / f"killed-{seed}"
        began = time.monotonic()
        run(kind, seed, alone, checkpoint=False)
        took = time.monotonic() - began
        while not run(kind, seed, killed, checkpoint=True, moment=rng.uniform(0.0, 1.2 * took)):
            tally.kills += 1
        tally.fits += 1
        tally.differ += not same_bits(alone, killed)
        tally.lost += lost(_log(killed))
    return tally


def lost(log: list[str]) -> Counter[int]:
    """Iterations that had ended before a kill and were done again after it, for every kill."""
    found: Counter[int] = Counter()
    ended = 0
    runs = "\n".join(log).split("start")[1:]
    for number, one in enumerate(runs):
        lines = one.split("\n")
        begun = [int(line.split()[1]) for line in lines if line.startswith("begin")]
        if number and begun:
            found[ended - begun[0] + 1] += 1
            ended = begun[0] - 1  # what was lost once is not lost again by the next kill
        elif number:
            found[0] += 1  # killed before its first iteration
        ended = max([ended, *(int(line.split()[1]) for line in lines if line.startswith("end"))])
    return found
