"""Which classes can be saved, and the schema of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from distreduce._utils.tensor_file import Node, Reader, RefusedError, Writer, require
from distreduce.estimators import SDR, DistR, SDRImputer
from distreduce.estimators._mixins import translate_renamed
from distreduce.gp import GPClassifier, GPRegressor, SDRGPClassifier, SDRGPRegressor
from distreduce.gp._crossfit import Novelty
from distreduce.gp._target_scale import RANGES, TargetScale
from distreduce.kernels import RBF, DistanceKernel
from distreduce.mapping import KernelMap, Predictions
from distreduce.persistence._processes import Stacks, build_latent_gp, build_stacks, latent_gp, stack_widths
from distreduce.persistence._schema import (
    Count,
    Floats,
    Found,
    Frame,
    Function,
    Indices,
    Kind,
    Labels,
    Maybe,
    Names,
    Record,
    Scalar,
    Sizes,
    check_keys,
)
from distreduce.persistence._stacks import STACKS, build_class_stack, build_cross_fitted, pack_stacks
from distreduce.solver.objective import Record as Iteration

# A path: a stranger's file must not choose where the next fit writes.
UNSAVED = frozenset({"checkpoint"})
SMALLEST_SCALE = 1e-200  # dividing by less makes infinite values of ordinary ones


@dataclass(frozen=True)
class Model(Kind):
    """The schema of an estimator: parameters, and fitted attributes."""

    cls: Any
    fitted: Record
    # When all attributes are read, checks what depends on parameters, and builds what is expensive.
    finish: Callable[[Any, Found], object] = lambda model, found: None
    unsaved: Collection[str] = UNSAVED  # parameters that are not written, and ignored when read
    shared: Collection[str] = ()  # symbols of sizes in common with the model that this one is part of

    def write_state(self, model: Any, write: Writer) -> Node:
        # Fitted attributes first: what they cannot hold, they explain better than a parameter could.
        fitted = self.fitted.write("fitted", model, write)
        given, params = model.get_params(deep=False), write.within("params")
        return {
            "params": {name: params.value(name, given[name]) for name in given if name not in self.unsaved},
            "fitted": fitted,
        }

    def read_state(self, state: Node, read: Reader, sizes: Sizes) -> Any:
        """Return the estimator, if the state is one that a fit could have left."""
        check_keys(f"{read.prefix}state", state, known={"params", "fitted"}, needed={"params", "fitted"})
        model = self._read_params(state["params"], read.within("params"))
        found = self.fitted.read("fitted", state["fitted"], read, sizes)
        self.finish(model, found)
        vars(model).update(found)  # only now, when all checks have passed
        return model

    def _read_params(self, params: Node, read: Reader) -> Any:
        """Return an unfitted estimator; names of earlier versions are translated."""
        require(isinstance(params, dict), "params is not an object")
        values = {name: read.value(name, node) for name, node in params.items()}
        try:
            translated = translate_renamed(self.cls, values)
        except (TypeError, AttributeError, LookupError) as error:
            # A forged file may hold values of any type.
            raise RefusedError(f"its parameters cannot be translated: {error}") from error
        given = {name: value for name, value in translated.items() if name not in self.unsaved}
        # Absent ones keep their defaults.
        check_keys("params", given, known={*self.cls().get_params(deep=False)}, needed=set())
        model = self.cls(**given)
        model._validate_params()  # types and ranges, by scikit-learn
        return model

    def write(self, name: str, value: Any, write: Writer) -> Node:
        return self.write_state(value, write.within(name))

    def read(self, name: str, node: Node, read: Reader, sizes: Sizes) -> Any:
        # An inner model has its own n and m, but shares d and p with the outer one.
        own = {symbol: sizes[symbol] for symbol in self.shared if symbol in sizes}
        model = self.read_state(node, read.within(name), own)
        sizes.update({symbol: own[symbol] for symbol in self.shared})
        return model


def _check_map(found: Found) -> None:
    kernel, inputs = found["kernel"], found["inputs"]
    if inputs is None:  # rows are distances to the samples
        distances = isinstance(kernel, DistanceKernel) and not _scales_by_feature(kernel)
        require(distances, "map_.kernel is not a function of a distance")
        require(found.get("predictions") is None, "map_ has predictions, but takes distances")
        return
    predictions, width = found.get("predictions"), inputs.shape[1]
    if predictions is not None:
        dense = isinstance(inputs, np.ndarray) and isinstance(kernel, DistanceKernel)
        require(dense, "map_ has predictions, but no dense features or another kernel")
        width += predictions.shares.shape[1]
    if _scales_by_feature(kernel):
        require(len(kernel.length_scale) == width, "map_.kernel does not have one length scale per feature")


def _scales_by_feature(kernel: Any) -> bool:
    return isinstance(kernel, RBF) and isinstance(kernel.length_scale, tuple)


def _check_reduction(found: Found) -> None:
    n_rows, d = len(found["map_"].coefficients), found["n_features_in_"]
    require(found["map_"].inputs is not None or n_rows == d, f"map_ takes distances to {n_rows} samples, not {d}")
    if "task_" in found:
        fits = ("classes_" in found) == (found["task_"] == "classification")
        require(fits, "classes_ and task_ do not fit together")


def _evidence_frame(columns: list[str], values: Any) -> pd.DataFrame:
    require(len({*columns}) == len(columns), "prototype_evidence_ has two columns of one name")
    frame = pd.DataFrame(values, columns=columns).rename_axis("prototype")
    types = {name: kind for name, kind in (("n_samples", np.int64), ("dubious", bool)) if name in columns}
    require(not frame[list(types)].isna().to_numpy().any(), "prototype_evidence_ has counts that are not numbers")
    return frame.astype(types)


def _choice_frame(values: Any) -> pd.DataFrame:
    frame = pd.DataFrame(values, columns=["n_prototypes", "error", "standard_error", "chosen"])
    require(frame["chosen"].isin([0, 1]).all() and frame["chosen"].sum() == 1, "prototype_choice_ has not one choice")
    return frame.astype({"n_prototypes": np.int64, "chosen": bool})


# Sizes: d features, n samples, m prototypes, p dimensions, k rows of the map, c classes or targets.
FEATURES: dict[str, Kind] = {"n_features_in_": Count("d"), "feature_names_in_": Names("d", as_array=True)}
PREDICTOR = Record(
    {
        "kernel": Function(),
        "unit": Scalar(float, positive=True),
        "coefficients": Floats(("k of the predictor", "predictions"), compact=True),
        "inputs": Floats(("k of the predictor", "d"), compact=True),
    },
    check=_check_map,
    build=KernelMap,
)
PREDICTIONS = Record({"shares": Floats(("k", "predictions"), compact=True), "predictor": PREDICTOR}, build=Predictions)
MAP = Record(
    {
        "kernel": Function(),
        "unit": Scalar(float, positive=True),
        "coefficients": Floats(("k", "p"), compact=True),
        "inputs": Maybe(Floats(("k", "d"), compact=True, storage="any")),
        "predictions": Maybe(PREDICTIONS),
    },
    optional=("predictions",),
    check=_check_map,
    build=KernelMap,
)
REDUCTION: dict[str, Kind] = {
    "prototypes_": Floats(("m", "p"), compact=True),
    "prototype_weights_": Floats(("m",), least=0.0, compact=True),
    "embedding_": Floats(("n", "p"), compact=True),
    "coupling_": Floats(("n", "m"), least=0.0, compact=True, storage="sparse"),
    "prototype_medoids_": Indices(("m",), below="n"),
    "labels_": Indices(("n",), below="m"),
    "map_": MAP,
    "objective_": Scalar(float),
    "perplexity_": Scalar(float),
    "converged_": Scalar(bool),
    "n_iter_": Count("iterations", least=0),
    "history_": Frame("iterations", tuple(part.name for part in fields(Iteration))),
}
TARGETS: dict[str, Kind] = {
    "prototype_targets_": Floats(("m", "c"), missing=True, compact=True),
    "target_names_": Names("c"),
    "task_": Scalar(str, choices=("regression", "classification")),
    "classes_": Labels("c"),
}
# What left-out samples say; models of version 0.1 have none of it.
LEFT_OUT: dict[str, Kind] = {
    "embedding_left_out_": Floats(("n", "p"), compact=True),
    "neighbor_scores_": Record({name: Scalar(float) for name in ("fitted", "left_out", "all_features")}),
    "prototype_evidence_": Record(
        {"columns": Names("columns"), "values": Floats(("m", "columns"), missing=True, compact=True)},
        pack=lambda frame: {"columns": list(frame.columns), "values": frame.to_numpy(dtype=np.float64)},
        build=_evidence_frame,
    ),
    "prototype_choice_": Record(
        {"values": Floats(("tried", 4), least=0.0)},
        pack=lambda frame: {"values": frame.to_numpy(dtype=np.float64)},
        build=_choice_frame,
    ),
    "eta_": Scalar(float),
    "map_reg_": Scalar(float, positive=True),
}


def _model(
    cls: Any,
    fitted: Mapping[str, Kind],
    optional: Collection[str] = (),
    check: Callable[[Found], object] = lambda found: None,
    finish: Callable[[Any, Found], object] = lambda model, found: None,
) -> Model:
    return Model(cls, Record({**FEATURES, **fitted}, ("feature_names_in_", *optional), check), finish)


SDR_MODEL = _model(SDR, {**REDUCTION, **TARGETS, **LEFT_OUT}, ("classes_", *LEFT_OUT), _check_reduction)
DISTR_MODEL = _model(DistR, REDUCTION, check=_check_reduction)


def _check_mixture(found: Found) -> None:
    S = found["covariance_"]
    require(bool(np.isclose(found["prototype_weights_"].sum(), 1)), "prototype_weights_ does not sum to one")
    positive = np.allclose(S, S.T, rtol=1e-9) and np.linalg.eigvalsh(S)[0] > 0
    require(bool(positive), "covariance_ is not symmetric with positive eigenvalues")


IMPUTER: dict[str, Kind] = {
    "prototypes_": Floats(("m", "d")),
    "prototype_weights_": Floats(("m",), above=0.0),
    "mean_": Floats(("d",)),
    "scale_": Floats(("d",), least=0.0),
    "covariance_": Floats(("d", "d")),
    **{name: Scalar(float) for name in ("shrinkage_", "hidden_error_", "std_factor_")},
}
# Without random_state, which is that of the GP estimator and matters during a fit only.
INNER_REDUCTION = replace(SDR_MODEL, unsaved=UNSAVED | {"random_state"}, shared=("d", "p"))


def _check_inner_reduction(found: Found, task: str) -> None:
    reduction = found.get("reduction_")
    if reduction is not None:
        require(isinstance(reduction.map_.inputs, np.ndarray), "reduction_ does not take features")
        require(not hasattr(reduction, "feature_names_in_"), "reduction_ has feature names, but was fitted to arrays")
        require(reduction.task_ == task, f"reduction_ is a {reduction.task_}, not a {task}")


def _target_scale(mean: Any, ranges: Any = None, **rest: Any) -> TargetScale:
    found = TargetScale(mean, **rest, ranges=np.zeros(len(mean), dtype=np.intp) if ranges is None else ranges)
    require(found.ranges.max() < len(RANGES), "target_scale_.ranges has an unknown one")
    return found


def _finish_regression(model: Any, found: Found) -> None:
    _check_inner_reduction(found, "regression")
    scale, widths, d = found["target_scale_"], stack_widths(found["stacks_"]), found["n_features_in_"]
    require(scale.is_table or len(scale.mean) == 1, "target_scale_ has several targets, but is not a table")
    if "views" in found["stacks_"]:
        width = found["reduction_"].prototypes_.shape[1]
        require(widths.get("embedding", width) == width and widths.get("inputs", d) == d, f"its experts take {widths}")
        fits = len(found["stacks_"]["stacks"]) == len(scale.mean)
        require(fits, f"stacks_ has {len(found['stacks_']['stacks'])} predictors for {len(scale.mean)} targets")
        found["stacks_"] = build_cross_fitted(found["stacks_"], {"inputs": d, "embedding": width})
        return
    expected = {"inputs": d}  # how many columns each process must take, judged by the other parts of the model
    if "reduction_" in found:
        if "rough_inputs" in widths:  # not in format 1, nor with inducing points
            expected["rough_inputs"] = d
        # The paper's recipe predicts by the embedding alone; in earlier versions `residual` decided that too.
        alone = not model.residual or (model._follows_paper and "inputs" not in widths)
        expected = {**({} if alone else expected), "embedding": found["reduction_"].prototypes_.shape[1]}
    require(widths == expected, f"its GPs take {widths}, but the model gives them {expected}")
    found["stacks_"] = build_stacks(found["stacks_"])  # last, when everything cheap has been checked: this factorises


def _finish_classification(model: Any, found: Found) -> None:
    _check_inner_reduction(found, "classification")
    n_classes = len(found["classes_"])
    require(n_classes > 1, "classes_ has fewer than two classes")
    require(("gp_" in found) != ("stack_" in found), "it has both the paper's GP and a stack, or neither")
    # Last, as in regression.
    if "stack_" in found:
        widths, p = stack_widths(found["stack_"]), found["reduction_"].prototypes_.shape[1]
        fits = widths.get("embedding", p) == p and widths.get("inputs", 0) in (0, found["n_features_in_"])
        require(fits, f"its experts take {widths}")
        given = {"inputs": found["n_features_in_"], "embedding": p}
        found["stack_"] = build_class_stack(found["stack_"], given, n_classes)
    else:
        require("draws_" in found, "it lacks draws_")
        found["gp_"] = build_latent_gp(found["gp_"], n_classes, found["draws_"])
    if "reduction_" in found and "input_scale_" not in found:  # before format 3, features were not scaled
        found["input_scale_"] = np.ones(found["n_features_in_"])


# Sizes: t targets, s draws; the sizes of a process are its own.
FEATURE_SCALE = Floats(("d",), above=SMALLEST_SCALE)
REGRESSION: dict[str, Kind] = {
    "target_scale_": Record(
        {"mean": Floats(("t",)), "std": Floats(("t",), above=0.0), "is_table": Scalar(bool), "ranges": Indices(("t",))},
        ("ranges",),  # not in files of earlier versions
        build=_target_scale,
    ),
    "stacks_": Stacks(),
}
CLASSES: dict[str, Kind] = {"classes_": Labels("c"), "draws_": Floats(("s", "c"), compact=True)}
NOVELTY = Record(
    {"inputs": Floats(("known", "d"), compact=True), "distances": Floats(("apart",), least=0.0)}, build=Novelty
)
MODELS = (
    SDR_MODEL,
    DISTR_MODEL,
    _model(SDRImputer, IMPUTER, check=_check_mixture),
    _model(GPRegressor, REGRESSION, finish=_finish_regression),
    _model(
        SDRGPRegressor,
        {
            "reduction_": INNER_REDUCTION,
            "feature_spread_": FEATURE_SCALE,
            "input_scale_": FEATURE_SCALE,
            "embedding_scale_": Floats(("p",), above=0.0),
            "novelty_": NOVELTY,
            **REGRESSION,
        },
        ("novelty_", "feature_spread_"),  # the latter apart from input_scale_ before format 3
        finish=_finish_regression,
    ),
    _model(
        GPClassifier,
        {**CLASSES, "feature_spread_": FEATURE_SCALE, "gp_": latent_gp("d")},
        finish=_finish_classification,
    ),
    _model(
        SDRGPClassifier,
        {
            "reduction_": INNER_REDUCTION,
            "input_scale_": FEATURE_SCALE,
            "embedding_scale_": Scalar(float, positive=True),
            "novelty_": NOVELTY,
            **CLASSES,
            "gp_": latent_gp("p"),
            "stack_": Record(STACKS.fields, pack=pack_stacks),
        },
        ("novelty_", "input_scale_", "draws_", "gp_", "stack_"),
        finish=_finish_classification,
    ),
)
REGISTRY: dict[str, Model] = {model.cls.__name__: model for model in MODELS}
