"""``distreduce demo``: what ``distreduce fit`` does with a file, on images that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distreduce.cli._names import FILES
from distreduce.cli.apply import Overwrite, Quiet
from distreduce.cli.fit import MetricsJson, Seed, fit
from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import check_folder, whole_file

N_IMAGES = 600  # of 1797: all of them would take minutes


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the images and the results.")] = Path("distreduce-demo"),
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: MetricsJson = False,
) -> None:
    """Fit 600 handwritten digits that come with scikit-learn, as `distreduce fit` fits your own file.

    Writes digits.npz and the folder digits, whose report.html shows the picture,
    its prototypes and how well new images are read. Then compares planes: ten
    nearest neighbours of new samples by SDR and by PCA, of digits and of
    diabetes. It takes about a minute and needs no network.
    """
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; name a folder.")
    check_folder(out / "digits", FILES, overwrite=overwrite)
    # Only now what takes seconds to import.
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / "digits.npz", overwrite=overwrite) as place, open(str(place), "wb") as stream:
        np.savez(stream, X=digits.images[:N_IMAGES], y=digits.target[:N_IMAGES])
    fit(out / "digits.npz", out=out / "digits", seed=seed, overwrite=overwrite, quiet=quiet, as_json=as_json)
    if not (quiet or as_json):
        _print_planes(seed)


def _print_planes(seed: int) -> None:
    """Print what the plane is worth to new samples: the same ten nearest neighbours in three spaces."""
    import warnings

    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from sklearn.datasets import load_diabetes, load_digits
    from sklearn.decomposition import PCA
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from distreduce import SDR
    from distreduce.exceptions import OptimisticPictureWarning

    pixels = FunctionTransformer(lambda X: X / 16)  # their common scale means something
    images, patients = SDR(n_prototypes=60, random_state=seed), SDR(task="regression", random_state=seed)
    cases = {
        "digits, accuracy": (load_digits, pixels, images, KNeighborsClassifier(10)),
        "diabetes, R²": (load_diabetes, StandardScaler(), patients, KNeighborsRegressor(10)),
    }
    table = Table("", "SDR", "PCA", "all features", title="10 nearest neighbours of new samples in the plane")
    for name, (load, scaler, model, neighbours) in cases.items():
        X, new, y, truth = train_test_split(*load(return_X_y=True), test_size=0.2, random_state=seed)
        X, new = scaler.fit_transform(X), scaler.transform(new)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimisticPictureWarning)  # the table says the same in numbers
            spaces = [each.fit(X, y).transform for each in (model, PCA(2, random_state=0))] + [np.asarray]
        scores = (neighbours.fit(space(X), y).score(space(new), truth) for space in spaces)
        table.add_row(name, *(f"{score:.3f}" for score in scores))
    Console().print(table)
