"""``python -m airflow_provider_merge undo``."""

from __future__ import annotations

import argparse
import sys
import uuid
from typing import Final

from airflow_provider_merge.exceptions import job_error
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.metadata.operations import read_result, remove_leftovers
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.operators._shared.results import result_table
from airflow_provider_merge.operators._shared.run_tables import WantedTables, tables_of_run
from airflow_provider_merge.submit.plain_python import PlainPythonSubmitter
from airflow_provider_merge.submit.submitter import SparkJob, SparkSettings, SubmissionError
from spark_jobs.contract.request import JobRequest, Origin
from spark_jobs.contract.undo import UndoRunSpec

# The DAG that snapshots of this command name.
DAG_ID: Final = "airflow_provider_merge_undo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--dag", required=True, help="the DAG whose run is taken back")
    parser.add_argument("--run", required=True, help="the id of that run")
    parser.add_argument("--conn", default="paimon_default", help="the catalog connection")
    parser.add_argument(
        "--table",
        action="append",
        metavar="DB.TABLE",
        help="a table, a pattern such as shop.*, or a branch; default: all tables of the catalog",
    )
    parser.add_argument("--spark-conn", default="spark_default", help="the Spark connection")
    parser.add_argument("--spark-env", help="folder of the Python environment that has pyspark")
    parser.add_argument(
        "--skip-refused", action="store_true", help="undo the others if a table cannot be undone"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be taken back")


def run(parsed: argparse.Namespace) -> int:
    """Undo the run, or say what would be undone; 1 if a table cannot be undone.

    Raises:
        JobError: nothing was changed, or it failed in between, which it says.
    """
    hook = catalog_hook(parsed.conn)
    wanted = WantedTables.of("--table", parsed.table)
    run_tables = tables_of_run(hook, parsed.dag, parsed.run, wanted)
    names = run_tables.names
    if not names:
        sys.stdout.write(f"No table has a snapshot of run {parsed.run} of {parsed.dag}.\n")
        return 1
    if run_tables.built_on:
        sys.stdout.write(f"Other tables {run_tables.told()}\n")
    operation_id = str(uuid.uuid4())
    request = JobRequest(
        operation_id=operation_id,
        target=names[0],
        catalog=hook.catalog_spec(),
        statement=UndoRunSpec(
            parsed.dag,
            parsed.run,
            tuple(map(str, names)),
            "skip" if parsed.skip_refused else "fail",
        ),
        origin=Origin(DAG_ID, f"undo__{operation_id}", "undo"),
        dry_run=parsed.dry_run,
        text_limits=configured_limits(),
    )
    settings = SparkSettings(spark_conn_id=parsed.spark_conn, spark_env=parsed.spark_env)
    failure = None
    try:
        PlainPythonSubmitter(settings).submit(
            SparkJob(f"{DAG_ID}.undo", request, hook.credentials())
        )
    except SubmissionError as error:
        failure = error
    result = read_result(request, hook.workspace_options())
    if request.dry_run:
        remove_leftovers(request, hook.workspace_options())
    if result is None:
        sys.stderr.write(f"{failure or 'The job left no result.'}\n")
        return 1
    if result.error is not None:
        raise job_error(result.error)
    sys.stdout.write(f"{result_table(result)}\n")
    if result.status == "committed":
        again = f"undo --dag {DAG_ID} --run {request.origin.run_id}"
        sys.stdout.write(f"To take this back: python -m airflow_provider_merge {again}\n")
    tables = result.undo.tables if result.undo is not None else ()
    return int(any(each.outcome == "refused" for each in tables))
