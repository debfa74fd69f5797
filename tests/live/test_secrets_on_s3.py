"""Keys of an object store are in no artefact of a run: argument, environment, log, event, file.

What is planted in the open is found by the same search, so the search can find something.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.database import content
from tests.live.evidence import Watch, files_below, places_of
from tests.live.server import Server
from tests.live.store import Store
from tests.support.gateway import gateway_program_or_skip
from tests.support.paimon_metadata import TableFiles

_DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.sources import sql_source

CONF = {{
    "spark.eventLog.enabled": True,
    "spark.eventLog.compress": False,
    "spark.eventLog.dir": "file://{events}",
    "spark.log.level": "INFO",
}}
IDS = {{"good": "2", "failing": "CAST(raise_error('{in_the_open}') AS BIGINT)"}}

with DAG("keys_on_s3", schedule=None, start_date=datetime(2024, 1, 1), max_active_tasks=1) as dag:
    for task_id, id_ in IDS.items():
        InsertIntoOperator(
            task_id=task_id,
            target="shop.planted",
            catalog_conn_id="keys_on_s3",
            source=sql_source(f"SELECT {{id_}} AS id, DATE '2026-02-01' AS day", sources={{}}),
            conf=CONF,
        )
    dag.get_task("good") >> [
        QueryOperator(
            task_id=task_id,
            sql="SELECT * FROM shop.planted",
            catalog_conn_id="keys_on_s3",
            conf=CONF,
            **output,
        )
        for task_id, output in {{"rows": {{}}, "report": {{"output_path": "s3://lake/reports"}}}}.items()
    ]
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A server with keys that no other test uses."""
    keys: dict[str, Any] = {"access_key": "PLANTEDACCESSKEY", "secret_key": "planted-secret-key"}
    server = Store(gateway_program_or_skip(), tmp_path, **keys)
    server.start()
    yield server
    server.stop()


# test_secrets has such keys too, beside a local warehouse.
@pytest.mark.extended
def test_keys_are_in_no_artefact_of_a_run(server: Server, store: Store, tmp_path: Path) -> None:
    in_the_open = f"open-{uuid.uuid4()}"
    TableFiles(store.bucket, "planted").create()
    events = server.folder / "events_of_keys"
    events.mkdir()
    connection = store.connection("keys_on_s3")
    # By a file: Airflow keeps the arguments of its own commands.
    file = tmp_path / "connections.json"
    file.write_text(json.dumps({connection.pop("connection_id"): connection}))
    server.airflow("connections", "import", str(file))
    server.add_dag("keys_on_s3", _DAG.format(events=events, in_the_open=in_the_open))
    client = server.client

    with Watch(server) as watch:
        client.trigger("keys_on_s3", "run")
        client.ended("keys_on_s3", "run")

    results = [json.loads(path.read_text()) for path in store.bucket.glob("_operations/*.json")]
    assert sorted(each["status"] for each in results) == ["committed", "failed"]
    assert client.xcom("keys_on_s3", "run", "rows")["rows"] == [[2, "2026-02-01"]]
    (report,) = store.bucket.glob("reports/*/*.parquet")
    location = client.xcom("keys_on_s3", "run", "report")["location"]
    assert location == f"s3://lake/reports/{report.parent.name}"
    files = {
        name: text for name, text in files_below(server.folder).items() if "airflow.db" not in name
    }
    # Airflow keeps passwords encrypted, but not logins: the access key.
    database = content(server, without={"connection"})
    logs = {f"log of {task}": client.log("keys_on_s3", "run", task, 1).encode()
            for task in ("good", "failing", "rows", "report")}  # fmt: skip
    bucket = {f"bucket/{name}": text for name, text in files_below(store.bucket).items()}
    seen = {**files, "database": database, **logs, **bucket, **watch.seen}

    open_places = places_of(in_the_open, seen)
    kinds = ("events_of_keys/", "log of failing", "bucket/_operations/", "/request.json")
    for part in (*kinds, "database"):
        assert any(part in place for place in open_places), (part, open_places)
    assert places_of(store.secret_key, seen) == []
    assert places_of(store.access_key, seen) == []
    assert any(name.startswith("environment java") for name in watch.seen), "no Spark was seen"
