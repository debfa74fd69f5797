"""Edits of ``check --write`` do what their verdicts say, and nothing else; no secret is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError

from airflow_provider_merge.__main__ import main
from tests.support.paimon_metadata import TableFiles

DELETE = "DELETE FROM shop.orders WHERE id = 1"


class Written:
    """What ``check --write`` made of a file."""

    def __init__(self, file: Path, code: int, out: str) -> None:
        self.file, self.code, self.out = file, code, out
        bag = DagBag(file.parent.parent)
        assert bag.import_errors == {}
        self.dag: Any = bag.dags.get("moved")

    @property
    def text(self) -> str:
        return self.file.read_bytes().decode()


Write = Callable[..., Written]


@pytest.fixture
def write(warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Write:
    TableFiles(warehouse, "orders", more_columns={"note": "STRING"}).create()

    def written(text: str, *arguments: str) -> Written:
        folder = tmp_path / "dags"
        file = folder / "sql" / "a.sql"
        file.parent.mkdir(parents=True)
        file.write_bytes(text.encode())
        options = ("--conn", "paimon_default", "--write", str(folder / "moved.py"))
        code = main(["check", str(file.parent), *options, *arguments])
        return Written(file, code, capsys.readouterr().out)

    return written


@pytest.mark.parametrize(
    "setting",
    [
        "SET fs.s3a.secret.key=hunter2",
        "SET password hunter2",
        "SET spark.x.password hunter2=1",
        "SET spark.x.password=it'hunter2",
        "SET spark.x.url=jdbc:postgresql://u:hunter2@host/db",
        "SET spark.x = {{ 'hunter2' }}' ",
    ],
)
def test_no_value_of_a_setting_is_shown(write: Write, setting: str) -> None:
    done = write(f"{setting};\n{DELETE};\n")
    assert done.code == 1
    assert "hunter2" not in done.out
    assert "hunter2" not in (done.file.parent.parent / "moved.py").read_text()


@pytest.mark.parametrize(
    "statement",
    [
        "SET spark.sql.ansi.enabled = false",
        "SET spark.sql.legacy.timeParserPolicy = LEGACY",
        "SET spark.sql.catalog.lake = org.apache.iceberg.spark.SparkCatalog",
        "SET spark.sql.sources.partitionOverwriteMode = both",
        "SET day = 2026-01-31",
        "SET hivevar:day = 2026-01-31",
        "SET VAR day = 1",
        "CACHE TABLE orders AS SELECT * FROM shop.orders WHERE id = 1",
        "CACHE LAZY TABLE orders SELECT * FROM shop.orders WHERE id = 1",
        "CREATE DATABASE shop LOCATION '/elsewhere'",
    ],
)
def test_what_no_edit_replaces(write: Write, statement: str) -> None:
    text = f"USE shop;\n{statement};\nDELETE FROM orders WHERE day = '${{day}}';\n"
    done = write(text)
    assert done.code == 1, done.out
    assert done.text == text, "the file gets no task, so it is not edited"
    is_wrong = statement.endswith("both")
    assert f"wrong: {int(is_wrong)}, not supported: {int(not is_wrong)}," in done.out
    assert done.dag.tasks == []


def test_settings_go_to_the_task(write: Write) -> None:
    done = write(
        "SET spark.speculation.multiplier = {{ 100 + 1 }};\n"
        f"SET hive.exec.dynamic.partition = true;\n{DELETE};"
    )
    assert done.code == 0, done.out
    (task,) = done.dag.tasks
    assert task.conf == {"spark.speculation.multiplier": "{{ 100 + 1 }}"}


def test_the_statement_is_edited_not_what_a_comment_says_of_it(write: Write) -> None:
    done = write(f"{DELETE};\r\n-- SHOW TABLES is next\r\nSHOW TABLES;\r\n{DELETE}\r\n;")
    assert done.code == 0, done.out
    after = f"{DELETE};\r\n-- SHOW TABLES is next\r\n/* SHOW TABLES */;\r\n{DELETE}\r\n;"
    assert done.text == after


@pytest.mark.parametrize("text", ["SHOW TABLES;\n", "SELECT 1; SELECT 2", "-- later", "USE shop;"])
def test_a_file_of_which_nothing_is_left_makes_no_task(write: Write, text: str) -> None:
    done = write(text)
    assert done.code == 0, done.out
    assert done.dag.tasks == []


def test_the_task_of_a_file_that_drops_a_table_allows_it(write: Write) -> None:
    done = write("DROP TABLE IF EXISTS shop.orders;")
    assert done.dag.tasks[0].allow_drop is True
    assert "of the task: allow_drop=True" in done.out


def test_a_query_with_a_variable_of_spark_sql(write: Write) -> None:
    done = write("SELECT * FROM shop.orders WHERE day = '${day}'")
    assert done.code == 1
    assert "${day} is a variable of spark-sql" in done.out


def test_a_source_that_only_a_comment_names(write: Write) -> None:
    done = write(f"-- changes come later\n{DELETE};", "--source", "changes=id BIGINT")
    assert done.dag.tasks[0].sources is None


def test_a_run_begins_only_with_values_for_all_parameters(write: Write) -> None:
    done = write("UPDATE shop.orders SET note = '${why}' WHERE id = 1")
    assert done.code == 0, done.out
    with pytest.raises(ParamValidationError):
        done.dag.params.validate()


def test_tasks_of_files_whose_names_differ_only_in_signs(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "dags" / "sql"
    folder.mkdir(parents=True)
    (folder / "a_b.sql").write_text(DELETE)
    (folder / "a-b.sql").write_text(DELETE)
    main(["check", str(folder), "--conn", "paimon_default", "--write", str(tmp_path / "dags/x.py")])
    assert set(DagBag(tmp_path / "dags").dags["x"].task_ids) == {"sql_a_b", "sql_a_b_2"}
