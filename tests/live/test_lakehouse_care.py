"""``lakehouse_care`` on an Iceberg table of a REST catalog and an S3 store.

Its plan waits for approval; then the table is compacted, snapshots expire and an orphan goes. What
the pages, the results and the catalog say is what is gone from the bucket.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tests.live.approval import Approval
from tests.live.browser import Browser
from tests.live.client import Client
from tests.live.evidence import files_below
from tests.live.lake import Lake
from tests.live.server import Server
from tests.support.waiting import wait_for

CONNECTION, TABLE, DAG = "iceberg_cared", "cared.events", "iceberg_lakehouse"
LOST = b"left by a killed job"
# Nine appends to one day. A file of another day is replaced by the fourth commit, which is two
# snapshots; the fifth has a tag.
_MAKE = """
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField
schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
catalog.create_namespace("cared")
table = catalog.create_table(
    "cared.events", schema,
    partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day")),
    properties={"history.expire.max-snapshot-age-ms": "0"},
)
def rows(*found):
    found = [{"id": id, "day": date(2026, 1, day)} for id, day in found]
    return pa.Table.from_pylist(found, schema=table.schema().as_arrow())
for number in range(1, 11):
    if number == 4:
        table.dynamic_partition_overwrite(rows((104, 2)))
        continue
    table.append(rows((number, 1), *([(101, 2)] if number == 1 else [])))
    if number == 5:
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "audit").commit()
"""
_DAG = f"""
from datetime import datetime
from airflow.sdk import DAG
from airflow_provider_merge.operators.lakehouse_care import lakehouse_care

with DAG({DAG!r}, schedule=None, start_date=datetime(2026, 1, 1)):
    lakehouse_care(
        tables="cared.*", catalog_conn_id={CONNECTION!r}, older_than="0 s",
        actions=["compact", "expire_snapshots", "remove_orphan_files"],
    )
"""
_FILES = """
files = catalog.load_table(sys.argv[2]).scan().plan_files()
print(json.dumps([each.file.file_path for each in files]))
"""


def test_a_table_is_cared_for_as_approved(
    server: Server, lake: Lake, browser: Browser, tmp_path: Path
) -> None:
    lake.run(_MAKE)
    orphan = next(lake.store.bucket.rglob("data/day=2026-01-01")) / "orphan.parquet"
    orphan.write_bytes(LOST)
    os.utime(orphan, (time.time() - 3 * 24 * 3600,) * 2)
    rows, ids = lake.look(TABLE)
    tagged = ids[5]
    before = table_files(lake)
    client = server.client
    client.call("POST", "/connections", lake.connection(CONNECTION))
    server.add_dag(DAG, _DAG)

    client.trigger(DAG, "run")
    approval = Approval(server, DAG, "run", "lakehouse_care.approval")
    asked = approval.question()

    plan = client.xcom(DAG, "run", "lakehouse_care.plan")
    planned = {each["action"]: each for each in plan["tables"]}
    assert (plan["status"], plan["counts"]) == ("dry_run", {"planned": 3})
    assert planned["compact"]["files"] == 8
    # But the newest one and that of the tag.
    assert planned["expire_snapshots"]["snapshots"] == len(ids) - 2
    assert f"{TABLE} of {CONNECTION}: compact planned,\n  {plan['read']:,} bytes" in asked["body"]
    assert (table_files(lake), lake.look(TABLE)) == (before, (rows, ids)), "nothing is done yet"
    care_page(browser, server.client.url, expiring=len(ids) - 2, partitions=1)
    browser.picture(tmp_path / "before.png")

    approval.approve()

    assert client.ended(DAG, "run") == "success", story(client)
    care = client.xcom(DAG, "run", "lakehouse_care.care")
    done = {each["action"]: each for each in care["tables"]}
    assert (care["status"], care["counts"]) == ("done", {"done": 3})
    after, (rows_after, ids_after) = table_files(lake), lake.look(TABLE)
    assert rows_after == rows
    # No more expire than was approved: the newest one of then stays, beside the compaction's.
    assert ids_after[:-1] == [tagged, ids[-1]]
    assert done["expire_snapshots"]["snapshots"] == len(set(ids) - set(ids_after)) == len(ids) - 2
    live = json.loads(lake.run(_FILES, TABLE))
    assert sorted(path.rpartition("/")[0][-14:] for path in live) == [
        "day=2026-01-01",
        "day=2026-01-02",
    ]
    assert done["compact"]["files"] == planned["compact"]["files"]
    gone = {name: before[name] for name in before.keys() - after.keys()}
    assert sum(name.endswith(".parquet") for name in gone) == 2, "of the other day, and the orphan"
    assert not orphan.exists()
    freed = done["expire_snapshots"]["free"], done["remove_orphan_files"]["free"]
    # Nothing says how long the lists of manifests are.
    told = sum(size for name, size in gone.items() if "/snap-" not in name)
    assert freed == (told - len(LOST), len(LOST))
    new = {name: after[name] for name in after.keys() - before.keys()}
    (compacted,) = (size for name, size in new.items() if name.endswith(".parquet"))
    assert done["compact"]["write"] == compacted
    care_page(browser, server.client.url, expiring=1, partitions=0)
    assert browser.text("//h2[.='Orphan files']/..//dt[.='Freed']/../dd") == f"{len(LOST)} B"
    browser.picture(tmp_path / "after.png")
    browser.open(
        f"{client.url}/lakehouse/preview?dag_id={DAG}&run_id=run&task_id=lakehouse_care.care"
    )
    assert browser.text("//h1") == "What table care did"
    browser.picture(tmp_path / "done.png")


def table_files(lake: Lake) -> dict[str, Any]:
    """The sizes of the table's files by path, without metadata files, which writers remove."""
    found = files_below(lake.store.bucket / "tables")
    return {name: len(text) for name, text in found.items() if not name.endswith(".metadata.json")}


def care_page(browser: Browser, url: str, *, expiring: int, partitions: int) -> None:
    """The page about the table's care, with these numbers."""
    place = f"connection={CONNECTION}&database=cared&table=events"
    browser.open(f"{url}/lakehouse/table?{place}&tab=care")
    facts = {"Snapshots that would expire": expiring, "Partitions worth it": partitions}
    for name, number in facts.items():
        fact = f"//dt[.='{name}']/../dd"
        wait_for(name, lambda fact=fact, number=number: browser.text(fact) == str(number))  # type: ignore[misc]
    assert browser.text("//h2[.='Tags and branches']/..//td[.='tag']/../td[2]") == "audit"


def story(client: Client) -> str:
    """The logs of the run."""
    tasks = [each["task_id"] for each in client.tasks(DAG, "run")]
    return "\n".join(f"--- {each}\n{client.log(DAG, 'run', each, 1)}" for each in tasks)
