"""The columns of a dimension and of its source by what they are for. Driver only.

Their times must keep the order of instants, which local times do not where clocks are put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.scd2 import ACTION, Scd2Source
from spark_jobs.contract.source_names import called
from spark_jobs.contract.table_versions import SNAPSHOT_ID
from spark_jobs.engine.analysis.analyzer import declared_types
from spark_jobs.engine.analysis.compared_types import is_comparable
from spark_jobs.engine.analysis.store_assignment import ErrorLocation, frame_type, require_storable
from spark_jobs.engine.runtime.java_names import scala_object
from spark_jobs.errors import AnalysisError, ErrorCode, NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.spi.tables import TableHandle


_TIMES: Final = (DateType, TimestampType, TimestampNTZType)
_ZONE: Final = "spark.sql.session.timeZone"


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns by their role, as target and source spell them.

    ``values`` are the target's columns that are neither keys nor its own, ``tracked`` those whose
    changes make versions, ``compared`` those that Spark compares. ``given`` has the source's column
    for each of keys and values. ``declared`` and ``types``: the target's types, as declared and as
    in frames. ``columns``: all of the target's columns.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    tracked: tuple[str, ...]
    compared: tuple[str, ...]
    valid_from: str
    valid_to: str
    current: str | None
    deleted: str | None
    given: Mapping[str, StructField]
    effective: StructField | None
    marker: StructField | None
    snapshot: StructField | None
    declared: Mapping[str, DataType]
    types: Mapping[str, DataType]
    columns: tuple[str, ...]

    @property
    def schema(self) -> StructType:
        """The columns of a source of versions."""
        fields = [StructField(name, self.types[name]) for name in self.columns]
        return StructType([*fields, StructField(ACTION, StringType())])


def roles_of(
    spec: Scd2Source, table: TableHandle, schema: StructType, changes: CdcSource | None = None
) -> Roles:
    """The columns of ``table`` and of a source with ``schema`` by their roles. Reads no data.

    ``changes``: the source, if it has change events; what orders them is not tracked by itself.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE, TYPE_MISMATCH or EXPRESSION_INVALID.
        NotSupportedError: the table's primary key does not tell versions apart.
    """
    target = _Target(spec, table)
    source = _Source(spec, schema)
    keys = tuple(target.column(each, "keys") for each in spec.keys)
    valid_from, valid_to = target.times()
    current, deleted = target.flag("current"), target.flag("deleted")
    own = {valid_from, valid_to, current, deleted}
    values = tuple(e for e in table.column_names if e not in keys and e not in own)
    given = {name: source.column(name, f"column {name} of the target") for name in (*keys, *values)}
    effective = source.named("effective")
    if spec.tracked is None:
        orders = {each.column.lower() for each in changes.sequence} if changes else set()
        orders |= set() if effective is None else {effective.name.lower()}
        tracked = tuple(each for each in values if each.lower() not in orders)
    else:
        tracked = tuple(target.column(each, "tracked") for each in spec.tracked)
    types = {each.name: frame_type(each.type) for each in table.columns}
    roles = Roles(
        keys=keys,
        values=values,
        tracked=tracked,
        compared=tuple(each for each in values if is_comparable(types[each])),
        valid_from=valid_from,
        valid_to=valid_to,
        current=current,
        deleted=deleted,
        given=given,
        effective=effective,
        marker=source.marker(),
        snapshot=source.column(SNAPSHOT_ID, "delete_marker") if spec.has_changes else None,
        declared=declared_types(table),
        types=types,
        columns=table.column_names,
    )
    _require_fitting(spec, table, roles)
    return roles


@dataclass(frozen=True, slots=True)
class _Target:
    spec: Scd2Source
    table: TableHandle

    def column(self, name: str, place: str) -> str:
        matching = [each for each in self.table.column_names if each.lower() == name.lower()]
        if not matching:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{place}: {name} is not a column of {self.table.name}",
                f"Its columns are: {', '.join(self.table.column_names)}.",
                name=name,
            )
        return matching[0]

    def times(self) -> tuple[str, str]:
        """``valid_from`` and ``valid_to``, which are of one type."""
        names = [self.column(getattr(self.spec, e), e) for e in ("valid_from", "valid_to")]
        types = {each.name: frame_type(each.type) for each in self.table.columns}
        first, second = (types[name] for name in names)
        if not isinstance(first, _TIMES) or first != second:
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"valid_from and valid_to: {names[0]} and {names[1]} are {first.simpleString()} "
                f"and {second.simpleString()}",
                "Both are DATE, both are TIMESTAMP, or both are TIMESTAMP_NTZ.",
            )
        return names[0], names[1]

    def flag(self, place: str) -> str | None:
        name = getattr(self.spec, place)
        if name is None:
            return None
        column = self.column(name, place)
        (kind,) = (each.type for each in self.table.columns if each.name == column)
        if not isinstance(frame_type(kind), BooleanType):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH, f"{place}: {column} is {kind}", "Name a BOOLEAN column."
            )
        return column


@dataclass(frozen=True, slots=True)
class _Source:
    spec: Scd2Source
    schema: StructType

    def column(self, name: str, place: str) -> StructField:
        matching = [each for each in self.schema if each.name.lower() == name.lower()]
        if not matching:
            raise AnalysisError(
                ErrorCode.COLUMN_NOT_FOUND,
                f"{place}: {called(self.spec.source)} has no column {name}",
                f"Its columns are: {', '.join(self.schema.names)}. Add it in a query (sql_source).",
                name=name,
            )
        if len(matching) > 1:
            raise AnalysisError(
                ErrorCode.AMBIGUOUS_REFERENCE,
                f"{place}: {called(self.spec.source)} has several columns {name}",
                "Give them different names in a query (sql_source).",
            )
        return matching[0]

    def named(self, place: str) -> StructField | None:
        name = getattr(self.spec, place)
        return None if name is None else self.column(name, place)

    def marker(self) -> StructField | None:
        marker = self.named("delete_marker")
        wanted = StringType if self.spec.has_changes else BooleanType
        if marker is not None and not isinstance(marker.dataType, wanted):
            raise AnalysisError(
                ErrorCode.TYPE_MISMATCH,
                f"delete_marker: {marker.name} is {marker.dataType.simpleString()}",
                "Name a BOOLEAN column of the source; make one in a query (sql_source).",
            )
        return marker


def _require_fitting(spec: Scd2Source, table: TableHandle, roles: Roles) -> None:
    for place, names in (("keys", roles.keys), ("tracked", roles.tracked)):
        for name in names:
            if not is_comparable(roles.types[name]):
                raise AnalysisError(
                    ErrorCode.TYPE_MISMATCH,
                    f"{place}: {name} is {roles.types[name].simpleString()}, whose values Spark "
                    "does not compare",
                    "List the other columns in tracked.",
                )
    if ACTION in map(str.lower, table.column_names):
        raise NotSupportedError(
            f"{table.name} has a column {ACTION}, which names what becomes of a version.",
            "Rename the column.",
        )
    open_ended = {each.name: each.nullable for each in table.columns}[roles.valid_to]
    if not open_ended and spec.open_end is None:
        raise AnalysisError(
            ErrorCode.EXPRESSION_INVALID,
            f"open_end: {roles.valid_to} is NOT NULL, so NULL cannot be the end of versions that "
            "are valid",
            "Set open_end to a date or time, such as '9999-12-31'.",
        )
    _require_key(table, roles)
    label = called(spec.source)
    for name, each in roles.given.items():
        require_storable(each.dataType, roles.declared[name], ErrorLocation(label, name))
    if roles.effective is not None:
        kind = roles.declared[roles.valid_from]
        require_storable(roles.effective.dataType, kind, ErrorLocation(label, roles.effective.name))


def _require_key(table: TableHandle, roles: Roles) -> None:
    """Check that a primary key, if there is one, tells versions apart and never changes."""
    key_columns = set(table.key_columns)
    if not key_columns:
        return
    needed = {*roles.keys, roles.valid_from}
    moving = {roles.valid_to, roles.current, roles.deleted} & key_columns
    if needed <= key_columns and not moving:
        return
    names = ", ".join(sorted(needed))
    raise NotSupportedError(
        f"The primary key of {table.name} is {', '.join(table.key_columns)}, which does not tell "
        "the versions of a thing apart, or changes when a version ends.",
        f"Make a table whose primary key is: {names}; or one without a primary key.",
    )


def require_order_of_times(spark: SparkSession, spec: Scd2Source, roles: Roles) -> None:
    """Refuse instants that become local times in a zone where an hour occurs twice.

    Raises:
        AnalysisError: TYPE_MISMATCH: versions could be stored in the wrong order.
    """
    effective, stored = roles.effective, roles.types[roles.valid_from]
    if effective is None or not isinstance(effective.dataType, TimestampType):
        return
    zone = spark.conf.get(_ZONE) or "UTC"
    if isinstance(stored, TimestampNTZType) and _puts_clocks_back(spark, zone):
        raise AnalysisError(
            ErrorCode.TYPE_MISMATCH,
            f"effective: {effective.name} is a TIMESTAMP, an instant, but {roles.valid_from} a "
            f"TIMESTAMP_NTZ, a local time. {zone}, the session's time zone, has hours that occur "
            "twice: there, a later instant can be an earlier local time",
            f"Make {spec.valid_from} and {spec.valid_to} TIMESTAMP, or set "
            "session_time_zone='UTC'.",
        )


def _puts_clocks_back(spark: SparkSession, zone: str) -> bool:
    """Whether some local time since 1970 occurs twice."""
    utilities = scala_object(spark, "org.apache.spark.sql.catalyst.util.DateTimeUtils")
    rules = utilities.getZoneId(zone).getRules()
    if not rules.getTransitionRules().isEmpty():
        return True
    return any(e.isOverlap() and e.toEpochSecond() >= 0 for e in rules.getTransitions())
