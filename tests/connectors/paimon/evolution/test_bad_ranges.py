"""Ranges that do not fit together, and what is refused of tables with data evolution."""

from __future__ import annotations

from unittest import mock

import pytest

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.errors import CatalogError, CommitError, ErrorCode, NotSupportedError
from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.evolution.evolving import (
    EVOLVING,
    VECTORS,
    Update,
    commit_copy,
    commit_index,
    filled,
    update,
)
from tests.support.paimon_tables import NAME, create


def unreadable(connector: Connector) -> str:
    """Why the table's files cannot be planned."""
    table = connector.metadata.load_table(NAME)
    with pytest.raises(CatalogError) as caught:
        connector.metadata.plan_files(table)
    assert caught.value.code is ErrorCode.METADATA_UNREADABLE
    return caught.value.message


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"first_row_id": 2}, "have overlapping ranges of row ids"),
        ({"first_row_id": 0, "row_count": 3, "write_cols": ["a"]}, "not the same number of rows"),
        ({"first_row_id": 8}, "have row ids from 8 on, which new rows will get"),
        (
            {
                "first_row_id": 0,
                "write_cols": ["a"],
                "min_sequence_number": 1,
                "max_sequence_number": 1,
            },
            "none is newer",
        ),
    ],
)
def test_ranges(connector: Connector, changes: dict[str, object], problem: str) -> None:
    filled(connector, keys=())
    name = commit_copy(connector, 0, **changes)

    message = unreadable(connector)

    assert problem in message
    assert name in message


def test_a_range_without_its_anchor(connector: Connector) -> None:
    filled(connector, keys=())
    native = connector.metadata.load_table(NAME).native
    # The ids of the second range are free once its file is gone.
    with mock.patch.object(type(native.files), "located_entries", native.files.located_entries[:1]):
        name = commit_copy(connector, 0, first_row_id=20, write_cols=["a", "b"])
    table = connector.metadata.load_table(NAME)
    object.__setattr__(table.native.snapshot, "next_row_id", 30)

    with pytest.raises(CatalogError) as caught:
        connector.metadata.plan_files(table)

    assert "lack the column id of their rows: the range has no anchor" in caught.value.message
    assert name in caught.value.message


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"file_name": "values.blob"}, "holds values of the type BLOB"),
        ({"file_name": "data-1.vector.parquet"}, "holds values of the type VECTOR"),
        (
            {"first_row_id": None, "write_cols": ["id", "p", "a", "b", "_ROW_ID"]},
            "is not a range of row ids",
        ),
    ],
)
def test_files(connector: Connector, changes: dict[str, object], problem: str) -> None:
    filled(connector, keys=())
    commit_copy(connector, 0, **{"first_row_id": 0, **changes})

    with pytest.raises(NotSupportedError, match=problem):
        connector.metadata.plan_files(connector.metadata.load_table(NAME))


def test_vectors_of_files_of_columns(connector: Connector) -> None:
    filled(connector, VECTORS)
    update(connector, {(0, 1): {"a": 10}})
    native = connector.metadata.load_table(NAME).native
    newest = native.files.unit_entries(0)[-1].file.file_name
    with mock.patch.object(type(native.files), "vectors", {newest: None}):
        assert newest in unreadable(connector)


def test_global_indexes(connector: Connector) -> None:
    """Also where somebody builds one while a statement runs: then it runs again, and is refused."""
    filled(connector, keys=())
    late = Update(connector, {(0, 1): {"a": 10}}, isolation="snapshot")
    commit_index(connector)

    with pytest.raises(CommitError, match="an index that the statement would not keep"):
        late.publish()

    with pytest.raises(NotSupportedError, match="index of the kind btree"):
        connector.metadata.plan_files(connector.metadata.load_table(NAME))


def test_clauses(connector: Connector) -> None:
    table = filled(connector)
    check = connector.metadata.require_supported
    check(table, frozenset(["a", "b"]), deletes=False)
    with pytest.raises(NotSupportedError, match="by deletion vectors"):
        check(table, frozenset(), deletes=True)
    with pytest.raises(NotSupportedError, match="partition column p"):
        check(table, frozenset(["a", "p"]), deletes=False)


def test_compactions(connector: Connector) -> None:
    filled(connector)
    with pytest.raises(NotSupportedError, match="compacting it"):
        connector.compaction.plan(  # type: ignore[union-attr]
            connector.metadata.load_table(NAME), CompactSpec(), lambda _partition: True
        )


def test_without_row_tracking(connector: Connector) -> None:
    with pytest.raises(NotSupportedError, match="does not track rows"):
        create(connector, {"id": "int"}, (), {"data-evolution.enabled": "true"})
    with pytest.raises(NotSupportedError, match="has fixed buckets"):
        create(connector, {"id": "int"}, (), {**EVOLVING, "bucket": "2", "bucket-key": "id"})
