"""Random ALTER TABLE statements."""

from __future__ import annotations

from hypothesis import strategies as st

from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    CommentColumn,
    CommentTable,
    DropColumn,
    DropIdentifierFields,
    DropPartitionField,
    MoveColumn,
    RenameColumn,
    ReplacePartitionField,
    SetDefault,
    SetIdentifierFields,
    SetNullable,
    SetProperties,
    SetWriteOrder,
    UnsetProperties,
    WidenColumn,
)
from tests.contract.strategies import columns, identifiers, texts, types, words

_columns = columns.filter(bool)
_keys = st.sampled_from(["day(ts)", "bucket(4, id)", "p", "`a b`"])
_orders_of_rows = st.sampled_from(["a", "b DESC", "bucket(4, c) ASC NULLS LAST"])
_changes = st.one_of(
    st.builds(
        AddColumn,
        identifiers,
        types,
        st.booleans(),
        st.none() | texts,
        st.none(),
        st.booleans(),
        st.none(),
        st.booleans(),
    ),
    st.builds(DropColumn, _columns, st.booleans()),
    st.builds(RenameColumn, _columns, identifiers, st.booleans()),
    st.builds(WidenColumn, _columns, types),
    st.builds(CommentColumn, _columns, texts),
    st.builds(SetNullable, _columns, st.booleans()),
    st.builds(MoveColumn, _columns, st.just(True)),
    st.builds(SetDefault, _columns, st.none() | words),
    st.builds(CommentTable, texts),
    st.builds(SetProperties, st.dictionaries(words, texts, min_size=1, max_size=2)),
    st.builds(UnsetProperties, st.lists(words, min_size=1, max_size=2).map(tuple)),
    st.builds(AddPartitionField, _keys, st.none() | identifiers, st.booleans()),
    st.builds(DropPartitionField, _keys, st.booleans()),
    st.builds(ReplacePartitionField, _keys, _keys, st.none() | identifiers),
    st.builds(
        SetWriteOrder,
        st.lists(_orders_of_rows, max_size=2).map(tuple),
        st.none() | st.sampled_from(["none", "hash", "range"]),
    ),
    st.builds(SetIdentifierFields, st.lists(_columns, min_size=1, max_size=2).map(tuple)),
    st.builds(
        DropIdentifierFields, st.lists(_columns, min_size=1, max_size=2).map(tuple), st.booleans()
    ),
)
alterations = st.builds(AlterTableSpec, st.lists(_changes, min_size=1, max_size=3).map(tuple))
