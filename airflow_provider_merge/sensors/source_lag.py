"""``SourceLagSensor``: waits until a table has the changes of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.sensors.base import TableSensor, whole
from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.templates import is_template
from airflow_provider_merge.times import seconds_of
from airflow_provider_merge.triggers.source_lag_gate import SourceLagGate

if TYPE_CHECKING:
    from airflow.sdk import Context


class SourceLagSensor(TableSensor):
    """Waits until tasks have applied to the table what changed in the sources that they follow.

    It looks at tasks that read a table by ``changes_source``. The XCom has the lag of each source:
    ``snapshots``, ``seconds`` and ``records``.

    :param source: only this source: ``database.table``, or ``conn_id:database.table`` of another
        catalog; default: each that has a mark in the table
    :param max_snapshots: how many snapshots of a source may be left; default: 0
    :param max_lag: instead: how old the oldest snapshot that is left may be: a ``timedelta``, or
        seconds
    :param consumer_dag_id: only sources of this DAG; default: of each
    :param consumer_task_id: only sources of this task; default: of each
    """

    template_fields: Sequence[str] = (
        *TableSensor.template_fields,
        "source",
        "max_snapshots",
        "max_lag",
        "consumer_dag_id",
        "consumer_task_id",
    )

    def __init__(
        self,
        *,
        table: str,
        source: str | None = None,
        max_snapshots: int | str | None = None,
        max_lag: timedelta | float | str | None = None,
        consumer_dag_id: str | None = None,
        consumer_task_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(table=table, **kwargs)
        self.source = source
        self.max_snapshots = max_snapshots
        self.max_lag = max_lag
        self.consumer_dag_id = consumer_dag_id
        self.consumer_task_id = consumer_task_id
        values = (source, max_snapshots, max_lag, consumer_dag_id, consumer_task_id)
        if not any(map(is_template, values)):
            self._gate()

    def gate(self, context: Context) -> SourceLagGate:
        """No source is behind by more than what is allowed."""
        return self._gate()

    def _gate(self) -> SourceLagGate:
        if self.max_snapshots is not None and self.max_lag is not None:
            raise invalid("max_lag", "given beside max_snapshots", "Give one of them.")
        left = 0 if self.max_snapshots is None else whole("max_snapshots", self.max_snapshots)
        if left < 0:
            raise invalid("max_snapshots", f"{left} is below 0")
        return SourceLagGate(
            left,
            None if self.max_lag is None else seconds_of("max_lag", self.max_lag),
            "" if self.source is None else _source(self.source),
            _text("consumer_dag_id", self.consumer_dag_id),
            _text("consumer_task_id", self.consumer_task_id),
        )


def _source(value: Any) -> str:
    if not isinstance(value, str):
        raise invalid("source", f"{value!r} is not the name of a table")
    connection, _, name = value.rpartition(":")
    table = parse_table_name(name, "source")
    return f"{connection}:{table}" if connection else str(table)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise invalid(name, f"{value!r} is not the id of a DAG or task")
    return value
