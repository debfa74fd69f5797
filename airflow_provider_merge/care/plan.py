"""A plan for many tables: what there is to do, what is worth it most, what a run has room for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from airflow_provider_merge.care.facts import Statement, looked_at
from airflow_provider_merge.care.patterns import Pattern, chosen
from airflow_provider_merge.care.steps import Step, table_text
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import CatalogHook
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import RequestError

EVERYTHING: Final = "*.*"
MOST_TABLES: Final = 100_000
Names = Mapping[str, Sequence[TableName]]
# Tables whose metadata is read at a time.
READERS: Final = 8
# What a file costs beside its bytes: Spark's spark.sql.files.openCostInBytes.
_OPEN_COST: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Care:
    """What is asked for: the catalogs by the ids of their connections, statements by action."""

    hooks: Mapping[str, CatalogHook]
    statements: dict[str, Statement]
    max_bytes: int | None = None

    def of_patterns(self, wanted: Sequence[Pattern], excluded: Sequence[Pattern]) -> list[Step]:
        """A plan for the tables that patterns fit.

        Raises:
            JobError: a catalog cannot be read, or a pattern fits no table.
        """
        names = {conn_id: _names(conn_id, hook) for conn_id, hook in self.hooks.items()}
        own = {each: self._of_catalogs(each, names) for each in (*wanted, *excluded)}
        _require_fit({each: own[each] for each in wanted}, names)

        def its(conn_id: str, asked: Iterable[Pattern]) -> list[Pattern]:
            return [own[each][conn_id] for each in asked if conn_id in own[each]]

        tables = [
            Step(conn_id, table_text(name))
            for conn_id, found in names.items()
            for name in chosen(found, its(conn_id, wanted), its(conn_id, excluded))
        ]
        # A folder of a warehouse need not be a table.
        return self._limited(each for each in self._looked(tables) if each.status != "gone")

    def of_plan(self, plan: Iterable[Step]) -> list[Step]:
        """What is left to do of an approved plan.

        Raises:
            RequestError: REQUEST_INVALID: it is of another catalog or action.
        """
        approved = {each.name: each for each in plan if each.status == "planned" and each.action}
        for each in approved.values():
            self.require_known(each)
        tables = {(each.catalog, each.table): None for each in approved.values()}
        found = self._looked([Step(*each) for each in tables])
        by_name = {each.name: each for each in found}
        return self._limited(
            [
                _allowed(each, by_name.get(each.name) or by_name.get(_table(each).name))
                for each in approved.values()
            ]
        )

    def statement(self, step: Step) -> Statement:
        """What is to be done to the table of a step."""
        statement = self.statements[step.action]
        if isinstance(statement, ExpireSnapshotsSpec) and step.max_deletes is not None:
            return replace(statement, max_deletes=step.max_deletes)
        return statement

    def _of_catalogs(self, pattern: Pattern, names: Names) -> dict[str, Pattern]:
        """The pattern for each catalog that it may be about, without that one's name.

        Raises:
            RequestError: REQUEST_INVALID: it begins with the name of another catalog.
        """
        if not pattern.named_catalog:
            return dict.fromkeys(self.hooks, pattern)
        refusals = {conn_id: _refusal(hook, pattern) for conn_id, hook in self.hooks.items()}
        called = [conn_id for conn_id, refusal in refusals.items() if refusal is None]
        if called:
            return dict.fromkeys(called, pattern.without_catalog())
        level = f"{pattern.named_catalog}."
        if any(name.database.startswith(level) for found in names.values() for name in found):
            # A namespace of several levels.
            return dict.fromkeys(self.hooks, pattern)
        raise next(filter(None, refusals.values()))

    def _looked(self, tables: Sequence[Step]) -> list[Step]:
        with ThreadPoolExecutor(READERS, "care") as readers:
            looks = [
                readers.submit(looked_at, self.hooks[each.catalog], each, self.statements)
                for each in tables
            ]
            return [step for look in looks for step in look.result()]

    def _limited(self, steps: Iterable[Step]) -> list[Step]:
        """The steps, those that are worth most first; what exceeds ``max_bytes`` is left."""
        ranked, used = [], 0
        for step in sorted(steps, key=_rank):
            if step.status == "planned" and self.max_bytes is not None:
                if used + step.read > self.max_bytes:
                    ranked.append(step.ended("left", "max_bytes"))
                    continue
                used += step.read
            ranked.append(step)
        return ranked

    def require_known(self, step: Step) -> None:
        """Check that a step is for one of the catalogs and actions.

        Raises:
            RequestError: REQUEST_INVALID.
        """
        if step.catalog not in self.hooks:
            known = ", ".join(self.hooks)
            problem = f"is for the catalog {step.catalog}, but this task is for {known}"
            raise invalid("plan", problem, "Give the same catalogs as for the plan.")
        if step.action not in self.statements:
            problem = (
                f"has the action {step.action}, which is not among: {', '.join(self.statements)}"
            )
            raise invalid("plan", problem, "Give the same actions as for the plan.")


def _names(conn_id: str, hook: CatalogHook) -> list[TableName]:
    table_names = hook.table_names(MOST_TABLES + 1)
    if len(table_names) > MOST_TABLES:
        raise invalid(
            "catalog_conn_id",
            f"the catalog of {conn_id} has more than {MOST_TABLES:,} tables",
            "Take care of its tables with a connection for a part of them.",
        )
    return table_names


def _refusal(hook: CatalogHook, pattern: Pattern) -> RequestError | None:
    """Why a pattern is not about the catalog that it names; None: it is."""
    try:
        hook.require_catalog(pattern.as_name())
    except RequestError as error:
        return error
    return None


def _require_fit(wanted: Mapping[Pattern, Mapping[str, Pattern]], names: Names) -> None:
    """Check that each pattern of a part fits a table: a typo would leave tables without care.

    ``wanted`` has each pattern as it is for the catalogs that it may be about.
    """
    for each, own in wanted.items():
        fits = any(its.fits(name) for conn_id, its in own.items() for name in names[conn_id])
        if not fits and any(its.text != EVERYTHING for its in own.values()):
            problem = f"{each.text!r} fits no table of {', '.join(names)}"
            raise invalid("tables", problem, "Correct the pattern.")


def _table(step: Step) -> Step:
    return Step(step.catalog, step.table)


def _allowed(approved: Step, now: Step | None) -> Step:
    """A step as it is now; no more snapshots expire than were approved."""
    if now is None:
        return approved.ended("nothing")
    if now.status != "planned":
        return replace(now, action=approved.action)
    is_expiry = approved.action == ExpireSnapshotsSpec.kind
    return replace(now, max_deletes=approved.snapshots) if is_expiry else now


def _rank(step: Step) -> tuple[bool, float, str]:
    """Planned steps first, by what they save: bytes, and what it costs to open a file."""
    saved = (step.free or 0) + step.files * _OPEN_COST
    return step.status != "planned", -saved, step.name
