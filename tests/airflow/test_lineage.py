"""What tasks tell OpenLineage, as its own provider for Airflow writes it into a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_merge.lineage.facets import DatasetName, of_files
from tests.airflow.conftest import HOME
from tests.airflow.support import PASSWORD
from tests.support.paimon_metadata import TableFiles

ROOT = Path(__file__).resolve().parents[2]
TABLE = ("lakehouse://paimon_default", "shop.orders")

DAG = """
raw = file_source("s3a://landing/orders/", "csv", schema="orderId BIGINT, bookedOn DATE")
MergeIntoOperator(
    task_id="merge",
    target="shop.orders",
    source=sql_source("SELECT u.id, r.bookedOn AS day FROM u JOIN raw r ON u.id = r.orderId",
                      sources={"u": table_source("shop.updates"), "raw": raw}),
    on="t.id = s.id",
    when=[when_matched().update({"day": "date_add(s.day, t.id)"}),
          when_not_matched().insert_all()],
)
InsertOverwriteOperator(
    task_id="overwrite",
    sql="INSERT OVERWRITE shop.orders SELECT orderId, bookedOn FROM raw",
    sources={"raw": raw},
    mode="table",
)
UpdateOperator(
    task_id="tried", target="shop.orders", set={"day": "DATE '2026-01-01'"}, dry_run=True
)
DeleteFromOperator(task_id="failing", target="shop.orders", where="id = 1")
UpdateOperator(
    task_id="without_metadata", target="shop.nowhere", set={"day": "date_add(day, id)"}
)
"""
# Runs the DAG file with a fake submitter, in a process whose Airflow knows of OpenLineage.
RUN = """
import sys
from pathlib import Path
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from spark_jobs.contract.result import ErrorInfo, Metrics
from tests.airflow.support import DagFile, FakeSubmitter, committed, failed

METRICS = Metrics(inserted=3, updated=2, deleted=1, carried=90, files_added=4, bytes_added=555)

def outcome(request):
    if request.dry_run:
        return committed(request, status="dry_run", metrics=METRICS, new_snapshot_id=None)
    if request.origin.task_id == "failing":
        return failed(request, ErrorInfo("COMMIT_CONFLICT", "lost", "", retryable=False))
    return committed(request, metrics=METRICS)

submitter = FakeSubmitter([outcome])
TableOperator.get_submitter = lambda _: submitter
TableOperator.require_valid = lambda *_: None
DagFile(Path(sys.argv[1]), sys.argv[2]).run()
"""


@pytest.fixture(scope="module")
def events(
    airflow_db: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Any]:
    """The events of a run: (task, type of event) → event."""
    from tests.airflow.support import DagFile

    folder = tmp_path_factory.mktemp("lineage")
    warehouse = folder / "warehouse"
    for name in ("orders", "updates"):
        TableFiles(warehouse, name).create().add()
    paimon = {
        "conn_type": "paimon",
        "extra": {"warehouse": str(warehouse), "options": {"custom.secret-key": PASSWORD}},
    }
    spark = {"conn_type": "spark", "host": "local[1]"}
    told = folder / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(told), "append": True}
    file = DagFile.write(HOME / "dags", DAG)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(file.path), file.dag_id],
        cwd=ROOT,
        env={
            **os.environ,
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            # A busy machine's events take longer than Airflow lets them.
            "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",
            "AIRFLOW__CORE__TASK_SUCCESS_OVERTIME": "300",
            "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert told.exists(), done.stdout + done.stderr
    assert PASSWORD not in told.read_text()
    found = {}
    for line in told.read_text().splitlines():
        event = json.loads(line)
        found[event["job"]["name"].rpartition(".")[2], event["eventType"]] = event
    return found


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def output(event: dict[str, Any]) -> dict[str, Any]:
    (found,) = event["outputs"]
    assert (found["namespace"], found["name"]) == TABLE
    return found


def lineage(found: dict[str, Any]) -> dict[str, Any]:
    fields = found["facets"]["columnLineage"]["fields"]
    return {
        column: sorted((each["name"], each["field"]) for each in value["inputFields"])
        for column, value in fields.items()
    }


@pytest.mark.slow
class TestEvents:
    def test_a_task_that_starts_tells_what_it_reads_and_writes(
        self, events: dict[tuple[str, str], Any]
    ) -> None:
        event = events["merge", "START"]
        assert names(event["inputs"]) == [
            ("lakehouse://paimon_default", "shop.updates"),
            ("s3://landing", "orders/"),
        ]
        assert "columnLineage" not in output(event)["facets"]

    def test_the_end_tells_columns_counts_and_snapshot(
        self, events: dict[tuple[str, str], Any]
    ) -> None:
        event = events["merge", "COMPLETE"]
        assert len(event["inputs"]) == 2
        found = output(event)
        assert lineage(found) == {
            "id": [("shop.updates", "id")],
            "day": [("orders/", "bookedOn"), ("shop.orders", "id")],
        }
        assert found["facets"]["version"]["datasetVersion"] == "8"
        schema = [(each["name"], each["type"]) for each in found["facets"]["schema"]["fields"]]
        assert schema == [("id", "BIGINT"), ("day", "DATE")]
        statistics = found["outputFacets"]["outputStatistics"]
        assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (5, 555, 4)
        assert "lifecycleStateChange" not in found["facets"]

    def test_a_text_and_a_whole_table_that_is_replaced(
        self, events: dict[tuple[str, str], Any]
    ) -> None:
        event = events["overwrite", "COMPLETE"]
        assert event["job"]["facets"]["sql"]["query"].startswith("INSERT OVERWRITE shop.orders")
        assert names(event["inputs"]) == [("s3://landing", "orders/")]
        assert lineage(output(event)) == {
            "id": [("orders/", "orderId")],
            "day": [("orders/", "bookedOn")],
        }
        change = output(event)["facets"]["lifecycleStateChange"]["lifecycleStateChange"]
        assert change == "OVERWRITE"

    def test_a_dry_run_writes_nothing(self, events: dict[tuple[str, str], Any]) -> None:
        assert events["tried", "COMPLETE"]["outputs"] == []

    def test_a_failure_wrote_nothing_that_is_known(
        self, events: dict[tuple[str, str], Any]
    ) -> None:
        found = output(events["failing", "FAIL"])
        assert "version" not in found["facets"]
        assert "outputStatistics" not in found.get("outputFacets", {})

    def test_a_table_whose_metadata_can_not_be_read(
        self, events: dict[tuple[str, str], Any]
    ) -> None:
        (found,) = events["without_metadata", "COMPLETE"]["outputs"]
        assert found["name"] == "shop.nowhere"
        assert "schema" not in found["facets"]
        assert lineage(found) == {"day": [("shop.nowhere", "day"), ("shop.nowhere", "id")]}
        assert found["outputFacets"]["outputStatistics"]["rowCount"] == 5


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/landing/a", "file", "/landing/a"),
        ("file:///landing/a", "file", "/landing/a"),
        ("file:/landing/a", "file", "/landing/a"),
        ("s3a://bucket/a/b.csv", "s3://bucket", "a/b.csv"),
        ("GS://bucket/a?b#c", "gs://bucket", "a?b#c"),
        ("hdfs://name:8020/a/b", "hdfs://name:8020", "/a/b"),
        ("abfss://box@lake.net/a", "abfss://box@lake.net", "/a"),
    ],
)
def test_names_of_files(path: str, namespace: str, name: str) -> None:
    assert of_files(path) == DatasetName(namespace, name)


def test_a_relative_path_has_no_name() -> None:
    assert of_files("landing/a") is None


@pytest.mark.slow
def test_nothing_of_openlineage_is_imported_with_the_provider() -> None:
    code = (
        "import sys\n"
        "import airflow_provider_merge.operators.merge_into\n"
        "import airflow_provider_merge.operators.insert_overwrite\n"
        "import airflow_provider_merge.sensors.partition\n"
        "import airflow_provider_merge.assets\n"
        "print([m for m in sys.modules if m.startswith(('openlineage', 'sqlglot'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
