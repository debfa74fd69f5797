"""What there is to do to a table, from its metadata alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from airflow_provider_merge.care.steps import Step
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.metadata.model import DueFiles
from airflow_provider_merge.metadata.page_facts import Expiry, PageFacts
from airflow_provider_merge.metadata.reader import TableReader
from airflow_provider_merge.storage.failures import reaching
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.sizes import parse_size
from spark_jobs.errors import ErrorCode, InternalError, JobError

log = logging.getLogger(__name__)

Statement = CompactSpec | ExpireSnapshotsSpec | RemoveOrphanFilesSpec
# Snapshots of a table whose manifests are read for what they removed.
_MOST_READ: Final = 5


def looked_at(hook: CatalogHook, table: Step, statements: dict[str, Statement]) -> list[Step]:
    """The steps of a table, by action; one without an action if there is nothing to do.

    ``table`` is a step without an action. What is wrong with the table is told in a step.
    """
    try:
        reader = hook.table(table.target)
        with reaching(reader.location):
            found = list(_steps(hook, reader, table, statements))
    except JobError as error:
        return [table.failed(error)]
    except Exception as error:
        log.exception("%s cannot be read", table.table)
        problem = f"{table.table} cannot be read: {type(error).__name__}."
        remedy = "The task's log has more; check the table with its own tools."
        return [table.failed(InternalError(ErrorCode.INTERNAL_ERROR, problem, remedy))]
    return found or [table.ended("nothing")]


def _steps(
    hook: CatalogHook, reader: TableReader, table: Step, statements: dict[str, Statement]
) -> Iterator[Step]:
    latest, facts = reader.latest(), hook.page_facts(reader)
    for action, statement in statements.items():
        step = replace(table, action=action)
        try:
            match statement:
                case RemoveOrphanFilesSpec():
                    yield replace(step, free=None)
                case CompactSpec() if latest is not None:
                    yield from _compaction(step, reader, facts, latest, statement)
                case ExpireSnapshotsSpec() if latest is not None:
                    yield from _expiry(step, reader, facts, statement)
        except JobError as error:
            yield step.failed(error)


def _compaction(
    step: Step, reader: TableReader, facts: PageFacts, latest: Any, spec: CompactSpec
) -> Iterator[Step]:
    facts.refuse_compaction(spec)
    due = reduce(
        DueFiles.plus,
        (each.due for each in reader.compaction_facts(spec, {}, latest)),
        DueFiles(),
    )
    if not due.files:
        return
    most = due.size if spec.max_bytes is None else parse_size(spec.max_bytes)
    # A run ends there, and the next one goes on.
    share = min(1.0, most / due.size) if due.size else 1.0
    yield replace(
        step,
        read=int(due.size * share),
        write=int(due.size_after * share),
        free=int((due.size - due.size_after) * share),
        files=int((due.files - due.files_after) * share),
    )


def _expiry(
    step: Step, reader: TableReader, facts: PageFacts, spec: ExpireSnapshotsSpec
) -> Iterator[Step]:
    expiry = facts.expiry(int(time.time() * 1000), spec)
    if not expiry.expiring:
        return
    free, is_complete = _freed(reader.snapshot, facts, expiry)
    yield replace(step, free=free, snapshots=len(expiry.expiring), at_least=not is_complete)


def _freed(snapshot: Callable[[int], Any], facts: PageFacts, found: Expiry) -> tuple[int, bool]:
    """Bytes that the newest of the snapshots removed, and whether these are all."""
    known, read = list[int](), 0
    for expired in filter(None, map(snapshot, reversed(found.removing))):
        if facts.totals(expired) is None:
            # Only its manifests tell.
            read += 1
            if read > _MOST_READ:
                break
        change = facts.change(expired)
        if change is not None:
            known.append(change.bytes_removed)
    return sum(known), len(known) == len(found.removing) and not found.is_cut
