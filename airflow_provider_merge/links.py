"""The links of a task's page: its snapshot, its quarantined rows, and its Spark application.

The worker stores each page as an XCom, and Airflow's server reads only that: it needs neither the
DAG's code nor a connection, and no link ever calls anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from airflow.providers.common.compat.sdk import BaseOperatorLink

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.secret_names import refuse_secrets

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

TABLE_PAGE = "_link_merge_table"
SNAPSHOT_PAGE = "_link_merge_snapshot"
QUARANTINE_PAGE = "_link_merge_quarantine"
SPARK_PAGE = "_link_merge_spark_application"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
# No user, no blanks, nothing that ends an attribute: a page is shown to people as it is.
_PAGE = re.compile(r"https?://[^\s@/?#\"'<>\\]+(?:[/?#][^\s\"'<>\\]*)?", re.IGNORECASE)


class _PageLink(BaseOperatorLink):
    """Shows the page that the operator has noted under the link's XCom."""

    key: ClassVar[str]

    @property
    def xcom_key(self) -> str:
        """Where the worker leaves the page."""
        return self.key

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page, asked for on the worker at the end of the task; empty where there is none."""
        pages: Mapping[str, str] = getattr(operator, "pages", {})
        return pages.get(self.key, "")


class TableLink(_PageLink):
    """The table in Airflow's own UI: at the task's snapshot, or at the newest before it failed.

    For a dry run, what the statement would do. Empty for a task that did not get to its table.
    """

    name = "Table"
    key = TABLE_PAGE


class SnapshotLink(_PageLink):
    """The snapshot that the task made, on the page that the catalog connection's ``ui_url`` names.

    Empty for a task that made none, and without ``ui_url``.
    """

    name = "Snapshot"
    key = SNAPSHOT_PAGE


class QuarantineLink(_PageLink):
    """The records that the task set aside, on the page of the connection's ``quarantine-url``.

    Of several sources the first that has any. Empty for a task that set none aside, and without
    ``quarantine-url``.
    """

    name = "Quarantined rows"
    key = QUARANTINE_PAGE


class SparkApplicationLink(_PageLink):
    """The task's Spark application: its own page while it runs, then that of the history server.

    The history server is the Spark connection's extra ``spark-history-url``. Empty for jobs without
    Spark, and where neither page is known.
    """

    name = "Spark application"
    key = SPARK_PAGE


def filled_page(field: str, template: str, **values: Any) -> str:
    """A page of people's own, its ``{placeholders}`` filled in.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: no page, a secret, an unknown placeholder.
    """
    refuse_secrets(field, {"url": template}, "A page's address is seen by everybody.")
    for name in _PLACEHOLDER.findall(template):
        if name not in values:
            known = ", ".join(f"{{{each}}}" for each in values)
            raise invalid(field, f"unknown placeholder {{{name}}}", f"Known: {known}.")
    page = _PLACEHOLDER.sub(lambda match: quote(str(values[match[1]]), safe="/"), template)
    if not is_page(page):
        raise invalid(field, "is not the address of a page", "Write http://... or https://...")
    return page


def is_page(address: str) -> bool:
    """Whether an address can be shown as a link: http or https, without a user."""
    return _PAGE.fullmatch(address) is not None
