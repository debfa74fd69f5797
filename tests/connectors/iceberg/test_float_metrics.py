"""What manifests tell of floating-point columns: bounds with both zeros, exact counts of NaN."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_tables import PlainCatalog

NAN = math.nan
SCHEMA = pa.schema(
    [("id", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("g", pa.float32())]
)
# Values of a file; its bounds, and how many are NaN. None: not told.
CASES: list[tuple[list[float | None], str | None, str | None, int | None]] = [
    ([1.5, 2.0, None], "1.5", "2.0", 0),
    ([0.0, 0.0], "-0.0", "0.0", 0),
    ([-0.0, -0.0], "-0.0", "0.0", 0),
    ([1.5, NAN, NAN], None, None, 2),
    # Iceberg's library takes a file of NaN alone for one without a number above 5.
    ([NAN, NAN], None, None, None),
    ([NAN, None], None, None, 1),
    ([None, None], None, None, 0),
]


def metrics(catalog: PlainCatalog) -> list[dict[str, Any]]:
    """Of the columns ``f`` and ``g`` of the only file."""
    table = catalog.library().load_table(("db", "t"))
    ((file,),) = [[task.file for task in table.scan().plan_files()]]
    found = []
    for number, code in ((3, "<d"), (4, "<f")):
        low, high = file.lower_bounds.get(number), file.upper_bounds.get(number)
        found.append(
            {
                "low": None if low is None else str(struct.unpack(code, low)[0]),
                "high": None if high is None else str(struct.unpack(code, high)[0]),
                "nan": file.nan_value_counts.get(number),
                "null": file.null_value_counts[number],
            }
        )
    return found


@pytest.mark.parametrize(("values", "low", "high", "nans"), CASES, ids=str)
def test_of_new_and_rewritten_files(
    tmp_path: Path, values: list[float | None], low: str | None, high: str | None, nans: int | None
) -> None:
    catalog = PlainCatalog(tmp_path)
    catalog.create(SCHEMA, {"format-version": "2"}, None)
    new = [{"id": n, "s": "x", "f": value, "g": value} for n, value in enumerate(values)]
    expected = {"low": low, "high": high, "nan": nans, "null": values.count(None)}

    DirectWrite(catalog.open()).insert(*new).publish()
    assert metrics(catalog) == [expected] * 2

    DirectWrite(catalog.open()).update(0, 0, "new").publish()
    assert metrics(catalog) == [expected] * 2
