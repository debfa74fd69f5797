"""What Airflow's configuration lets the texts of statements do."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import AirflowException
from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.text_limits import CODE_SETTING, TextLimits


def configured_limits() -> TextLimits:
    """The limits of requests.

    Raises:
        RequestError: REQUEST_INVALID, naming the setting.
    """
    try:
        allow_code = airflow_conf.getboolean("merge", "allow_code_in_sql", fallback=False)
    except (AirflowException, ValueError):
        raise invalid(CODE_SETTING, "is neither True nor False") from None
    named = airflow_conf.get("merge", "source_prefixes", fallback="") or ""
    prefixes = tuple(filter(None, map(str.strip, named.split(","))))
    return TextLimits(allow_code, prefixes or None)
