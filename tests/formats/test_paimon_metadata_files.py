"""Files of a Paimon table are where Paimon has them, and guards where every release has them."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.contract.request import TableName
from spark_jobs.formats.paimon.metadata_files import (
    consumer_document,
    entry_path,
    guard_name,
    guard_path,
    guarding_operation,
    hint_path,
    ids_of,
    is_id,
    manifest_folder,
    names_of,
    next_snapshot,
)


def test_paths_are_paimons() -> None:
    assert [
        entry_path("/t", "snapshot", 7),
        entry_path("/t", "tag", "nightly"),
        entry_path("/t", "branch", "b"),
        entry_path("/t", "schema", 0),
        entry_path("/t", "removal", "x.json"),
        hint_path("/t", "LATEST"),
        manifest_folder("/t"),
    ] == [
        "/t/snapshot/snapshot-7",
        "/t/tag/tag-nightly",
        "/t/branch/branch-b",
        "/t/schema/schema-0",
        "/t/removal/removal-x.json",
        "/t/snapshot/LATEST",
        "/t/manifest",
    ]


def test_the_guard_of_an_operation_is_a_consumer() -> None:
    assert guard_path("/t", "op-1") == "/t/consumer/consumer-merge-op-1"
    assert guarding_operation(guard_name("op-1")) == "op-1"
    assert guarding_operation("reader") is None


def test_names_come_sorted_and_of_one_kind() -> None:
    assert names_of("tag", ["tag-b", "LATEST", "tag-a", "tags"]) == ["a", "b"]


def test_ids_come_in_their_order() -> None:
    found = ["snapshot-10", "snapshot-9", "snapshot-x", "snapshot-9.tmp", "LATEST"]
    assert ids_of("snapshot", found) == [9, 10]


@pytest.mark.parametrize("text", ["", "-1", "1.0", "٣", "1" * 19])
def test_what_is_no_id(text: str) -> None:
    assert not is_id(text)


@pytest.mark.parametrize(
    ("table", "parts"),
    [("t", ("t", "main")), ("t$branch_b", ("t", "b")), ("t$branch_main", ("t", "main"))],
)
def test_a_table_may_name_a_branch(table: str, parts: tuple[str, str]) -> None:
    name = TableName("a", table)
    assert (name.without_branch, name.branch) == parts


def test_a_consumer_goes_on_at_a_snapshot() -> None:
    assert consumer_document(7) == {"nextSnapshot": 7}
    assert next_snapshot(consumer_document(7)) == 7


@pytest.mark.parametrize(
    "document",
    [{}, [], {"nextSnapshot": "7"}, {"nextSnapshot": 0}, {"nextSnapshot": 2**63}, None],
    ids=str,
)
def test_what_is_no_consumer(document: Any) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        next_snapshot(document)
