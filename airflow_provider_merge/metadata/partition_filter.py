"""Which partitions are asked for: some or all partition columns with their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.binary_row import decoded, single
from airflow_provider_merge.metadata.schema import TableSchema

_WHOLE_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT")


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """A value for some partition columns, by their position; None stands for NULL."""

    types: tuple[str, ...]
    wanted: Mapping[int, Any]

    @classmethod
    def of(cls, schema: TableSchema, values: Mapping[str, Any]) -> PartitionFilter:
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
                known = ", ".join(schema.partition_keys) or "none"
                raise invalid(
                    "partition",
                    f"{name!r} is no partition column of the table",
                    f"Its partition columns: {known}.",
                )
            try:
                wanted[index] = typed_value(value, types[index])
            except (ValueError, ArithmeticError):
                raise invalid("partition", f"{name}: {value!r} is no {types[index]}") from None
        return cls(types, wanted)

    @property
    def values(self) -> tuple[Any, ...]:
        """What is asked for, in the order of the columns that have a value here."""
        return tuple(self.wanted[index] for index in sorted(self.wanted))

    def fits(self, schema: TableSchema, values: Mapping[str, str | None]) -> bool:
        """Whether a partition that is asked for has these values, as text."""
        found = PartitionFilter.of(schema, values).wanted
        return all(found[index] == value for index, value in self.wanted.items())

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
        return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if name == "BOOLEAN":
        if str(value).lower() not in ("true", "false"):
            raise ValueError("it is neither true nor false")
        return str(value).lower() == "true"
    if name in ("DECIMAL", "NUMERIC"):
        return Decimal(str(value))
    if name in ("FLOAT", "DOUBLE"):
        return single(float(value)) if name == "FLOAT" else float(value)
    return str(value)
