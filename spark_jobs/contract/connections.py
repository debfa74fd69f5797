"""Connections of sources: their secrets travel with those of the catalog, and apart from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The names of login and password among the secrets of a connection that is no catalog's.
USER: Final = "user"
PASSWORD: Final = "password"  # noqa: S105 - a name
_PREFIX: Final = "connections["


def scoped(connection: str, credentials: Mapping[str, str]) -> dict[str, str]:
    """The secrets of a connection, by names that no other connection's secrets have."""
    return {f"{_scope(connection)}{name}": secret for name, secret in credentials.items()}


def credentials_of(connection: str, credentials: Mapping[str, str]) -> dict[str, str]:
    """Those of a job's secrets that are for a connection of a source."""
    scope = _scope(connection)
    own = (each for each in credentials.items() if each[0].startswith(scope))
    return {name.removeprefix(scope): secret for name, secret in own}


def of_sources(credentials: Mapping[str, str]) -> dict[str, str]:
    """Those of a job's secrets that are for connections of sources."""
    return {name: each for name, each in credentials.items() if name.startswith(_PREFIX)}


def of_catalog(credentials: Mapping[str, str]) -> dict[str, str]:
    """Those of a job's secrets that are for its catalog."""
    return {name: each for name, each in credentials.items() if not name.startswith(_PREFIX)}


def _scope(connection: str) -> str:
    return f"{_PREFIX}{connection}]."
