"""The NameNode falls silent, or does not answer once, at each request of a driver.

A run takes a twelfth of the requests, another twelfth with ``MERGE_TESTS_TURN=1``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import JobError
from spark_jobs.spi.connector import Connector
from tests.faults.matrix import known
from tests.faults.merges import OLD, Work, new_table, run
from tests.hdfs.proxy import Fault, proxy_before
from tests.judge.hdfs_server import Hdfs
from tests.support.paimon_tables import NAME, read
from tests.support.turns import has_turn

_WORK = Work("operation-1", 100, adds="more")
_PARTS = 12
_LEAST_REQUESTS = 30
# What no retry would overcome.
_FINAL = ("DATA_FILE_UNREADABLE", "METADATA_UNREADABLE")
_QUICK = """<configuration>
  <property><name>dfs.client.failover.sleep.base.millis</name><value>5</value></property>
  <property><name>dfs.client.failover.sleep.max.millis</name><value>10</value></property>
</configuration>
"""


def made_by(connector: Connector) -> list[str]:
    """Who made each snapshot."""
    manager = connector.metadata.load_table(NAME).native.table.snapshot_manager()
    latest = manager.get_latest_snapshot().id
    return [manager.get_snapshot_by_id(number).commit_user for number in range(1, latest + 1)]


@pytest.fixture(autouse=True)
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks again at once."""
    (tmp_path / "hdfs-site.xml").write_text(_QUICK)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))


def _first(warehouse: str) -> str:
    """What the first try tells; it may not even be able to store its failure."""
    try:
        result = run(warehouse, _WORK, 1)
    except (JobError, OSError) as error:
        return type(error).__name__
    return result.error.code if result.error else result.status


@pytest.mark.parametrize("fault", ["be silent from then on", "lose the answer"])
def test_every_request(hdfs: Hdfs, fault: Fault, capsys: pytest.CaptureFixture[str]) -> None:
    with proxy_before(hdfs.authority) as proxy:
        warehouse = hdfs.new_warehouse()
        new_table(warehouse)
        assert run(warehouse.replace(hdfs.authority, proxy.authority), _WORK, 1).error is None
        requests = proxy.requests
    assert requests >= _LEAST_REQUESTS
    outcomes = []
    for number in (each for each in range(1, requests + 1) if has_turn(each, _PARTS)):
        warehouse = hdfs.new_warehouse()
        new_table(warehouse)
        with proxy_before(hdfs.authority) as proxy:
            through = warehouse.replace(hdfs.authority, proxy.authority)
            proxy.at[number] = fault
            first = _first(through)
            direct = open_connector(CatalogSpec("paimon", warehouse), {})
            found = known(read(direct))
            assert found in (sorted(OLD, key=repr), _WORK.expected), number
            assert first not in _FINAL, number
            assert first != "committed" or found == _WORK.expected, number
            proxy.is_silent = False

            second = run(through, _WORK, 2)

        assert second.error is None, (number, second.error)
        assert known(read(direct)) == _WORK.expected, number
        assert made_by(direct).count(_WORK.operation_id) == 1, number
        outcomes.append(f"{number:4} {first:<24} {'new' if found == _WORK.expected else 'old'}")
    with capsys.disabled():
        sys.stdout.write(f"\n{fault}, of {requests} requests:\n" + "\n".join(outcomes) + "\n")
