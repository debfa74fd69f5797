"""pypaimon's calls to a REST catalog's server, and the server's failures. Driver only.

Errors repeat only the kind of a server's answer, because its text may contain what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from spark_jobs.formats.paimon.options import BEARER, TOKEN, TOKEN_PROVIDER, URI


def open_rest_catalog(options: Mapping[str, str]) -> Any:
    """The catalog of the server at option ``uri``; ``warehouse`` is its name on that server.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the token is of another kind, or the server hands out storage keys.
    """
    from pypaimon import CatalogFactory

    uri = options.get(URI, "")
    if not uri.strip():
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            "Catalog option metastore = rest needs the option uri.",
            "Set the field uri of the catalog connection to the address of the catalog's server.",
        )
    _require_bearer_token(options)
    try:
        catalog = CatalogFactory.create({**options, TOKEN_PROVIDER: BEARER})
    except Exception as error:
        known_error = server_error(error)
        if known_error is None:
            raise
        raise known_error from error
    if catalog.data_token_enabled:
        raise NotSupportedError(
            f"The catalog's server at {uri} hands out a key of the storage for each table (option "
            "data-token.enabled), which this job cannot pass to its executors yet.",
            "Switch the option off, and give the storage's key to the catalog connection.",
        )
    return catalog


def _require_bearer_token(options: Mapping[str, str]) -> None:
    provider = options.get(TOKEN_PROVIDER, BEARER)
    if provider != BEARER:
        raise NotSupportedError(
            f"Catalog option token.provider = {provider} is not supported: it was never run.",
            f"Use a bearer token: token.provider = {BEARER}.",
        )
    if not options.get(TOKEN):
        raise CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            "The catalog connection has no token for the catalog's server.",
            "Set the token (password) of the catalog connection.",
        )


def commit_snapshot(
    catalog: Any, table: Any, previous: Any | None, snapshot: Any, entries: Sequence[Any]
) -> bool:
    """Ask the server to commit ``snapshot`` after ``previous``; return False if it did not.

    ``entries`` are the snapshot's manifest entries, from which the server keeps statistics by
    partition.

    Raises:
        OSError: the server refused the request, or it was never sent.
        TimeoutError: there was no answer that tells what the server did.
    """
    from pypaimon.api import rest_exception as kinds
    from pypaimon.write.file_store_commit import FileStoreCommit

    counting = FileStoreCommit(None, table, snapshot.commit_user)
    statistics = counting._generate_partition_statistics(list(entries))  # noqa: SLF001
    uuid = table.catalog_environment.uuid
    before = previous.uuid if previous else None
    try:
        return bool(
            catalog.rest_api.commit_snapshot(table.identifier, uuid, before, snapshot, statistics)
        )
    except kinds.RESTException as error:
        raise request_failure(error, f"commit snapshot {snapshot.id}") from error


def alter_table(catalog: Any, table: Any, changes: Sequence[Any]) -> bool:
    """Ask the server to make the changes; return False if it has a column of theirs already.

    Raises:
        OSError: the server refused the request, or it was never sent.
        TimeoutError: there was no answer that tells what the server did.
    """
    from pypaimon.api import rest_exception as kinds

    try:
        catalog.rest_api.alter_table(table.identifier, [_sendable(each) for each in changes])
    except kinds.AlreadyExistsException:
        return False
    except kinds.RESTException as error:
        raise request_failure(error, f"alter {table.identifier.get_full_name()}") from error
    return True


def drop_table(catalog: Any, table: Any) -> None:
    """Ask the server to drop the table; one that is not there is no error.

    Raises:
        OSError: the server refused the request, or it was never sent.
        TimeoutError: there was no answer that tells what the server did.
    """
    from pypaimon.api import rest_exception as kinds

    try:
        catalog.rest_api.drop_table(table.identifier)
    except kinds.NoSuchResourceException:
        return
    except kinds.RESTException as error:
        raise request_failure(error, f"drop {table.identifier.get_full_name()}") from error


def _sendable(change: Any) -> Any:
    """Pypaimon's change such that its JSON can be made: of places, it cannot be."""
    move = getattr(change, "move", None)
    if move is None:
        return change
    return replace(change, move=replace(move, type=move.type.name))


def request_failure(error: Any, task: str) -> OSError:
    """The failure of a request; a TimeoutError if the server may have done it."""
    from pypaimon.api import rest_exception as kinds

    refusals = (
        kinds.BadRequestException,
        kinds.NotAuthorizedException,
        kinds.ForbiddenException,
        kinds.NoSuchResourceException,
        kinds.AlreadyExistsException,
        kinds.NotImplementedException,
    )
    problem = f"the catalog's server did not {task} ({type(error.__cause__ or error).__name__})"
    certain = isinstance(error, refusals) or _was_never_sent(error)
    return OSError(problem) if certain else TimeoutError(problem)


def _was_never_sent(error: Exception) -> bool:
    from requests.exceptions import ConnectionError as NoConnection
    from requests.exceptions import ConnectTimeout
    from urllib3.exceptions import NewConnectionError

    cause = error.__cause__
    if not isinstance(cause, NoConnection):
        return False
    reason = getattr(cause.args[0], "reason", None) if cause.args else None
    return isinstance(cause, ConnectTimeout) or isinstance(reason, NewConnectionError)


def server_error(error: BaseException) -> JobError | None:
    """The job's error for a failure of a catalog's server; None if ``error`` is not one."""
    from pypaimon.api import rest_exception as kinds
    from pypaimon.catalog import catalog_exception as catalog_kinds

    forbidden = (
        kinds.ForbiddenException,
        catalog_kinds.DatabaseNoPermissionException,
        catalog_kinds.TableNoPermissionException,
    )
    if isinstance(error, kinds.NotAuthorizedException):
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            "The catalog's server does not accept the token.",
            "Correct the token (password) of the catalog connection.",
        )
    if isinstance(error, forbidden):
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            "The catalog's server does not give the token the right to do this.",
            "Give the token of the catalog connection the right to read and change the table.",
        )
    if isinstance(error, kinds.NoSuchResourceException):
        return CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            "The catalog's server does not know the warehouse or the table.",
            "Correct uri, or the option rest.warehouse, of the catalog connection.",
        )
    if isinstance(error, kinds.RESTException):
        kind = type(error.__cause__ or error).__name__
        return InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"The catalog's server did not answer as it should ({kind}).",
            "Check the field uri of the catalog connection, and look at the server's own log.",
        )
    return None
