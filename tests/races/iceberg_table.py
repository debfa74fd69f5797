"""The Iceberg table of a race."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField

from tests.races.statements import Row
from tests.support.paimon_tables import NAME

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("p", pa.int32())])
_FIELDS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "v", LongType()),
    NestedField(3, "p", IntegerType()),
)


def table_of(rows: Iterable[Row]) -> pa.Table:
    """The rows as pyiceberg takes them."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def made_anew(catalog: Any, *, marks: bool) -> Any:
    """The table, empty, in place of the one that is there; merged on read if it ``marks`` rows."""
    name = (NAME.database, NAME.table)
    with suppress(NoSuchTableError):
        catalog.drop_table(name)
    mode = "merge-on-read" if marks else "copy-on-write"
    properties = {
        "format-version": "2",
        "commit.retry.num-retries": "50",
        "commit.retry.max-wait-ms": "200",
        **{f"write.{each}.mode": mode for each in ("merge", "update", "delete")},
    }
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "p"))
    return catalog.create_table(name, _FIELDS, partition_spec=spec, properties=properties)
