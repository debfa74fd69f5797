"""ALTER TABLE as Spark and the extensions of table formats write it, and COMMENT ON TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from airflow_provider_merge.sql.definitions import DefinitionReader
from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.settings import read_settings
from airflow_provider_merge.sql.text import Span, SqlText
from airflow_provider_merge.sql.views import Views
from spark_jobs.contract.alter_table import (
    AddColumn,
    AddPartitionField,
    AlterTableSpec,
    CommentColumn,
    CommentTable,
    Distribution,
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
    TableChange,
    UnsetProperties,
    WidenColumn,
)
from spark_jobs.contract.request import TableName

# What other engines write behind ALTER TABLE, and what to do here.
_INSTEAD: Final = {
    "ADD PARTITION": "Partitions come into being with their rows.",
    "DROP PARTITION": "Use DropPartitionsOperator.",
    "ADD CONSTRAINT": "Tables of these formats have none.",
    "DROP CONSTRAINT": "Tables of these formats have none.",
    "RENAME TO": "Create a table of the other name, and insert the rows there.",
    "SET LOCATION": "The catalog says where its tables lie.",
    "REPLACE COLUMNS": "Write ADD, DROP and ALTER COLUMN for each.",
    "CREATE BRANCH": "Use CreateBranchOperator.",
    "REPLACE BRANCH": "Use DeleteBranchOperator, then CreateBranchOperator.",
    "DROP BRANCH": "Use DeleteBranchOperator.",
    "CREATE TAG": "Use CreateTagOperator.",
    "REPLACE TAG": "Use DeleteTagOperator, then CreateTagOperator.",
    "DROP TAG": "Use DeleteTagOperator.",
}


def parse_alter_table(sql: str, database: str | None = None) -> tuple[TableName, AlterTableSpec]:
    """The table that ``sql`` names, and what it changes; ``database`` as in ``parse_statement``.

    Raises:
        RequestError: SYNTAX_ERROR or REQUEST_INVALID, with line and column.
        NotSupportedError: a part that is understood but not built.
    """
    text = SqlText(sql)
    found = _Reader(text, Views(text, (), database)).read()
    text.refuse_hints()
    return found


class _Reader(DefinitionReader):
    def __init__(self, sql: SqlText, views: Views) -> None:
        super().__init__(sql)
        self.views = views

    def read(self) -> tuple[TableName, AlterTableSpec]:
        cursor = self.cursor
        read_settings(cursor)
        start = cursor.token.start
        if cursor.accept("COMMENT", "ON", "TABLE"):
            target = self.views.table(cursor.name("the name of the table"))
            cursor.expect("IS")
            comment = "" if cursor.accept("NULL") else self.string()
            changes: list[TableChange] = [CommentTable(comment)]
        else:
            cursor.expect("ALTER", "TABLE")
            target = self.views.table(cursor.name("the name of the table"))
            changes = list(self._changes())
        cursor.expect_end()
        with self.at(start):
            return target, AlterTableSpec(tuple(changes))

    def _changes(self) -> Iterator[TableChange]:
        acts: dict[tuple[str, ...], Callable[[], Iterator[TableChange]]] = {
            ("ADD", "COLUMN"): self._add_columns,
            ("ADD", "COLUMNS"): self._add_columns,
            ("DROP", "COLUMN"): self._drop_columns,
            ("DROP", "COLUMNS"): self._drop_columns,
            ("RENAME", "COLUMN"): self._rename_column,
            ("ALTER", "COLUMN"): self._alter_columns,
            ("CHANGE", "COLUMN"): self._alter_columns,
            ("ALTER",): self._alter_columns,
            ("SET", "TBLPROPERTIES"): self._set_properties,
            ("UNSET", "TBLPROPERTIES"): self._unset_properties,
            ("ADD", "PARTITION", "FIELD"): self._add_partition_field,
            ("DROP", "PARTITION", "FIELD"): self._drop_partition_field,
            ("REPLACE", "PARTITION", "FIELD"): self._replace_partition_field,
            ("SET", "IDENTIFIER", "FIELDS"): self._set_identifiers,
            ("DROP", "IDENTIFIER", "FIELDS"): self._drop_identifiers,
            ("WRITE",): self._write_order,
        }
        for words, act in acts.items():
            if self.cursor.accept(*words):
                yield from act()
                return
        raise self._unknown()

    def _unknown(self) -> Exception:
        cursor = self.cursor
        first, second = (each.text.upper() for each in self._two())
        for words, remedy in _INSTEAD.items():
            if words == f"{first} {second}":
                text = f"ALTER TABLE ... {words} is not supported"
                return self.sql.unsupported(cursor.token.start, text, remedy)
        return cursor.unexpected(
            "ADD COLUMN, DROP COLUMN, RENAME COLUMN, ALTER COLUMN, SET TBLPROPERTIES or another "
            "change of a table"
        )

    def _two(self) -> list[Token]:
        index, tokens = self.cursor.index, self.sql.tokens
        return [tokens[min(i, len(tokens) - 1)] for i in (index, index + 1)]

    @property
    def _end(self) -> int:
        """The index behind the last token of the statement."""
        tokens = self.sql.tokens
        places = range(self.cursor.index, len(tokens))
        return next(i for i in places if tokens[i].kind == "end" or tokens[i].is_symbol(";"))

    def _path(self) -> str:
        return ".".join(part.text for part in self.cursor.name("the name of a column"))

    def _list(self, item: Callable[[int], TableChange]) -> Iterator[TableChange]:
        """Items with commas between them, perhaps in parentheses; ``item`` gets their end."""
        cursor = self.cursor
        closing = self.sql.closing.get(cursor.index)
        cursor.accept_symbol("(")
        while True:
            yield item(self._end if closing is None else closing)
            if not cursor.accept_symbol(","):
                break
        if closing is not None:
            cursor.expect_symbol(")")

    def _add_columns(self) -> Iterator[TableChange]:
        if_not_exists = self.cursor.accept("IF", "NOT", "EXISTS")
        yield from self._list(lambda end: self._new_column(end, if_not_exists))

    def _new_column(self, end: int, if_not_exists: bool) -> TableChange:
        cursor, place = self.cursor, self.cursor.token.start
        column = self._path()
        cursor.accept_symbol(":")
        kind = self.type(end)
        nullable, first = True, False
        comment = default = after = None
        while not (cursor.index == end or cursor.at_symbol(",")):
            if cursor.accept("NOT", "NULL"):
                nullable = False
            elif cursor.accept("COMMENT"):
                comment = self.string()
            elif cursor.accept("DEFAULT"):
                default = self.default(end)
            elif cursor.accept("FIRST"):
                first = True
            elif cursor.accept("AFTER"):
                after = self._path()
            elif not cursor.accept("NULL"):
                raise cursor.unexpected("NOT NULL, DEFAULT, COMMENT, FIRST, AFTER or a comma")
        with self.at(place):
            return AddColumn(column, kind, nullable, comment, default, first, after, if_not_exists)

    def _drop_columns(self) -> Iterator[TableChange]:
        if_exists = self.cursor.accept("IF", "EXISTS")
        yield from self._list(lambda _: self._dropped(if_exists))

    def _dropped(self, if_exists: bool) -> TableChange:
        place = self.cursor.token.start
        with self.at(place):
            return DropColumn(self._path(), if_exists)

    def _rename_column(self) -> Iterator[TableChange]:
        if_exists = self.cursor.accept("IF", "EXISTS")
        place, column = self.cursor.token.start, self._path()
        self.cursor.expect("TO")
        with self.at(place):
            yield RenameColumn(column, self.name(), if_exists)

    def _alter_columns(self) -> Iterator[TableChange]:
        while True:
            yield from self._alter_column()
            if not self.cursor.accept_symbol(","):
                return

    def _alter_column(self) -> Iterator[TableChange]:
        cursor, place = self.cursor, self.cursor.token.start
        column = self._path()
        with self.at(place):
            if cursor.accept("TYPE") or cursor.accept("SET", "DATA", "TYPE"):
                yield WidenColumn(column, self.type(self._end))
            elif cursor.accept("COMMENT"):
                yield CommentColumn(column, self.string())
            elif cursor.accept("SET", "NOT", "NULL"):
                yield SetNullable(column, False)
            elif cursor.accept("DROP", "NOT", "NULL"):
                yield SetNullable(column, True)
            elif cursor.accept("SET", "DEFAULT"):
                yield SetDefault(column, self.default(self._end))
            elif cursor.accept("DROP", "DEFAULT"):
                yield SetDefault(column, None)
            elif cursor.accept("FIRST"):
                yield MoveColumn(column, first=True)
            elif cursor.accept("AFTER"):
                yield MoveColumn(column, after=self._path())
            else:
                raise cursor.unexpected(
                    "TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, FIRST "
                    "or AFTER"
                )

    def _set_properties(self) -> Iterator[TableChange]:
        with self.at(self.cursor.token.start):
            yield SetProperties(self.properties())

    def _unset_properties(self) -> Iterator[TableChange]:
        cursor = self.cursor
        cursor.accept("IF", "EXISTS")
        cursor.expect_symbol("(")
        keys = [self.key()]
        while cursor.accept_symbol(","):
            keys.append(self.key())
        cursor.expect_symbol(")")
        yield UnsetProperties(tuple(keys))

    def _transform(self) -> str:
        """A column, or a transform of one, as it was written."""
        cursor, first = self.cursor, self.cursor.index
        cursor.name("a column or a transform of one")
        if cursor.at_symbol("("):
            cursor.group()
        return self.sql.slice(Span(first, cursor.index))

    def _alias(self) -> str | None:
        return self.name() if self.cursor.accept("AS") else None

    def _add_partition_field(self) -> Iterator[TableChange]:
        if_not_exists = self.cursor.accept("IF", "NOT", "EXISTS")
        with self.at(self.cursor.token.start):
            yield AddPartitionField(self._transform(), self._alias(), if_not_exists)

    def _drop_partition_field(self) -> Iterator[TableChange]:
        if_exists = self.cursor.accept("IF", "EXISTS")
        with self.at(self.cursor.token.start):
            yield DropPartitionField(self._transform(), if_exists)

    def _replace_partition_field(self) -> Iterator[TableChange]:
        with self.at(self.cursor.token.start):
            field = self._transform()
            self.cursor.expect("WITH")
            yield ReplacePartitionField(field, self._transform(), self._alias())

    def _columns(self) -> tuple[str, ...]:
        columns = [self._path()]
        while self.cursor.accept_symbol(","):
            columns.append(self._path())
        return tuple(columns)

    def _set_identifiers(self) -> Iterator[TableChange]:
        with self.at(self.cursor.token.start):
            yield SetIdentifierFields(self._columns())

    def _drop_identifiers(self) -> Iterator[TableChange]:
        if_exists = self.cursor.accept("IF", "EXISTS")
        with self.at(self.cursor.token.start):
            yield DropIdentifierFields(self._columns(), if_exists)

    def _write_order(self) -> Iterator[TableChange]:
        """With what Spark's extensions make of it: ``SetWriteDistributionAndOrdering``."""
        cursor, place = self.cursor, self.cursor.token.start
        distribution: Distribution | None = None
        order: tuple[str, ...] = ()
        if cursor.accept("DISTRIBUTED", "BY", "PARTITION"):
            distribution = "hash"
            cursor.accept("LOCALLY")
            if cursor.accept("ORDERED", "BY"):
                order = self._order()
        elif cursor.accept("UNORDERED"):
            distribution = "none"
        elif cursor.accept("LOCALLY"):
            cursor.expect("ORDERED", "BY")
            order = self._order()
        elif cursor.accept("ORDERED", "BY"):
            distribution, order = "range", self._order()
        else:
            raise cursor.unexpected("ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
        with self.at(place):
            yield SetWriteOrder(order, distribution)

    def _order(self) -> tuple[str, ...]:
        cursor = self.cursor
        closing = self.sql.closing.get(cursor.index)
        cursor.accept_symbol("(")
        sort_fields = []
        while True:
            first = cursor.index
            self._transform()
            if not cursor.accept("ASC"):
                cursor.accept("DESC")
            if cursor.accept("NULLS") and not cursor.accept("FIRST"):
                cursor.expect("LAST")
            sort_fields.append(self.sql.slice(Span(first, cursor.index)))
            if not cursor.accept_symbol(","):
                break
        if closing is not None:
            cursor.expect_symbol(")")
        return tuple(sort_fields)
