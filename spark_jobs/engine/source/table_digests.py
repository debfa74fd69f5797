"""Hashes of what a table is, so that a later run can tell whether it is the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_jobs.spi.tables import TableHandle


def snapshot_digest(table: TableHandle) -> str:
    """SHA-256 (hex) of what only the pinned snapshot has."""
    return sha256(table.snapshot_mark)


def columns_digest(table: TableHandle, *, stored: bool = True) -> str:
    """SHA-256 (hex) of a table's columns and partitions; ``stored``: of exactly those stored ones.

    Else tables whose columns look alike have the same.
    """
    columns = [asdict(each) for each in (*table.columns, *table.opaque_columns)]
    fields = [asdict(each) for each in table.partitioned_by]
    return sha256([columns, fields, table.key_columns, table.schema_mark if stored else ""])


def sha256(document: object) -> str:
    """SHA-256 (hex) of a JSON document."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
