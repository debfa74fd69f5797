"""Who may not write where: errors with the path, the user of the process, and the remedy.

A file system and its clients tell by number, by class or by text; here it is read once.
"""

from __future__ import annotations

import errno
import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from spark_jobs.contract.locations import Place
from spark_jobs.contract.operation_files import FOLDER, MARKS_FOLDER, is_dry_run
from spark_jobs.errors import CatalogError, ErrorCode, excerpt

DENIED: Final = frozenset((errno.EACCES, errno.EPERM))
# How pyarrow spells what an object store refuses.
_DENIED_BY_STORE: Final = tuple(
    f"AWS Error {kind}"
    for kind in ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH")
)
CODES: Final = {
    "warehouse": ErrorCode.WAREHOUSE_ACCESS_DENIED,
    "workspace": ErrorCode.WORKSPACE_ACCESS_DENIED,
}
_OTHER_PLACE: Final = {
    "warehouse": "",
    "workspace": " Or name another folder as workspace in the catalog connection.",
}
# Characters.
_SHOWN: Final = 500


def is_denial(error: BaseException) -> bool:
    """Whether a storage refused for want of a right."""
    if not isinstance(error, OSError):
        return False
    is_told = isinstance(error, PermissionError) or error.errno in DENIED
    return is_told or any(kind in str(error) for kind in _DENIED_BY_STORE)


def is_refused_write(error: BaseException) -> bool:
    """The same, or the disk can only be read: of what is written into a warehouse or workspace."""
    return is_denial(error) or (isinstance(error, OSError) and error.errno == errno.EROFS)


def denied(problem: str, place: Place | None = None) -> CatalogError:
    """The error for what this process may not do; ``problem`` names the path.

    ``place``: whether it lies in the workspace; None: the path tells.
    """
    called = place or place_in(problem)
    return CatalogError(
        CODES[called],
        f"{_user()} may not do this: {_first_line(problem)}",
        "Give this user the right to read and write there, and in the folders below: others may "
        "have made them. In an object store, the key of the catalog connection needs it."
        f"{_OTHER_PLACE[called]}",
    )


def place_in(text: str) -> Place:
    """Whether a path in ``text`` is one of the files that jobs keep in the workspace."""
    names = text.replace("'", "/").replace('"', "/").split("/")
    is_of_job = not {FOLDER, MARKS_FOLDER}.isdisjoint(names) or any(map(is_dry_run, names))
    return "workspace" if is_of_job else "warehouse"


@contextmanager
def named_denials() -> Iterator[None]:
    """Within it, what a storage refuses for want of a right is an error with a code.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED, WORKSPACE_ACCESS_DENIED.
    """
    try:
        yield
    except OSError as error:
        if not is_denial(error):
            raise
        raise denied(str(error)) from error


@contextmanager
def writing_workspace() -> Iterator[None]:
    """Within it, where all is about the workspace, what is refused there is an error with a code.

    Raises:
        CatalogError: WORKSPACE_ACCESS_DENIED.
    """
    try:
        yield
    except OSError as error:
        if not is_refused_write(error):
            raise
        raise denied(str(error), "workspace") from error


def _user() -> str:
    """The user of this process and its machine."""
    number = os.geteuid()
    try:
        name = f"{pwd.getpwuid(number).pw_name} ({number})"
    except KeyError:
        name = str(number)
    return f"User {name} on {socket.gethostname()}"


def _first_line(text: str) -> str:
    return excerpt(text.strip().partition("\n")[0], _SHOWN)
