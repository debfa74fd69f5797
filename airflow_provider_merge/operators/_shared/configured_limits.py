"""What Airflow's configuration lets statements, and their texts, do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.values import whole_number
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.text_limits import CODE_SETTING, TextLimits

_PARTITIONS: Final = "max_new_partitions"


def configured_limits() -> TextLimits:
    """The limits of requests.

    Raises:
        RequestError: REQUEST_INVALID, naming the setting.
    """
    allow_code = str(airflow_conf.get("merge", "allow_code_in_sql", fallback="False")).lower()
    if allow_code not in ("true", "false"):
        raise invalid(CODE_SETTING, "is neither True nor False")
    named = airflow_conf.get("merge", "source_prefixes", fallback="") or ""
    prefixes = tuple(filter(None, map(str.strip, named.split(","))))
    return TextLimits(allow_code == "true", prefixes or None)


def limited(options: JobOptions) -> JobOptions:
    """``options`` with the configured limits where a task has none of its own.

    Raises:
        RequestError: REQUEST_INVALID, naming the setting.
    """
    configured = airflow_conf.get("merge", _PARTITIONS, fallback="") or None
    if options.max_new_partitions is not None or configured is None:
        return options
    most = whole_number(f"[merge] {_PARTITIONS}", configured)
    return replace(options, max_new_partitions=most)
