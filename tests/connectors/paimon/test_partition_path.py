"""Partition directories are spelled as pypaimon (and so Paimon's Java) spells them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.format.types import timestamp_precision
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.paths import PartitionKey, PartitionLayout

DEFAULT = "__DEFAULT_PARTITION__"
CASES: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.text().filter(lambda text: not text.isspace() or text.isascii()),
    "VARCHAR(9)": st.sampled_from(["a*b", "x=y %", "ü", "/", "a:b", "\t", "\x7f", "'\"#?\\{}[]^"]),
    "BOOLEAN": st.booleans(),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DECIMAL(10, 2)": st.integers(-(10**9), 10**9).map(lambda i: Decimal(i).scaleb(-2)),
    "DECIMAL(38, 10)": st.integers(-(10**12), 10**12).map(lambda i: Decimal(i).scaleb(-10)),
    "FLOAT": st.floats(0.0010000000474974513, 1e7, width=32, exclude_max=True).flatmap(
        lambda number: st.sampled_from([number, -number, 0.0])
    ),
    "DOUBLE": st.floats(1e-3, 1e7, exclude_max=True).flatmap(
        lambda number: st.sampled_from([number, -number, 0.0])
    ),
    "DATE": st.dates(),
    "TIMESTAMP(0)": st.datetimes().map(lambda d: d.replace(microsecond=0)),
    "TIMESTAMP(3)": st.datetimes().map(
        lambda d: d.replace(microsecond=d.microsecond // 1000 * 1000)
    ),
    "TIMESTAMP(6)": st.datetimes(),
}


@st.composite
def partitions(draw: st.DrawFn) -> list[tuple[str, str, Any]]:
    """Name, type and value of each key."""
    kinds = draw(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=3))
    names = draw(
        st.lists(st.text(min_size=1), min_size=len(kinds), max_size=len(kinds), unique=True)
    )
    return [(n, k, draw(st.none() | CASES[k])) for n, k in zip(names, kinds, strict=True)]


@settings(max_examples=300, deadline=None)
@example(keys=[("p", "STRING", "")], legacy=True)
@example(keys=[("p", "STRING", " \t")], legacy=True)
@example(
    keys=[("p", "TIMESTAMP(6)", dt.datetime.fromisoformat("0009-01-02T03:04:00"))], legacy=False
)
@given(keys=partitions(), legacy=st.booleans())
def test_directories_are_those_of_pypaimon(keys: list[tuple[str, str, Any]], legacy: bool) -> None:
    layout = PartitionLayout(
        tuple(
            PartitionKey(name, timestamp_precision(kind), single=kind == "FLOAT")
            for name, kind, _ in keys
        ),
        DEFAULT,
        legacy,
    )
    values = [value for _, _, value in keys]

    assert f"{layout.directory(values)}/bucket-0" == expected(keys, values, legacy=legacy)


def expected(keys: list[tuple[str, str, Any]], values: Sequence[Any], *, legacy: bool) -> str:
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.utils.file_store_path_factory import FileStorePathFactory

    factory = FileStorePathFactory(
        root="/t",
        partition_keys=[name for name, _, _ in keys],
        default_part_value=DEFAULT,
        format_identifier="parquet",
        data_file_prefix="data-",
        changelog_file_prefix="changelog-",
        legacy_partition_name=legacy,
        file_suffix_include_compression=False,
        file_compression="zstd",
        partition_types=[DataTypeParser.parse_data_type(kind) for _, kind, _ in keys],
    )
    return factory.relative_bucket_path(tuple(values), 0, canonical_partition=True)


@pytest.mark.parametrize(
    ("value", "directory"),
    [
        ("a/b=c", "p=a%2Fb%3Dc"),
        ("100 %", "p=100 %25"),
        ("ü 中", "p=ü 中"),
        ("a\nb", "p=a%0Ab"),
        (None, f"p={DEFAULT}"),
        ("", f"p={DEFAULT}"),
        (" ", f"p={DEFAULT}"),
        (dt.date(2013, 1, 1), "p=15706"),
        (Decimal("1E-7"), "p=0.0000001"),
        (True, "p=true"),
        (12.0, "p=12.0"),
        (-0.001, "p=-0.001"),
        (9999999.999999998, "p=9999999.999999998"),
    ],
)
def test_well_known_spellings(value: Any, directory: str) -> None:
    layout = PartitionLayout((PartitionKey("p"),), DEFAULT, legacy_names=True)

    assert layout.directory([value]) == directory


@pytest.mark.parametrize("value", [1e7, 9.99e-4, -1e7, -0.0, math.inf, math.nan])
def test_numbers_that_java_versions_spell_differently_are_refused(value: float) -> None:
    layout = PartitionLayout((PartitionKey("p"),), DEFAULT, legacy_names=True)

    with pytest.raises(NotSupportedError, match=r"p = .* cannot be a partition"):
        layout.directory([value])


@pytest.mark.parametrize("value", ["\x85", "\xa0", " \u2007", "\u202f\t"])
def test_texts_that_are_blank_to_some_engines_are_refused(value: str) -> None:
    layout = PartitionLayout((PartitionKey("p"),), DEFAULT, legacy_names=True)

    assert layout.directory([f"x{value}"]).startswith("p=x")
    with pytest.raises(NotSupportedError, match=r"p = .* cannot be a partition"):
        layout.directory([value])


@pytest.mark.parametrize("value", ["\x1c", "\u1680", "\u2006", "\u2028", "\u3000"])
def test_texts_that_are_blank_to_all_engines(value: str) -> None:
    layout = PartitionLayout((PartitionKey("p"),), DEFAULT, legacy_names=True)

    assert layout.directory([value]) == f"p={DEFAULT}"


def test_a_table_without_partitions_has_no_directory() -> None:
    assert PartitionLayout((), DEFAULT, legacy_names=True).directory([]) == ""
