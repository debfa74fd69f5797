"""Which tags, branches and snapshots of an Iceberg table expire.

Follows Iceberg's ``RemoveSnapshots``. Two rules are this project's: ``retain_max``, and that
nothing expires within an hour of its commit unless a limit that was given is shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from spark_jobs.contract.durations import duration_text, parse_limit
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import ErrorCode, RequestError
from spark_jobs.formats.whole_numbers import LARGEST, whole_number

MAX_SNAPSHOT_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS: Final = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
GC_ENABLED: Final = "gc.enabled"
_DEFAULT_AGE: Final = int(timedelta(days=5) / timedelta(milliseconds=1))
_YOUNG: Final = int(timedelta(hours=1) / timedelta(milliseconds=1))
_BRANCH: Final = "branch"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an expiry at ``now``; all times are in milliseconds (since 1970).

    A snapshot may expire if it was committed before ``older_than``. ``max_ref_age`` is for tags and
    branches that have no age of their own.
    """

    now: int
    older_than: int
    retain_min: int
    retain_max: int
    max_ref_age: int
    max_deletes: int

    @classmethod
    def of(cls, spec: ExpireSnapshotsSpec, properties: Mapping[str, str], now: datetime) -> Limits:
        """The statement's limits; where it has none, the table's properties, or Iceberg's defaults.

        Raises:
            NotSupportedError: a property of the table has an invalid value.
            RequestError: REQUEST_INVALID: ``retain_min`` is greater than ``retain_max``.
        """
        moment = _millis(now)
        age = whole_number(properties, MAX_SNAPSHOT_AGE, _DEFAULT_AGE, least=0)
        limits = cls(
            now=moment,
            older_than=_millis(parse_limit(spec.older_than, now))
            if spec.older_than
            else moment - age,
            retain_min=spec.retain_min or whole_number(properties, MIN_SNAPSHOTS, 1),
            retain_max=spec.retain_max or LARGEST,
            max_ref_age=whole_number(properties, MAX_REF_AGE, LARGEST),
            max_deletes=spec.max_deletes or LARGEST,
        )
        if limits.retain_min > limits.retain_max:
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"retain_max: {limits.retain_max} is less than the table's {MIN_SNAPSHOTS}, "
                f"{limits.retain_min}.",
                "Give both retain_min and retain_max.",
            )
        return limits

    def texts(self) -> dict[str, str]:
        """The limits by the names of the table's properties."""
        age = duration_text((self.now - self.older_than) / 1000)
        return {MAX_SNAPSHOT_AGE: age, MIN_SNAPSHOTS: str(self.retain_min)}

    def uncapped(self) -> Limits:
        """The same limits without ``max_deletes``."""
        return replace(self, max_deletes=LARGEST)

    def is_over(self, ref: Any, known: Mapping[int, Any]) -> bool:
        """Whether the age of a tag or branch is over: that of its snapshot, which is ``known``.

        One that names no snapshot stays, unlike in Iceberg.
        """
        snapshot = known.get(ref.snapshot_id)
        if snapshot is None:
            return False
        age = self.now - snapshot.timestamp_ms
        return bool(age > _own(ref.max_ref_age_ms, self.max_ref_age))

    def stay(self, branch: Any, history: Iterator[Any]) -> Iterator[int]:
        """The ids of a branch's snapshots that stay; ``history`` begins with its head."""
        least = _own(branch.min_snapshots_to_keep, self.retain_min)
        most = self.retain_max if branch.max_snapshot_age_ms is None else LARGEST
        older_than = self.now - _own(branch.max_snapshot_age_ms, self.now - self.older_than)
        for number, snapshot in enumerate(history):
            committed = snapshot.timestamp_ms
            is_young = committed >= max(older_than, self.now - _YOUNG)
            if number >= least and not is_young and (committed < older_than or number >= most):
                return
            yield snapshot.snapshot_id


@dataclass(frozen=True, slots=True)
class Expiring:
    """What expires: ``snapshots`` by id, oldest first, and the names of tags and branches.

    ``left``: how many more snapshots may expire, but stay because of ``max_deletes``. ``kept``: how
    many snapshots stay only because of a tag, a branch or what holds them, by its name.
    """

    snapshots: Sequence[int]
    refs: Sequence[str]
    left: int
    kept: Mapping[str, int]


def expiring(metadata: Any, limits: Limits, held: Mapping[str, Collection[int]]) -> Expiring:
    """What expires of a table with pyiceberg's ``metadata``; snapshots that are ``held`` stay.

    ``held`` has their ids by what holds them.
    """
    known = {each.snapshot_id: each for each in metadata.snapshots}
    refs = {
        name: ref
        for name, ref in metadata.refs.items()
        if name == MAIN_BRANCH or not limits.is_over(ref, known)
    }
    stay, referenced, kept_by = set[int](), set[int](), {}
    for name, ref in sorted(refs.items(), key=lambda each: each[0] != MAIN_BRANCH):
        is_branch = ref.snapshot_ref_type == _BRANCH
        of_ref = {ref.snapshot_id}
        if is_branch:
            of_ref.update(limits.stay(ref, history(known, ref.snapshot_id)))
            referenced.update(each.snapshot_id for each in history(known, ref.snapshot_id))
        referenced.add(ref.snapshot_id)
        if name != MAIN_BRANCH:
            kept_by[f"{ref.snapshot_ref_type} {name}"] = of_ref - stay
        stay |= of_ref
    gone = {
        number
        for number, each in known.items()
        if number not in stay and (number in referenced or each.timestamp_ms < limits.older_than)
    }
    kept_by |= {by: gone.intersection(ids) for by, ids in held.items()}
    gone = gone.difference(*held.values())
    ids = sorted(
        gone, key=lambda each: (known[each].sequence_number or 0, known[each].timestamp_ms)
    )
    cut = ids[: limits.max_deletes]
    refs_gone = sorted(metadata.refs.keys() - refs.keys())
    counts = {by: len(ids) for by, ids in kept_by.items() if ids}
    return Expiring(cut, refs_gone, len(ids) - len(cut), counts)


def history(known: Mapping[int, Any], snapshot_id: int | None) -> Iterator[Any]:
    """The snapshot and those that it builds on, as far as they are ``known``, newest first."""
    seen_ids = set()
    # Each once, even if the metadata says that they follow each other in a circle.
    while snapshot_id is not None and snapshot_id in known and snapshot_id not in seen_ids:
        seen_ids.add(snapshot_id)
        snapshot = known[snapshot_id]
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def _own(value: int | None, default: int) -> int:
    return default if value is None else value


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
