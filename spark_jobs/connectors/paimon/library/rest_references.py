"""Tags, branches and rollbacks by requests to a REST catalog's server. Driver only.

All functions raise OSError where the server refused a request, or never got it, and TimeoutError
where no answer tells what it did.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from spark_jobs.connectors.paimon.library.rest_catalog import request_failure

_PAGE: Final = 1000
T = TypeVar("T")


def tagged_snapshot(catalog: Any, table: Any, tag: str) -> Any | None:
    """The snapshot of a tag; None: there is no such tag."""
    from pypaimon.api.rest_exception import NoSuchResourceException

    def get() -> Any | None:
        try:
            return catalog.rest_api.get_tag(table.identifier, tag).snapshot
        except NoSuchResourceException:
            return None

    return asked(f"tell tag {tag}", get)


def tag_names(catalog: Any, table: Any) -> list[str]:
    """The names of all tags."""
    names: list[str] = []
    token: str | None = None
    while True:
        page = asked("list tags", partial(_page, catalog, table, token))
        names += page.elements
        token = page.next_page_token
        if not token or not page.elements:
            return names


def _page(catalog: Any, table: Any, token: str | None) -> Any:
    return catalog.rest_api.list_tags_paged(table.identifier, _PAGE, token)


def create_tag(
    catalog: Any, table: Any, tag: str, snapshot_id: int, retention: timedelta | None
) -> bool:
    """Create a tag; False: there is one of that name, or the snapshot is gone."""
    from pypaimon.api import rest_exception as kinds

    retained = None
    if retention is not None:
        retained = f"{retention // timedelta(milliseconds=1)} ms"

    def create() -> bool:
        try:
            catalog.rest_api.create_tag(table.identifier, tag, snapshot_id, retained)
        except (kinds.AlreadyExistsException, kinds.NoSuchResourceException):
            return False
        return True

    return asked(f"create tag {tag}", create)


def delete_tag(catalog: Any, table: Any, tag: str) -> bool:
    """Delete a tag; False: there is none."""
    from pypaimon.api.rest_exception import NoSuchResourceException

    def delete() -> bool:
        try:
            catalog.rest_api.delete_tag(table.identifier, tag)
        except NoSuchResourceException:
            return False
        return True

    return asked(f"delete tag {tag}", delete)


def roll_back(catalog: Any, table: Any, to: int | str, after: int) -> bool:
    """Roll back to a snapshot, or a tag; False: the latest snapshot is not ``after`` any longer."""
    from pypaimon.table.instant import Instant

    instant = Instant.tag(to) if isinstance(to, str) else Instant.snapshot(to)

    def rolled_back() -> bool:
        latest = catalog.rest_api.load_snapshot(table.identifier)
        if latest is None or latest.snapshot.id != after:
            return False
        catalog.rest_api.rollback_to(table.identifier, instant, after)
        return True

    return asked("roll the table back", rolled_back)


def asked(task: str, request: Callable[[], T]) -> T:
    """The answer to a request; ``task`` is what the server was to do."""
    from pypaimon.api.rest_exception import RESTException

    try:
        return request()
    except RESTException as error:
        raise request_failure(error, task) from error


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
