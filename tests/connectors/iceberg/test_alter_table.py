"""ALTER TABLE: all changes at once, and once, whatever happens to the request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    CommentColumn,
    CommentTable,
    DropColumn,
    DropIdentifierFields,
    DropPartitionField,
    MoveColumn,
    RenameColumn,
    ReplacePartitionField,
    SetNullable,
    SetProperties,
    SetWriteOrder,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.altering import Note, alter, columns, failure, made, table
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import PlainCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    return made(tmp_path)


def test_all_changes_are_one_commit_in_their_order(
    catalog: PlainCatalog, connector: Connector
) -> None:
    changes = (
        AddColumn("n", "INT", comment="new"),
        RenameColumn("S", "text"),
        AddColumn("s", "BIGINT", after="text"),
        WidenColumn("ID", "BIGINT"),
        WidenColumn("d", "DECIMAL(9, 2)"),
        AddColumn("a.z", "STRING", first=True),
        RenameColumn("a.X", "xx"),
        WidenColumn("a.y.element.q", "DOUBLE"),
        DropColumn("n"),
        MoveColumn("ts", first=True),
        SetNullable("id"),
        CommentColumn("d", "amount"),
        ReplacePartitionField("ts_day", "hours(ts)"),
        AddPartitionField("bucket(4, id)", "shard"),
        SetWriteOrder(("id DESC", "truncate(2, text)"), "range"),
        SetProperties({"write.delete.mode": "merge-on-read"}),
        CommentTable("all"),
    )
    before = table(catalog).metadata

    preview = alter(connector, *changes, dry_run=True)
    assert table(catalog).metadata == before
    assert alter(connector, *changes) == preview

    assert preview == [
        ("column", "id INT NOT NULL", "id BIGINT"),
        ("column", "s STRING", "text STRING"),
        ("column", None, "s BIGINT"),
        ("column", None, "a.z STRING"),
        ("column", "a.x INT", "a.xx INT"),
        ("column", "a.y.element.q FLOAT", "a.y.element.q DOUBLE"),
        ("column", "d DECIMAL(5,2)", "d DECIMAL(9,2) COMMENT 'amount'"),
        ("partition fields", "day(ts) AS ts_day", "hour(ts) AS ts_hour, bucket(4, id) AS shard"),
        ("sort order", "", "id DESC NULLS LAST, truncate(2, text) ASC NULLS FIRST"),
        ("comment", None, "all"),
        ("property write.delete.mode", None, "merge-on-read"),
        ("property write.distribution-mode", None, "range"),
        ("order of columns", "id, text, a, ts, d", "ts, id, text, a, d"),
    ]
    found = table(catalog)
    assert columns(catalog) == ["ts", "id", "text", "s", "a", "d"]
    assert len(found.metadata.schemas) == 2
    assert len(found.metadata.metadata_log) == len(before.metadata_log) + 1
    ids = {each.name: each.field_id for each in found.schema().fields}
    assert ids["text"] == before.schema().find_field("s").field_id
    assert ids["s"] > before.last_column_id
    assert found.spec().fields[0].name == "ts_hour"
    assert [each.direction.value for each in found.sort_order().fields] == ["desc", "asc"]


def test_what_is_there_already_is_no_change(catalog: PlainCatalog, connector: Connector) -> None:
    changes = (
        AddColumn("N", "DECIMAL(5,2)", if_not_exists=True),
        DropColumn("gone", if_exists=True),
        RenameColumn("gone", "x", if_exists=True),
        AddPartitionField("bucket(2, id)", if_not_exists=True),
        DropPartitionField("gone", if_exists=True),
        WidenColumn("id", "INT"),
        SetNullable("id", nullable=False),
        MoveColumn("id", first=True),
        DropIdentifierFields(("s",), if_exists=True),
        UnsetProperties(("gone",)),
    )
    assert len(alter(connector, *changes)) == 2
    metadata = table(catalog).metadata_location

    assert alter(connector, *changes) == []
    assert table(catalog).metadata_location == metadata
    assert columns(catalog)[-1] == "N"


def test_a_branch_is_not_altered_alone(connector: Connector) -> None:
    alterations = connector.alterations
    assert alterations is not None
    branch, spec = TableName("db", "t$branch_b"), AlterTableSpec((CommentTable("x"),))

    found = failure(lambda: alterations.alter_table(branch, spec, dry_run=False))

    assert "belong to the whole table" in found.message


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_what_a_lost_answer_did_is_found(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch, lost: Any
) -> None:
    answering(connector, monkeypatch, lost)

    assert alter(connector, AddColumn("n", "INT"), RenameColumn("s", "t")) == [
        ("column", "s STRING", "t STRING"),
        ("column", None, "n INT"),
    ]
    assert columns(catalog) == ["id", "t", "a", "ts", "d", "n"]
    assert len(table(catalog).metadata.schemas) == 2


def test_a_later_try_finds_what_an_earlier_one_did(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = (RenameColumn("s", "t"), AddColumn("s", "INT"), SetProperties({"a": "b"}))
    note = Note()
    answering(connector, monkeypatch, lost_answer)
    opened = connector.writes.catalog.opened  # type: ignore[attr-defined]
    load = opened.load_table

    def unreachable(*_: Any) -> Any:
        raise ConnectionError("the catalog is away")

    # Its driver dies after the request.
    calls = [0]

    def load_once(*arguments: Any) -> Any:
        calls[0] += 1
        return load(*arguments) if calls[0] <= 2 else unreachable()

    monkeypatch.setattr(opened, "load_table", load_once)
    found = failure(lambda: alter(connector, *changes, note=note))
    assert found.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    # Somebody else goes on meanwhile.
    with table(catalog).update_schema() as update:
        update.rename_column("t", "u")
    after = table(catalog).metadata

    report = alter(catalog.open(), *changes, note=note)

    assert [each for each in report if each[0] == "column"] == [
        ("column", "s STRING", "t STRING"),
        ("column", None, "s INT"),
    ]
    assert table(catalog).metadata == after


def test_what_a_lost_answer_did_is_found_though_others_added_columns(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name mapping, a property, changes with theirs."""
    mapping = '[{"field-id": 1, "names": ["id"]}]'
    alter(connector, SetProperties({"schema.name-mapping.default": mapping}))

    def answer_is_lost(commit: Callable[[], Any]) -> Any:
        commit()
        alter(catalog.open(), AddColumn("theirs", "INT"))
        raise ConnectionError("the answer was lost")

    answering(connector, monkeypatch, answer_is_lost)
    note = Note()
    changes = (AddColumn("n", "INT"), SetProperties({"a": "b"}))

    first = alter(connector, *changes, note=note)
    assert note.found is not None
    assert alter(catalog.open(), *changes, note=note) == first

    assert ("column", None, "n INT") in first
    assert columns(catalog)[-2:] == ["n", "theirs"]


def test_a_note_of_what_was_not_done_does_not_count(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Note()
    answering(connector, monkeypatch, *[lost_request] * 9)
    found = failure(lambda: alter(connector, DropColumn("s"), note=note))
    assert found.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN
    assert columns(catalog) == ["id", "s", "a", "ts", "d"]

    assert alter(catalog.open(), DropColumn("s"), note=note) == [("column", "s STRING", None)]
    assert columns(catalog) == ["id", "a", "ts", "d"]


def test_two_that_alter_at_once_both_do(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_is_faster(commit: Callable[[], Any]) -> Any:
        alter(catalog.open(), AddColumn("theirs", "INT"), SetProperties({"a": "theirs"}))
        return commit()

    answering(connector, monkeypatch, other_is_faster)

    alter(connector, AddColumn("ours", "INT"), SetProperties({"b": "ours"}))

    assert columns(catalog)[-2:] == ["theirs", "ours"]
    assert {"a": "theirs", "b": "ours"}.items() <= table(catalog).properties.items()


def test_the_second_of_two_equal_ones_fails(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_is_faster(commit: Callable[[], Any]) -> Any:
        alter(catalog.open(), AddColumn("n", "INT"), SetProperties({"a": "theirs"}))
        return commit()

    answering(connector, monkeypatch, other_is_faster)
    found = failure(lambda: alter(connector, AddColumn("n", "INT"), SetProperties({"a": "ours"})))
    assert found.code is ErrorCode.COLUMN_EXISTS
    assert table(catalog).properties["a"] == "theirs"


def test_rows_that_are_appended_meanwhile_stay(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"id": 1, "s": "x", "a": None, "ts": None, "d": None}

    def other_is_faster(commit: Callable[[], Any]) -> Any:
        DirectWrite(catalog.open()).insert(row).publish()
        return commit()

    answering(connector, monkeypatch, other_is_faster)
    alter(connector, AddColumn("n", "INT"))

    assert ids_of(catalog) == [1]
    assert columns(catalog)[-1] == "n"


def test_bounds_of_no_length_are_none_that_java_knows(
    catalog: PlainCatalog, connector: Connector
) -> None:
    alter(connector, SetProperties({"write.metadata.metrics.default": "truncate(0)"}))

    row = {"id": 1, "s": "x", "a": None, "ts": None, "d": None}
    DirectWrite(catalog.open()).insert(row).publish()

    assert ids_of(catalog) == [1]


def test_secrets_of_others_are_not_shown(catalog: PlainCatalog, connector: Connector) -> None:
    with table(catalog).transaction() as transaction:
        transaction.set_properties({"s3.secret-access-key": "hunter2", "plain": "seen"})

    report = alter(connector, UnsetProperties(("s3.secret-access-key", "plain")))

    assert report == [
        ("property plain", "seen", None),
        ("property s3.secret-access-key", "***", None),
    ]
