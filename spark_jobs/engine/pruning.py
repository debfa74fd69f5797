"""Files that a statement need not read: by partition, and by the source's keys (rule 11).

Partition predicates are evaluated by Spark on the distinct partition values, so that they mean the
same as on rows. Join keys are compared as Python values, for types on which Python's order is
Spark's; NaN and the two zeros never get here, because floating point keys do not prune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from spark_jobs.engine.analyzed import AnalyzedMerge
from spark_jobs.engine.expressions import Expression, JoinKey
from spark_jobs.engine.older_spark import try_cast
from spark_jobs.engine.source import MaterializedSource
from spark_jobs.spi.tables import PlannedFile

_INTEGRAL = (ByteType, ShortType, IntegerType, LongType)
_COMPARABLE = (*_INTEGRAL, StringType, DateType, DecimalType)
_DISTINCT_LIMIT = 10_000

Partition = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pruning:
    """Chooses the files that a statement reads."""

    spark: SparkSession
    merge: AnalyzedMerge
    files: Sequence[PlannedFile]

    def needed(self, source: MaterializedSource | None) -> Sequence[PlannedFile]:
        """The files in which a clause may apply; ``source`` is None where there is none."""
        files = self._by_conditions()
        return files if source is None else self._by_source(files, source)

    def _by_conditions(self) -> Sequence[PlannedFile]:
        """The files in which a clause may apply, whatever the source holds."""
        region = self.merge.region
        can_match = self._partitions_where(region.on_predicates)
        if region.by_source_predicates is None:
            return [file for file in self.files if can_match(file)]
        tests = [can_match, *map(self._partitions_where, region.by_source_predicates)]
        return [file for file in self.files if any(test(file) for test in tests)]

    def _by_source(
        self, files: Sequence[PlannedFile], source: MaterializedSource
    ) -> Sequence[PlannedFile]:
        """Those of ``files`` that may hold a row equal to a source row in every join key."""
        region = self.merge.region
        if region.by_source_predicates is not None or not files:
            return files
        for key in region.join_keys:
            if _is_comparable(key):
                files = self._pruned_by(key, files, source)
        return files

    def _partitions_where(self, predicates: Sequence[Expression]) -> Callable[[PlannedFile], bool]:
        """A test of whether all of ``predicates`` that read partitions alone hold in a file."""
        keys = self.merge.table.partition_keys
        decisive = [each for each in predicates if each.target_columns <= set(keys)]
        types = [self.merge.target_types[key] for key in keys]
        if not decisive or not all(isinstance(each, _COMPARABLE) for each in types):
            return lambda file: True
        schema = StructType([StructField(key, each) for key, each in zip(keys, types, strict=True)])
        distinct = list({self._partition(file) for file in self.files})
        frame = self.spark.createDataFrame(distinct, schema).alias(self.merge.target_alias)
        for predicate in decisive:
            frame = frame.where(predicate.column)
        holding = {tuple(row) for row in frame.collect()}
        return lambda file: self._partition(file) in holding

    def _partition(self, file: PlannedFile) -> Partition:
        return tuple(file.partition[key] for key in self.merge.table.partition_keys)

    def _pruned_by(
        self, key: JoinKey, files: Sequence[PlannedFile], source: MaterializedSource
    ) -> Sequence[PlannedFile]:
        column = key.target_column
        values = source.frame.alias(self.merge.source_alias).select(
            try_cast(key.source.column, key.type).alias("value")
        )
        if column in self.merge.table.partition_keys:
            found = values.where("value IS NOT NULL").distinct().limit(_DISTINCT_LIMIT + 1)
            wanted = {row["value"] for row in found.collect()}
            if len(wanted) <= _DISTINCT_LIMIT:
                return [file for file in files if file.partition[column] in wanted]
        bounds = values.agg(F.min("value").alias("low"), F.max("value").alias("high")).first()
        if bounds is None or bounds["low"] is None:
            return []
        return [file for file in files if _overlaps(file, column, bounds.asDict())]


def _overlaps(file: PlannedFile, column: str, bounds: Mapping[str, Any]) -> bool:
    known = file.ranges.get(column)
    if known is None:
        return True
    if known.null_count is not None and known.null_count == file.row_count:
        return False
    if known.minimum is None or known.maximum is None:
        return True
    return bool(known.minimum <= bounds["high"] and known.maximum >= bounds["low"])


def _is_comparable(key: JoinKey) -> bool:
    given, wanted = key.source.type, key.type
    return isinstance(wanted, _COMPARABLE) and _same_family(given, wanted)


def _same_family(given: DataType, wanted: DataType) -> bool:
    both_integral = isinstance(given, _INTEGRAL) and isinstance(wanted, _INTEGRAL)
    return both_integral or given == wanted
