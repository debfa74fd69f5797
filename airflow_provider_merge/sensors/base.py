"""The base of all sensors: polling, waiting in any mode, and messages."""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)

from airflow_provider_merge import metrics
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import catalog_hook, other_table
from airflow_provider_merge.metadata.snapshot_cache import SnapshotCache
from airflow_provider_merge.metadata.snapshot_facts import Observation
from airflow_provider_merge.metadata.table_view import TableView
from airflow_provider_merge.metrics import Sample
from airflow_provider_merge.parameters import ParameterOperator
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.task_errors import task_failure
from airflow_provider_merge.templates import is_template, when_rendered
from airflow_provider_merge.times import seconds_of
from airflow_provider_merge.triggers.gates import Gate, gate_arguments
from airflow_provider_merge.triggers.polling import is_passing
from airflow_provider_merge.triggers.table import TableTrigger
from spark_jobs.contract.durations import duration_text
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.sdk import Context

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")

# The triggerer's own limit only catches what the trigger's deadline did not.
_GRACE_SECONDS = 300
_DURATIONS = ("poke_interval", "timeout", "max_wait")


class TableSensor(ParameterOperator, BaseSensorOperator):
    """Waits for a condition on a table, reading only its metadata.

    If the store cannot be reached, the sensor polls again. The XCom is a small dictionary:
    ``table``, ``snapshot_id``, ``commit_kind``, ``time`` and more. Guide: docs/gates.md.

    :param table: ``database.table``, or ``database.table$branch_name``
    :param catalog_conn_id: connection to the catalog, for example of the type ``paimon``
    :param deferrable: wait in the triggerer instead of in a worker; default:
        ``[operators] default_deferrable`` in Airflow's configuration
    """

    template_fields: Sequence[str] = ("table", "catalog_conn_id")
    ui_color = "#e6f4d7"

    def __init__(
        self,
        *,
        table: str,
        catalog_conn_id: str = "paimon_default",
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        for name in _DURATIONS:
            # Airflow's own error for these has no example.
            if isinstance(kwargs.get(name), str):
                seconds_of(name, kwargs[name])
        super().__init__(**kwargs)
        self.table = table
        self.catalog_conn_id = catalog_conn_id
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable
        self._seen = "nothing yet"
        self._cache = SnapshotCache()
        if not is_template(table):
            parse_table_name(table, "table")

    @abstractmethod
    def gate(self, context: Context) -> Gate:
        """The condition to wait for.

        Raises:
            RequestError: a parameter is invalid.
        """

    @when_rendered
    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Poll the table once."""
        try:
            observation = self._observe(self.gate(context))
        except JobError as error:
            if not is_passing(error):
                self._count("failed", error.code.name)
                raise task_failure(error, context, table=self.table) from None
            observation = Observation(str(error))
        self._seen = observation.seen
        if observation.facts is None:
            self.log.info("%s: %s", self.table, observation.seen)
            return False
        return PokeReturnValue(True, self._found(context, observation.seen, observation.facts))

    @when_rendered
    def execute(self, context: Context) -> Any:
        """Wait in this process, or hand over to the triggerer."""
        if self.deferrable:
            return self._poke_or_defer(context)
        try:
            return super().execute(context)
        except AirflowSensorTimeout as error:
            self._count("timeout")
            raise AirflowSensorTimeout(self._timeout_text(self._seen)) from error
        except AirflowSkipException as error:
            if isinstance(error.__cause__, AirflowFailException):
                self.log.warning("Skipped, as soft_fail or never_fail asks: %s", error.__cause__)
            else:
                self.log.info("Skipped. %s", self._timeout_text(self._seen))
            raise

    @when_rendered
    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Continue after the trigger's event."""
        if event["status"] == "timeout":
            text = self._timeout_text(event["seen"])
            self._count("timeout")
            self.log.info("%s", text)
            raise AirflowSensorTimeout(text)
        if event["status"] == "error":
            info = ErrorInfo(**event["error"])
            self._count("failed", info.code)
            raise task_failure(info, context, table=self.table)
        return self._found(context, event["seen"], event["facts"])

    def remember(self, context: Context, facts: Mapping[str, Any]) -> None:
        """Store what later runs need; by default nothing."""

    def _poke_or_defer(self, context: Context) -> Any:
        try:
            poke_result = self.poke(context)
        except AirflowException as error:
            if self.soft_fail or self.never_fail:
                self.log.warning("Skipped, as soft_fail or never_fail asks: %s", error)
                raise AirflowSkipException(str(error)) from error
            raise
        if isinstance(poke_result, PokeReturnValue):
            return poke_result.xcom_value
        trigger = TableTrigger(
            self.table,
            self.catalog_conn_id,
            max(self.poke_interval, 1.0),
            gate_arguments(self.gate(context)),
            time.time() + self.timeout,
            self._seen,
        )
        limit = timedelta(seconds=self.timeout + self.poke_interval + _GRACE_SECONDS)
        return self.defer(trigger=trigger, method_name="execute_complete", timeout=limit)

    def _found(self, context: Context, seen: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        self.log.info("%s: found %s", self.table, seen)
        self._count("found", facts=facts)
        self.remember(context, facts)
        return {"table": self.table, **facts}

    def _observe(self, gate: Gate) -> Observation:
        hook = catalog_hook(self.catalog_conn_id)
        table = hook.table(self.table)
        with reaching(table.location):
            return gate.observe(TableView(table, self._cache, partial(other_table, hook)))

    def _count(self, end: str, code: str = "", facts: Mapping[str, Any] | None = None) -> None:
        """Send the metrics of how the wait ended; ``facts`` are those of what was found."""
        sensor = {"sensor": type(self).__name__, **metrics.table_tag(self.table)}
        samples = [Sample(metrics.SENSOR, 1, end, {**sensor, **({"code": code} if code else {})})]
        made = (facts or {}).get("time_millis")
        if made is not None:
            samples.append(Sample(metrics.SENSOR_LAG, time.time() - made / 1000, "", sensor))
        metrics.send(samples)

    def _timeout_text(self, seen: str) -> str:
        return (
            f"{self.table}: the condition of {type(self).__name__} was not met within "
            f"{duration_text(self.timeout)}. Last poll: {seen}."
        )


def whole(name: str, value: Any) -> int:
    """A parameter that is a whole number, or its text.

    Raises:
        RequestError: it is not a whole number.
    """
    if not _WHOLE.fullmatch(str(value).strip()):
        raise invalid(name, f"{value!r} is not a whole number")
    return int(str(value))
