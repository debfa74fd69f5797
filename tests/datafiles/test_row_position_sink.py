"""Change rows become the changes of whole files, in the order in which they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.datafiles.file_changes import FileChanges
from spark_jobs.datafiles.row_position_sink import RowPositionSink
from spark_jobs.errors import DataError, InternalError, NotSupportedError
from spark_jobs.spi import rows

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("name", pa.string())])
ROW_ID = pa.struct([("file", pa.int32()), ("position", pa.int64())])


class Taken:
    """A sink whose cases assign ``name``, both columns and nothing; keeps what it hands over."""

    def __init__(self) -> None:
        self.files: list[tuple[int, FileChanges]] = []
        self.inserted: list[dict[str, Any]] = []
        self.sink = RowPositionSink(
            SCHEMA,
            [("name",), ("id", "name"), ()],
            lambda ordinal, changes: self.files.append((ordinal, changes)),
            lambda batch: self.inserted.extend(batch.select(["id", "name"]).to_pylist()),
        )

    def take(self, *batches: pa.RecordBatch) -> None:
        for batch in batches:
            self.sink.take(batch)
        self.sink.finish()


def batch_of(*changes: Sequence[Any]) -> pa.RecordBatch:
    """A batch of: operation, case, file, position, id, name."""
    operations, cases, files, positions, ids, names = zip(*changes, strict=True)
    row_ids = [
        None if file is None else {"file": file, "position": position}
        for file, position in zip(files, positions, strict=True)
    ]
    return pa.RecordBatch.from_pydict(
        {
            rows.OPERATION: pa.array(operations, pa.int8()),
            rows.CASE_NUMBER: pa.array(cases, pa.int32()),
            rows.ROW_ID: pa.array(row_ids, ROW_ID),
            "id": pa.array(ids, pa.int32()),
            "name": pa.array(names, pa.string()),
        }
    )


def test_changes_of_a_file_come_together_from_several_batches() -> None:
    taken = Taken()

    taken.take(
        batch_of((rows.DELETE, 2, 0, 1, None, None)),
        batch_of((rows.DELETE, 2, 0, 4, None, None), (rows.DELETE, 2, 3, 0, None, None)),
    )

    found = [(ordinal, each.positions.tolist()) for ordinal, each in taken.files]
    assert found == [(0, [1, 4]), (3, [0])]
    assert all(each.deleted.all() and not each.columns for _, each in taken.files)


def test_an_update_carries_the_columns_that_its_case_assigns() -> None:
    taken = Taken()

    taken.take(
        batch_of(
            (rows.UPDATE, 0, 0, 1, 70, "A"),
            (rows.DELETE, 2, 0, 2, 71, "B"),
            (rows.UPDATE, 1, 0, 5, 72, "C"),
        )
    )

    ((_, changes),) = taken.files
    assert changes.deleted.tolist() == [False, True, False]
    assert changes.columns.keys() == {"id", "name"}
    assert changes.columns["name"].rows.tolist() == [0, 2]
    assert changes.columns["name"].values.to_pylist() == ["A", "C"]
    assert changes.columns["id"].rows.tolist() == [2]
    assert changes.columns["id"].values.to_pylist() == [72]


def test_new_rows_come_after_the_changes_of_the_last_file() -> None:
    taken = Taken()

    taken.take(batch_of((rows.DELETE, 2, 0, 1, None, None), (rows.INSERT, 2, None, None, 9, "new")))

    assert [ordinal for ordinal, _ in taken.files] == [0]
    assert taken.inserted == [{"id": 9, "name": "new"}]


def test_a_null_in_a_required_column_names_it() -> None:
    with pytest.raises(DataError, match="Column id must not be NULL"):
        Taken().take(batch_of((rows.UPDATE, 1, 0, 0, None, "A")))


def test_changes_beyond_what_an_array_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ARRAY_BYTES", 10_000)
    long = [(rows.UPDATE, 0, 0, position, None, "x" * 4_000) for position in range(3)]
    Taken().take(batch_of(*long[:2]))

    with pytest.raises(NotSupportedError, match="column name in one data file"):
        Taken().take(*(batch_of(each) for each in long))


def test_new_rows_before_changes_are_a_defect() -> None:
    new, deleted = (rows.INSERT, 2, None, None, 9, "new"), (rows.DELETE, 2, 0, 0, None, None)

    with pytest.raises(InternalError, match="INSERT rows stand before others"):
        Taken().take(batch_of(new, deleted))


def test_a_file_whose_changes_come_twice_is_a_defect() -> None:
    changes = [(rows.DELETE, 2, file, 0, None, None) for file in (0, 1, 0)]

    with pytest.raises(InternalError, match="changes of file 0 are not together"):
        Taken().take(*(batch_of(each) for each in changes))
