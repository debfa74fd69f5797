"""The columns of landed files: declared by the source, or found in the files. Driver only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow.fs as pafs
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.arrow_types import arrow_type
from spark_jobs.contract.source_names import placed_source, source_text
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.engine.source.declared_columns import declared_schema
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError, RequestError
from spark_jobs.landing.csv_header import blanks_remedy
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.files import FilePart
from spark_jobs.landing.options import SourceOptions
from spark_jobs.landing.records import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.contract.request import FileSource
    from spark_jobs.engine.source.source_files import SourceFiles

_ATOMIC: Final = (
    *(BooleanType, NumericType, StringType, BinaryType, DateType, TimestampType, TimestampNTZType),
)
_CORRUPT: Final = "__merge_corrupt_record"


def source_schema(spark: SparkSession, files: SourceFiles) -> StructType:
    """The source's columns; undeclared partition columns come last, as in Spark.

    Raises:
        RequestError: REQUEST_INVALID, the declared schema is not a list of columns.
        CatalogError: SOURCE_UNREADABLE.
        NotSupportedError: the columns cannot be found in the files.
    """
    source = files.source
    if source.schema is not None:
        schema = declared_schema(source)
    elif source.format.lower() == "text":
        schema = StructType([StructField("value", StringType())])
    elif source.format.lower() == "avro":
        schema = _of_avro(files)
    elif source.format.lower() == "json" or _option(source, "inferschema") == "true":
        schema = _inferred(spark, files)
    else:
        schema = _of_header(files)
    declared = {name.lower() for name in schema.names}
    added = [
        StructField(name, kind)
        for name, kind in files.partition_types.items()
        if name.lower() not in declared
    ]
    return StructType([*schema.fields, *added])


def columns_of(source: FileSource, schema: StructType) -> tuple[Column, ...]:
    """The columns of ``schema`` in the form that readers take.

    Raises:
        RequestError: REQUEST_INVALID, two columns have the same name.
        NotSupportedError: a type that no file of the format holds.
    """
    names = [name.lower() for name in schema.names]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"{source_text(source)}: schema: {name} occurs more than once",
                "Give each column a name of its own.",
            )
    is_flat = source.format.lower() in ("csv", "text")
    return tuple(_column(source, field, is_flat=is_flat) for field in schema)


def _column(source: FileSource, field: StructField, *, is_flat: bool) -> Column:
    kind = field.dataType
    if not _is_readable(kind, is_flat=is_flat):
        raise NotSupportedError(
            f"{source_text(source)}: column {field.name}: no {source.format} file holds values of "
            f"{kind.simpleString()}.",
            "Declare it as STRING and convert it in a query over the source.",
        )
    return Column(field.name, arrow_type(kind), kind.simpleString().upper())


def _is_readable(kind: DataType, *, is_flat: bool) -> bool:
    if isinstance(kind, _ATOMIC):
        return True
    if is_flat:
        return False
    if isinstance(kind, ArrayType):
        return _is_readable(kind.elementType, is_flat=False)
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, _ATOMIC) and _is_readable(kind.valueType, is_flat=False)
    if isinstance(kind, StructType):
        return all(_is_readable(each.dataType, is_flat=False) for each in kind)
    return False


def _of_header(files: SourceFiles) -> StructType:
    """STRING columns, named by the first header, or ``_c0``, ``_c1`` … if names do not count."""
    source, filesystem = files.source, _filesystem(files)
    reader = SourceOptions(source_text(source), "csv", source.options).reader((), "UTC")
    assert isinstance(reader, CsvReader)  # noqa: S101 - of the format csv
    for file in files.files:
        names = reader.first_record(filesystem, FilePart(file))
        if names is None:
            continue
        if not reader.has_header or reader.by_position:
            names = [f"_c{i}" for i in range(len(names))]
        _require_names(source, file.name, names)
        return StructType([StructField(name, StringType()) for name in names])
    return StructType([])


def _require_names(source: FileSource, file: str, names: Sequence[str]) -> None:
    lowered = [name.strip().lower() for name in names]
    for name, spelled in zip(lowered, names, strict=True):
        if not name:
            problem = "has a column without a name"
        elif lowered.count(name) > 1:
            problem = f"names {name} twice"
        elif spelled != spelled.strip():
            problem = f"has blanks around the name {name}"
        else:
            continue
        raise CatalogError(
            ErrorCode.SOURCE_UNREADABLE,
            f"{source_text(source)}: {file}, line 1: the header {problem}",
            "Give the source a schema; enforceSchema=True takes its columns by position."
            f"{blanks_remedy(names)}",
        )


def _of_avro(files: SourceFiles) -> StructType:
    from spark_jobs.landing.avro_reader import avro_types

    file = files.files[0]
    with _filesystem(files).open_input_stream(file.path, compression=None) as stream:
        types = avro_types(stream, file.name)
    ddl = ", ".join(f"{quote(name)} {kind}" for name, kind in types.items())
    return cast("StructType", parsed_type(ddl))


def _inferred(spark: SparkSession, files: SourceFiles) -> StructType:
    """The columns that Spark infers from the files, ignoring records that it cannot read."""
    source = files.source
    if not files.is_listed_by_spark:
        raise NotSupportedError(
            f"{placed_source(source)}: Spark has no file system for this path, so it cannot look "
            "for the columns.",
            "Give the source a schema.",
        )
    own = {"maxrecordbytes", "enforceschema", "mode", "columnnameofcorruptrecord"}
    options = {name: each for name, each in source.options.items() if name.lower() not in own}
    is_csv = source.format.lower() == "csv"
    defaults = {"multiLine": "true", "escape": '"'} if is_csv else {}
    reader = spark.read.format(source.format).options(**defaults).options(**options)
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
    found = reader.load(source.path).schema
    in_folders = {name.lower() for name in files.partition_types}
    return StructType(
        [
            field
            for field in found
            if field.name != _CORRUPT and field.name.lower() not in in_folders
        ]
    )


def _filesystem(files: SourceFiles) -> pafs.FileSystem:
    assert files.filesystem is not None  # noqa: S101 - refused before
    return files.filesystem


def _option(source: FileSource, name: str) -> str:
    found: dict[str, Any] = {key.lower(): value for key, value in source.options.items()}
    return str(found.get(name, "")).lower()
