"""Which snapshots of a Paimon table expire, and what keeps them.

Follows Paimon's ``ExpireSnapshotsImpl.expire``. Where Paimon's releases differ, it follows the one
that keeps more: a snapshot stays until its successor is older than the limit, because it was the
latest one until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from spark_jobs.contract.durations import before, parse_limit, parse_option
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.operation_files import ABANDONED_AFTER
from spark_jobs.contract.request import TableName
from spark_jobs.errors import ErrorCode, NotSupportedError, RequestError
from spark_jobs.formats.paimon.metadata_files import guarding_operation
from spark_jobs.formats.whole_numbers import LARGEST, whole_number

RETAIN_MAX: Final = "snapshot.num-retained.max"
RETAIN_MIN: Final = "snapshot.num-retained.min"
TIME_RETAINED: Final = "snapshot.time-retained"
BATCH: Final = "snapshot.expire.limit"
CHANGELOG_RETAIN_MAX: Final = "changelog.num-retained.max"
CHANGELOG_RETAIN_MIN: Final = "changelog.num-retained.min"
CHANGELOG_TIME_RETAINED: Final = "changelog.time-retained"
_DEFAULT_AGE: Final = "1 h"
# A snapshot that was stored so much later than it says was committed by a clock that is behind.
_BEHIND: Final = timedelta(hours=1)


def refuse_cleaning(name: TableName, spec: ExpireSnapshotsSpec) -> None:
    """Refuse to remove schemas.

    Raises:
        NotSupportedError: ``spec`` asks for it.
    """
    if spec.clean_expired_metadata:
        raise NotSupportedError(
            f"clean_expired_metadata: {name} is a Paimon table, whose engines need its schemas by "
            "their numbers, from the first one on.",
            "Leave clean_expired_metadata out.",
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of expiry; ``batch`` is the number of snapshots that are dropped at a time."""

    retain_max: int
    retain_min: int
    older_than: datetime
    max_deletes: int
    batch: int

    @classmethod
    def of(cls, spec: ExpireSnapshotsSpec, options: Mapping[str, str], now: datetime) -> Limits:
        """The statement's limits; where it has none, the table's options or Paimon's defaults.

        Raises:
            NotSupportedError: an option of the table has an invalid value, or lets changelogs
                outlive their snapshots.
            RequestError: REQUEST_INVALID: ``retain_min`` is greater than ``retain_max``.
        """
        limits = cls(
            spec.retain_max or whole_number(options, RETAIN_MAX, LARGEST),
            spec.retain_min or whole_number(options, RETAIN_MIN, 10),
            parse_limit(spec.older_than, now) if spec.older_than else _age(options, now),
            spec.max_deletes or LARGEST,
            whole_number(options, BATCH, 50),
        )
        if limits.retain_min > limits.retain_max:
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"retain_min: {limits.retain_min} ({_origin(spec.retain_min, options, RETAIN_MIN)})"
                f" is more than retain_max, {limits.retain_max} "
                f"({_origin(spec.retain_max, options, RETAIN_MAX)}).",
                "Give both retain_min and retain_max.",
            )
        limits._refuse_longer_changelogs(options, now)
        return limits

    def _refuse_longer_changelogs(self, options: Mapping[str, str], now: datetime) -> None:
        time_retained = options.get(CHANGELOG_TIME_RETAINED)
        longer = {
            CHANGELOG_RETAIN_MAX: whole_number(options, CHANGELOG_RETAIN_MAX, 0) > self.retain_max,
            CHANGELOG_RETAIN_MIN: whole_number(options, CHANGELOG_RETAIN_MIN, 0) > self.retain_min,
            CHANGELOG_TIME_RETAINED: time_retained is not None
            and before(now, duration_option(CHANGELOG_TIME_RETAINED, time_retained))
            < self.older_than,
        }
        for option, is_longer in longer.items():
            if is_longer:
                raise NotSupportedError(
                    f"Option {option} = {options[option]} keeps changelogs longer than snapshots, "
                    "which is not supported.",
                    "Keep as many snapshots as changelogs, or use Paimon's own engines.",
                )

    def texts(self, options: Mapping[str, str]) -> dict[str, str]:
        """The limits of a table with these options, by their names."""
        is_unlimited = self.retain_max == LARGEST
        return {
            TIME_RETAINED: options.get(TIME_RETAINED, _DEFAULT_AGE),
            RETAIN_MIN: str(self.retain_min),
            RETAIN_MAX: "unlimited" if is_unlimited else str(self.retain_max),
        }

    def uncapped(self) -> Limits:
        """The same limits without ``max_deletes``."""
        return replace(self, max_deletes=LARGEST)


def duration_option(name: str, text: str) -> timedelta:
    """The value of a table option that is a duration.

    Raises:
        NotSupportedError: the value is not a duration.
    """
    try:
        return parse_option(text)
    except ValueError as error:
        raise NotSupportedError(f"Option {name}: {error}.", "Correct the table's option.") from None


def _age(options: Mapping[str, str], now: datetime) -> datetime:
    return before(now, duration_option(TIME_RETAINED, options.get(TIME_RETAINED, _DEFAULT_AGE)))


def _origin(given: int | None, options: Mapping[str, str], name: str) -> str:
    if given is not None:
        return "as given"
    return f"option {name}" if name in options else f"default of option {name}"


def first_retained(
    ids: Sequence[int], committed: Callable[[int], float], limits: Limits, held: int
) -> int:
    """The id before which all snapshots of a branch expire.

    ``ids`` are its snapshots, in ascending order; ``committed`` tells when one was committed, in
    milliseconds since 1970; ``held`` is the first one that a consumer needs.
    """
    if not ids:
        return 0
    earliest, latest = ids[0], ids[-1]
    first = max(latest - limits.retain_max + 1, earliest)
    end = min(latest - limits.retain_min + 1, held, earliest + limits.max_deletes)
    limit = limits.older_than.timestamp() * 1000
    for snapshot_id, successor in pairwise(ids):
        if first <= snapshot_id < end and committed(successor) >= limit:
            return snapshot_id
    return max(end, earliest)


def commit_millis(stated: float, stored: datetime | None) -> float:
    """When a snapshot was committed, in milliseconds since 1970.

    ``stated``: what it says; ``stored``: when the store got its file. A time that its writer's
    clock set far too early would let it expire too early: then it is when the store got the file.
    """
    if stored is None or stated / 1000 > (stored - _BEHIND).timestamp():
        return stated
    return stored.timestamp() * 1000


def is_holding(consumer: str, modified: datetime | None, now: datetime) -> bool:
    """Whether a consumer keeps snapshots: all do but abandoned guards of operations.

    ``modified`` is when its file last changed.
    """
    if guarding_operation(consumer) is None or modified is None:
        return True
    return modified >= now - ABANDONED_AFTER


def held_from(next_snapshots: Iterable[int]) -> int:
    """The first snapshot that any consumer needs; unlimited if there is no consumer."""
    return min(next_snapshots, default=LARGEST)
