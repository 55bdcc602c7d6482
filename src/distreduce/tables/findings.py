"""What the cells of a file have that those of the fit did not: missing cells, unknown levels, another scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from distreduce._utils.text import count_of, list_words

NOVEL = 0.02  # p-value below which a row is unlike those of the fit
FEW = 0.06  # share of rows that may be unlike those of the fit by chance
FAR = 10.0  # standard deviations from the mean of the fit
MIN_BARE = 5  # numbers without a unit that are more than an oversight
MAX_COLUMNS = 8  # columns that a sentence lists
ALL_UNKNOWN = "That is every row: the column says nothing about these rows. Is it spelled otherwise than in the fit?"


@dataclass
class Findings:
    """Counts by column, summed over the chunks of a file; `units` are those that columns had in the fit."""

    n_rows: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, Counter[str]] = field(default_factory=dict)
    far: Counter[str] = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)  # dates after the last one of the fit
    units: dict[str, str] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)  # of columns with a unit
    with_unit: Counter[str] = field(default_factory=Counter)
    novel: int = 0

    def describe_surprises(self) -> list[str]:
        """Return one sentence per column with unknown levels, without its unit, or with most of its numbers far off."""
        sentences = [
            f"{name!r}: {count_of(levels.total(), 'row')} with levels that the fit did not know "
            f"({list_words([level for level, _ in levels.most_common(6)])}). "
            + (ALL_UNKNOWN if levels.total() >= self.n_rows else "Check the spelling.")
            for name, levels in self.unknown.items()
        ]
        sentences += [
            f"{name!r}: no cell has the unit {unit!r} that the fit had. Check the unit."
            for name, unit in self.units.items()
            if self.numbers[name] >= MIN_BARE and not self.with_unit[name]
        ]
        sentences += [
            f"{name!r}: {count:,} of {self.n_rows:,} rows are later than all rows of the fit, so that predictions are "
            "extrapolations. Only scores and intervals of a fit with --time hold for them."
            for name, count in self.later.items()
            if count > FEW * self.n_rows
        ]
        if self.novel > FEW * self.n_rows:
            sentences.append(
                f"Unlike any row of the fit (novelty below {NOVEL:g}), so that predictions are extrapolations: "
                f"{self.novel:,} of {self.n_rows:,} rows."
            )
        return sentences + [
            f"{name!r}: {count_of(count, 'row')} of {self.n_rows:,} lie more than {FAR:g} standard deviations from the "
            "mean of the fit. Check the unit."
            for name, count in self.far.items()
            if 2 * count > self.n_rows
        ]


def list_counts(counts: Mapping[str, int]) -> str:
    """Return columns with their counts, such as "'age' (177), 'deck' (688)"."""
    found = [f"{name!r} ({count:,})" for name, count in counts.items()]
    more = f" and {len(found) - MAX_COLUMNS} more columns" if len(found) > MAX_COLUMNS else ""
    return ", ".join(found[:MAX_COLUMNS]) + more
