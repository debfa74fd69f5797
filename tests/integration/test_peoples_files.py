"""What ``check`` says of people's SQL files is what running them does, on both formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Lake
from tests.support.peoples_statements import EDITED, QUERIES, REFUSED, REFUSED_ON, RUN, RUN_ON

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.by_turns(2)]

# Runs in the Spark environment: the tables that the statements are about.
TABLES = """
import sys
import pyarrow as pa
format_, warehouse = sys.argv[1:]
rows = pa.schema([("order_id", pa.int64()), ("customer", pa.string()),
                  ("amount", pa.decimal128(10, 2)), ("status", pa.string()), ("day", pa.date32())])
altered = pa.schema([("id", pa.int64()), ("name", pa.string()), ("small", pa.int32()),
                     ("extra", pa.string())])
old = pa.schema([("id", pa.int64())])
if format_ == "paimon":
    from pypaimon import CatalogFactory, Schema
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("shop", True)
    def create(name, schema, keys=()):
        catalog.create_table(f"shop.{name}", Schema.from_pyarrow_schema(schema, list(keys)), False)
else:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.transforms import IdentityTransform
    catalog = SqlCatalog("iceberg_default", uri=f"sqlite:///{warehouse}/catalog.db",
                         warehouse=warehouse)
    catalog.create_namespace("shop")
    def create(name, schema, keys=()):
        table = catalog.create_table(f"shop.{name}", schema)
        with table.update_spec() as spec:
            for key in keys:
                spec.add_field(key, IdentityTransform(), key)
create("orders", rows, ["day"])
create("updates", rows)
create("copy", rows)
create("altered", altered)
create("old", old)
"""
DAG = """
import json
from datetime import datetime
from airflow.sdk import DAG, task
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.statements import StatementsOperator

with DAG("peoples_files", schedule=None, start_date=datetime(2024, 1, 1),
         template_searchpath=[{folder!r}], default_args={{"catalog_conn_id": {conn!r}}}):
    @task(trigger_rule="all_done")
    def keep(result):
        with open({result!r}, "w") as file:
            json.dump(result, file)
    keep(StatementsOperator(task_id="all", sql={files!r}, allow_drop=True,
                            on_failure="continue").output)
    QueryOperator(task_id="query", sql={query!r})
"""
# Each task that succeeds leaves a file; a statement may be refused only when its task runs.
REFUSALS = """
import json
from datetime import datetime
from pathlib import Path
from airflow.sdk import DAG, task
from airflow_provider_merge.operators.statements import StatementsOperator
from spark_jobs.errors import JobError

folder = Path({folder!r})
with DAG("refusals", schedule=None, start_date=datetime(2024, 1, 1)):
    @task
    def succeeded(name):
        (folder / name).touch()
    for name, text in json.loads((folder / "refused.json").read_text()).items():
        try:
            run = StatementsOperator(task_id=name, sql=text, catalog_conn_id={conn!r})
        except JobError as error:
            (folder / f"{{name}}.refused").write_text(error.code.name)
        else:
            run >> succeeded.override(task_id=f"{{name}}-ran")(name)
"""
_VERDICT = re.compile(r"^  line \d+ +(.{34}) (.*)$")


@pytest.mark.parametrize("format_", ["paimon", "iceberg"])
def test_each_verdict_is_what_happens(lake: Lake, tmp_path: Path, format_: str) -> None:
    warehouse, folder, conn = tmp_path / "warehouse", tmp_path / "sql", f"{format_}_default"
    warehouse.mkdir()
    folder.mkdir()
    lake.python(TABLES, format_, str(warehouse))
    environment = {**lake.environment(), **connection(format_, warehouse)}
    running = {**RUN, **RUN_ON[format_]}
    refused = {**REFUSED, **REFUSED_ON[format_]}
    for name, text in {**running, **EDITED, **QUERIES, **refused}.items():
        (folder / f"{name}.sql").write_text(text)

    told = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "airflow_provider_merge", "check"),
            *(str(folder), "--conn", conn, "--write", str(tmp_path / "dag.py")),
        ],
        env=environment,
        cwd=lake.folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout

    verdicts = by_file(told)
    assert {each for each, found in verdicts.items() if found == {"runs as it is"}} == set(running)
    edited = {each for each, found in verdicts.items() if "runs after this edit" in found}
    assert edited == set(EDITED), told
    assert {each for each, found in verdicts.items() if "not supported" in found} == set(refused)
    queries = {e for e, found in verdicts.items() if found == {"runs with QueryOperator"}}
    assert queries == set(QUERIES)

    files = [f"{name}.sql" for name in (*running, *EDITED)]
    result = tmp_path / "result.json"
    query = f"{next(iter(QUERIES))}.sql"
    values = {"folder": str(folder), "conn": conn, "result": str(result)}
    lake.add_dag("peoples_files", DAG.format(**values, files=files, query=query))
    done = lake.airflow("dags", "test", "peoples_files", environment=environment)
    assert done.returncode == 0, done.stdout[-12000:]
    results = json.loads(result.read_text())["statements"]
    assert {name.rpartition("-")[0] for name in results} == {Path(file).stem for file in files}

    (tmp_path / "refused.json").write_text(json.dumps(refused))
    lake.add_dag("refusals", REFUSALS.format(folder=str(tmp_path), conn=conn))
    lake.airflow("dags", "test", "refusals", environment=environment)
    assert [name for name in refused if (tmp_path / name).exists()] == []
    at_once = [name for name in refused if (tmp_path / f"{name}.refused").exists()]
    assert len(at_once) >= len(REFUSED) - 5


def connection(format_: str, warehouse: Path) -> dict[str, str]:
    extra = {"warehouse": str(warehouse), "spark-catalog-name": "lake"}
    if format_ == "paimon":
        found: dict[str, Any] = {"conn_type": "paimon", "extra": extra}
    else:
        host = f"sqlite:///{warehouse}/catalog.db"
        found = {"conn_type": "iceberg", "host": host, "extra": {"type": "sql", **extra}}
    return {f"AIRFLOW_CONN_{format_.upper()}_DEFAULT": json.dumps(found)}


def by_file(told: str) -> dict[str, set[str]]:
    """The verdicts on each file's statements, by its name."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in told.splitlines():
        if verdict := _VERDICT.match(line):
            found.setdefault(name, set()).add(verdict[2])
        elif line.endswith(".sql"):
            name = Path(line).stem
    return found
