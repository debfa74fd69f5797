"""Texts of several statements: where each begins, and what SET, USE and views mean for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.sql.script import Script, ScriptStatement, outline, read_script
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError

OVERWRITES = "SET spark.sql.sources.partitionOverwriteMode"
VIEW = "CREATE TEMPORARY VIEW v AS SELECT * FROM d.s;"
MANY = """-- one; two
/* three; /* four; */ five; */
USE shop;
create or replace temp view `V` (a, `b`) as
    select id, 'x;y' from orders o join d.c using (id) -- the end;
;;
  INSERT OVERWRITE `Daily` SELECT * FROM v;
MERGE INTO lake.d.t USING orders AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
CREATE TABLE IF NOT EXISTS x (id INT);
CREATE TABLE y (id INT);
ALTER TABLE x DROP IF EXISTS PARTITION (id = 1);
ALTER TABLE x DROP PARTITION FIELD id;
COMMENT ON TABLE x IS ';';
UPDATE d.t SET a = "it's; b" WHERE `a;b` = 'c'';d'"""


def only(text: str, sources: dict[str, Any] | None = None) -> ScriptStatement:
    (found,) = read_script(text, sources).statements
    return found


def refusal(text: str, sources: dict[str, Any] | None = None) -> JobError:
    with pytest.raises(JobError) as caught:
        read_script(text, sources)
    return caught.value


def test_each_statement_is_known_with_its_line() -> None:
    script: Script = read_script(MANY)
    assert [(each.operation, each.line) for each in script.statements] == [
        ("insert_overwrite", 7),
        ("sql", 8),
        ("create_table", 9),
        ("create_table", 10),
        ("sql", 11),
        ("alter_table", 12),
        ("alter_table", 13),
        ("sql", 14),
    ]
    texts = [each.parameters["sql"].strip() for each in script.statements]
    assert texts[0] == "INSERT OVERWRITE `Daily` SELECT * FROM v"
    assert texts[-1] == MANY.rpartition("\n")[2]
    assert {each.parameters["database"] for each in script.statements} == {"shop"}
    assert [each.parameters.get("keep_existing") for each in script.statements[2:4]] == [True, None]


def test_only_what_reads_a_view_has_it() -> None:
    overwrite, merge, *_ = read_script(MANY).statements
    assert overwrite.parameters["sources"] == {
        "V": {
            "kind": "sql",
            "query": "SELECT * FROM (select id, 'x;y' from V__shop__orders o join V__d__c AS c "
            "using (id)\n) AS `V` (`a`, `b`)",
            "sources": {
                "V__shop__orders": {"kind": "table", "table": "`shop`.`orders`"},
                "V__d__c": {"kind": "table", "table": "`d`.`c`"},
            },
        }
    }
    assert "sources" not in merge.parameters


def test_places_in_errors_are_those_of_the_whole_text() -> None:
    error = refusal("DELETE FROM d.t;\n\n  UPDATE d.t WHERE a = 1")
    assert error.message.startswith("line 3, column 14: expected SET")
    error = refusal("/* a;\n*/ CREATE TEMP VIEW v AS\nSELECT * FROM t")
    assert error.message.startswith("line 3, column 15: t is neither")


MODES = {
    "INSERT OVERWRITE d.t SELECT 1": ("table", True),
    "INSERT OVERWRITE d.t PARTITION (a = 1, b) SELECT 1": ("static", False),
    "INSERT OVERWRITE d.t PARTITION (b) SELECT 1": ("table", True),
    f"{OVERWRITES}=dynamic; INSERT OVERWRITE d.t SELECT 1": ("dynamic", False),
    f"{OVERWRITES}=DYNAMIC; {OVERWRITES}=static; INSERT OVERWRITE d.t SELECT 1": ("table", True),
    f"{OVERWRITES} = dynamic; INSERT OVERWRITE d.t PARTITION (a = 1) SELECT 1": ("dynamic", False),
    "INSERT OVERWRITE d.t /*+ OPTIONS('dynamic-partition-overwrite' = 'true') */ SELECT 1": (
        "dynamic",
        False,
    ),
    f"{OVERWRITES} = dynamic; WITH x AS (SELECT 1) INSERT OVERWRITE d.t SELECT * FROM x": (
        "dynamic",
        False,
    ),
}


@pytest.mark.parametrize(("text", "wanted"), MODES.items(), ids=MODES)
def test_an_overwrite_has_the_mode_that_spark_would_take(
    text: str, wanted: tuple[str, bool]
) -> None:
    parameters = only(text).parameters
    assert (parameters["mode"], parameters.get("allow_empty", False)) == wanted


def test_the_time_zone_is_that_of_the_statements_behind() -> None:
    zones = "SET TIME ZONE 'Asia/Tokyo'; DELETE FROM d.t; SET spark.sql.session.timeZone=UTC;"
    first, second, third = read_script(
        f"DELETE FROM d.t; {zones} SET spark.sql.ansi.enabled = true; TRUNCATE TABLE d.t"
    ).statements
    assert [each.parameters.get("session_time_zone") for each in (first, second, third)] == [
        *(None, "Asia/Tokyo", "UTC")
    ]


def test_settings_that_change_no_row_are_of_the_whole_job() -> None:
    text = (
        "DELETE FROM d.t; SET spark.sql.shuffle.partitions = 7; SET spark.sql.adaptive.enabled=true"
    )
    assert read_script(text).conf == {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.adaptive.enabled": "true",
    }


def test_a_database_with_a_catalog_is_to_be_checked() -> None:
    script = read_script("USE DATABASE a; USE lake.b; DELETE FROM t")
    (named,) = script.named
    assert (named.catalog, named.database) == ("lake", "b")
    assert script.statements[0].parameters["database"] == "b"
    assert read_script("USE SCHEMA `a.b`; DELETE FROM t").named == ()
    assert isinstance(named, TableName)


def test_a_view_reads_others_as_they_are_when_it_is_read() -> None:
    text = f"""{VIEW} CREATE TEMP VIEW w AS SELECT * FROM v JOIN files USING (id);
        CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM d.other; INSERT INTO d.t SELECT * FROM w"""
    files = {"kind": "file", "path": "/x", "format": "csv"}
    script = read_script(text, {"files": files})
    sources = script.statements[0].parameters["sources"]
    assert list(sources) == ["files", "v", "w"]
    assert list(sources["v"]["sources"]) == ["v__d__other"]
    assert script.read == {"files"}


def test_a_view_of_the_name_of_its_table_reads_the_table() -> None:
    text = "USE d; CREATE TEMP VIEW s AS SELECT * FROM s; INSERT INTO t SELECT * FROM s"
    (source,) = only(text).parameters["sources"].values()
    assert source["query"] == "SELECT * FROM s__d__s AS s"


def test_a_name_of_with_hides_a_view() -> None:
    text = f"{VIEW} WITH v AS (SELECT 1 AS a) INSERT INTO d.t SELECT * FROM v"
    assert "sources" not in only(text).parameters


def test_a_dropped_view_is_gone() -> None:
    text = f"{VIEW} DROP VIEW v; {VIEW} DROP VIEW IF EXISTS nothing; INSERT INTO d.t TABLE v"
    assert list(only(text).parameters["sources"]) == ["v"]
    assert "neither" in refusal(f"{VIEW} DROP VIEW IF EXISTS v; INSERT INTO d.t TABLE v").message


def test_nothing_is_a_statement() -> None:
    assert read_script(";; -- a\n; /* b */").statements == ()
    assert outline("DELETE FROM a.b; ; with x as (select 1) insert into c table x") == (
        *("DELETE", "WITH"),
    )


REFUSED = {
    "SELECT 1": ("line 1, column 1: SELECT is not supported", "QueryOperator"),
    "DELETE FROM d.t;\nSHOW TABLES": ("line 2, column 1: SHOW", "only shows"),
    "CREATE VIEW v AS SELECT 1": ("CREATE VIEW", "CREATE TEMPORARY VIEW"),
    "CREATE OR REPLACE VIEW v AS SELECT 1": ("CREATE OR REPLACE VIEW", "CREATE TEMPORARY VIEW"),
    "CREATE GLOBAL TEMP VIEW v AS SELECT 1": ("CREATE GLOBAL", "CREATE TEMPORARY VIEW"),
    "CREATE TEMP VIEW v USING csv OPTIONS (path '/x')": ("a view over files", "sources="),
    "CREATE DATABASE d": ("CREATE DATABASE", "CREATE TABLE creates"),
    "MSCK REPAIR TABLE d.t": ("MSCK", "Leave it out"),
    "FROM d.s INSERT INTO d.t SELECT *": ("FROM", "each INSERT"),
    "BEGIN DELETE FROM d.t; END": ("BEGIN", "in the DAG"),
    "USE CATALOG lake": ("USE CATALOG", "USE catalog.database"),
    "SET spark.executor.memory=7g": ("SET spark.executor.memory", "conf="),
    "SET spark.sql.shuffle.partitions=7; SET spark.sql.shuffle.partitions=8": (
        "spark.sql.shuffle.partitions has another value before",
        "Leave one",
    ),
    "SET spark.sql.parser.quotedRegexColumnNames=true": ("SET spark.sql.parser", "default of it"),
    "SET spark.sql.ansi.enabled=false": ("SET spark.sql.ansi.enabled", "ANSI SQL"),
    "SET TIME ZONE LOCAL": ("SET TIME ZONE LOCAL", "SET TIME ZONE 'Europe/Berlin'"),
    "SET": ("expected SET key = value", ""),
    "SET a": ("SET without a value", "Leave it out"),
    "RESET": ("RESET", "SET key = value"),
    "LIST JARS": ("LIST JARS is not supported", "Leave it out"),
    "INSERT INTO d.t SELECT '${hivevar:ds}'": ("${hivevar:ds} is a variable", "{{ ds }}"),
    "DELETE FROM d.t WHERE a = ${x}": ("${x} is a variable", "{{ ds }}"),
    f"{VIEW} SET TIME ZONE 'UTC'; INSERT INTO d.t TABLE v": ("keeps its time zone", "before"),
    "DROP VIEW other": ("is no temporary view", "Leave it out"),
}


@pytest.mark.parametrize(("text", "wanted"), REFUSED.items(), ids=REFUSED)
def test_what_is_not_supported_is_named_with_the_remedy(text: str, wanted: tuple[str, str]) -> None:
    error = refusal(text)
    assert wanted[0] in error.message
    assert wanted[1] in error.remedy


WRONG = {
    VIEW + VIEW: "there is a view v already",
    f"{VIEW} CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM v": "the view v would read itself",
    f"{VIEW} CREATE TEMP VIEW w AS TABLE v; CREATE OR REPLACE TEMP VIEW v AS TABLE w": "itself",
    f"{VIEW} CREATE TEMP VIEW w AS TABLE v; DROP VIEW v": "the view w reads v",
    f"USE d; {VIEW} DELETE FROM v": "v is a view or a source here",
    "CREATE TEMP VIEW `a-b` AS SELECT 1": "'a-b' cannot be the name of a view",
    "CREATE TEMP VIEW v AS DELETE FROM d.t": "DELETE is not a part of a query",
    "CREATE TEMP VIEW x.v AS SELECT 1": "expected a name",
    "USE a.b.c": "expected database or catalog.database",
    "DELETE FROM d.t; 'open": "' is not closed",
    f"{OVERWRITES}=both": "is neither DYNAMIC nor STATIC",
}


@pytest.mark.parametrize(("text", "problem"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    assert problem in refusal(text).message


def test_a_view_of_the_name_of_a_source_is_refused() -> None:
    assert "v is the name of a source" in refusal(VIEW, {"V": {}}).message


def test_values_of_settings_are_not_shown() -> None:
    error = refusal("SET fs.s3a.secret.key = hunter2")
    assert "fs.s3a.secret.key" in error.message
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    "text", ["ALTER TABLE v ADD COLUMN b INT", "COMMENT ON TABLE v IS 'x'", "DROP TABLE v"]
)
def test_a_view_is_no_table_to_alter_or_drop(text: str) -> None:
    with pytest.raises(JobError, match="v is a temporary view"):
        read_script(f"USE shop; CREATE TEMPORARY VIEW v AS SELECT 1 AS a; {text}")
    assert read_script(f"USE shop; {text}").statements
