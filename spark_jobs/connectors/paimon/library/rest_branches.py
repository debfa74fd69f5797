"""Branches by requests to a REST catalog's server. Driver only.

All functions raise OSError where the server refused a request, or never got it, and TimeoutError
where no answer tells what it did.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.library.rest_tags import asked


def branch_names(catalog: Any, table: Any) -> list[str]:
    """The names of all branches but main."""
    return list(asked("list branches", partial(catalog.rest_api.list_branches, table.identifier)))


def create_branch(catalog: Any, table: Any, branch: str, tag: str) -> bool:
    """Begin a branch at a tag; False: there is one of that name, or no such tag."""
    from pypaimon.api import rest_exception as kinds

    def create() -> bool:
        try:
            catalog.rest_api.create_branch(table.identifier, branch, tag)
        except (kinds.AlreadyExistsException, kinds.NoSuchResourceException):
            return False
        return True

    return asked(f"create branch {branch}", create)


def delete_branch(catalog: Any, table: Any, branch: str) -> bool:
    """Delete a branch; False: there is none."""
    from pypaimon.api.rest_exception import NoSuchResourceException

    def delete() -> bool:
        try:
            catalog.rest_api.drop_branch(table.identifier, branch)
        except NoSuchResourceException:
            return False
        return True

    return asked(f"delete branch {branch}", delete)
