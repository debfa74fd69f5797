"""``SnapshotSensor``: waits for a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS

from airflow_provider_merge.assets import same_asset, table_asset
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.nothing import is_nothing, kind_of_nothing
from airflow_provider_merge.operators._shared.values import text
from airflow_provider_merge.sensors.base import TableSensor, whole
from airflow_provider_merge.templates import has_template, is_template
from airflow_provider_merge.times import millis_of
from airflow_provider_merge.triggers.gates import SnapshotGate
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from airflow.sdk import Context

_NOTHING: Final = {"snapshot_id": 0, "time_millis": 0}


class SnapshotSensor(TableSensor):
    """Waits for a new snapshot of the table. Give exactly one of the ``after…`` parameters.

    The XCom has the newest snapshot that meets the condition.

    :param after_id: newer than the snapshot with this id
    :param after: newer than this time
    :param after_last: newer than the snapshot that this task found in an earlier run (Airflow 3.3:
        kept in the state store of the table's asset). The first run takes any snapshot. A cleared
        task starts again where its run started or, if a later run has found a snapshot, after that
        one. After a rollback past that snapshot, only its time counts
    :param statements: created by one of these: ``merge``, ``delete``, ``update`` … of this
        provider, or the format's own kinds of commits, such as ``APPEND`` or ``replace``
    :param properties: with these properties, such as ``{"merge.dag-id": "ingest"}``
    """

    template_fields: Sequence[str] = (
        *TableSensor.template_fields,
        "after_id",
        "after",
        "statements",
        "properties",
    )

    def __init__(
        self,
        *,
        table: str,
        after_id: int | str | None = None,
        after: datetime | str | None = None,
        after_last: bool = False,
        statements: Sequence[str] | str = (),
        properties: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(table=table, **kwargs)
        if sum((after_id is not None, after is not None, bool(after_last))) != 1:
            raise invalid("after_id, after, after_last", "exactly one of them must be given")
        self.after_id = after_id
        self.after = after
        self.after_last = after_last
        self.statements = statements
        self.properties = properties
        if not has_template(statements):
            self._kinds()
        if not has_template(properties):
            self._wanted_properties()
        if after_last and not is_template(table) and not is_template(self.catalog_conn_id):
            asset = table_asset(self.catalog_conn_id, table)
            if same_asset(self.inlets, asset) is None:
                self.inlets = [*self.inlets, asset]

    def gate(self, context: Context) -> SnapshotGate:
        """A newer snapshot of the wanted kind."""
        after_id = 0 if self.after_id is None else whole("after_id", self.after_id)
        after_millis = 0 if self.after is None else millis_of("after", self.after)
        if self.after_last:
            last = self._last(context)["after"]
            after_id, after_millis = last["snapshot_id"], last["time_millis"]
        return SnapshotGate(after_id, after_millis, self._kinds(), self._wanted_properties())

    def _kinds(self) -> tuple[str, ...]:
        given: Any = self.statements
        statements = (given,) if isinstance(given, str) else given
        remedy = "Write ['merge', 'update']."
        if not isinstance(statements, list | tuple):
            problem = f"expected a list of statements, found {type(given).__name__}"
            raise invalid("statements", problem, remedy)
        for at, each in enumerate(statements):
            _require_text(f"statements[{at}]", each, remedy)
        return tuple(statements)

    def _wanted_properties(self) -> dict[str, str]:
        properties: Any = self.properties
        remedy = "Write {'merge.dag-id': 'ingest'}."
        if not isinstance(properties, Mapping | None):
            problem = f"expected a dict of properties, found {type(properties).__name__}"
            raise invalid("properties", problem, remedy)
        for name, value in (properties or {}).items():
            _require_text(f"properties.{name}", value, remedy)
        return dict(properties or {})

    def remember(self, context: Context, facts: Mapping[str, Any]) -> None:
        """Store the snapshot for ``after_last``."""
        if self.after_last:
            found = {name: facts[name] for name in _NOTHING}
            last = {**self._last(context), "found": found}
            self._store(context).set(self._key(context), last)

    def _last(self, context: Context) -> dict[str, Any]:
        """Where this run looks from (``after``), and what it or the run before found."""
        store = self._store(context)
        run_id = context["ti"].run_id
        known: Any = store.get(self._key(context)) or {}
        if known.get("run_id") == run_id:
            return dict(known)
        return {"run_id": run_id, "after": known.get("found", _NOTHING)}

    def _store(self, context: Context) -> Any:
        if not AIRFLOW_V_3_3_PLUS:
            raise NotSupportedError(
                "after_last needs the asset state store of Airflow 3.3.",
                "Give after or after_id, or schedule the DAG on the table's asset.",
            )
        asset = table_asset(self.catalog_conn_id, self.table)
        stores: Any = context.get("asset_state_store")
        try:
            # Airflow knows only the inlets that the task had when the DAG was parsed.
            return stores[same_asset(self.inlets, asset) or asset]
        except (KeyError, TypeError):
            raise invalid(
                "after_last",
                "the table was not known when the DAG was parsed",
                f"Add table_asset({self.catalog_conn_id!r}, {self.table!r}) to inlets.",
            ) from None

    def _key(self, context: Context) -> str:
        ti = context["ti"]
        return f"snapshot-sensor {ti.dag_id} {ti.task_id} {ti.map_index}"


def _require_text(place: str, value: Any, remedy: str) -> None:
    if kind := kind_of_nothing(place, value):
        raise is_nothing(place, kind, remedy)
    text(place, value)
