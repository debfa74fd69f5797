"""Care for many tables of both formats in one application, whose driver is killed in the middle.

`make test-all` takes 200 tables, too, and so does this file with ``MERGE_TESTS=all``.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.turns import EVERYTHING

pytestmark = pytest.mark.slow

# Runs in the Spark environment: six commits of a file each. The first tables have something wrong.
MAKER = """
import shutil, sys
from pathlib import Path
import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pyiceberg.catalog.sql import SqlCatalog

paimon, iceberg, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
rows = pa.schema([("id", pa.int64())])
catalog = CatalogFactory.create({"warehouse": str(paimon)})
catalog.create_database("care", True)
catalog.create_table("care.t000", Schema.from_pyarrow_schema(rows), False)
builder = catalog.get_table("care.t000").new_batch_write_builder()
for number in range(6):
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(pa.table({"id": [number]}, rows))
    commit.commit(write.prepare_commit())
    write.close(); commit.close()
first = paimon / "care.db" / "t000"
for number in range(1, count):
    shutil.copytree(first, first.with_name(f"t{number:03}"))
next(first.rglob("*.parquet")).unlink()

iceberg.mkdir()
uri = f"sqlite:///{iceberg}/catalog.db"
with SqlCatalog("iceberg_default", uri=uri, warehouse=f"file://{iceberg}") as library:
    library.create_namespace("care")
    for number in range(count):
        table = library.create_table(("care", f"t{number:03}"), rows)
        for value in range(6):
            table.append(pa.table({"id": [value]}, rows))
    with library.load_table(("care", "t000")).transaction() as changes:
        changes.set_properties({"gc.enabled": "false"})
"""
# Runs there, too: the rows and the number of snapshots and files of each table.
READER = """
import json, sys
from pathlib import Path
from pypaimon import CatalogFactory
from pyiceberg.catalog.sql import SqlCatalog

found = {}
catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
for folder in sorted((Path(sys.argv[1]) / "care.db").iterdir())[1:]:
    builder = catalog.get_table(f"care.{folder.name}").new_read_builder()
    splits = builder.new_scan().plan().splits()
    rows = builder.new_read().to_arrow(splits)["id"].to_pylist()
    files = sum(len(each.files) for each in splits)
    newest = max(int(each.name.split("-")[1]) for each in folder.glob("snapshot/snapshot-*"))
    found[f"paimon {folder.name}"] = [sorted(rows), files, newest]
with SqlCatalog("iceberg_default", uri=f"sqlite:///{sys.argv[2]}/catalog.db") as library:
    for _, name in library.list_tables("care"):
        table = library.load_table(("care", name))
        scan, newest = table.scan(), table.metadata.last_sequence_number
        rows, files = scan.to_arrow()["id"].to_pylist(), len(list(scan.plan_files()))
        found[f"iceberg {name}"] = [sorted(rows), files, newest]
print(json.dumps(found))
"""
DAG = """
import json
from datetime import datetime, timedelta
from airflow.sdk import DAG, task
from airflow_provider_merge.operators.table_care import TableCareOperator

with DAG("care", schedule=None, start_date=datetime(2024, 1, 1)):
    @task
    def keep(result):
        with open({result!r}, "w") as file:
            json.dump(result, file)
    keep(
        TableCareOperator(
            task_id="care", tables="care.*", more_catalogs=["iceberg_default"], retain_min=1,
            older_than="0 s", max_parallel=2, on_failure="warn", retries=1,
            retry_delay=timedelta(0),
        ).output
    )
"""


@pytest.mark.parametrize("count", [10, 200] if EVERYTHING else [10])
def test_a_killed_driver_and_a_retry_that_does_the_rest(lake, tmp_path, count):
    warehouse, iceberg, kept = tmp_path / "paimon", tmp_path / "iceberg", tmp_path / "result"
    lake.python(MAKER, str(warehouse), str(iceberg), str(count // 2))
    lake.add_dag("care", DAG.replace("{result!r}", repr(str(kept))))
    paimon = {"conn_type": "paimon", "extra": {"warehouse": str(warehouse)}}
    extra = {"type": "sql", "warehouse": str(iceberg)}
    other = {"conn_type": "iceberg", "host": f"sqlite:///{iceberg}/catalog.db", "extra": extra}
    killer = Killer(lake.folder / "tmp", [warehouse, iceberg], at=count // 2)
    killer.start()
    started = time.monotonic()

    done = lake.airflow(
        *("dags", "test", "care"),
        environment={
            **lake.environment(),
            "AIRFLOW_CONN_PAIMON_DEFAULT": json.dumps(paimon),
            "AIRFLOW_CONN_ICEBERG_DEFAULT": json.dumps(other),
        },
    )

    print(f"{count} tables: {time.monotonic() - started:.0f} s with a kill")  # noqa: T201
    killer.over.set()
    killer.join()
    assert kept.exists(), done.stdout[-8000:]
    assert killer.killed, "the driver was not killed"
    steps = json.loads(kept.read_text())["tables"]
    assert len({(each["catalog"], each["table"]) for each in steps}) == count
    assert Counter(each["status"] for each in steps) == {"done": 2 * count - 2} | odd(steps)
    tries = Counter(each["try_number"] for each in results(warehouse, iceberg))
    assert tries[1] >= count // 2, "what the first try did is not done again"
    assert tries[1] + tries[2] == 2 * count
    state = json.loads(lake.python(READER, str(warehouse), str(iceberg)))
    assert len(state) == count - 1
    # Six commits, and one of the compaction.
    assert set(map(str, state.values())) == {str([[0, 1, 2, 3, 4, 5], 1, 7])}
    assert [*warehouse.glob("_operations/*.plan")] == []


def odd(steps):
    """What becomes of the tables with something wrong."""
    found = {
        (each["catalog"], each["action"]): (each["status"], each["code"])
        for each in steps
        if each["status"] != "done"
    }
    assert found == {
        ("paimon_default", "compact"): ("failed", "DATA_FILE_UNREADABLE"),
        ("iceberg_default", "expire_snapshots"): ("refused", "NOT_SUPPORTED"),
    }
    return {"failed": 1, "refused": 1}


def results(*folders):
    return [
        json.loads(path.read_text())
        for folder in folders
        for path in folder.glob("_operations/*.json")
    ]


class Killer(threading.Thread):
    """Kills the driver whose documents lie in ``folder``, once, when it has ``at`` results."""

    def __init__(self, folder: Path, workspaces: list[Path], at: int) -> None:
        super().__init__()
        self.folder, self.workspaces, self.at = folder, workspaces, at
        self.over = threading.Event()
        self.killed = False

    def run(self) -> None:
        while not self.killed and not self.over.wait(0.01):
            if len([*self._stored()]) >= self.at:
                for process in self._drivers():
                    os.kill(process, signal.SIGKILL)
                    self.killed = True

    def _stored(self) -> list[Path]:
        return [path for each in self.workspaces for path in each.glob("_operations/*.json")]

    def _drivers(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if "--batch" in words and any(str(self.folder) in word for word in words):
                found.append(int(entry.name))
        return found
