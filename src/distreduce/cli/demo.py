"""``distreduce demo``: what ``distreduce fit`` does with a file, on images that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distreduce.cli._names import FILES
from distreduce.cli.apply import Overwrite, Quiet
from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import check_folder, whole_file

N_IMAGES = 600  # of 1797: all of them would take minutes


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the images and the results.")] = Path("distreduce-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")] = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print metrics.json instead of tables.")] = False,
) -> None:
    """Fit 600 handwritten digits that come with scikit-learn, as `distreduce fit` fits your own file.

    Writes digits.npz and the folder digits, whose report.html shows the picture, its
    prototypes and how well new images are read. It takes about a minute and needs no
    network.
    """
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; name a folder.")
    check_folder(out / "digits", FILES, overwrite=overwrite)
    # Only now what takes seconds to import.
    import numpy as np
    from sklearn.datasets import load_digits

    from distreduce.cli.fit import fit

    digits = load_digits()
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / "digits.npz", overwrite=overwrite) as place, open(str(place), "wb") as stream:
        np.savez(stream, X=digits.images[:N_IMAGES], y=digits.target[:N_IMAGES])
    fit(out / "digits.npz", out=out / "digits", seed=seed, overwrite=overwrite, quiet=quiet, as_json=as_json)
