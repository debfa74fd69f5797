"""A catalog of tables: what opens it, and where it is; and connections of sources.

The secrets of these travel with those of the catalog, and apart from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_jobs.contract.checks import require
from spark_jobs.contract.locations import require_absolute

# The names of login and password among the secrets of a connection that is no catalog's.
USER: Final = "user"
PASSWORD: Final = "password"  # noqa: S105 - a name
_PREFIX: Final = "connections["


@dataclass(frozen=True, slots=True)
class CatalogSpec:
    """Which connector opens the catalog, and its options (``warehouse``, ``metastore``, ``uri`` …).

    ``warehouse``: an absolute path or URI; empty where only the catalog knows the places of tables.
    ``workspace``: where jobs leave results and temporary files, an absolute path or URI; None: the
    warehouse. Credentials are not among the options: they are passed in their own document.
    """

    connector: str
    warehouse: str
    options: Mapping[str, str] = field(default_factory=dict)
    workspace: str | None = None

    def __post_init__(self) -> None:
        require(bool(self.connector.strip()), "connector", "is empty")
        if self.warehouse or self.workspace is None:
            require_absolute("warehouse", self.warehouse)
        if self.workspace is not None:
            require_absolute("workspace", self.workspace)

    @property
    def workspace_location(self) -> str:
        """Where jobs leave results and temporary files, without a trailing slash."""
        return (self.workspace or self.warehouse).rstrip("/")

    def is_same_catalog(self, other: CatalogSpec) -> bool:
        """Whether both have the same tables; their workspaces may differ."""
        names = ("connector", "warehouse", "options")
        return all(getattr(self, each) == getattr(other, each) for each in names)

    def may_have_tables_of(self, other: CatalogSpec) -> bool:
        """Whether tables of one name may be the same table: one format, and one place."""
        if self.connector != other.connector:
            return False
        place = _place(self.warehouse)
        return place == _place(other.warehouse) and (bool(place) or self.is_same_catalog(other))


def _place(location: str) -> str:
    """The same text for spellings of one place."""
    scheme, mark, rest = location.rpartition("://")
    path = re.sub("/+", "/", rest if mark else location.removeprefix("file:")).rstrip("/")
    scheme = scheme.lower()
    own = {"s3a": "s3", "s3n": "s3", "file": ""}.get(scheme, scheme)
    return f"{own}:{path}" if path else ""


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
