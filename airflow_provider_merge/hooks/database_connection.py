"""Connections to databases, as a JDBC driver takes them; nothing connects to them here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.masked_secrets import masked
from spark_jobs.contract.connections import PASSWORD, USER
from spark_jobs.contract.secret_names import holds_secret
from spark_jobs.errors import NotSupportedError

_TYPES: Final = {"postgres": ("postgresql", 5432), "mysql": ("mysql", 3306)}
_ADDRESSES: Final = ("jdbc:postgresql:", "jdbc:mysql:", "jdbc:mariadb:")
# Of a connection's extra, what the driver has, too, by its name there.
_PROPERTIES: Final = {"postgres": {"sslmode": "sslmode", "sslrootcert": "sslrootcert"}, "mysql": {}}


def database_address(field: str, conn_id: str) -> tuple[str, dict[str, str]]:
    """The address of the database of a connection, and properties of its driver; no secret.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field``: there is none, or of another type.
        NotSupportedError: another kind of database, or of login.
    """
    connection = _connection(field, conn_id)
    kind = str(connection.conn_type)
    if kind == "jdbc":
        return _given_address(field, connection), {}
    if kind not in _TYPES:
        raise invalid(
            field,
            f"connection {conn_id!r} has the type {kind!r}",
            "Use a connection of one of the types jdbc, mysql, postgres.",
        )
    extra = connection.extra_dejson
    if extra.get("iam"):
        raise NotSupportedError(
            f"{field}: connection {conn_id!r} logs in by a token of AWS (iam).",
            "Use a connection with login and password.",
        )
    if not connection.host:
        raise invalid(field, f"connection {conn_id!r} has no host", "Set its host.")
    scheme, port = _TYPES[kind]
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    schema = quote(connection.schema or "", safe="")
    properties = {
        name: str(extra[key]) for key, name in _PROPERTIES[kind].items() if extra.get(key)
    }
    return f"jdbc:{scheme}://{host}:{connection.port or port}/{schema}", properties


def login(field: str, conn_id: str) -> Mapping[str, str]:
    """Login and password of a connection, which this process masks from here on."""
    connection = _connection(field, conn_id)
    given = {USER: connection.login, PASSWORD: connection.password}
    return masked({name: each for name, each in given.items() if each})


def _given_address(field: str, connection: Connection) -> str:
    url = str(connection.host or "").strip()
    if not url.startswith(_ADDRESSES):
        raise NotSupportedError(
            f"{field}: the host of connection {connection.conn_id!r} is no address of PostgreSQL, "
            "MySQL or MariaDB: of other databases it is not known how their types are read.",
            f"Begin it with one of: {', '.join(_ADDRESSES)}; or use python_source.",
        )
    if holds_secret(url):
        raise invalid(
            field,
            f"the host of connection {connection.conn_id!r} holds a secret, which would be seen",
            "Use the connection's login and password.",
        )
    return url.replace("jdbc:mariadb:", "jdbc:mysql:", 1)


def _connection(field: str, conn_id: str) -> Connection:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        remedy = "Create it, or name another one."
        raise invalid(field, f"there is no connection {conn_id!r}", remedy) from None
