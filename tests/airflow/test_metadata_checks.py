"""What metadata tells of a statement is told before Spark starts; what it cannot tell is left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.__main__ import main
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.source_parameters import to_named_sources
from airflow_provider_merge.operators.sources import file_source
from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.row_checks import RowCheck
from spark_jobs.errors import JobError
from tests.airflow.support import DagFile
from tests.support.paimon_metadata import TableFiles

ORDERS: dict[str, Any] = {
    "price": "DECIMAL(10, 2)",
    "note": "STRING",
    "paid": "BOOLEAN",
    "at": "TIMESTAMP(6)",
    "address": {"type": "ROW", "fields": [{"id": 9, "name": "city", "type": "STRING"}]},
}
CHANGES = {"price": "DECIMAL(10, 2)", "note": "STRING", "gone": "BOOLEAN", "cost": "DOUBLE"}
MERGE = "MERGE INTO shop.orders AS t USING shop.changes AS s ON {on} WHEN {when}"


def merge(when: str = "MATCHED THEN DELETE", on: str = "t.id = s.id") -> str:
    return MERGE.format(on=on, when=when)


@pytest.fixture
def hook(warehouse: Path) -> PaimonHook:
    TableFiles(warehouse, "orders", more_columns=ORDERS).create()
    TableFiles(warehouse, "changes", more_columns=CHANGES).create()
    return PaimonHook("paimon_default")


def check(
    hook: PaimonHook, sql: str, sources: dict[str, Any] | None = None, *, shares_files: bool = True
) -> None:
    named = to_named_sources(sources)
    parsed = parse_statement(sql, [each.name for each in named])
    found = MetadataCheck(hook, shares_files)
    found.require_valid(parsed.target, parsed.statement, (*named, *parsed.sources))


WRONG = {
    "target": (
        "DELETE FROM shop.orderz WHERE id = 1",
        "TABLE_NOT_FOUND: there is no table shop.orderz at ",
    ),
    "source": (
        merge().replace("shop.changes", "shop.changs"),
        "TABLE_NOT_FOUND: there is no table shop.changs at ",
    ),
    "ON": (
        merge(on="t.id = s.idd"),
        (
            "COLUMN_NOT_FOUND: ON: s.idd is not a column of shop.changes Remedy: Did you mean id? "
            "Columns: id, day, price, note, gone, cost."
        ),
    ),
    "ambiguous": (
        merge(on="id = s.id"),
        (
            "AMBIGUOUS_REFERENCE: ON: id is a column of shop.orders and shop.changes Remedy: Write "
            "t.id or s.id."
        ),
    ),
    "condition": (
        merge("MATCHED AND s.goen THEN DELETE"),
        (
            "condition of clause 1 (WHEN MATCHED): s.goen is not a column of shop.changes "
            "Remedy: Did you mean gone?"
        ),
    ),
    "of the other side": (
        merge("NOT MATCHED THEN INSERT (id, note) VALUES (s.id, paid)"),
        "value of note in clause 1 (WHEN NOT MATCHED): paid is not a column of shop.changes",
    ),
    "assigned column": (
        merge("MATCHED THEN UPDATE SET t.pric = s.price"),
        (
            "COLUMN_NOT_FOUND: clause 1 (WHEN MATCHED): t.pric is not a column of shop.orders "
            "Remedy: Did you mean price?"
        ),
    ),
    "value": (
        merge("MATCHED THEN UPDATE SET price = s.price * s.factor"),
        "value of price in clause 1 (WHEN MATCHED): s.factor is not a column of shop.changes",
    ),
    "type of a column": (
        merge("MATCHED THEN UPDATE SET paid = s.price"),
        (
            "TYPE_MISMATCH: clause 1 (WHEN MATCHED): column paid: a value of type DECIMAL(10, 2) "
            "cannot be stored as BOOLEAN"
        ),
    ),
    "type of a literal": (
        "UPDATE shop.orders SET at = 5",
        "TYPE_MISMATCH: UPDATE: column at: a value of type decimal cannot be stored as TIMESTAMP",
    ),
    "all columns": (
        merge("NOT MATCHED THEN INSERT *"),
        "* needs a source column paid, but shop.changes has only: id, day, price, note, gone, cost",
    ),
    "number of values": (
        merge("NOT MATCHED THEN INSERT VALUES (s.id, s.day)"),
        (
            "EXPRESSION_INVALID: clause 1 (WHEN NOT MATCHED): INSERT has 2 values for 7 columns of "
            "shop.orders"
        ),
    ),
    "WHERE": ("DELETE FROM shop.orders WHERE ide = 1", "COLUMN_NOT_FOUND: WHERE: ide is not"),
    "column of a query": (
        "INSERT INTO shop.orders BY NAME SELECT id, prise AS price FROM shop.changes",
        "prise is not a column of shop.changes Remedy: Did you mean price?",
    ),
    "column of a subquery's result": (
        merge(on="t.id = s.number").replace("shop.changes", "(SELECT id AS nr FROM shop.changes)"),
        "ON: s.number is not a column of ",
    ),
    "inserted column": (
        "INSERT INTO shop.orders (id, dai) SELECT id, day FROM shop.changes",
        "INSERT: dai is not a column of shop.orders Remedy: Did you mean day?",
    ),
    "partition": (
        "ALTER TABLE shop.orders DROP PARTITION (note = 'x')",
        (
            "partitions[0]: note is not a partition column of shop.orders Remedy: Its partition "
            "columns are: day."
        ),
    ),
}


@pytest.mark.parametrize(("sql", "message"), WRONG.values(), ids=WRONG)
def test_what_metadata_tells(hook: PaimonHook, sql: str, message: str) -> None:
    with pytest.raises(JobError) as raised:
        check(hook, sql)
    assert message in str(raised.value)


RIGHT = {
    "case of names": merge("MATCHED THEN UPDATE SET T.PRICE = S.Price", on="T.ID = s.`id`"),
    "fields": merge("MATCHED AND t.address.city = 'x' THEN UPDATE SET address.city = s.note"),
    "lambdas": "DELETE FROM shop.orders WHERE exists(split(note, ','), x -> x = note)",
    "units": "UPDATE shop.orders SET at = timestampadd(HOUR, 1, at) WHERE extract(DAY FROM at) = 1",
    "values without parentheses": "UPDATE shop.orders SET at = current_timestamp, day = DEFAULT",
    "text for a number": merge("MATCHED THEN UPDATE SET price = s.note"),
    "number for a text": merge("MATCHED THEN UPDATE SET note = s.cost"),
    "subquery": (
        "DELETE FROM shop.orders WHERE id IN (SELECT c.id FROM shop.changes c WHERE c.day = "
        "orders.day)"
    ),
    "names that a query gives": (
        "INSERT INTO shop.orders BY NAME WITH x AS (SELECT id AS nr, max(day) d FROM shop.changes "
        "GROUP BY nr) SELECT nr AS id, d AS day FROM x ORDER BY d"
    ),
    "joins by name": (
        "INSERT INTO shop.orders BY NAME SELECT id, day FROM shop.changes JOIN shop.orders USING "
        "(id, day)"
    ),
    "rows of functions": (
        "INSERT INTO shop.orders BY NAME SELECT id, word AS note FROM shop.changes "
        "LATERAL VIEW explode(split(note, ',')) AS word"
    ),
    "names of a derived table": (
        "INSERT INTO shop.orders BY NAME SELECT t.x AS id "
        "FROM (SELECT id FROM shop.changes) AS t(x)"
    ),
    "pivoted rows": (
        "INSERT INTO shop.orders BY NAME SELECT yes AS note FROM (SELECT note, gone FROM "
        "shop.changes) PIVOT (max(note) FOR gone IN (TRUE AS yes))"
    ),
    "partition": "INSERT OVERWRITE shop.orders PARTITION (DAY = '2026-01-31') (id) SELECT 1",
}


@pytest.mark.parametrize("sql", RIGHT.values(), ids=RIGHT)
def test_what_is_right_or_not_known(hook: PaimonHook, sql: str) -> None:
    check(hook, sql)


def check_rows(hook: PaimonHook, query: str, sql: str = "") -> None:
    parsed = parse_statement(sql or merge())
    MetadataCheck(hook, shares_files=True).require_valid(
        parsed.target, parsed.statement, parsed.sources, checks=[RowCheck("few", query)]
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT pric FROM new_rows", r"check few: pric is not a column of new_rows.*mean price"),
        ("SELECT 1 FROM target WHERE nope = 1", "check few: nope is not a column of target"),
        ("SELECT id FROM changes", "check few: id is not a column of changes"),
        ("SELECT old.pric FROM changes", "check few: old.pric is not a column of the table.*price"),
        ("SELECT 1 FROM changes c WHERE new.nope = 1", "check few: new.nope is not a column"),
        ("SELECT s.nope FROM merge_source s", "check few: s.nope is not a column of shop.changes"),
    ],
)
def test_names_in_checks_are_looked_up(hook: PaimonHook, query: str, message: str) -> None:
    with pytest.raises(JobError, match=message) as caught:
        check_rows(hook, query)
    assert caught.value.code.name == "COLUMN_NOT_FOUND"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT operation, clause, OLD.Price, new.address.city FROM changes",
        "SELECT old.id FROM (SELECT address AS old FROM target)",
        "SELECT c.new.id FROM changes c JOIN merge_source s ON c.new.id = s.id WHERE s.gone",
        "SELECT filter(array(id), x -> x > 1) AS bad FROM new_rows WHERE bad IS NOT NULL",
    ],
)
def test_names_that_checks_may_use(hook: PaimonHook, query: str) -> None:
    check_rows(hook, query)


def test_columns_that_a_source_may_add_are_left_to_the_job(hook: PaimonHook) -> None:
    evolving = merge("MATCHED THEN UPDATE SET *").replace("MERGE", "MERGE WITH SCHEMA EVOLUTION")
    check_rows(hook, "SELECT new.gone, old.gone FROM changes", evolving)


@pytest.mark.parametrize(
    ("keys", "expected", "message"),
    [
        (["day"], {"day": "1", "hour": "2"}, "expected_partitions[0]: hour is not a column of"),
        ([], {"day": "1"}, "expected_partitions[0]: shop.orders has no partitions"),
    ],
)
def test_partitions_that_no_table_has_are_not_expected(
    warehouse: Path, keys: list[str], expected: dict[str, str], message: str
) -> None:
    files = TableFiles(warehouse, "orders", more_columns=ORDERS, partition_keys=keys)
    files.create()
    TableFiles(warehouse, "changes", more_columns=CHANGES).create()
    parsed, found = parse_statement(merge()), MetadataCheck(PaimonHook("paimon_default"), True)
    with pytest.raises(JobError) as caught:
        found.require_valid(*(parsed.target, parsed.statement, parsed.sources), expected=[expected])
    assert message in str(caught.value)


class TestFiles:
    SQL = merge("MATCHED THEN UPDATE SET note = s.note").replace("shop.changes", "files")

    def source(self, path: Path | str, **more: Any) -> dict[str, Any]:
        return {"files": file_source(str(path), "csv", **more)}

    @pytest.mark.parametrize("path", ["missing.csv", "day=*/x.csv", "empty"])
    def test_missing(self, hook: PaimonHook, tmp_path: Path, path: str) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty" / "_SUCCESS").touch()
        with pytest.raises(JobError, match="^SOURCE_NOT_FOUND: source files: .*" + path[:3]):
            check(hook, self.SQL, self.source(tmp_path / path))
        check(hook, self.SQL, self.source(tmp_path / path), shares_files=False)

    def test_columns_of_a_schema(self, hook: PaimonHook, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("1,x\n")
        with pytest.raises(JobError, match=r"s\.note is not a column of source files"):
            check(hook, self.SQL, self.source(tmp_path / "a.csv", schema="id BIGINT, txt STRING"))
        check(hook, self.SQL, self.source(tmp_path / "a.csv", schema="id BIGINT, note STRING"))
        check(hook, self.SQL, self.source(tmp_path / "*.csv"))

    def test_folders_can_be_columns(self, hook: PaimonHook, tmp_path: Path) -> None:
        (tmp_path / "in" / "note=x").mkdir(parents=True)
        (tmp_path / "in" / "note=x" / "a.csv").write_text("1\n")
        check(hook, self.SQL, self.source(tmp_path / "in", schema="id BIGINT"))

    @pytest.mark.parametrize(
        ("name", "path"), [("in/a", "[^x]n"), (".in/a", "*/a"), ("in/_p=1", "in")]
    )
    def test_names_that_spark_finds(
        self, hook: PaimonHook, tmp_path: Path, name: str, path: str
    ) -> None:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
        check(hook, self.SQL, self.source(tmp_path / path))

    def test_elsewhere(self, hook: PaimonHook) -> None:
        check(hook, self.SQL, self.source("s3://lake/none.csv"))


def test_metadata_that_cannot_be_read_is_left_to_the_job(hook: PaimonHook, warehouse: Path) -> None:
    schema = warehouse / "shop.db" / "orders" / "schema" / "schema-0"
    schema.write_text("{")
    check(hook, "DELETE FROM shop.orders WHERE nothing = 1")


MERGE_TASK = """
MergeIntoOperator(
    task_id="merge",
    sql='''MERGE INTO shop.orders AS t
USING shop.changes AS s
ON t.id = s.id
WHEN MATCHED AND s.goen THEN DELETE''',
    retries=2,
)
"""


@pytest.mark.usefixtures("airflow_db", "hook")
class TestTasks:
    def test_one_error_with_its_line(
        self, dag_file: Callable[..., DagFile], capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = dag_file(MERGE_TASK).run()
        (ti,) = run.get_task_instances()
        assert (ti.state, ti.try_number) == ("failed", 1), "a final error is not retried"
        log = capsys.readouterr().out
        assert "COLUMN_NOT_FOUND: sql, line 4: condition of clause 1" in log
        assert f"Where: task {run.dag_id}.merge" in log
        assert "spark-submit" not in log

    def test_a_list_names_the_statement_and_may_create_its_tables(
        self, dag_file: Callable[..., DagFile], capsys: pytest.CaptureFixture[str]
    ) -> None:
        body = """
StatementsOperator(
    task_id="all",
    statements=[
        create_table("new", sql="CREATE TABLE shop.new (id BIGINT)"),
        sql_statement("fill", sql="INSERT INTO shop.new SELECT id FROM shop.changes"),
        sql_statement("clean", sql="DELETE FROM shop.orders WHERE ide = 1"),
    ],
)
"""
        run = dag_file(body).run()
        assert run.state == "failed"
        log = capsys.readouterr().out.replace("\\'", "'")
        assert "COLUMN_NOT_FOUND: statement 'clean': sql, line 1: WHERE: ide is not" in log


@pytest.mark.usefixtures("hook")
class TestFolder:
    def check(
        self, folder: Path | str, capsys: pytest.CaptureFixture[str], *options: str
    ) -> tuple[int, Any]:
        code = main(["check", str(folder), "--conn", "paimon_default", *options])
        return code, capsys.readouterr().out

    def test_every_file_with_its_first_error(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "sql"
        (folder / "more").mkdir(parents=True)
        (folder / "a.sql").write_text("DELETE FROM shop.orders\nWHERE day = '{{ ds }}' AND ide = 1")
        (folder / "b.sql").write_text("DELETE FRM shop.orders")
        (folder / "c.sql").write_text("CREATE TABLE shop.new (id INT)")
        (folder / "more" / "d.sql").write_text("DELETE FROM shop.new WHERE anything = 1")
        (folder / "more" / "e.sql").write_text("DELETE FROM {{ params.table }}")
        code, out = self.check(folder, capsys)
        assert code == 1
        assert f"COLUMN_NOT_FOUND: {folder}/a.sql: line 2: WHERE: ide is not a column of" in out
        assert f"SYNTAX_ERROR: {folder}/b.sql: line 1, column 8: expected FROM" in out
        assert f"REQUEST_INVALID: {folder}/more/e.sql: template: 'dict object' has no" in out
        assert "\nfiles: 5, with errors: 3; " in out

    def test_sources_and_values(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "a.sql"
        text = merge("MATCHED THEN UPDATE SET note = s.{{ column }}").replace("shop.changes", "new")
        file.write_text(text)
        declared = ("--source", "new=id BIGINT, txt STRING", "--set")
        found = self.check(file, capsys, *declared, "column=txt")
        assert found[0] == 0
        assert "\nfiles: 1, with errors: 0; " in found[1]
        code, out = self.check(file, capsys, *declared, "column=text")
        assert code == 1
        assert "s.text is not a column of source new\n    Remedy: Did you mean txt?" in out

    def test_wrong_input(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", str(tmp_path)]) == 1
        assert "paths: there is no .sql file in" in capsys.readouterr().err
        (tmp_path / "a.sql").touch()
        assert main(["check", str(tmp_path), "--set", "x"]) == 1
        assert "--set: 'x' is not NAME=VALUE" in capsys.readouterr().err


def test_a_warehouse_that_is_not_there_is_named_before_its_tables(
    hook: PaimonHook, warehouse: Path
) -> None:
    shutil.rmtree(warehouse)

    with pytest.raises(JobError, match=f"WAREHOUSE_NOT_FOUND: the warehouse {warehouse} is not"):
        check(hook, "DELETE FROM shop.orders WHERE id = 1")
