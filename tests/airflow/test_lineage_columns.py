"""From which columns values come: what is told, and what is left out because it is not sure."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.lineage.columns import (
    TARGET,
    Relations,
    written_columns,
)
from airflow_provider_merge.operators.clauses import (
    when_matched,
    when_not_matched,
    when_not_matched_by_source,
)
from airflow_provider_merge.sql.parser import parse_statement
from airflow_provider_merge.sql.schemas import columns_of_schema
from spark_jobs.contract import codec
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.request import FileSource, SqlSource, TableName, TableSource
from spark_jobs.contract.statements import MergeCase, MergeSpec

FILES = FileSource("raw", "/landing/orders", "parquet")
UPDATES = TableSource("updates", TableName("shop", "updates"))
KNOWN = {TARGET: ["id", "Note", "n", "address"]}


def merge(*when: dict[str, Any], source: str = "updates") -> MergeSpec:
    cases = tuple(codec.decode(MergeCase, each, "when") for each in when)
    return MergeSpec(source, "t.id = s.id", cases, "t", "s")


def query(text: str, *sources: FileSource | TableSource | SqlSource) -> Relations:
    return Relations([*sources, SqlSource("updates", text)], KNOWN)


def of_update(value: str, relations: Relations) -> set[tuple[str, str]] | None:
    return written_columns(merge(when_matched().update({"n": value})), relations).get("n")


class TestAssignments:
    def test_of_both_sides(self) -> None:
        relations = Relations([UPDATES], KNOWN)
        assert of_update("t.n + s.delta * 2", relations) == {(TARGET, "n"), ("updates", "delta")}

    def test_clauses_add_up(self) -> None:
        statement = merge(
            when_matched("s.kind = 'x'").update({"n": "s.a"}),
            when_matched().update({"t.n": "s.b"}),
            when_not_matched().insert({"id": "s.id", "n": "c", "Note": "'new'"}),
            when_not_matched_by_source().update({"n": "n - 1"}),
        )
        assert written_columns(statement, Relations([UPDATES], KNOWN)) == {
            "n": {("updates", "a"), ("updates", "b"), ("updates", "c"), (TARGET, "n")},
            "id": {("updates", "id")},
        }

    def test_one_unknown_input_makes_the_column_unknown(self) -> None:
        of_which_side = "delta"
        statement = merge(
            when_matched("s.x").update({"n": "s.a"}), when_matched().update({"n": of_which_side})
        )
        assert written_columns(statement, Relations([UPDATES], KNOWN)) == {}
        known = Relations([UPDATES], {**KNOWN, "updates": ["id", "a", "delta"]})
        both = {("updates", "a"), ("updates", "delta")}
        assert written_columns(statement, known) == {"n": both}

    def test_spelling_is_that_of_the_schema_else_of_the_statement(self) -> None:
        statement = merge(when_matched().update({"NOTE": "S.customerName || T.note"}))
        assert written_columns(statement, Relations([UPDATES], KNOWN)) == {
            "Note": {("updates", "customerName"), (TARGET, "Note")}
        }

    def test_fields_of_structs(self) -> None:
        statement = merge(when_matched().update({"t.address.city": "s.place.city"}))
        assert written_columns(statement, Relations([UPDATES], KNOWN)) == {
            "address.city": {("updates", "place")}
        }

    def test_all_columns_need_the_targets(self) -> None:
        statement = merge(when_matched().update_all(), when_not_matched().insert_all())
        assert written_columns(statement, Relations([UPDATES], KNOWN)) == {
            name: {("updates", name)} for name in KNOWN[TARGET]
        }
        assert written_columns(statement, Relations([UPDATES])) == {}

    def test_values_without_columns_have_none(self) -> None:
        assert of_update("current_date()", Relations([UPDATES], KNOWN)) is None

    def test_what_is_no_expression(self) -> None:
        assert of_update("nope(", Relations([UPDATES], KNOWN)) is None


class TestQueries:
    def test_to_their_sources(self) -> None:
        relations = query("SELECT r.id, r.price * 2 AS delta FROM raw r", FILES)
        assert of_update("t.n + s.delta", relations) == {(TARGET, "n"), ("raw", "price")}

    def test_through_several(self) -> None:
        step = SqlSource("step", "SELECT id, max(price) AS top FROM raw GROUP BY id")
        relations = Relations(
            [FILES, step, SqlSource("updates", "SELECT id, top AS delta FROM step")], KNOWN
        )
        assert of_update("s.delta", relations) == {("raw", "price")}

    def test_star_only_with_the_columns(self) -> None:
        sources = query("SELECT * FROM raw", FILES).sources
        assert of_update("s.delta", Relations(sources, KNOWN)) is None
        known = Relations(sources, {**KNOWN, "raw": ["id", "delta"]})
        assert of_update("s.delta", known) == {("raw", "delta")}

    @pytest.mark.parametrize(
        "text",
        [
            "WITH step AS (SELECT id, y AS delta FROM step) SELECT delta FROM step",
            "SELECT a.price AS delta FROM elsewhere.table AS a",
            "SELECT price AS delta FROM raw JOIN other ON raw.id = other.id",
            "SELECT FROM WHERE",
        ],
        ids=["shadows a source", "a table of its own", "of one of two", "no query"],
    )
    def test_unclear(self, text: str) -> None:
        step = SqlSource("step", "SELECT id, x AS y FROM raw")
        relations = query(text, FILES, TableSource("other", TableName("shop", "other")), step)
        assert of_update("s.delta", relations) is None

    def test_rows_without_a_table(self) -> None:
        relations = query("SELECT id, delta FROM VALUES (2, 20) AS v(id, delta)")
        assert of_update("s.delta + t.n", relations) == {(TARGET, "n")}


class TestText:
    def test_update(self) -> None:
        statement = parse_statement("UPDATE shop.orders SET n = n + 1, Note = 'x' WHERE id > 3")
        relations = Relations(statement.sources, KNOWN)
        assert written_columns(statement.statement, relations) == {"n": {(TARGET, "n")}}

    def test_merge(self) -> None:
        parsed = parse_statement(
            "MERGE INTO shop.orders t USING (SELECT id, sum(x) AS delta FROM shop.updates u "
            "GROUP BY id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.delta"
        )
        (found,) = written_columns(parsed.statement, Relations(parsed.sources, KNOWN)).values()
        view = next(each.name for each in parsed.sources if isinstance(each, TableSource))
        assert found == {(TARGET, "n"), (view, "x")}

    def test_delete_writes_no_value(self) -> None:
        statement = parse_statement("DELETE FROM shop.orders WHERE id = 1")
        assert written_columns(statement.statement, Relations([], KNOWN)) == {}


class TestInserts:
    RAW = Relations([FILES], {**KNOWN, "raw": ["a", "b", "c"]})

    def test_by_position_without_the_partition(self) -> None:
        spec = InsertIntoSpec("raw", partition={"ADDRESS": "'x'"})
        assert written_columns(spec, self.RAW) == {
            "id": {("raw", "a")},
            "Note": {("raw", "b")},
            "n": {("raw", "c")},
        }

    def test_named_columns_and_by_name(self) -> None:
        named = InsertIntoSpec("updates", columns=("n", "id"))
        relations = query("SELECT price AS p, order_id FROM raw", FILES)
        assert written_columns(named, relations) == {
            "n": {("raw", "price")},
            "id": {("raw", "order_id")},
        }
        by_name = InsertIntoSpec("raw", by_name=True)
        assert written_columns(by_name, Relations([FILES], KNOWN))["Note"] == {("raw", "Note")}

    def test_a_number_that_does_not_fit(self) -> None:
        assert written_columns(InsertIntoSpec("raw"), self.RAW) == {}

    def test_columns_of_files(self) -> None:
        known = columns_of_schema("id BIGINT, `a b` STRUCT<x: INT>, t TIMESTAMP")
        assert known == {"id": "BIGINT", "a b": "STRUCT<x: INT>", "t": "TIMESTAMP"}
        assert columns_of_schema("'") is None
