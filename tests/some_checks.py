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


def parametrize_with_some_checks(estimator: Any, names: tuple[str, ...]) -> Any:
    """A decorator like scikit-learn's `parametrize_with_checks`, for the checks of these names without arguments."""
    checks = {
        check.func.__name__: (given, check)
        for given, check in estimator_checks_generator(estimator)
        if not check.keywords
    }
    return pytest.mark.parametrize(("estimator", "check"), [checks[name] for name in names], ids=names)
