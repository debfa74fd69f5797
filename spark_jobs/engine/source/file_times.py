"""Times in files of sources that Spark does not read as they are. Driver only.

pandas writes Parquet files in nanoseconds. It and pyarrow write times before 1970 to ORC files with
a negative fraction of a second, which Java's library does not read: Spark fails on the whole file.
That is looked up only after a failure, because it takes reading the times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import orc
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructField, StructType

from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.runtime.nested_arrays import parts
from spark_jobs.engine.runtime.sql_text import named, text_literal
from spark_jobs.errors import ErrorCode, NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.engine.source.source_files import SourceFiles


_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_SECOND: Final = 1_000_000_000


def as_stored(schema: StructType, nanos: Mapping[str, str]) -> StructType:
    """``schema`` with BIGINT at the paths of ``nanos``, which are those of ``file_types``."""
    return StructType(
        [StructField(each.name, _stored(each.name.lower(), each, nanos)) for each in schema]
    )


def with_timestamps(
    frame: DataFrame, nanos: Mapping[str, str], source: str, row: str | None
) -> DataFrame:
    """``frame`` with timestamps in place of the nanoseconds at the paths of ``nanos``.

    ``nanos`` maps them to the types in the files. ``source`` names the source in errors, and
    ``row`` is an SQL expression for the file and the number of a row in it, if these are known.

    Raises, when a row is evaluated:
        DataError: VALUE_NOT_STORABLE, a value has parts of a microsecond.
    """
    texts = _Conversion(nanos, source, row)
    return frame.selectExpr(
        *(
            named(texts.of(quote(each.name), each.dataType, each.name.lower()), each.name)
            for each in frame.schema
        )
    )


def _stored(path: str, field: StructField, nanos: Mapping[str, str]) -> DataType:
    return _stored_type(path, field.dataType, nanos)


def _stored_type(path: str, kind: DataType, nanos: Mapping[str, str]) -> DataType:
    if path in nanos:
        return LongType()
    if isinstance(kind, StructType):
        fields = [(each, f"{path}.{each.name.lower()}") for each in kind]
        return StructType(
            [StructField(each.name, _stored(below, each, nanos)) for each, below in fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(f"{path}.element", kind.elementType, nanos))
    if isinstance(kind, MapType):
        key = _stored_type(f"{path}.key", kind.keyType, nanos)
        return MapType(key, _stored_type(f"{path}.value", kind.valueType, nanos))
    return kind


@dataclass(frozen=True, slots=True)
class _Conversion:
    nanos: Mapping[str, str]
    source: str
    row: str | None

    def of(self, value: str, kind: DataType, path: str, depth: int = 0) -> str:
        """The value of the SQL expression ``value``, which is at ``path``, with timestamps."""
        if path in self.nanos:
            return self._timestamp(value, path)
        if not any(each.startswith(f"{path}.") for each in self.nanos):
            return value
        if isinstance(kind, StructType):
            fields = ", ".join(
                named(
                    self.of(
                        f"{value}.{quote(field.name)}",
                        field.dataType,
                        f"{path}.{field.name.lower()}",
                        depth,
                    ),
                    field.name,
                )
                for field in kind
            )
            return f"CASE WHEN {value} IS NOT NULL THEN struct({fields}) END"
        item, key = (f"{RESERVED_PREFIX}{name}_{depth}" for name in ("item", "key"))
        if isinstance(kind, MapType):
            new_key = self.of(key, kind.keyType, f"{path}.key", depth + 1)
            new = self.of(item, kind.valueType, f"{path}.value", depth + 1)
            keys = f"transform_keys({value}, ({key}, {item}) -> {new_key})"
            return f"transform_values({keys}, ({key}, {item}) -> {new})"
        assert isinstance(kind, ArrayType)  # noqa: S101 - no other type has parts
        new = self.of(item, kind.elementType, f"{path}.element", depth + 1)
        return f"transform({value}, {item} -> {new})"

    def _timestamp(self, value: str, path: str) -> str:
        micros = f"{value} div 1000"
        is_local = self.nanos[path].startswith("TIMESTAMP_NTZ")
        # Intervals multiply without rounding.
        local = f"{_EPOCH} + ({micros}) * INTERVAL '0.000001' SECOND"
        moment = local if is_local else f"timestamp_micros({micros})"
        place = text_literal(f"{self.source}: column {path}")
        row = "''" if self.row is None else f"concat(' of ', {self.row})"
        problem = text_literal(" nanoseconds after 1970 are not whole microseconds")
        failure = raised(
            ErrorCode.VALUE_NOT_STORABLE,
            f"concat({place}, {row}, ': ', {value}, {problem})",
            "Round the values where the files are written, or declare the column as BIGINT in the "
            "source's schema and round them in a query over the source.",
        )
        is_whole = f"{value} % 1000 = 0"
        return f"CASE WHEN {is_whole} THEN {moment} WHEN NOT ({is_whole}) THEN {failure} END"


def refuse_old_times(files: SourceFiles) -> None:
    """Look for a time that Spark does not read.

    Raises:
        NotSupportedError: names the file and the column.
    """
    if files.source.format.lower() != "orc" or files.filesystem is None:
        return
    for file in files.files:
        try:
            with files.filesystem.open_input_file(file.path) as stream:
                column = _old_column(orc.ORCFile(stream))
        except (OSError, pa.ArrowException):
            continue
        if column is not None:
            raise NotSupportedError(
                f"{source_text(files.source)}: {file.name}: column {column} has times before 1970 "
                "with parts of a second, which Spark does not read as pyarrow writes them to ORC "
                "files.",
                "Write Parquet files, or leave the column out.",
            )


def _old_column(file: orc.ORCFile) -> str | None:
    names: list[str] = [field.name for field in file.schema if _has_times(field.type)]
    for stripe in range(file.nstripes if names else 0):
        rows = file.read_stripe(stripe, columns=names)
        for name, column in zip(names, rows.columns, strict=True):
            if any(map(_is_old, _times(column))):
                return name
    return None


def _is_old(times: pa.Array) -> bool:
    values = times.cast(pa.timestamp("ns")).cast(pa.int64()).drop_null().to_numpy()
    return bool(np.any((values < 0) & (values % _SECOND != 0)))


def _has_times(kind: pa.DataType) -> bool:
    below = [kind.field(index).type for index in range(kind.num_fields)]
    return pa.types.is_timestamp(kind) or any(map(_has_times, below))


def _times(values: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_timestamp(values.type):
        yield values
    else:
        for part in parts(values):
            yield from _times(part)
