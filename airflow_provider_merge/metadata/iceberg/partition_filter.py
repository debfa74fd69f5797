"""Which partitions are asked for: some or all partition fields with their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.iceberg.manifests import Manifest
from airflow_provider_merge.metadata.iceberg.partition_values import PartitionField
from spark_jobs.contract.sql_text import sql_literal


@dataclass(frozen=True, slots=True)
class IcebergPartitionFilter:
    """A value for some fields of the newest spec, by their position; None stands for NULL.

    Files of an older spec that lacks one of the fields are in no partition that is asked for.
    """

    fields: tuple[PartitionField, ...]
    wanted: Mapping[int, Any]

    @classmethod
    def of(
        cls, fields: tuple[PartitionField, ...], values: Mapping[str, Any]
    ) -> IcebergPartitionFilter:
        """The filter for values that are given as text or in the field's own type.

        Raises:
            RequestError: REQUEST_INVALID: no partition field has that name, or a value is not of
                its type.
        """
        positions = {field.name.lower(): index for index, field in enumerate(fields)}
        wanted: dict[int, Any] = {}
        for name, value in values.items():
            index = positions.get(str(name).lower())
            if index is None:
                known = ", ".join(field.name for field in fields)
                raise invalid(
                    "partition",
                    f"{name!r} is not a partition field of the table",
                    f"Its partition fields: {known}." if known else "It is not partitioned.",
                )
            try:
                wanted[index] = fields[index].parsed(value)
            except (ValueError, ArithmeticError):
                kind = fields[index].kind
                raise invalid(
                    "partition", f"{name}: {sql_literal(value)} is not a valid {kind}"
                ) from None
        return cls(fields, wanted)

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of the fields that have a value here, in their order."""
        return tuple(sorted(self.wanted))

    @property
    def values(self) -> tuple[Any, ...]:
        """What is asked for, in the order of ``columns``."""
        return tuple(self.wanted[index] for index in self.columns)

    def values_of(self, partition: Mapping[str, str | None]) -> tuple[Any, ...]:
        """What a partition, whose values are text, has in ``columns``; of another spec, nothing."""
        chosen = [self.fields[index] for index in self.columns]
        if any(field.name not in partition for field in chosen):
            return (partition,)
        return tuple(field.parsed(partition[field.name]) for field in chosen)

    def fits(self, partition: Mapping[str, str | None]) -> bool:
        """Whether a partition, whose values are text, is asked for."""
        return self.values_of(partition) == self.values

    def may_hold(self, manifest: Manifest, spec: Sequence[PartitionField | None]) -> bool:
        """Whether a manifest of a spec can list a file of a partition that is asked for."""
        places = {field.name: place for place, field in enumerate(spec) if field is not None}
        for index, value in self.wanted.items():
            place = places.get(self.fields[index].name)
            if place is None:
                return False
            if place >= len(manifest.bounds):
                continue
            bounds = manifest.bounds[place]
            if value is None and not bounds.has_null:
                return False
            field = spec[place]
            if value is None or field is None or field.kind != self.fields[index].kind:
                continue
            if not field.may_lie(value, bounds.low, bounds.high):
                return False
        return True
