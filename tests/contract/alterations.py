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

Texts = st.SearchStrategy[str]


def alterations(
    columns: Texts, identifiers: Texts, types: Texts, texts: Texts, words: Texts
) -> st.SearchStrategy[AlterTableSpec]:
    """Statements of up to three changes, made of such names, types and texts."""
    named = columns.filter(bool)
    keys = st.sampled_from(["day(ts)", "bucket(4, id)", "p", "`a b`"])
    orders = st.sampled_from(["a", "b DESC", "bucket(4, c) ASC NULLS LAST"])
    changes = st.one_of(
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
        st.builds(DropColumn, named, st.booleans()),
        st.builds(RenameColumn, named, identifiers, st.booleans()),
        st.builds(WidenColumn, named, types),
        st.builds(CommentColumn, named, texts),
        st.builds(SetNullable, named, st.booleans()),
        st.builds(MoveColumn, named, st.just(True)),
        st.builds(SetDefault, named, st.none() | words),
        st.builds(CommentTable, texts),
        st.builds(SetProperties, st.dictionaries(words, texts, min_size=1, max_size=2)),
        st.builds(UnsetProperties, st.lists(words, min_size=1, max_size=2).map(tuple)),
        st.builds(AddPartitionField, keys, st.none() | identifiers, st.booleans()),
        st.builds(DropPartitionField, keys, st.booleans()),
        st.builds(ReplacePartitionField, keys, keys, st.none() | identifiers),
        st.builds(
            SetWriteOrder,
            st.lists(orders, max_size=2).map(tuple),
            st.none() | st.sampled_from(["none", "hash", "range"]),
        ),
        st.builds(SetIdentifierFields, st.lists(named, min_size=1, max_size=2).map(tuple)),
        st.builds(
            DropIdentifierFields, st.lists(named, min_size=1, max_size=2).map(tuple), st.booleans()
        ),
    )
    return st.builds(AlterTableSpec, st.lists(changes, min_size=1, max_size=3).map(tuple))
