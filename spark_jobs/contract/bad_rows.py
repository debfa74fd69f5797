"""How a file source may treat records that cannot be read, and checks of these settings."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.locations import FILE_SCHEME, require_absolute
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES

OnBadRows = Literal["fail", "quarantine"]

# Formats in which single records can be bad.
_FORMATS: Final = ("avro", "csv", "json", "text")
_STRICT: Final = "FAILFAST"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)", re.DOTALL)
# Schemes that are names of the same storage.
_SAME_SCHEME: Final = {FILE_SCHEME: "", **dict.fromkeys(S3_SCHEMES, "s3")}
_BRACES = re.compile(r"\{([^{}]*)\}")


def check_on_bad_rows(
    on_bad_rows: OnBadRows | None, format_: str, options: Mapping[str, str]
) -> None:
    """Refuse an unknown value, and a quarantine with a format or option that leaves it empty.

    Raises:
        RequestError: REQUEST_INVALID, naming the field.
    """
    known = get_args(OnBadRows)
    if on_bad_rows is not None:
        require_among(on_bad_rows, known, "on_bad_rows")
    if on_bad_rows != "quarantine":
        return
    require(
        format_.lower() in _FORMATS,
        "on_bad_rows",
        f"files of the format {format_!r} have no single records to set aside",
        f"Quarantine is for: {', '.join(_FORMATS)}. Leave on_bad_rows out: a bad file fails.",
    )
    modes = [value for name, value in options.items() if name.lower() == "mode"]
    for mode in modes:
        require(
            mode.upper() == _STRICT,
            "options.mode",
            f"{mode!r} accepts bad records, which on_bad_rows='quarantine' sets aside",
            "Leave out one of the two.",
        )


def check_quarantine(on_bad_rows: OnBadRows | None, quarantine: str | None, path: str) -> None:
    """Refuse a folder that is missing, superfluous, relative, or within what ``path`` reads.

    Raises:
        RequestError: REQUEST_INVALID, naming the field.
    """
    if on_bad_rows != "quarantine":
        _require_none("quarantine", quarantine)
        return
    require(
        quarantine is not None,
        "quarantine",
        "is missing, but on_bad_rows is 'quarantine'",
        "Name the folder for bad records: /path or scheme://path.",
    )
    folder = quarantine or ""
    require_absolute("quarantine", folder)
    require(
        not _is_read(folder, path),
        "quarantine",
        f"{folder!r} lies in what the source reads, {path!r}: bad records would be read as data",
        "Choose a folder outside of path.",
    )


def check_max_bad_rows(on_bad_rows: OnBadRows | None, limit: float | None) -> None:
    """Refuse a limit that is neither a share (below 1) nor a number of records (from 1).

    Raises:
        RequestError: REQUEST_INVALID, naming the field.
    """
    if on_bad_rows != "quarantine":
        _require_none("max_bad_rows", limit)
    elif limit is not None:
        require(
            0 < limit < 1 or (limit >= 1 and limit % 1 == 0),
            "max_bad_rows",
            f"{limit!r} is neither a share nor a number of records",
            "Write a share between 0 and 1, such as 0.01, or a whole number from 1. Without a "
            "quarantine the first bad record is an error.",
        )


def _require_none(name: str, value: str | float | None) -> None:
    require(
        value is None,
        name,
        "is given, but on_bad_rows is not 'quarantine'",
        f"Write on_bad_rows='quarantine', or leave {name} out.",
    )


def _is_read(folder: str, path: str) -> bool:
    """Whether ``path``, which may be a Hadoop glob, reads files below ``folder``."""
    if not (path.startswith("/") or _URI.fullmatch(path)):
        return False
    parts = _parts(folder)
    for each in _alternatives(path):
        glob = _parts(re.sub(r"\\(.)", r"[\1]", each).replace("[^", "[!"))
        if len(glob) <= len(parts) and all(map(fnmatchcase, parts, glob)):
            return True
    return False


def _parts(place: str) -> list[str]:
    """The scheme of a path or URI, and its folders, the first of which is the authority."""
    uri = _URI.fullmatch(place)
    scheme = uri[1].lower() if uri else FILE_SCHEME
    below = posixpath.normpath((uri[2] if uri else place).lstrip("/"))
    folders = [] if below == "." else below.split("/")
    return [_SAME_SCHEME.get(scheme, scheme), *folders]


def _alternatives(glob: str) -> list[str]:
    """The globs that a glob with braces expands to."""
    braces = _BRACES.search(glob)
    if braces is None:
        return [glob]
    before, after = glob[: braces.start()], glob[braces.end() :]
    choices = braces[1].split(",")
    return [each for one in choices for each in _alternatives(f"{before}{one}{after}")]
