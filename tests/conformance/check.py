"""Runs a behaviour on a connector and checks everything that can be seen afterwards."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest, Source, SqlSource, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import MergeSpec, Statement, UpdateAllAction
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.merge.physical_plan import PlanLimits
from tests.conformance.behaviour import Behaviour, Failure
from tests.conformance.harness import TARGET, DataFile, Harness, TableState
from tests.conformance.tables import Row
from tests.support.metadata_verdict import require_no_other_verdict

OPERATION_ID = "operation-1"


def request_of(behaviour: Behaviour, harness: Harness, **options: Any) -> JobRequest:
    """The job that a behaviour describes."""
    sources: tuple[Source, ...] = (SqlSource("s", f"SELECT * FROM {behaviour.source}"),)
    statement: Statement
    if behaviour.statement is not None:
        statement = behaviour.statement
        sources = (TableSource("target", TARGET), *sources)
    else:
        clauses = behaviour.clauses
        statement = MergeSpec("s", behaviour.on, clauses, "t", "s", behaviour.cardinality)
    return JobRequest(
        operation_id=OPERATION_ID,
        target=TARGET,
        catalog=harness.catalog,
        statement=statement,
        sources=sources,
        options=JobOptions(**options),
    )


def check(
    behaviour: Behaviour,
    harness: Harness,
    limits: PlanLimits | None = None,
    *,
    has_session: bool = True,
    **options: Any,
) -> JobResult:
    """Run the behaviour on a fresh table and compare outcome, files and metrics."""
    before = harness.state()
    request = request_of(behaviour, harness, **options)
    spark = harness.spark if has_session else None
    result = Job(request, spark, harness.open(), limits=limits or PlanLimits()).run()
    after = harness.state()
    check_verdict(behaviour, harness, request, result)
    if behaviour.fails is not None:
        check_failure(result, behaviour.fails)
        check_untouched(before, after)
        return result
    assert result.error is None, result.error
    assert readable(after.rows) == readable(behaviour.expected_rows)
    stay = staying(behaviour, harness, before, after)
    check_metrics(behaviour, result, before, after, stay)
    if not behaviour.changes:
        assert (result.status, result.new_snapshot_id) == ("unchanged", None)
        check_untouched(before, after)
        return result
    assert result.status == "committed"
    assert result.base_snapshot_id == before.snapshot_id
    assert result.new_snapshot_id == after.snapshot_id
    assert harness.follows(before.snapshot_id, after.snapshot_id)
    check_files(behaviour, before, after, stay)
    assert after.operations == {f"{OPERATION_ID}.json"}
    return result


def check_verdict(
    behaviour: Behaviour, harness: Harness, request: JobRequest, result: JobResult
) -> None:
    """What metadata tells of the statement does not contradict the job."""
    table = harness.open().metadata.load_table(TARGET)
    columns = {column.name: column.type for column in table.columns}
    sources = {}
    if behaviour.source.isidentifier():
        view = harness.spark.table(behaviour.source).schema
        sources[behaviour.source] = {each.name: each.dataType.simpleString() for each in view}
    fields = [each.name for each in table.partitioned_by]
    require_no_other_verdict(request, result, columns, fields, sources)


def check_failure(result: JobResult, expected: Failure) -> None:
    """The result says what is wrong, in one short text without a trace."""
    assert result.status == "failed"
    error = result.error
    assert error is not None
    assert error.code == expected.code.name, error
    missing = [text for text in expected.says if text not in error.message]
    assert not missing, error.message
    assert "Traceback" not in error.message
    assert "\tat " not in error.message
    assert error.retryable is expected.code.retryable


def check_untouched(before: TableState, after: TableState) -> None:
    """Nothing was published and nothing but the result was left behind."""
    assert after.snapshot_id == before.snapshot_id
    assert after.files == before.files
    assert after.indexes == before.indexes
    assert readable(after.rows) == readable(before.rows)
    assert after.on_disk == before.on_disk
    assert after.operations == {f"{OPERATION_ID}.json"}


def check_metrics(
    behaviour: Behaviour,
    result: JobResult,
    before: TableState,
    after: TableState,
    stay: set[int],
) -> None:
    """Metrics are what the table shows."""
    removed = [file for path, file in before.files.items() if path not in after.files]
    added = [file for path, file in after.files.items() if path not in before.files]
    touched = {*behaviour.updated, *behaviour.deleted}
    carried = sum(row["id"] not in touched for file in removed for row in file.rows)
    new_indexes = after.indexes.keys() - before.indexes.keys()
    expected = replace(
        result.metrics,
        inserted=len(behaviour.inserted),
        updated=len(behaviour.updated),
        deleted=len(behaviour.deleted),
        carried=carried,
        files_total=len(before.files),
        files_added=len(added),
        files_removed=len(removed),
        files_rewritten=sum(any(row["id"] in stay for row in file.rows) for file in added),
        bytes_added=sum(file.size for file in added)
        + sum(after.indexes[path] for path in new_indexes),
        bytes_removed=sum(file.size for file in removed),
        deletion_vectors_added=len(marked(before, after)),
        attempts=1,
        publish_attempts=1 if behaviour.changes else 0,
        snapshots_met=0,
    )
    if behaviour.source_rows is not None:
        expected = replace(expected, source_rows=behaviour.source_rows)
    if behaviour.matched is not None:
        expected = replace(expected, matched=behaviour.matched)
    assert result.metrics == expected
    for action, count in (
        ("insert", expected.inserted),
        ("update", expected.updated),
        ("delete", expected.deleted),
    ):
        by_clause = [each.rows for each in expected.clauses if each.action == action]
        assert not expected.clauses or sum(by_clause) == count


def check_files(
    behaviour: Behaviour,
    before: TableState,
    after: TableState,
    stay: set[int],
) -> None:
    """Only files with changed rows are replaced, or such rows marked as deleted in them.

    The other rows of a file stay together and in order.
    """
    touched = {*behaviour.updated, *behaviour.deleted}
    removed = {path: file for path, file in before.files.items() if path not in after.files}
    added = {path: file for path, file in after.files.items() if path not in before.files}
    holding = {p for p, file in before.files.items() if touched & {r["id"] for r in file.rows}}
    kept = marked(before, after)
    assert set(removed) | kept == holding
    for path, file in before.files.items():
        if path in kept:
            rest = [row["id"] for row in file.rows if row["id"] not in touched]
            found = after.files[path]
            assert (found.inode, found.size) == (file.inode, file.size)
            assert [row["id"] for row in found.rows] == rest
        else:
            assert after.files.get(path, file) == file
    made = {*added, *after.indexes}
    assert after.on_disk == before.on_disk | made, "no other file was left behind"
    assert _sequences(removed, stay) == _sequences(added, stay)


def marked(before: TableState, after: TableState) -> set[str]:
    """Files that stayed, with more rows marked as deleted."""
    return {
        path
        for path, file in after.files.items()
        if path in before.files and file.deleted > before.files[path].deleted
    }


def staying(
    behaviour: Behaviour, harness: Harness, before: TableState, after: TableState
) -> set[int]:
    """Rows that stay in their file, or in the one that replaces it."""
    placed_by = harness.placed_by(behaviour.table)
    of_marked = {row["id"] for path in marked(before, after) for row in before.files[path].rows}
    moved = {
        id_
        for id_, changes in behaviour.updated.items()
        if id_ in of_marked
        or harness.moves_updates
        or (harness.partitioned and "p" in changes)
        or (placed_by is not None and _assigns(behaviour, placed_by))
    }
    return {row["id"] for row in behaviour.table.rows} - behaviour.deleted - moved


def _assigns(behaviour: Behaviour, column: str) -> bool:
    """Whether an UPDATE of the statement assigns ``column``."""
    updates = [clause.action for clause in behaviour.clauses]
    assigned = {
        assignment.column.lower()
        for update in (*updates, behaviour.statement)
        for assignment in getattr(update, "assignments", ())
    }
    return column in assigned or any(isinstance(each, UpdateAllAction) for each in updates)


def _sequences(files: Mapping[str, DataFile], ids: set[int]) -> Counter[tuple[int, ...]]:
    found = (tuple(row["id"] for row in file.rows if row["id"] in ids) for file in files.values())
    return Counter(each for each in found if each)


def readable(rows: Iterable[Row]) -> Sequence[str]:
    """Rows in a fixed order as texts, in which 1 is not 1.0 and NaN is NaN."""
    return sorted(repr({name: _in_utc(row[name]) for name in sorted(row)}) for row in rows)


def _in_utc(value: Any) -> Any:
    aware = isinstance(value, dt.datetime) and value.tzinfo is not None
    return value.astimezone(dt.UTC) if aware else value
