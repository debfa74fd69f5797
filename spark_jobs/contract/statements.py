"""The statements of a job: one dataclass per kind.

Every expression is Spark SQL text that reaches Spark as it was written. Objects check their own
structure on construction, so that a wrong statement fails in the DAG file, not on the cluster;
``spark_jobs.engine.analysis.analyzer`` checks what needs a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.checks import require, require_among, require_column, require_identifier
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.inserts import NewTable, PartitionStatement
from spark_jobs.contract.literals import require_literal
from spark_jobs.contract.maintenance import MaintenanceStatement
from spark_jobs.contract.partition_keys import PartitionKey, partition_keys
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.spark_types import parse_type
from spark_jobs.contract.undo import UndoRunSpec
from spark_jobs.errors import RequestError

When = Literal["matched", "not_matched", "not_matched_by_source"]
Cardinality = Literal["effective", "strict"]

_CLAUSE_TEXT: dict[str, str] = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """``column = value``; ``column`` may be a nested field (``address.city``)."""

    column: str
    value: str

    def __post_init__(self) -> None:
        require_column("assignment: column", self.column)
        require(bool(self.value.strip()), f"assignment to {self.column}", "value is empty")


@dataclass(frozen=True, slots=True)
class UpdateAction:
    """``UPDATE SET column = value, …``"""

    assignments: tuple[Assignment, ...]
    kind: ClassVar[str] = "update"

    def __post_init__(self) -> None:
        require(bool(self.assignments), "assignments", "UPDATE needs at least one assignment")


@dataclass(frozen=True, slots=True)
class UpdateAllAction:
    """``UPDATE SET *``: every target column from the source column of the same name."""

    kind: ClassVar[str] = "update_all"


@dataclass(frozen=True, slots=True)
class DeleteAction:
    """``DELETE``"""

    kind: ClassVar[str] = "delete"


@dataclass(frozen=True, slots=True)
class InsertAction:
    """``INSERT (columns) VALUES (values)``; no columns: by position in the table's order."""

    values: tuple[str, ...]
    columns: tuple[str, ...] = ()
    kind: ClassVar[str] = "insert"

    def __post_init__(self) -> None:
        require(bool(self.values), "values", "INSERT needs at least one value")
        require(
            not self.columns or len(self.columns) == len(self.values),
            "columns",
            f"INSERT names {len(self.columns)} columns but has {len(self.values)} values",
        )
        for index, column in enumerate(self.columns):
            require_column(f"columns[{index}]", column)


@dataclass(frozen=True, slots=True)
class InsertAllAction:
    """``INSERT *``: every target column from the source column of the same name."""

    kind: ClassVar[str] = "insert_all"


Action = UpdateAction | UpdateAllAction | DeleteAction | InsertAction | InsertAllAction

_ALLOWED_ACTIONS: dict[str, tuple[type[Action], ...]] = {
    "matched": (UpdateAction, UpdateAllAction, DeleteAction),
    "not_matched": (InsertAction, InsertAllAction),
    "not_matched_by_source": (UpdateAction, DeleteAction),
}


@dataclass(frozen=True, slots=True)
class MergeCase:
    """One WHEN clause. ``condition`` is the one after AND; None: the clause always applies."""

    when: When
    action: Action
    condition: str | None = None

    def __post_init__(self) -> None:
        require(
            self.condition is None or bool(self.condition.strip()),
            "condition",
            "is empty",
            "Leave the condition out where the clause shall always apply.",
        )
        require(self.when in _ALLOWED_ACTIONS, "when", f"{self.when!r} is not a kind of clause")
        allowed = _ALLOWED_ACTIONS[self.when]
        names = " or ".join(action.kind.upper() for action in allowed)
        require(
            isinstance(self.action, allowed),
            "action",
            f"{_CLAUSE_TEXT[self.when]} takes {names}, not {self.action.kind.upper()}",
        )


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """``MERGE INTO target AS target_alias USING source AS source_alias ON on WHEN …``.

    ``source`` names one of the request's sources. ``cardinality`` is ``effective`` (it is an error
    if more than one source row takes effect on a target row) or ``strict`` (Spark's rule: with a
    MATCHED clause, any second match is an error). ``schema_evolution``: the table gets the columns
    and nested fields that it lacks and that ``*`` or an assignment of a source column to the column
    of the same name would store. ``clauses_of``: nobody wrote the clauses; they are those of
    ``events`` or ``versions``.
    """

    source: str
    on: str
    cases: tuple[MergeCase, ...]
    target_alias: str
    source_alias: str
    cardinality: Cardinality = "effective"
    schema_evolution: bool = False
    clauses_of: Literal["", "events", "versions"] = ""
    kind: ClassVar[str] = "merge"

    def __post_init__(self) -> None:
        for name in ("source", "on"):
            require(bool(getattr(self, name).strip()), name, "is empty")
        for name in ("target_alias", "source_alias"):
            require_identifier(name, getattr(self, name))
        modes = get_args(Cardinality)
        require_among(self.cardinality, modes, "cardinality")
        require(bool(self.cases), "cases", "MERGE needs at least one WHEN clause")
        require(
            self.target_alias.lower() != self.source_alias.lower(),
            "source_alias",
            f"target and source are both called {self.source_alias!r}",
            "Give one of them another alias.",
        )
        self._require_reachable_cases()

    def place(self, case: int) -> str:
        """What errors call a clause, by its number from 0, where people know of clauses."""
        if not self.clauses_of:
            return f"clause {case + 1} ({_CLAUSE_TEXT[self.cases[case].when]})"
        verb = self.cases[case].action.kind.removesuffix("_all")
        return f"{self.clauses_of} that {verb} rows"

    def _require_reachable_cases(self) -> None:
        unconditional: dict[str, int] = {}
        for number, case in enumerate(self.cases, start=1):
            text = _CLAUSE_TEXT[case.when]
            require(
                case.when not in unconditional,
                f"cases[{number - 1}]",
                f"clause {number} ({text}) can never apply, because clause "
                f"{unconditional.get(case.when)} of the same kind has no condition",
                "Only the last clause of a kind may leave its condition out.",
            )
            if case.condition is None:
                unconditional[case.when] = number


@dataclass(frozen=True, slots=True)
class DeleteSpec:
    """``DELETE FROM target AS target_alias WHERE where``; ``where`` None: every row.

    Subqueries in ``where`` read the request's sources by name.
    """

    target_alias: str
    where: str | None = None
    kind: ClassVar[str] = "delete"

    def __post_init__(self) -> None:
        require_identifier("target_alias", self.target_alias)
        _require_where(self.where)


@dataclass(frozen=True, slots=True)
class UpdateSpec:
    """``UPDATE target AS target_alias SET assignments WHERE where``; ``where`` None: every row.

    Subqueries in ``where`` and in values read the request's sources by name.
    """

    target_alias: str
    assignments: tuple[Assignment, ...]
    where: str | None = None
    kind: ClassVar[str] = "update"

    def __post_init__(self) -> None:
        require_identifier("target_alias", self.target_alias)
        require(bool(self.assignments), "assignments", "UPDATE needs at least one assignment")
        _require_where(self.where)


def _require_where(where: str | None) -> None:
    require(
        where is None or bool(where.strip()),
        "where",
        "is empty",
        "Leave it out where every row is meant.",
    )


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column of a new table; ``type`` is a Spark SQL type such as ``DECIMAL(10, 2)``.

    ``default``: a literal of Spark SQL, which new rows have that are given no value.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None

    def __post_init__(self) -> None:
        require_identifier("name", self.name)
        require(bool(self.type.strip()), "type", f"of column {self.name} is empty")
        try:
            parse_type(self.type)
        except RequestError as error:
            raise error.within("type", f"of column {self.name}") from None
        if self.default is not None:
            require_literal("default", self.default, self.type)


@dataclass(frozen=True, slots=True)
class CreateTableSpec:
    """Create the target unless it exists; an existing table that differs is an error.

    ``partition_keys``: columns, or where the format has them transforms of columns: ``day(ts)``,
    ``bucket(16, id)``. ``format``: the table format that the catalog must have; None: any.
    ``like``: in place of columns and keys, the table (``database.table``) that has them, whose
    options and comment count unless others are given. ``source``: in place of columns, the name of
    the source that has them. ``keep_existing``: an existing table is left alone, whatever it is.
    """

    columns: tuple[ColumnSpec, ...] = ()
    partition_keys: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    table_options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    like: str | None = None
    source: str | None = None
    keep_existing: bool = False
    kind: ClassVar[str] = "create_table"

    def __post_init__(self) -> None:
        if self.like is not None:
            self._require_alone(self.like)
            return
        if self.source is not None:
            require(not self.columns, "columns", "cannot be combined with source", "Leave it out.")
            return
        require(bool(self.columns), "columns", "a table needs at least one column")
        names = [column.name.lower() for column in self.columns]
        for name in names:
            require(names.count(name) == 1, "columns", f"{name} occurs more than once")
        key = [name.lower() for name in self.primary_key]
        for name, lowered in zip(self.primary_key, key, strict=True):
            require(lowered in names, "primary_key", f"{name} is not a column of the table")
            require(key.count(lowered) == 1, "primary_key", f"{name} occurs more than once")
        self.partitioned_by()

    def _require_alone(self, like: str) -> None:
        require(bool(like.strip()), "like", "is empty")
        for name in ("columns", "partition_keys", "primary_key", "source"):
            require(not getattr(self, name), name, "cannot be combined with like", "Leave it out.")

    def partitioned_by(self) -> tuple[PartitionKey, ...]:
        """The partition keys, with columns as they are spelled."""
        return partition_keys(self.partition_keys, [column.name for column in self.columns])


RowStatement = MergeSpec | DeleteSpec | UpdateSpec
Statement = (
    RowStatement
    | PartitionStatement
    | CreateTableSpec
    | QuerySpec
    | AlterTableSpec
    | DropTableSpec
    | MaintenanceStatement
    | CompactSpec
    | UndoRunSpec
)


def created_table(statement: Statement) -> CreateTableSpec | NewTable | None:
    """What says how the statement creates its target; None: it does not."""
    if isinstance(statement, CreateTableSpec):
        return statement
    return getattr(statement, "new_table", None)


def redefines(statement: Statement) -> bool:
    """Whether the statement decides what its target is: metadata does not tell before it runs."""
    decides = isinstance(statement, AlterTableSpec | DropTableSpec)
    return decides or created_table(statement) is not None
