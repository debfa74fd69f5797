"""Parsing a DAG file asks nobody: no address is looked up, no connection is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# Every kind of task, and a watcher; the connection's store does not exist.
_DAG = """
from datetime import datetime
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow_provider_merge.assets import table_asset
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.sources import table_source
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.sensors.tag import TagSensor
from airflow_provider_merge.triggers.table import TableTrigger

watched = Asset("w", watchers=[AssetWatcher("s", TableTrigger("shop.orders"))])
with DAG("d", schedule=[watched, table_asset("paimon_default", "shop.other")]) as dag:
    SnapshotSensor(task_id="a", table="shop.orders", after_last=True)
    PartitionSensor(task_id="b", table="shop.orders", partition={"day": "{{ ds }}"})
    TagSensor(task_id="c", table="shop.orders", tag="t")
    FreshnessSensor(task_id="d", table="shop.orders", max_age=60, deferrable=True)
    MergeIntoOperator(
        task_id="e", target="shop.orders", source=table_source("shop.new"), on="t.id = s.id",
        when=[when_matched().update_all()],
    )
"""
_PARSE = """
import sys
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        print("ASKED", event, arguments)
sys.addaudithook(hook)
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
print("PARSED")
"""


@pytest.mark.parametrize("file", ["own", "gated_pipeline.py"])
def test_parsing_makes_no_network_call(file: str, tmp_path: Path) -> None:
    path = ROOT / "dags_examples" / file
    if file == "own":
        path = tmp_path / "dag.py"
        path.write_text(_DAG)
    variables = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW_CONN_PAIMON_DEFAULT": "paimon://a:b@/?warehouse=s3%3A%2F%2Fnowhere%2Flake",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", _PARSE, str(path)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "PARSED" in done.stdout
    assert "ASKED" not in done.stdout


def test_the_check_finds_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "dag.py"
    path.write_text("import socket\nsocket.getaddrinfo('localhost', 80)\n")
    done = subprocess.run(
        [sys.executable, "-c", _PARSE, str(path)], capture_output=True, text=True, check=True
    )
    assert "ASKED socket.getaddrinfo" in done.stdout
