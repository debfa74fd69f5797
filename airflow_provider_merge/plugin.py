"""What Airflow loads as a plugin, in every process: the pages about tables in Airflow's UI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin

from airflow_provider_merge.table_pages import PREFIX


class _OnDemand:
    """A class attribute that is made when it is first asked for: only the API server asks."""

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        self._make = make
        self._made: list[Any] | None = None

    def __get__(self, plugin: Any, owner: type | None = None) -> list[Any]:
        if self._made is None:
            self._made = self._make()
        return self._made


def _apps() -> list[dict[str, Any]]:
    from airflow_provider_merge.ui.app import tables_app

    return [{"app": tables_app(), "url_prefix": PREFIX, "name": "Tables"}]


class TablesPlugin(AirflowPlugin):
    """The menu entry *Tables*, its pages and their API."""

    name = "airflow_provider_merge"
    fastapi_apps = _OnDemand(_apps)
    external_views = [  # noqa: RUF012 - as Airflow declares it
        {
            "name": "Tables",
            # Relative: Airflow may have a path of its own before it.
            "href": f"{PREFIX.lstrip('/')}/",
            "destination": "nav",
            "category": "browse",
            "url_route": "tables",
        }
    ]
