"""Names with backticks and without."""

from __future__ import annotations

import pytest

from spark_jobs.contract.sql_text import quote, unquoted


@pytest.mark.parametrize(
    ("name", "quoted"), [("id", "`id`"), ("a b.c", "`a b.c`"), ("a`b", "`a``b`"), ("`", "````")]
)
def test_a_quoted_name_is_the_name_again(name: str, quoted: str) -> None:
    assert quote(name) == quoted
    assert unquoted(quoted) == name


@pytest.mark.parametrize("part", ["id", "a`b", "`", ""])
def test_a_name_without_backticks_around_it_stays(part: str) -> None:
    assert unquoted(part) == part
