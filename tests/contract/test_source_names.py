"""What messages call a source: users do not know the name of one that they did not name."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import FileSource, Source, SqlSource, TableName, TableSource
from spark_jobs.contract.source_names import called, placed_source, source_text

LANDED = FileSource("merge_source", "/landing/day=1", "csv")
TABLE = TableName("shop", "updates")


@pytest.mark.parametrize(
    ("source", "text", "placed"),
    [
        (LANDED, "the source (csv /landing/day=1)", "the source (csv /landing/day=1)"),
        (
            TableSource("insert_source_2", TABLE),
            "the source (table shop.updates)",
            "the source (table shop.updates)",
        ),
        (SqlSource("merge_source", "SELECT 1"), "the source", "the source"),
        (
            FileSource("updates", "/landing", "json"),
            "source updates",
            "source updates (json /landing)",
        ),
        (TableSource("u", TABLE), "source u", "source u (table shop.updates)"),
        (
            SqlSource("merge_source_s", "SELECT 1"),
            "source merge_source_s",
            "source merge_source_s",
        ),
    ],
)
def test_a_source_is_called_by_the_name_that_users_gave_it(
    source: Source, text: str, placed: str
) -> None:
    assert source_text(source) == text
    assert placed_source(source) == placed


def test_a_result_has_only_names() -> None:
    assert (called("insert_source"), called("updates")) == ("the source", "source updates")
