"""What the engine passes to a connector to begin a write, and what the connector's sinks return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.options import Isolation
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_jobs.spi.arrow_tasks import PartReader

FRAGMENT_VERSION = 1

# The files, of those given, that a statement would have read if they had existed.
ReadSet = Callable[[Sequence[PlannedFile]], Sequence[PlannedFile]]


def whole_table(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
    """The read set of a statement that depends on every row."""
    return files


def always_wanted() -> None:
    """The ``require_wanted`` of a write that nobody can cancel."""


def beyond_years(columns: Iterable[str]) -> DataError:
    """The error of a row whose partition has a day that Python does not have.

    ``columns`` decide where the row is stored; those of a layout's own are not named.
    """
    names = sorted(name for name in columns if not name.startswith(rows.RESERVED_PREFIX))
    return DataError(
        ErrorCode.VALUE_NOT_STORABLE,
        f"the partition of a row (by {', '.join(names)}) has a date or time outside of the years "
        "1 to 9999",
        "Give such rows another date, or NULL, or leave them out.",
    )


class InsertedKeys(Enum):
    """What an INSERT row may find in a table with a primary key.

    ``NEW``: no row of the table has its key, which the statement proves.
    ``CHECKED``: the sink refuses a row whose key is still in the table (DUPLICATE_KEY_INSERT).
    ``UPSERTED``: the sink merges the row with the stored one, as the table does. Rows with equal
    keys among the inserted ones are the sink's business, too.
    """

    NEW = "new"
    CHECKED = "checked"
    UPSERTED = "upserted"


@dataclass(frozen=True, slots=True)
class DerivedColumns:
    """Columns that the engine computes for INSERT rows before it shuffles or sorts them by these.

    ``columns`` are names that start with ``rows.RESERVED_PREFIX``, with Spark types in DDL form.
    ``function`` is picklable and runs on executors: from the table columns ``inputs``, looked up by
    name in a batch, it makes one array for each of ``columns``. Rows of other operations have NULL
    in them, unless one layout is for all rows.
    """

    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    function: Callable[[pa.RecordBatch], Sequence[pa.Array]]

    def added_to(self, new_rows: pa.RecordBatch) -> pa.RecordBatch:
        """``new_rows`` of the table, followed by the columns; in executors."""
        for (name, _), values in zip(self.columns, self.function(new_rows), strict=True):
            new_rows = new_rows.append_column(name, values)
        return new_rows


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of new rows that are sorted, and where its NULLs are in either direction."""

    column: str
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How the rows of a new file are sorted: by ``keys``, which are table columns or ``derived``.

    Whatever a row has in ``derived``, it is stored where it would be otherwise. Keys are of types
    that Spark and Arrow compare alike, so not FLOAT or DOUBLE.
    """

    keys: tuple[SortKey, ...]
    derived: DerivedColumns | None = None


@dataclass(frozen=True, slots=True)
class WriteLayout:
    """The distribution and order of change rows that the engine guarantees at the sink.

    ``cluster_by``: rows with equal values in these columns go to the same sink task. ``order_by``:
    the order in which a task sees its rows. Both name columns of a change row, or fields of the row
    id with a dot (``__merge_row_id.file``). ``file_ordinal``: the only column of ``cluster_by``, if
    it is a ``PlannedFile.ordinal``; file sizes then decide which files share a task. ``derived``:
    columns that change rows get beforehand; ``cluster_by`` and ``order_by`` may name them.
    ``keeps_clusters``: a task has all rows of its clusters, in order; otherwise, new rows of a
    cluster may be spread over tasks. If one layout is for all rows, it keeps clusters, and among
    rows that are equal in ``order_by``, INSERT rows come last. ``adds_files``: tasks with UPDATE
    rows may add files, so that fewer tasks leave fewer files. ``row_order``: that of INSERT rows
    that are equal in ``order_by``; a layout for all rows has none. ``joins_files``: small files of
    new rows can be joined after they were written (``MergeWrite.scattered``), so that tasks may
    write rows as they compute them; ``cluster_by`` then has the fields of the partition.
    """

    cluster_by: tuple[str, ...]
    order_by: tuple[str, ...]
    file_ordinal: str | None = None
    derived: DerivedColumns | None = None
    keeps_clusters: bool = False
    adds_files: bool = False
    row_order: RowOrder | None = None
    joins_files: bool = False

    @property
    def deciding_columns(self) -> frozenset[str]:
        """The columns whose values decide where a row is stored."""
        inputs = self.derived.inputs if self.derived else ()
        return frozenset((*self.cluster_by, *inputs))


@dataclass(frozen=True, slots=True)
class Operation:
    """The identity of an operation, as its snapshot records it.

    ``ended`` are earlier operations of the same task run. One that is still publishing may commit
    after it was looked for: its commit, like one of the operation itself, is a conflict. ``marks``
    are the properties of the marks that it moves: so is a commit that moves one of them, or takes
    back another commit.
    """

    operation_id: str
    request_digest: str
    properties: Mapping[str, str]
    ended: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()

    @property
    def same_work(self) -> frozenset[str]:
        """The operations whose commits may have done this one's work."""
        return self.ended | {self.operation_id}


@dataclass(frozen=True, slots=True)
class MergeWrite:
    """What a statement is about to do to a table.

    ``files`` are the files that the statement reads. ``assigned_columns[case_number]`` are the
    columns that an UPDATE row of that case carries (empty for other cases); sinks ignore all other
    table columns of an UPDATE row. ``on_columns`` are the target columns of ON, which a sink reads
    only for error messages. ``target_file_size`` is in bytes. ``rewrite_share`` is the share of
    deleted rows (0 to 1) above which a file is rewritten even though the connector could mark them
    as deleted; None: the table or the connector decides.

    ``isolation`` and ``read_set`` decide which concurrent commits are conflicts (rule 12 of
    docs/semantics.md). ``serializable``: the statement must have the same result on the snapshot
    that it is published on, so nothing in its read set may have changed: the connector calls
    ``read_set`` with the files that others added, removed or marked in the meantime. ``snapshot``:
    only what the statement rewrites, marks or removes must still be there, unchanged. None: the
    table decides by the kind of statement; a connector without such options takes ``serializable``.
    ``read_columns`` are the target columns on whose values the result depends, besides those that
    clauses assign; None: all.
    ``overwrites``: the snapshot is of the kind OVERWRITE even if it removes nothing. A write whose
    operation moves marks may have no fragments at all. ``dry_run``:
    neither ``begin_merge`` nor the sinks store anything, but fragments and errors are those of a
    real write; ``finish_merge`` is not called. ``require_wanted`` is called last, right before each
    try to publish; it raises a JobError if the snapshot is no longer wanted. ``inserted_keys``
    matters only in tables with a primary key. ``scattered``: tasks store INSERT rows as they
    compute them, and ``repacking`` joins small files of them.
    """

    operation: Operation
    files: tuple[PlannedFile, ...]
    assigned_columns: tuple[tuple[str, ...], ...]
    on_columns: tuple[str, ...]
    target_file_size: int
    rewrite_share: float | None = None
    isolation: Isolation | None = "serializable"
    read_set: ReadSet = whole_table
    read_columns: frozenset[str] | None = None
    overwrites: bool = False
    dry_run: bool = False
    inserted_keys: InsertedKeys = InsertedKeys.NEW
    require_wanted: Callable[[], None] = always_wanted
    scattered: bool = False


@dataclass(frozen=True, slots=True)
class Fragment:
    """A change, made by a sink task or ``drop_files``: the engine counts, the connector commits.

    ``document`` is the connector's own JSON document (files, statistics). ``rows_carried`` counts
    rows copied unchanged into rewritten files. Sizes are in bytes.
    """

    document: Mapping[str, Any]
    files_added: int = 0
    files_removed: int = 0
    files_rewritten: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    rows_carried: int = 0
    deletion_vectors_added: int = 0
    version: int = FRAGMENT_VERSION

    @classmethod
    def without_file(cls, document: Mapping[str, Any], size: int) -> Fragment:
        """A file of ``size`` bytes is removed."""
        return cls(document, files_removed=1, bytes_removed=size)

    @classmethod
    def rewritten_file(
        cls, document: Mapping[str, Any], size: int, new_size: int, rows_carried: int
    ) -> Fragment:
        """A file of ``size`` bytes is replaced."""
        return cls(
            document,
            files_added=1,
            files_removed=1,
            files_rewritten=1,
            bytes_added=new_size,
            bytes_removed=size,
            rows_carried=rows_carried,
        )

    def to_json(self) -> str:
        """The fragment as JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Fragment:
        """The fragment from JSON text that ``to_json`` wrote.

        Raises:
            ValueError: another version wrote it.
        """
        document = json.loads(text)
        if document.get("version") != FRAGMENT_VERSION:
            raise ValueError(f"fragment of version {document.get('version')}")
        return cls(**document)


@dataclass(frozen=True, slots=True)
class Repacking:
    """New files of a write whose rows should be stored again, because they are too many.

    ``groups`` are the indices of their fragments; the files of a group become one file. ``reader``
    reads the rows of the files ``parts``, by index of the fragment, with all columns that a sink
    takes.
    """

    groups: Sequence[Sequence[int]]
    reader: PartReader[Any]
    parts: Mapping[int, Any]
