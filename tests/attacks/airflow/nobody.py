"""A table is made and filled by whoever runs ``python -m tests.attacks.airflow.nobody WAREHOUSE``.

Prints the errors of the statements; what the submitter raises comes first.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

from airflow_provider_merge.submit.spark_submit import SparkSubmitSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.batch import JobBatch
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.operation_files import result_path
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.errors import JobError

_TABLE = TableName("shop", "orders")
_QUERY = "SELECT id, sha2(CAST(id AS STRING), 512) AS v FROM range(50000) ORDER BY v"


def main(warehouse: str) -> None:
    """Run both statements in one Spark application."""
    catalog = CatalogSpec("paimon", warehouse)
    columns = (ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"))
    create = JobRequest(str(uuid.uuid4()), _TABLE, catalog, CreateTableSpec(columns))
    source = SqlSource("s", _QUERY)
    insert = JobRequest(str(uuid.uuid4()), _TABLE, catalog, InsertIntoSpec("s"), (source,))
    told: list[str | None] = []
    job = SparkJob("nobody", JobBatch(str(uuid.uuid4()), (create, insert)))
    try:
        SparkSubmitSubmitter(SparkSettings(spark_env=os.environ["MERGE_SPARK_ENV"])).submit(job)
    except (JobError, SubmissionError) as error:
        told.append(str(error))
    for request in (create, insert):
        path = Path(warehouse) / result_path(request.operation_id)
        told.append(json.loads(path.read_text())["error"] if path.is_file() else "no result")
    sys.stdout.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
