"""Pages of people's own that a catalog connection names, for the links of tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_merge.links import filled_page
from spark_jobs.contract.request import TableName


class ConnectionPages(ABC):
    """Fills in the fields ``ui_url`` and ``quarantine-url`` of a hook's connection."""

    catalog_conn_id: str

    @abstractmethod
    def _connection(self) -> Connection:
        """The connection; raises RequestError without one."""

    def snapshot_page(self, target: TableName, snapshot_id: int) -> str:
        """The web page of a snapshot: ``ui_url``, filled in; empty without it.

        Raises:
            RequestError: ``ui_url`` is not a web page, or has a secret or unknown placeholder.
        """
        names = {"database": target.database, "table": target.table}
        return self._page("ui_url", **names, snapshot_id=snapshot_id)

    def quarantine_page(self, path: str) -> str:
        """The web page of a file of quarantined records: ``quarantine-url``; empty without it.

        Raises:
            RequestError: ``quarantine-url`` is not a web page, or has a secret or unknown
                placeholder.
        """
        return self._page("quarantine-url", path=path)

    def _page(self, field: str, **values: Any) -> str:
        template = self._connection().extra_dejson.get(field)
        if not template:
            return ""
        return filled_page(f"connection {self.catalog_conn_id!r}, {field}", str(template), **values)
