"""Several statements for one Spark application."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, get_args

from spark_jobs.contract import codec
from spark_jobs.contract.checks import require
from spark_jobs.contract.request import VERSION, JobRequest, TableName, TableSource

OnFailure = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Requests in their order, each with an operation and a snapshot of its own.

    ``operation_id`` marks the job's files and processes; nothing is committed under it.

    Up to ``max_parallel`` requests run at once, unless one needs another. ``on_failure``: whether
    the requests after a failed one are not run (``stop``) or run anyway (``continue``).
    """

    operation_id: str
    requests: tuple[JobRequest, ...]
    max_parallel: int = 1
    on_failure: OnFailure = "stop"
    version: int = VERSION

    def __post_init__(self) -> None:
        require(bool(self.requests), "requests", "there are none")
        ids = [request.operation_id for request in self.requests]
        require(len(set(ids)) == len(ids), "requests", "two have the same operation_id")
        require(self.max_parallel > 0, "max_parallel", "must be positive")
        policies = get_args(OnFailure)
        require(
            self.on_failure in policies,
            "on_failure",
            f"{self.on_failure!r} is not one of: {', '.join(policies)}",
        )

    def needed_by(self, index: int) -> frozenset[int]:
        """The positions of earlier requests that must end before the one at ``index`` starts.

        One request needs another if either changes a table that the other one reads or changes.
        """
        own = self.requests[index]
        return frozenset(
            number
            for number, other in enumerate(self.requests[:index])
            if own.catalog.is_same_catalog(other.catalog) and _depend(own, other)
        )

    def to_json(self) -> str:
        """The batch as a JSON document."""
        return json.dumps(codec.encode(self), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> JobBatch:
        """The batch in a JSON document.

        Raises:
            RequestError: REQUEST_VERSION_UNKNOWN, or REQUEST_INVALID with the JSON path.
        """
        return codec.decode(cls, codec.load_versioned(text, VERSION))


def _depend(one: JobRequest, other: JobRequest) -> bool:
    return _is_among(one.target, other) or _is_among(other.target, one)


def _is_among(table: TableName | None, request: JobRequest) -> bool:
    read = [source.table for source in request.sources if isinstance(source, TableSource)]
    used = [each for each in (request.target, *read) if each is not None]
    return table is not None and any(map(table.may_be, used))
