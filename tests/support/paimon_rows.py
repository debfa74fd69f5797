"""A Paimon table in a folder with real data files, written with pyarrow alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.paimon_metadata import TableFiles, _entry


class TableRows(TableFiles):
    """The table ``shop.orders``: ``id``, ``day`` and the columns in ``more_columns``."""

    def file(self, day: str, columns: dict[str, Sequence[Any]], name: str = "") -> dict[str, Any]:
        """Write a file of one day; the entry that adds it."""
        days = (date.fromisoformat(day) - date(1970, 1, 1)).days
        count = len(columns["id"])
        rows = pa.table({**columns, "day": pa.array([days] * count, pa.int32()).cast(pa.date32())})
        entry = _entry(self._partition(day), count)
        file = entry["_FILE"]
        file["_FILE_NAME"] = name or file["_FILE_NAME"]
        path = self.folder / f"day={days}" / "bucket-0" / file["_FILE_NAME"]
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        file["_FILE_SIZE"] = path.stat().st_size
        return entry


def without(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry that removes a file."""
    return {**entry, "_KIND": 1}
