"""The locale of a job's processes, whose character set is the one in which Java knows file names.

Where a name has other characters, Java lists it with question marks, finds no such file, and Hadoop
leaves it out of the listing without a word. C and POSIX have ASCII, and so has a process whose
variables name a locale that its machine lacks, even for a single category (``setlocale(3)``).
"""

from __future__ import annotations

import ctypes
import locale
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from spark_jobs.errors import CatalogError, ErrorCode

ALL: Final = "LC_ALL"
# What clusters are told: Debian, Ubuntu, Alpine, Red Hat from 8 on, and every glibc from 2.35 on
# have it.
USUAL: Final = "C.UTF-8"
_COMMON: Final = (USUAL, "en_US.UTF-8")
# Of glibc; musl has the first six.
_CATEGORIES: Final = (
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
)
# LC_ALL_MASK: the numbers of these categories in locale.h, where 6 is LC_ALL.
_ALL_MASK: Final = sum(1 << number for number in range(len(_CATEGORIES) + 1) if number != 6)
_UTF8: Final = "UTF-8"


def utf8_variables(variables: Mapping[str, str]) -> dict[str, str] | None:
    """What gives processes of this machine a UTF-8 locale, beside ``variables``; None: nothing can.

    A UTF-8 locale of the user's stays. On systems other than Linux, Java does not ask the locale.
    """
    if sys.platform != "linux" or _is_utf8(variables):
        return {}
    found = next((name for name in _candidates() if charset(name) == _UTF8), None)
    return None if found is None else {ALL: found}


def require_utf8(variables: Mapping[str, str]) -> None:
    """Check that a driver on this machine can have a UTF-8 locale.

    Raises:
        CatalogError: LOCALE_MISSING.
    """
    if utf8_variables(variables) is None:
        raise CatalogError(
            ErrorCode.LOCALE_MISSING,
            f"This worker, {socket.gethostname()}, has no UTF-8 locale: Spark's Java would not see "
            "files whose names have other characters than ASCII.",
            f"Install one into its image, such as {USUAL} (glibc-minimal-langpack, libc-bin or "
            "musl-locales have it).",
        )


def cluster_conf(*, cluster_mode: bool) -> dict[str, str]:
    """Settings that give the processes of a job on other machines a UTF-8 locale."""
    names = ["spark.executorEnv"]
    if cluster_mode:
        names += ["spark.yarn.appMasterEnv", "spark.kubernetes.driverEnv"]
    return {f"{name}.{ALL}": USUAL for name in names}


def charset(name: str) -> str | None:
    """The character set of a locale, such as ``ANSI_X3.4-1968``; None if this machine lacks it.

    Nothing of this process changes, as it would with ``locale.setlocale``.
    """
    library = ctypes.CDLL(None)
    library.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    library.newlocale.restype = ctypes.c_void_p
    library.nl_langinfo_l.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.nl_langinfo_l.restype = ctypes.c_char_p
    library.freelocale.argtypes = (ctypes.c_void_p,)
    library.freelocale.restype = None
    made = library.newlocale(_ALL_MASK, name.encode(errors="surrogateescape"), None)
    if not made:
        return None
    try:
        found: bytes = library.nl_langinfo_l(locale.CODESET, made)
        return found.decode("ascii")
    finally:
        library.freelocale(made)


def _is_utf8(variables: Mapping[str, str]) -> bool:
    """Whether ``setlocale(LC_ALL, "")`` has success under ``variables``, and leads to UTF-8."""
    characters, *others = (_named(variables, category) for category in _CATEGORIES)
    return charset(characters) == _UTF8 and None not in map(charset, {*others})


def _named(variables: Mapping[str, str], category: str) -> str:
    """The locale that variables name for a category; an empty variable is none."""
    return variables.get(ALL) or variables.get(category) or variables.get("LANG") or "C"


def _candidates() -> Iterator[str]:
    yield from _COMMON
    try:
        told = subprocess.run(
            ["locale", "-a"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return
    yield from told.stdout.decode(errors="surrogateescape").split()
