"""What the engine hands to a connector's write lifecycle and what comes back from its sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.contract.request import Isolation
from spark_jobs.spi.tables import PlannedFile

if TYPE_CHECKING:
    import pyarrow as pa

FRAGMENT_VERSION = 1

# Which of some files a statement would have read, had they been there.
ReadSet = Callable[[Sequence[PlannedFile]], Sequence[PlannedFile]]


def whole_table(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
    """The read set of a statement that depends on every row."""
    return files


def always_wanted() -> None:
    """The last look of a write that nobody can end from outside."""


@dataclass(frozen=True, slots=True)
class DerivedColumns:
    """What the engine computes for INSERT rows before they are shuffled.

    ``columns`` are names below ``rows.RESERVED_PREFIX`` and Spark types in DDL form. ``function``
    runs on executors and is picklable: from the table columns ``inputs``, found by name in a batch,
    it makes one array for each of ``columns``. Rows of other operations have NULL there.
    """

    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    function: Callable[[pa.RecordBatch], Sequence[pa.Array]]


@dataclass(frozen=True, slots=True)
class WriteLayout:
    """What the redistribution guarantees at the sink.

    ``cluster_by``: rows equal in these columns meet in one sink task. ``order_by``: the order in
    which a task sees its rows. Both name columns of a change row, or fields of the row id with a
    dot (``__merge_row_id.file``). ``file_ordinal``: the only column of ``cluster_by``, if it is a
    ``PlannedFile.ordinal``; then the files' sizes decide which of them share a task. ``derived``:
    columns that change rows get beforehand; the other two may name them.
    """

    cluster_by: tuple[str, ...]
    order_by: tuple[str, ...]
    file_ordinal: str | None = None
    derived: DerivedColumns | None = None

    @property
    def deciding_columns(self) -> frozenset[str]:
        """The columns whose values decide where a row is stored."""
        inputs = self.derived.inputs if self.derived else ()
        return frozenset((*self.cluster_by, *inputs))


@dataclass(frozen=True, slots=True)
class Operation:
    """The identity of the work, as the snapshot will record it."""

    operation_id: str
    request_digest: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MergeWrite:
    """What a statement is about to do to a table.

    ``files`` are the files that the statement reads. ``assigned_columns[case_number]`` are the
    columns that an UPDATE row of that case carries (empty for other cases): in an UPDATE row, table
    columns outside that list are to be ignored. ``on_columns`` are the target columns of ON, which
    a sink reads only to word an error. ``target_file_size`` is in bytes. ``rewrite_share``: the
    share of deleted rows (0 to 1) above which a file is rewritten where the connector could mark
    them instead; None: the table or the connector decides.

    ``isolation`` and ``read_set`` decide which commits of others are a conflict (rule 12).
    ``serializable``: the statement must come out the same on the table that it is published on, so
    nothing may have changed in ``read_set``, of which the connector asks with the files that others
    added, removed or marked meanwhile. ``snapshot``: only what the statement rewrites, marks or
    removes must still be there, unchanged. ``overwrites``: the snapshot is of the kind OVERWRITE,
    even if nothing was there to be removed. ``dry_run``: neither begin nor sinks may store
    anything, but fragments and errors are those of a real write; there will be no finish.
    ``require_wanted`` is called last, right before each try to publish: the JobError that it raises
    says that nobody wants the snapshot any more.
    """

    operation: Operation
    files: tuple[PlannedFile, ...]
    assigned_columns: tuple[tuple[str, ...], ...]
    on_columns: tuple[str, ...]
    target_file_size: int
    rewrite_share: float | None = None
    isolation: Isolation = "serializable"
    read_set: ReadSet = whole_table
    overwrites: bool = False
    dry_run: bool = False
    require_wanted: Callable[[], None] = always_wanted


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one sink task wrote: the engine counts, the connector commits.

    ``document`` is the connector's own JSON document (files, statistics). ``rows_carried`` are rows
    copied unchanged into rewritten files. Sizes are in bytes.
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

    def to_json(self) -> str:
        """The fragment as JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Fragment:
        """The fragment behind JSON text that ``to_json`` wrote.

        Raises:
            ValueError: it was written by another version.
        """
        document = json.loads(text)
        if document.get("version") != FRAGMENT_VERSION:
            raise ValueError(f"fragment of version {document.get('version')}")
        return cls(**document)
