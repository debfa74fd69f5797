"""Changes of tables: applied to the old rows they give the new ones, and each is told once."""

from __future__ import annotations

import io
import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from tests.engine.changed_tables import KEYED, KINDS, ChangedTable, applied, random_statement

STATEMENTS = 9


@pytest.mark.slow
@pytest.mark.by_turns(7)
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table, chance = ChangedTable(spark, tmp_path, kind), random.Random(kind)
    table.make()
    table.do("INSERT INTO db.t VALUES (1L, 'x', 0.0D, map('a', 1), 0), (2L, 'y', NULL, NULL, 1)")
    for number in range(STATEMENTS):
        table.do(random_statement(chance, number))
    ids = table.ids()
    states = {each: table.rows(each) for each in ids}
    single = {}
    for before, after in itertools.pairwise(ids):
        found = table.changes(before, after)
        assert applied(states[before], found) == states[after], (table.statements, before, after)
        assert {each.snapshot for each in found} <= {after}
        rows = [each.row for each in found if each.sign > 0]
        assert not {*rows} & {each.row for each in found if each.sign < 0}
        single[after] = found
    for start in range(0, len(ids) - 1, 3):
        before, after = ids[start], ids[-1]
        found = table.changes(before, after)
        each_once = [one for number in ids[start + 1 :] for one in single[number]]
        assert sorted(map(repr, found)) == sorted(map(repr, each_once))
        net = table.changes(before, after, net=True)
        assert applied(states[before], net) == states[after], (table.statements, before)
        assert {each.snapshot for each in net} <= {after}
        rows = [each.row for each in net if each.sign > 0]
        assert not {*rows} & {each.row for each in net if each.sign < 0}
    everything = table.changes(0, ids[-1])
    assert applied(states[ids[0]] - states[ids[0]], everything) == states[ids[-1]]


@pytest.mark.slow
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", ["tracked", "iceberg-v3"])
def test_ids_tell_the_rows_of_an_update(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = ChangedTable(spark, tmp_path, kind)
    table.make()
    table.do(
        "INSERT INTO db.t VALUES (1L, 'x', 0.5D, NULL, 0), (2L, 'y', NULL, NULL, 0), "
        "(3L, 'z', NULL, map('a', 1), 0), (4L, 'z', NULL, NULL, 0)"
    )
    since = table.ids()[-1]
    # The key that people see changes, too; the last row goes, and comes again.
    table.do("UPDATE db.t SET v = 'u', id = id + 10 WHERE id < 3")
    table.do(
        "MERGE INTO db.t t USING (SELECT * FROM VALUES (3L), (4L), (5L) AS s (id)) s "
        "ON t.id = s.id WHEN MATCHED AND t.id = 3 THEN UPDATE SET m = map('a', 2) "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (4L, 'z', 0)"
    )
    found = Counter((each.kind, *each.row[:2]) for each in table.changes(since))
    assert found == {
        ("update_before", "1", "'x'"): 1,
        ("update_after", "11", "'u'"): 1,
        ("update_before", "2", "'y'"): 1,
        ("update_after", "12", "'u'"): 1,
        ("update_before", "3", "'z'"): 1,
        ("update_after", "3", "'z'"): 1,
    }
    # Who applies the end result finds rows by other keys.
    net = Counter((each.kind, each.row[0]) for each in table.changes(since, net=True))
    gone = {("delete", each): 1 for each in "123"}
    assert net == {**gone, **{("insert", each): 1 for each in ("11", "12", "3")}}


@pytest.mark.slow
def test_columns_may_have_any_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that tell of the change alone are taken."""
    names = ("__change_row_id", "__change_count", "__change_sign", "__change_key_0", "a.b`")
    columns = tuple(ColumnSpec(each, "DOUBLE") for each in names)
    definition = CreateTableSpec(columns, table_options=KINDS["tracked"])
    monkeypatch.setattr(ChangedTable, "definition", definition)
    table = ChangedTable(spark, tmp_path, "tracked")
    table.make()
    table.do("INSERT INTO db.t VALUES (1.0D, -0.0D, 2.0D, NULL, 3.0D)")
    table.do("UPDATE db.t SET __change_count = 0.0D")

    found = [(each.kind, each.row) for each in table.changes(table.ids()[0])]

    before = ("1.0", "-0.0", "2.0", "None", "3.0")
    after = ("1.0", "0.0", "2.0", "None", "3.0")
    assert sorted(found) == [("update_after", after), ("update_before", before)]


class CountedFile(io.FileIO):
    """A file that counts the bytes that are read."""

    counts: ClassVar[Counter[str]] = Counter()

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self.counts[str(self.name)] += len(data)
        return data


class CountedFiles(pafs.FSSpecHandler):
    """Opens local files as ``CountedFile``."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(CountedFile(path), mode="r")


@pytest.mark.slow
@pytest.mark.by_turns(8)
@pytest.mark.parametrize("kind", [*KINDS, KEYED])
def test_only_changed_files_are_read(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = ChangedTable(spark, tmp_path, kind)
    table.make()
    table.do(
        "INSERT INTO db.t SELECT id, concat(uuid(), uuid()), rand(), NULL, CAST(id % 5 AS INT) "
        "FROM range(500000)"
    )
    since = table.ids()[-1]
    table.do("DELETE FROM db.t WHERE p = 2 AND id < 25000")
    table.do("INSERT INTO db.t SELECT id, uuid(), rand(), NULL, 9 FROM range(100000)")

    connector = table.connector
    changes = table.chosen(since).changes
    assert changes is not None
    rows = connector.changes.changed_rows(spark, changes, changes.files)
    counted = pafs.PyFileSystem(CountedFiles(fsspec.filesystem("file")))
    reader = rows.function.reader
    if kind == KEYED:
        reader = replace(reader, reader=replace(reader.reader, filesystem=counted))
    else:
        reader = replace(reader, scan=replace(reader.scan, filesystem=counted))
    function = replace(rows.function, reader=reader)
    CountedFile.counts.clear()
    numbers = pa.RecordBatch.from_pydict({"task": [*range(len(rows.files))]})
    found = sum(batch.num_rows for batch in function([numbers]))

    changed = {each.path for each in changes.files}
    sizes = {each: Path(each).stat().st_size for each in changed}
    deletes = {each: n for each, n in CountedFile.counts.items() if each not in changed}
    all_files = [each for each in tmp_path.rglob("*.parquet") if "merge" not in str(each)]
    assert found <= 100_000 * 3
    assert len(changed) < len(all_files)
    # Readers take 64 KB for the footer of each file, which is part of that.
    assert sum(CountedFile.counts.values()) <= 1.1 * (sum(sizes.values()) + sum(deletes.values()))
    assert sum(deletes.values()) < sum(sizes.values()) / 10
