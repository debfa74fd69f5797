"""What the texts of a request may do besides computing rows: nothing, unless settings say so.

``[merge] allow_code_in_sql`` and ``[merge] source_prefixes`` in Airflow's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final
from urllib.parse import unquote

from spark_jobs.contract.checks import require
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.locations import FILE_SCHEME
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.errors import NotSupportedError

CODE_SETTING: Final = "[merge] allow_code_in_sql"
PREFIX_SETTING: Final = "[merge] source_prefixes"
# Functions of Spark's own that call what a text names, or load it.
CODE_FUNCTIONS: Final = frozenset(
    ("reflect", "try_reflect", "java_method", "from_protobuf", "to_protobuf")
)
_FILE_OPTIONS: Final = ("path", "paths", "avroschemaurl", "rowvalidationxsdpath")
# Functions that read a file which such an option names.
FILE_FUNCTIONS: Final = frozenset(
    ("from_avro", "to_avro", "schema_of_avro", "from_xml", "schema_of_xml")
)
_FILE_FORMATS: Final = ("csv", "json", "text", "avro", "parquet", "orc", "xml", "binaryfile")
_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>.*)")
_S3: Final = ("s3n", *S3_SCHEMES)
# Fields of statements that are no expressions, but may have parentheses.
_NAMES: Final = frozenset(
    (
        *("column", "columns", "order_by", "output_path", "partition_columns"),
        *("sort_by", "zorder_by"),
        *("source", "source_alias", "target_alias"),
    )
)
# Comments and names in backticks, which may stand anywhere.
_HIDING: Final = ("`", "--", "/*")
_NEAR: Final = 40
_NO_WORD: Final = re.compile(r"\W")
# Keywords before a parenthesis that calls nothing, and behind one that selects.
_GROUPS: Final = frozenset(("AND", "BETWEEN", "ELSE", "IN", "LIKE", "NOT", "OR", "THEN", "WHEN"))
_QUERIES: Final = frozenset(("FROM", "MAP", "REDUCE", "SELECT", "TABLE", "VALUES", "WITH"))
_GLOB: Final = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class TextLimits:
    """What texts may do.

    ``allow_code``: call functions that run other code, and name functions of others.
    ``source_prefixes``: locations below which files of sources, and those that texts name, have to
    be; None: anywhere.
    """

    allow_code: bool = False
    source_prefixes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for prefix in self.source_prefixes or ():
            require(
                _normal(prefix, "file:///") is not None and not _GLOB.search(prefix),
                PREFIX_SETTING,
                f"{prefix!r} is not a location",
                "Write absolute paths or URIs without patterns, separated by commas.",
            )

    def require_file(
        self, where: str, location: str, default: str, file_format: str, options: Collection[str]
    ) -> None:
        """Check that files may be read with ``options``; the other arguments as ``require_place``.

        Raises:
            NotSupportedError: they may not.
        """
        if self.source_prefixes is None:
            return
        if file_format.lower() not in _FILE_FORMATS:
            raise _refused(where, f"the format {file_format} is not a format of files")
        if any(name.lower() in _FILE_OPTIONS for name in options):
            raise _refused(where, "an option names other files")
        self.require_place(where, location, default)

    def require_place(self, where: str, location: str, default: str) -> None:
        """Check that a location may be read; ``default`` is the URI of the default file system.

        Raises:
            NotSupportedError: it may not.
        """
        prefixes = self.source_prefixes
        if prefixes is not None and not is_within(location, prefixes, default):
            raise _refused(where, f"{location} is not below one of: {self._listed()}")

    def _listed(self) -> str:
        return ", ".join(self.source_prefixes or ()) or "nothing"


DEFAULT_LIMITS: Final = TextLimits()


def not_a_query(where: str, found: str) -> NotSupportedError:
    """The error of a text that has ``found``, where a query is expected."""
    return NotSupportedError(
        f"{where}: it is not a query, but has {found}",
        "Write one SELECT, VALUES, TABLE or FROM, perhaps after WITH.",
    )


def code_refused(where: str, problem: str) -> NotSupportedError:
    """The error of a text that runs code, or may."""
    return NotSupportedError(
        f"{where}: {problem}",
        f"Use functions of Spark's own, or set {CODE_SETTING} in Airflow's configuration: then "
        "whoever writes such a text runs code as the job's user.",
    )


def _refused(where: str, problem: str) -> NotSupportedError:
    return NotSupportedError(
        f"{where}: {problem}",
        f"{PREFIX_SETTING} in Airflow's configuration says which files sources may read.",
    )


def is_within(location: str, prefixes: tuple[str, ...], default: str) -> bool:
    """Whether all files of a location, which may have patterns, are below one of the prefixes.

    Links are not followed, on no store. ``default``: the URI of the file system of paths without a
    scheme.
    """
    place = _normal(location, default)
    if place is None:
        return False
    root, path = place
    glob = _GLOB.search(path)
    # What stands before the first pattern, without the name that the pattern is in.
    fixed = path if glob is None else path[: path.rindex("/", 0, glob.start() + 1) + 1]
    for prefix in prefixes:
        wanted = _normal(prefix, default)
        if wanted is None or wanted[0] != root:
            continue
        folder = wanted[1].rstrip("/")
        if fixed.startswith(f"{folder}/") or (fixed == folder and glob is None):
            return True
    return False


def _normal(location: str, default: str) -> tuple[str, str] | None:
    """Store and path of a location; None if it may mean more than one place.

    Stores read names in different ways: what one of them may take for the way up, for an escape or
    for two paths is none.
    """
    parts = _URI.fullmatch(location)
    if parts is None:
        base = _URI.fullmatch(default)
        if base is None or not location.startswith("/"):
            return None
        scheme, host, path = base["scheme"], base["host"] or "", location
    else:
        scheme, host, path = parts["scheme"], parts["host"] or "", parts["path"]
    path = re.sub("/+", "/", path or "/")
    if not path.startswith("/") or "\\" in location or not location.isprintable():
        return None
    if _leads_up(path) or _has_folders_in_braces(path):
        return None
    return _store(scheme.lower(), host), path


def _store(scheme: str, host: str) -> str:
    if scheme in _S3:
        return f"s3://{host}"
    if scheme == FILE_SCHEME:
        return f"{FILE_SCHEME}://{'' if host == 'localhost' else host}"
    return f"{scheme}://{host.lower() if scheme == HDFS_SCHEME else host}"


def _leads_up(path: str) -> bool:
    """Whether it does for anybody, also for who decodes what a URI escapes."""
    if any(part in (".", "..") for part in re.split(r"[/{},]", path)):
        return True
    decoded = unquote(path)
    return decoded != path and _leads_up(decoded)


def _has_folders_in_braces(path: str) -> bool:
    depth = 0
    for character in path:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "/" and depth:
            return True
    return depth != 0


def expressions(statement: object) -> Iterator[tuple[str, str]]:
    """The texts of a request's statement that may call functions, each with its place."""
    yield from _texts(statement, "statement")


def _texts(part: Any, place: str) -> Iterator[tuple[str, str]]:
    if is_dataclass(part):
        for name in (field.name for field in fields(part) if field.name not in _NAMES):
            yield from _texts(getattr(part, name), f"{place}.{name}")
    elif isinstance(part, Mapping):
        for name, child in part.items():
            yield from _texts(child, f"{place}.{name}")
    elif isinstance(part, tuple):
        for number, child in enumerate(part):
            yield from _texts(child, f"{place}[{number}]")
    elif isinstance(part, str) and may_call(part):
        yield place, part


def may_call(expression: str) -> bool:
    """Whether an expression may call a function or have a subquery; long lists of values do not.

    Both need a parenthesis, with a name before or a keyword behind it.
    """
    if any(mark in expression for mark in _HIDING):
        return True
    place = -1
    while (place := expression.find("(", place + 1)) >= 0:
        before = expression[max(place - _NEAR, 0) : place].rstrip()
        behind = expression[place + 1 : place + 1 + _NEAR].lstrip()
        if not behind or (not before and place > _NEAR):
            return True
        # Spark's parser reads letters in upper case.
        name, word = _NO_WORD.split(before)[-1], _NO_WORD.split(behind)[0]
        if (name and name.upper() not in _GROUPS) or word.upper() in _QUERIES:
            return True
    return False
