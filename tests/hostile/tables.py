"""Tables of strange types, as Parquet."""

from __future__ import annotations

import decimal
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hostile.mutations import Rng, text

ROWS = 24


def _columns() -> list[Any]:
    moments = np.arange(ROWS, dtype="int64")
    return [
        pa.array([[1, 2]] * ROWS), pa.array([{"a": 1}] * ROWS), pa.array([b"\xff\x00"] * ROWS), pa.nulls(ROWS),
        pa.array(["x", None] * (ROWS // 2)).dictionary_encode(), pa.array([decimal.Decimal("1e30")] * ROWS),
        pa.array([2**63 - 1] * ROWS), pa.array([2**64 - 1] * ROWS, pa.uint64()),
        pa.array([1e308, -1e308] * (ROWS // 2)),
        pa.array(moments * 10**11, pa.timestamp("s")), pa.array(moments, pa.timestamp("ns", "Asia/Tokyo")),
        pa.array(moments, pa.duration("us")), pa.array(moments.astype("int32"), pa.date32()),
        pa.array(moments, pa.time64("ns")), pa.array([True, None] * (ROWS // 2)),
        pa.array([np.nan, np.inf] * (ROWS // 2)),
        pa.array(np.arange(ROWS, dtype="f2")), pa.array([[]] * ROWS, pa.list_(pa.string())),
    ]  # fmt: skip


COLUMNS = _columns()


def strange_parquet(raw: bytes, rng: Rng) -> bytes:
    """The table with one or two columns of another type, another name, or a name that is there already."""
    table = pq.read_table(io.BytesIO(raw))
    for _ in range(int(rng.integers(1, 3))):
        place = int(rng.integers(table.num_columns))
        column = COLUMNS[rng.integers(len(COLUMNS))] if rng.random() < 0.7 else table.column(place)
        names = [table.column_names[place], text(rng).encode("utf-8", "replace").decode(), *table.column_names]
        name = names[rng.integers(len(names))]
        table = table.set_column(place, name, column) if rng.random() < 0.7 else table.append_column(name, column)
    if rng.random() < 0.2:
        table = table.replace_schema_metadata({"pandas": text(rng)[:1000].encode("utf-8", "replace")})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()
