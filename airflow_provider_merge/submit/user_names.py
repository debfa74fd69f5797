"""The name of the user who runs a job. Java's Hadoop starts no Spark for a number without a name.

Kubernetes can start containers under any user id. Entry points of images, such as Airflow's and
Spark's, then add a line to ``/etc/passwd``, if they may. Where there is none, nss_wrapper (Debian's
package ``libnss-wrapper``) shows the job's processes a list of users of their own.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_jobs.errors import CatalogError, ErrorCode

_LIBRARIES: Final = ("usr/lib/*/libnss_wrapper.so", "usr/lib64/libnss_wrapper.so")
_PRELOADED: Final = "LD_PRELOAD"
_NAME: Final = "airflow"


def user_variables(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """What gives the processes of a job a user's name, beside ``variables``: mostly nothing.

    ``folder`` is the job's own: its list of users is written there.

    Raises:
        CatalogError: USER_MISSING.
    """
    if has_name(os.geteuid()):
        return {}
    library = _library()
    if library is None:
        raise CatalogError(
            ErrorCode.USER_MISSING,
            f"The user id {os.geteuid()}, under which this worker, {socket.gethostname()}, runs, "
            "has no name: Spark's Java does not start without one.",
            "Let the image's entry point add a line for it to /etc/passwd, as Airflow's own image "
            "does, or install nss_wrapper (Debian's package libnss-wrapper).",
        )
    users, groups = folder / "passwd", folder / "group"
    _write(users, [*_lines("/etc/passwd"), _user(folder)])
    _write(groups, _lines("/etc/group"))
    preloaded = [variables.get(_PRELOADED, ""), str(library)]
    return {
        _PRELOADED: " ".join(filter(None, preloaded)),
        "NSS_WRAPPER_PASSWD": str(users),
        "NSS_WRAPPER_GROUP": str(groups),
    }


def has_name(user_id: int) -> bool:
    """Whether this machine knows a name for the number of a user."""
    try:
        pwd.getpwuid(user_id)
    except KeyError:
        return False
    return True


def _user(home: Path) -> str:
    return f"{_NAME}:x:{os.geteuid()}:{os.getegid()}:{_NAME}:{home}:/bin/false"


def _library() -> Path | None:
    found = (path for pattern in _LIBRARIES for path in sorted(Path("/").glob(pattern)))
    return next(found, None)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _write(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
