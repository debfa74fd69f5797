"""The recipe of changed partitions, as it is: a run for each day that a merge changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.live.catalogs import add_catalog, rows_of
from tests.live.server import Server
from tests.live.spark_python import ROOT, SparkPython
from tests.support.waiting import wait_for

RECIPE = ROOT / "dags_examples" / "recipes" / "partition_consumer.py"


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("format_", ["paimon", "iceberg"])
def test_each_changed_day_has_a_run(
    server: Server, spark_python: SparkPython, tmp_path: Path, format_: str
) -> None:
    name, warehouse, client = f"bookings_{format_}", tmp_path / "warehouse", server.client
    add_catalog(client, spark_python, name, format_, warehouse)
    producer, consumer = name, f"guests_by_day_{format_}"
    text = RECIPE.read_text().replace('"paimon_default"', f'"{name}"')
    for dag_id, own in (("bookings", producer), ("guests_by_day", consumer)):
        text = text.replace(f'DAG(\n    "{dag_id}"', f'DAG(\n    "{own}"')
    server.add_dag(producer, text)
    server.start_dags(consumer)

    def merged(batch: str, lines: str) -> None:
        folder = tmp_path / "landing" / "bookings" / batch
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(f"booking_id,guests,day\n{lines}")
        conf = {"landing": str(tmp_path / "landing"), "batch": batch}
        client.trigger(producer, batch, conf=conf)
        assert client.ended(producer, batch) == "success"

    def rows() -> Any:
        return rows_of(spark_python, name, warehouse, "hotel.guests_by_day")

    def ended_runs(count: int) -> bool:
        found = client.runs(consumer)
        return len(found) >= count and all(
            client.run_state(consumer, each) == "success" for each in found
        )

    merged("1", "1,2,2026-03-01\n2,1,2026-03-01\n3,4,2026-03-02\n")
    wait_for("a run for each of two days", lambda: ended_runs(2))
    assert rows() == [[3, "2026-03-01"], [4, "2026-03-02"]]

    merged("2", "1,5,2026-03-01\n")
    wait_for("a run for the day of the late row", lambda: ended_runs(3))
    assert rows() == [[4, "2026-03-02"], [6, "2026-03-01"]]
    assert len(client.runs(consumer)) == 3
