"""Names: bare, in any case, quoted, unicode, and texts that look like names."""

from __future__ import annotations

from spark_jobs.errors import ErrorCode
from tests.conformance.behaviour import (
    Behaviour,
    by_source,
    delete,
    fails,
    insert,
    insert_all,
    insert_positional,
    matched,
    not_matched,
    update,
    update_all,
)
from tests.conformance.behaviours.clauses import new
from tests.conformance.tables import NAMES

_ODD = "id, `a b`, `a.b`, `größe`, `select`, s, `Mixed`, p"
_ODD_ROW = {
    "id": 1,
    "a b": "1",
    "a.b": "2",
    "größe": "3",
    "select": "4",
    "s": "5",
    "Mixed": "6",
    "p": "x",
}

BEHAVIOURS = [
    Behaviour(
        "a bare name in a BY SOURCE clause is the target's, though the source has it too",
        "VALUES (101, 'v102', 9) AS s(id, v, n)",
        (by_source(update(n="n + id", v="concat(v, '!')"), "v = 'v102' AND n < 9"),),
        updated={102: {"v": "v102!", "n": 104}},
        source_rows=1,
    ),
    Behaviour(
        "a bare name in a NOT MATCHED clause is the source's, though the target has it too",
        "VALUES (1, 'x', 'a'), (2, 'y', 'b') AS s(id, v, p)",
        (not_matched(insert_positional("id", "NULL", "v", "id + 1", "'r'", "p"), "v = 'x'"),),
        inserted=(new(1, v="x", n=2, p="a"),),
        source_rows=2,
    ),
    Behaviour(
        "names and aliases in any case",
        "VALUES (101, 'x'), (1, 'y') AS s(iD, V)",
        (
            matched(update({"V": "S.v", "T.N": "T.n + 1"}), "upper(T.REQ) = 'R'"),
            not_matched(insert({"ID": "ID", "V": "v", "Req": "'r'"})),
            by_source(delete(), "ID = 102 AND T.P = 'a'"),
        ),
        on="T.ID = S.Id",
        updated={101: {"v": "x", "n": 2}},
        deleted=frozenset({102}),
        inserted=(new(1, v="y"),),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "texts, comments and quotes that look like names",
        "VALUES (101, 't.v'), (1, 's.v') AS s(id, v)",
        (
            matched(update(v="concat(s.v, ' v /* t.v */') -- v"), "/* v */ s.v = 't.v'"),
            not_matched(insert(id="id", v="concat('v', v) /* v */", req='"r"'), "v = 's.v' -- v"),
            by_source(update(v="'v'"), "/* v = s.v */ `v` = 'v102' AND 'v' <> 'x\\'v'"),
        ),
        updated={101: {"v": "t.v v /* t.v */"}, 102: {"v": "v"}},
        inserted=(new(1, v="vs.v"),),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "the variable of a lambda is no column",
        "VALUES (101, 'x', 5) AS s(id, v, n)",
        (
            by_source(
                update(n="aggregate(array(n, 1), 0, (n, v) -> n + v)"),
                "exists(array(v), v -> v = 'v102') AND n = 2",
            ),
        ),
        updated={102: {"n": 3}},
        source_rows=1,
    ),
    Behaviour(
        "columns with blanks, dots, umlauts and keywords in their names are assigned",
        f"VALUES (10, '1', '2', '3', '4', '5', '6', 'x') AS s({_ODD})",
        (
            matched(
                update(
                    {
                        "`a b`": "s.`a b`",
                        "`a.b`": "s.`a.b` || t.`a.b`",
                        "größe": "s.`größe`",
                        "t.`select`": "s.`select`",
                        "mixed": "s.mixed",
                        "s": "s.s",
                    }
                )
            ),
        ),
        table=NAMES,
        updated={
            10: {
                "a b": "1",
                "a.b": "2a.b 10",
                "größe": "3",
                "select": "4",
                "Mixed": "6",
                "s": "5",
            }
        },
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "all columns with odd names by *",
        f"VALUES (10, '1', '2', '3', '4', '5', '6', 'x'), (1, '1', '2', '3', '4', '5', '6', 'x')"
        f" AS s({_ODD})",
        (matched(update_all()), not_matched(insert_all())),
        table=NAMES,
        updated={10: {**_ODD_ROW, "id": 10}},
        inserted=(_ODD_ROW,),
        source_rows=2,
        matched=1,
    ),
    Behaviour(
        "odd names in clauses that see one side",
        f"VALUES (1, 'b', 'd', 'ü', 'k', 's', 'M', 'x') AS s({_ODD})",
        (
            by_source(update({"`a b`": "`a.b` || `größe`"}), "`a b` = 'a b 11'"),
            by_source(delete(), "s = 's 12' AND MIXED = 'Mixed 12'"),
            not_matched(
                insert({"id": "id", "`a.b`": "`a b`", "p": "p"}), "s = 's' AND `select` = 'k'"
            ),
        ),
        table=NAMES,
        updated={11: {"a b": "a.b 11größe 11"}},
        deleted=frozenset({12}),
        inserted=({**dict.fromkeys(_ODD_ROW), "id": 1, "a.b": "b", "p": "x"},),
        source_rows=1,
    ),
    Behaviour(
        "source columns of one name that nothing uses do no harm",
        "(SELECT 101 AS id, 1 AS x, 2 AS x, NULL AS void) AS s",
        (matched(update(v="'x'")),),
        updated={101: {"v": "x"}},
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "a source column of the type void can be used",
        "(SELECT 101 AS id, NULL AS nothing) AS s",
        (matched(update(v="s.nothing")),),
        updated={101: {"v": None}},
        source_rows=1,
        matched=1,
    ),
    Behaviour(
        "a source of which no column is used",
        "VALUES (1), (2) AS s(x)",
        (by_source(delete(), "t.id = 101"), not_matched(insert(id="1", req="'r'"))),
        on="false",
        deleted=frozenset({101}),
        inserted=(new(1), new(1)),
        source_rows=2,
    ),
    Behaviour(
        "a bare name that both sides have is ambiguous in MATCHED",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update(v="v")),),
        fails=fails(ErrorCode.AMBIGUOUS_REFERENCE, "value of v in clause 1", "'v'"),
        smoke=True,
    ),
    Behaviour(
        "a bare name that both sides have is ambiguous in ON",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(delete()),),
        on="t.id = id",
        fails=fails(ErrorCode.AMBIGUOUS_REFERENCE, "ON", "id"),
    ),
    Behaviour(
        "an ambiguous source column is an error where it is used",
        "(SELECT 101 AS id, 'a' AS v, 'b' AS V) AS s",
        (matched(update(v="s.v")),),
        fails=fails(ErrorCode.AMBIGUOUS_REFERENCE, "value of v in clause 1"),
    ),
    Behaviour(
        "an ambiguous source column is an error where * takes it",
        "(SELECT id, 1 AS k, 'a' AS v, 'b' AS V, 1 AS n, 'r' AS req, 'a' AS p"
        " FROM VALUES (101) AS r(id)) AS s",
        (matched(update_all()),),
        fails=fails(ErrorCode.AMBIGUOUS_REFERENCE, "clause 1", "v"),
    ),
    Behaviour(
        "an alias that does not exist",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update(v="x.v")),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "value of v in clause 1", "x.v"),
    ),
    Behaviour(
        "NOT MATCHED does not see the target",
        "VALUES (101, 'x') AS s(id, v)",
        (not_matched(insert(id="s.id", req="t.req")),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "value of req in clause 1", "t.req"),
    ),
    Behaviour(
        "BY SOURCE does not see the source",
        "VALUES (101, 'x') AS s(id, v)",
        (by_source(delete(), "s.v = 'x'"),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "condition of clause 1", "s.v"),
    ),
    Behaviour(
        "a source column that does not exist",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(delete(), "t.n = 1"), matched(update(n="s.number"))),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "value of n in clause 2", "s.number"),
        smoke=True,
    ),
    Behaviour(
        "* with a column that the source does not have",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update_all()),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "clause 1", "k", "id, v"),
        smoke=True,
    ),
    Behaviour(
        "a target column that does not exist",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update(wrong="s.v")),),
        fails=fails(ErrorCode.COLUMN_NOT_FOUND, "clause 1", "wrong", "db.target"),
    ),
    Behaviour(
        "a column that is assigned twice",
        "VALUES (101, 'x') AS s(id, v)",
        (matched(update({"v": "s.v", "t.V": "'y'"})),),
        fails=fails(ErrorCode.DUPLICATE_ASSIGNMENT, "clause 1", "v"),
    ),
    Behaviour(
        "a column that is inserted twice",
        "VALUES (1, 'x') AS s(id, v)",
        (not_matched(insert({"id": "s.id", "req": "'r'", "ID": "2"})),),
        fails=fails(ErrorCode.DUPLICATE_ASSIGNMENT, "clause 1", "id"),
    ),
    Behaviour(
        "positional INSERT with too few values",
        "VALUES (1, 'x') AS s(id, v)",
        (not_matched(insert_positional("s.id", "s.v")),),
        fails=fails(ErrorCode.EXPRESSION_INVALID, "clause 1", "2 values for 6 columns"),
    ),
]
