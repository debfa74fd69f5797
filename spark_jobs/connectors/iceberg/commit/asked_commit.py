"""Asking a catalog once for a commit, and what its answer says. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.errors import JobError


def asked(
    catalog: IcebergCatalog,
    table: Any,
    required: tuple[Any, ...],
    changes: tuple[Any, ...],
    look_up: Callable[[], bool | None],
) -> bool:
    """Ask to commit to pyiceberg's ``table``; False: it has moved on, so that it never will.

    ``look_up`` tells whether the commit was made; None: not, but it may still be.

    Raises:
        TimeoutError: there was no answer that tells what the catalog did.
        OSError: it certainly refused.
    """
    answer = catalog.committed(table, required, changes)
    if answer == "yes":
        return True
    if answer == "unknown":
        raise TimeoutError("the catalog's answer does not tell what it did")
    # A request may arrive twice: then the refusal is of the second one.
    try:
        was_made = look_up()
    except JobError as error:
        raise TimeoutError("the catalog refused, and did not show the table") from error
    if was_made is None and answer == "no":
        raise OSError("the catalog refused")
    return bool(was_made)
