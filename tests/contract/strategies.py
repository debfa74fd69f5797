"""Random valid requests and results."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from spark_jobs.contract.alter_table import AlteredPart, AlterTableReport
from spark_jobs.contract.compaction import CompactedPartition, CompactionReport, CompactSpec
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertIntoSpec,
    InsertOverwriteSpec,
    TruncateTableSpec,
)
from spark_jobs.contract.maintenance import (
    CherryPickSpec,
    CreateBranchSpec,
    CreateTagSpec,
    DeleteBranchSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    FastForwardSpec,
    Kept,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
    SetCurrentSnapshotSpec,
)
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.query import QueryColumn, QueryReport, QuerySpec
from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics, SourceMetrics
from spark_jobs.contract.statements import (
    Assignment,
    ColumnSpec,
    CreateTableSpec,
    DeleteAction,
    DeleteSpec,
    InsertAction,
    InsertAllAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateAllAction,
    UpdateSpec,
)
from spark_jobs.errors import ErrorCode
from tests.contract.alterations import alterations

# Any text that UTF-8 can hold, and text that is not blank.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
types = st.sampled_from(["INT", "string", "DECIMAL(10, 2)", "STRUCT<a: INT, b: ARRAY<DATE>>"])
words = texts.filter(lambda text: bool(text.strip()))
# Almost the name of a usual format would be refused.
_formats = texts.map("format ".__add__)
# What backticks can hold, and columns with their fields.
identifiers = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="`"), min_size=1, max_size=8
).filter(lambda text: text == text.strip())
columns = st.lists(identifiers.map(lambda name: f"`{name}`"), min_size=1, max_size=2).map(".".join)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
mappings = st.dictionaries(texts, texts, max_size=3)

table_names = st.builds(TableName, names, names)
_places = st.sampled_from(["/w", "s3://b/w", "/Ω x"])
catalogs = st.builds(CatalogSpec, words, _places, mappings, st.none() | _places)
origins = st.builds(
    Origin, texts, texts, texts, st.integers(), st.integers(1, 9), st.integers(0, 9)
)
options = st.builds(JobOptions, words, st.integers(min_value=1))

_assignments = st.lists(st.builds(Assignment, columns, words), min_size=1, max_size=3).map(tuple)
_updates = st.builds(UpdateAction, _assignments)
deletes = st.builds(DeleteSpec, identifiers, st.none() | words)
updates = st.builds(UpdateSpec, identifiers, _assignments, st.none() | words)


@st.composite
def _inserts(draw: st.DrawFn) -> InsertAction:
    values = tuple(draw(st.lists(words, min_size=1, max_size=3)))
    named = tuple(draw(columns) for _ in values) if draw(st.booleans()) else ()
    return InsertAction(values, named)


_ACTIONS = {
    "matched": st.one_of(_updates, st.just(UpdateAllAction()), st.just(DeleteAction())),
    "not_matched": st.one_of(_inserts(), st.just(InsertAllAction())),
    "not_matched_by_source": st.one_of(_updates, st.just(DeleteAction())),
}


@st.composite
def _cases(draw: st.DrawFn) -> tuple[MergeCase, ...]:
    cases: list[MergeCase] = []
    open_kinds = sorted(_ACTIONS)
    for _ in range(draw(st.integers(1, 5))):
        when = draw(st.sampled_from(open_kinds))
        condition = draw(st.none() | words)
        cases.append(MergeCase(when, draw(_ACTIONS[when]), condition))
        if condition is None:
            open_kinds.remove(when)
        if not open_kinds:
            break
    return tuple(cases)


@st.composite
def merges(draw: st.DrawFn, source: str) -> MergeSpec:
    """A MERGE that uses ``source``."""
    aliases = st.lists(identifiers, min_size=2, max_size=2, unique_by=str.lower)
    target_alias, source_alias = draw(aliases)
    return MergeSpec(
        source,
        draw(words),
        draw(_cases()),
        target_alias,
        source_alias,
        draw(st.sampled_from(["effective", "strict"])),
        draw(st.booleans()),
    )


_partitions = st.dictionaries(names.map(str.lower), words, min_size=1, max_size=2)
_no_partition: st.SearchStrategy[dict[str, str]] = st.just({})
_some_columns = st.lists(columns, max_size=2).map(tuple)
_some_names = st.lists(identifiers, max_size=2).map(tuple)
truncates = st.builds(TruncateTableSpec, _no_partition | _partitions, st.booleans())
drops = st.builds(
    DropPartitionsSpec,
    st.lists(_partitions, min_size=1, max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)


_numbers = st.none() | st.integers(min_value=1)
_durations = st.sampled_from(["7 d", "12h", "30 min", "0 s", "5 ms"])
_ages = st.sampled_from(["7 d", "5 ms"])
_limits = _durations | st.sampled_from(["2026-01-31T00:00:00Z", "2026-01-31 00:00+01:00"])
_tags = st.from_regex(r"[a-z][a-z0-9=._ -]{0,8}", fullmatch=True)
maintenance = st.one_of(
    st.builds(
        ExpireSnapshotsSpec,
        st.none() | st.integers(min_value=9),
        st.none() | st.integers(1, 9),
        st.none() | _limits,
        _numbers,
        st.booleans(),
    ),
    st.builds(RemoveOrphanFilesSpec, _limits),
    st.builds(CreateTagSpec, _tags, _numbers, st.none() | _durations, st.booleans()),
    st.builds(DeleteTagSpec, st.none() | _tags, st.booleans()),
    st.builds(RollbackSpec, st.integers(min_value=1), st.none(), st.booleans()),
    st.builds(RollbackSpec, st.none(), _tags, st.booleans()),
    st.builds(CreateBranchSpec, _tags, _numbers, st.none(), st.none() | _ages, st.none() | _ages),
    st.builds(CreateBranchSpec, _tags, st.none(), _tags, st.none(), _ages, _numbers, st.booleans()),
    st.builds(DeleteBranchSpec, _tags, st.booleans()),
    st.builds(FastForwardSpec, _tags),
    st.builds(SetCurrentSnapshotSpec, st.integers(min_value=1), st.none(), st.booleans()),
    st.builds(SetCurrentSnapshotSpec, st.none(), _tags, st.booleans()),
    st.builds(CherryPickSpec, st.integers(min_value=1), st.none()),
    st.builds(CherryPickSpec, st.none(), _tags),
)


@st.composite
def inserts_into(draw: st.DrawFn, source: str) -> InsertIntoSpec:
    """An INSERT INTO of ``source``."""
    by_name = draw(st.booleans())
    return InsertIntoSpec(
        source,
        draw(_no_partition | _partitions),
        () if by_name else draw(_some_columns),
        by_name,
        draw(_some_columns),
        draw(_some_names),
    )


@st.composite
def overwrites(draw: st.DrawFn, source: str) -> InsertOverwriteSpec:
    """An INSERT OVERWRITE with ``source``."""
    rows = draw(inserts_into(source))
    mode = draw(st.sampled_from(["dynamic", "static", "table"]))
    of_mode = {"dynamic": rows.partition, "static": draw(_partitions), "table": {}}
    return InsertOverwriteSpec(
        source,
        mode,
        of_mode[mode],
        rows.columns,
        rows.by_name,
        rows.order_by,
        draw(st.none() | st.lists(_partitions, min_size=1, max_size=2).map(tuple)),
        mode == "table" and draw(st.booleans()),
        draw(st.booleans()),
        rows.partition_columns,
    )


def queries(source: str) -> st.SearchStrategy[QuerySpec]:
    """A query that is ``source``."""
    outputs = st.none() | st.sampled_from(["/out", "s3://b/out"])
    formats = st.sampled_from(["parquet", "csv"])
    return st.builds(QuerySpec, st.just(source), st.integers(1, 10_000), outputs, formats)


_specs = st.dictionaries(identifiers.map(lambda name: f"`{name}`"), words, min_size=1, max_size=1)
_sizes = st.none() | st.sampled_from(["1 b", "128 mb", "7GB"])
_shares = st.none() | st.floats(0, 1)
_counts = st.none() | st.integers(2, 9)
_orders = st.sampled_from([{}, {"sort_by": ("a", "`b` DESC NULLS FIRST")}, {"zorder_by": ("a",)}])
compactions = st.builds(
    lambda *fields: CompactSpec(*fields[:-1], **fields[-1]),
    st.lists(_specs, max_size=2).map(tuple),
    st.sampled_from(["minor", "full"]),
    _sizes,
    _counts,
    _shares,
    _shares,
    _counts,
    _sizes,
    _counts,
    st.booleans(),
    _orders,
)


@st.composite
def create_tables(draw: st.DrawFn) -> CreateTableSpec:
    """A CREATE TABLE with keys that are columns."""
    found = draw(st.lists(identifiers, min_size=1, max_size=4, unique_by=str.lower))
    keys = st.lists(st.sampled_from(found), unique=True, max_size=2).map(tuple)
    return CreateTableSpec(
        tuple(
            ColumnSpec(name, draw(types), draw(st.booleans()), draw(st.none() | texts))
            for name in found
        ),
        draw(keys),
        draw(keys),
        draw(mappings),
        draw(st.none() | texts),
    )


_quarantining = st.builds(
    FileSource,
    names,
    st.sampled_from(["/landing", "s3://b/in/*", ""]),
    st.sampled_from(["csv", "JSON", "text", "avro"]),
    st.sampled_from([{}, {"mode": "failfast"}]),
    st.none() | texts,
    st.just("quarantine"),
    st.sampled_from(["/bad", "s3://b/bad"]),
    st.none() | st.sampled_from([0.01, 1.0, 500.0]),
)


@st.composite
def requests(draw: st.DrawFn) -> JobRequest:
    """A request of any statement kind with up to three sources of any kind."""
    source_names = draw(st.lists(names, min_size=1, max_size=3, unique_by=str.lower))
    sources = tuple(
        draw(
            st.one_of(
                st.builds(FileSource, st.just(name), texts, _formats, mappings, st.none() | texts),
                _quarantining.map(lambda made, name=name: replace(made, name=name)),
                st.builds(TableSource, st.just(name), table_names),
                st.builds(SqlSource, st.just(name), texts),
            )
        )
        for name in source_names
    )
    source = draw(st.sampled_from(source_names))
    of_source = (merges(source), inserts_into(source), overwrites(source), queries(source))
    statement = draw(
        st.one_of(
            *of_source,
            deletes,
            updates,
            truncates,
            drops,
            create_tables(),
            alterations(columns, identifiers, types, texts, words),
            maintenance,
            compactions,
        )
    )
    operation_id = draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True))
    return JobRequest(
        operation_id,
        None if isinstance(statement, QuerySpec) else draw(table_names),
        draw(catalogs),
        statement,
        sources,
        draw(options),
        draw(origins),
        after_ended_try=draw(st.sampled_from(["fail", "skip", "run"])),
    )


counts = st.integers(min_value=0)
seconds = st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
_read = st.builds(SourceMetrics, *[counts] * 6, st.none() | texts)
metrics = st.builds(Metrics, *[counts] * 16, seconds, st.dictionaries(texts, _read, max_size=2))
errors = st.builds(
    ErrorInfo,
    st.sampled_from([*ErrorCode.__members__, "OF_A_NEWER_JOB"]),
    texts,
    texts,
    st.booleans(),
)
_kept = st.lists(st.builds(Kept, texts, counts, counts), max_size=2).map(tuple)
reports = st.builds(
    MaintenanceReport,
    *[counts] * 7,
    *[st.none() | counts] * 3,
    _kept,
    st.lists(texts, max_size=2).map(tuple),
)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
_found = st.builds(
    QueryReport,
    st.lists(st.builds(QueryColumn, texts, texts), max_size=2).map(tuple),
    counts,
    st.none() | st.lists(st.lists(_values, max_size=2).map(tuple), max_size=2).map(tuple),
    st.booleans(),
    st.none() | texts,
)
_compacted = st.builds(
    CompactedPartition, st.dictionaries(texts, st.none() | texts, max_size=2), *[counts] * 7, texts
)
_compactions = st.builds(
    CompactionReport,
    st.lists(_compacted, max_size=2).map(tuple),
    *[counts] * 11,
    st.lists(counts, max_size=2).map(tuple),
)
_parts = st.builds(AlteredPart, texts, st.none() | texts, st.none() | texts)
_altered = st.builds(AlterTableReport, st.lists(_parts, max_size=2).map(tuple), counts)
results = st.builds(
    JobResult,
    texts,
    st.sampled_from(["committed", "unchanged", "dry_run", "failed"]),
    texts,
    texts,
    metrics,
    st.none() | counts,
    st.none() | counts,
    st.none() | errors,
    mappings,
    counts,
    counts,
    st.lists(texts, max_size=3).map(tuple),
    st.none() | reports,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | _found,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | _compactions,
    alteration=st.none() | _altered,
)
