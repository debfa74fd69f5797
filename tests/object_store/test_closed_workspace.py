"""A workspace on an object store that refuses the key: the error says so, and is final."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import JobRequest, Origin
from spark_jobs.contract.statements import DeleteSpec
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.storage.warehouse import open_workspace
from tests.support.paimon_tables import NAME
from tests.support.stores import ObjectStore, gateway

__all__ = ["gateway"]


@pytest.mark.parametrize("wrong", ["fs.s3.accessKeyId", "fs.s3.accessKeySecret"])
def test_a_try_of_an_operation_does_not_begin(gateway: ObjectStore, wrong: str) -> None:
    catalog = gateway.new_catalog()
    options = {**catalog.options, **gateway.credentials, wrong: "planted-3"}
    log = OperationLog(open_workspace(catalog, options))
    request = JobRequest("op-1", NAME, catalog, DeleteSpec("true"), origin=Origin(try_number=2))

    for begin in (lambda: log.enter(request), lambda: log.begin("op-1", 1)):
        with pytest.raises(JobError) as raised:
            begin()
        assert raised.value.code is ErrorCode.WORKSPACE_ACCESS_DENIED
        assert "planted-3" not in str(raised.value)
