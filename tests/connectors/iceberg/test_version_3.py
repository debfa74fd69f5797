"""Tables of version 3: ids of rows, vectors that share a file, metadata files, defaults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.iceberg.commit import snapshot_commit
from spark_jobs.connectors.iceberg.table.commits import OtherCommit
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.contract.maintenance import CreateBranchSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.writes import Fragment
from tests.connectors.iceberg.direct import DirectWrite, ids_in, ids_of
from tests.connectors.iceberg.ids_here import changed_ids, ids_here, require_numbered
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.iceberg.tables import statement_done
from tests.support.iceberg_changes import deleted
from tests.support.iceberg_version_3 import upgrade

COLUMNS = (ColumnSpec("id", "BIGINT"), ColumnSpec("s", "STRING"))
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
MERGED_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("merge", "update", "delete")}


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    made = PlainCatalog(tmp_path)
    options = {"format-version": "3", "commit.manifest.min-count-to-merge": "3", **MERGED_ON_READ}
    spec = CreateTableSpec(COLUMNS, table_options=options)
    assert made.open(init_catalog_tables="true").metadata.create_table(NAME, spec)
    return made


def _rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": each, "s": f"s{each}"} for each in ids]


def _document(catalog: PlainCatalog) -> tuple[Path, dict[str, Any]]:
    path = Path(urlsplit(catalog.library().load_table(("db", "t")).metadata_location).path)
    return path, json.loads(path.read_text())


def _edit(catalog: PlainCatalog, **fields: Any) -> None:
    path, document = _document(catalog)
    path.write_text(json.dumps({**document, **fields}))


def test_a_new_table_hands_out_ids(catalog: PlainCatalog, connector: Connector) -> None:
    assert _document(catalog)[1]["next-row-id"] == 0
    DirectWrite(connector).insert(*_rows(1, 2, 3)).publish()
    DirectWrite(connector).insert(*_rows(4, 5)).publish()

    assert sorted(ids_here(connector).values()) == [0, 1, 2, 3, 4]
    snapshots = _document(catalog)[1]["snapshots"]
    assert [(each["first-row-id"], each["added-rows"]) for each in snapshots] == [(0, 3), (3, 2)]
    assert ids_of(catalog) == [1, 2, 3, 4, 5]


def test_ids_stay_whatever_becomes_of_manifests(connector: Connector) -> None:
    known: dict[int, int] = {}
    ever: set[int] = set()
    for number in range(8):
        first = number * 10
        write = DirectWrite(connector).insert(*_rows(*range(first, first + 6)))
        files = enumerate(pinned_table(write.table).files)
        whole = [n for n, each in files if each.entry.row_count > 5 and not each.deletes]
        if len(whole) > 1:
            write.delete(whole[0], number % 2)
        if len(whole) > 2:
            write.update(whole[1], 3, "new")
        write.publish()
        now = ids_here(connector)
        assert changed_ids(known, now) == {}
        new = {each for key, each in now.items() if key not in known}
        assert not new & ever
        known, ever = now, ever | {*now.values()}
    require_numbered(pinned_table(connector.metadata.load_table(NAME)))


def _in_one_file(fragments: Sequence[Fragment]) -> None:
    """Put the vectors of several fragments into the file of the first, as Java stores them."""
    vectors = [each.document["deletes"] for each in fragments]
    contents = [Path(each["path"]).read_bytes() for each in vectors]
    start = 0
    for vector, content in zip(vectors, contents, strict=True):
        Path(vector["path"]).unlink()
        vector["offset"] += start
        start += len(content)
    Path(vectors[0]["path"]).write_bytes(b"".join(contents))
    for vector in vectors:
        vector |= {"path": vectors[0]["path"], "size": start}


def test_vectors_in_one_file_are_told_apart(connector: Connector) -> None:
    for first in (0, 10, 20):
        DirectWrite(connector).insert(*_rows(*range(first, first + 9))).publish()
    before = ids_here(connector)
    write = DirectWrite(connector)
    sink = write.handle.sinks.open("one task")
    for file in range(3):
        sink.store_merged_rows(deleted(file, 1, 2))
    marked = sink.finish()
    assert len({each.document["deletes"]["path"] for each in marked}) == 3, "expiries of Java"
    _in_one_file(marked)
    write.fragments += marked
    write.publish()
    table = pinned_table(connector.metadata.load_table(NAME))
    vectors = [file.vector for file in table.files]
    assert len({each.path for each in vectors if each}) == 1
    assert len({each.key for each in vectors if each}) == 3

    # One is replaced, one goes with its file, one stays.
    DirectWrite(connector, rewrite_share=0.9).delete(0, 3).publish()
    DirectWrite(connector, rewrite_share=0.0).delete(1, 4).publish()

    gone = {each % 10 for each in before.keys() - ids_here(connector).keys()}
    table = pinned_table(connector.metadata.load_table(NAME))
    deletes = [[each.row_count for each in file.deletes] for file in table.files]
    assert (gone, sorted(deletes)) == ({1, 2, 3, 4}, [[], [2], [3]])
    assert len(ids_here(connector)) == 27 - 6 - 2
    assert changed_ids(before, ids_here(connector)) == {}
    summary = table.snapshot.summary
    assert summary["removed-dvs"] == "1"
    assert summary["total-position-deletes"] == "5"


def test_a_compaction_that_marks_rows_is_a_change(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    DirectWrite(connector).insert(*_rows(*range(10))).publish()
    first = DirectWrite(connector, read_set=ids_in(0, 5)).insert(*_rows(20))
    DirectWrite(connector).delete(0, 2).publish()
    # As if its engine had called it one.
    monkeypatch.setattr(OtherCommit, "keeps_rows", True)

    with pytest.raises(JobError) as caught:
        first.publish()

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT


def test_unknown_metadata_stays(catalog: PlainCatalog, connector: Connector) -> None:
    DirectWrite(connector).insert(*_rows(1)).publish()
    _, document = _document(catalog)
    snapshots = [{**each, "of-the-future": 7} for each in document["snapshots"]]
    schemas = [{**each, "x": {"y": 1}} for each in document["schemas"]]
    _edit(catalog, **{"of-the-future": [1], "snapshots": snapshots, "schemas": schemas})

    DirectWrite(connector).insert(*_rows(2)).publish()

    _, now = _document(catalog)
    assert now["of-the-future"] == [1]
    assert now["schemas"] == schemas
    assert [each.get("of-the-future") for each in now["snapshots"]] == [7, None]
    assert now["next-row-id"] == 2


def test_no_number_is_given_twice(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit to another branch, which adds no rows, comes between."""
    DirectWrite(connector).insert(*_rows(1, 2, 3, 4)).publish()
    assert connector.branches is not None
    connector.branches.create_branch(NAME, CreateBranchSpec("other"))
    other = TableName("db", "t$branch_other")
    changes, asked = snapshot_commit.catalog_changes, []

    def between(*arguments: Any) -> Any:
        if not asked:
            asked.append(arguments)
            DirectWrite(catalog.open(), name=other).delete(0, 0).publish()
        return changes(*arguments)

    monkeypatch.setattr(snapshot_commit, "catalog_changes", between)
    DirectWrite(connector).delete(0, 1).publish()

    numbers = [each["sequence-number"] for each in _document(catalog)[1]["snapshots"]]
    assert numbers == [1, 2, 3]
    assert ids_here(connector).keys() == {1, 3, 4}
    assert ids_here(connector, other).keys() == {2, 3, 4}
    require_numbered(pinned_table(connector.metadata.load_table(NAME)))


@pytest.fixture
def upgraded(tmp_path: Path) -> PlainCatalog:
    """A table whose rows have no ids yet."""
    made = PlainCatalog(tmp_path / "upgraded")
    made.folder.mkdir()
    rows = pa.Table.from_pylist(_rows(1, 2, 3, 4), schema=SCHEMA)
    made.create(SCHEMA, {"format-version": "2", **MERGED_ON_READ}, rows)
    upgrade(made.library().load_table(("db", "t")))
    return made


def test_the_first_commit_gives_ids_to_all(upgraded: PlainCatalog) -> None:
    connector = upgraded.open()
    assert not pinned_table(connector.metadata.load_table(NAME)).has_lineage
    DirectWrite(connector).delete(0, 1).publish()

    assert ids_here(connector) == {1: 0, 3: 2, 4: 3}
    DirectWrite(connector, rewrite_share=0.0).update(0, 2, "new").publish()
    assert ids_here(connector) == {1: 0, 3: 2, 4: 3}


def test_ids_that_came_meanwhile_are_not_lost(upgraded: PlainCatalog) -> None:
    late = DirectWrite(upgraded.open(), rewrite_share=0.0).update(0, 1, "new")
    DirectWrite(upgraded.open()).insert(*_rows(9)).publish()

    with pytest.raises(JobError, match="the ids of rows") as caught:
        late.publish()

    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    DirectWrite(upgraded.open()).insert(*_rows(10)).publish()


def test_columns_that_are_in_the_way(catalog: PlainCatalog, connector: Connector) -> None:
    (schema,) = _document(catalog)[1]["schemas"]
    field = {"id": 9, "name": "more", "required": False, "type": "string"}
    time = {**field, "type": "time", "initial-default": "10:00:00", "write-default": "10:00:00"}
    for added, named in (({**field, "name": "_row_id"}, "_row_id"), (time, "more")):
        fields = [*schema["fields"], added]
        _edit(catalog, **{"schemas": [{**schema, "fields": fields}], "last-column-id": 9})
        table = connector.metadata.load_table(NAME)
        with pytest.raises(NotSupportedError, match=named):
            connector.metadata.require_writable(table)


def test_a_column_of_an_unknown_type_is_carried(
    catalog: PlainCatalog, connector: Connector
) -> None:
    DirectWrite(connector).insert(*_rows(1, 2)).publish()
    (schema,) = _document(catalog)[1]["schemas"]
    fields = [*schema["fields"], {"id": 9, "name": "u", "required": False, "type": "unknown"}]
    _edit(catalog, **{"schemas": [{**schema, "fields": fields}], "last-column-id": 9})

    DirectWrite(connector, rewrite_share=0.0).update(0, 1, "new").publish()

    assert [each.name for each in connector.metadata.load_table(NAME).opaque_columns] == ["u"]
    assert ids_of(catalog) == [1, 2]


@pytest.mark.slow
def test_new_rows_get_defaults(
    spark: SparkSession, catalog: PlainCatalog, connector: Connector
) -> None:
    DirectWrite(connector).insert(*_rows(1)).publish()
    (schema,) = _document(catalog)[1]["schemas"]
    defaults = {
        "int": (7, 8),
        "string": ("it's \\ 1", "it's \\ 2"),
        "decimal(9, 2)": ("1.50", "2.50"),
        "date": ("2024-01-31", "2024-02-29"),
        "timestamptz": ("2024-01-31T10:00:00.000001+00:00", "2024-01-31T11:00:00+00:00"),
        "binary": ("00ff", "0102"),
        "boolean": (True, False),
    }
    fields = [
        {
            "id": 10 + n,
            "name": f"c{n}",
            "required": False,
            "type": kind,
            "initial-default": old,
            "write-default": new,
        }
        for n, (kind, (old, new)) in enumerate(defaults.items())
    ]
    fields = [*schema["fields"], *fields]
    _edit(catalog, **{"schemas": [{**schema, "fields": fields}], "last-column-id": 30})
    place = CatalogSpec("iceberg", str(catalog.folder), catalog.options)

    statement_done(
        spark, place, "INSERT INTO db.t (id, s) SELECT id, s FROM s", "SELECT 2L id, 'x' s", {}
    )
    text = (
        "MERGE INTO db.t t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = s.s, c0 = DEFAULT "
        "WHEN NOT MATCHED THEN INSERT (id, c0) VALUES (s.id, DEFAULT)"
    )
    statement_done(spark, place, text, "SELECT explode(array(1L, 3L)) id, 'y' s", {})

    found = catalog.library().load_table(("db", "t")).scan().to_arrow().to_pylist()
    rows = {row["id"]: [*row.values()][2:] for row in found}
    assert rows[2] == rows[3]
    assert rows[1][0] == 8
    assert rows[1][1:3] == ["it's \\ 1", rows[1][2]]
    assert [rows[2][n] for n in (0, 1, 5, 6)] == [8, "it's \\ 2", b"\1\2", False]
    assert str(rows[2][2]) == "2.50"
    assert (rows[2][3].isoformat(), rows[2][4].hour) == ("2024-02-29", 11)
