"""Rows that are marked as deleted: one file of position deletes for each data file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, ids_in, ids_of
from tests.connectors.iceberg.plain_tables import PlainCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROWS = pa.Table.from_pylist([{"id": each, "s": "x"} for each in range(10)], schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """One file with the ids 0 to 9."""
    made = PlainCatalog(tmp_path)
    made.create(SCHEMA, {"format-version": "2", "write.merge.mode": "merge-on-read"}, ROWS)
    return made


def table_of(catalog: PlainCatalog) -> Any:
    return catalog.library().load_table(("db", "t"))


def delete_files(catalog: PlainCatalog) -> list[int]:
    """How many rows each delete file of the snapshot marks."""
    files = table_of(catalog).inspect.delete_files()
    return sorted(files.column("record_count").to_pylist())


def test_marked_rows_are_gone_and_their_file_stays(
    catalog: PlainCatalog, connector: Connector
) -> None:
    before = table_of(catalog).inspect.data_files().column("file_path").to_pylist()
    DirectWrite(connector).delete(0, 1, 3).publish()

    table = table_of(catalog)
    assert ids_of(catalog) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert table.inspect.data_files().column("file_path").to_pylist() == before
    assert delete_files(catalog) == [2]
    summary = table.current_snapshot().summary
    assert summary.operation.value == "delete"
    names = ("added-position-deletes", "total-position-deletes", "total-delete-files")
    assert [summary[name] for name in names] == ["2", "2", "1"]


def test_a_later_write_replaces_the_deletes_of_the_file(
    catalog: PlainCatalog, connector: Connector
) -> None:
    DirectWrite(connector).delete(0, 1).publish()
    write = DirectWrite(connector)
    write.update(0, 5, "new").publish()

    assert delete_files(catalog) == [2]
    found = table_of(catalog).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["s"]) for row in found) == sorted(
        (each, "new" if each == 5 else "x") for each in range(10) if each != 1
    )
    assert table_of(catalog).current_snapshot().summary.operation.value == "overwrite"


def test_beyond_the_share_the_file_is_rewritten_without_its_deletes(
    catalog: PlainCatalog, connector: Connector
) -> None:
    DirectWrite(connector).delete(0, 1, 2).publish()
    DirectWrite(connector).delete(0, 3, 4).publish()

    assert ids_of(catalog) == [0, 5, 6, 7, 8, 9]
    assert delete_files(catalog) == []
    assert table_of(catalog).current_snapshot().summary["total-position-deletes"] == "0"


def test_all_rows_of_a_file(catalog: PlainCatalog, connector: Connector) -> None:
    DirectWrite(connector, rewrite_share=1.0).delete(0, *range(9)).publish()
    DirectWrite(connector, rewrite_share=1.0).delete(0, 9).publish()

    assert ids_of(catalog) == []
    assert delete_files(catalog) == []


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_two_writers_cannot_mark_rows_of_one_file(
    catalog: PlainCatalog, connector: Connector, isolation: str
) -> None:
    first = DirectWrite(connector, isolation=isolation, read_set=ids_in(50, 60)).delete(0, 1)
    DirectWrite(connector).delete(0, 2).publish()

    with pytest.raises(JobError) as caught:
        first.publish()

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert ids_of(catalog) == [0, 1, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_of_a_file_that_another_writer_rewrote_cannot_be_marked(
    catalog: PlainCatalog, connector: Connector, isolation: str
) -> None:
    first = DirectWrite(connector, isolation=isolation, read_set=ids_in(50, 60)).delete(0, 1)
    DirectWrite(connector, rewrite_share=0.0).delete(0, 2).publish()

    with pytest.raises(JobError) as caught:
        first.publish()

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert ids_of(catalog) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
