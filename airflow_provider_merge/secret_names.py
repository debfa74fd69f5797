"""Refuses secrets that people put where they would be seen."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.secret_names import holds_secret, is_secret_name


def refuse_secrets(field: str, settings: Mapping[str, str], remedy: str) -> None:
    """Refuse settings that everybody can see and that hold a secret; its value is not repeated.

    Raises:
        RequestError: REQUEST_INVALID, naming ``field`` and the setting.
    """
    for name, value in settings.items():
        if value and (is_secret_name(name) or holds_secret(value)):
            raise invalid(f"{field}.{name}", "holds a secret, which would be seen there", remedy)
