"""Write, audit, publish on both formats: a check that fails keeps main as it was, and a run that is
cleared begins anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.server import Server
from tests.live.spark_python import SparkPython

_DAG = """
from datetime import datetime, timedelta

from airflow.sdk import DAG, Asset
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.statement_list import merge_into, sql_statement
from airflow_provider_merge.operators.sources import sql_source
from airflow_provider_merge.operators.clauses import when_matched, when_not_matched
from airflow_provider_merge.operators.write_audit_publish import WriteAuditPublish

CONNECTIONS = ("paimon_default", "iceberg_audited")
start = {"start_date": datetime(2024, 1, 1), "schedule": None}

with DAG("audited_make", **start):
    for conn_id in CONNECTIONS:
        InsertIntoOperator(
            task_id=conn_id, catalog_conn_id=conn_id,
            sql="CREATE TABLE shop.audited AS SELECT id, concat('v', id) AS v FROM range(3)",
        )

with DAG("audited", **start) as dag:
    for conn_id in CONNECTIONS:
        before, after = EmptyOperator(task_id=f"b_{conn_id}"), EmptyOperator(task_id=f"a_{conn_id}")
        before >> WriteAuditPublish(
            conn_id,
            statements=[
                merge_into(
                    "merge", target="shop.audited", on="t.id = s.id",
                    source=sql_source("SELECT 1L AS id, 'new' AS v UNION ALL "
                                      "SELECT 7L, {{ var.value.audited_value }}", sources={}),
                    when=[when_matched().update_all(), when_not_matched().insert_all()],
                ),
                sql_statement(
                    "again",
                    "INSERT INTO shop.audited SELECT id + 1, 'copy' FROM shop.audited WHERE id = 7",
                ),
            ],
            checks={
                "no_nulls": "SELECT * FROM shop.audited WHERE v IS NULL",
                "five": {"sql": "SELECT count(*) = 5 AS five FROM shop.audited",
                         "check": "all_true"},
            },
            catalog_conn_id=conn_id,
            retries=1, retry_delay=timedelta(seconds=1),
        ) >> after

with DAG("audited_consumer", start_date=datetime(2024, 1, 1),
         schedule=[Asset("lakehouse://paimon_default/shop/audited")]):
    EmptyOperator(task_id="told")
"""
_LOOK = """
import json, sys
from pathlib import Path
from pypaimon import CatalogFactory
from pyiceberg.catalog.sql import SqlCatalog
warehouse, folder, branch = sys.argv[1:]
catalog = CatalogFactory.create({"warehouse": warehouse})
found = {}
name = f"shop.audited$branch_{branch}" if branch else "shop.audited"
builder = catalog.get_table(name).new_read_builder()
found["paimon"] = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
other = SqlCatalog("iceberg_audited", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
table = other.load_table(("shop", "audited"))
scan = table.scan().use_ref(branch) if branch else table.scan()
found["iceberg"] = scan.to_arrow().to_pylist()
folders = Path(warehouse).glob("shop.db/audited/branch/*")
found["branches"] = [each.name for each in folders]
found["references"] = sorted(table.refs())
print(json.dumps(found))
"""
FIRST = {0: "v0", 1: "v1", 2: "v2"}
AFTER = {0: "v0", 1: "new", 2: "v2", 7: "seven", 8: "copy"}


@pytest.fixture
def audited(server: Server, tmp_path: Path) -> Server:
    extra = {"type": "sql", "init_catalog_tables": "true"}
    extra |= {"warehouse": str(tmp_path), "workspace": str(tmp_path)}
    iceberg = {"connection_id": "iceberg_audited", "conn_type": "lakehouse_iceberg"}
    iceberg |= {"host": f"sqlite:///{tmp_path}/catalog.db", "extra": json.dumps(extra)}
    server.client.call("POST", "/connections", iceberg)
    server.client.call("POST", "/variables", {"key": "audited_value", "value": "NULL"})
    server.add_dag("audited", _DAG)
    server.client.trigger("audited_make", "make")
    assert server.client.ended("audited_make", "make") == "success"
    return server


def test_nothing_unchecked_is_seen(
    audited: Server, spark_python: SparkPython, tmp_path: Path
) -> None:
    client, warehouse = audited.client, str(audited.folder / "warehouse")

    def look(branch: str = "") -> dict[str, Any]:
        found = json.loads(spark_python.run(_LOOK, warehouse, str(tmp_path), branch))
        for kind in ("paimon", "iceberg"):
            found[kind] = {row["id"]: row["v"] for row in found[kind]}
        return dict(found)

    client.trigger("audited", "run:1")
    assert client.ended("audited", "run:1") == "failed"

    states = {each["task_id"]: each["state"] for each in client.tasks("audited", "run:1")}
    for group in ("paimon_default", "iceberg_audited"):
        assert states[f"{group}.write"] == "success"
        assert states[f"{group}.check_no_nulls"] == "failed"
        assert states[f"{group}.check_five"] == "success"
        assert states[f"{group}.publish"] == "upstream_failed"
        assert states[f"a_{group}"] == "upstream_failed"
    told = client.error_block("audited", "run:1", "paimon_default.check_no_nulls", 1)
    assert told.startswith("CHECK_FAILED: check: expected no rows, found 1, first: id = 7")
    branch = told.partition("$branch_")[2].partition("`")[0]
    assert branch.startswith("wap_run_1_")
    main, kept = look(), look(branch)
    assert main["paimon"] == main["iceberg"] == FIRST
    assert kept["paimon"] == kept["iceberg"] == {**AFTER, 7: None}
    assert client.asset_extras("audited") == []

    # Corrected and run again from its begin, the run publishes what is right.
    client.call("PATCH", "/variables/audited_value", {"key": "audited_value", "value": "'seven'"})
    body = {"dry_run": False, "only_failed": False}
    client.call("POST", "/dags/audited/dagRuns/run%3A1/clear", body)
    assert client.ended("audited", "run:1") == "success"

    found = look()
    assert found["paimon"] == found["iceberg"] == AFTER
    assert (found["branches"], found["references"]) == ([], ["main"])
    extras = client.asset_extras("audited")
    assert {each["operation"] for each in extras} == {"fast_forward"}
    assert sorted(bool(each["snapshot_id"]) for each in extras) == [True, True]
    assert client.runs("audited_consumer"), "consumers learn of what is published"
