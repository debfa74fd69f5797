"""Change rows for the sinks of Iceberg tables, as the engine makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import arrow_field
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle

_ROW_ID = pa.struct([("file", pa.int32()), ("position", pa.int64())])


def inserted(
    connector: Connector, table: TableHandle, new: Sequence[Mapping[str, Any]]
) -> pa.RecordBatch:
    """INSERT rows, each of which has all columns; they must come by partition."""
    schema = pa.schema([arrow_field(each) for each in table.native.fields])
    batch = pa.RecordBatch.from_pylist(list(new), schema=schema)
    derived = connector.metadata.insert_layout(table).derived
    if derived is not None:
        batch = derived.added_to(batch)
    return batch.append_column(rows.OPERATION, pa.array([rows.INSERT] * len(new), pa.int8()))


def deleted(file: int, *positions: int, case: int = 0, **types: pa.DataType) -> pa.RecordBatch:
    """DELETE rows of a file; ``types`` are of the columns that UPDATE rows of the file have."""
    batch = _changed(rows.DELETE, case, file, positions)
    for name, kind in types.items():
        batch = batch.append_column(name, pa.nulls(len(positions), kind))
    return batch


def updated(file: int, position: int, case: int = 1, **values: Any) -> pa.RecordBatch:
    """An UPDATE row, with the columns that its case assigns."""
    batch = _changed(rows.UPDATE, case, file, [position])
    for name, value in values.items():
        batch = batch.append_column(name, pa.array([value]))
    return batch


def _changed(operation: int, case: int, file: int, positions: Sequence[int]) -> pa.RecordBatch:
    count = len(positions)
    columns = {
        rows.ROW_ID: pa.array([{"file": file, "position": n} for n in positions], _ROW_ID),
        rows.OPERATION: pa.array([operation] * count, pa.int8()),
        rows.CASE_NUMBER: pa.array([case] * count, pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)
