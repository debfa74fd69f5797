"""Which snapshots expire. Driver only.

After Paimon's ``ExpireSnapshotsImpl.expire``; where its releases differ, as the one that keeps
more: a snapshot stays until the one after it is older than the limit, for it was the latest until
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory, Consumer
from spark_jobs.contract.durations import before, parse_limit, parse_option
from spark_jobs.contract.lifetimes import ABANDONED_AFTER
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.errors import ErrorCode, NotSupportedError, RequestError

RETAIN_MAX: Final = "snapshot.num-retained.max"
RETAIN_MIN: Final = "snapshot.num-retained.min"
TIME_RETAINED: Final = "snapshot.time-retained"
BATCH: Final = "snapshot.expire.limit"
_UNLIMITED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """How many snapshots stay; ``older_than`` is a moment, ``batch`` how many go at a time."""

    retain_max: int
    retain_min: int
    older_than: datetime
    max_deletes: int
    batch: int

    @classmethod
    def of(cls, spec: ExpireSnapshotsSpec, options: Mapping[str, str], now: datetime) -> Limits:
        """Those of the statement, else of the table, else Paimon's defaults.

        Raises:
            NotSupportedError: an option of the table has a value that it cannot have.
            RequestError: REQUEST_INVALID: more snapshots must stay than may stay.
        """
        limits = cls(
            spec.retain_max or _number(options, RETAIN_MAX, _UNLIMITED),
            spec.retain_min or _number(options, RETAIN_MIN, 10),
            parse_limit(spec.older_than, now) if spec.older_than else _age(options, now),
            spec.max_deletes or _UNLIMITED,
            _number(options, BATCH, 50),
        )
        if limits.retain_min > limits.retain_max:
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"retain_min: {limits.retain_min} ({_origin(spec.retain_min, options, RETAIN_MIN)})"
                f" is more than retain_max, {limits.retain_max} "
                f"({_origin(spec.retain_max, options, RETAIN_MAX)}).",
                "Give both retain_min and retain_max.",
            )
        return limits

    def uncapped(self) -> Limits:
        """The same without ``max_deletes``."""
        return replace(self, max_deletes=_UNLIMITED)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not text.strip().isdecimal() or not int(text):
        raise NotSupportedError(
            f"Option {name} = {text} is not a positive number.", "Correct the table's option."
        )
    return int(text)


def duration_option(name: str, text: str) -> timedelta:
    """The duration of a table's option.

    Raises:
        NotSupportedError: it is none.
    """
    try:
        return parse_option(text)
    except ValueError as error:
        raise NotSupportedError(f"Option {name}: {error}.", "Correct the table's option.") from None


def _age(options: Mapping[str, str], now: datetime) -> datetime:
    return before(now, duration_option(TIME_RETAINED, options.get(TIME_RETAINED, "1 h")))


def _origin(given: int | None, options: Mapping[str, str], name: str) -> str:
    if given is not None:
        return "as given"
    return f"option {name}" if name in options else f"default of option {name}"


def first_retained(history: BranchHistory, limits: Limits, held: int) -> int:
    """The id before which all snapshots of a branch expire.

    ``held``: the first one that a consumer needs.
    """
    ids = list(history.snapshots)
    if not ids:
        return 0
    earliest, latest = ids[0], ids[-1]
    first = max(latest - limits.retain_max + 1, earliest)
    end = min(latest - limits.retain_min + 1, held, earliest + limits.max_deletes)
    limit = limits.older_than.timestamp() * 1000
    for snapshot_id, successor in pairwise(ids):
        if first <= snapshot_id < end and history.snapshots[successor].time_millis >= limit:
            return snapshot_id
    return max(end, earliest)


def holding(history: BranchHistory, now: datetime) -> list[Consumer]:
    """The consumers of a branch that count: an operation's guard until it is abandoned."""
    limit = now - ABANDONED_AFTER
    return [each for each in history.consumers if not (each.guards and each.modified < limit)]


def held_from(consumers: list[Consumer]) -> int:
    """The first snapshot that a consumer needs; unlimited where there is none."""
    return min((each.next_snapshot for each in consumers), default=_UNLIMITED)


def utc_now() -> datetime:
    """The time by which ages are counted."""
    return datetime.now(UTC)
