"""Checks that the Parquet or ORC files of a source hold the columns that a statement reads of it.

Spark makes NULLs of columns and fields that a file lacks, leaves out those that only some files
have, and reads some types as others: an INT as a TINYINT without its upper bits, and what does not
fit from an ORC file as NULL. Driver only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructType

from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.source.file_columns import (
    FIXED_BINARY,
    INSTANT_OF_ORC,
    NANOSECONDS,
    UNKNOWN,
    Footer,
    Footers,
    Types,
    folder_columns,
)
from spark_jobs.engine.source.source_files import SourceFiles
from spark_jobs.errors import CatalogError, ErrorCode, JobError, NotSupportedError

_REMEDY: Final = (
    "Correct the files or the source's schema; options={'mergeSchema': True} makes NULLs of what a "
    "file lacks."
)
_AS_IT_IS: Final = (
    "Declare the column as it is in the files, and cast it in a query over the source."
)
_ALL_ALIKE: Final = (
    "Give the source a schema with types that hold the values of all files, or write the files "
    "with the same types."
)
# Parquet stores all of them alike.
_SMALL: Final = ("TINYINT", "SMALLINT", "INT")
_WIDER: Final = {
    "TINYINT": ("SMALLINT", "INT"),
    "SMALLINT": ("INT",),
    "FLOAT": ("DOUBLE",),
    "STRING": ("BINARY",),
    "BINARY": ("STRING",),
    FIXED_BINARY: ("BINARY",),
    "UNSIGNED TINYINT": ("SMALLINT", "INT"),
    "UNSIGNED SMALLINT": ("INT",),
    "UNSIGNED INT": ("BIGINT",),
    "UNSIGNED BIGINT": ("DECIMAL(20,0)",),
    f"TIMESTAMP{NANOSECONDS}": ("BIGINT",),
    f"TIMESTAMP_NTZ{NANOSECONDS}": ("BIGINT",),
    "VOID": (*_SMALL, "DATE"),
}
# Spark reads these since version 4.
_WIDER_SINCE_4: Final = {
    **dict.fromkeys((*_SMALL, "UNSIGNED TINYINT", "UNSIGNED SMALLINT"), ("BIGINT", "DOUBLE")),
    "VOID": ("BIGINT", "DOUBLE"),
    "DATE": ("TIMESTAMP_NTZ",),
}
_COMPARED: Final = frozenset(
    {
        *(*_SMALL, "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BINARY", "VOID"),
        *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    }
)
_ONLY_PARQUET: Final = (("BINARY", "STRING"), ("DATE", "TIMESTAMP_NTZ"))
_MOST_DIGITS: Final = 38
# The digits that a decimal needs before its point.
_DIGITS: Final = {**dict.fromkeys(_SMALL, 10), "BIGINT": 20}


@dataclass(frozen=True, slots=True)
class ColumnChecks:
    """The checks of the files of a source; ``wanted`` are the types that are read from them.

    The paths of ``wanted`` are those of ``file_types``.
    """

    files: SourceFiles
    wanted: Mapping[str, str]
    is_spark_4: bool

    def require(self, footers: Footers) -> None:
        """Check all files.

        Raises:
            CatalogError: SOURCE_UNREADABLE, a file lacks a column or a field, has one that others
                lack, has one twice, or has it with a type that cannot be read as the wanted one.
            NotSupportedError: Spark cannot read a type.
        """
        known = {path for footer in footers.footers for path in footer.types}
        for footer in footers.footers:
            if self._is_positional(footer):
                continue
            in_folders = folder_columns(footer.file)
            if self._is_orc:
                self._refuse_times_of_orc(footer)
            self._require_columns(footer, in_folders, known if self._merges else {*footer.types})
            for path, wanted in self.wanted.items():
                if path in footer.types and path not in in_folders:
                    self._require_type(footer, path, wanted)

    def explain(self, footers: Footers) -> None:
        """Find a reason why Spark cannot infer the columns; ``wanted`` are those of one file.

        Raises:
            CatalogError, NotSupportedError: names the file and the column.
        """
        for footer in footers.footers:
            if self._is_orc:
                self._refuse_times_of_orc(footer)
            for path, held_type in footer.types.items():
                if held_type == UNKNOWN or _is_too_long(held_type):
                    raise NotSupportedError(
                        f"{self._place(footer)}: column {path} holds {held_type}, which Spark does "
                        "not read.",
                        "Give the source a schema without the column, or write it in another type.",
                    )
            for path in footer.repeated:
                raise self._unreadable(footer, f"has two columns {path}, in any case")
            for path, held_type in footer.types.items():
                if self.wanted.get(path, held_type) != held_type:
                    self._require_type(footer, path, self.wanted[path])
                    self._require_type(footers.footers[0], path, held_type)

    @property
    def _merges(self) -> bool:
        options = {name.lower(): each for name, each in self.files.source.options.items()}
        return options.get("mergeschema", "").lower() == "true"

    @property
    def _is_orc(self) -> bool:
        return self.files.source.format.lower() == "orc"

    def _is_positional(self, footer: Footer) -> bool:
        """Whether columns go by position, because old Hive wrote ORC files without names."""
        return self._is_orc and all(name.startswith("_col") for name in footer.columns)

    def _require_columns(self, footer: Footer, in_folders: set[str], has: set[str]) -> None:
        if not footer.types:
            raise self._unreadable(footer, "has no columns")
        missing = [each for each in self.wanted if each not in has and each not in in_folders]
        if missing:
            names = ", ".join(sorted(each for each in has if "." not in each))
            raise self._unreadable(footer, f"has no column {missing[0]}; it has {names}")
        repeated = [each for each in footer.repeated if each in self.wanted]
        if repeated:
            raise self._unreadable(footer, f"has two columns {repeated[0]}, in any case")
        unknown = sorted(each for each in footer.types if not self._is_known(each))
        if unknown and self.files.source.schema is None:
            raise self._unreadable(
                footer, f"has a column {unknown[0]}, which other files of the source lack"
            )

    def _is_known(self, path: str) -> bool:
        """Whether a column or field is wanted, or part of a value whose parts are not compared."""
        above = path
        while above and above not in self.wanted:
            above = above.rpartition(".")[0]
        return above == path or self.wanted.get(above) == UNKNOWN

    def _refuse_times_of_orc(self, footer: Footer) -> None:
        """Refuse timestamps that Spark does not read, or pyarrow not all of them.

        Spark reads nothing of a file with a column of the one kind. pyarrow has 64 bits for
        nanoseconds, so years before 1678 and after 2261 would be others.
        """
        for path, kind in footer.types.items():
            if kind == INSTANT_OF_ORC:
                problem = f"is a {kind}, which Spark does not read from ORC files"
            elif (
                kind.startswith("TIMESTAMP")
                and path in self.wanted
                and not self.files.is_listed_by_spark
            ):
                problem = "is a TIMESTAMP, which is not read from ORC files without Spark's reader"
            else:
                continue
            raise NotSupportedError(
                f"{self._place(footer)}: column {path} {problem}.", "Write Parquet files."
            )

    def _require_type(self, footer: Footer, path: str, wanted: str) -> None:
        held_type = footer.types[path]
        if _is_read_as(held_type, wanted, is_orc=self._is_orc, is_spark_4=self.is_spark_4):
            return
        remedy = _ALL_ALIKE if self.files.source.schema is None else _AS_IT_IS
        if wanted.endswith(NANOSECONDS):
            remedy = "Write the timestamps of all files in the same unit."
        raise self._unreadable(
            footer, f"column {path} holds {held_type} where {wanted} is expected", remedy
        )

    def _unreadable(self, footer: Footer, problem: str, remedy: str = _REMEDY) -> JobError:
        return CatalogError(
            ErrorCode.SOURCE_UNREADABLE, f"{self._place(footer)} {problem}.", remedy
        )

    def _place(self, footer: Footer) -> str:
        names = {file.path: file.name for file in self.files.files}
        return f"{source_text(self.files.source)}: {names[footer.file]}"


def type_names(schema: StructType) -> dict[str, str]:
    """The types of all columns and their parts, by their paths as in ``file_types``.

    ``UNKNOWN`` ones are not compared with those of files, nor are parts that files have of them.
    """
    return dict(_fields(schema, ""))


def _is_read_as(found: str, wanted: str, *, is_orc: bool, is_spark_4: bool) -> bool:
    """Whether Spark reads all values of a file's type ``found``, as they are, as ``wanted``."""
    if UNKNOWN in (found, wanted) or found == wanted:
        return True
    if is_orc and (found, wanted) == ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return True
    if is_orc and (found, wanted) in _ONLY_PARQUET:
        return False
    if wanted in _WIDER.get(found, ()):
        return True
    if not (is_spark_4 or is_orc):
        return False
    if wanted.startswith("DECIMAL"):
        return _holds(wanted, found)
    return wanted in _WIDER_SINCE_4.get(found, ())


def _is_too_long(found: str) -> bool:
    """Whether a type of a file is a decimal with more digits than Spark's have."""
    return found.startswith("DECIMAL") and _digits(found)[0] > _MOST_DIGITS


def _fields(struct: StructType, above: str) -> Types:
    for field in struct:
        yield from _named(f"{above}{field.name.lower()}", field.dataType)


def _named(path: str, kind: DataType) -> Types:
    if isinstance(kind, StructType):
        yield path, "STRUCT"
        yield from _fields(kind, f"{path}.")
    elif isinstance(kind, ArrayType):
        yield path, "ARRAY"
        yield from _named(f"{path}.element", kind.elementType)
    elif isinstance(kind, MapType):
        yield path, "MAP"
        yield from _named(f"{path}.key", kind.keyType)
        yield from _named(f"{path}.value", kind.valueType)
    elif isinstance(kind, DecimalType):
        yield path, f"DECIMAL({kind.precision},{kind.scale})"
    else:
        # A collation follows the name.
        name = kind.simpleString().upper().partition(" ")[0]
        yield path, name if name in _COMPARED else UNKNOWN


def _holds(decimal: str, found: str) -> bool:
    precision, scale = _digits(decimal)
    if found.startswith("DECIMAL"):
        other_precision, other_scale = _digits(found)
        return scale >= other_scale and precision - scale >= other_precision - other_scale
    return found in _DIGITS and precision - scale >= _DIGITS[found]


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("DECIMAL(").removesuffix(")").split(",")
    return int(precision), int(scale)
