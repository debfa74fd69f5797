"""Statements on partitions that contradict themselves are refused when they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.errors import RequestError

DAY = {"day": "'x'"}


def overwrite(mode: Any, **more: Any) -> Callable[[], Any]:
    return lambda: InsertOverwriteSpec("s", mode, **more)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "mode": (overwrite("append"), "mode: 'append'"),
    "static without a partition": (overwrite("static"), "partition: mode static needs"),
    "table with a partition": (overwrite("table", partition=DAY), "partition: mode table"),
    "allow_empty, dynamic": (overwrite("dynamic", allow_empty=True), "allow_empty: "),
    "allow_empty, static": (overwrite("static", partition=DAY, allow_empty=True), "allow_empty: "),
    "blank source": (lambda: InsertIntoSpec(" "), "source: is empty"),
    "columns by name": (lambda: InsertIntoSpec("s", columns=("a",), by_name=True), "columns: "),
    "blank column": (lambda: InsertIntoSpec("s", columns=("a", "")), "columns[1]: "),
    "blank order": (lambda: InsertIntoSpec("s", order_by=(" ",)), "order_by[0]: "),
    "blank partition column": (lambda: InsertIntoSpec("s", {"": "1"}), "partition: "),
    "no column": (lambda: InsertIntoSpec("s", columns=("a", "b.")), "columns[1]: 'b.' is not"),
    "no order": (lambda: InsertIntoSpec("s", order_by=("`a",)), "order_by[0]: '`a' is not"),
    "no partition column": (
        lambda: InsertIntoSpec("s", partition_columns=("a\n",)),
        "partition_columns[0]: 'a\\n' is not an identifier",
    ),
    "no name of a partition": (lambda: TruncateTableSpec({" a": "1"}), "partition: the name of a"),
    "blank value": (lambda: InsertIntoSpec("s", {"day": ""}), "partition.day: the value is empty"),
    "column twice": (lambda: TruncateTableSpec({"a": "1", "A": "2"}), "partition: A occurs more"),
    "nothing expected": (overwrite("dynamic", expected_partitions=()), "expected_partitions: "),
    "all expected": (overwrite("dynamic", expected_partitions=({},)), "expected_partitions[0]: "),
    "no partitions": (lambda: DropPartitionsSpec(()), "partitions: DROP needs"),
    "every partition": (lambda: DropPartitionsSpec((DAY, {})), "partitions[1]: is empty"),
    "no such source": (
        lambda: JobRequest("op", TableName("d", "t"), CatalogSpec("p", "/w"), InsertIntoSpec("s")),
        "statement.source: 's'",
    ),
}


@pytest.mark.parametrize(("make", "problem"), REFUSED.values(), ids=REFUSED)
def test_refused(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        make()
    assert caught.value.message.startswith(problem)
