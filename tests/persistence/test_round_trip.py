"""What comes out of a file is what went in."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from persistence.cases import CASES, FRAME, NEW, NUMBERS, X, fitted_model
from safetensors.numpy import load_file
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

import distreduce
from distreduce import SDR, DistR, persistence
from distreduce.losses import BregmanLoss
from distreduce.mapping import KernelMap, Predictions


@pytest.fixture(params=list(CASES))
def pair(request: Any, tmp_path: Path) -> tuple[str, Any, Any]:
    """A case, its model, and that model from a file."""
    model = fitted_model(request.param)
    model.save(tmp_path / "model")
    return request.param, model, persistence.load(tmp_path / "model")


def plain(value: Any) -> Any:
    """A value as something that == compares, with the type of its numbers."""
    if isinstance(value, KernelMap | Predictions):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, pd.DataFrame):
        return {column: plain(value[column].to_numpy()) for column in value}
    if sparse.issparse(value):
        return isinstance(value, sparse.sparray), plain(value.toarray())
    if isinstance(value, np.ndarray):
        # Bytes, for NaN is not equal to NaN; an array of objects has only addresses to show.
        return value.dtype, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, BregmanLoss):
        return type(value)
    return value


def attributes(model: Any) -> dict[str, Any]:
    return {name: plain(value) for name, value in vars(model).items() if name.endswith("_")}


def test_transform_is_the_same_to_the_last_bit(pair: Any) -> None:
    name, model, loaded = pair
    assert model.transform(CASES[name][3]).tobytes() == loaded.transform(CASES[name][3]).tobytes()


def test_parameters(pair: Any) -> None:
    _, model, loaded = pair
    before, after = ({key: plain(value) for key, value in m.get_params().items()} for m in (model, loaded))
    assert before == after


def test_fitted_attributes(pair: Any) -> None:
    """All of them: an attribute that a later version adds fails here until it is saved too."""
    _, model, loaded = pair
    assert attributes(model) == attributes(loaded)


def test_class(pair: Any) -> None:
    _, model, loaded = pair
    assert type(model) is type(loaded)


def test_summary(pair: Any) -> None:
    _, model, loaded = pair
    pd.testing.assert_frame_equal(model.summary(), loaded.summary(), check_exact=True)


def test_refit_of_a_loaded_model(pair: Any) -> None:
    name, model, loaded = pair
    _, inputs, targets, _ = CASES[name]
    assert_array_equal(loaded.fit(inputs, y=targets).embedding_, model.embedding_)


def test_clone_of_a_loaded_model(pair: Any) -> None:
    _, model, loaded = pair
    copy = clone(loaded)
    assert {k: plain(v) for k, v in copy.get_params().items()} == {k: plain(v) for k, v in model.get_params().items()}


def test_a_loaded_model_saves_to_the_same_file(pair: Any, tmp_path: Path) -> None:
    _, _, loaded = pair
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_every_field_of_the_map_is_saved() -> None:
    assert [part.name for part in fields(KernelMap)] == ["kernel", "inputs", "coefficients", "unit", "predictions"]


def test_feature_names_are_checked_after_loading(model: Any, saved: Path) -> None:
    with pytest.raises(ValueError, match="feature names should match"):
        SDR.load(saved).transform(FRAME.rename(columns={"a": "b"}))


def test_names_with_odd_characters(tmp_path: Path) -> None:
    names = ["nul\0", "\ud800", 'quote"\\']
    table = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    DistR(n_prototypes=5, random_state=0).fit(table).save(tmp_path / "m")
    assert DistR.load(tmp_path / "m").feature_names_in_.tolist() == names


def test_loaded_arrays_can_be_written_to(saved: Path) -> None:
    loaded = SDR.load(saved)
    assert loaded.prototypes_.flags.writeable and loaded.map_.inputs.flags.writeable


def test_other_programs_can_read_the_arrays(model: Any, saved: Path) -> None:
    assert_array_equal(load_file(saved)["fitted.prototypes_"], model.prototypes_)


def test_load_in_another_process(model: Any, saved: Path) -> None:
    source = str(Path(distreduce.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r}); import numpy as np; from distreduce import SDR\n"
        f"print(SDR.load({str(saved)!r}).prototypes_.tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == model.prototypes_.tobytes().hex()


def test_path_as_text(model: Any, tmp_path: Path) -> None:
    model.save(str(tmp_path / "m"))
    assert_array_equal(SDR.load(str(tmp_path / "m")).labels_, model.labels_)


def test_single_precision_halves_the_file(tmp_path: Path) -> None:
    wide = np.random.default_rng(0).standard_normal((60, 800))
    model = DistR(n_prototypes=5, random_state=0).fit(wide)
    model.save(tmp_path / "double")
    model.save(tmp_path / "single", dtype="float32")
    sizes = [(tmp_path / name).stat().st_size for name in ("double", "single")]
    assert 0.45 < sizes[1] / sizes[0] < 0.55


def test_single_precision_embeds_nearly_the_same(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m", dtype="float32")
    error = np.abs(SDR.load(tmp_path / "m").transform(FRAME) - model.transform(FRAME)).max()
    assert 0 < error < 1e-5 * np.abs(model.embedding_).max()


def test_single_precision_keeps_parameters_exact(tmp_path: Path) -> None:
    model = fitted_model("dense start")
    model.save(tmp_path / "m", dtype="float32")
    assert_array_equal(SDR.load(tmp_path / "m").init, model.init)


def test_single_precision_loads_as_double(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m", dtype="float32")
    assert SDR.load(tmp_path / "m").map_.coefficients.dtype == np.float64


def test_parameters_changed_after_the_fit_are_kept(tmp_path: Path) -> None:
    model = SDR(n_prototypes=5, random_state=0).fit(X, NUMBERS).set_params(n_components=3, metric="precomputed")
    model.save(tmp_path / "m")
    loaded = SDR.load(tmp_path / "m")
    assert (loaded.n_components, loaded.transform(NEW).shape) == (3, (7, 2))


def test_distances_with_samples_of_weight_zero(tmp_path: Path) -> None:
    weights = np.ones(len(X))
    weights[3] = 0
    model = SDR(n_prototypes=5, metric="precomputed", random_state=0).fit(cdist(X, X), NUMBERS, weights)
    model.save(tmp_path / "m")
    assert_array_equal(SDR.load(tmp_path / "m").transform(cdist(NEW, X)), model.transform(cdist(NEW, X)))


def test_columns_of_the_history_keep_their_order(pair: Any) -> None:
    _, model, loaded = pair
    reductions = [getattr(one, "reduction_", one) for one in (model, loaded)]
    before, after = [list(one.history_.columns) if hasattr(one, "history_") else [] for one in reductions]
    assert after == before
