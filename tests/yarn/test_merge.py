"""A MERGE in cluster mode, from Airflow to the table; and where its secrets are, and are not."""

from __future__ import annotations

import threading

from airflow_provider_merge.hooks.paimon import PaimonHook
from tests.live.evidence import places_of
from tests.support.waiting import wait_for
from tests.yarn import traces
from tests.yarn.cluster import PASSWORD, REACHABLE, Cluster, Points

MERGE = """
MergeIntoOperator(
    task_id="merge",
    target="shop.{table}",
    on="t.id = s.id",
    when=[when_matched().update({{"day": "s.day"}}), when_not_matched().insert_all()],
    source=sql_source("SELECT id, DATE '2026-01-01' AS day FROM range(3)", sources={{}}),
    spark_conn_id={connection!r},
    **{parameters!r},
)
"""


def test_merge(cluster, dag_file, airflow_db, tmp_path):
    table, points = cluster.table().name, Points(tmp_path)
    points.arm("look-1")
    parameters = cluster.parameters(**points.conf)
    body = MERGE.format(table=table, connection=REACHABLE, parameters=parameters)
    seen: dict[str, bytes] = {}
    looking = threading.Thread(target=look, args=(cluster, points, seen))
    looking.start()

    run = dag_file(body).run()

    looking.join()
    assert run.state == "success"
    (ti,) = run.get_task_instances()
    result = ti.xcom_pull(task_ids="merge")
    assert (result["status"], result["snapshot_id"]) == ("committed", 1)
    assert result["metrics"]["inserted"] == 3
    assert PaimonHook("paimon_default").row_count(f"shop.{table}") == 3
    (application,) = cluster.applications(f"{run.dag_id}.merge")
    assert (application["state"], application["finalStatus"]) == ("FINISHED", "SUCCEEDED")

    places = places_of(PASSWORD, seen)
    assert places
    assert {place.rpartition("/")[2] for place in places} == {"credentials.json"}
    for kind in ("launch_container.sh", "arguments java", "environment python", "/stderr"):
        assert any(kind in place for place in seen), (kind, sorted(seen))
    assert traces.places_left(cluster, application["id"], PASSWORD) == []
    logs = traces.afterwards(cluster, application["id"])
    assert any(place.endswith("/stderr") for place in logs)


def look(cluster: Cluster, points: Points, seen: dict[str, bytes]) -> None:
    """See all files of YARN and of the staging area while the driver stops; let it go on."""
    try:
        wait_for("the driver", lambda: points.is_hit("look-1"))
        seen |= traces.while_it_runs(cluster)
    finally:
        (points.folder / "release").touch()
