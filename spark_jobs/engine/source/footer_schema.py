"""The schema of one Parquet file on this machine, as Spark would infer it with a separate job.

After Spark's ``ParquetToSparkSchemaConverter``, for flat columns whose type is unambiguous.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.engine.source.source_files import default_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource

# A file that Spark wrote has its schema under this key, in a notation that only Spark fully knows.
_OF_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
_PATTERN: Final = re.compile(r"[*?\[\]{}\\,]")
_PLAIN: Final[dict[str, DataType]] = {
    "BOOLEAN": BooleanType(),
    "INT32": IntegerType(),
    "INT64": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "BYTE_ARRAY": BinaryType(),
}
_WHOLE: Final[dict[int, DataType]] = {
    8: ByteType(),
    16: ShortType(),
    32: IntegerType(),
    64: LongType(),
}
_LARGEST: Final = 38
_MICROSECOND_AT_MOST: Final = ("milliseconds", "microseconds")


def footer_schema(spark: SparkSession, source: FileSource) -> StructType | None:
    """The schema, all of it nullable; None if Spark has to infer it or report the error."""
    if source.format.lower() != "parquet" or source.options or _PATTERN.search(source.path):
        return None
    if default_uri(spark, source.path) != source.path:
        return None
    path = Path(source.path.removeprefix("file://"))
    if not path.is_absolute() or path.name.startswith((".", "_")) or not path.is_file():
        return None
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return None
    if _OF_SPARK in (metadata.metadata or {}):
        return None
    columns = [metadata.schema.column(index) for index in range(metadata.num_columns)]
    names = [column.name for column in columns]
    types = [None if _is_nested(column) else _spark_type(column) for column in columns]
    if None in types or not names or len({name.lower() for name in names}) < len(names):
        return None
    return StructType([StructField(*each) for each in zip(names, types, strict=True)])  # type: ignore[arg-type]


def _is_nested(column: Any) -> bool:
    return bool(column.path != column.name or column.max_repetition_level > 0)


def _spark_type(column: Any) -> DataType | None:
    """Spark's type for a column in a footer; None if it depends on more than the footer."""
    physical = column.physical_type
    logical = json.loads(column.logical_type.to_json())
    kind = logical["Type"]
    if kind == "None":
        return _PLAIN.get(physical)
    if kind == "String" and physical == "BYTE_ARRAY":
        return StringType()
    if kind == "Date" and physical == "INT32":
        return DateType()
    if kind == "Int" and logical["isSigned"]:
        return _WHOLE.get(logical["bitWidth"])
    if kind == "Decimal" and physical != "BYTE_ARRAY" and logical["precision"] <= _LARGEST:
        return DecimalType(logical["precision"], logical["scale"])
    if kind == "Timestamp" and logical["timeUnit"] in _MICROSECOND_AT_MOST:
        return TimestampType() if logical["isAdjustedToUTC"] else TimestampNTZType()
    return None
