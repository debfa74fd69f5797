"""Partition specs of a table: constants for the partition columns, and what matches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_jobs.contract.arguments import NO_SESSION
from spark_jobs.contract.identifiers import unquoted
from spark_jobs.contract.inserts import PartitionSpec
from spark_jobs.contract.plain_constants import Constant, is_unclear_day, plain_constant
from spark_jobs.engine.analysis.partition_values import comparable
from spark_jobs.engine.analysis.spark_constants import SparkConstants
from spark_jobs.engine.runtime.names import find_name
from spark_jobs.errors import (
    AnalysisError,
    DataError,
    ErrorCode,
    NotSupportedError,
    RequestError,
    excerpt,
)
from spark_jobs.spi.tables import TableHandle

Constants = Mapping[str, Constant]
# Characters of a text in an error.
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class PartitionSpecs:
    """Evaluates specs of ``table``; ``others`` evaluates constants that are not plain.

    ``others`` is None if the job has no session.
    """

    table: TableHandle
    others: SparkConstants | None

    def constants(self, spec: PartitionSpec, where: str) -> Constants:
        """The values of ``spec`` by the table's own names; ``where`` names the spec in errors.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND for a name that is not a partition column,
                TYPE_MISMATCH, EXPRESSION_NOT_ALLOWED for a value that is not a constant.
            DataError: VALUE_NOT_STORABLE.
            RequestError: REQUEST_INVALID for a value that needs a session.
        """
        texts = {self._key(name, where): text for name, text in spec.items()}
        declared = {each.name: each.type for each in self.table.partitioned_by}
        for name, text in texts.items():
            _require_whole(f"{where}: {name}", text, declared[name])
        plain = {name: plain_constant(text, declared[name]) for name, text in texts.items()}
        constants = {name: constant for name, constant in plain.items() if constant is not None}
        if len(constants) == len(texts):
            return constants
        if self.others is None:
            name = next(name for name in texts if name not in constants)
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"{where}: {name}: {texts[name]} needs a Spark session",
                f"Start the job without {NO_SESSION}.",
            )
        return self.others.evaluated(texts, where)

    def require_keys(self, names: Sequence[str], where: str) -> None:
        """Check only the names; raises as ``constants``."""
        for name in names:
            self._key(name, where)

    def _key(self, name: str, where: str) -> str:
        keys = [each.name for each in self.table.partitioned_by]
        key = find_name(unquoted(name), keys)
        if key is not None:
            return key
        if not keys:
            problem = f"{self.table.name} has no partitions"
        elif find_name(unquoted(name), self.table.column_names):
            problem = f"{name} is not a partition column of {self.table.name}"
        else:
            problem = f"{name} is not a column of {self.table.name}"
        remedy = f"Its partition columns are: {', '.join(keys)}." if keys else "Leave it out."
        raise AnalysisError(ErrorCode.COLUMN_NOT_FOUND, f"{where}: {problem}", remedy)


def _require_whole(place: str, text: str, declared: str) -> None:
    if is_unclear_day(text, declared):
        raise DataError(
            ErrorCode.VALUE_NOT_STORABLE,
            f"{place}: {excerpt(text, _SHOWN)} is not a {declared.upper()}",
            "Write a whole day, such as 2026-01-31. For a month or a year, list its days.",
        )


def belongs(partition: Mapping[str, Any], spec: Constants) -> bool:
    """Whether a partition, given as values by field, matches a spec.

    Raises:
        NotSupportedError: its value of a field is not known.
    """
    return all(
        comparable(value_of(partition, name)) == comparable(constant.value)
        for name, constant in spec.items()
    )


def value_of(partition: Mapping[str, Any], name: str) -> Any:
    """The value of a partition field.

    Raises:
        NotSupportedError: it is not known.
    """
    if name not in partition:
        raise NotSupportedError(
            f"The table has files whose value of the partition field {name} is not known, because "
            "they are partitioned in an older way, or by values that cannot be compared here.",
            "Rewrite older files by the table's partitions of today, or replace the whole table.",
        )
    return partition[name]
