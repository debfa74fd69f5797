"""What surrounds a job on a worker: the Spark connection, the Python environment, the variables."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import (
    AirflowNotFoundException,
    BaseHook,
)
from airflow.providers.common.compat.sdk import (
    conf as airflow_conf,
)

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.links import filled_page
from airflow_provider_merge.submit.spark_environment import SparkEnvironment
from airflow_provider_merge.submit.submitter import SparkSettings, check_deploy_mode
from spark_jobs.errors import RequestError

log = logging.getLogger(__name__)

_HADOOP_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DEFAULT_STORE = "defaultfs"


@dataclass(frozen=True, slots=True)
class SparkConnection:
    """What a job needs to know of its Spark connection; the hook knows the rest."""

    extra: Mapping[str, Any]
    has_local_master: bool


def spark_connection(conn_id: str) -> SparkConnection:
    """The Spark connection, which must exist: the hook would quietly take YARN.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise invalid(
            "spark_conn_id",
            f"there is no connection {conn_id!r}",
            "Create it with the type spark and the master as its host, such as local[*] or yarn.",
        ) from None
    is_local = (connection.host or "").startswith("local")
    return SparkConnection(connection.extra_dejson, is_local)


def deploy_mode(settings: SparkSettings, extra: Mapping[str, Any]) -> str:
    """``client`` or ``cluster``: the operator's setting, else the Spark connection's.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    if settings.deploy_mode is not None:
        return settings.deploy_mode
    mode = str(extra.get("deploy-mode") or "client")
    check_deploy_mode(f"connection {settings.spark_conn_id!r}, deploy-mode", mode)
    return mode


def shares_local_files(settings: SparkSettings) -> bool:
    """Whether a path without a scheme is for certain the same file on this worker and in Spark.

    Raises:
        RequestError: as ``spark_connection``, ``deploy_mode`` and ``environment_of``.
    """
    connection = spark_connection(settings.spark_conn_id)
    if not connection.has_local_master or deploy_mode(settings, connection.extra) != "client":
        return False
    has_pyspark = environment_of(settings, connection.extra) is not None
    return has_pyspark and not _may_have_default_store(settings.conf)


def environment_of(settings: SparkSettings, extra: Mapping[str, Any]) -> SparkEnvironment | None:
    """Where pyspark is: the operator's setting, the Spark connection's, or Airflow's.

    Raises:
        RequestError: REQUEST_INVALID: it is not there.
    """
    candidates = {
        "spark_env": settings.spark_env,
        f"connection {settings.spark_conn_id!r}, spark-env": extra.get("spark-env"),
        "[merge] spark_env": airflow_conf.get("merge", "spark_env", fallback=None),
    }
    for field, folder in candidates.items():
        if folder:
            return SparkEnvironment.at(str(folder), field)
    return None


def class_archive_folder() -> Path | None:
    """Where archives of Spark's classes are; None where they are switched off.

    They are, too, for a user without a home folder unless the setting names another folder.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    setting = "class_archive_folder"
    default = "~/.cache/airflow-provider-merge"
    folder = airflow_conf.get("merge", setting, fallback=default)
    if not folder:
        return None
    try:
        path = Path(folder).expanduser()
    except RuntimeError:  # no HOME, and the user is in no list of users
        return None
    if not path.is_absolute():
        raise invalid(f"[merge] {setting}", f"{folder!r} is not an absolute path")
    return path


def makes_class_archives() -> bool:
    """Whether the first job of an environment leaves such an archive."""
    return bool(airflow_conf.getboolean("merge", "make_class_archive", fallback=True))


def history_server(settings: SparkSettings, extra: Mapping[str, Any]) -> str:
    """The address of Spark's history server, empty without one.

    One that cannot be used is logged: for want of a link no task fails.
    """
    address = extra.get("spark-history-url")
    if not address:
        return ""
    try:
        field = f"connection {settings.spark_conn_id!r}, spark-history-url"
        return filled_page(field, str(address))
    except RequestError as error:
        log.warning("There will be no link to the history server: %s", error)
        return ""


def _may_have_default_store(conf: Mapping[str, str]) -> bool:
    """Whether Spark may look for paths without a scheme elsewhere than in local files."""
    if any(_DEFAULT_STORE in name.lower() for name in conf):
        return True
    if any(os.environ.get(name) for name in _HADOOP_FOLDERS):
        return True
    spark = Path(os.environ.get("SPARK_CONF_DIR") or os.devnull)
    try:
        text = (spark / "spark-defaults.conf").read_text(errors="replace")
    except OSError:
        text = ""
    return _DEFAULT_STORE in text.lower() or (spark / "core-site.xml").exists()


def environment_of_jobs() -> dict[str, str]:
    """The worker's environment without Airflow's own: its connections, variables and keys."""
    own = re.compile(r"_*AIRFLOW_")
    return {name: value for name, value in os.environ.items() if not own.match(name)}
