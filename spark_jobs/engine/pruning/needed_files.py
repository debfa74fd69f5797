"""The files that a statement needs to read, by its conditions and the source's keys (rule 11).

Spark evaluates the conditions (``file_conditions``). Join keys are compared as Python values, only
for types that Python orders as Spark does (``spi.evidence``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.engine.analysis.analyzed import AnalyzedMerge
from spark_jobs.engine.analysis.expressions import JoinKey
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.pruning.dynamic_filters import comparable_keys, key_value
from spark_jobs.engine.pruning.file_conditions import FileConditions, FileTruth
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.engine.runtime.sql_text import named
from spark_jobs.engine.source.materialized import MaterializedSource
from spark_jobs.spi.evidence import DynamicFilter
from spark_jobs.spi.tables import PlannedFile

_DISTINCT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """``scanned`` files have to be read; ``dropped`` files lose every row and are not read."""

    scanned: Sequence[PlannedFile]
    dropped: Sequence[PlannedFile]


@dataclass(frozen=True, slots=True)
class Pruning:
    """Chooses the files that a statement reads; ``source`` is None if it has none.

    ``dynamic_filter`` is the source's, if it has one.
    """

    spark: SparkSession
    merge: AnalyzedMerge
    source: MaterializedSource | None
    dynamic_filter: DynamicFilter | None
    moment: StatementTime

    def touched(self, files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        """The files among ``files`` to which a clause may apply: a ``ReadSet``."""
        needed = self.needed(files)
        return [*needed.scanned, *needed.dropped]

    def needed(self, files: Sequence[PlannedFile]) -> NeededFiles:
        """The files to which a clause may apply."""
        source = self.source
        read_set = self.merge.read_set
        conditions = FileConditions(
            spark=self.spark,
            alias=self.merge.target_alias,
            partition_keys=self.merge.table.partition_keys,
            types=self.merge.target_types,
            files=files,
            moment=self.moment,
        )
        if source is None:
            truth = conditions.truth(read_set.on_predicates)
            return _split(files, truth, dropping=self.merge.deletes_all_it_selects)
        if read_set.by_source_predicates is None:
            may_apply = [each.may for each in conditions.truth(read_set.on_predicates)]
            kept = [file for file, may in zip(files, may_apply, strict=True) if may]
            return NeededFiles(self._by_source(kept, source), ())
        tests = [read_set.on_predicates, *read_set.by_source_predicates]
        truths = zip(*map(conditions.truth, tests), strict=True)
        decided = zip(files, truths, strict=True)
        return NeededFiles([file for file, each in decided if any(t.may for t in each)], ())

    def _by_source(
        self, files: Sequence[PlannedFile], source: MaterializedSource
    ) -> Sequence[PlannedFile]:
        """The files that may contain, for every join key, a row that equals a source row in it."""
        if self.dynamic_filter is not None:
            for column, values in self.dynamic_filter.values.items():
                files = self._holding(column, values, files)
            return files
        for key in comparable_keys(self.merge) if files else ():
            files = self._pruned_by(key, files, source)
        return files

    def _holding(
        self, column: str, values: pa.Array | pa.ChunkedArray, files: Sequence[PlannedFile]
    ) -> Sequence[PlannedFile]:
        """The files that may contain one of ``values`` (ascending)."""
        if not len(values):
            return []
        if not _fit_python(values[0], values[-1]):
            return files
        if column in self.merge.table.partition_keys:
            wanted = set(values.to_pylist())
            return [file for file in files if file.partition[column] in wanted]

        def has_value_within(low: Any, high: Any) -> bool:
            first = bisect_left(values, low, key=lambda each: each.as_py())
            return first < len(values) and bool(values[first].as_py() <= high)

        return [file for file in files if _may_hold(file, column, has_value_within)]

    def _pruned_by(
        self, key: JoinKey, files: Sequence[PlannedFile], source: MaterializedSource
    ) -> Sequence[PlannedFile]:
        column = key.target_column
        keys = source.frame.alias(self.merge.source_alias).selectExpr(
            named(key_value(key), "value")
        )
        values = self.moment.fixed(keys)
        if column in self.merge.table.partition_keys:
            distinct = values.where("value IS NOT NULL").distinct().limit(_DISTINCT_LIMIT + 1)
            key_values = collected_as_arrow(distinct.sort("value")).column(0)
            if len(key_values) <= _DISTINCT_LIMIT:
                return self._holding(column, key_values, files)
        bounds = values.agg(F.min("value").alias("low"), F.max("value").alias("high"))
        ends = [each[0] for each in collected_as_arrow(bounds).columns]
        if not ends[0].is_valid:
            return []
        if not _fit_python(*ends):
            return files
        least, most = (each.as_py() for each in ends)

        def overlaps(low: Any, high: Any) -> bool:
            return bool(low <= most and high >= least)

        return [file for file in files if _may_hold(file, column, overlaps)]


def _fit_python(*values: pa.Scalar) -> bool:
    """Whether all values between these have a counterpart in Python, which lacks some dates."""
    try:
        return all(each.as_py() is not None for each in values)
    except OverflowError:
        return False


def _split(
    files: Sequence[PlannedFile], truths: Sequence[FileTruth], *, dropping: bool
) -> NeededFiles:
    decided = list(zip(files, truths, strict=True))
    dropped = [
        file
        for file, truth in decided
        if dropping and truth.must and file.has_exact_count and not file.records_deletes
    ]
    ordinals = {file.ordinal for file in dropped}
    scanned = [file for file, truth in decided if truth.may and file.ordinal not in ordinals]
    return NeededFiles(scanned, dropped)


def _may_hold(file: PlannedFile, column: str, is_wanted_within: Callable[[Any, Any], bool]) -> bool:
    """Whether, by a column's statistics, the file may contain a wanted value.

    ``is_wanted_within`` decides this from the smallest and the largest value in the file.
    """
    known = file.known(column)
    if known.null_count is not None and known.null_count == file.row_count:
        return False
    if known.minimum is None or known.maximum is None:
        return True
    return is_wanted_within(known.minimum, known.maximum)
