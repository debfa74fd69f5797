"""Commits among concurrent writers: repeated attempts, and the outcome of a single one.

Independent of the table format. A commit makes a numbered snapshot; the storage, or a catalog's
server, decides which of several writers makes the next one. Driver only.
"""

from __future__ import annotations

import contextlib
import errno
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from spark_jobs.contract.access_rights import denied, is_refused_write
from spark_jobs.errors import CommitError, ErrorCode, InternalError, JobError

_ATTEMPTS: Final = 50
# Seconds between two attempts.
_LONGEST_PAUSE: Final = 1.0
# Seconds before each try to store the same file.
_STORE_PAUSES: Final = (0.0, 0.1, 0.5)

T = TypeVar("T")


def until_committed(attempt: Callable[[int], T | None]) -> T:
    """Call ``attempt`` until it succeeds, and return its result.

    ``attempt`` gets its number, from 1, and returns None if another writer was faster.

    Raises:
        CommitError: COMMIT_CONFLICT; other writers were faster every time.
    """
    for number in range(_ATTEMPTS):
        time.sleep(random.uniform(0, min(0.01 * number**2, _LONGEST_PAUSE)))  # noqa: S311
        committed = attempt(number + 1)
        if committed is not None:
            return committed
    raise CommitError(
        ErrorCode.COMMIT_CONFLICT,
        f"Other writers were faster than this one {_ATTEMPTS} times.",
        "Run the statement again when fewer writers are at work on the table.",
    )


@contextlib.contextmanager
def before_publication() -> Iterator[None]:
    """Wrap the steps before publication: a failure among them publishes nothing.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED.
        InternalError: STORAGE_UNAVAILABLE, for any other failure that is not a ``JobError``.
    """
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        if is_refused_write(error):
            raise denied(f"{error}. Nothing was published.", "warehouse") from error
        raise InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"The snapshot could not be prepared: {error}",
            "Nothing was published. Check the warehouse's storage, then run the statement again.",
        ) from error


def store_once(what: str, store: Callable[[], bool], look_up: Callable[[], bool | None]) -> bool:
    """Store ``what`` (``snapshot 7``); True if it is stored, False if another has its id for good.

    ``store`` returns whether it stored it; False means that the id is taken. ``look_up`` returns
    whether what has the id is this one; None if nothing has it. If storing fails, the same is
    stored again. If its id is taken by then, ``look_up`` shows whether the failed try took it.

    Raises:
        CatalogError: WAREHOUSE_ACCESS_DENIED; it is certainly not stored.
        CommitError: COMMIT_OUTCOME_UNKNOWN.
        InternalError: STORAGE_UNAVAILABLE; it is certainly not stored.
    """
    failure: OSError | None = None
    for pause in _STORE_PAUSES:
        time.sleep(pause)
        try:
            if store():
                return True
            break
        except OSError as error:
            if not isinstance(failure, TimeoutError | ConnectionError):
                failure = error
    return failure is not None and _is_there(what, look_up, failure)


def publish_once(
    what: str,
    require_wanted: Callable[[], None],
    store: Callable[[], bool],
    look_up: Callable[[], bool | None],
    discard: Callable[[], None],
) -> bool:
    """``store_once`` if ``what`` is still wanted; ``discard`` it if it is certainly not stored.

    Raises: as ``store_once``, and what ``require_wanted`` raises.
    """
    try:
        with before_publication():
            require_wanted()
    except BaseException:
        discard()
        raise
    try:
        is_stored = store_once(what, store, look_up)
    except JobError as error:
        if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
            discard()
        raise
    if not is_stored:
        discard()
    return is_stored


def _is_there(what: str, look_up: Callable[[], bool | None], failure: OSError) -> bool:
    """Whether it is stored although storing it failed; False: another one has its id."""
    try:
        is_own = look_up()
    except (OSError, JobError) as error:
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"Storing {what} failed ({failure}), and so did looking for it.",
            "Run the statement again: it looks for its own snapshot first.",
        ) from error
    if is_own is not None:
        return is_own
    if isinstance(failure, TimeoutError | ConnectionError):
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"Storing {what} got no answer ({failure}): it may still appear.",
            "Run the statement again: it looks for its own snapshot first.",
        ) from failure
    # File systems without hard links refuse with EPERM.
    if failure.errno in (errno.EACCES, errno.EROFS):
        raise denied(f"{failure}. Nothing was published.", "warehouse") from failure
    raise InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"{what.capitalize()} could not be stored: {failure}",
        "Nothing was published. Check the warehouse's storage, then run the statement again.",
    ) from failure
