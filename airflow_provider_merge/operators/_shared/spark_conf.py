"""Spark's configuration as people give it to an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.values import conf_text
from airflow_provider_merge.secret_names import refuse_secrets
from spark_jobs.contract.spark_settings import deciding, instead_of

# Whether the launcher waits for the end of what it submits.
_LEAVING: Final = frozenset(
    {"spark.yarn.submit.waitAppCompletion", "spark.kubernetes.submission.waitAppCompletion"}
)


def spark_conf(conf: Any) -> dict[str, str]:
    """The settings of a rendered parameter ``conf``, as text.

    Raises:
        RequestError: REQUEST_INVALID: no settings, or one that holds a secret or changes meaning.
    """
    if not isinstance(conf, Mapping):
        raise invalid("conf", f"expected a dict of settings, found {type(conf).__name__}")
    texts = {name: conf_text(f"conf.{name}", value) for name, value in conf.items()}
    for name in deciding(texts):
        raise invalid(f"conf.{name}", "can change what a statement means", instead_of(name))
    for name in _LEAVING & texts.keys():
        if texts[name].strip().lower() == "false":
            raise invalid(f"conf.{name}", "would end the task before its job", "Leave it out.")
    refuse_secrets("conf", texts, "Put it into the cluster's own configuration of Spark.")
    return texts
