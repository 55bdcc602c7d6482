"""One T-step against POT's semi-relaxed solver from the same start: CPU seconds of one thread, and the objective.

Two problems of each size. *Targets held*: the cost that POT's solver takes, prototype targets fixed at the start, in
one call. *Whole T-step*: prototype targets refreshed until the plan stays, for POT between its calls; at 10,000 samples
POT is called once, which favours it. Ours always ends with moves of single rows. The least of several runs counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yardstick
from check import cpu_seconds
from problems import PAPER, coil20, coupling_problem, mixture, reduction_problem
from scipy import sparse

from distreduce._utils.threads import workers
from distreduce.affinity import student_affinity
from distreduce.coupling.descent import solve_semirelaxed
from distreduce.coupling.problem import affinity_times_plan, structure_constant
from distreduce.solver.loop import solve

RESULTS = Path(__file__).resolve().parents[1] / "results" / "benchmarks"
MANY = 5000  # samples from which on POT is called once only


def least(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least CPU seconds of some calls, and the last result."""
    results: list[Any] = []
    seconds = [cpu_seconds(lambda: results.append(call())) for _ in range(repeats)]
    return min(seconds), results[-1]


def refresh_until_still(call: Callable[[Any], Any], plan: Any) -> Any:
    """Call POT with the prototype targets of its last plan until that stays."""
    for _ in range(50):
        previous, plan = plan, call(plan)
        if np.abs(plan - previous).max() <= 1e-9:
            break
    return plan


def measure(data: Any, m: int) -> list[dict[str, Any]]:
    """Both problems of one size."""
    problem = reduction_problem(data, m, 1)
    Z = solve(problem, replace(PAPER, max_iter=0)).prototypes
    whole, start, C_bar = coupling_problem(problem, Z), problem.plan, student_affinity(Z)
    constant = PAPER.alpha * structure_constant(problem.affinity, whole.weights, PAPER.loss)

    def call(plan: Any) -> Any:
        return yardstick.couple(problem, plan, C_bar, PAPER.alpha)

    many, dense, found = len(data.X) > MANY, start.toarray(), []
    once = least(lambda: call(dense), 1 if many else 5)
    again = once if many else least(lambda: refresh_until_still(call, dense), 3)
    for name, posed, (pot, plan) in (
        ("targets held", whole.with_targets_held(start), once),
        ("whole T-step", whole, again),
    ):
        solve_semirelaxed(posed, start)  # compiles, and fills caches
        ours, result = least(lambda posed=posed: solve_semirelaxed(posed, start), 7)
        plans = [
            constant + posed.value(T, affinity_times_plan(posed.affinity, T) @ posed.h2)
            for T in (start, sparse.csr_array(plan))
        ]
        values = {"start": plans[0], "J of POT": plans[1], "J of ours": constant + result.value}
        found.append(
            {"data": data.name, "m": m, "problem": name, "ours": ours, "POT": pot, "ratio": pot / ours} | values
        )
    return found


def write(records: list[dict[str, Any]]) -> str:
    """The table."""
    lines = [
        "# One T-step against POT's semi-relaxed solver\n",
        "`python benchmarks/coupling.py --data FOLDER`: CPU seconds of one thread, least of some runs, from one start; "
        "what the two problems are says the head of that file.\n",
        "| data | m | problem | ours | POT | POT / ours | J at the start | J of POT | J of ours |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        numbers = f"{r['ours']:.3f} | {r['POT']:.2f} | **{r['ratio']:.1f}**"
        numbers += "".join(f" | {r[key]:.2f}" for key in ("start", "J of POT", "J of ours"))
        lines.append(f"| {r['data']} | {r['m']} | {r['problem']} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all sizes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with coil20.npz; without it a mixture takes its place")
    parser.add_argument("--sizes", type=int, nargs="+", default=(1440, 10_000))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options, records = parser.parse_args(), []
    torch.set_num_threads(1)
    with workers(1):
        for n in options.sizes:
            for data in [mixture(n)] if n > MANY or options.data is None else [coil20(options.data, n), mixture(n)]:
                for m in (100, 400):
                    records += measure(data, m)
                    print(*(json.dumps(record) for record in records[-2:]), sep="\n", flush=True)
    (options.out / "coupling.md").write_text(write(records))


if __name__ == "__main__":
    main()
