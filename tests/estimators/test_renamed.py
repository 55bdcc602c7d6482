"""Parameters of before keep working, with a FutureWarning at the user's line that names the new ones."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor
from distreduce.estimators._mixins import translate_renamed

OLD: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (SDR, {"target_form": "transport"}, {"dependence": "cka:transport"}),
    (SDR, {"target_form": "mass", "dependence": "hsic"}, {"dependence": "hsic:mass"}),
    (SDR, {"target_form": "barycentric"}, {"dependence": "cka"}),
    (SDR, {"backend": "torch", "device": "cuda:0"}, {"backend": "torch:cuda:0"}),
    (DistR, {"backend": "torch", "device": None}, {"backend": "torch"}),
    (DistR, {"device": "cuda"}, {"backend": "auto"}),
    (DistR, {"n_neighbors": 20, "n_prototypes": 5, "affinity": "sparse"}, {"affinity": 20}),
    (SDR, {"n_neighbors": 20, "n_prototypes": 5}, {"affinity": 20}),
    (SDR, {"n_neighbors": 20}, {"affinity": "auto"}),
    (SDR, {"n_neighbors": 20, "n_prototypes": 5, "affinity": "dense"}, {"affinity": "dense"}),
    *((cls, {"checkpoint_every": 3}, {}) for cls in (SDR, DistR, SDRGPRegressor, SDRGPClassifier)),
]


@pytest.mark.parametrize(("cls", "old", "new"), OLD)
def test_an_old_name_is_translated(cls: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
    with pytest.warns(FutureWarning, match="is deprecated") as caught:
        model = cls(**old)
    assert caught[0].filename == __file__
    assert new.items() <= model.get_params().items()
    assert clone(model).get_params() == model.get_params()
    with pytest.warns(FutureWarning, match="is deprecated"):
        assert cls().set_params(**old).get_params() == model.get_params()
    assert cls(**translate_renamed(cls, old)).get_params() == model.get_params()


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'prototypes'"):
        SDR(prototypes=3)
    with pytest.raises(ValueError, match="Invalid parameter 'prototypes'"):
        SDR().set_params(prototypes=3)
