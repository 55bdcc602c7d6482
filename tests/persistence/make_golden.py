"""Write small models of this version, and what they predict, to golden/: once for each format and class, never again.

    PYTHONPATH=src:tests python tests/persistence/make_golden.py

Files of older versions stay as they are: that they can still be read is what they are for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from persistence.cases import predictions

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, SDRImputer, __version__
from distreduce.gp import GPClassifier, GPRegressor
from distreduce.persistence import FORMAT_VERSION

FOLDER = Path(__file__).parent / "golden"
CURRENT = FOLDER / f"{__version__}-format-{FORMAT_VERSION[0]}"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 2))
NEW = RNG.standard_normal((5, 2))
NUMBERS = X[:, 0] + 0.1 * RNG.standard_normal(16)
TABLE = np.c_[NUMBERS, X[:, 1] ** 2]
WORDS = np.array(["ash", "bïrch"])[(NUMBERS > 0).astype(int)]
SMALL = {"perplexity": 4.0, "random_state": 0}

MODELS: dict[str, tuple[Any, Any]] = {
    "sdr": (SDR(n_prototypes=4, **SMALL), NUMBERS),
    "sdr-classes": (SDR(n_prototypes=4, **SMALL), WORDS),
    "distr": (DistR(n_prototypes=4, **SMALL), None),
    "imputer": (SDRImputer(random_state=0), None),
    "gp-regressor": (GPRegressor(gp_steps=20), TABLE),
    "gp-classifier": (GPClassifier(n_draws=8, gp_steps=10, random_state=0), WORDS),
    "sdr-gp-regressor": (SDRGPRegressor(gp_steps=20, **SMALL), NUMBERS),
    "sdr-gp-regressor-targets": (SDRGPRegressor(n_prototypes=4, experts=[], gp_steps=20, **SMALL), TABLE),
    "sdr-gp-regressor-paper": (SDRGPRegressor.paper(**SMALL), NUMBERS),
    "sdr-gp-classifier": (SDRGPClassifier(2, gp_steps=10, **SMALL), WORDS),
    "sdr-gp-classifier-paper": (SDRGPClassifier.paper(2, n_draws=8, **SMALL), WORDS),
}


def said(model: Any, new: np.ndarray) -> np.ndarray:
    """Predictions, or places where the model only reduces, or missing cells with their deviations."""
    if isinstance(model, SDRImputer):
        return np.array(model.transform(np.where(np.eye(*new.shape) > 0, np.nan, new), return_std=True))
    return predictions(model, new) if hasattr(model, "predict") else model.transform(new)


def main() -> None:
    """Fit, save, and keep what each model says of new samples."""
    CURRENT.mkdir(parents=True, exist_ok=True)
    kept = CURRENT / "expected.npz"
    expected = dict(np.load(kept)) if kept.exists() else {"new": NEW}
    for name, (model, y) in MODELS.items():
        if name in expected:
            continue
        model.fit(X, y)
        model.save(CURRENT / f"{name}.safetensors")
        expected[name] = said(model, NEW)
    np.savez_compressed(kept, **expected)


if __name__ == "__main__":
    main()
