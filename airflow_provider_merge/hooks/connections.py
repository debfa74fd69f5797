"""Catalog connections, and errors for those that are missing or of another type."""

from __future__ import annotations

from collections.abc import Collection

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from spark_jobs.errors import RequestError


def missing(conn_id: str, types: Collection[str]) -> RequestError:
    """The error for a connection that does not exist; ``types`` are the possible types."""
    return invalid(
        "catalog_conn_id",
        f"there is no connection {conn_id!r}",
        f"Create it with one of the types {', '.join(sorted(types))} and set its warehouse. In a "
        "script, outside of a task, Airflow looks for connections in environment variables "
        f"(AIRFLOW_CONN_{conn_id.upper()}) and secrets backends, not in its database.",
    )


def require_type(conn_id: str, connection: Connection, types: Collection[str]) -> str:
    """The type of a connection.

    Raises:
        RequestError: REQUEST_INVALID: it is none of ``types``.
    """
    if connection.conn_type not in types:
        raise invalid(
            "catalog_conn_id",
            f"connection {conn_id!r} has the type {connection.conn_type!r}",
            f"Use a connection of one of the types {', '.join(sorted(types))}.",
        )
    return str(connection.conn_type)


def own_connection(conn_id: str, types: Collection[str], given: Connection | None) -> Connection:
    """The connection of a hook: the one that it was given, or that of ``conn_id``.

    Raises:
        RequestError: REQUEST_INVALID: there is none, or it is of another type.
    """
    try:
        connection = given or BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise missing(conn_id, types) from None
    require_type(conn_id, connection, types)
    return connection
