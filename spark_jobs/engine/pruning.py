"""Files that a statement need not read: by partition, and by the source's keys (rule 11).

What conditions tell of a file is for Spark to say (``file_conditions``). Join keys are compared as
Python values, for types on which Python's order is Spark's; NaN and the two zeros never get here,
because floating point keys do not prune.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
)

from spark_jobs.engine.analyzed import AnalyzedMerge
from spark_jobs.engine.expressions import JoinKey
from spark_jobs.engine.file_conditions import FileConditions, FileTruth
from spark_jobs.engine.older_spark import try_cast
from spark_jobs.engine.source import MaterializedSource
from spark_jobs.spi.tables import PlannedFile

_INTEGRAL = (ByteType, ShortType, IntegerType, LongType)
_COMPARABLE = (*_INTEGRAL, StringType, DateType, DecimalType)
_DISTINCT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """``scanned`` files have to be read; of ``dropped`` ones every row is deleted, unread."""

    scanned: Sequence[PlannedFile]
    dropped: Sequence[PlannedFile]


@dataclass(frozen=True, slots=True)
class Pruning:
    """Chooses the files that a statement reads."""

    spark: SparkSession
    merge: AnalyzedMerge
    files: Sequence[PlannedFile]

    def needed(self, source: MaterializedSource | None) -> NeededFiles:
        """The files in which a clause may apply; ``source`` is None where there is none."""
        region = self.merge.region
        conditions = FileConditions(
            spark=self.spark,
            alias=self.merge.target_alias,
            partition_keys=self.merge.table.partition_keys,
            types=self.merge.target_types,
            files=self.files,
        )
        if source is None:
            truth = conditions.truth(region.on_predicates)
            return _split(self.files, truth, dropping=self.merge.deletes_all_it_selects)
        if region.by_source_predicates is None:
            may_apply = [each.may for each in conditions.truth(region.on_predicates)]
            files = [file for file, may in zip(self.files, may_apply, strict=True) if may]
            return NeededFiles(self._by_source(files, source), ())
        tests = [region.on_predicates, *region.by_source_predicates]
        truths = zip(*map(conditions.truth, tests), strict=True)
        decided = zip(self.files, truths, strict=True)
        return NeededFiles([file for file, each in decided if any(t.may for t in each)], ())

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


def _split(
    files: Sequence[PlannedFile], truths: Sequence[FileTruth], *, dropping: bool
) -> NeededFiles:
    decided = list(zip(files, truths, strict=True))
    dropped = [file for file, truth in decided if dropping and truth.must]
    ordinals = {file.ordinal for file in dropped}
    scanned = [file for file, truth in decided if truth.may and file.ordinal not in ordinals]
    return NeededFiles(scanned, dropped)


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
