"""DROP TABLE: gone for everybody, and no other table that has the name since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.engine.job.table_jobs import DropTableJob
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.run import run
from tests.support.paimon_tables import NAME
from tests.support.walking import files_below

OTHER = TableName(NAME.database, "other")


class KilledError(BaseException):
    """The driver dies: nothing behind it runs."""


def create(catalog: CatalogSpec, name: TableName = NAME, operation_id: str = "create") -> None:
    spec = CreateTableSpec((ColumnSpec("id", "INT"),))
    result = run(JobRequest(f"{operation_id}-{name.table}", name, catalog, spec), None)
    assert result.status == "committed", result.error


def drop(
    catalog: CatalogSpec,
    operation_id: str = "drop-1",
    tries: int = 1,
    name: TableName = NAME,
    **options: bool,
) -> JobResult:
    origin = Origin("dag", "run", "drop", try_number=tries)
    spec = DropTableSpec(**options)
    return run(JobRequest(operation_id, name, catalog, spec, origin=origin), None)


def exists(catalog: CatalogSpec, name: TableName = NAME) -> bool:
    try:
        open_connector(catalog, {}).metadata.load_table(name)
    except JobError as error:
        if error.code is not ErrorCode.TABLE_NOT_FOUND:
            raise
        return False
    return True


def test_the_table_is_gone_and_others_stay(catalog: CatalogSpec, tmp_path: Path) -> None:
    create(catalog)
    create(catalog, OTHER)

    result = drop(catalog)

    assert (result.status, result.dropped) == ("committed", True), result.error
    assert not exists(catalog)
    assert exists(catalog, OTHER)
    left = [each for each in files_below(tmp_path) if NAME.table in each.parts]
    # As in Spark: Iceberg's files stay, Paimon's go with the table.
    assert bool(left) == (catalog.connector == "iceberg")
    create(catalog, operation_id="again")
    assert exists(catalog)


def test_a_table_that_is_not_there(catalog: CatalogSpec) -> None:
    error = drop(catalog).error
    assert error is not None
    assert error.code == "TABLE_NOT_FOUND"
    result = drop(catalog, "drop-2", if_exists=True)
    assert (result.status, result.dropped) == ("unchanged", False), result.error


def test_a_retry_drops_no_table_that_others_made_since(
    catalog: CatalogSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog)
    with monkeypatch.context() as patch:
        patch.setattr(OperationLog, "store", _dies)
        with pytest.raises(KilledError):
            drop(catalog)
    assert not exists(catalog)
    create(catalog, operation_id="others")

    result = drop(catalog, tries=2)

    assert (result.status, result.dropped) == ("committed", True), result.error
    assert exists(catalog)


def test_a_retry_drops_what_a_killed_try_was_about_to_drop(
    catalog: CatalogSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog)
    with monkeypatch.context() as patch:
        _die_at_the_drop(patch, catalog)
        with pytest.raises(KilledError):
            drop(catalog)
    assert exists(catalog)

    for tries in (2, 3):
        result = drop(catalog, tries=tries)
        assert (result.status, result.dropped) == ("committed", True), result.error
        assert not exists(catalog)


@pytest.mark.parametrize("catalog", ["paimon"], indirect=True)
def test_a_half_removed_table_is_an_empty_one_until_the_retry(
    catalog: CatalogSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.connectors.paimon.alter import alter_table

    create(catalog)
    table = tmp_path / "warehouse" / f"{NAME.database}.db" / NAME.table
    for each in ("snapshot/snapshot-1", "bucket-0/data-1.parquet", "tag/tag-a"):
        (table / each).parent.mkdir(exist_ok=True)
    remove = alter_table.remove_folder
    for step in range(3):
        with monkeypatch.context() as patch:
            left = iter(range(step))

            def removing(files: pafs.FileSystem, path: str, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    raise KilledError
                remove(files, path)

            patch.setattr(alter_table, "remove_folder", removing)
            with pytest.raises(KilledError):
                drop(catalog, tries=step + 1)
        assert exists(catalog)
        assert (table / "snapshot").exists() == (step == 0)
    assert drop(catalog, tries=4).dropped
    assert not table.exists()


def test_a_lost_answer_is_an_unknown_outcome_that_a_retry_clears_up(
    catalog: CatalogSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog)
    with monkeypatch.context() as patch:
        _lose_the_answer(patch, catalog)
        error = drop(catalog).error
    assert error is not None
    assert (error.code, error.retryable) == ("COMMIT_OUTCOME_UNKNOWN", True)
    assert not exists(catalog)
    assert drop(catalog, tries=2).dropped


def test_branches_are_not_dropped(catalog: CatalogSpec) -> None:
    create(catalog)
    error = drop(catalog, name=TableName(NAME.database, f"{NAME.table}$branch_b")).error
    assert error is not None
    assert error.code in ("NOT_SUPPORTED", "TABLE_NOT_FOUND")
    assert exists(catalog)


def test_nobody_purges_files_in_a_catalog_without_a_server(catalog: CatalogSpec) -> None:
    create(catalog)
    result = drop(catalog, purge=True)
    if catalog.connector == "paimon":
        assert result.dropped
        return
    assert result.error is not None
    assert result.error.code == "NOT_SUPPORTED"
    assert exists(catalog)


def _dies(self: OperationLog, result: JobResult) -> None:
    raise KilledError


def _instead(
    patch: pytest.MonkeyPatch, catalog: CatalogSpec, act: Callable[[Callable[[], None]], None]
) -> None:
    """Let the connector drop by ``act``, which gets its own way."""
    if catalog.connector == "paimon":
        from spark_jobs.connectors.paimon.alter import alter_table

        remove = alter_table._remove
        patch.setattr(alter_table, "_remove", lambda *given: act(lambda: remove(*given)))
        return
    from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog

    own = IcebergCatalog.drop

    def dropping(self: IcebergCatalog, name: TableName, *, purge: bool) -> None:
        act(lambda: own(self, name, purge=purge))

    patch.setattr(IcebergCatalog, "drop", dropping)


def _die_at_the_drop(patch: pytest.MonkeyPatch, catalog: CatalogSpec) -> None:
    def act(drop: Callable[[], None]) -> None:
        raise KilledError

    _instead(patch, catalog, act)


def _lose_the_answer(patch: pytest.MonkeyPatch, catalog: CatalogSpec) -> None:
    def act(drop: Callable[[], None]) -> None:
        drop()
        raise TimeoutError("no answer")

    _instead(patch, catalog, act)


def test_it_needs_no_session() -> None:
    assert DropTableJob.without_session == (DropTableSpec,)
