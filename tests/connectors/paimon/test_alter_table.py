"""ALTER TABLE on Paimon tables: one schema for all changes, once, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.connectors.paimon.alter.alter_table import PaimonAlterations
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    CommentColumn,
    CommentTable,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
    SetProperties,
    SetWriteOrder,
    TableChange,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.request import TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_tables import NAME, append, read

SPEC = CreateTableSpec(
    columns=(
        ColumnSpec("id", "INT", nullable=False),
        ColumnSpec("a", "STRUCT<x: INT, y: STRING>"),
        ColumnSpec("day", "DATE"),
        ColumnSpec("l", "ARRAY<STRUCT<q: FLOAT>>"),
        ColumnSpec("v", "VARCHAR(5)"),
        ColumnSpec("n", "INT"),
        ColumnSpec("m", "MAP<STRING, INT>"),
    ),
    partition_keys=("day",),
    table_options={"bucket": "2", "bucket-key": "id", "file-index.bloom-filter.columns": "v"},
)
ROW = {
    "id": 1,
    "a": {"x": 1, "y": "a"},
    "day": dt.date(2026, 1, 31),
    "l": [{"q": 1.5}],
    "v": "abc",
    "n": 4,
    "m": {"k": 1},
}


class Note:
    """What a try leaves for the next one."""

    def __init__(self) -> None:
        self.found: str | None = None

    def read(self) -> Mapping[str, Any] | None:
        return None if self.found is None else json.loads(self.found)

    def write(self, change: Mapping[str, Any]) -> None:
        self.found = json.dumps(change)

    def remove(self) -> None:
        self.found = None


class Files(HardLinkFiles):
    """Storage that does something else when a schema is stored."""

    def __init__(self, *acts: Callable[[Callable[[], bool]], bool]) -> None:
        self.acts = list(acts)

    def create(self, path: str, text: str) -> bool:
        def store() -> bool:
            return super(Files, self).create(path, text)

        return self.acts.pop(0)(store) if self.acts and "/schema-" in path else store()


def lost_answer(store: Callable[[], bool]) -> bool:
    store()
    raise TimeoutError("no answer")


def lost_request(store: Callable[[], bool]) -> bool:
    del store
    raise TimeoutError("no answer")


@pytest.fixture
def filled(connector: Connector) -> Connector:
    connector.metadata.create_table(NAME, SPEC)
    append(connector, [ROW])
    return connector


def on(connector: Connector, *acts: Callable[[Callable[[], bool]], bool]) -> Connector:
    """The connector on storage that behaves so."""
    alterations = connector.alterations
    assert isinstance(alterations, PaimonAlterations)
    files = SnapshotFiles(Files(*acts))
    return replace(connector, alterations=replace(alterations, store=files))


def alter(
    connector: Connector, *changes: TableChange, dry_run: bool = False, note: Any = None
) -> list[tuple[str, str | None, str | None]]:
    assert connector.alterations is not None
    report = connector.alterations.alter_table(
        NAME, AlterTableSpec(changes), dry_run=dry_run, note=note or Note()
    )
    return [(each.what, each.before, each.after) for each in report.parts]


def schemas(warehouse: Path) -> list[str]:
    return sorted(each.name for each in (warehouse / "shop.db/orders/schema").iterdir())


def schema(warehouse: Path, number: int) -> Any:
    return json.loads((warehouse / f"shop.db/orders/schema/schema-{number}").read_text())


def failure(action: Callable[[], object]) -> JobError:
    with pytest.raises(JobError) as caught:
        action()
    return caught.value


def test_all_changes_are_one_schema_in_their_order(filled: Connector, warehouse: Path) -> None:
    changes = (
        AddColumn("w", "INT", comment="new", default="7"),
        RenameColumn("N", "number"),
        AddColumn("n", "STRING", after="ID"),
        AddColumn("a.z", "DOUBLE", first=True),
        RenameColumn("a.X", "xx"),
        WidenColumn("number", "BIGINT"),
        WidenColumn("l.element.q", "DOUBLE"),
        WidenColumn("v", "STRING"),
        WidenColumn("m.value", "BIGINT"),
        DropColumn("a.y"),
        MoveColumn("number", first=True),
        CommentColumn("v", "text"),
        SetProperties({"snapshot.num-retained.min": "5"}),
        CommentTable("all"),
    )
    preview = alter(filled, *changes, dry_run=True)
    assert schemas(warehouse) == ["schema-0"]
    assert alter(filled, *changes) == preview

    assert preview == [
        ("column", "a.y STRING", None),
        ("column", "n INT", "number BIGINT"),
        ("column", None, "n STRING"),
        ("column", None, "a.z DOUBLE"),
        ("column", "a.x INT", "a.xx INT"),
        ("column", "l.element.q FLOAT", "l.element.q DOUBLE"),
        ("column", "v VARCHAR(5)", "v STRING COMMENT 'text'"),
        ("column", "m MAP<STRING, INT>", "m MAP<STRING, BIGINT>"),
        ("column", None, "w INT DEFAULT 7 COMMENT 'new'"),
        ("comment", None, "all"),
        ("property snapshot.num-retained.min", None, "5"),
        ("order of columns", "id, a, day, l, v, number, m", "number, id, a, day, l, v, m"),
    ]
    assert schemas(warehouse) == ["schema-0", "schema-1"]
    assert read(filled) == [
        {
            "number": 4,
            "id": 1,
            "n": None,
            "a": {"z": None, "xx": 1},
            "day": ROW["day"],
            "l": [{"q": 1.5}],
            "v": "abc",
            "m": [("k", 1)],
            "w": None,
        }
    ]
    assert alter(
        filled, SetDefault("w", None), UnsetProperties(("snapshot.num-retained.min",))
    ) == [
        ("property snapshot.num-retained.min", "5", None),
        ("column", "w INT DEFAULT 7 COMMENT 'new'", "w INT COMMENT 'new'"),
    ]


def test_what_is_there_already_is_no_change(filled: Connector, warehouse: Path) -> None:
    changes = (
        AddColumn("W", "INT", if_not_exists=True),
        DropColumn("gone", if_exists=True),
        RenameColumn("gone", "x", if_exists=True),
        WidenColumn("n", "INT"),
        SetNullable("id", nullable=False),
        SetProperties({"bucket": "2"}),
        UnsetProperties(("gone",)),
    )
    assert len(alter(filled, *changes)) == 1

    assert alter(filled, *changes) == []
    assert schemas(warehouse) == ["schema-0", "schema-1"]


REFUSED: dict[str, tuple[TableChange, str, str]] = {
    "exists": (AddColumn("N", "STRING"), "COLUMN_EXISTS", "has a column n already: INT"),
    "exists otherwise": (
        AddColumn("n", "STRING", if_not_exists=True),
        "COLUMN_EXISTS",
        "has a column n already",
    ),
    "exists and is NOT NULL": (
        AddColumn("id", "INT", if_not_exists=True),
        "COLUMN_EXISTS",
        "has a column id already: INT",
    ),
    "no struct": (AddColumn("n.x", "INT"), "COLUMN_NOT_FOUND", "has no column n"),
    "required": (AddColumn("w", "INT", nullable=False), "NOT_SUPPORTED", "cannot be added as NOT"),
    "reserved": (AddColumn("_ROW_ID", "INT"), "NOT_SUPPORTED", "keeps the name _ROW_ID"),
    "binary default": (
        AddColumn("w", "BINARY", default="X'00'"),
        "NOT_SUPPORTED",
        "for which Paimon has no defaults",
    ),
    "default of an instant": (
        AddColumn("w", "TIMESTAMP", default="TIMESTAMP '2026-01-31 00:00:00Z'"),
        "NOT_SUPPORTED",
        "another instant in each time zone",
    ),
    "nested default": (AddColumn("a.w", "INT", default="1"), "NOT_SUPPORTED", "a nested field"),
    "unknown": (DropColumn("gone"), "COLUMN_NOT_FOUND", "has no column gone"),
    "partition dropped": (DropColumn("day"), "NOT_SUPPORTED", "day is a partition column"),
    "partition renamed": (RenameColumn("DAY", "x"), "NOT_SUPPORTED", "day is a partition column"),
    "bucket key": (WidenColumn("id", "BIGINT"), "NOT_SUPPORTED", "id is a bucket key column"),
    "named by an option": (
        RenameColumn("v", "x"),
        "NOT_SUPPORTED",
        "its option file-index.bloom-filter.columns names the column v",
    ),
    "narrower": (WidenColumn("n", "SMALLINT"), "TYPE_MISMATCH", "n of shop.orders is INT, which"),
    "not null": (SetNullable("n", nullable=False), "NOT_SUPPORTED", "n of shop.orders admits NULL"),
    "key of a map": (WidenColumn("m.key", "STRING"), "NOT_SUPPORTED", "in the keys of a map"),
    "nested move": (MoveColumn("a.y", first=True), "NOT_SUPPORTED", "which Paimon does not move"),
    "bucket": (SetProperties({"bucket": "4"}), "NOT_SUPPORTED", "is fixed since it has a snapshot"),
    "merge engine": (
        SetProperties({"merge-engine": "first-row"}),
        "NOT_SUPPORTED",
        "option merge-engine says how",
    ),
    "folders": (
        SetProperties({"partition.legacy-name": "false"}),
        "NOT_SUPPORTED",
        "option partition.legacy-name says how",
    ),
    "folder of NULL": (
        SetProperties({"partition.default-name": "none"}),
        "NOT_SUPPORTED",
        "option partition.default-name says how",
    ),
    "size": (
        SetProperties({"manifest.target-file-size": "large"}),
        "NOT_SUPPORTED",
        "Option manifest.target-file-size: 'large' is not a size",
    ),
    "number": (
        SetProperties({"manifest.merge-min-count": "some"}),
        "NOT_SUPPORTED",
        "Option manifest.merge-min-count = 'some' is not a whole number",
    ),
    "type": (SetProperties({"type": "x"}), "NOT_SUPPORTED", "option type says how"),
    "unset": (UnsetProperties(("bucket-key",)), "NOT_SUPPORTED", "option bucket-key says how"),
    "vectors": (
        SetProperties({"deletion-vectors.enabled": "true"}),
        "NOT_SUPPORTED",
        "only change if deletion-vectors.modifiable is true",
    ),
    "refused": (SetProperties({"file.format": "csv"}), "NOT_SUPPORTED", "file.format = csv"),
    "partition field": (AddPartitionField("n"), "NOT_SUPPORTED", "Paimon have no such thing"),
    "order": (SetWriteOrder(("n",)), "NOT_SUPPORTED", "Paimon have no such thing"),
}


@pytest.mark.parametrize(("change", "code", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(
    filled: Connector, warehouse: Path, change: TableChange, code: str, problem: str
) -> None:
    found = failure(lambda: alter(filled, CommentTable("x"), change))

    assert found.code.name == code
    assert problem in found.message
    assert found.remedy
    assert schemas(warehouse) == ["schema-0"]


def test_options_of_an_empty_table_are_not_fixed(connector: Connector, warehouse: Path) -> None:
    connector.metadata.create_table(NAME, SPEC)

    alter(connector, SetProperties({"bucket": "4"}))
    append(connector, [ROW])

    assert schema(warehouse, 1)["options"]["bucket"] == "4"
    assert "is fixed" in failure(lambda: alter(connector, SetProperties({"bucket": "2"}))).message


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_what_a_lost_answer_did_is_found(filled: Connector, warehouse: Path, lost: Any) -> None:
    assert alter(on(filled, lost), RenameColumn("n", "x"), AddColumn("n", "INT")) == [
        ("column", "n INT", "x INT"),
        ("column", None, "n INT"),
    ]
    assert schemas(warehouse) == ["schema-0", "schema-1"]


def test_a_later_try_finds_what_an_earlier_one_did(filled: Connector, warehouse: Path) -> None:
    note, changes = Note(), (RenameColumn("n", "x"), AddColumn("n", "INT"))

    def dies(store: Callable[[], bool]) -> bool:
        store()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alter(on(filled, dies), *changes, note=note)
    # Somebody else goes on meanwhile.
    alter(filled, RenameColumn("x", "y"))

    assert alter(filled, *changes, note=note) == [
        ("column", "n INT", "x INT"),
        ("column", None, "n INT"),
    ]
    assert schemas(warehouse) == ["schema-0", "schema-1", "schema-2"]


def test_a_note_of_what_was_not_done_does_not_count(filled: Connector, warehouse: Path) -> None:
    note = Note()
    found = failure(lambda: alter(on(filled, *[lost_request] * 9), DropColumn("n"), note=note))
    assert found.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert schemas(warehouse) == ["schema-0"]

    assert alter(filled, DropColumn("n"), note=note) == [("column", "n INT", None)]
    assert schemas(warehouse) == ["schema-0", "schema-1"]


def test_two_that_alter_at_once_both_do(filled: Connector) -> None:
    def other_is_faster(store: Callable[[], bool]) -> bool:
        alter(filled, AddColumn("theirs", "INT"))
        return store()

    alter(on(filled, other_is_faster), AddColumn("ours", "INT"))

    assert filled.metadata.load_table(NAME).column_names[-2:] == ("theirs", "ours")


def test_a_table_that_is_dropped_meanwhile_is_not_brought_back(
    filled: Connector, warehouse: Path
) -> None:
    import shutil

    def dropped(store: Callable[[], bool]) -> bool:
        shutil.rmtree(warehouse / "shop.db/orders")
        return store()

    failure(lambda: alter(on(filled, dropped), DropColumn("n")))

    assert not (warehouse / "shop.db/orders/schema/schema-1").exists()


def test_a_new_table_like_another_one(filled: Connector, warehouse: Path) -> None:
    alter(filled, AddColumn("w", "INT", default="7"), CommentTable("all"))
    like, spec = TableName("shop", "copy"), CreateTableSpec(like="shop.orders")

    assert filled.metadata.create_table(like, replace(spec, table_options={"bucket": "3"})) is True

    found = json.loads((warehouse / "shop.db/copy/schema/schema-0").read_text())
    assert (found["comment"], found["partitionKeys"]) == ("all", ["day"])
    assert found["options"]["bucket"] == "3"
    assert found["fields"][-1]["defaultValue"] == "7"
    assert [e["name"] for e in found["fields"]] == [*ROW, "w"]
    ids = [each["id"] for each in found["fields"]]
    assert len(set(ids)) == len(ids)
    other = failure(lambda: filled.metadata.create_table(like, spec))
    assert "option bucket is '3', not '2'" in other.message
