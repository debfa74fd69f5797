"""Spark with Iceberg reads a table after an undo, and expires what the run removed."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.tables import opened
from tests.connectors.iceberg.undo_state import places
from tests.judge.iceberg_spark import CATALOG, IcebergSpark
from tests.support.undone_runs import of_run, undone, undone_undo

KINDS = {
    "copy-on-write": {"format-version": "2"},
    "merge-on-read": {"format-version": "2", "mode": "merge-on-read"},
    "version 3": {"format-version": "3", "mode": "merge-on-read"},
}


def made(judge: IcebergSpark, kind: str) -> tuple[Connector, TableName]:
    name = TableName("db", f"undo_{kind.replace(' ', '_').replace('-', '_')}")
    options = dict(KINDS[kind])
    mode = options.pop("mode", "copy-on-write")
    options |= {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    judge.sql(
        f"CREATE TABLE {CATALOG}.{name} (id BIGINT, s STRING) USING iceberg "
        f"TBLPROPERTIES ({listed})",
        f"INSERT INTO {CATALOG}.{name} VALUES (0, 'a'), (1, 'a'), (2, 'a'), (3, 'a')",
    )
    return opened(judge), name


def write(
    connector: Connector, name: TableName, operation_id: str, run: str, *gone: int, **more: Any
) -> None:
    """Delete rows, or ``drop`` all files, or ``add`` a row."""
    told = of_run(run, operation_id)
    found = DirectWrite(connector, operation_id, name=name, properties=told, rewrite_share=0.6)
    known = places(connector, name)
    if gone:
        (file,) = {known[each][0] for each in gone}
        found.delete(file, *sorted(known[each][1] for each in gone))
    if "drop" in more:
        found.fragments += connector.writes.drop_files(found.table, found.handle, found.files)
    if "add" in more:
        found.insert({"id": more["add"], "s": "new"})
    found.publish()


def seen(judge: IcebergSpark, name: TableName, is_3: bool) -> list[tuple[Any, ...]]:
    names = "id, s" + (", _row_id, _last_updated_sequence_number" if is_3 else "")
    found = judge.sql(f"SELECT {names} FROM {CATALOG}.{name} ORDER BY id")
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.by_turns(3)
def test_spark_reads_and_expires(iceberg_spark: IcebergSpark, kind: str) -> None:
    judge, is_3 = iceberg_spark, kind == "version 3"
    connector, name = made(judge, kind)
    write(connector, name, "base", "base", 1)
    before = seen(judge, name, is_3)
    write(connector, name, "a", "r", 2, add=20)
    after = seen(judge, name, is_3)
    write(connector, name, "b", "r", drop=True)
    assert seen(judge, name, is_3) == []

    undone(connector, name, "r", "u")

    assert seen(judge, name, is_3) == before
    undone_undo(connector, name, "u", "uu")
    assert seen(judge, name, is_3) == []
    undone(connector, name, "r", "u2")
    assert seen(judge, name, is_3) == before != after
    judge.sql(f"INSERT INTO {CATALOG}.{name} VALUES (100, 'x')")
    # Java's library removes what expired snapshots removed, by name.
    judge.expire(str(name))
    now = seen(judge, name, is_3)
    assert [row for row in now if row[0] != 100] == before
    judge.sql(f"DELETE FROM {CATALOG}.{name} WHERE id = 0")
    assert [row[0] for row in seen(judge, name, is_3)] == [2, 3, 100]
