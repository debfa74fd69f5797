"""``MergeIntoOperator``: MERGE INTO a lakehouse table, as one atomic snapshot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast, get_args

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.nothing import require_no_none
from airflow_provider_merge.operators._shared.cdc_parameters import is_cdc
from airflow_provider_merge.operators._shared.dry_run_of import DRY_RUN_OF, IncrementalOperator
from airflow_provider_merge.operators._shared.guards import (
    DELETED_ROWS,
    LATE_ROWS,
    PARTITIONS,
    REWRITES,
    UPDATED_ROWS,
    DeletedRowGuards,
    LateRowGuards,
    RewriteGuards,
    UpdatedRowGuards,
)
from airflow_provider_merge.operators._shared.names import check_names, require_whole_texts
from airflow_provider_merge.operators._shared.schema_evolution import EvolvingOperator
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from airflow_provider_merge.operators._shared.values import identifier
from airflow_provider_merge.operators.clauses import (
    EXAMPLE,
    Clause,
    clause,
    clauses,
    require_action,
)
from airflow_provider_merge.templates import chosen_later, is_template, with_placeholders
from spark_jobs.contract import codec
from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.checks import not_among
from spark_jobs.contract.event_clauses import event_cases, event_on
from spark_jobs.contract.request import Source
from spark_jobs.contract.source_names import MERGE_SOURCE
from spark_jobs.contract.statements import Cardinality, MergeCase, MergeSpec
from spark_jobs.errors import RequestError


class MergeIntoOperator(
    DeletedRowGuards,
    UpdatedRowGuards,
    RewriteGuards,
    LateRowGuards,
    IncrementalOperator,
    EvolvingOperator,
):
    """Runs one MERGE with Spark and publishes one atomic snapshot.

    ``MERGE INTO target AS target_alias USING source AS source_alias ON on WHEN …``: give it as
    ``sql``, or as the parameters ``target``, ``source``, ``on`` and ``when``. Every expression is
    Spark SQL text. What has no template is checked when the DAG is parsed; everything is checked
    before Spark starts. Guide: docs/operators/merge_into.md.

    :param sql: the statement as SQL text, or the path of a ``.sql`` file
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param target: the table, ``database.table``
    :param source: ``file_source(…)``, ``table_source(…)``, ``sql_source(…)`` or the same as a dict;
        ``cdc_source(…)`` needs neither ``on`` nor ``when``
    :param on: the condition that joins source and target rows
    :param when: the clauses in order: ``when_matched(…).update(…)`` … or the same as dicts
    :param target_alias: the target's name in expressions, an identifier; default ``t``
    :param source_alias: the source's name in expressions, an identifier; default ``s``
    :param cardinality: when several source rows for one target row are an error: ``effective``, if
        more than one takes effect on it; ``strict``, if more than one matches it
    :param schema_evolution: true: add the columns and nested fields of the source that the table
        lacks, also if ``sql`` does not say WITH SCHEMA EVOLUTION
    :param type_widening: true: with schema evolution, give columns of the table the source's types
        where these are wider
    """

    template_fields: Sequence[str] = (
        *EvolvingOperator.template_fields,
        *DELETED_ROWS,
        *UPDATED_ROWS,
        *REWRITES,
        *PARTITIONS,
        LATE_ROWS,
        DRY_RUN_OF,
        "source",
        "on",
        "when",
        "target_alias",
        "source_alias",
        "cardinality",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **EvolvingOperator.template_fields_renderers,
        "source": "json",
        "on": "sql",
        "when": "json",
    }

    spec_type = MergeSpec
    required_parts = ("target", "source", "on", "when")
    parts = (*required_parts, "target_alias", "source_alias")
    examples: ClassVar[Mapping[str, str]] = {"on": "'t.id = s.id'", "when": EXAMPLE}

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | None = None,
        on: str | None = None,
        when: Sequence[Clause] | None = None,
        target_alias: str | None = None,
        source_alias: str | None = None,
        cardinality: str = "effective",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.on = on
        self.when: Any = clauses(when)
        self.target_alias = target_alias
        self.source_alias = source_alias
        self.cardinality = cardinality
        self.check_parameters()

    def statement(self) -> MergeSpec:
        """The statement from rendered parameters, with checked names."""
        spec = cast("MergeSpec", super().statement())
        spec = replace(spec, cardinality=self._cardinality())
        check_names(spec, self.target_table(), self.request_sources(), is_text=self.sql is not None)
        return spec

    def needed_parts(self) -> tuple[str, ...]:
        """The parameters that must be given; of change events, ``on`` and ``when`` are known."""
        applies_events = self.on is None and self.when is None and is_cdc(self.source)
        if is_cdc(self.source) and (self.on is None) != (self.when is None):
            given, other = ("on", "when") if self.when is None else ("when", "on")
            problem = f"is given without {other}, but change events need neither"
            raise invalid(given, problem, f"Leave it out; or give {other}, too, for own clauses.")
        return ("target", "source") if applies_events else self.required_parts

    def built_statement(self) -> MergeSpec:
        """The statement from ``source``, ``on`` and ``when``."""
        return self._spec(self.when, self.built_sources())

    def built_sources(self) -> tuple[Source, ...]:
        """The source, preceded by the named sources that its query reads."""
        return to_sources(self.source)

    def check_parts(self) -> tuple[Source, ...]:
        """Check source and clauses, with or without templates; returns the known sources."""
        for name in ("sources", "database"):
            if getattr(self, name) is not None:
                self.refuse(
                    name, "belongs to sql", "Give sql_source(...) the sources that its query reads."
                )
        later = chosen_later(self.source)
        sources = () if later else to_sources(with_placeholders(self.source))
        if self.when is None:
            if sources:
                self._spec(None, sources)
        elif not is_template(self.when) and not any(chosen_later(each) for each in self.when):
            self._spec(with_placeholders(self.when), sources)
        return sources

    def _cardinality(self) -> Cardinality:
        modes = get_args(Cardinality)
        if self.cardinality not in modes:
            raise not_among("cardinality", self.cardinality, modes)
        return cast("Cardinality", self.cardinality)

    def _alias(self, field: str, default: str) -> str:
        alias = getattr(self, field)
        # Of a template only the structure around it is checked.
        return default if alias is None or is_template(alias) else identifier(field, alias)

    def _spec(self, when: Any, sources: Sequence[Source]) -> MergeSpec:
        target, source = self._alias("target_alias", "t"), self._alias("source_alias", "s")
        events = sources[-1] if sources else None
        if when is None and self.on is None and isinstance(events, CdcSource):
            cases = event_cases(events, target, source)
            made = self._made(event_on(events, target, source), cases)
            return replace(made, clauses_of="events")
        if not isinstance(when, list):
            problem = f"expected a list of clauses, found {type(when).__name__}"
            raise invalid("when", problem, f"Write {EXAMPLE}.")
        cases = tuple(_case(each, f"when[{index}]") for index, each in enumerate(when))
        on = with_placeholders(self.on)
        if not isinstance(on, str):
            raise invalid("on", f"expected text, found {type(on).__name__}", "Write t.id = s.id.")
        return self._made(on, cases)

    def _made(self, on: str, cases: tuple[MergeCase, ...]) -> MergeSpec:
        try:
            spec = MergeSpec(
                source=MERGE_SOURCE,
                on=on,
                cases=cases,
                target_alias=self._alias("target_alias", "t"),
                source_alias=self._alias("source_alias", "s"),
                cardinality="effective" if is_template(self.cardinality) else self._cardinality(),
            )
        except RequestError as error:
            # The contract calls the clauses "cases"; the parameter is called "when".
            raise error.at(*(re.sub(r"^cases\b", "when", each) for each in error.places)) from None
        require_whole_texts(spec)
        return spec


def _case(written: Any, place: str) -> MergeCase:
    document = clause(written)
    require_no_none(document, place)
    require_action(document, place)
    return codec.decode(MergeCase, document, place)
