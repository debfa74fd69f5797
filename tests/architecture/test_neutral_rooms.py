"""What is of no one table format names none: not even in comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.layout import ROOT, modules, source_of

NEUTRAL = (
    "spark_jobs.engine",
    "spark_jobs.connectors.shared",
    "spark_jobs.packing",
    "spark_jobs.spark_paths",
    "spark_jobs.spi",
    "spark_jobs.storage",
    "spark_jobs.avro",
    "spark_jobs.formats.avro",
    "spark_jobs.datafiles",
    "spark_jobs.spark_reads",
    "spark_jobs.landing",
)
FORMAT = "paimon"
# What connectors share names no format of theirs.
SHARED = ("spark_jobs.connectors.shared", "iceberg")


def lines_that_name_a_format(path: Path, name: str = FORMAT) -> list[int]:
    """Numbers of the lines of a file that name the format."""
    lines = path.read_text(encoding="utf-8").lower().splitlines()
    return [number for number, line in enumerate(lines, 1) if name in line]


@pytest.mark.parametrize(("package", "name"), [*((each, FORMAT) for each in NEUTRAL), SHARED])
def test_no_module_names_a_table_format(package: str, name: str) -> None:
    found = modules(package)
    assert found

    paths = [source_of(module) for module in found]
    assert [str(p.relative_to(ROOT)) for p in paths if name in p.name.lower()] == []
    naming = {str(p.relative_to(ROOT)): lines_that_name_a_format(p, name) for p in paths}
    assert {path: lines for path, lines in naming.items() if lines} == {}, (
        "what one format needs belongs into its connector, behind an interface of spark_jobs.spi"
    )


def test_the_check_finds_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import os\n\n# As in PyPaimon.\n")

    assert lines_that_name_a_format(path) == [3]
