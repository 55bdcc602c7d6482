"""scikit-learn's checks of an estimator, by name: for those whose other checks run on a quicker variant."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

# What a fit does with the samples. Tags, parameters and refused input do not depend on the quick or slow parts of it.
ABOUT_THE_FIT = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_estimators_dtypes",
    "check_estimators_pickle",
    "check_readonly_memmap_input",
    "check_fit2d_1feature",
)
# What a comparison needs of a method of the paper's tables, which is not part of the library.
ABOUT_A_BASELINE = (
    *(name for name in ABOUT_THE_FIT if "weight" not in name),
    "check_estimator_cloneable",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_n_features_in_after_fitting",
    "check_fit2d_1sample",
)
# What the experts of a stack could change about it.
ABOUT_THE_EXPERTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_estimators_pickle",
)


def parametrize_with_some_checks(estimators: list[Any], names: tuple[str, ...]) -> Any:
    """A decorator like scikit-learn's `parametrize_with_checks`, for the checks of these names without arguments.

    A check that does not concern an estimator, such as that of weights which it does not take, is left out.
    """
    checks = {
        f"{place}-{check.func.__name__}": (given, check)
        for place, estimator in enumerate(estimators)
        for given, check in estimator_checks_generator(estimator)
        if not check.keywords and check.func.__name__ in names
    }
    assert {name.split("-")[1] for name in checks} == set(names)
    return pytest.mark.parametrize(("estimator", "check"), list(checks.values()), ids=list(checks))
