"""DEFAULT in the rows of INSERT: NULL in its place, and names that tell the job."""

from __future__ import annotations

import pytest

from tests.sql.reading import read

ROWS = {
    "VALUES (1, DEFAULT)": "SELECT col1, col2, col3 AS {of}2 FROM (VALUES (1, NULL, true))",
    "VALUES (1, f(2, 3)), (default, 'a, b')": (
        "SELECT col1, col2, col3 AS {of}1 FROM (VALUES (1, f(2, 3), false), (NULL, 'a, b', true))"
    ),
    "VALUES DEFAULT, 1;": "SELECT col1, col2 AS {of}1 FROM (VALUES (NULL, true), (1, false))",
    "VALUES (DEFAULT, DEFAULT) AS v(a, b)": (
        "VALUES (NULL, NULL, true, true) AS v(a, b, {of}1, {of}2)"
    ),
    "VALUES (1, DEFAULT) v": "SELECT col1, col2, col3 AS {of}2 FROM (VALUES (1, NULL, true) v)",
    "(VALUES (DEFAULT))": "(SELECT col1, col2 AS {of}1 FROM (VALUES (NULL, true)))",
    "SELECT a, DEFAULT FROM d.s": "SELECT a, NULL AS `{as_}1` FROM d__s AS s",
    "SELECT DISTINCT DEFAULT, *, default FROM d.s GROUP BY a, default": (
        "SELECT DISTINCT NULL AS `{as_}1`, *, NULL AS `{as_}2` FROM d__s AS s GROUP BY a, default"
    ),
    "BY NAME SELECT DEFAULT AS `a b`, DEFAULT c": ("SELECT NULL AS `{as_}a b`, NULL AS `{as_}c`"),
    "FROM d.s SELECT DEFAULT WHERE x": "FROM d__s AS s SELECT NULL AS `{as_}1` WHERE x",
    "WITH c AS (SELECT 1) (SELECT DEFAULT FROM c)": (
        "WITH c AS (SELECT 1) (SELECT DEFAULT FROM c)"
    ),
    "WITH c AS (SELECT 1 UNION SELECT 2) SELECT DEFAULT FROM c": (
        "WITH c AS (SELECT 1 UNION SELECT 2) SELECT NULL AS `{as_}1` FROM c"
    ),
    # Columns of that name, and what Spark refuses.
    "SELECT `default`, s.default, default.x, DEFAULT + 1, f(DEFAULT) FROM d.s": (
        "SELECT `default`, s.default, default.x, DEFAULT + 1, f(DEFAULT) FROM d__s AS s"
    ),
    "VALUES (`default`, 'DEFAULT', 1 + DEFAULT)": "VALUES (`default`, 'DEFAULT', 1 + DEFAULT)",
}


@pytest.mark.parametrize(("rows", "query"), ROWS.items(), ids=ROWS)
def test_default(rows, query):
    source = read(f"INSERT INTO d.t {rows}").sources[-1]

    assert source.query == query.format(of="__merge_default_of_", as_="__merge_default_as_")
