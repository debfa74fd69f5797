"""The base of the table maintenance operators, which change no rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators._shared.dry_run_of import DryRunOperator
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag, text, whole_number
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.maintenance import (
    MaintenanceStatement,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)


class MaintenanceOperator(TableOperator):
    """Maintains ``target`` in the Python of the Spark environment, without a Spark session.

    In cluster mode, or if no Spark environment is configured, the job runs through spark-submit. No
    asset event is sent. Guide: docs/operators/table_care.md.

    :param use_spark: true: run the job through spark-submit
    """

    template_fields: Sequence[str] = (*TableOperator.template_fields, "use_spark")
    emits_asset_event = False

    def __init__(self, *, use_spark: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_spark = use_spark

    @abstractmethod
    def statement(self) -> MaintenanceStatement:
        """The statement from rendered parameters."""

    def needs_session(self) -> bool:
        """``use_spark`` from rendered parameters."""
        return flag("use_spark", self.use_spark)

    def check_parameters(self) -> None:
        """Check when the DAG is parsed, unless a parameter is a template.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self.needs_session()
            self.check_request()


class RemovingOperator(MaintenanceOperator, DryRunOperator):
    """A maintenance operator that removes something, with a dry run."""

    template_fields: Sequence[str] = (*MaintenanceOperator.template_fields, "dry_run")


class MoveOperator(RemovingOperator):
    """Makes another snapshot the latest one."""

    template_fields: Sequence[str] = (
        *RemovingOperator.template_fields,
        "snapshot_id",
        "tag",
        "force",
    )
    _spec: ClassVar[type[RollbackSpec | SetCurrentSnapshotSpec]]

    def __init__(
        self,
        *,
        snapshot_id: int | str | None = None,
        tag: str | None = None,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id
        self.tag = tag
        self.force = force
        self.check_parameters()

    def statement(self) -> RollbackSpec | SetCurrentSnapshotSpec:
        """The statement from rendered parameters."""
        return self._spec(
            whole_number("snapshot_id", self.snapshot_id),
            text("tag", self.tag),
            flag("force", self.force),
        )
