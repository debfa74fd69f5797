"""Expiry that removes schemas and partition specs which nothing reaches any longer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from spark_jobs.contract.operation_files import base_path
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.plain_history import expire, ids, made, snapshots, table
from tests.connectors.iceberg.plain_tables import PlainCatalog

CLEANING: dict[str, Any] = {"older_than": "0 s", "clean_expired_metadata": True}


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Three appends, each by another schema and spec; the last row alone is left."""
    catalog = made(tmp_path, 1)
    change_columns(catalog, "a")
    append(catalog, 1)
    with table(catalog).update_spec() as spec:
        spec.add_identity("id")
    change_columns(catalog, "b")
    table(catalog).overwrite(pa.table({"id": [2]}))
    return catalog


@pytest.fixture
def connector(catalog: PlainCatalog) -> Connector:
    return catalog.open()


def change_columns(catalog: PlainCatalog, added: str) -> None:
    with table(catalog).update_schema() as change:
        change.add_column(added, StringType())


def append(catalog: PlainCatalog, id_: int) -> None:
    table(catalog).append(pa.table({"id": [id_]}))


def known(catalog: PlainCatalog) -> tuple[list[int], list[int]]:
    """The ids of schemas and of partition specs."""
    metadata = table(catalog).metadata
    schemas = [each.schema_id for each in metadata.schemas]
    return schemas, [each.spec_id for each in metadata.partition_specs]


def test_they_stay_unless_asked_for(catalog: PlainCatalog, connector: Connector) -> None:
    report = expire(connector, older_than="0 s")
    assert report.snapshots
    assert (report.schemas, report.partition_specs) == (0, 0)
    assert known(catalog) == ([0, 1, 2], [0, 1])


def test_what_nothing_reaches_goes(catalog: PlainCatalog, connector: Connector) -> None:
    told = expire(connector, dry_run=True, **CLEANING)
    assert known(catalog) == ([0, 1, 2], [0, 1])

    assert expire(connector, **CLEANING) == told

    assert (told.schemas, told.partition_specs) == (2, 1)
    assert known(catalog) == ([2], [1])
    assert ids(catalog) == [2]
    again = expire(connector, **CLEANING)
    assert not again.changes


def test_it_goes_although_no_snapshot_does(catalog: PlainCatalog, connector: Connector) -> None:
    expire(connector, older_than="0 s")
    report = expire(connector, **CLEANING)
    assert (report.snapshots, report.schemas, report.partition_specs) == (0, 2, 1)
    assert report.changes


def test_what_a_tag_reaches_stays(catalog: PlainCatalog, connector: Connector) -> None:
    table(catalog).manage_snapshots().create_tag(snapshots(catalog)[1], "kept").commit()
    expire(connector, **CLEANING)
    assert known(catalog) == ([1, 2], [0, 1])


def test_the_schema_with_the_column_of_a_kept_spec_stays(
    catalog: PlainCatalog, connector: Connector
) -> None:
    with table(catalog).update_spec() as spec:
        spec.remove_field("id")
    with table(catalog).update_schema(allow_incompatible_changes=True) as change:
        change.add_column("c", StringType())
        change.delete_column("id")
    table(catalog).append(pa.table({"a": ["x"]}))
    last = max(known(catalog)[0])

    expire(connector, **CLEANING)

    assert known(catalog)[0] == [2, last]
    assert len(snapshots(catalog)) == 1


def test_nothing_goes_beside_a_running_statement(
    tmp_path: Path, catalog: PlainCatalog, connector: Connector
) -> None:
    """It may yet write files of a spec, or commit rows of a schema, that nobody else has."""
    note = tmp_path / base_path("running")
    note.parent.mkdir(exist_ok=True)
    of_table = {"table": str(table(catalog).metadata.table_uuid), "sequence_number": 1}
    note.write_text(json.dumps({**of_table, "snapshot_id": snapshots(catalog)[-1]}))

    report = expire(connector, **CLEANING)

    assert report.snapshots
    assert known(catalog) == ([0, 1, 2], [0, 1])
    note.unlink()
    assert expire(connector, **CLEANING).schemas == 2


@pytest.mark.parametrize("what", ["schema", "spec"])
def test_what_becomes_current_meanwhile_stays(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def changed(commit: Callable[[], Any]) -> Any:
        if what == "schema":
            with table(catalog).update_schema() as change:
                change.delete_column("b")
        else:
            with table(catalog).update_spec() as spec:
                spec.remove_field("id")
        return commit()

    answering(connector, monkeypatch, changed)

    expire(connector, **CLEANING)

    # An equal one that the table had before becomes current again.
    assert known(catalog) == (([1, 2], [1]) if what == "schema" else ([2], [0, 1]))
    assert ids(catalog) == [2]


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_lost_answer(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    answering(connector, monkeypatch, lost)
    assert expire(connector, **CLEANING).schemas == 2
    assert known(catalog) == ([2], [1])
