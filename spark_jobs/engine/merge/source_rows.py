"""The rows of a materialised source on the driver, with the values of their join keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from spark_jobs.arrow_types import arrow_type
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.pruning.dynamic_filters import key_value
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.rows import MOST_ARRAY_BYTES


@dataclass(frozen=True, slots=True)
class SourceRows:
    """All ``rows`` with the columns of ``schema``, and the value of each key in each of them.

    A key that is NULL equals nothing; so is one that does not fit the type of the target's column.
    """

    schema: StructType
    rows: pa.Table
    keys: Sequence[pa.Array]

    @property
    def row_count(self) -> int:
        """The number of rows, which a table without columns does not tell."""
        return len(self.keys[0])

    def only(self, columns: Sequence[str]) -> SourceRows:
        """The same rows with only these columns."""
        places = [self.schema.names.index(name) for name in columns]
        fields = [self.schema.fields[place] for place in places]
        chosen = [self.rows.column(place) for place in places]
        names = [f"c{index}" for index in range(len(columns))]
        return SourceRows(StructType(fields), pa.table(chosen, names), self.keys)


def source_rows(
    source: MaterializedSource,
    columns: Sequence[str],
    keys: Sequence[JoinKey],
    alias: str,
    moment: StatementTime,
) -> SourceRows:
    """The rows of ``source``, read from its files or, if need be, by Spark.

    Raises: as ``require_small``.
    """
    of_frame = source.frame.schema
    schema = StructType([StructField(name, of_frame[name].dataType) for name in columns])
    names = [f"c{index}" for index in range(len(columns) + len(keys))]
    kinds = [*(field.dataType for field in schema), *(key.type for key in keys)]
    exact = pa.schema([(name, arrow_type(kind)) for name, kind in zip(names, kinds, strict=True)])
    values = _stored(source, keys, schema)
    if values is None:
        parts = [*map(quote, columns), *map(key_value, keys)]
        named_parts = map(named, parts, names)
        frame = source.frame.alias(alias).selectExpr(*named_parts)
        values = collected_as_arrow(moment.fixed(frame)).columns
    require_small(values)
    table = pa.table(values, names=names).cast(exact)
    of_keys = [_array(table[name]) for name in names[len(columns) :]]
    return SourceRows(schema, table.select(names[: len(columns)]), of_keys)


def require_small(columns: Iterable[pa.ChunkedArray]) -> None:
    """Check that each of ``columns`` fits into one array.

    Raises:
        NotSupportedError: it does not.
    """
    if any(column.nbytes > MOST_ARRAY_BYTES for column in columns):
        raise NotSupportedError(
            "A column of the source has more than 2 GiB, too much to be looked up.",
            "Leave the choice of the plan to the engine.",
        )


def _stored(
    source: MaterializedSource, keys: Sequence[JoinKey], schema: StructType
) -> Sequence[pa.ChunkedArray] | None:
    """The columns and keys as the source's files have them; None if Spark has to compute them."""
    if any(isinstance(each.dataType, ArrayType | MapType | StructType) for each in schema):
        return None
    plain = [key.source_column for key in keys if key.source.type == key.type]
    found = [name for name in plain if name is not None]
    return source.values([*schema.names, *found]) if len(found) == len(keys) else None


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
