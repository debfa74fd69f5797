"""The rows that changed between two snapshots of a table, as a frame. Driver only.

Where files came and went, the same rows of both are no change: the rows are counted, those that
came as 1 and those that went as -1, within each snapshot. Spark's aggregation spills, so that
memory is bounded. GROUP BY takes 0.0 and -0.0 for one value, and maps not at all, so rows are
grouped by expressions that are equal only for the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StructField,
    StructType,
)

from spark_jobs.contract.sql_text import RESERVED_PREFIX, quote
from spark_jobs.contract.table_versions import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    SNAPSHOT_ID,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)
from spark_jobs.engine.source.change_labels import FILE, ORDER, SIGN, ChangeLabels
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.arrow_tasks import map_tasks
from spark_jobs.spi.changes import GONE, ChangedFile, TableChanges
from spark_jobs.spi.tables import TableHandle

if TYPE_CHECKING:
    from spark_jobs.spi.changes import ConnectorChanges
    from spark_jobs.spi.connector import Connector


_COUNT: Final = f"{RESERVED_PREFIX}change_count"
_KEY: Final = f"{RESERVED_PREFIX}change_key_"
_ID: Final = f"{RESERVED_PREFIX}change_row_id"
_TOTAL: Final = f"{RESERVED_PREFIX}change_total"
# By the kinds of a changelog's records.
_KINDS: Final = (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE)


def refuse_taken_names(table: TableHandle) -> None:
    """Refuse a table with columns that are called as those that changes have.

    Raises:
        NotSupportedError: names the column.
    """
    taken = [n for n in table.column_names if n.lower() in (CHANGE_TYPE, SNAPSHOT_ID)]
    if taken:
        raise NotSupportedError(
            f"changes of {table.name}: its column {taken[0]} has the name of one that tells of the "
            "change.",
            "Rename the column.",
        )


def all_rows(spark: SparkSession, connector: Connector, table: TableHandle) -> DataFrame:
    """All rows of a table, as if its pinned snapshot had brought them."""
    files = connector.metadata.plan_files(table)
    rows = connector.scan.read(spark, table, files, table.column_names)
    told = F.lit(INSERT).alias(CHANGE_TYPE), F.lit(table.snapshot_id).cast("bigint")
    return rows.select(*map(quote, table.column_names), told[0], told[1].alias(SNAPSHOT_ID))


def changed_rows(
    spark: SparkSession, connector: Connector, changes: TableChanges, *, net: bool
) -> DataFrame:
    """The rows that changed.

    Columns: those of the table, then ``_change_type`` and ``_snapshot_id`` (bigint, not NULL).
    """
    assert connector.changes is not None  # noqa: S101 - it told of ``changes``
    reading = _Reading(spark, connector.changes, changes, _schema(spark, connector, changes.table))
    if changes.kind == "changelog":
        return reading.logged(net=net)
    files = _uncancelled(changes.files) if net else changes.files
    mixed = {each.snapshot_id for each in files if each.sign == GONE}
    if net and mixed:
        mixed = {each.snapshot_id for each in files}
    plain = [each for each in files if each.snapshot_id not in mixed]
    compared = [each for each in files if each.snapshot_id in mixed]
    frames = [reading.without_ids.brought(plain, net=net)] if plain or not compared else []
    if compared:
        # What differs in the end, others find by keys of their own, which may have changed.
        chosen = reading.without_ids if net else reading
        frames.append(chosen.compared(compared, net=net))
    return reduce(DataFrame.unionAll, frames)


def _schema(spark: SparkSession, connector: Connector, table: TableHandle) -> list[StructField]:
    """The columns as the connector's frames have them."""
    rows = connector.scan.read(spark, table, (), table.column_names)
    return [rows.schema[name] for name in table.column_names]


def _uncancelled(files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """The files without those whose rows came and went again."""
    counts: Counter[str] = Counter()
    for each in files:
        counts[each.rows] += each.sign
    remaining = []
    for file in files:
        if counts[file.rows] * file.sign > 0:
            counts[file.rows] -= file.sign
            remaining.append(file)
    return remaining


@dataclass(frozen=True, slots=True)
class _Reading:
    spark: SparkSession
    connector: ConnectorChanges
    changes: TableChanges
    columns: Sequence[StructField]

    @property
    def names(self) -> list[str]:
        """The columns of the table, quoted."""
        return [quote(each.name) for each in self.columns]

    def brought(self, files: Sequence[ChangedFile], *, net: bool) -> DataFrame:
        """Rows of snapshots that took none away."""
        rows = self._rows(files)
        snapshot = F.lit(self._newest) if net else F.col(SNAPSHOT_ID)
        told = F.lit(INSERT).alias(CHANGE_TYPE), snapshot.alias(SNAPSHOT_ID)
        return rows.select(*self.names, *told)

    def compared(self, files: Sequence[ChangedFile], *, net: bool) -> DataFrame:
        """Rows of snapshots that took rows away; the same rows on both sides are left out."""
        rows = self._rows(files)
        if net:
            rows = rows.withColumn(SNAPSHOT_ID, F.lit(self._newest))
        same = [_same_value(quote(each.name), each.dataType) for each in self.columns]
        odd = [each.name for each, text in zip(self.columns, same, strict=True) if text]
        keys = [
            F.expr(text).alias(f"{_KEY}{n}") if text else F.col(quote(each.name))
            for n, (each, text) in enumerate(zip(self.columns, same, strict=True))
        ]
        kept = [F.first(quote(name)).alias(name) for name in odd]
        own = [_ID] if self.changes.has_row_ids else []
        counted = rows.groupBy(*keys, *own, SNAPSHOT_ID).agg(F.sum(SIGN).alias(_COUNT), *kept)
        counted = counted.filter(f"{_COUNT} <> 0")
        if own:
            values = [
                f"{_KEY}{n}" if t else quote(e.name)
                for n, (e, t) in enumerate(zip(self.columns, same, strict=True))
            ]
            counted = _left_of_values(counted, [*values, SNAPSHOT_ID])
        left = counted.select(
            *(*self.names, *own, SNAPSHOT_ID, _COUNT),
            F.explode(F.array_repeat(F.lit(0), F.abs(F.col(_COUNT)).cast("int"))).alias(ORDER),
        )
        return self._typed(left, net=net)

    def logged(self, *, net: bool) -> DataFrame:
        """The records of changelog files; ``net``: the last one of each key.

        A compaction may give no numbers to the records that it writes. Each has files of its
        own, which a snapshot lists in their order, and one change of a key.
        """
        files = self.changes.files
        rows = self._rows(files)
        if net:
            newest_first = (
                F.desc(SNAPSHOT_ID),
                F.desc(FILE),
                F.desc(ORDER),
                F.desc(F.col(SIGN) != _KINDS.index(UPDATE_BEFORE)),
            )
            of_key = Window.partitionBy(*map(quote, self.changes.key)).orderBy(*newest_first)
            rows = rows.withColumn(_COUNT, F.row_number().over(of_key)).filter(f"{_COUNT} = 1")
        kinds = F.array(*map(F.lit, _KINDS))
        change_type = F.element_at(kinds, F.col(SIGN) + 1)
        if net:
            change_type = F.when(change_type == UPDATE_BEFORE, DELETE).otherwise(change_type)
        return rows.select(*self.names, change_type.alias(CHANGE_TYPE), SNAPSHOT_ID)

    @property
    def without_ids(self) -> _Reading:
        """The same, where ids of rows do not matter."""
        return replace(self, changes=replace(self.changes, has_row_ids=False))

    @property
    def _newest(self) -> int:
        assert self.changes.table.snapshot_id is not None  # noqa: S101 - it has changes
        return self.changes.table.snapshot_id

    def _typed(self, rows: DataFrame, *, net: bool) -> DataFrame:
        """Inserts and deletes; where one of both has the same key, they are an update."""
        is_new = F.col(_COUNT) > 0
        kind = F.when(is_new, INSERT).otherwise(DELETE)
        own = [_ID] if self.changes.has_row_ids else [*map(quote, self.changes.key)]
        if own:
            of_key = Window.partitionBy(SNAPSHOT_ID, *own)
            came, gone = (F.sum(F.when(each, 1).otherwise(0)) for each in (is_new, ~is_new))
            is_update = (came.over(of_key) == 1) & (gone.over(of_key) == 1)
            if self.changes.has_row_ids:
                is_update &= F.col(_ID).isNotNull()
            update = F.when(is_new, UPDATE_AFTER).otherwise(UPDATE_BEFORE)
            kind = F.when(is_update, update).otherwise(kind)
        found = rows.select(*self.names, kind.alias(CHANGE_TYPE), SNAPSHOT_ID)
        return found.filter(f"{CHANGE_TYPE} <> '{UPDATE_BEFORE}'") if net else found

    def _rows(self, files: Sequence[ChangedFile]) -> DataFrame:
        """The rows of ``files`` with their sign and snapshot; of a changelog, kind and order."""
        read = self.connector.changed_rows(self.spark, self.changes, files)
        ids = [_field(_ID, "bigint")] if self.changes.has_row_ids else []
        labels = ChangeLabels(
            read.function,
            len(self.columns) + len(ids),
            np.array([each.sign for each in files], np.int32),
            np.array([each.snapshot_id for each in files], np.int64),
            is_log=self.changes.kind == "changelog",
        )
        fields = [_numbered(n, each.dataType) for n, each in enumerate(self.columns)]
        fields += [*ids, _field(SIGN, "int"), _field(SNAPSHOT_ID, "bigint")]
        fields += [_field(FILE, "int"), _field(ORDER, "bigint")]
        found = map_tasks(self.spark, len(read.files), labels, StructType(fields))
        names = [each.name for each in (*self.columns, *ids)]
        return found.toDF(*names, SIGN, SNAPSHOT_ID, FILE, ORDER)


def _left_of_values(rows: DataFrame, values: Sequence[str]) -> DataFrame:
    """Of ``rows`` with ids, those that are left where equal values that came and went meet."""
    of_values = Window.partitionBy(*values)
    rows = rows.withColumn(_TOTAL, F.sum(_COUNT).over(of_values))
    in_turn = Window.partitionBy(*values, F.signum(_COUNT)).orderBy(_ID)
    before = F.coalesce(
        F.sum(F.abs(_COUNT)).over(in_turn.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0)
    )
    left = F.greatest(F.least(F.abs(_COUNT), F.abs(_TOTAL) - before), F.lit(0))
    is_left = F.signum(_COUNT) == F.signum(_TOTAL)
    rows = rows.withColumn(_COUNT, F.when(is_left, left * F.signum(_COUNT)).otherwise(0))
    return rows.filter(f"{_COUNT} <> 0")


def _field(name: str, kind: str) -> StructField:
    return StructField(name, IntegerType() if kind == "int" else LongType())


def _numbered(number: int, kind: DataType) -> StructField:
    return StructField(f"c{number}", kind)


def _same_value(value: str, kind: DataType, depth: int = 0) -> str:
    """The expression for the expression ``value`` of type ``kind``; empty: the value itself."""
    inner = f"v{depth}"
    if isinstance(kind, FloatType | DoubleType):
        return f"CAST({value} AS STRING)"
    if isinstance(kind, ArrayType):
        element = _same_value(inner, kind.elementType, depth + 1)
        return f"transform({value}, {inner} -> {element})" if element else ""
    if isinstance(kind, MapType):
        key = _same_value(f"{inner}.key", kind.keyType, depth + 1) or f"{inner}.key"
        held = _same_value(f"{inner}.value", kind.valueType, depth + 1) or f"{inner}.value"
        pair = f"named_struct('k', {key}, 'v', {held})"
        return f"transform(map_entries({value}), {inner} -> {pair})"
    if isinstance(kind, StructType):
        return _same_struct(value, kind, depth)
    return ""


def _same_struct(value: str, kind: StructType, depth: int) -> str:
    places = [f"{value}.{quote(field.name)}" for field in kind]
    parts = [
        _same_value(place, field.dataType, depth) for place, field in zip(places, kind, strict=True)
    ]
    if not any(parts):
        return ""
    named = ", ".join(f"'f{n}', {part or places[n]}" for n, part in enumerate(parts))
    return f"IF({value} IS NULL, NULL, named_struct({named}))"
