"""The columns that a file source declares in the statement. Driver only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.analysis.char_columns import char_lengths
from spark_jobs.engine.runtime.older_spark import parsed_type
from spark_jobs.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from spark_jobs.contract.request import FileSource


def declared_schema(source: FileSource) -> StructType:
    """The columns of ``source.schema``, with the types that they have in frames.

    Raises:
        RequestError: REQUEST_INVALID, it is not a list of columns.
    """
    declared = _declared(source)
    return StructType([StructField(each.name, _without_length(each.dataType)) for each in declared])


def declared_lengths(source: FileSource) -> dict[str, int]:
    """The lengths of the columns that ``source.schema`` declares as CHAR.

    Raises:
        RequestError: as ``declared_schema``.
    """
    if source.schema is None:
        return {}
    return char_lengths({each.name: each.dataType for each in _declared(source)})


def _declared(source: FileSource) -> StructType:
    assert source.schema is not None  # noqa: S101 - the caller has checked
    remedy = "Write it as id BIGINT, name STRING."
    try:
        schema = parsed_type(source.schema)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        problem = f"{source_text(source)}: schema: {reason}"
        raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy) from None
    if not isinstance(schema, StructType):
        problem = f"{source_text(source)}: schema: {source.schema!r} is not a list of columns"
        raise RequestError(ErrorCode.REQUEST_INVALID, problem, remedy)
    return schema


def _without_length(kind: DataType) -> DataType:
    """``kind`` with STRING for VARCHAR and CHAR: only the target's lengths are enforced."""
    if isinstance(kind, VarcharType | CharType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_without_length(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_without_length(kind.keyType), _without_length(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _without_length(each.dataType)) for each in kind])
    return kind
