"""Queries that compute rows and no more are not refused, whatever form and length they have."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.request import CatalogSpec
from spark_jobs.engine.analysis.text_rules import require_plain_texts
from spark_jobs.errors import NotSupportedError
from tests.attacks.asked import asked

LAKE = CatalogSpec("paimon", "/lake")
# Each form of query that computes rows.
PLAIN = [
    "SELECT a, count(*) FILTER (WHERE c > 1) FROM t WHERE c IN (SELECT d FROM u) GROUP BY 1",
    "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) SELECT * FROM b",
    "SELECT * FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM range(10)",
    "SELECT * FROM explode(array(1, 2))",
    "SELECT * FROM t LATERAL VIEW OUTER explode(a) x AS y",
    "SELECT * FROM t, LATERAL (SELECT t.x + 1 AS y) AS l",
    "SELECT sum(x) OVER w, nth_value(a, 2) OVER (ORDER BY b) FROM t WINDOW w AS (PARTITION BY a)",
    "SELECT a FROM t GROUP BY CUBE (a, b) HAVING max(c) > 1 ORDER BY a LIMIT 10 OFFSET 2",
    "SELECT * FROM t PIVOT (sum(b) FOR a IN (1, 2))",
    "SELECT * FROM t UNPIVOT (v FOR n IN (a, b))",
    "SELECT * FROM VALUES (1, upper('a')), (2, 'b') AS v(x, y)",
    "VALUES (1, array('a'))",
    "TABLE t",
    "FROM t SELECT a",
    "SELECT 1;",
    "(SELECT 1)",
    "SELECT * FROM t JOIN u USING (a) LEFT ANTI JOIN v ON t.a = v.a",
    "SELECT a FROM t UNION ALL SELECT b FROM u INTERSECT SELECT 1 EXCEPT SELECT 2",
    "SELECT transform(a, x -> x + 1), aggregate(a, 0, (s, x) -> s + x) FROM t",
    "SELECT CASE WHEN EXISTS (SELECT 1) THEN 1 END, (SELECT max(a) FROM u) FROM t",
    "SELECT * EXCEPT (a), t.* FROM t",
    "SELECT /*+ BROADCAST(u) */ * FROM t JOIN u",
    "SELECT DISTINCT a FROM t DISTRIBUTE BY a SORT BY b",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), any_value(b) IGNORE NULLS FROM t",
    "SELECT try_cast(a AS INT), a::string, a.b[1], a || b, a % 2, a & 1, NOT a FROM t",
    "SELECT named_struct('a', 1), struct(a), map(1, 2), DATE'2026-01-01', INTERVAL 1 DAY, X'ab'",
    "SELECT extract(YEAR FROM a), trim(BOTH ' ' FROM a), overlay(a PLACING 'x' FROM 1) FROM t",
    "SELECT timestampadd(DAY, 1, a), current_date, position('a' IN b), substring(a FROM 1) FROM t",
    "SELECT now(), a RLIKE 'x', a LIKE ANY ('x', 'y'), coalesce(a, b), if(a, 1, 2) FROM t",
    "SELECT a BETWEEN 1 AND 2, a NOT IN (1, 2), a IS DISTINCT FROM b FROM t",
    "SELECT collate(a, 'UTF8_LCASE'), window(ts, '1 day'), from_json(a, 'x INT') FROM t",
    "SELECT * FROM csv.`/in/a.csv` WITH (header = 'true')",
]
# Spark 4 and later.
PIPES = [
    "FROM t |> WHERE a > 1 |> SELECT upper(a) AS b |> AGGREGATE count(*) GROUP BY b",
    "FROM t |> EXTEND a + 1 AS b |> SET b = upper(b) |> DROP a |> AS u |> ORDER BY b |> LIMIT 1",
]


@pytest.mark.parametrize("text", [*PLAIN, *PIPES])
def test_plain_queries(spark: SparkSession, text: str) -> None:
    require_plain_texts(spark, asked(LAKE, text))


def test_what_a_pipe_sets(spark: SparkSession) -> None:
    text = "FROM t |> SET b = reflect('java.lang.System', 'gc')"

    with pytest.raises(NotSupportedError, match="the function reflect runs code"):
        require_plain_texts(spark, asked(LAKE, text))


@pytest.mark.parametrize("more", ["", " OR upper(a) = 'x'" * 200])
def test_a_call_among_very_many(spark: SparkSession, more: str) -> None:
    values = ", ".join(f"date('2026-01-{day % 28 + 1:02}')" for day in range(1_000))
    plain = f"SELECT 1 FROM t WHERE a IN ({values}){more}"

    require_plain_texts(spark, asked(LAKE, plain))
    with pytest.raises(NotSupportedError, match=r"udfs\.f is not a function of Spark's own"):
        require_plain_texts(spark, asked(LAKE, f"{plain} OR a IN ({values}, `udfs`.f('x'))"))
