"""A user's Airflow with the installed wheel: the provider is known and its operators run."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

DAG = """
from datetime import datetime
from airflow.sdk import DAG, task
import airflow_provider_merge
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import sql_source

print("PROVIDER", airflow_provider_merge.__file__)

with DAG("users_own", schedule=None, start_date=datetime(2024, 1, 1),
         default_args={"target": "shop.orders"}) as dag:
    create = CreateTableOperator(
        task_id="create", columns=[column("id", "BIGINT"), column("state", "STRING")]
    )
    merge = MergeIntoOperator(
        task_id="merge",
        source=sql_source("SELECT id, 'new' AS state FROM range(3)", sources={}),
        on="t.id = s.id",
        when=[when_matched().update_all(), when_not_matched().insert_all()],
    )
    create >> merge
"""

READER = """
import json, sys
from pypaimon import CatalogFactory
catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
builder = catalog.get_table("shop.orders").new_read_builder()
print(json.dumps(builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()))
"""


@pytest.fixture(scope="module", autouse=True)
def database(installation):
    installation.run("-m", "airflow", "db", "migrate")


def test_airflow_shows_the_provider(installation):
    command = ["-m", "airflow", "providers", "get", "airflow-provider-merge", "-o", "json"]
    shown = installation.run(*command)
    (provider,) = json.loads(shown[shown.index("[") :])
    assert provider["Provider"] == "airflow-provider-merge"
    assert provider["Version"] == "0.1.0"


PAGES = """
import os
os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] = "True"
from airflow.api_fastapi.app import create_app
from fastapi.testclient import TestClient
client = TestClient(create_app())
for path in ("", "table", "static/main.js", "static/style.css", "static/plotly.min.js"):
    print("PAGE", client.get(f"/lakehouse/{path}").status_code)
print("MENU", [view["name"] for plugin in client.get("/api/v2/plugins").json()["plugins"]
               for view in plugin["external_views"]])
print("TABLES", client.get("/lakehouse/v1/tables?connection=paimon_default").json()["total"])
"""


def test_airflow_serves_the_pages_about_tables(installation):
    output = installation.run("-W", "ignore", "-c", PAGES)
    assert output.count("PAGE 200") == 5, output[-4000:]
    assert "MENU ['Tables']" in output
    assert "TABLES 0" in output


# The tutorial runs operators of the wheel as well.
@pytest.mark.extended
def test_operators_run_from_a_folder_of_the_user(installation):
    (installation.dags / "users_own.py").write_text(DAG)

    output = installation.run("-m", "airflow", "dags", "test", "users_own")

    assert f"PROVIDER {installation.folder / 'env'}" in output, output[-4000:]
    assert "shop.orders: committed, snapshot 1" in output
    python = os.path.join(os.environ["MERGE_SPARK_ENV"], "bin", "python")  # noqa: PTH118
    done = subprocess.run(
        [python, "-c", READER, str(installation.warehouse)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    assert sorted(row["id"] for row in rows) == [0, 1, 2]
    assert {row["state"] for row in rows} == {"new"}
