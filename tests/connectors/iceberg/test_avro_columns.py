"""Avro files with columns that tables do not have: what is read of them, and what is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.iceberg.format.deletes import DataFileDeletes
from spark_jobs.connectors.iceberg.format.schema import parse_fields
from spark_jobs.connectors.iceberg.read.arrow_scan import ArrowScan, ScannedFile
from spark_jobs.errors import ErrorCode, JobError

_SHORT_MAP = {
    "type": "array",
    "logicalType": "map",
    "items": {"type": "record", "name": "entry", "fields": [{"name": "key", "type": "int"}]},
}
# The type of a column, a value of it, and a type of Iceberg that it is not.
OTHERS: Mapping[str, tuple[Any, Any, Any]] = {
    "null": ("null", None, "int"),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A"]}, "A", "string"),
    "union": (["null", "int", "string"], "A", "string"),
    "union without null": (["int", "string"], 1, "int"),
    "record that contains itself": (["null", "row"], None, "int"),
    "decimal of 50 digits": (
        {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2},
        b"\x01",
        "decimal(12, 2)",
    ),
    "map without values": (
        _SHORT_MAP,
        [],
        {"type": "map", "key-id": 3, "key": "int", "value-id": 4, "value": "int"}
        | {"value-required": False},
    ),
    "milliseconds of a day": ({"type": "int", "logicalType": "time-millis"}, 1, "int"),
}


def rows(folder: Path, other: Any, value: Any, fields: Sequence[tuple[str, Any]]) -> Any:
    """The ``fields`` of a file with a number and another column, which have the ids 1 and 2."""
    columns = [("n", "int", 1), ("other", other, 2)]
    raw = [{"name": name, "type": kind, "field-id": number} for name, kind, number in columns]
    path = str(folder / "file.avro")
    with Path(path).open("wb") as file:
        schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": raw})
        fastavro.writer(file, schema, [{"n": 7, "other": value}])
    ids = {"n": 1, "other": 2}
    wanted = parse_fields(
        {
            "fields": [
                {"id": ids[name], "name": name, "type": kind, "required": False}
                for name, kind in fields
            ]
        }
    )
    scan = ArrowScan(pafs.LocalFileSystem(), wanted, (), None, {})
    deletes = DataFileDeletes(0, path, 1, ())
    (found,) = scan.read([ScannedFile(path, deletes, {})])
    return [row["c0"] for row in found.to_pylist()]


@pytest.mark.parametrize(("other", "value", "kind"), OTHERS.values(), ids=OTHERS)
def test_columns_that_tables_do_not_have(tmp_path: Path, other: Any, value: Any, kind: Any) -> None:
    assert rows(tmp_path, other, value, [("n", "int")]) == [7]

    with pytest.raises(JobError) as caught:
        rows(tmp_path, other, value, [("other", kind)])
    assert caught.value.code is ErrorCode.NOT_SUPPORTED
    assert "in column other" in caught.value.message
