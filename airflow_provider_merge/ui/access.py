"""Who may see what: decided by Airflow's auth manager, in each request anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import (
    AccessView,
    ConnectionDetails,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models import Connection
from airflow.models.dag import DagModel
from airflow.secrets.environment_variables import EnvironmentVariablesBackend
from airflow.utils.session import create_session
from fastapi import Depends, HTTPException, Query, status
from sqlalchemy import select

from airflow_provider_merge.hooks.catalog import catalog_types
from airflow_provider_merge.ui.answers import CatalogConnection

_LONGEST_ID: Final = 250
_IN_ENVIRONMENT: Final = "AIRFLOW_CONN_"


def require_pages(user: Annotated[BaseUser, Depends(get_user)]) -> BaseUser:
    """The user, who may see Airflow's plugins and, if an option names one, a view of its own.

    Raises:
        HTTPException: 401 without a valid token, 403 without the permission.
    """
    manager = get_auth_manager()
    view = conf.get("merge", "ui_permission", fallback="")
    if not manager.is_authorized_view(access_view=AccessView.PLUGINS, user=user) or (
        view and not manager.is_authorized_custom_view(method="GET", resource_name=view, user=user)
    ):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")
    return user


PageUser = Annotated[BaseUser, Depends(require_pages)]


def require_connection(
    user: PageUser,
    connection: Annotated[str, Query(max_length=_LONGEST_ID, description="Connection id")],
) -> str:
    """The connection's id, at which the user may look; that it exists is not said before.

    Raises:
        HTTPException: 403.
    """
    if connection not in _named("ui_connections") and not _may(connection, user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")
    return connection


ReadableConnection = Annotated[str, Depends(require_connection)]


def may_see_rows(connection: str, user: BaseUser) -> bool:
    """Whether the user may see rows of tables: the right to change the connection is needed.

    Who has it could read the tables anyhow. Only of connections that ``ui_samples`` names.
    """
    return connection in _named("ui_samples") and _may(connection, user, "PUT")


def require_rows(connection: str, user: BaseUser) -> None:
    """Check that the user may see rows.

    Raises:
        HTTPException: 403.
    """
    if not may_see_rows(connection, user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")


def readable_dags(dag_ids: Iterable[str], user: BaseUser) -> frozenset[str]:
    """Those of the DAGs whose runs the user may see."""
    manager = get_auth_manager()
    return frozenset(
        dag_id
        for dag_id in dag_ids
        if manager.is_authorized_dag(
            method="GET",
            access_entity=DagAccessEntity.RUN,
            details=DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id)),
            user=user,
        )
    )


def visible_connections(user: BaseUser) -> list[CatalogConnection]:
    """The catalog connections that the user may look at, by id.

    Found in Airflow's database, in this server's environment and in the option ``ui_connections``;
    those of secrets backends cannot be listed.
    """
    types = catalog_types()
    with create_session() as session:
        wanted = select(Connection.conn_id, Connection.conn_type).where(
            Connection.conn_type.in_(types)
        )
        types_by_id = {str(each.conn_id): str(each.conn_type) for each in session.execute(wanted)}
    shared, environment = _named("ui_connections"), EnvironmentVariablesBackend()
    for conn_id in _environment_ids():
        types_by_id[conn_id] = _type_by(environment.get_connection, conn_id)
    for conn_id in set(shared) - types_by_id.keys():
        types_by_id[conn_id] = _type_by(Connection.get_connection_from_secrets, conn_id)
    return [
        CatalogConnection(connection=conn_id, type=conn_type)
        for conn_id, conn_type in sorted(types_by_id.items())
        if conn_type in types and (conn_id in shared or _may(conn_id, user))
    ]


def _may(connection: str, user: BaseUser, method: Literal["GET", "PUT"] = "GET") -> bool:
    details = ConnectionDetails(conn_id=connection, team_name=Connection.get_team_name(connection))
    manager = get_auth_manager()
    return manager.is_authorized_connection(method=method, details=details, user=user)


def _named(option: str) -> tuple[str, ...]:
    """The connections that an option names."""
    text = conf.get("merge", option, fallback="") or ""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _environment_ids() -> list[str]:
    names = (name for name in os.environ if name.startswith(_IN_ENVIRONMENT))
    return sorted(name.removeprefix(_IN_ENVIRONMENT).lower() for name in names)


def _type_by(look: Callable[[str], Any], conn_id: str) -> str:
    """The type of a connection; empty if it cannot be read."""
    try:
        return str(look(conn_id).conn_type)
    except Exception:  # noqa: BLE001 - a broken connection is just not listed
        return ""
