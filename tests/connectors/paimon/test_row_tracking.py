"""Tables that track rows: ids and sequence numbers in files and manifests, without Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.spi.writes import MergeWrite, Operation
from tests.support.append_checker import problems_of
from tests.support.compaction_runs import compact
from tests.support.direct_merges import live_rows
from tests.support.paimon_tables import (
    NAME,
    ROW_ID,
    TARGET_SIZE,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    inserts,
    merge,
    overwrite,
    snapshot_ids,
    store,
)

TRACKED = {"row-tracking.enabled": "true"}
VECTORS = {**TRACKED, "deletion-vectors.enabled": "true"}
COLUMNS = {"id": "int", "k": "string"}


def filled(connector: Connector, options: dict[str, str]) -> TableHandle:
    """Ids 0 to 3, with the row ids 0 to 3, in one file of snapshot 1."""
    create(connector, COLUMNS, (), options)
    append(connector, [{"id": number, "k": "a"} for number in range(4)])
    return connector.metadata.load_table(NAME)


def identities(connector: Connector) -> dict[int, tuple[int, int]]:
    """Row id and sequence number by ``id``, from the files and the manifest."""
    table = connector.metadata.load_table(NAME)
    found: dict[int, tuple[int, int]] = {}
    for row in live_rows(connector, table):
        path, entry = table.native.files.located_entries[row["file"]]
        stored = pq.ParquetFile(path).read().slice(row["position"], 1).to_pylist()[0]
        row_id, number = stored.get("_ROW_ID"), stored.get("_SEQUENCE_NUMBER")
        if row_id is None:
            row_id = entry.file.first_row_id + row["position"]
        found[row["id"]] = row_id, entry.file.max_sequence_number if number is None else number
    assert not problems_of(table.native.table)
    return found


def next_row_id(connector: Connector) -> int:
    return int(connector.metadata.load_table(NAME).native.snapshot.next_row_id)


def files(connector: Connector) -> list[Any]:
    table = connector.metadata.load_table(NAME)
    return [entry.file for _, entry in table.native.files.located_entries]


@contextmanager
def overtaken(connector: Connector, by: list[dict[str, Any]]) -> Iterator[None]:
    """Another writer commits rows just before the first attempt to publish."""
    real, done = SnapshotFiles.publish, []

    def publish(store: Any, latest: Any, new: Any) -> bool:
        if not done:
            done.append(True)
            append_with_pypaimon(connector.metadata.load_table(NAME), by)
        return real(store, latest, new)

    with mock.patch.object(SnapshotFiles, "publish", publish):
        yield


@pytest.fixture(params=[TRACKED, VECTORS], ids=["copy-on-write", "deletion vectors"])
def table(connector: Connector, request: pytest.FixtureRequest) -> TableHandle:
    return filled(connector, request.param)


def test_new_rows_get_ids_from_the_snapshot(connector: Connector, table: TableHandle) -> None:
    append(connector, [{"id": 9, "k": "b"}], "second")

    assert identities(connector) == {**{n: (n, 1) for n in range(4)}, 9: (4, 2)}
    assert next_row_id(connector) == 5
    assert all(file.write_cols is None for file in files(connector))


def test_changed_rows_keep_their_ids(connector: Connector, table: TableHandle) -> None:
    changed = change_rows(table, rows.UPDATE, [{"file": 0, "position": 2, "k": "new"}])
    deleted = change_rows(table, rows.DELETE, [{"file": 0, "position": 3}], case=1)
    new = inserts(table, [{"id": 7, "k": "c"}])
    merge(connector, table, changed, deleted, new, assigned=(("k",), ()))

    assert identities(connector) == {0: (0, 1), 1: (1, 1), 2: (2, 2), 7: (4, 2)}
    assert next_row_id(connector) == 5


def test_files_with_ids_are_changed_again(connector: Connector, table: TableHandle) -> None:
    for number in range(3):
        table = connector.metadata.load_table(NAME)
        (row,) = (row for row in live_rows(connector, table) if row["id"] == 1)
        update = change_rows(table, rows.UPDATE, [{**row, "k": f"k{number}"}])
        merge(connector, table, update, operation_id=f"op{number}", assigned=(("k",),))

    assert identities(connector) == {0: (0, 1), 1: (1, 4), 2: (2, 1), 3: (3, 1)}
    assert next_row_id(connector) == 4


def test_a_row_keeps_its_id_in_another_partition(connector: Connector) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], TRACKED)
    append(connector, [{"id": i, "p": i % 2} for i in range(4)])
    for goal, operation in ((5, "one"), (6, "two")):
        table = connector.metadata.load_table(NAME)
        (row,) = (row for row in live_rows(connector, table) if row["id"] == 2)
        gone = change_rows(table, rows.DELETE, [row])
        batch = inserts(table, [{"id": 2, "p": goal}, {"id": 10 + goal, "p": goal}])
        ids = [{"file": row["file"], "position": row["position"]}, None]
        moved = batch.append_column(rows.MOVED_FROM, pa.array(ids, ROW_ID))
        before = identities(connector)
        merge(connector, table, gone, moved, operation_id=operation)
        after = identities(connector)
        assert after[2][0] == before[2][0]
        assert after[10 + goal][0] == len(before)


def test_each_attempt_gives_ids_anew(connector: Connector, table: TableHandle) -> None:
    update = change_rows(table, rows.UPDATE, [{"file": 0, "position": 0, "k": "new"}])
    new = inserts(table, [{"id": 7, "k": "c"}])
    planned = connector.metadata.plan_files(table)
    write = MergeWrite(
        Operation("op", "digest", {}), planned, (("k",),), (), TARGET_SIZE, isolation="snapshot"
    )
    handle = connector.writes.begin_merge(table, write)
    fragments = store(handle, update, new)
    with overtaken(connector, [{"id": 20, "k": "x"}, {"id": 21, "k": "x"}]):
        connector.writes.finish_merge(table, handle, fragments, {})

    found = identities(connector)
    assert (found[20], found[21]) == ((4, 2), (5, 2))
    assert (found[0], found[7]) == ((0, 3), (6, 3))
    assert next_row_id(connector) == 7


def test_an_overwrite_gives_new_ids(connector: Connector, table: TableHandle) -> None:
    overwrite(connector, 3)

    assert identities(connector) == {3: (4, 2)}
    assert next_row_id(connector) == 5


def test_a_compaction_keeps_ids_and_numbers(
    connector: Connector, table: TableHandle, warehouse: Any
) -> None:
    update = change_rows(table, rows.UPDATE, [{"file": 0, "position": 2, "k": "new"}])
    merge(connector, table, update, assigned=(("k",),))
    append(connector, [{"id": 9, "k": "b"}], "third")
    before = identities(connector)

    result = compact(connector, CatalogSpec("paimon", str(warehouse)), CompactSpec(mode="full"))

    assert result.status == "committed"
    (file,) = files(connector)
    assert file.first_row_id is None
    assert identities(connector) == before
    assert next_row_id(connector) == 5


def test_fixed_buckets_are_refused(connector: Connector) -> None:
    with pytest.raises(NotSupportedError, match=r"fixed buckets \(option bucket = 2\)"):
        create(connector, COLUMNS, (), {**TRACKED, "bucket": "2", "bucket-key": "id"})


def test_a_primary_key_is_refused(connector: Connector) -> None:
    with pytest.raises(NotSupportedError, match=r"tracks rows .* and has a primary key"):
        create(connector, COLUMNS, (), {**TRACKED, "bucket": "-1"}, primary_key=["id"])


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("write_cols", ["id"], "holds only some columns"),
        ("first_row_id", None, "does not tell the ids of its rows"),
    ],
)
def test_files_that_lack_something_are_refused(
    connector: Connector, table: TableHandle, attribute: str, value: Any, reason: str
) -> None:
    setattr(table.native.files.located_entries[0][1].file, attribute, value)

    with pytest.raises(NotSupportedError, match=reason):
        connector.metadata.plan_files(table)


@pytest.mark.parametrize("moves", [False, True], ids=["rewritten", "moved"])
def test_ids_that_are_missing_in_a_file_are_noticed(connector: Connector, moves: bool) -> None:
    create(connector, {"id": "int", "p": "int"}, ["p"], TRACKED)
    append(connector, [{"id": i, "p": 0} for i in range(4)])
    table = connector.metadata.load_table(NAME)
    merge(connector, table, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))
    table = connector.metadata.load_table(NAME)
    ((path, _),) = table.native.files.located_entries
    content = pq.ParquetFile(path).read()
    nothing = pa.nulls(content.num_rows, pa.int64())
    pq.write_table(content.set_column(2, "_ROW_ID", nothing), path)
    before = snapshot_ids(connector)

    batches = [change_rows(table, rows.DELETE, [{"file": 0, "position": 0}])]
    if moves:
        at = pa.array([{"file": 0, "position": 0}], ROW_ID)
        new = inserts(table, [{"id": 1, "p": 1}])
        batches.append(new.append_column(rows.MOVED_FROM, at))
    with pytest.raises(CatalogError, match="lacks the ids of") as raised:
        merge(connector, table, *batches, operation_id="second")

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert snapshot_ids(connector) == before


def test_a_snapshot_that_lost_the_next_id_is_noticed(
    connector: Connector, table: TableHandle
) -> None:
    file = Path(f"{table.native.path}/snapshot/snapshot-1")
    document = json.loads(file.read_text())
    del document["nextRowId"]
    file.write_text(json.dumps(document))

    with pytest.raises(CatalogError, match="has no nextRowId") as raised:
        append(connector, [{"id": 9, "k": "b"}], "second")

    assert raised.value.code is ErrorCode.METADATA_UNREADABLE
    assert snapshot_ids(connector) == [1]
