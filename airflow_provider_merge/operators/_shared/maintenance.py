"""What the operators share that take care of a table and change none of its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.operators._shared.dry_run import DryRunOperator
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.maintenance import MaintenanceStatement


class MaintenanceOperator(TableOperator):
    """Takes care of ``target`` without Spark: in the Python of the Spark environment.

    No asset event is sent. In cluster mode, and where no Spark environment is configured, the job
    goes through spark-submit all the same.

    :param use_spark: true: start the job with spark-submit
    """

    template_fields: Sequence[str] = (*TableOperator.template_fields, "use_spark")
    emits_asset_event = False

    def __init__(self, *, use_spark: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_spark = use_spark

    @abstractmethod
    def statement(self) -> MaintenanceStatement:
        """The statement of the rendered parameters."""

    def needs_session(self) -> bool:
        """``use_spark`` of the rendered parameters."""
        return flag("use_spark", self.use_spark)

    def check_parameters(self) -> None:
        """Check while the DAG is parsed, unless a template leaves something open.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter.
        """
        if not has_template([getattr(self, name) for name in self.template_fields]):
            self.needs_session()
            self.check_request()


class RemovingOperator(MaintenanceOperator, DryRunOperator):
    """Can tell what it would remove."""

    template_fields: Sequence[str] = (*MaintenanceOperator.template_fields, "dry_run")
