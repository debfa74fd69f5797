"""``python -m airflow_provider_merge check``: what becomes of people's SQL files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_provider_merge.__main__ import main
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statements import StatementsOperator
from tests.support.paimon_metadata import TableFiles

NIGHTLY = """-- Every night; as spark-sql ran it.
SET spark.executor.memory = 2g;
USE shop;
CREATE EXTERNAL TABLE IF NOT EXISTS daily (id BIGINT, day DATE) USING paimon
PARTITIONED BY (day) LOCATION '/data/daily';
SHOW TABLES;
INSERT OVERWRITE daily SELECT id, day FROM orders WHERE day = DATE '${ds}';
CREATE VIEW v AS SELECT * FROM daily;
DELETE FROM daily WHERE id IN (SELECT id FROM v) AND day < '{{ macros.ds_add(ds, -1) }}';
UPDATE orders SET note = '${reason}' WHERE id = 1;
"""
AFTER = """-- Every night; as spark-sql ran it.
/* SET spark.executor.memory = 2g */;
USE shop;
CREATE TABLE IF NOT EXISTS daily (id BIGINT, day DATE) USING paimon
PARTITIONED BY (day);
/* SHOW TABLES */;
INSERT OVERWRITE daily SELECT id, day FROM orders WHERE day = DATE '{{ ds }}';
CREATE TEMPORARY VIEW v AS SELECT * FROM daily;
DELETE FROM daily WHERE id IN (SELECT id FROM v) AND day < '{{ macros.ds_add(ds, -1) }}';
UPDATE orders SET note = '{{ params.reason }}' WHERE id = 1;
"""


@pytest.fixture
def folder(warehouse: Path, tmp_path: Path) -> Path:
    TableFiles(warehouse, "orders", more_columns={"note": "STRING"}).create()
    found = tmp_path / "dags" / "sql"
    found.mkdir(parents=True)
    return found


def check(*arguments: object) -> int:
    return main(["check", *map(str, arguments), "--conn", "paimon_default"])


def test_each_statement_with_what_becomes_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nightly.sql").write_text(
        NIGHTLY + "GRANT SELECT ON orders TO bob;\nDELETE FROM orders WHERE ide = 1;"
    )
    (folder / "report.sql").write_text("SELECT id FROM shop.orders WHERE day = '{{ ds }}'")
    (folder / "broken.sql").write_text("DELETE FROM {{ params.nothing }}")

    assert check(folder) == 1

    out = capsys.readouterr().out
    verdicts = [line[47:].strip() for line in out.splitlines() if "  line " in line]
    edit, runs, refused = "runs after this edit", "runs as it is", "not supported"
    assert verdicts == [
        *(edit, runs, edit, edit, edit, edit, runs, edit, refused, "wrong"),
        "runs with QueryOperator",
    ]
    assert "    - CREATE VIEW v AS SELECT * FROM daily\n" in out
    assert "    + CREATE TEMPORARY VIEW v AS SELECT * FROM daily\n" in out
    assert "of the task: conf={'spark.executor.memory': '2g'}" in out
    assert "of the DAG: params={'reason': ...}" in out
    assert f"NOT_SUPPORTED: {folder}/nightly.sql: line 11, column 1: GRANT is not supported" in out
    assert f"COLUMN_NOT_FOUND: {folder}/nightly.sql: line 12: WHERE: ide is not" in out
    assert f"REQUEST_INVALID: {folder}/broken.sql: template: " in out
    assert out.endswith(
        "files: 3, with errors: 2; statements: 11, run as they are: 3, after an edit: 6, "
        "wrong: 1, not supported: 1, files not read: 1\n"
        "--source NAME[=SCHEMA] declares a source of the tasks, --database NAME the database of "
        "tables that are named without one\n"
    )
    assert (folder / "nightly.sql").read_text().startswith(NIGHTLY), "nothing is written"


def test_edits_and_a_dag_that_is_a_beginning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nightly.sql").write_text(NIGHTLY)
    (folder / "report.sql").write_text("SELECT id FROM shop.orders JOIN changes USING (id)")
    (folder / "later.sql").write_text("GRANT SELECT ON shop.orders TO bob")
    dag_file = folder.parent / "moved.py"

    assert check(folder, "--source", "changes=id BIGINT", "--write", dag_file) == 1

    assert (folder / "nightly.sql").read_text() == AFTER
    assert "# Not yet: sql/later.sql; see the report." in dag_file.read_text()
    bag = DagBag(folder.parent)
    assert bag.import_errors == {}
    dag = bag.dags["moved"]
    nightly, report = dag.get_task("sql_nightly"), dag.get_task("sql_report")
    assert isinstance(nightly, StatementsOperator)
    assert nightly.conf == {"spark.executor.memory": "2g"}
    assert isinstance(report, QueryOperator)
    assert set(report.sources or {}) == {"changes"}
    assert list(dag.params) == ["reason"]
    capsys.readouterr()
    (folder / "later.sql").unlink()
    again = ("--source", "changes=id BIGINT", "--set", "params.reason=x")
    assert check(folder, *again) == 0, capsys.readouterr().out


def test_a_file_that_gets_no_task_keeps_its_settings(folder: Path) -> None:
    text = "SET spark.executor.memory = 2g;\nGRANT SELECT ON shop.orders TO bob;\n"
    (folder / "later.sql").write_text(text)
    dag_file = folder.parent / "moved.py"

    assert check(folder, "--write", dag_file) == 1

    assert (folder / "later.sql").read_text() == text
    assert "# Not yet: sql/later.sql; see the report." in dag_file.read_text()


def test_an_edit_of_one_statement_among_others_in_a_line(folder: Path) -> None:
    file = folder / "a.sql"
    file.write_text("\ufeffSHOW TABLES; TRUNCATE TABLE shop.orders;-- ;\nSHOW TABLES\n")
    check(folder, "--write", folder.parent / "dag.py")
    text = "/* SHOW TABLES */; TRUNCATE TABLE shop.orders;-- ;\n/* SHOW TABLES */\n"
    assert file.read_text().removeprefix("\ufeff") == text
    assert check(folder) == 0


def test_a_secret_is_neither_shown_nor_moved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text("SET fs.s3a.secret.key = hunter2;\nTRUNCATE TABLE shop.orders")
    dag_file = folder.parent / "dag.py"
    assert check(folder, "--write", dag_file) == 1
    assert "hunter2" not in capsys.readouterr().out + dag_file.read_text()


def test_values_of_params_from_a_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text("DELETE FROM {{ params.table }} WHERE {{ params.where }}")
    params = tmp_path / "params.json"
    params.write_text(json.dumps({"table": "shop.orders", "where": "id = 1"}))
    assert check(folder, "--params", params) == 0
    assert check(folder, "--params", params, "--set", "params.where=ide = 1") == 1
    assert "ide is not a column of shop.orders" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--params", "none.json"], "--params: none.json cannot be read"),
        (["--write", "there.py"], "--write: there.py exists"),
        (["--source", "x="], "--source: 'x=' is not NAME or NAME=SCHEMA"),
        (["--set", "x"], "--set: 'x' is not NAME=VALUE"),
    ],
)
def test_options_that_cannot_be_used(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").touch()
    (folder / "a.sql").write_text("TRUNCATE TABLE shop.orders")
    assert check(folder, *arguments) == 1
    assert message in capsys.readouterr().err
    shutil.rmtree(folder)
    assert check(folder) == 1
    assert f"paths: {folder} does not exist" in capsys.readouterr().err
    assert check(folder.parent) == 1
    assert f"paths: there is no .sql file in {folder.parent}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "becomes"),
    [
        ("hive.exec.dynamic.partition.mode = nonstrict", "runs after this edit"),
        ("spark.sql.shuffle.partitions = 8", "runs as it is"),
        ("spark.sql.ansi.enabled = false", "not supported"),
        ("spark.sql.legacy.timeParserPolicy = LEGACY", "not supported"),
        ("fs.s3a.endpoint = https://store.test", "not supported"),
    ],
)
def test_what_becomes_of_a_setting(
    folder: Path, capsys: pytest.CaptureFixture[str], setting: str, becomes: str
) -> None:
    (folder / "a.sql").write_text(f"SET {setting};\nTRUNCATE TABLE shop.orders")
    check(folder)
    line = capsys.readouterr().out.splitlines()[1]
    assert line.endswith(becomes), line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO other.shop.orders SELECT 1", "other.shop.orders is in the catalog other"),
        ("CREATE TABLE shop.t USING iceberg AS SELECT 1 AS one", "asks for a table of iceberg"),
    ],
)
def test_what_the_connection_decides(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (folder / "a.sql").write_text(text)
    assert check(folder) == 1
    assert message in capsys.readouterr().out
    (folder / "a.sql").write_text("CREATE TABLE shop.t USING paimon AS SELECT 1 AS one")
    assert check(folder) == 0
