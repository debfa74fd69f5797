"""``MergeIntoOperator``: MERGE INTO a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.operators.base import TableOperator
from airflow_provider_merge.operators.clauses import Clause, clause
from airflow_provider_merge.operators.names import check_names
from airflow_provider_merge.operators.sources import MERGE_SOURCE, parse_table_name, to_sources
from airflow_provider_merge.operators.templates import has_template, is_template, with_placeholders
from spark_jobs.contract import codec
from spark_jobs.contract.request import Source
from spark_jobs.contract.statements import Cardinality, MergeCase, MergeSpec
from spark_jobs.errors import RequestError

_CARDINALITIES = ("effective", "strict")


class MergeIntoOperator(TableOperator):
    """``MERGE INTO target AS target_alias USING source AS source_alias ON on WHEN …``

    Every expression is Spark SQL text. Parameters are checked when the DAG is parsed as far as they
    hold no template, and again, rendered, before Spark starts.

    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict
    :param on: the condition that joins source and target rows
    :param when: the clauses in their order: ``when_matched(…).update(…)`` … or the same as dicts
    :param target_alias: what expressions call the target
    :param source_alias: what expressions call the source
    :param cardinality: ``effective``: an error when more than one source row takes effect on one
        target row; ``strict``: when more than one matches it
    """

    template_fields: Sequence[str] = (
        *TableOperator.template_fields,
        "source",
        "on",
        "when",
        "target_alias",
        "source_alias",
        "cardinality",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **TableOperator.template_fields_renderers,
        "source": "json",
        "on": "sql",
        "when": "json",
    }

    def __init__(
        self,
        *,
        source: Mapping[str, Any],
        on: str,
        when: Sequence[Clause],
        target_alias: str = "t",
        source_alias: str = "s",
        cardinality: str = "effective",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.on = on
        self.when: Any = [clause(each) for each in when] if _is_list(when) else when
        self.target_alias = target_alias
        self.source_alias = source_alias
        self.cardinality = cardinality
        self._check_parameters()

    def statement(self) -> MergeSpec:
        """The statement of the rendered parameters."""
        spec = self._spec(self.when)
        check_names(spec, parse_table_name(self.target, "target"), self.sources())
        return spec

    def sources(self) -> tuple[Source, ...]:
        """The source, after the named sources that its query reads."""
        return to_sources(self.source)

    def _check_parameters(self) -> None:
        """Check as much as is known while the DAG is parsed: names only where all is text."""
        if not is_template(self.source) and not _chosen_later(self.source):
            to_sources(with_placeholders(self.source))
        if not is_template(self.when) and not any(_chosen_later(each) for each in self.when):
            self._spec(with_placeholders(self.when))
        if not has_template([getattr(self, name) for name in MergeIntoOperator.template_fields]):
            self.check_request()

    def _spec(self, when: Any) -> MergeSpec:
        if not isinstance(when, list):
            raise invalid("when", f"expected a list of clauses, found {type(when).__name__}")
        cases = tuple(
            codec.decode(MergeCase, clause(each), f"when[{index}]")
            for index, each in enumerate(when)
        )
        cardinality = "effective" if is_template(self.cardinality) else self.cardinality
        if cardinality not in _CARDINALITIES:
            allowed = ", ".join(_CARDINALITIES)
            raise invalid("cardinality", f"{cardinality!r} is not one of: {allowed}")
        for name in ("on", "target_alias", "source_alias"):
            if not isinstance(getattr(self, name), str):
                raise invalid(name, "expected text")
        try:
            return MergeSpec(
                source=MERGE_SOURCE,
                on=self.on,
                cases=cases,
                target_alias=self.target_alias,
                source_alias=self.source_alias,
                cardinality=cast("Cardinality", cardinality),
            )
        except RequestError as error:
            # The contract calls the clauses "cases"; the parameter is called "when".
            message = error.message
            if message.startswith("cases"):
                message = "when" + message.removeprefix("cases")
            raise RequestError(error.code, message, error.remedy) from None


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _chosen_later(value: Any) -> bool:
    """True when a template decides what kind of thing this is, or when it comes as a whole."""
    if not isinstance(value, dict):
        return is_template(value)
    parts = [value.get("kind"), value.get("when"), value.get("action")]
    action = value.get("action")
    if isinstance(action, dict):
        parts.append(action.get("kind"))
    named = value.get("sources")
    inner = list(named.values()) if isinstance(named, dict) else [named]
    return any(is_template(part) for part in parts) or any(_chosen_later(each) for each in inner)
