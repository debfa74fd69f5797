"""Random valid requests and results."""

from __future__ import annotations

from hypothesis import strategies as st

from spark_jobs.contract.request import (
    CatalogSpec,
    FileSource,
    JobOptions,
    JobRequest,
    Origin,
    SqlSource,
    TableName,
    TableSource,
)
from spark_jobs.contract.result import ErrorInfo, JobResult, Metrics
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

# Any text that UTF-8 can hold, and text that is not blank.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = texts.filter(lambda text: bool(text.strip()))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
mappings = st.dictionaries(texts, texts, max_size=3)

table_names = st.builds(TableName, names, names)
catalogs = st.builds(CatalogSpec, words, st.sampled_from(["/w", "s3://b/w", "/Ω x"]), mappings)
origins = st.builds(
    Origin, texts, texts, texts, st.integers(), st.integers(1, 9), st.integers(0, 9)
)
options = st.builds(JobOptions, words, st.integers(min_value=1), st.integers(min_value=0))

_assignments = st.lists(st.builds(Assignment, words, words), min_size=1, max_size=3).map(tuple)
_updates = st.builds(UpdateAction, _assignments)
deletes = st.builds(DeleteSpec, words, st.none() | words)
updates = st.builds(UpdateSpec, words, _assignments, st.none() | words)


@st.composite
def _inserts(draw: st.DrawFn) -> InsertAction:
    values = tuple(draw(st.lists(words, min_size=1, max_size=3)))
    columns = tuple(draw(words) for _ in values) if draw(st.booleans()) else ()
    return InsertAction(values, columns)


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
    target_alias, source_alias = draw(st.lists(words, min_size=2, max_size=2, unique_by=str.lower))
    return MergeSpec(
        source,
        draw(words),
        draw(_cases()),
        target_alias,
        source_alias,
        draw(st.sampled_from(["effective", "strict"])),
        draw(st.booleans()),
    )


@st.composite
def create_tables(draw: st.DrawFn) -> CreateTableSpec:
    """A CREATE TABLE with keys that are columns."""
    columns = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.lower))
    keys = st.lists(st.sampled_from(columns), unique=True, max_size=2).map(tuple)
    return CreateTableSpec(
        tuple(
            ColumnSpec(name, draw(words), draw(st.booleans()), draw(st.none() | texts))
            for name in columns
        ),
        draw(keys),
        draw(keys),
        draw(mappings),
        draw(st.none() | texts),
    )


@st.composite
def requests(draw: st.DrawFn) -> JobRequest:
    """A request of any statement kind with up to three sources of any kind."""
    source_names = draw(st.lists(names, min_size=1, max_size=3, unique_by=str.lower))
    sources = tuple(
        draw(
            st.one_of(
                st.builds(FileSource, st.just(name), texts, texts, mappings, st.none() | texts),
                st.builds(TableSource, st.just(name), table_names),
                st.builds(SqlSource, st.just(name), texts),
            )
        )
        for name in source_names
    )
    merge = merges(draw(st.sampled_from(source_names)))
    statement = draw(st.one_of(merge, deletes, updates, create_tables()))
    operation_id = draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True))
    return JobRequest(
        operation_id,
        draw(table_names),
        draw(catalogs),
        statement,
        sources,
        draw(options),
        draw(origins),
    )


counts = st.integers(min_value=0)
seconds = st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
metrics = st.builds(Metrics, *[counts] * 15, seconds)
errors = st.builds(
    ErrorInfo,
    st.sampled_from([*ErrorCode.__members__, "OF_A_NEWER_JOB"]),
    texts,
    texts,
    st.booleans(),
)
results = st.builds(
    JobResult,
    texts,
    st.sampled_from(["committed", "unchanged", "failed"]),
    texts,
    texts,
    metrics,
    st.none() | counts,
    st.none() | counts,
    st.none() | errors,
    mappings,
    counts,
    counts,
)
