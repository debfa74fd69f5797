"""Names of operations' files never change: jobs and operators of two releases share a workspace."""

from __future__ import annotations

import re

import pytest

from spark_jobs.contract.operation_files import (
    CONDITIONAL_PUT_PROBE,
    dry_run_folder,
    dry_run_result_path,
    fence_path,
    finished_name,
    is_dry_run,
    is_memory,
    is_scratch,
    is_scratch_of,
    is_unfinished_result_of,
    lease_path,
    new_scratch_folder,
    new_source_folder,
    note_path,
    plan_path,
    result_path,
    unfinished_name,
)

RUN = "0123456789abcdef" * 2


def test_paths_are_those_of_every_release() -> None:
    assert [
        result_path("op-1"),
        result_path("op-1", refused=True),
        dry_run_folder("op-1"),
        dry_run_result_path("op-1"),
        note_path("run"),
        fence_path("op-1", 2),
        plan_path("op-1"),
        CONDITIONAL_PUT_PROBE,
    ] == [
        "_operations/op-1.json",
        "_operations/op-1.refused.json",
        "_dry_run-op-1",
        "_dry_run-op-1/result.json",
        "_operations/run.tries",
        "_operations/op-1-2.fence",
        "_operations/op-1.plan",
        "_operations/conditional-put",
    ]


def test_each_run_has_a_scratch_folder_of_its_own() -> None:
    one, other = new_scratch_folder("op-1", 3), new_scratch_folder("op-1", 3)
    assert one != other
    assert re.fullmatch("_operations/op-1-3-[0-9a-f]{32}", one)


def test_a_scratch_folder_holds_sources_and_the_lease() -> None:
    assert lease_path("_operations/op-1-0") == "_operations/op-1-0/lease"
    found = new_source_folder("_operations/op-1-0")
    assert re.fullmatch("_operations/op-1-0/source-[0-9a-f]{32}", found)


def test_a_scratch_folder_belongs_to_its_operation_alone() -> None:
    name = new_scratch_folder("op-1", 2).rpartition("/")[2]
    assert is_scratch(name)
    assert is_scratch_of("op-1", name)
    assert not is_scratch_of("op", name)
    assert not is_scratch_of("o.-1", name)


def test_a_scratch_folder_belongs_to_its_try_and_later_ones() -> None:
    name = new_scratch_folder("op-1", 10).rpartition("/")[2]
    assert is_scratch_of("op-1", name, last_try=10)
    assert not is_scratch_of("op-1", name, last_try=9)


def test_the_scratch_folder_of_an_older_release_belongs_to_any_try() -> None:
    assert is_scratch_of("op-1", f"op-1-{RUN}", last_try=1)


@pytest.mark.parametrize("name", ["op-1", f"op-1-{RUN}x", "notes", f"-{RUN}"[1:]])
def test_other_folders_are_no_scratch(name: str) -> None:
    assert not is_scratch(name)
    assert not is_scratch_of("op-1", name)


def test_a_dry_run_is_known_by_its_folder() -> None:
    assert is_dry_run(dry_run_folder("op-1"))
    assert not is_dry_run("shop.db")


def test_an_unfinished_file_has_a_hidden_name_of_its_own() -> None:
    one, other = unfinished_name("op-1.json"), unfinished_name("op-1.json")
    assert one != other
    assert re.fullmatch(r"\.op-1\.json\.[0-9a-f]{32}\.tmp", one)
    assert finished_name(one) == "op-1.json"


@pytest.mark.parametrize("name", ["op-1.json", f".{RUN}.tmp", f".a.{RUN}", f"a.{RUN}.tmp"])
def test_other_files_are_whole(name: str) -> None:
    assert finished_name(name) is None


@pytest.mark.parametrize("refused", [False, True])
def test_an_unfinished_result_belongs_to_its_operation_alone(refused: bool) -> None:
    whole = result_path("op-1", refused=refused).rpartition("/")[2]
    name = unfinished_name(whole)
    assert is_unfinished_result_of("op-1", name)
    assert not is_unfinished_result_of("op-2", name)
    assert not is_unfinished_result_of("op-1", whole)


@pytest.mark.parametrize(
    "name", ["op-1.json", "op-1.refused.json", "run.tries", "op-1.running", "op-1-2.fence"]
)
def test_results_and_notes_are_memory(name: str) -> None:
    assert is_memory(name)
    assert is_memory(unfinished_name(name))


@pytest.mark.parametrize("name", ["conditional-put", "op-1", "op 1.json", "op-1.txt", ".json"])
def test_nothing_else_is_memory(name: str) -> None:
    assert not is_memory(name)
    assert not is_memory(unfinished_name(name))
