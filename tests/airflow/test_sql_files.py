"""StatementsOperator with ``sql``: files of several statements, and what is known of them when."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.operators.statements import StatementsOperator
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.inserts import DropPartitionsSpec, InsertOverwriteSpec
from spark_jobs.contract.request import JobRequest, SqlSource, TableSource
from spark_jobs.contract.statements import CreateTableSpec, DeleteSpec, MergeSpec
from spark_jobs.errors import JobError
from tests.airflow.support import DagFile, FakeSubmitter

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("airflow_db", "warehouse")]

NIGHTLY = """-- What happens every night; in this order.
SET spark.sql.sources.partitionOverwriteMode = dynamic;
SET TIME ZONE 'Europe/Berlin';
CREATE TEMPORARY VIEW latest AS SELECT * FROM orders WHERE day = '{{ params.day }}';
CREATE TABLE IF NOT EXISTS daily (id INT, day STRING) PARTITIONED BY (day);
ALTER TABLE daily ADD COLUMN IF NOT EXISTS n INT;
INSERT OVERWRITE daily SELECT id, day, 1 FROM latest;
MERGE INTO archive.orders AS t USING latest AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
ALTER TABLE daily DROP IF EXISTS PARTITION (day = '2020-01-01');
"""
CLEANUP = "DELETE FROM shop.daily WHERE day < '2024-01-01' /* ; */"
PARAMS = 'params={"day": "2026-01-31", "table": "shop.daily"}'
Write = Callable[..., DagFile]


@pytest.fixture
def nightly(dag_file: Callable[..., DagFile], tmp_path: Path) -> Write:
    """Writes files, and a DAG with a task of the arguments."""

    def write(arguments: str, **files: str) -> DagFile:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.sql"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        body = f'StatementsOperator(task_id="many", {arguments})'
        return dag_file(body, arguments=f"{PARAMS}, template_searchpath={str(tmp_path)!r}")

    return write


def batch_of(submitter: FakeSubmitter) -> JobBatch:
    (job,) = submitter.jobs
    assert isinstance(job.work, JobBatch)
    return job.work


def requests_of(submitter: FakeSubmitter) -> list[JobRequest]:
    return list(batch_of(submitter).requests)


def parsed(dag_file: DagFile) -> Any:
    """The DAG, as Airflow parses its file: with the files that it names."""
    dag = dag_file.dag()
    dag.resolve_template_files()
    return dag


def operator(dag: DagFile) -> StatementsOperator:
    found: StatementsOperator = parsed(dag).get_task("many")
    return found


def uris(assets: list[Any]) -> set[str]:
    return {each.uri.rpartition("paimon_default/")[2] for each in assets}


def test_a_file_is_a_list_of_statements(nightly: Write, submitter: FakeSubmitter) -> None:
    run = nightly('sql="nightly.sql", database="shop"', nightly=NIGHTLY).run()

    assert run.state == "success"
    create, alter, overwrite, merge, drop = requests_of(submitter)
    assert isinstance(create.statement, CreateTableSpec)
    assert create.statement.keep_existing
    assert isinstance(alter.statement, AlterTableSpec)
    assert isinstance(overwrite.statement, InsertOverwriteSpec)
    assert overwrite.statement.mode == "dynamic"
    assert isinstance(merge.statement, MergeSpec)
    assert isinstance(drop.statement, DropPartitionsSpec)
    assert [each.origin.statement for each in requests_of(submitter)] == [
        f"nightly-{number}" for number in range(1, 6)
    ]
    assert {str(each.target) for each in requests_of(submitter)} == {
        *("shop.daily", "archive.orders")
    }
    table, view = overwrite.sources[:2]
    assert isinstance(table, TableSource)
    assert str(table.table) == "shop.orders"
    assert isinstance(view, SqlSource)
    assert view.name == "latest"
    assert "day = '2026-01-31'" in view.query
    assert overwrite.options.session_time_zone == "Europe/Berlin"


def test_files_run_one_after_the_other_each_with_its_own_settings(
    nightly: Write, submitter: FakeSubmitter
) -> None:
    more = "INSERT OVERWRITE shop.a SELECT * FROM shop.b"
    sql = ["nightly.sql", "more.sql", "DELETE FROM shop.c"]
    run = nightly(f'sql={sql!r}, database="shop"', nightly=NIGHTLY, more=more).run()

    assert run.state == "success"
    last, text = requests_of(submitter)[-2:]
    assert isinstance(last.statement, InsertOverwriteSpec)
    assert (last.statement.mode, last.statement.allow_empty) == ("table", True)
    assert last.options.session_time_zone == "UTC"
    assert (last.origin.statement, text.origin.statement) == ("more-1", "sql.3-1")


def test_names_of_files_in_folders_differ(nightly: Write, submitter: FakeSubmitter) -> None:
    files = {"a__load": CLEANUP, "b__load": CLEANUP}
    assert nightly("sql=['a/load.sql', './b/load.sql']", **files).run().state == "success"
    names = [each.origin.statement for each in requests_of(submitter)]
    assert names == ["a.load-1", "b.load-1"]


def test_mapped_files(nightly: Write, submitter: FakeSubmitter) -> None:
    dag = nightly('sql="x.sql")\n', x=CLEANUP, y=CLEANUP.replace("shop", "lake"))
    text = dag.path.read_text()
    call = 'StatementsOperator.partial(task_id="many").expand(sql=["x.sql", "y.sql"])'
    dag.path.write_text(text[: text.index("StatementsOperator(task_id")] + call + "\n")
    assert dag.run().state == "success"
    found = {str(each.target) for job in submitter.jobs for each in job.work.requests}
    assert found == {"shop.daily", "lake.daily"}


def test_tables_are_inlets_and_outlets_if_their_names_are_known(nightly: Write) -> None:
    known = operator(nightly('sql="a.sql"', a="INSERT INTO a.b SELECT * FROM a.c; DELETE FROM d.e"))
    assert (uris(known.inlets), uris(known.outlets)) == ({"a/c"}, {"a/b", "d/e"})
    text = NIGHTLY + "DELETE FROM {{ params.table }}"
    part = operator(nightly('sql="b.sql", database="shop"', b=text))
    assert uris(part.inlets) == {"shop/orders"}
    assert uris(part.outlets) == {"shop/daily", "archive/orders"}


def test_sources_of_the_task_are_read_where_statements_name_them(
    nightly: Write, submitter: FakeSubmitter
) -> None:
    text = "DELETE FROM shop.a; INSERT INTO shop.a SELECT * FROM landed"
    source = "sources={'landed': table_source('lake.{{ params.day }}')}"
    assert nightly(f'sql="a.sql", {source}', a=text).run().state == "success"
    delete, insert = requests_of(submitter)
    assert isinstance(delete.statement, DeleteSpec)
    assert delete.sources == ()
    assert [each.name for each in insert.sources] == ["landed", "insert_source"]


def test_an_edit_changes_the_numbers_of_the_statements_behind_it(
    nightly: Write, submitter: FakeSubmitter
) -> None:
    """A retry that finds another statement under a name does not take its commit."""
    other = "DELETE FROM shop.a; DELETE FROM shop.b"
    dag = nightly('sql="a.sql"', a=other)
    operators = operator(dag)._known_operators()
    assert list(operators) == ["a-1", "a-2"]
    assert str(operators["a-2"].target_table()) == "shop.b"


WRONG = {
    "DELETE FROM a.b;\n\nMSCK REPAIR TABLE a.b": (
        "task 'many': sql (a.sql): line 3, column 1: MSCK is not supported"
    ),
    "DELETE FROM a.b;\nINSERT INTO a.b SELECT * FROM t": "sql (a.sql): line 2, column 31: t is",
    "DELETE FROM a.b;\nCREATE TABLE a.c (id INT) LOCATION '/x'": (
        "statement 'a-2' (a.sql, line 2): sql: line 2, column 27: LOCATION is not supported"
    ),
    "DELETE FROM a.b;\nALTER TABLE a.b RENAME TO a.c": (
        "statement 'a-2' (a.sql, line 2): sql: line 2, column 17: ALTER TABLE ... RENAME TO"
    ),
    "-- nothing": "sql: there is no statement",
    "DELETE FROM a.b WHERE a = '": "sql (a.sql): line 1, column 27: ' is not closed",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=WRONG)
def test_a_wrong_statement_is_named_when_the_dag_is_parsed(
    nightly: Write, text: str, message: str
) -> None:
    with pytest.raises(JobError) as raised:
        parsed(nightly('sql="a.sql"', a=text))
    assert message in str(raised.value)


ARGUMENTS = {
    "": "statements: missing",
    "sql=['a.sql'], statements=['a.sql']": "sql: cannot be combined with statements",
    "statements=['a.sql'], database='x'": "database: cannot be combined with statements",
    "sql=['a.sql', './a.sql']": "sql: two files are called 'a'",
    "sql=['a.sql', 3]": "sql[1]: expected text, found int",
    "sql='b.sql'": "sql: there is no file 'b.sql'",
    "sql='a.sql', sources={'x': table_source('a.c')}": "sources.x: no statement reads it",
    "sql=[]": "sql: is empty",
}


@pytest.mark.parametrize(("arguments", "message"), ARGUMENTS.items(), ids=ARGUMENTS)
def test_wrong_arguments_are_named(nightly: Write, arguments: str, message: str) -> None:
    with pytest.raises(JobError) as raised:
        parsed(nightly(arguments, a=CLEANUP))
    assert message in str(raised.value)


RENDERED = {
    # A value adds a statement, makes another one of it, or is one that nothing runs.
    "DELETE FROM a.b WHERE a = '{{ params.value }}'": (
        "x'; TRUNCATE TABLE a.c; DELETE FROM a.b WHERE a = '",
        "sql (a.sql): sql: templates make 3 statements of 1 that are written",
    ),
    "{{ params.value }} a.b": ("MSCK REPAIR TABLE", "line 1, column 1: MSCK is not supported"),
    "DELETE FROM a.b; USE {{ params.value }}": ("a.b.c", "expected database or catalog.database"),
    "USE {{ params.value }}.b; DELETE FROM a": ("other", "other"),
}


@pytest.mark.parametrize(("text", "wanted"), RENDERED.items(), ids=RENDERED)
def test_what_templates_make_is_checked_before_spark_starts(
    nightly: Write,
    submitter: FakeSubmitter,
    capsys: pytest.CaptureFixture[str],
    text: str,
    wanted: tuple[str, str],
) -> None:
    value, message = wanted
    dag = nightly('sql="a.sql"', a=text)
    source = dag.path.read_text().replace(PARAMS, f"params={json.dumps({'value': value})}")
    dag.path.write_text(source)

    assert dag.run().state == "failed"
    assert submitter.jobs == []
    assert message in capsys.readouterr().out


def test_blocks_of_templates_decide_which_statements_there_are(
    nightly: Write, submitter: FakeSubmitter
) -> None:
    text = "{% for each in 'abc' %} DELETE FROM shop.{{ each }}; {% endfor %}"
    assert nightly('sql="a.sql"', a=text).run().state == "success"
    targets = [str(each.target) for each in requests_of(submitter)]
    assert targets == ["shop.a", "shop.b", "shop.c"]


def test_rendered_text_is_never_rendered_again(nightly: Write, submitter: FakeSubmitter) -> None:
    text = "DELETE FROM shop.a WHERE a = {% raw %}'{{ x }}'{% endraw %}"
    assert nightly('sql="a.sql"', a=text).run().state == "success"
    (request,) = requests_of(submitter)
    assert isinstance(request.statement, DeleteSpec)
    assert request.statement.where == "a = '{{ x }}'"


def test_a_table_that_names_its_format(nightly: Write, submitter: FakeSubmitter) -> None:
    text = "CREATE TABLE shop.t USING {} AS SELECT 1 AS one"
    assert nightly('sql="a.sql"', a=text.format("paimon")).run().state == "success"
    assert nightly('sql="a.sql"', a=text.format("iceberg")).run().state == "failed"
    assert len(requests_of(submitter)) == 1


def test_a_dry_run_of_what_has_none_is_refused(nightly: Write) -> None:
    text = "DELETE FROM a.b; CREATE TABLE a.c (id INT)"
    with pytest.raises(JobError, match=r"statement 'a-2' \(a.sql, line 1\): dry_run: "):
        parsed(nightly('sql="a.sql", dry_run=True', a=text))


CARE = """DROP TABLE IF EXISTS shop.old;
CALL sys.create_tag(table => 'shop.daily', tag => 'x');
CALL sys.compact(table => 'shop.daily');
CALL sys.expire_snapshots(table => 'shop.daily', retain_max => 3);
CREATE TABLE shop.old AS SELECT * FROM shop.daily;
"""


def test_calls_and_drops_are_statements_like_others(
    nightly: Write, submitter: FakeSubmitter
) -> None:
    assert nightly('sql="a.sql", allow_drop=True', a=CARE).run().state == "success"
    kinds = [each.statement.kind for each in requests_of(submitter)]
    assert kinds == ["drop_table", "create_tag", "compact", "expire_snapshots", "insert_into"]


def test_a_drop_has_to_be_allowed(nightly: Write) -> None:
    with pytest.raises(JobError) as raised:
        parsed(nightly('sql="a.sql"', a=CARE))
    assert "allow_drop: statement 'a-1' (a.sql, line 1) drops `shop`.`old`" in str(raised.value)
    with pytest.raises(JobError, match=r"allow_drop: statement 'x' drops a\.b"):
        nightly("statements=[{'name': 'x', 'operation': 'drop_table', 'target': 'a.b'}]").dag()


def test_a_call_of_another_format_is_refused_before_spark_starts(
    nightly: Write, submitter: FakeSubmitter, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "DELETE FROM shop.a;\nCALL system.rewrite_manifests('shop.a')"
    assert nightly('sql="a.sql"', a=text).run().state == "failed"
    assert submitter.jobs == []
    assert "line 2: the procedure is for tables of iceberg, not paimon" in capsys.readouterr().out


def test_what_a_file_sets_for_the_job_reaches_its_conf(nightly: Write) -> None:
    text = "SET spark.sql.shuffle.partitions = 7; DELETE FROM shop.a"
    arguments = 'sql="a.sql", conf={"spark.sql.shuffle.partitions": 3, "spark.a": "b"}'
    conf = operator(nightly(arguments, a=text)).spark_settings().conf
    assert conf == {"spark.sql.shuffle.partitions": "7", "spark.a": "b"}
