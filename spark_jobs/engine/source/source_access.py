"""What sources need besides the catalog of the target: other catalogs, secrets of connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.contract.catalogs import PASSWORD, CatalogSpec, credentials_of
from spark_jobs.contract.request import Source, TableSource
from spark_jobs.contract.source_names import called
from spark_jobs.errors import ErrorCode, JobError, RequestError

if TYPE_CHECKING:
    from spark_jobs.spi.connector import Connector


def _opens_none(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    del credentials
    problem = f"catalog: {catalog.connector} cannot be opened here"
    raise RequestError(ErrorCode.REQUEST_INVALID, problem, "Run the request by spark_jobs.run.")


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """Opens the catalogs of sources, each once; ``credentials`` are those of their connections."""

    opens: Callable[[CatalogSpec, Mapping[str, str]], Connector] = _opens_none
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    _opened: dict[str, tuple[CatalogSpec, Connector]] = field(default_factory=dict, repr=False)

    def secrets(self, connection: str) -> dict[str, str]:
        """The secrets of a connection; no other one's."""
        return credentials_of(connection, self.credentials)

    def password(self, connection: str) -> str:
        """The password of a connection.

        Raises:
            RequestError: REQUEST_INVALID: it has none.
        """
        password = self.secrets(connection).get(PASSWORD)
        if password is None:
            problem, remedy = "it has no password", "Set the password of the connection."
            place = f"connection {connection}"
            raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, (place,))
        return password

    def connector(self, source: Source, own: Connector) -> Connector:
        """The connector that reads ``source``: that of its catalog, or the target's ``own``.

        Raises:
            JobError: its catalog cannot be opened; names the source.
        """
        if not isinstance(source, TableSource) or source.connection is None:
            return own
        name = source.connection
        try:
            if source.catalog is None:
                problem, remedy = "the request does not tell its catalog", "Name it in the request."
                raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy, ("catalog",))
            known = self._opened.get(name)
            if known is None or known[0] != source.catalog:
                known = source.catalog, self.opens(source.catalog, self.secrets(name))
                self._opened[name] = known
        except JobError as error:
            place = f"connection {name}"
            raise error.within(called(source.name), place) from error.__cause__
        return known[1]
