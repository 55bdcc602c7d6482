"""Every reader of files from strangers: real files to start from, ways to spoil them, and the call that reads them."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from hostile.archives import forge_model, forge_npz
from hostile.checkpoints import checkpoints, go_on
from hostile.commands import fitted_folder, run_on
from hostile.mutations import Rng, Spoil, spoil_bytes, spoil_cells, spoil_json, spoil_json_lines
from hostile.originals import table
from hostile.tables import strange_parquet

from distreduce import SDR, SDRGPRegressor, datasets, persistence
from distreduce.interop import load_map, load_predictor, save_map, save_predictor
from distreduce.tables.prepare import prepare
from distreduce.tables.reading import read_chunks
from distreduce.tables.recipe import ColumnRecipe, read_recipe, write_recipe
from distreduce_paper import load_experiment
from distreduce_paper.store import Store, load_failures, load_frame

GOLDEN = Path(__file__).parent.parent / "persistence" / "golden" / "0.1.0"
ROWS = np.random.default_rng(1).standard_normal((3, 2))


@dataclass(frozen=True)
class Reader:
    """A kind of file: its name on disk, real files, damages, and what reads it."""

    file: str
    originals: Callable[[], list[bytes]]
    spoils: tuple[Spoil, ...]
    read: Callable[[Path], object]
    writes: bool = False  # a command writes beside the file it reads

    def input(self, rng: Rng) -> bytes:
        """A real file, spoilt: by its format, by the byte, or both."""
        originals = self.originals()
        raw = originals[rng.integers(len(originals))]
        if rng.random() < 0.1:  # spliced with another one
            other = originals[rng.integers(len(originals))]
            raw = raw[: rng.integers(len(raw) + 1)] + other[rng.integers(len(other) + 1) :]
            return spoil_bytes(raw, rng)
        for spoil in rng.permutation(np.array([*self.spoils, None], dtype=object))[:1]:
            raw = raw if spoil is None else spoil(raw, rng)
        return raw if rng.random() < 0.6 else spoil_bytes(raw, rng)


def _saved(write: Callable[[Any], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


@cache
def texts(separator: str) -> list[bytes]:
    return [
        table().to_csv(index=False, sep=separator).encode(),
        table().iloc[:3].to_csv(index=False, sep=separator).encode(),
    ]


@cache
def workbooks() -> list[bytes]:
    """Packed, and as it is, so that damage reaches the sheet itself; without the time of day."""
    written = _saved(lambda stream: table().to_excel(stream, index=False, engine="openpyxl"))
    found = []
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(written)) as old, zipfile.ZipFile(stream, "w") as new:
            for name in old.namelist():
                content = re.sub(rb"\d{4}-\d\d-\d\dT[\d:]+Z", b"2024-01-01T00:00:00Z", old.read(name))
                new.writestr(zipfile.ZipInfo(name), content, packing)
        found.append(stream.getvalue())
    return found


@cache
def parquets() -> list[bytes]:
    tables = (table(), table().astype({"town": "category"}), table()[["size", "rooms", "price"]])
    return [_saved(one.to_parquet) for one in tables]


@cache
def npzs() -> list[bytes]:
    X = table()[["size", "rooms"]].to_numpy()
    images = np.arange(96.0).reshape(6, 4, 4)
    return [
        _saved(lambda stream: np.savez(stream, X=X, y=X[:, 0])),
        _saved(lambda stream: np.savez_compressed(stream, X=images, labels=np.array([0, 1, 2] * 2))),
    ]


@cache
def models() -> list[bytes]:
    return [path.read_bytes() for path in sorted(GOLDEN.glob("*.safetensors"))]


@cache
def maps() -> list[bytes]:
    X = table()[["size", "rooms"]].to_numpy(dtype=float)
    made = []
    for kernel in ("rbf", "rq", "linear"):
        fitted = SDR(n_prototypes=4, input_kernel=kernel, max_iter=1, perplexity=4.0, random_state=0)
        fitted.set_params(tol=1.0).fit(X, X[:, 0])
        made.append(_saved_map(fitted))
    return made


@cache
def predictors() -> list[bytes]:
    X = table()[["size", "rooms"]].to_numpy(dtype=float)
    model = SDRGPRegressor(experts=["linear"], gp_steps=2, random_state=0)
    return [_saved_map(model.fit(X, X[:, 0]), save_predictor)]


def _saved_map(model: Any, save: Callable[..., object] = save_map) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "file")
        return (Path(folder) / "file").read_bytes()


@cache
def recipe() -> ColumnRecipe:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        table().to_csv(Path(folder) / "t.csv", index=False)
        return prepare(Path(folder) / "t.csv", ["price"], missing="impute").recipe


@cache
def recipes() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_recipe(recipe(), Path(folder) / "recipe.json")
        return [(Path(folder) / "recipe.json").read_bytes()]


@cache
def stores() -> list[bytes]:
    cell = {"experiment": "neighbours", "data": "s-curve", "method": "SDR", "seed": 0, "parameters": {"k": 10}}
    measured = {"seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 10.0, "machine": "x", "quick": False}
    lines = [
        {**cell, **measured, "result": {"r2": 0.9}},
        {**cell, **measured, "seed": 1, "result": {"r2": float("nan")}},
        {**cell, **measured, "seed": 2, "error": {"type": "ValueError", "message": "no"}},
    ]
    return ["".join(json.dumps(line) + "\n" for line in lines).encode()]


def read_model(path: Path) -> None:
    """Load, and use what was loaded."""
    model = persistence.load(path)
    X: Any = np.resize(ROWS, (3, min(model.n_features_in_, 100)))
    if X.shape[1] == model.n_features_in_:
        names = getattr(model, "feature_names_in_", None)
        X = X if names is None else pd.DataFrame(X, columns=names)
        model.predict(X) if hasattr(model, "predict") else model.map_(X)


def read_table(path: Path) -> None:
    """The file as a data set, or all that ``distreduce fit`` does before it fits, with one of two sets of options."""
    targets = [] if path.suffix == ".npz" else ["price"]
    choice = crc32(path.read_bytes()) % 3  # of the input alone: a seed says all
    if choice == 0:
        datasets.load(path)
    elif choice == 1:
        prepare(path, targets, missing="drop", unlabelled="drop", categories=["rooms"] if targets else [])
    else:
        prepare(path, targets, missing="impute")


def read_new_rows(path: Path) -> None:
    """What ``distreduce transform`` and ``predict`` do with new rows."""
    for part in read_chunks(path, recipe().as_text):
        recipe().matrix(part, path.name)


def read_and_use_recipe(path: Path) -> None:
    read_recipe(path).matrix(table(), "t.csv")


def read_store(path: Path) -> None:
    store, experiment = Store(path.parent), load_experiment(path.stem)
    store.finished(experiment.name, also_failed=False)
    load_frame(experiment, store)
    load_failures(experiment, store)


READERS: dict[str, Reader] = {
    "model": Reader("model.safetensors", models, (forge_model, forge_model), read_model),
    "checkpoint": Reader("fit.checkpoint", checkpoints, (forge_model, forge_model), go_on, writes=True),
    "store": Reader("neighbours.jsonl", stores, (spoil_json_lines,), read_store),
    "recipe": Reader("recipe.json", recipes, (spoil_json, spoil_json), read_and_use_recipe),
    "map": Reader("map.npz", maps, (forge_npz,), lambda path: load_map(path)(ROWS)),
    "predictor": Reader("p.json", predictors, (spoil_json,), lambda path: load_predictor(path)(ROWS)),
    "csv": Reader("t.csv", lambda: texts(","), (spoil_cells, spoil_cells), read_table),
    "tsv": Reader("t.tsv", lambda: texts("\t"), (spoil_cells, spoil_cells), read_table),
    "txt": Reader("t.txt", lambda: texts(" "), (spoil_cells,), read_table),
    "gz": Reader("t.csv.gz", lambda: [gzip.compress(text, mtime=0) for text in texts(",")], (), read_table),
    "parquet": Reader("t.parquet", parquets, (strange_parquet,), read_table),
    "npz": Reader("t.npz", npzs, (forge_npz, forge_npz), read_table),
    "new rows": Reader("new.csv", lambda: texts(","), (spoil_cells, spoil_cells), read_new_rows),
}

if find_spec("openpyxl"):
    READERS["xlsx"] = Reader("t.xlsx", workbooks, (), read_table)

FOLDER: dict[str, tuple[Spoil, ...]] = {
    "recipe.json": (spoil_json,), "metrics.json": (spoil_json,), "model.safetensors": (forge_model,),
    "predictor.safetensors": (forge_model,), "embedding.csv": (spoil_cells,), "held_out.csv": (spoil_cells,),
    "new.csv": (spoil_cells,),
}  # fmt: skip
READERS |= {
    f"commands, {file}": Reader(file, lambda file=file: [fitted_folder()[file]], spoils, run_on, writes=True)
    for file, spoils in FOLDER.items()
}
