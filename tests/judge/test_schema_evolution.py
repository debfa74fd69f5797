"""Statements that add columns to their table: what becomes of it, as Java and pypaimon read it."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.judge.judge import facts_from_java, read_with_java
from tests.judge.tables import Warehouse
from tests.judge.writer import JavaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "city", "type": "STRING"},
        {"id": 0, "name": "zip", "type": "INT"},
    ],
}
KINDS = {"id": "BIGINT", "v": "INT", "a": ADDRESS, "l": {"type": "ARRAY", "element": ADDRESS}}
BERLIN = {"city": "Berlin", "zip": 10115}
ROWS = [
    {"id": 1, "v": 10, "a": BERLIN, "l": [BERLIN, None]},
    {"id": 2, "v": 20, "a": None, "l": None},
    {"id": 3, "v": 30, "a": {"city": None, "zip": 1}, "l": []},
]
VECTORS = {"deletion-vectors.enabled": "true"}
INSERT = "INSERT WITH SCHEMA EVOLUTION"
UPSERT = (
    "MERGE WITH SCHEMA EVOLUTION INTO d.t AS t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@dataclass
class Evolving:
    """A table that Java made, and statements on it."""

    spark: SparkSession
    warehouse: Warehouse

    def create(
        self,
        kinds: Mapping[str, Any] = KINDS,
        rows: Sequence[Mapping[str, Any]] = ROWS,
        keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> JavaTable:
        table = JavaTable.of_types(self.warehouse.path, "d.t", kinds, keys, options)
        if rows:
            table.append_rows(rows)
        return table

    def run(self, text: str, source: str, *, dry_run: bool = False, **options: Any) -> JobResult:
        """Run a statement; ``source`` is the query of ``s``."""
        parsed = parse_statement(text, ["s"], "d")
        request = JobRequest(
            operation_id=str(uuid.uuid4()),
            target=parsed.target,
            catalog=CatalogSpec("paimon", str(self.warehouse.path)),
            statement=parsed.statement,
            sources=(SqlSource("s", source), *parsed.sources),
            options=JobOptions(**options),
            dry_run=dry_run,
        )
        return run(request, self.spark)

    def done(self, text: str, source: str, **options: Any) -> JobResult:
        result = self.run(text, source, **options)
        assert result.error is None, result.error
        return result

    @property
    def columns(self) -> dict[str, Any]:
        """Names and types as Java sees them."""
        fields = facts_from_java(self.warehouse.path, "d.t").schema["fields"]
        return {field["name"]: field["type"] for field in fields}

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        """Columns of all rows, by id, on which Java and pypaimon agree."""
        rows = sorted(self.warehouse.both_readers("d.t"), key=lambda row: row["id"])
        return [tuple(row[name] for name in names) for row in rows]

    @property
    def files(self) -> dict[str, bytes]:
        """Everything of the table."""
        found = (self.warehouse.path / "d.db" / "t").rglob("*")
        return {str(path): path.read_bytes() for path in found if path.is_file()}


@pytest.fixture
def evolving(spark: SparkSession, warehouse: Warehouse) -> Evolving:
    return Evolving(spark, warehouse)


@pytest.mark.parametrize(
    "options", [{}, VECTORS, {"bucket": "2", "bucket-key": "id"}], ids=["cow", "vectors", "buckets"]
)
def test_new_columns_and_fields_of_every_kind(
    evolving: Evolving, options: Mapping[str, str]
) -> None:
    table = evolving.create(options=options)
    source = """
        SELECT 1L AS id, 11 AS v, named_struct('city', 'Bonn', 'street', 'Weg') AS a,
               array(named_struct('zip', 5, 'tags', map('k', 1))) AS l,
               DATE '2026-01-31' AS day, named_struct('x', array(1, NULL)) AS deep
        UNION ALL SELECT 4L, 44, NULL, NULL, NULL, NULL
    """

    result = evolving.done(UPSERT, source)

    assert result.schema_changes == (
        "added a.street STRING",
        "added l.element.tags map<string,int>",
        "added day DATE",
        "added deep struct<`x`:array<int>>",
    )
    assert list(evolving.columns) == ["id", "v", "a", "l", "day", "deep"]
    assert evolving.rows("id", "v", "day", "deep") == [
        (1, 11, dt.date(2026, 1, 31), {"x": [1, None]}),
        (2, 20, None, None),
        (3, 30, None, None),
        (4, 44, None, None),
    ]
    bonn = {"city": "Bonn", "zip": 10115, "street": "Weg"}
    assert evolving.rows("a", "l") == [
        (bonn, [{"city": None, "zip": 5, "tags": {"k": 1}}]),
        (None, None),
        ({"city": None, "zip": 1, "street": None}, []),
        (None, None),
    ]
    # Java writes on, and the next statement adds nothing.
    again = replace(table, kinds=evolving.columns)
    again.append_rows([{"id": 5, **dict.fromkeys(("v", "a", "l", "day", "deep"))}])
    assert evolving.done(UPSERT, source).schema_changes == ()
    assert len(evolving.rows("id")) == 5


def test_fields_that_the_source_lacks_keep_their_values(evolving: Evolving) -> None:
    evolving.create()
    text = (
        "MERGE WITH SCHEMA EVOLUTION INTO d.t AS t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET a = s.a"
    )
    source = "SELECT id, a FROM VALUES (1L, {}), (2L, {}), (3L, {}) AS s(id, a)"
    city, null = "named_struct('city', 'X')", "CAST(NULL AS STRUCT<city: STRING>)"

    evolving.done(text, source.format(null, city, city))

    assert evolving.rows("id", "a") == [
        (1, {"city": None, "zip": 10115}),
        (2, {"city": "X", "zip": None}),
        (3, {"city": "X", "zip": 1}),
    ]
    evolving.done("UPDATE d.t SET a.zip = NULL", "SELECT 1")
    evolving.done(text, source.format(null, null, city))
    assert evolving.rows("a") == [(None,), (None,), ({"city": "X", "zip": None},)]


def test_without_schema_evolution_a_missing_field_is_an_error(evolving: Evolving) -> None:
    evolving.create()
    text = UPSERT.replace("WITH SCHEMA EVOLUTION ", "")
    result = evolving.run(text, "SELECT id, v, named_struct('city', 'X') AS a, l FROM d.t LIMIT 0")
    assert result.error is not None


def test_columns_that_the_source_lacks(evolving: Evolving) -> None:
    kinds = {"id": "BIGINT", "v": "INT", "w": "INT", "day": "DATE"}
    evolving.create(kinds, [{"id": 1, "v": 1, "w": 5, "day": None}])
    evolving.done(
        "MERGE WITH SCHEMA EVOLUTION INTO d.t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "SELECT * FROM VALUES (1L, 2), (2L, 3) AS s(id, w)",
    )
    assert evolving.rows("id", "v", "w", "day") == [(1, 1, 2, None), (2, None, 3, None)]


def test_a_required_column_that_the_source_lacks(evolving: Evolving) -> None:
    evolving.create({"id": "BIGINT", "v": "INT NOT NULL"}, [{"id": 1, "v": 1}])
    result = evolving.run(UPSERT, "SELECT 2L AS id, 'x' AS more")
    assert result.error is not None
    assert result.error.code == "COLUMN_NOT_FOUND"
    assert "v, which is NOT NULL" in result.error.message
    assert list(evolving.columns) == ["id", "v"]


def test_names_mean_what_they_meant_before(evolving: Evolving) -> None:
    evolving.create(
        {"id": "BIGINT", "v": "INT"}, [{"id": 1, "v": 1}, {"id": 2, "v": 2}], (), VECTORS
    )
    text = (
        "MERGE WITH SCHEMA EVOLUTION INTO d.t AS t USING s ON t.id = s.id AND more <> 'no' "
        "WHEN MATCHED AND upper(more) = 'YES' THEN UPDATE SET * "
        "WHEN NOT MATCHED AND more = 'no' THEN INSERT (id, more) VALUES (s.id + 10, more)"
    )
    evolving.done(text, "SELECT * FROM VALUES (1L, 7, 'yes'), (2L, 8, 'no') AS s(id, v, more)")
    assert evolving.rows("id", "v", "more") == [(1, 7, "yes"), (2, 2, None), (12, None, "no")]


@pytest.mark.parametrize(
    ("text", "added", "row"),
    [
        ("INTO d.t BY NAME SELECT more, id FROM s", ["more"], (9, None, "m")),
        ("INTO d.t SELECT id, v, more FROM s", ["more"], (9, 1, "m")),
        ("INTO d.t (id, more) SELECT id, more FROM s", ["more"], (9, None, "m")),
        ("OVERWRITE d.t SELECT id, v, more FROM s", ["more"], (9, 1, "m")),
        ("INTO d.t SELECT id, v FROM s", [], (9, 1)),
    ],
)
def test_inserts(evolving: Evolving, text: str, added: list[str], row: tuple[Any, ...]) -> None:
    evolving.create({"id": "BIGINT", "v": "INT"}, [{"id": 1, "v": 1}])
    evolving.done(f"{INSERT} {text}", "SELECT 9L AS id, 1 AS v, 'm' AS more")
    assert list(evolving.columns) == ["id", "v", *added]
    found = evolving.rows("id", "v", *added)
    assert found[-1] == row
    assert len(found) == (1 if "OVERWRITE" in text else 2)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("(id, moore, p) SELECT id, more, 1 AS p FROM s", "COLUMN_NOT_FOUND", "moore"),
        ("SELECT id, v, m, p, v FROM s", "EXPRESSION_INVALID", "BY NAME"),
        ("BY NAME SELECT id, 1 AS N, 2 AS n FROM s", "AMBIGUOUS_REFERENCE", "N"),
        ("BY NAME SELECT id, NULL AS n FROM s", "TYPE_MISMATCH", "n is NULL"),
        ("BY NAME SELECT id, 1 AS _ROW_ID FROM s", "NOT_SUPPORTED", "_ROW_ID"),
        ("BY NAME SELECT id, 1 AS _key_x FROM s", "NOT_SUPPORTED", "_key_x"),
        ("BY NAME SELECT id, 1 AS __merge_x FROM s", "NOT_SUPPORTED", "__merge_x"),
        ("BY NAME SELECT id, INTERVAL '1' DAY AS i FROM s", "NOT_SUPPORTED", "i"),
        ("BY NAME SELECT m FROM s", "NOT_SUPPORTED", "m.key.y"),
        ("BY NAME SELECT id, v, p FROM s", "NOT_SUPPORTED", "partition"),
    ],
)
def test_what_is_refused(evolving: Evolving, text: str, code: str, says: str) -> None:
    key = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
    pairs = {"type": "MAP", "key": key, "value": "INT"}
    evolving.create({"id": "BIGINT", "v": "INT", "m": pairs, "p": "INT"}, [], ["p"])
    before = evolving.files
    source = (
        "SELECT 9L AS id, 1 AS v, 'x' AS more, map(named_struct('x', 1, 'y', 2), 1) AS m, 5L AS p"
    )
    result = evolving.run(f"{INSERT} INTO d.t {text}", source, type_widening=True)
    assert result.error is not None
    assert result.error.code == code, result.error
    assert says in result.error.message + result.error.remedy
    assert evolving.files == before


def test_widened_types(evolving: Evolving) -> None:
    numbers = {"i": "INT", "f": "FLOAT", "d": "DECIMAL(5, 2)", "n": "SMALLINT"}
    kinds = {"id": "BIGINT", **numbers, "a": ADDRESS}
    row = {"id": 1, "i": 1, "f": 0.5, "d": 1, "n": 3, "a": BERLIN}
    evolving.create(kinds, [row, {**row, "id": 2}])
    source = """
        SELECT 1L AS id, 5000000000L AS i, 1.5D AS f, CAST(12345.678 AS DECIMAL(8, 3)) AS d,
               CAST(7.5 AS DECIMAL(6, 1)) AS n, named_struct('zip', 6000000000L) AS a
    """
    refused = evolving.run(UPSERT, source)
    assert refused.error is not None
    assert refused.error.code == "VALUE_NOT_STORABLE"

    result = evolving.done(UPSERT, source, type_widening=True)

    assert result.schema_changes == (
        "widened i from INT to BIGINT",
        "widened f from FLOAT to DOUBLE",
        "widened d from DECIMAL(5,2) to DECIMAL(8,3)",
        "widened n from SMALLINT to DECIMAL(6,1)",
        "widened a.zip from INT to BIGINT",
    )
    assert [str(each) for each in evolving.rows("id", *numbers)] == [
        "(1, 5000000000, 1.5, Decimal('12345.678'), Decimal('7.5'))",
        "(2, 1, 0.5, Decimal('1.000'), Decimal('3.0'))",
    ]
    assert evolving.rows("a") == [({"city": "Berlin", "zip": 6000000000},), (BERLIN,)]


def test_what_the_table_says_of_its_columns_survives(evolving: Evolving) -> None:
    kinds = {"ID": "BIGINT NOT NULL", "v": "INT", "gone": "INT"}
    rows = [{"ID": 1, "v": 1, "gone": 1}]
    table = evolving.create(kinds, rows, options={"file.compression": "snappy"})
    table.alter(("drop", ["gone"]), ("comment", ["v"], "a value"), ("default", ["v"], "8"))
    before = facts_from_java(evolving.warehouse.path, "d.t").schema
    text = UPSERT.replace("t.id = s.id", "t.ID = s.id")
    result = evolving.done(text, "SELECT 2L AS id, 'x' AS more, 5 AS gone")
    # It is not the column that was dropped.
    assert result.schema_changes == ("added more STRING", "added gone INT")
    after = facts_from_java(evolving.warehouse.path, "d.t").schema
    assert after["fields"][:2] == before["fields"]
    assert after["fields"][2] == {"id": 3, "name": "more", "type": "STRING"}
    assert (after["highestFieldId"], after["id"]) == (4, before["id"] + 1)
    kept = ("version", "partitionKeys", "primaryKeys", "options", "comment")
    assert {name: after.get(name) for name in kept} == {name: before.get(name) for name in kept}
    rows = sorted(evolving.warehouse.both_readers("d.t"), key=lambda row: row["ID"])
    assert rows == [
        {"ID": 1, "v": 1, "more": None, "gone": None},
        {"ID": 2, "v": 8, "more": "x", "gone": 5},
    ]


def test_a_dry_run_shows_the_changes_and_stores_nothing(evolving: Evolving) -> None:
    evolving.create()
    before = evolving.files
    result = evolving.run(UPSERT, "SELECT 1L AS id, 'x' AS more", dry_run=True)
    assert result.status == "dry_run"
    assert result.schema_changes == ("added more STRING",)
    assert result.metrics.updated == 1
    assert evolving.files == before


def test_columns_are_added_even_if_no_row_changes(evolving: Evolving) -> None:
    evolving.create()
    result = evolving.done(UPSERT, "SELECT 1L AS id, 'x' AS more WHERE false")
    assert (result.status, result.schema_changes) == ("unchanged", ("added more STRING",))
    assert list(evolving.columns) == [*KINDS, "more"]
    assert len(evolving.rows("id")) == 3


def test_positions_that_would_change_are_refused(evolving: Evolving) -> None:
    options = {"add-column-before-partition": "true"}
    evolving.create({"id": "BIGINT", "p": "INT"}, [], ["p"], options)
    source = "SELECT 1L AS id, 2 AS p, 3 AS more"
    refused = evolving.run(f"{INSERT} INTO d.t SELECT * FROM s", source)
    assert refused.error is not None
    assert (refused.error.code, refused.error.remedy) == ("EXPRESSION_INVALID", "Insert BY NAME.")
    evolving.done(f"{INSERT} INTO d.t BY NAME SELECT * FROM s", source)
    assert list(evolving.columns) == ["id", "more", "p"]
    assert evolving.rows("id", "more", "p") == [(1, 3, 2)]


def test_a_branch_has_columns_of_its_own(evolving: Evolving) -> None:
    table = evolving.create({"id": "BIGINT", "v": "INT"}, [{"id": 1, "v": 1}])
    table.new_branch("b")
    text = UPSERT.replace("d.t", "d.`t$branch_b`")
    evolving.done(text, "SELECT 1L AS id, 'x' AS more")
    rows = read_with_java(evolving.warehouse.path, "d.t", branch="b")
    assert rows == [{"id": 1, "v": 1, "more": "x"}]
    assert evolving.rows("id", "v") == [(1, 1)]
    assert list(evolving.columns) == ["id", "v"]
