"""The sink: rewrites changed files, writes new ones, cleans up after itself."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spark_jobs.errors import DataError, InternalError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import (
    NAME,
    append,
    begin,
    change_rows,
    create,
    data_files,
    inserts,
    merge,
    read,
    store,
)


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    """Three files of four rows: ids 0 to 3 in partition 0, 10 to 13 in 1, 20 to 23 in 2."""
    create(connector, {"id": "int", "name": "string", "note": "string", "p": "int"}, ["p"])
    values = [{"id": 10 * p + i, "name": f"n{i}", "p": p} for p in range(3) for i in range(4)]
    append(connector, values)
    return connector.metadata.load_table(NAME)


def at(file: int, position: int, **values: Any) -> dict[str, Any]:
    return {"file": file, "position": position, **values}


def test_a_merge_changes_exactly_the_named_rows(connector: Connector, table: TableHandle) -> None:
    handle = begin(connector, table, "op", assigned=(("name",), ("name", "note"), ()))
    changes = [
        change_rows(table, rows.UPDATE, [at(0, 1, name="A", note="ignored")], case=0),
        change_rows(table, rows.DELETE, [at(0, 2)], case=2),
        change_rows(table, rows.UPDATE, [at(0, 3, name="B", note="N"), at(2, 0)], case=1),
        inserts(table, [{"id": 99, "p": 7}, {"id": 98, "p": None}]),
    ]

    fragments = store(handle, *changes)
    connector.writes.finish_merge(table, handle, fragments, {})

    by_id = {row["id"]: row for row in read(connector)}
    assert by_id[1] == {"id": 1, "name": "A", "note": None, "p": 0}
    assert by_id[3] == {"id": 3, "name": "B", "note": "N", "p": 0}
    assert by_id[20] == {"id": 20, "name": None, "note": None, "p": 2}
    assert by_id[99] == {"id": 99, "name": None, "note": None, "p": 7}
    assert by_id[98]["p"] is None
    untouched = {0, 10, 11, 12, 13, 21, 22, 23}
    assert {i: by_id[i]["name"] for i in untouched} == {i: f"n{i % 10}" for i in untouched}
    assert by_id.keys() == untouched | {1, 3, 20, 98, 99}


def test_fragments_count_files_and_carried_rows(connector: Connector, table: TableHandle) -> None:
    handle = begin(connector, table, assigned=(("name",), ()))
    all_rows = [at(1, position) for position in range(4)]

    fragments = store(
        handle,
        change_rows(table, rows.UPDATE, [at(0, 1, name="A")]),
        change_rows(table, rows.DELETE, all_rows, case=1),
        inserts(table, [{"id": 1, "p": 5}]),
    )

    counts = [
        (f.files_added, f.files_removed, f.files_rewritten, f.rows_carried) for f in fragments
    ]
    assert counts == [(1, 1, 1, 3), (0, 1, 0, 0), (1, 0, 0, 0)]
    planned = connector.metadata.plan_files(table)
    assert [f.bytes_removed for f in fragments] == [planned[0].size, planned[1].size, 0]
    for fragment in fragments:
        added = fragment.document["added"]
        assert fragment.bytes_added == (Path(added["path"]).stat().st_size if added else 0)


def test_files_that_nobody_changes_keep_their_names(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    before = [file.path for file in connector.metadata.plan_files(table)]

    merge(connector, table, change_rows(table, rows.DELETE, [at(1, 0)]))

    after = [f.path for f in connector.metadata.plan_files(connector.metadata.load_table(NAME))]
    assert (after[0], after[2]) == (before[0], before[2])
    assert Path(after[1]).parent == Path(before[1]).parent


def test_changes_of_one_file_may_span_batches(connector: Connector, table: TableHandle) -> None:
    batches = [change_rows(table, rows.DELETE, [at(0, position)]) for position in range(3)]

    fragments = store(begin(connector, table), *batches)

    assert [fragment.document["removed"] for fragment in fragments] == [0]
    assert fragments[0].document["added"]["rows"] == 1


def test_a_sink_without_rows_makes_no_fragment(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    before = data_files(warehouse)

    assert store(begin(connector, table)) == []
    assert store(begin(connector, table), inserts(table, [])) == []
    assert data_files(warehouse) == before


def test_the_factory_travels_by_pickle(connector: Connector, table: TableHandle) -> None:
    factory = pickle.loads(pickle.dumps(begin(connector, table).sinks))
    sink = factory.open("task")
    sink.store_merged_rows(change_rows(table, rows.DELETE, [at(0, 0)]))

    assert [fragment.document["removed"] for fragment in sink.finish()] == [0]


def test_attempts_of_a_task_never_write_the_same_file(
    connector: Connector, table: TableHandle
) -> None:
    handle = begin(connector, table)
    batch = inserts(table, [{"id": 1, "p": p} for p in range(3)])

    names = [
        fragment.document["added"]["path"]
        for task in ("stage-1.attempt-0", "stage-1.attempt-1")
        for fragment in store(handle, batch, task=task)
    ]

    assert len(set(names)) == 6


def test_two_writes_of_one_operation_never_write_the_same_file(
    connector: Connector, table: TableHandle
) -> None:
    batch = inserts(table, [{"id": 1, "p": 1}])

    first, second = (store(begin(connector, table, "same"), batch, task="t") for _ in range(2))

    assert first[0].document["added"]["path"] != second[0].document["added"]["path"]


def test_abort_removes_what_the_task_wrote_and_nothing_else(
    connector: Connector, warehouse: Path, table: TableHandle
) -> None:
    before = data_files(warehouse)
    handle = begin(connector, table)
    other = store(handle, inserts(table, [{"id": 1, "p": 1}]), task="other")
    sink = handle.sinks.open("aborted")
    sink.store_merged_rows(change_rows(table, rows.DELETE, [at(0, 0), at(1, 0)]))
    sink.store_merged_rows(inserts(table, [{"id": 2, "p": 1}, {"id": 3, "p": 4}]))

    sink.abort()

    kept = Path(other[0].document["added"]["path"]).relative_to(warehouse)
    assert data_files(warehouse) == before | {str(kept)}


def test_new_files_roll_at_the_target_size(connector: Connector, table: TableHandle) -> None:
    values = [{"id": i, "name": f"{i:050}", "p": i % 2} for i in range(3000)]
    handle = begin(connector, table, target_file_size=20_000)

    fragments = store(handle, *[inserts(table, values[i : i + 200]) for i in range(0, 3000, 200)])
    sizes = [fragment.document["added"]["size"] for fragment in fragments]

    assert len(fragments) > 2
    assert max(sizes) < 60_000
    assert sum(fragment.document["added"]["rows"] for fragment in fragments) == 3000


def test_partitions_of_any_spelling_come_back(connector: Connector) -> None:
    create(connector, {"id": "int", "p": "string", "day": "date"}, ["p", "day"])
    spellings = ["a*b", "x=y %", "ü 中", "a/b", "", " ", None, "__DEFAULT_PARTITION__", "[z]{q}"]
    values = [{"id": i, "p": p, "day": dt.date(2024, 1, 1 + i)} for i, p in enumerate(spellings)]

    append(connector, values)

    assert read(connector) == sorted(values, key=repr)
    planned = connector.metadata.plan_files(connector.metadata.load_table(NAME))
    assert {file.partition["p"] for file in planned} == set(spellings)
    assert all(Path(file.path).is_file() for file in planned)


def test_the_row_behind_a_row_id_can_be_read(connector: Connector, table: TableHandle) -> None:
    sink = begin(connector, table).sinks.open("task")

    assert sink.read_row({"file": 1, "position": 2}, ["id", "p"]) == {"id": 12, "p": 1}


@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        (["insert", "delete"], "INSERT rows stand before others"),
        (["delete 0", "delete 1", "delete 0"], "changes of file 0 are not together"),
    ],
)
def test_rows_out_of_order_are_a_defect(
    connector: Connector, table: TableHandle, batches: list[str], problem: str
) -> None:
    import pyarrow as pa

    made = {
        "insert": inserts(table, [{"id": 1, "p": 1}]),
        "delete": change_rows(table, rows.DELETE, [at(0, 0)]),
        "delete 0": change_rows(table, rows.DELETE, [at(0, 0)]),
        "delete 1": change_rows(table, rows.DELETE, [at(1, 0)]),
    }
    whole = pa.Table.from_batches([made[name] for name in batches]).combine_chunks().to_batches()

    with pytest.raises(InternalError, match=problem):
        store(begin(connector, table), *whole)


def test_a_null_in_a_required_column_names_it(connector: Connector) -> None:
    from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec

    columns = (ColumnSpec("id", "int", nullable=False), ColumnSpec("name", "string"))
    connector.metadata.create_table(NAME, CreateTableSpec(columns))
    append(connector, [{"id": 1}])
    table = connector.metadata.load_table(NAME)
    for batch in (
        inserts(table, [{"id": None}]),
        change_rows(table, rows.UPDATE, [at(0, 0, id=None)]),
    ):
        with pytest.raises(DataError, match="Column id must not be NULL"):
            store(begin(connector, table, assigned=(("id",),)), batch)


def test_new_files_are_compressed_as_the_table_asks(connector: Connector) -> None:
    create(connector, {"id": "int"}, options={"file.compression": "snappy"})
    append(connector, [{"id": 1}])

    (file,) = connector.metadata.plan_files(connector.metadata.load_table(NAME))

    assert pq.ParquetFile(file.path).metadata.row_group(0).column(0).compression == "SNAPPY"
