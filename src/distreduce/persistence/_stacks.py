"""Cross-fitted stacks in model files: what the experts learned, never a factorisation or a pickle.

Gaussian processes are rebuilt from their training samples, which are stored once for all experts and targets of a
view. Trees and linear models are plain arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from distreduce._utils.tensor_file import MAX_BYTES, RefusedError, require
from distreduce.exceptions import NumericalError, UnsavableModelError
from distreduce.gp._class_stack import ClassStack
from distreduce.gp._exact import MAX_EXACT, ExactGP, NeighbourGP
from distreduce.gp._experts import EXACT_ROWS, EXPERTS, KERNELS, Boosting, Forest, Linear, Process
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._noise import Noise
from distreduce.gp._stack import Stack
from distreduce.gp._tails import Tails
from distreduce.gp._target_scale import Warp
from distreduce.gp._trees import Trees
from distreduce.persistence._schema import Count, Floats, Found, Indices, KeyedList, Maybe, Record, Scalar

MAX_TARGETS = 10_000  # names of targets that a file may use: their numbers


def _check_trees(found: Found) -> None:
    """Reject trees that no descent could leave, or whose values have no column."""
    inner = np.flatnonzero(found["feature"] >= 0)
    for side in ("left", "right"):
        # Children come after their parents, so that every descent ends.
        require(bool((found[side][inner] > inner).all()), f"trees.{side} does not lead away from the root")
    last = int(found["columns"].max()) + found["values"].shape[1]
    require(last <= found["n_columns"], "trees.columns points outside")


TREES = Record(
    {
        "feature": Indices(("nodes",), least=-1),  # −1 is a leaf
        "threshold": Floats(("nodes",)),
        "left": Indices(("nodes",), below="nodes"),
        "right": Indices(("nodes",), below="nodes"),
        "values": Floats(("nodes", "v")),
        "roots": Indices(("trees",), below="nodes"),
        "columns": Indices(("trees",)),
        "n_columns": Count("columns"),
        "single": Scalar(bool),
    },
    check=_check_trees,
    build=Trees,
)
POSITIVE = Scalar(float, positive=True)
LINEAR = Record({"coefficients": Floats(("w", "c")), "intercepts": Floats(("c",))}, build=Linear)
EXPERT = Record(
    {
        "weight": Scalar(float),
        "temperature": Maybe(POSITIVE),
        "logarithmic": Maybe(Scalar(bool)),
        "constant": Maybe(Scalar(float)),
        "factor": Maybe(Scalar(float)),
        "process": Maybe(Record({"length_scales": Floats(("w",), above=0.0), "signal": POSITIVE, "noise": POSITIVE})),
        "linear": Maybe(LINEAR),
        "trees": Maybe(TREES),
        "baseline": Maybe(Floats(("b",))),
        "binary": Maybe(Scalar(bool)),
    },
    optional=("logarithmic",),
)
STACK = Record(
    {
        "variance_scale": Maybe(POSITIVE),
        "tails": Maybe(Floats(("parts", 3))),
        "freedom": Maybe(Scalar(float)),
        "warp": Maybe(Floats(("knots", 2))),
        "sharpness": Maybe(POSITIVE),
        "reference": Floats(("reference",)),
        "groups": Indices(("reference",)),
        "experts": KeyedList("name", EXPERTS, EXPERT),
        "noise": Record({"least": POSITIVE, "unit": POSITIVE, "linear": Maybe(LINEAR), "trees": Maybe(TREES)}),
    },
    optional=("groups", "noise"),  # files of earlier versions have none
)
VIEW = Record(
    {
        "inputs": Floats(("n", "w"), compact=True),
        "weights": Floats(("n",), above=0.0),
        "targets": Floats(("n", "c")),
        "mean": Floats(("c",)),
    }
)
STACKS = Record(
    {
        "views": KeyedList("view", ("inputs", "embedding"), VIEW, can_be_empty=True),
        "stacks": KeyedList("target", [str(t) for t in range(MAX_TARGETS)], STACK),
    }
)


def _view_of(name: str) -> str:
    return "embedding" if name == "embedding" else "inputs"


def pack_stacks(stacks: tuple[Stack, ...] | ClassStack) -> Found:
    """Collect the arrays of the stacks, with the samples of each view stored once."""
    one = isinstance(stacks, ClassStack)
    each: Any = (stacks,) if one else stacks
    views: dict[str, Found] = {}
    for stack in each:
        seen = set()
        for name, expert in stack.processes.items():
            view = _view_of(name)
            if not isinstance(expert, Process) or view in seen:
                continue
            seen.add(view)
            own = {"inputs": expert.gp.inputs, "weights": expert.gp.weights,
                   "targets": expert.gp.target, "mean": expert.mean}  # fmt: skip
            if view in views:  # the samples are those of the first target
                own["targets"] = np.c_[views[view]["targets"], own["targets"]]
                own["mean"] = np.r_[views[view]["mean"], own["mean"]]
            views[view] = own
    return {"views": views, "stacks": {str(t): _pack_stack(stack) for t, stack in enumerate(each)}}


def _pack_stack(stack: Any) -> Found:
    shared: Found = {"experts": {name: _pack_expert(name, stack) for name in stack.processes}}
    shared |= {"groups": stack.groups} if len(stack.groups) else {}
    if isinstance(stack, ClassStack):
        nothing = dict.fromkeys(("variance_scale", "tails", "freedom", "warp"))
        return {**shared, **nothing, "sharpness": stack.sharpness, "reference": stack.confidences}
    if stack.noise is not None:
        kind = "linear" if isinstance(stack.noise.expert, Linear) else "trees"
        shared["noise"] = {"least": stack.noise.least, "unit": stack.noise.unit, "linear": None, "trees": None}
        shared["noise"][kind] = stack.noise.expert if kind == "linear" else stack.noise.expert.trees
    return {
        **shared,
        "variance_scale": stack.variance_scale,
        "tails": np.array(stack.tails.parts),
        "freedom": stack.tails.freedom,
        "warp": None if stack.warp is None else stack.warp.knots,
        "sharpness": None,
        "reference": stack.errors,
    }


def _pack_expert(name: str, stack: Any) -> Found:
    expert = stack.processes[name]
    found: Found = {"weight": stack.weights[name], **dict.fromkeys(list(EXPERT.fields)[1:])}
    if isinstance(stack, ClassStack):
        found |= {"temperature": stack.temperatures[name], "logarithmic": name in stack.logarithmic}
    else:
        found["constant"], found["factor"] = stack.calibration[name]
    if isinstance(expert, Process):
        return {**found, "process": asdict(expert.gp.hyperparameters)}
    if isinstance(expert, Linear):
        return {**found, "linear": expert}
    if isinstance(expert, Forest | Boosting):
        return found | vars(expert)
    raise UnsavableModelError(
        f"The expert {name!r} of your own is a Python object that only a pickle could hold, and files of distreduce "
        "hold none; fit with experts among 'linear', 'forest' and 'boosting' to save the model."
    )


def _columns(parts: Found, t: int) -> dict[str, slice]:
    """The column of a target in each view: only targets with a process on the view have one."""
    before = [own["experts"] for key, own in parts["stacks"].items() if int(key) < t]
    used = [{_view_of(name) for name in experts if name in KERNELS} for experts in before]
    return {view: slice(k, k + 1) for view in parts["views"] for k in [sum(view in views for views in used)]}


def build_cross_fitted(parts: Found, widths: Mapping[str, int]) -> tuple[Stack, ...]:
    """Build the predictors of all targets; raise RefusedError unless each can predict."""
    stacks = []
    order = sorted(parts["stacks"], key=int)
    require(order == [str(t) for t in range(len(order))], "stacks_ does not number its targets from 0")
    for t, key in enumerate(order):
        own = parts["stacks"][key]
        complete = all(own[key] is not None for key in ("tails", "freedom", "variance_scale"))
        require(own["sharpness"] is None and complete, "stacks_ is not one of numbers")
        experts = _build_experts(own, parts["views"], widths, _columns(parts, t), 1)
        numbers = {name: (each["constant"], each["factor"]) for name, each in own["experts"].items()}
        require(all(a is not None and b is not None and a >= 0 and b >= 0 for a, b in numbers.values()),
                "stacks_ has variances that are not positive")  # fmt: skip
        warp = None if own["warp"] is None else Warp(own["warp"])
        rising = warp is None or (len(warp.knots) > 1 and bool((np.diff(warp.knots, axis=0) > 0).all()))
        require(rising, "the warp of a target does not increase")
        tails = Tails(tuple(map(tuple, own["tails"].tolist())), own["freedom"])
        share, _, variance = own["tails"].T
        sound = own["freedom"] >= 0 and (share >= 0).all() and abs(share.sum() - 1) < 1e-6 and (variance > 0).all()
        require(bool(sound), "the tails are not a distribution")
        reference = _order_reference(own)
        noise = _build_noise(own, widths["inputs"])
        stacks.append(Stack(experts, _weights(own), own["variance_scale"], tails, numbers, warp, *reference, noise))
    return tuple(stacks)


def _build_noise(own: Found, width: int) -> Noise | None:
    """How the noise depends on x; raise RefusedError unless it is a positive number everywhere."""
    if "noise" not in own:
        return None
    kind = "forest" if own["noise"]["linear"] is None else "linear"
    expert = _build_expert(kind, own["noise"], None, width, None)
    require(expert.scores(np.zeros((1, width))).shape == (1, 1), "the noise of a target is not one number")
    return Noise(expert, own["noise"]["least"], own["noise"]["unit"])


def build_class_stack(parts: Found, widths: Mapping[str, int], n_classes: int) -> ClassStack:
    """Build the predictor of classes; raise RefusedError unless it can predict."""
    require(list(parts["stacks"]) == ["0"], "stack_ has more than one predictor")
    own = parts["stacks"]["0"]
    require(own["sharpness"] is not None, "stack_ is not one of classes")
    experts = _build_experts(own, parts["views"], widths, {}, n_classes)
    temperatures = {name: each["temperature"] for name, each in own["experts"].items()}
    require(all(value is not None for value in temperatures.values()), "stack_ lacks a temperature")
    logarithmic = {name for name, each in own["experts"].items() if each.get("logarithmic")}
    return ClassStack(experts, temperatures, _weights(own), own["sharpness"], *_order_reference(own), logarithmic)


def _order_reference(own: Found) -> tuple[Any, Any]:
    order = np.argsort(own["reference"], kind="stable")
    return own["reference"][order], own["groups"][order] if "groups" in own else np.empty(0, dtype=np.intp)


def _weights(own: Found) -> dict[str, float]:
    weights = {name: each["weight"] for name, each in own["experts"].items()}
    sound = min(weights.values()) >= 0 and abs(sum(weights.values()) - 1) < 1e-6
    require(sound, "the weights of the experts do not sum to 1")
    return weights


def _build_experts(
    own: Found, views: Mapping[str, Found], widths: Mapping[str, int], columns: Mapping[str, slice], n_columns: int
) -> dict[str, Any]:
    """Build the experts of one predictor; `columns` are those of its target in each view, all of them for classes."""
    experts: dict[str, Any] = {}
    with reject_numerical_errors():
        for name, each in own["experts"].items():
            view = _view_of(name)
            expert = experts[name] = _build_expert(name, each, views.get(view), widths[view], columns.get(view))
            # One prediction: with finite parameters, predictions can still overflow.
            probe = views[view]["inputs"][:1] if view in views else np.zeros((1, widths[view]))
            scores = expert.scores(probe)
            found = expert.moments(probe) if own["sharpness"] is None else [scores]
            require(bool(np.isfinite(np.concatenate([np.ravel(part) for part in found])).all()),
                    f"the expert {name!r} predicts NaN or infinite values")  # fmt: skip
            fits = scores.shape == (1, n_columns)
            require(fits, f"the expert {name!r} does not predict {n_columns} classes or targets")
    return experts


def _build_expert(name: str, each: Found, view: Found | None, width: int, column: slice | None) -> Any:
    if name in KERNELS:
        require(view is not None, f"the expert {name!r} has no inputs")
        assert view is not None
        require(each["process"] is not None and len(each["process"]["length_scales"]) == width,
                f"the expert {name!r} does not fit its inputs")  # fmt: skip
        own = slice(None) if column is None else column
        n, targets, mean = len(view["inputs"]), view["targets"][:, own], view["mean"][own]
        require(targets.shape[1] > 0, f"the expert {name!r} has no targets")
        if n <= EXACT_ROWS:
            check_size(n, n + targets.shape[1])
        make = ExactGP if n <= EXACT_ROWS else NeighbourGP
        found = Hyperparameters(**each["process"])
        return Process(make(view["inputs"], targets, found, KERNELS[name], view["weights"]), mean)
    if name == "linear":
        require(each["linear"] is not None and len(each["linear"].coefficients) == width,
                "the linear expert does not fit its inputs")  # fmt: skip
        return each["linear"]
    trees = each["trees"]
    require(trees is not None and int(trees.feature.max()) < width, f"the expert {name!r} does not fit its inputs")
    if name == "forest":
        return Forest(trees)
    baseline, binary = each["baseline"], each["binary"]
    require(baseline is not None and binary is not None and len(baseline) == trees.n_columns,
            "the expert 'boosting' lacks its baseline")  # fmt: skip
    return Boosting(trees, baseline, binary)


def check_size(n: int, columns: int) -> None:
    """Reject a small forged file whose factorisation of n² numbers would fill the memory."""
    fits = n <= MAX_EXACT and 8 * n * columns <= MAX_BYTES
    require(fits, f"its exact GPs of {n} samples need more than {MAX_BYTES} bytes or have more than {MAX_EXACT}")


@contextmanager
def reject_numerical_errors() -> Iterator[None]:
    """Turn NumericalError into RefusedError: values that are finite one by one may still overflow together."""
    try:
        with np.errstate(all="ignore"):
            yield
    except NumericalError as error:
        raise RefusedError(f"its GP cannot be built: {error}") from error
