"""A GP model that comes out of a file is the one that went in."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from light_predictors import light_predictors
from numpy.testing import assert_allclose, assert_array_equal
from persistence.cases import (
    FRAME,
    GP_CASES,
    GROUPS,
    NEW,
    NUMBERS,
    X,
    fitted_model,
    predictions,
    predictions_with_covariance,
)
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.datasets import make_friedman1

import distreduce
from distreduce import SDRGPClassifier, SDRGPRegressor, persistence
from distreduce.exceptions import ModelFileError, UnsavableModelError
from distreduce.gp import GPClassifier, GPRegressor
from distreduce.gp._class_stack import ClassStack
from distreduce.gp._experts import Boosting, Forest, Linear
from distreduce.gp._noise import Noise
from distreduce.gp._stack import Stack
from distreduce.gp._tails import Tails
from distreduce.gp._trees import Trees


@pytest.fixture(params=list(GP_CASES))
def pair(request: Any, tmp_path: Path) -> tuple[str, Any, Any]:
    """A case, its model, and that model from a file."""
    model = fitted_model(request.param)
    model.save(tmp_path / "model")
    return request.param, model, type(model).load(tmp_path / "model")


def test_predictions_are_the_same_to_the_last_bit(pair: Any) -> None:
    name, model, loaded = pair
    new = GP_CASES[name][3]
    assert predictions_with_covariance(model, new).tobytes() == predictions_with_covariance(loaded, new).tobytes()


def test_labels_are_predicted_in_their_type(pair: Any) -> None:
    name, model, loaded = pair
    before, after = (m.predict(GP_CASES[name][3]) for m in (model, loaded))
    assert (before.dtype, before.tolist()) == (after.dtype, after.tolist())


def test_parameters(pair: Any) -> None:
    _, model, loaded = pair
    assert loaded.get_params() == model.get_params()


def test_no_fitted_attribute_is_lost(pair: Any) -> None:
    """An attribute that a later version adds fails here until it is saved too; private ones serve the same process."""
    _, model, loaded = pair
    assert set(vars(loaded)) == {name for name in vars(model) if not name.startswith("_")}


def test_arrays_and_numbers_among_the_attributes(pair: Any) -> None:
    _, model, loaded = pair
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray | float) and not name.startswith("_"):
            assert_array_equal(getattr(loaded, name), value, err_msg=name, strict=True)


@pytest.mark.parametrize("name", [name for name in GP_CASES if name.startswith("SDR")])
def test_reduction_inside(name: str, tmp_path: Path) -> None:
    model, new = fitted_model(name), GP_CASES[name][3]
    model.save(tmp_path / "m")
    assert persistence.load(tmp_path / "m").transform(new).tobytes() == model.transform(new).tobytes()


def test_a_loaded_model_saves_to_the_same_file(pair: Any, tmp_path: Path) -> None:
    _, _, loaded = pair
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_refit_of_a_loaded_model(pair: Any) -> None:
    name, model, loaded = pair
    _, inputs, targets, new = GP_CASES[name]
    assert_array_equal(predictions(clone(loaded).fit(inputs, targets), new), predictions(model, new))


def test_single_precision_predicts_nearly_the_same(pair: Any, tmp_path: Path) -> None:
    name, model, _ = pair
    model.save(tmp_path / "single", dtype="float32")
    found = predictions(persistence.load(tmp_path / "single"), GP_CASES[name][3])
    assert_allclose(found, predictions(model, GP_CASES[name][3]), rtol=1e-3, atol=1e-5)


def test_every_field_of_the_stacks_is_saved() -> None:
    """A field that a later version adds fails here until it is saved too."""
    kinds = (Stack, ClassStack, Tails, Linear, Forest, Boosting, Trees, Noise)
    names = {part.name for kind in kinds for part in fields(kind)}
    assert names == {"processes", "weights", "variance_scale", "tails", "calibration", "warp", "errors", "temperatures",
                     "sharpness", "confidences", "parts", "freedom", "coefficients", "intercepts", "trees", "baseline",
                     "binary", "feature", "threshold", "left", "right", "values", "roots", "columns", "n_columns",
                     "single", "groups", "logarithmic", "noise", "expert", "least", "unit"}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["SDRGPRegressor", "SDRGPRegressor, warped", "SDRGPRegressor, noise", "SDRGPRegressor, several targets"]
)
def test_intervals_densities_and_novelty_are_the_same_to_the_last_bit(name: str, tmp_path: Path) -> None:
    model, (_, _, y, new) = fitted_model(name), GP_CASES[name]
    model.save(tmp_path / "m")
    loaded = persistence.load(tmp_path / "m")
    for said in (
        lambda m: m.predict_quantiles(new),
        lambda m: m.predict_interval(new, 0.5, method="conformal"),
        lambda m: m.log_density(new, y[: len(new)]),
        lambda m: m.novelty(new),
    ):
        assert said(loaded).tobytes() == said(model).tobytes()


def test_prediction_sets_are_the_same(tmp_path: Path) -> None:
    model = fitted_model("SDRGPClassifier")
    model.save(tmp_path / "m")
    assert_array_equal(persistence.load(tmp_path / "m").predict_set(NEW, 0.7), model.predict_set(NEW, 0.7))


def test_the_cases_have_a_warp_and_noise() -> None:
    """Or their round trips would prove nothing."""
    assert fitted_model("SDRGPRegressor, warped").stacks_[0].warp is not None
    assert fitted_model("SDRGPRegressor, noise").stacks_[0].noise is not None


def test_inputs_are_stored_once_for_all_experts_and_targets(tmp_path: Path) -> None:
    fitted_model("SDRGPRegressor, several targets").save(tmp_path / "m")
    stored = [key for key, A in load_file(tmp_path / "m").items() if "stacks_" in key and A.shape == X.shape]
    assert len(stored) == 1


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("SDRGPRegressor, several targets", ("isotropic", "embedding")),
        ("SDRGPRegressor, several targets", ("embedding", "inputs")),
        ("SDRGPRegressor", ("forest",)),
    ],
)
def test_experts_may_differ_between_targets(case: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Processes on a view share its samples, and each target's experts find the column of that target."""
    model = copy(fitted_model(case))
    model.stacks_ = tuple(
        replace(stack, weights={name: 1.0}, processes={name: stack.processes[name]})
        for stack, name in zip(model.stacks_, names, strict=True)
    )
    model.save(tmp_path / "model")
    new = GP_CASES[case][3]
    assert_array_equal(SDRGPRegressor.load(tmp_path / "model").predict(new), model.predict(new))


def test_single_precision_is_smaller(tmp_path: Path) -> None:
    wide = np.random.default_rng(0).standard_normal((60, 400))
    model = GPRegressor(gp_optimizer="adam", gp_steps=1).fit(wide, wide[:, 0])
    for dtype in ("float64", "float32"):
        model.save(tmp_path / dtype, dtype=dtype)
    assert 0.45 < (tmp_path / "float32").stat().st_size / (tmp_path / "float64").stat().st_size < 0.55


def test_likelihood_of_the_fit_is_kept(tmp_path: Path) -> None:
    """A parameter that is changed after the fit is for the next one, in a loaded model as well."""
    model = GPClassifier(random_state=0).fit(X, GROUPS).set_params(alpha_epsilon=0.5)
    model.save(tmp_path / "m")
    assert_array_equal(GPClassifier.load(tmp_path / "m").predict_proba(NEW), model.predict_proba(NEW))


def test_feature_names_are_checked_after_loading(tmp_path: Path) -> None:
    fitted_model("GPClassifier, numbers").save(tmp_path / "m")
    with pytest.raises(ValueError, match="feature names should match"):
        GPClassifier.load(tmp_path / "m").predict(FRAME.rename(columns={"a": "b"}))


def test_load_of_another_class(tmp_path: Path) -> None:
    fitted_model("GPRegressor").save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="holds GPRegressor, not SDRGPRegressor; use GPRegressor.load"):
        SDRGPRegressor.load(tmp_path / "m")


def test_generator_as_random_state(tmp_path: Path) -> None:
    model = GPRegressor(random_state=np.random.RandomState(0)).fit(X, NUMBERS)
    with pytest.raises(UnsavableModelError, match="random_state.*set_params"):
        model.save(tmp_path / "m")


def test_generator_of_the_reduction_is_no_hindrance(tmp_path: Path) -> None:
    """The estimator hands its generator on to the reduction it fits; saving leaves the model as it is."""
    model = fitted_model("SDRGPClassifier")
    model.save(tmp_path / "m")
    kinds = [type(found.reduction_.random_state) for found in (model, SDRGPClassifier.load(tmp_path / "m"))]
    assert kinds == [np.random.RandomState, type(None)]


# Enough samples and features that BLAS would share a product among threads and round it differently.
SAMPLES, RESPONSE = make_friedman1(400, 80, noise=1.0, random_state=0)
QUICK = {"gp_optimizer": "adam", "gp_steps": 1, "random_state": 0}
LARGER = {
    "GPRegressor": GPRegressor(**QUICK),
    "SDRGPRegressor": SDRGPRegressor(gp_steps=3, random_state=0),
    "SDRGPRegressor, paper": SDRGPRegressor(eta=10.0, experts=[], **QUICK),
    "GPClassifier": GPClassifier(**QUICK),
    "SDRGPClassifier": SDRGPClassifier(5, gp_steps=3, random_state=0),
    "SDRGPClassifier, paper": SDRGPClassifier(5, experts=[], **QUICK),
}
IN_ANOTHER_PROCESS = """
import sys
sys.path[:0] = [{source!r}, {tests!r}]
from distreduce import persistence
from persistence.cases import predictions_with_covariance
from persistence.test_gp_round_trip import LARGER, SAMPLES
for name in LARGER:
    print(predictions_with_covariance(persistence.load({folder!r} + "/" + name), SAMPLES[300:]).tobytes().hex())
"""


@pytest.fixture(scope="module")
def larger(tmp_path_factory: Any) -> tuple[Path, dict[str, Any]]:
    """Models fitted and saved here, and the folder they are in."""
    folder, models = tmp_path_factory.mktemp("larger"), {}
    for name, model in LARGER.items():
        y = RESPONSE > np.median(RESPONSE) if "Classifier" in name else RESPONSE
        with light_predictors():
            models[name] = clone(model).fit(SAMPLES[:200], y[:200])
        models[name].save(folder / name)
    return folder, models


@pytest.fixture(scope="module", params=[1, 2])
def elsewhere(request: Any, larger: tuple[Path, dict[str, Any]]) -> dict[str, bytes]:
    """Their predictions in a new process with that many threads."""
    folders = {"source": str(Path(distreduce.__file__).parents[1]), "tests": str(Path(__file__).parents[1])}
    script = IN_ANOTHER_PROCESS.format(folder=str(larger[0]), **folders)
    threads = {name: str(request.param) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ | threads
    )
    return dict(zip(LARGER, map(bytes.fromhex, done.stdout.split()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_another_process_predicts_the_same_bits(name: str, larger: Any, elsewhere: dict[str, bytes]) -> None:
    assert elsewhere[name] == predictions_with_covariance(larger[1][name], SAMPLES[300:]).tobytes()
