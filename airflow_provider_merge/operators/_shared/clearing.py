"""The base of TRUNCATE and DROP PARTITION: partitions deleted without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators._shared.statement import StatementOperator
from airflow_provider_merge.templates import has_template
from spark_jobs.contract.request import Source


class ClearingOperator(StatementOperator):
    """A statement without a source.

    :param last_writer_wins: also delete what others commit to the same partitions meanwhile,
        instead of running again after the conflict
    """

    template_fields: Sequence[str] = (*StatementOperator.template_fields, "last_writer_wins")

    def __init__(self, *, last_writer_wins: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.last_writer_wins = last_writer_wins

    def built_sources(self) -> tuple[Source, ...]:
        """None: no row is read."""
        return ()

    def check_parts(self) -> tuple[Source, ...]:
        """Check what has no template; the statement reads nothing."""
        if self.sources is not None:
            raise invalid("sources", "is of no use here: no row is read", "Leave it out.")
        own = set(self.template_fields) - set(StatementOperator.template_fields)
        if not has_template([getattr(self, name) for name in own]):
            self.built_statement()
        return ()
