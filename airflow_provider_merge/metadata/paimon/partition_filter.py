"""Which partitions are asked for: some or all partition columns with their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.model import TableSchema
from airflow_provider_merge.metadata.paimon.binary_row import decoded, single
from spark_jobs.contract.sql_text import sql_literal

_WHOLE_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT")


@dataclass(frozen=True, slots=True)
class PaimonPartitionFilter:
    """A value for some partition columns, by their position; None stands for NULL."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    wanted: Mapping[int, Any]

    @classmethod
    def of(cls, schema: TableSchema, values: Mapping[str, Any]) -> PaimonPartitionFilter:
        """The filter for values that are given as text or in the column's own type.

        Raises:
            RequestError: REQUEST_INVALID: no partition column has that name, or a value is not of
                its type.
        """
        keys = {key.lower(): index for index, key in enumerate(schema.partition_keys)}
        types = schema.partition_types
        wanted: dict[int, Any] = {}
        for name, value in values.items():
            index = keys.get(str(name).lower())
            if index is None:
                known = ", ".join(schema.partition_keys)
                raise invalid(
                    "partition",
                    f"{name!r} is not a partition column of the table",
                    f"Its partition columns: {known}." if known else "It is not partitioned.",
                )
            try:
                wanted[index] = typed_value(value, types[index])
            except (ValueError, ArithmeticError):
                raise invalid(
                    "partition", f"{name}: {sql_literal(value)} is not a valid {types[index]}"
                ) from None
        return cls(schema.partition_keys, types, wanted)

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of the columns that have a value here, in their order."""
        return tuple(sorted(self.wanted))

    @property
    def values(self) -> tuple[Any, ...]:
        """What is asked for, in the order of ``columns``."""
        return tuple(self.wanted[index] for index in self.columns)

    def values_of(self, partition: Mapping[str, str | None]) -> tuple[Any, ...]:
        """What a partition, whose values are text, has in ``columns``."""
        return tuple(typed_value(partition[self.names[i]], self.types[i]) for i in self.columns)

    def fits(self, partition: Mapping[str, str | None]) -> bool:
        """Whether a partition, whose values are text, is asked for."""
        return self.values_of(partition) == self.values

    def keeps(self, partition: tuple[Any, ...]) -> bool:
        """Whether these are the values of a partition that is asked for."""
        return all(partition[index] == value for index, value in self.wanted.items())

    def may_hold(self, low: bytes, high: bytes) -> bool:
        """Whether a manifest whose partitions lie between two rows can list such a partition."""
        known = {index: value for index, value in self.wanted.items() if value is not None}
        if not known:
            return True
        lowest, highest = decoded(low, self.types), decoded(high, self.types)
        for index, value in known.items():
            # Nothing but NULLs, or no statistics: then neither is known.
            if lowest[index] is None or highest[index] is None:
                continue
            # Bounds of floating point leave out NaN, or are it; impossible ones say nothing.
            if isinstance(value, float) or lowest[index] > highest[index]:
                continue
            if not lowest[index] <= value <= highest[index]:
                return False
        return True


def typed_value(value: Any, kind: str) -> Any:
    """A value as partitions of this type of Paimon's have it.

    Raises:
        ValueError, ArithmeticError: it is not of this type.
    """
    name = kind.upper().partition("(")[0].partition(" ")[0]
    if value is None:
        return None
    if name in _WHOLE_NUMBERS:
        return int(str(value))
    if name == "DATE":
        return value if type(value) is date else date.fromisoformat(str(value))
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamp(value, kind.upper())
    if name == "BOOLEAN":
        if str(value).lower() not in ("true", "false"):
            raise ValueError("it is neither true nor false")
        return str(value).lower() == "true"
    if name in ("DECIMAL", "NUMERIC"):
        return Decimal(str(value))
    if name in ("FLOAT", "DOUBLE"):
        return single(float(value)) if name == "FLOAT" else float(value)
    return str(value)


def _timestamp(value: Any, kind: str) -> datetime:
    """A time as partitions have it: without an offset, in UTC where the type is a point in time."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        return moment
    if "LOCAL TIME ZONE" not in kind and not kind.startswith("TIMESTAMP_LTZ"):
        raise ValueError("the type has no time zone")
    return moment.astimezone(UTC).replace(tzinfo=None)
