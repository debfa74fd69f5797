"""How many requests jobs send to an object store: each takes time, and stores charge for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.inserts import TruncateTableSpec
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, Statement
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, append, create
from tests.support.proxy import Proxy, proxy_before
from tests.support.stores import ObjectStore

_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
# A number may go down. What asks the store for its time puts a file, looks at it and removes it. A
# commit looks for the table before it creates a snapshot, and for the one before it then. A search
# for orphan files lists what operations have kept for other tables, and what they have left.
_MOST = {
    "truncate": (TruncateTableSpec(), 125),
    "expire": (ExpireSnapshotsSpec(retain_min=1, older_than="1 d"), 77),
    "orphans": (RemoveOrphanFilesSpec("1 d"), 60),
}


@contextmanager
def counted(server: ObjectStore) -> Iterator[tuple[Proxy, dict[str, int]]]:
    """A proxy, and the requests by method that went through it, once the block has ended."""
    counts: dict[str, int] = {}
    with proxy_before(server.endpoint) as proxy:
        plans = [proxy.add(method, "", "503", times=0) for method in _METHODS]
        yield proxy, counts
    counts.update({plan.method: plan.seen for plan in plans if plan.seen})


@pytest.mark.parametrize("name", _MOST)
def test_a_job_sends_no_more_requests(moto: ObjectStore, name: str) -> None:
    statement: Statement
    statement, most = _MOST[name]
    catalog = moto.new_catalog()
    connector = open_connector(catalog, moto.credentials)
    create(connector, {"id": "int", "k": "string"}, ["k"])
    append(connector, [{"id": 1, "k": "x"}], "first")
    connector.writes.release_guard(connector.metadata.load_table(NAME), "first")

    with counted(moto) as (proxy, counts):
        options = {**catalog.options, "fs.s3.endpoint": proxy.endpoint}
        other = CatalogSpec("paimon", catalog.warehouse, options)
        request = JobRequest(str(uuid.uuid4()), NAME, other, statement)
        assert run(request, None, moto.credentials).error is None

    assert sum(counts.values()) <= most, counts
