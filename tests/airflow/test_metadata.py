"""Reading a Paimon table's snapshots on the Airflow side, from what other writers left there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.metadata.paimon.snapshots import PaimonSnapshots
from airflow_provider_merge.storage.files import MAX_BYTES, read_text, write_text
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, RequestError

# As Paimon 1.x writes it; "properties" only where the writer set some.
APPENDED = {
    "version": 3,
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "manifest-list-0",
    "deltaManifestList": "manifest-list-1",
    "changelogManifestList": None,
    "commitUser": "8b2f0f7c",
    "commitIdentifier": 9223372036854775807,
    "commitKind": "APPEND",
    "timeMillis": 1714953600000,
    "totalRecordCount": 6,
    "deltaRecordCount": 6,
}


@pytest.fixture(params=["path", "file", "memory"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Write and read of a table's files, at a path and at URIs."""
    path = tmp_path / "a b" / "orders"
    return {
        "path": Table(str(path)),
        "file": Table(path.as_uri()),
        "memory": Table(f"memory://{uuid.uuid4()}/orders"),
    }[request.param]


class Table:
    def __init__(self, location: str) -> None:
        self.location = location

    @property
    def snapshots(self) -> PaimonSnapshots:
        return PaimonSnapshots(self.location)

    def write(self, name: str, text: str) -> None:
        write_text(f"{self.location}/{name}", text, {})

    def add(self, snapshot_id: int, **changes: Any) -> None:
        document = {**APPENDED, "id": snapshot_id, **changes}
        self.write(f"snapshot/snapshot-{snapshot_id}", json.dumps(document))

    def add_merge(self, snapshot_id: int, operation_id: str) -> None:
        self.add(snapshot_id, properties={"merge.operation-id": operation_id})

    def guard(self, operation_id: str, base: int) -> None:
        text = json.dumps({"nextSnapshot": base})
        self.write(f"consumer/consumer-merge-{operation_id}", text)


def test_snapshot(table: Table) -> None:
    table.add(1, properties={"merge.run-id": "r"})
    snapshot = table.snapshots.snapshot(1)
    assert (snapshot.snapshot_id, snapshot.schema_id, snapshot.total_record_count) == (1, 0, 6)
    assert (snapshot.commit_user, snapshot.commit_kind) == ("8b2f0f7c", "APPEND")
    assert snapshot.time_millis == 1714953600000
    assert snapshot.properties == {"merge.run-id": "r"}


def test_table_without_snapshots(table: Table) -> None:
    assert table.snapshots.latest() is None
    assert table.snapshots.snapshot(1) is None
    assert table.snapshots.ids() == []


def test_ids_are_numbers_and_other_files_are_left_out(table: Table) -> None:
    for snapshot_id in (9, 10, 11):
        table.add(snapshot_id)
    table.write("snapshot/EARLIEST", "9")
    table.write("snapshot/snapshot-12.3f.tmp", "{}")
    assert table.snapshots.ids() == [9, 10, 11]
    assert [each.snapshot_id for each in table.snapshots.newest_first()] == [11, 10, 9]


@pytest.mark.parametrize("hint", [None, "3", "2", "7", "", "x"], ids=repr)
def test_latest_whatever_the_hint_says(table: Table, hint: str | None) -> None:
    for snapshot_id in (1, 2, 3):
        table.add(snapshot_id)
    if hint is not None:
        table.write("snapshot/LATEST", hint)
    assert table.snapshots.latest().snapshot_id == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"id": "x"}', "[" * 100_000])
def test_damaged_snapshot(table: Table, text: str) -> None:
    table.write("snapshot/snapshot-1", text)
    with pytest.raises(CatalogError, match="snapshot-1") as error:
        table.snapshots.latest()
    assert error.value.code is ErrorCode.METADATA_UNREADABLE


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogError, match="UTF-8"):
        read_text(str(tmp_path / "f"), {})
    (tmp_path / "f").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(CatalogError, match="larger than"):
        read_text(str(tmp_path / "f"), {})


def test_scheme_that_is_not_installed() -> None:
    with pytest.raises(RequestError, match="nosuch://") as error:
        read_text("nosuch://bucket/file", {})
    assert "fsspec" in error.value.remedy


def test_commit_of_an_operation(table: Table) -> None:
    table.add(4)
    table.guard("mine", 4)
    table.add_merge(5, "mine")
    table.add_merge(6, "other")
    assert table.snapshots.made_by("mine").snapshot_id == 5


def test_first_snapshot_of_a_table(table: Table) -> None:
    table.guard("mine", 1)
    assert table.snapshots.made_by("mine") is None
    table.add_merge(1, "mine")
    assert table.snapshots.made_by("mine").snapshot_id == 1


def test_operation_that_committed_nothing(table: Table) -> None:
    table.add(4)
    table.guard("mine", 4)
    table.add_merge(5, "other")
    assert table.snapshots.made_by("mine") is None


def test_search_ends_at_the_guarded_base(table: Table) -> None:
    table.write("snapshot/snapshot-3", "damaged, and never looked at")
    table.add(4)
    table.add(5)
    table.guard("mine", 5)
    table.add_merge(6, "other")
    assert table.snapshots.made_by("mine") is None


def test_without_a_guard_there_is_nothing_to_find(table: Table) -> None:
    table.add_merge(5, "mine")
    assert table.snapshots.made_by("mine") is None


def test_damaged_guard(table: Table) -> None:
    table.write("consumer/consumer-merge-mine", "{}")
    with pytest.raises(CatalogError, match="consumer-merge-mine"):
        table.snapshots.made_by("mine")


def test_released_guard_is_gone_and_may_be_released_again(table: Table) -> None:
    table.guard("mine", 1)
    table.add_merge(1, "mine")
    table.snapshots.release("mine")
    table.snapshots.release("mine")
    assert table.snapshots.made_by("mine") is None


def test_location_of_a_name_written_in_another_case(tmp_path: Path) -> None:
    table = Table(str(tmp_path / "shop.db" / "Orders"))
    table.add(1)

    found = PaimonSnapshots.find(str(tmp_path), TableName("shop", "ORDERS"), {})
    assert found.location == table.location

    branch = PaimonSnapshots.find(str(tmp_path), TableName("shop", "ORDERS$branch_B"), {})
    assert branch.location == f"{table.location}/branch/branch-B"
    main = PaimonSnapshots.find(str(tmp_path), TableName("shop", "Orders$branch_main"), {})
    assert main.location == table.location

    Table(str(tmp_path / "shop.db" / "orders")).add(1)
    for name in ("ORDERS", "orders", "none"):
        location = str(tmp_path / "shop.db" / name)
        found = PaimonSnapshots.find(str(tmp_path), TableName("shop", name), {})
        assert found.location == location
