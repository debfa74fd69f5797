"""The folder of all operations is not listed for each statement: it may have 100,000 entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.spi.storage import WarehouseStorage

# Not one of those that look for outdated results (it is told by their ids).
OPERATION = "op-1"


class Counting(pafs.FileSystemHandler):  # type: ignore[misc]
    """The local file system, which counts listings; other calls go through unchanged."""

    def __init__(self) -> None:
        self.local = pafs.LocalFileSystem()
        self.listings = 0
        self.requests = 0

    def _passed_on(self, name: str) -> Callable[..., Any]:
        self.requests += 1
        return getattr(self.local, name)  # type: ignore[no-any-return]

    def get_type_name(self) -> str:
        return "counting"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._passed_on("get_file_info")(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        self.listings += 1
        return self._passed_on("get_file_info")(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._passed_on("create_dir")(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._passed_on("delete_dir")(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._passed_on("delete_dir_contents")(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._passed_on("delete_file")(path)

    def move(self, source: str, target: str) -> None:
        self._passed_on("move")(source, target)

    def copy_file(self, source: str, target: str) -> None:
        self._passed_on("copy_file")(source, target)

    def open_input_stream(self, path: str) -> Any:
        return self._passed_on("open_input_stream")(path)

    def open_input_file(self, path: str) -> Any:
        return self._passed_on("open_input_file")(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return self._passed_on("open_output_stream")(path, metadata=metadata)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        return self._passed_on("open_append_stream")(path, metadata=metadata)


@pytest.fixture
def files() -> Counting:
    return Counting()


@pytest.fixture
def log(files: Counting, tmp_path: Path) -> OperationLog:
    return OperationLog(WarehouseStorage(pafs.PyFileSystem(files), str(tmp_path), None))


def ended(operation_id: str) -> JobResult:
    return JobResult(operation_id, "committed", "db.t", "digest", Metrics(), 1, 2)


def test_a_statement_lists_nothing(log: OperationLog, files: Counting, tmp_path: Path) -> None:
    log.clear_leftovers(OPERATION, 1)
    scratch = log.begin(OPERATION, 1)
    log.clear(scratch)
    log.store(ended(OPERATION))

    assert files.listings == 0
    assert files.requests <= 15
    assert [each.name for each in (tmp_path / "_operations").iterdir()] == ["op-1.json"]


def test_a_run_that_was_killed_is_found_without_a_retry(log: OperationLog, tmp_path: Path) -> None:
    scratch = log.begin(OPERATION, 1)

    log.clear_leftovers(OPERATION, 1)

    assert not log.lease(scratch).is_held()
    assert not (tmp_path / scratch).exists()


def test_a_run_that_was_killed_while_it_stored_its_result(
    log: OperationLog, tmp_path: Path
) -> None:
    log.clear(log.begin(OPERATION, 1))
    unfinished = tmp_path / f"_operations/.{OPERATION}.json.{'c' * 32}.tmp"
    unfinished.write_text("{")

    log.clear_leftovers(OPERATION, 1)

    assert not unfinished.exists()


def test_a_retry_finds_what_an_older_version_left(log: OperationLog, tmp_path: Path) -> None:
    scratch = tmp_path / f"_operations/{OPERATION}-{'a' * 32}"
    scratch.mkdir(parents=True)
    (scratch / "lease").touch()

    log.clear_leftovers(OPERATION, 2)

    assert not scratch.exists()
