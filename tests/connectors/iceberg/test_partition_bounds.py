"""What a partition says about its column: never less than the rows that may be in it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from spark_jobs.connectors.iceberg.format.schema import IcebergField, IcebergType
from spark_jobs.connectors.iceberg.format.values import big_endian, bound
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart, partition_ranges
from spark_jobs.spi.tables import ColumnRange


def range_of(kind: str, transform: str, value: object) -> ColumnRange:
    field = IcebergField(1, "n", IcebergType(kind), required=False)
    part = PartitionPart(1000, "n_part", transform, field)
    ((_, found),) = partition_ranges([part], {1000: value}, 10)
    return found


@pytest.mark.parametrize(
    ("kind", "value", "bounds"),
    [
        ("int", 20, (20, 29)),
        ("int", -10, (-10, -1)),
        ("int", 2_147_483_630, (2_147_483_630, 2_147_483_639)),
        # -2147483648 is there, too: truncated to -2147483650, which wraps around.
        ("int", 2_147_483_640, (None, None)),
        ("int", 2_147_483_646, (None, None)),
        ("long", 2**63 - 10, (2**63 - 10, 2**63 - 1)),
        ("long", 2**63 - 8, (None, None)),
        # The column may have been an INT when the file was written.
        ("long", 2_147_483_640, (None, None)),
        ("long", 2_147_483_650, (2_147_483_650, 2_147_483_659)),
    ],
)
def test_a_truncated_number_that_may_have_wrapped_says_nothing(
    kind: str, value: int, bounds: tuple[int | None, int | None]
) -> None:
    assert range_of(kind, "truncate[10]", value) == ColumnRange(*bounds, 0)


def test_truncated_decimals_do_not_wrap() -> None:
    found = range_of("decimal(9, 2)", "truncate[10]", big_endian(-1000))

    assert found == ColumnRange(Decimal("-10.00"), Decimal("-9.91"), 0)


def test_bounds_of_a_column_that_was_a_date_are_days() -> None:
    as_date = bound(IcebergType("timestamp"), (19_000).to_bytes(4, "little", signed=True))

    assert as_date == bound(
        IcebergType("timestamp"), (19_000 * 86_400_000_000).to_bytes(8, "little", signed=True)
    )
