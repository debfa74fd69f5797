"""Values of partition fields: as manifests have them, as people write them, and as bounds.

The text is that of Iceberg's own names of partitions: ``2026-01-31`` for a day, ``2026-01`` for a
month, ``2026-01-31-07`` for an hour. After the Iceberg specification, "Partition Transforms" and
"Binary single-value serialization".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from airflow_provider_merge.metadata.checked import whole
from spark_jobs.contract.partition_names import NAN, partition_text

_EPOCH: Final = date(1970, 1, 1)
_DAYS: Final = _EPOCH.toordinal()
_FIRST: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as values have it, without a time zone
_MONTH: Final = re.compile(r"(-?\d{1,6})-(\d{2})")
_HOUR: Final = re.compile(r"(\d{4}-\d{2}-\d{2})-(\d{2})")
_WHOLE: Final = ("int", "long")
_TIMES: Final = ("year", "month", "hour")
_POINTS: Final = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec. ``kind`` is the type of its values, or a transform's own.

    ``kind`` is ``year``, ``month`` or ``hour``, else the name of one of Iceberg's types. ``source``
    is the column, by its path; empty where it has been dropped.
    """

    name: str
    kind: str
    source: str

    def text(self, stored: Any) -> str | None:
        """The text of a value as a manifest has it; None for NULL."""
        return partition_text(self.typed(stored))

    def typed(self, value: Any) -> Any:
        """A value as it is compared and named, from the value that a manifest has."""
        if value is None:
            return None
        if self.kind == "year":
            return str(1970 + whole(value))
        if self.kind == "month":
            years, month = divmod(whole(value), 12)
            return f"{1970 + years:04d}-{month + 1:02d}"
        if self.kind == "hour":
            days, hour = divmod(whole(value), 24)
            return f"{date.fromordinal(_DAYS + days).isoformat()}-{hour:02d}"
        if self.kind == "date" and type(value) is int:
            return date.fromordinal(_DAYS + value)
        if self.kind in _POINTS and type(value) is int:
            micros = value // 1000 if self.kind.endswith("_ns") else value
            return _FIRST + timedelta(microseconds=micros)
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        return value

    def parsed(self, value: Any) -> Any:
        """What ``typed`` has for a value that people give: text, or the type's own.

        Raises:
            ValueError, ArithmeticError: it is no value of this field.
        """
        if value is None:
            return None
        if self.kind in _TIMES:
            return self.typed(self._units(str(value).strip()))
        if self.kind in _WHOLE:
            return int(str(value))
        if self.kind == "date":
            return value if type(value) is date else date.fromisoformat(str(value))
        if self.kind in _POINTS:
            return self._moment(value)
        return self._plain(value)

    def may_lie(self, value: Any, low: bytes | None, high: bytes | None) -> bool:
        """Whether a value of ``parsed`` can lie between two bounds of a manifest, inclusive.

        Bounds that are impossible say nothing.
        """
        wanted = self._bound(value)
        if wanted is None or not low or not high:
            return True
        if isinstance(wanted, int):
            lowest, highest = (int.from_bytes(each, "little", signed=True) for each in (low, high))
            return lowest <= wanted <= highest or lowest > highest
        return low <= wanted <= high or low > high

    def _bound(self, value: Any) -> int | bytes | None:
        """The value as bounds have it; None: its bounds are not compared."""
        if self.kind in _TIMES:
            return self._units(value)
        if self.kind == "date":
            return int(value.toordinal() - _DAYS)
        if self.kind in _WHOLE:
            return int(value)
        # UTF-8 has the order of code points.
        return str(value).encode() if self.kind == "string" else None

    def _units(self, text: str) -> int:
        """The years, months or hours since 1970 in a text."""
        if self.kind == "year":
            return int(text) - 1970
        parts = (_MONTH if self.kind == "month" else _HOUR).fullmatch(text)
        if not parts:
            raise ValueError(f"it is not a valid {self.kind}")
        if self.kind == "month":
            if not 1 <= int(parts[2]) <= 12:
                raise ValueError("there is no such month")
            return (int(parts[1]) - 1970) * 12 + int(parts[2]) - 1
        if int(parts[2]) > 23:
            raise ValueError("there is no such hour")
        return (date.fromisoformat(parts[1]) - _EPOCH) // timedelta(days=1) * 24 + int(parts[2])

    def _moment(self, value: Any) -> datetime:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if moment.tzinfo is None:
            return moment
        if not self.kind.startswith("timestamptz"):
            raise ValueError("the type has no time zone")
        return moment.astimezone(UTC).replace(tzinfo=None)

    def _plain(self, value: Any) -> Any:
        if self.kind == "boolean":
            if str(value).lower() not in ("true", "false"):
                raise ValueError("it is neither true nor false")
            return str(value).lower() == "true"
        if self.kind.startswith("decimal"):
            return Decimal(str(value))
        if self.kind in ("float", "double"):
            number = float(value)
            # NaN does not equal itself.
            return NAN if math.isnan(number) else number
        if self.kind == "uuid":
            return value if isinstance(value, UUID) else UUID(str(value))
        if self.kind.startswith(("binary", "fixed")):
            return value if isinstance(value, bytes) else bytes.fromhex(str(value))
        return str(value)
