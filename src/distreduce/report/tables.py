"""The tables of the page that need no script: the prototypes, and the samples that they represent worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distreduce._utils.typing import Index
from distreduce.report.content import Selection, Subject, TargetView
from distreduce.report.encode import cell_text
from distreduce.report.evidence import QUALITY, Criticism, find_evidence


def list_prototypes(subject: Subject, prototypes: Index, found: Sequence[TargetView]) -> list[dict[str, Any]]:
    """Return the rows of the table of prototypes: the evidence, then what the fit believes."""
    model = subject.model
    counts = np.bincount(model.labels_, minlength=len(model.prototypes_))
    lines: list[dict[str, Any]] = [
        {
            "number": int(k),
            "weight": f"{100 * model.prototype_weights_[k]:.2f} %",
            "count": f"{counts[k]:,}",
            "medoid": int(subject.row_numbers[model.prototype_medoids_[k]]),
            "targets": [each.believed.describe(place) for each in found],
        }
        for place, k in enumerate(prototypes)
    ]
    if subject.with_evidence:
        table = model.prototype_evidence_.iloc[prototypes]
        for place, (line, (_, row)) in enumerate(zip(lines, table.iterrows(), strict=True)):
            line["nearby"] = f"{int(row['n_samples']):,}"
            line["evidence"] = [each.shown.describe(place) for each in found]
            texts = {name: f"{row[name]:.2f}".replace("-", "−") for name in QUALITY if name in row}
            if "purity low" in texts:
                texts["purity"] += f" ({texts.pop('purity low')} to {texts.pop('purity high')})"
            line["quality"] = list(texts.values())
            line["dubious"] = bool(row["dubious"])
    return lines


def describe_criticisms(subject: Subject, selection: Selection, worst: Sequence[Criticism]) -> list[dict[str, Any]]:
    """Return the rows of the table of criticisms; `place` and `opens` are None for what the map does not draw."""
    samples, prototypes = (
        {int(each): place for place, each in enumerate(shown)} for shown in (selection.samples, selection.prototypes)
    )
    columns = subject.target_columns()
    nearest = np.array([each.prototype for each in worst], dtype=np.intp)
    expected = [find_evidence(subject.model, None, nearest, t, "") for t in range(len(columns))] if worst else []
    return [
        {
            **each._asdict(),
            "row": int(subject.row_numbers[each.sample]),
            "place": samples.get(each.sample),
            "opens": prototypes.get(each.prototype),
            "targets": [cell_text(column[each.sample]) for column in columns],
            "expected": [target.describe(k) for target in expected],
        }
        for k, each in enumerate(worst)
    ]
