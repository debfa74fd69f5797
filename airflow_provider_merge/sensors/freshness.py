"""``FreshnessSensor``: waits until a table or a partition is fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.operators._shared.partitions import partition_texts
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.templates import has_template, is_template
from airflow_provider_merge.times import seconds_of
from airflow_provider_merge.triggers.gates import FreshnessGate

if TYPE_CHECKING:
    from airflow.sdk import Context


class FreshnessSensor(TableSensor):
    """Waits until the table, or one of its partitions, was changed less than ``max_age`` ago.

    A compaction is not a change. The XCom has the newest change and its ``age_seconds``.

    :param max_age: a ``timedelta``, or seconds: ``timedelta(hours=2)`` or ``7200``
    :param partition: values of partition columns; default: the whole table
    """

    template_fields: Sequence[str] = (*TableSensor.template_fields, "partition", "max_age")

    def __init__(
        self,
        *,
        table: str,
        max_age: timedelta | float | str,
        partition: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(table=table, **kwargs)
        self.max_age = max_age
        self.partition = partition
        if not is_template(max_age):
            seconds_of("max_age", max_age)
        if not has_template(partition):
            partition_texts("partition", partition)

    def gate(self, context: Context) -> FreshnessGate:
        """A change that is recent enough."""
        seconds = seconds_of("max_age", self.max_age)
        texts = partition_texts("partition", self.partition)
        return FreshnessGate(seconds, texts or None)
