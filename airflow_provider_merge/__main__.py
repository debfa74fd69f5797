"""Commands of the provider: ``python -m airflow_provider_merge COMMAND``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.file_check.command import add_arguments
from airflow_provider_merge.file_check.command import run as check_files
from airflow_provider_merge.submit.class_archive import NoArchiveError
from airflow_provider_merge.submit.class_archive_maker import make
from airflow_provider_merge.submit.job_files import remove_left_folders
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.surroundings import class_archive_folder
from airflow_provider_merge.undo.command import add_arguments as add_undo_arguments
from airflow_provider_merge.undo.command import run as undo_run
from spark_jobs.errors import JobError


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 when the command is done."""
    _print_anywhere()
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_merge", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    archive = commands.add_parser(
        "class-archive", help="make the archive with which Java starts Spark's drivers faster"
    )
    archive.add_argument("--spark-env", help="folder of the Python environment that has pyspark")
    archive.add_argument("--folder", type=Path, help="where archives are kept")
    check = commands.add_parser(
        "check", help="say what of .sql files runs here, by the tables of a catalog, without Spark"
    )
    add_arguments(check)
    undo = commands.add_parser("undo", help="take back what a run of a DAG committed to tables")
    add_undo_arguments(undo)
    commands.add_parser(
        "sweep", help="remove the files of jobs whose worker was killed, with their credentials"
    )
    parsed = parser.parse_args(arguments)
    try:
        if parsed.command == "sweep":
            return _sweep()
        if parsed.command == "check":
            return check_files(parsed)
        if parsed.command == "undo":
            return undo_run(parsed)
        return _class_archive(parsed.spark_env, parsed.folder)
    except (JobError, NoArchiveError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _print_anywhere() -> None:
    """Let names of files and values be printed in terminals whose encoding lacks their letters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _sweep() -> int:
    removed = remove_left_folders()
    for folder in removed:
        sys.stdout.write(f"removed: {folder}\n")
    sys.stdout.write(f"folders of killed workers: {len(removed)}\n")
    return 0


def _class_archive(spark_env: str | None, folder: Path | None) -> int:
    field = "--spark-env" if spark_env else "[merge] spark_env"
    root = spark_env or airflow_conf.get("merge", "spark_env", fallback=None)
    if not root:
        raise invalid("--spark-env", "is missing, and [merge] spark_env is not set")
    folder = folder or class_archive_folder()
    if folder is None:
        raise invalid(
            "--folder",
            "is missing, and [merge] class_archive_folder is empty or the user has no home",
        )
    environment = SparkEnvironment.at(root, field)
    archive, is_new = make(folder.absolute(), environment, os.environ)
    sys.stdout.write(f"{'made' if is_new else 'there already'}: {archive}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
