"""What Airflow's configuration lets the texts of statements do."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.text_limits import CODE_SETTING, TextLimits


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
