"""Commands of the provider: ``python -m airflow_provider_merge COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.submit.class_archive import NoArchiveError
from airflow_provider_merge.submit.class_archive_maker import make
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.surroundings import class_archive_folder
from spark_jobs.errors import RequestError


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 when the command is done."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_merge", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    archive = commands.add_parser(
        "class-archive", help="make the archive with which Java starts Spark's drivers faster"
    )
    archive.add_argument("--spark-env", help="folder of the Python environment that has pyspark")
    archive.add_argument("--folder", type=Path, help="where archives are kept")
    parsed = parser.parse_args(arguments)
    try:
        return _class_archive(parsed.spark_env, parsed.folder)
    except (RequestError, NoArchiveError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _class_archive(spark_env: str | None, folder: Path | None) -> int:
    field = "--spark-env" if spark_env else "[merge] spark_env"
    root = spark_env or airflow_conf.get("merge", "spark_env", fallback=None)
    if not root:
        raise invalid("--spark-env", "is missing, and [merge] spark_env is not set")
    folder = folder or class_archive_folder()
    if folder is None:
        raise invalid("--folder", "is missing, and [merge] class_archive_folder is empty")
    environment = SparkEnvironment.at(root, field)
    archive, is_new = make(folder.absolute(), environment, os.environ)
    sys.stdout.write(f"{'made' if is_new else 'there already'}: {archive}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
