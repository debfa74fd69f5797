"""Catalogs, opened with pyiceberg such that every request has a time-out. Driver only.

Servers remove metadata files that the table's log has dropped; of other catalogs, it is done here.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, Literal

from spark_jobs.connectors.iceberg.library.definitions import create_table
from spark_jobs.connectors.iceberg.library.files import MetadataFiles, table_storage
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError, NotSupportedError
from spark_jobs.formats.iceberg.catalogs import Client, found_table, handed_out
from spark_jobs.formats.iceberg.glue import is_refusal
from spark_jobs.formats.iceberg.options import GLUE, SQL, TYPE, identifier_of
from spark_jobs.storage.file_errors import file_error
from spark_jobs.storage.s3 import bounded_session
from spark_jobs.storage.table_storage import TableStorage

_log = logging.getLogger("airflow_provider_merge.job")

# To connect, and to wait for an answer.
_SECONDS: Final = (10.0, 60.0)


# To a request to commit: done; the table has changed; refused for another reason; anything else.
CommitAnswer = Literal["yes", "late", "no", "unknown"]
_ENABLED: Final = "write.metadata.delete-after-commit.enabled"
_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True)
class LoadedTable:
    """A table as it is now: pyiceberg's ``Table``, and where its files are."""

    table: Any
    storage: TableStorage


@dataclass(frozen=True)
class IcebergCatalog:
    """The catalog of ``options``, which hold secrets; opened when it is first asked."""

    options: Mapping[str, str] = field(repr=False)

    def load(self, name: TableName) -> LoadedTable | None:
        """A table; None if there is none of this name.

        If no table has exactly this name, it is the only one with this name in another case.

        Raises:
            CatalogError: METADATA_UNREADABLE, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the catalog or the table's storage is not supported.
        """
        if not all(name.database.split(".")):
            return None
        identifier = identifier_of(self.options, name)
        with self.answering(str(name)):
            table = found_table(self.opened, identifier)
            if table is None:
                return None
            options = {**self.options, **handed_out(table)}
            _refuse_signing(name, options)
            return LoadedTable(table, table_storage(table.metadata.location, options))

    def create(
        self,
        name: TableName,
        schema: Mapping[str, Any],
        partition: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
        order: Sequence[Mapping[str, Any]] = (),
    ) -> bool:
        """Create a table; False if there is one of this name.

        ``schema`` and the fields of ``partition`` and ``order`` are in Iceberg's JSON form. Raises
        as ``load`` does.
        """
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        with self.answering(str(name)):
            identifier = identifier_of(self.options, name)
            self.opened.create_namespace_if_not_exists(identifier[:-1])
            try:
                given = {"format-version": "2", **properties}
                create_table(self.opened, identifier, schema, partition, order, given)
            except (TableAlreadyExistsError, CommitFailedException):
                return False
            return True

    def drop(self, name: TableName, *, purge: bool) -> None:
        """Drop a table; one that is not there is no error. ``purge``: a server removes its files.

        Raises:
            JobError: as ``load``: the catalog refused it.
            TimeoutError: it is not known what the catalog did.
        """
        from pyiceberg.exceptions import NoSuchTableError
        from requests import RequestException

        lost = ""
        with self.answering(str(name)):
            table = found_table(self.opened, identifier_of(self.options, name))
            drop = self.opened.purge_table if purge else self.opened.drop_table
            try:
                if table is not None:
                    drop(table.name())
            except NoSuchTableError:
                return
            except RequestException as error:
                lost = type(error).__name__
        if lost:
            raise TimeoutError(lost)

    def committed(
        self, table: Any, required: tuple[Any, ...], changes: tuple[Any, ...]
    ) -> CommitAnswer:
        """Ask once for a commit to pyiceberg's ``table``."""
        from pyiceberg import exceptions

        refusals = (
            exceptions.BadRequestError,
            exceptions.UnauthorizedError,
            exceptions.ForbiddenError,
            exceptions.AuthorizationExpiredError,
        )
        try:
            done = self.opened.commit_table(table, required, changes)
        except exceptions.CommitFailedException:
            return "late"
        except refusals:
            return "no"
        except Exception as error:  # noqa: BLE001 - whatever it is: the commit may have been made
            # So these catalogs refuse a sequence number that another branch has taken.
            is_number = self.decides_at_client and type(error) is ValueError
            return "no" if is_number or is_refusal(error) else "unknown"
        if self.decides_at_client:
            _remove_old_metadata(table, done)
        return "yes"

    def other_tables(self, own: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """The tables of the catalog besides ``own``, by name, with pyiceberg's metadata.

        Without those that cannot be loaded. Raises as ``load`` does.
        """
        with self.answering("the catalog"):
            names = list(_tables(self.opened, ()))
        for identifier in names:
            if identifier == own:
                continue
            try:
                metadata = self.opened.load_table(identifier).metadata
            except Exception as error:  # noqa: BLE001 - of others' tables, anything may be wrong
                _log.info("table %s was not looked at: %s", ".".join(identifier), type(error))
                continue
            yield ".".join(identifier), metadata

    @property
    def decides_at_client(self) -> bool:
        """Whether pyiceberg checks what a commit requires; else the catalog's server does."""
        return self.options.get(TYPE) in (SQL, GLUE)

    @contextmanager
    def answering(self, place: str) -> Iterator[None]:
        """Within it, failures of the catalog while it serves ``place`` are errors with a code."""
        try:
            yield
        except JobError:
            raise
        except Exception as error:
            failure = _CLIENT.failure(error, "The catalog", place)
            raise failure or file_error(place, error) from error

    @cached_property
    def opened(self) -> Any:
        """Pyiceberg's catalog."""
        return _CLIENT.opened(self.options)


def _tables(catalog: Any, namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The identifiers of all tables below a namespace."""
    if namespace:
        yield from catalog.list_tables(namespace)
    for child in catalog.list_namespaces(namespace):
        if len(child) == len(namespace) + 1:
            yield from _tables(catalog, child)


def _refuse_signing(name: TableName, options: Mapping[str, str]) -> None:
    signs = options.get("s3.remote-signing-enabled", "").lower() == "true" or "s3.signer" in options
    if signs:
        raise NotSupportedError(
            f"The catalog's server wants to sign each request to the storage of {name}, which is "
            "not supported.",
            "Let the server hand out keys, or give keys to the connection.",
        )


class _TimedRest:
    """A base before pyiceberg's ``RestCatalog``: no request waits for ever."""

    def _config_headers(self, session: Any) -> None:
        # The first thing that happens to a session.
        session.request = partial(_answer_of, session.request)
        super()._config_headers(session)  # type: ignore[misc]


def _answer_of(ask: Callable[..., Any], *asked: Any, **options: Any) -> Any:
    """The answer to a request; a redirect, which would take secrets elsewhere, is an error."""
    from requests import TooManyRedirects

    answer = ask(*asked, **{**options, "timeout": _SECONDS, "allow_redirects": False})
    if answer.is_redirect:
        raise TooManyRedirects
    return answer


_CLIENT: Final = Client(
    MetadataFiles,
    _TimedRest,
    partial(bounded_session, ("glue.GetTable", "glue.GetTables", "glue.GetDatabase")),
    makes_tables=True,
    where="in the driver's environment",
)


def _remove_old_metadata(before: Any, done: Any) -> None:
    """Remove what the log of pyiceberg's table ``before`` has and that of ``done`` lacks.

    ``done`` is pyiceberg's answer to the commit. Only if the table's property says so, and only
    files beside the new one: the log may name anything. Failures leave files behind.
    """
    if done.metadata.properties.get(_ENABLED, "false").lower() != "true":
        return
    folder = posixpath.dirname(done.metadata_location)
    kept = {each.metadata_file for each in done.metadata.metadata_log}
    for location in {each.metadata_file for each in before.metadata.metadata_log} - kept:
        if posixpath.dirname(location) == folder and location.endswith(_ENDINGS):
            with suppress(Exception):
                before.io.delete(location)
