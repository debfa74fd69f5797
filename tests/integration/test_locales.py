"""Files and folders whose names are not ASCII, under the locales that a worker may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.paimon_metadata import TableFiles

# Each is a whole task, so that a run takes one of them.
pytestmark = [pytest.mark.slow]

# What the worker's environment says; Hawaiian stands for what no image has.
LOCALES = {
    "C": {"LC_ALL": "C"},
    "not_installed": {"LC_ALL": "haw_US.UTF-8"},
    "none": {},
    "a_category_not_installed": {"LANG": "C.UTF-8", "LC_TIME": "haw_US.UTF-8"},
    "POSIX": {"LC_ALL": "POSIX"},
    "UTF-8": {"LC_ALL": "C.UTF-8"},
}
DAG = """
from airflow.sdk import DAG
from airflow_provider_merge.operators.sources import file_source, sql_source
from airflow_provider_merge.operators.statement_list import insert_into
from airflow_provider_merge.operators.statements import StatementsOperator

HEADER = {{"options": {{"header": True}}, "schema": "id BIGINT, day DATE"}}

def insert(name, path, *kind, **more):
    files = file_source(f"{landing}/{{path}}", *kind, **more)
    source = sql_source("SELECT id, day FROM files", sources={{"files": files}})
    return insert_into(name, target="shop.{table}", source=source)

with DAG("{table}", schedule=None):
    StatementsOperator(
        task_id="insert",
        statements=[
            insert("folder", "csv", "csv", **HEADER),
            insert("pattern", "parquet/*.parquet", "parquet"),
            insert("partitions", "cities", "csv", **HEADER),
        ],
    )
"""
_PARQUET = """
import sys, datetime as dt
import pyarrow as pa, pyarrow.parquet as pq
for number, path in enumerate(sys.argv[1:], 10):
    pq.write_table(pa.table({"id": [number], "day": [dt.date(2024, 5, 6)]}), path)
"""


@pytest.mark.by_turns(len(LOCALES))
@pytest.mark.parametrize("name", LOCALES)
def test_every_file_is_read(lake, tmp_path, name):
    table = f"locale_{[*LOCALES].index(name)}"
    TableFiles(lake.warehouse, table).create()
    landing = land(lake, tmp_path / "gelandet äöü")
    environment = environment_of(lake, tmp_path, LOCALES[name])
    dag = Path(environment["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{table}.py"
    dag.write_text(DAG.format(table=table, landing=landing), encoding="utf-8")

    done = lake.airflow("dags", "test", table, environment=environment)

    ids = sorted(row["id"] for row in lake.read(f"shop.{table}")["rows"])
    assert ids == [1, 2, 3, 10, 11, 20, 21], done.stdout[-8000:]


def land(lake, folder: Path) -> Path:
    """Rows 1 to 3, 10 and 11, 20 and 21; two names that look alike are different ones."""
    texts = {"csv/a.csv": 1, "csv/m\u00fcnchen.csv": 2, "csv/mu\u0308nchen.csv": 3}
    texts |= {"cities/city=Bonn/a.csv": 20, "cities/city=日本/a.csv": 21}
    for name, number in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"id,day\n{number},2024-05-06\n")
    (folder / "parquet").mkdir()
    lake.python(_PARQUET, *(f"{folder}/parquet/{name}.parquet" for name in ("a", "köln")))
    return folder


def environment_of(lake, folder: Path, locale):
    """The environment under ``locale``, whose folders have names that are not ASCII."""
    others = {k: v for k, v in lake.environment().items() if not k.startswith(("LC_", "LANG"))}
    workspace, temporary, dags = (folder / name for name in ("Ablage für 日本", "tmpü", "DÄGs"))
    for each in (workspace, temporary, dags):
        each.mkdir()
    extra = {"warehouse": str(lake.warehouse), "workspace": str(workspace)}
    return {
        **others,
        **locale,
        "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps({"conn_type": "paimon", "extra": extra}),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "TMPDIR": str(temporary),
    }
