"""What a snapshot records of the operation that made it: written by the job, read by everyone.

Every value is text, as Paimon's and Iceberg's snapshot properties are; keys start with ``merge.``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from spark_jobs.contract import codec
from spark_jobs.contract.request import JobRequest
from spark_jobs.contract.result import JobResult, Metrics
from spark_jobs.contract.side_outputs import recorded_side_outputs

OPERATION_ID: Final = "merge.operation-id"
STATEMENT: Final = "merge.statement"
REQUEST_DIGEST: Final = "merge.request-digest"
TRY_NUMBER: Final = "merge.try-number"
RETRIES: Final = "merge.retries"
BASE_SNAPSHOT_ID: Final = "merge.base-snapshot-id"
METRICS: Final = "merge.metrics"
DAG_ID: Final = "merge.dag-id"
RUN_ID: Final = "merge.run-id"
TASK_ID: Final = "merge.task-id"
MAP_INDEX: Final = "merge.map-index"
STATEMENT_NAME: Final = "merge.statement-name"
SOURCES: Final = "merge.sources"

# The most source tables that a snapshot records.
_RECORDED_SOURCES: Final = 100
# The most digits that any of the numbers has.
_DIGITS: Final = 19


def operation_properties(request: JobRequest, base_snapshot_id: int | None) -> dict[str, str]:
    """The properties that identify the work of ``request`` on a base snapshot."""
    origin = request.origin
    return {
        OPERATION_ID: request.operation_id,
        STATEMENT: request.statement.kind,
        REQUEST_DIGEST: request.digest(),
        TRY_NUMBER: str(origin.try_number),
        RETRIES: str(origin.retries),
        BASE_SNAPSHOT_ID: "" if base_snapshot_id is None else str(base_snapshot_id),
        DAG_ID: origin.dag_id,
        RUN_ID: origin.run_id,
        TASK_ID: origin.task_id,
        MAP_INDEX: str(origin.map_index),
        **({STATEMENT_NAME: origin.statement} if origin.statement else {}),
    }


def metrics_property(metrics: Metrics) -> dict[str, str]:
    """The property that holds a statement's metrics, as JSON."""
    return {METRICS: json.dumps(codec.encode(metrics))}


def sources_property(tables: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The property that holds which snapshots of which tables a statement read, if any.

    A table has one number, or a list of several former states.
    """
    read = {name: each[0] if len(each) == 1 else [*each] for name, each in tables.items() if each}
    first = dict(sorted(read.items())[:_RECORDED_SOURCES])
    return {SOURCES: json.dumps(first)} if first else {}


def recorded_sources(properties: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The snapshots that a statement read, by table; none where nothing of the kind is recorded."""
    try:
        sources = json.loads(properties.get(SOURCES, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(sources, dict):
        return {}
    listed = {name: each if isinstance(each, list) else [each] for name, each in sources.items()}
    return {
        name: tuple(ids) for name, ids in listed.items() if all(type(each) is int for each in ids)
    }


def published_properties(
    properties: Mapping[str, str], attempts: int, snapshots_met: int
) -> dict[str, str]:
    """The properties with the attempts to publish added to their metrics, if they have any."""
    if METRICS not in properties:
        return dict(properties)
    metrics = json.loads(properties[METRICS])
    metrics |= {"publish_attempts": attempts, "snapshots_met": snapshots_met}
    return {**properties, METRICS: json.dumps(metrics)}


def recorded_metrics(properties: Mapping[str, str]) -> Metrics:
    """The metrics in the properties of a snapshot.

    Raises:
        RequestError: REQUEST_INVALID if another version of this project wrote them.
    """
    try:
        metrics = json.loads(properties.get(METRICS, "{}"))
    except (ValueError, RecursionError) as error:
        raise codec.invalid(METRICS, f"not a JSON document: {error}") from None
    return codec.decode(Metrics, metrics, METRICS)


def result_of_snapshot(target: str, snapshot_id: int, properties: Mapping[str, str]) -> JobResult:
    """The result of the operation that made a snapshot of ``target``.

    Raises:
        RequestError: REQUEST_INVALID if another version of this project wrote the properties.
    """
    base = properties.get(BASE_SNAPSHOT_ID, "")
    return JobResult(
        operation_id=properties.get(OPERATION_ID, ""),
        status="committed",
        target=target,
        request_digest=properties.get(REQUEST_DIGEST, ""),
        metrics=recorded_metrics(properties),
        base_snapshot_id=_number(BASE_SNAPSHOT_ID, base) if base else None,
        new_snapshot_id=snapshot_id,
        try_number=_number(TRY_NUMBER, properties.get(TRY_NUMBER, "0")),
        retries=_number(RETRIES, properties.get(RETRIES, "0")),
        side_outputs=recorded_side_outputs(properties),
    )


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise codec.invalid(name, f"{text[:100]!r} is not a number")
    return int(text)
