"""``PartitionSensor``: waits for partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.partitions import partition_texts
from airflow_provider_merge.sensors.base import TableSensor, whole
from airflow_provider_merge.templates import has_template
from airflow_provider_merge.times import millis_of
from airflow_provider_merge.triggers.gates import PartitionGate

if TYPE_CHECKING:
    from airflow.sdk import Context

_MOST: Final = 10_000


class PartitionSensor(TableSensor):
    """Waits until one partition, or each of several, exists.

    The XCom has the newest snapshot and the partitions' rows, files and bytes.

    :param partition: values of partition columns, such as ``{"day": "{{ ds }}"}``, or a list of
        such dicts. A dict with some of the columns is met by any partition with these values
    :param through: the last partition of a range that starts at ``partition``: the same columns, of
        which one, a date or whole number, differs
    :param min_rows: the number of rows that each partition must have
    :param changed_since: the time since which each partition must have changed (a compaction is not
        a change)
    """

    template_fields: Sequence[str] = (
        *TableSensor.template_fields,
        "partition",
        "through",
        "min_rows",
        "changed_since",
    )

    def __init__(
        self,
        *,
        table: str,
        partition: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        through: Mapping[str, Any] | None = None,
        min_rows: int | str = 0,
        changed_since: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(table=table, **kwargs)
        self.partition = partition
        self.through = through
        self.min_rows = min_rows
        self.changed_since = changed_since
        if not has_template([partition, through]):
            self._partitions()

    def gate(self, context: Context) -> PartitionGate:
        """The condition: all of the partitions."""
        since, min_rows = self.changed_since, whole("min_rows", self.min_rows)
        if min_rows < 0:
            raise invalid("min_rows", f"{min_rows} is less than none")
        return PartitionGate(
            partitions=self._partitions(),
            min_rows=min_rows,
            changed_since_millis=None if since is None else millis_of("changed_since", since),
        )

    def _partitions(self) -> tuple[dict[str, str | None], ...]:
        wanted = self.partition
        given = list(wanted or ()) if isinstance(wanted, list | tuple) else [wanted]
        is_one = len(given) == 1
        places = ["partition" if is_one else f"partition[{at}]" for at in range(len(given))]
        for place, each in zip(places or ["partition"], given or [None], strict=True):
            if not each:
                remedy = 'Write values of columns: {"day": "2026-01-31"}.'
                raise invalid(place, "names no partition", remedy)
        texts = tuple(map(partition_texts, places, given))
        if self.through is None:
            return texts
        if not is_one:
            raise invalid("through", "needs a single partition, not a list")
        return tuple(partition_range(texts[0], partition_texts("through", self.through)))


def partition_range(
    first: Mapping[str, str | None], last: Mapping[str, str | None]
) -> list[dict[str, str | None]]:
    """Every partition from the first to the last one, which differ in one column.

    Raises:
        RequestError: REQUEST_INVALID: not a range of dates or whole numbers.
    """
    differing = [name for name in first if name not in last or first[name] != last[name]]
    if first.keys() != last.keys() or len(differing) > 1:
        raise invalid("through", "must have the columns of partition and differ in one of them")
    if not differing:
        return [dict(first)]
    (column,) = differing
    values = _between(str(first[column]), str(last[column]))
    return [{**first, column: value} for value in values]


def _between(first: str, last: str) -> list[str]:
    try:
        low, high = date.fromisoformat(first), date.fromisoformat(last)
        count = (high - low).days + 1
        values = (str(low + timedelta(days=index)) for index in range(count))
    except ValueError:
        try:
            start, end = int(first), int(last)
        except ValueError:
            raise invalid(
                "through", f"{first!r} to {last!r} is not a range of dates or whole numbers"
            ) from None
        count = end - start + 1
        values = (str(number) for number in range(start, end + 1))
    if count <= 0:
        raise invalid("through", f"{last!r} is before {first!r}")
    if count > _MOST:
        raise invalid("through", f"{first!r} to {last!r} are {count} partitions, not 1 to {_MOST}")
    return list(values)
