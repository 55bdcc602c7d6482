"""``distreduce demo``: two data sets that come with scikit-learn, a picture and two tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from distreduce._utils.files import replacing
from distreduce._utils.typing import Array, Index
from distreduce.cli._names import METRICS
from distreduce.cli._screen import progress
from distreduce.cli._tables import FITTED, summary_table, write_table
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import reduction_scores
from distreduce.plotting import plot_embedding

STEPS = 5
N_NEIGHBORS = 10
Scores = dict[str, Any]


@dataclass(frozen=True)
class Split:
    """A data set split in two, with the row numbers of both parts; the training part alone scales the features."""

    name: str
    X_train: Array
    X_test: Array
    y_train: Any
    y_test: Any
    rows_train: Index
    rows_test: Index


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the tables.")] = Path("distreduce-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the splits and the fits.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the files are still written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of a table.")] = False,
) -> None:
    """Reduce two data sets that come with scikit-learn, and write a picture and two tables.

    Digits (1797 × 64, 10 classes) are reduced to at most 60 prototypes, diabetes
    (442 × 10, a number) keeps one prototype per sample. A fifth of each is held
    out. It takes less than a minute, needs no network and opens no window.
    """
    with progress(STEPS + 1, silent=quiet or as_json) as advance:
        scores = run_demo(out, seed, advance)
    if as_json:
        typer.echo(json.dumps({"folder": str(out), "results": scores}, indent=2))
    elif not quiet:
        Console().print(_make_table(scores))
        typer.echo(f"Wrote embedding.png, prototypes.csv and embedding.csv to {out.resolve()}")


def run_demo(folder: Path, seed: int, advance: Callable[[str], object]) -> list[Scores]:
    """Fit both models, score them and write the files; `advance` is called with the name of each of `STEPS` steps."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--out {folder} is a file; name a folder.")
    # Both commands write embedding.csv and prototypes.csv.
    if (folder / METRICS).exists():
        raise InvalidInputError(f"--out {folder} holds the results of a fit; name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    splits = [split_digits(seed), split_diabetes(seed)]
    models = [SDR(n_prototypes=60, random_state=seed), SDR(task="regression", random_state=seed)]
    scores = []
    for split, model in zip(splits, models, strict=True):
        advance(f"{split.name}: fit")
        model.fit(split.X_train, split.y_train)
        advance(f"{split.name}: scores")
        scores.append(_score(split, model))
    advance("picture and tables")
    with replacing(folder / "embedding.png") as path:
        _draw(splits, models, path)
    summary = summary_table(models[0], splits[0].rows_train)  # rows of the complete data set, as in embedding.csv
    with replacing(folder / "prototypes.csv") as path:
        write_table(summary, path)
    tables = [_tabulate_places(split, model) for split, model in zip(splits, models, strict=True)]
    with replacing(folder / "embedding.csv") as path:
        write_table(pd.concat(tables), path)
    return scores


def split_digits(seed: int) -> Split:
    """Return 1797 scans of hand-written digits: 8 × 8 grey values divided by their maximum, 10 classes."""
    X, y = load_digits(return_X_y=True)
    return _split("digits", X / 16.0, y, seed, stratify=y)


def split_diabetes(seed: int) -> Split:
    """Return 442 patients: 10 standardised features, disease progression after a year."""
    X, y = load_diabetes(return_X_y=True)
    split = _split("diabetes", X, pd.Series(y, name="progression"), seed)
    scaler = StandardScaler().fit(split.X_train)  # never on the held-out part
    return replace(split, X_train=scaler.transform(split.X_train), X_test=scaler.transform(split.X_test))


def _split(name: str, X: Array, y: Any, seed: int, **options: Any) -> Split:
    rows = np.arange(len(X))
    return Split(name, *train_test_split(X, y, rows, test_size=0.2, random_state=seed, **options))


def _score(split: Split, model: SDR) -> Scores:
    """Score the prototypes, and 10-NN on the embedding, on all features and on two principal components."""
    # The same 10-NN in three spaces: is the picture worth as much as the features, and more than PCA?
    scores = reduction_scores(model, split.y_train)
    classes = model.task_ == "classification"
    pca = PCA(2, random_state=0).fit(split.X_train)
    spaces = [
        (model.embedding_, model.transform(split.X_test)),
        (split.X_train, split.X_test),
        (pca.transform(split.X_train), pca.transform(split.X_test)),
    ]
    kind = KNeighborsClassifier if classes else KNeighborsRegressor
    held_out = [kind(N_NEIGHBORS).fit(A, split.y_train).score(B, split.y_test) for A, B in spaces]
    return {
        "data": split.name,
        "n_train": len(split.X_train),
        "n_features": split.X_train.shape[1],
        "prototypes_used": int(np.count_nonzero(model.prototype_weights_)),
        "n_prototypes": len(model.prototypes_),
        **{name: scores[name] if classes else None for name in ("homogeneity", "nmi", "silhouette")},
        "cka": scores["cka"],
        "score": "accuracy" if classes else "R²",
        "fitted": model.neighbor_scores_["fitted"],
        "left_out": model.neighbor_scores_["left_out"],
        **dict(zip(("sdr_2d", "all_features", "pca_2d"), held_out, strict=True)),
    }


def _draw(splits: list[Split], models: list[SDR], path: Path) -> None:
    """Draw both embeddings side by side, without pyplot, so that no window can open."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 5.6), layout="constrained")
    for ax, split, model in zip(figure.subplots(1, 2), splits, models, strict=True):
        plot_embedding(model, split.y_train, ax)
        ax.spines[["top", "right"]].set_visible(False)
        used = int(np.count_nonzero(model.prototype_weights_))
        few = f", {used} prototypes (area = weight)" if used < len(split.y_train) else ""
        ax.set_title(f"{split.name}: {len(split.y_train)} samples × {split.X_train.shape[1]} features{few}")
    figure.savefig(path, dpi=130, format="png")


def _tabulate_places(split: Split, model: SDR) -> pd.DataFrame:
    """Return one row per sample: its row in the data set, its part, its target, its place and its fitted place."""
    names = list(model.get_feature_names_out())
    new = model.transform(split.X_test)
    frames = []
    for part, rows, y, Z, fitted in (
        ("train", split.rows_train, split.y_train, model.embedding_left_out_, model.embedding_),
        ("test", split.rows_test, split.y_test, new, new),  # these have never been in the fit
    ):
        # As objects, classes stay whole numbers beside the fractions of the other data set.
        front = pd.DataFrame({"data": split.name, "row": rows, "part": part, "y": np.asarray(y).astype(object)})
        columns = [*names, *(f"{FITTED} {name}" for name in names)]
        frames.append(front.join(pd.DataFrame(np.hstack([Z, fitted]), columns=columns)))
    return pd.concat(frames)


def _make_table(scores: list[Scores]) -> Table:
    table = Table(title="SDR in two dimensions; 10-NN is scored on the held-out fifth of the samples")
    table.add_column("")
    for each in scores:
        table.add_column(f"{each['data']} ({each['n_train']} × {each['n_features']})", justify="right")
    table.add_row("prototypes used", *(f"{each['prototypes_used']} of {each['n_prototypes']}" for each in scores))
    for name in ("homogeneity", "nmi", "silhouette"):
        values = [each[name] for each in scores]
        table.add_row(name.replace("nmi", "NMI"), *("–" if value is None else f"{value:.1f}" for value in values))
    table.add_row("CKA", *(f"{each['cka']:.3f}" for each in scores))
    # Above the line: the prototypes. Below it: neighbours of held-out samples, then those that the picture shows.
    for rows in (
        {"sdr_2d": "SDR, 2-D", "pca_2d": "PCA, 2-D", "all_features": "all features"},
        {"left_out": "the picture (left out)", "fitted": "the picture as fitted"},
    ):
        table.add_section()
        for name, label in rows.items():
            table.add_row(f"10-NN, {label}", *(f"{each['score']} {each[name]:.3f}" for each in scores))
    return table
