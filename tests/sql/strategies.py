"""Random statements: valid ones with their pieces, mutations of them, and token soup."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

KEYWORDS = (
    *("WHEN", "MATCHED", "NOT", "THEN", "AND", "ON", "USING", "SET", "WHERE", "VALUES", "INSERT"),
    *("UPDATE", "DELETE", "MERGE", "INTO", "FROM", "CASE", "END", "ELSE", "SELECT", "JOIN", "AS"),
    *("BY", "SOURCE", "TARGET", "WITH", "DEFAULT", "BETWEEN", "IS", "DISTINCT", "UNION"),
)
MARKS = ("'", '"', "`", "--", "/*", "*/", "\\", ";", ",", "(", ")", "r'", "\n", "''", "/*+")

_words = st.sampled_from(KEYWORDS)
_noise = st.lists(st.one_of(_words, st.sampled_from(MARKS)), min_size=1, max_size=4).map(" ".join)


def _single_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _double_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _raw(text: str) -> str:
    return "r'" + text.replace("'", "") + "'"


def _backticked(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _block_comment(text: str) -> str:
    return "/* " + text.replace("/*", "").replace("*/", "").replace("*", "") + " */"


def _nested_comment(text: str) -> str:
    return f"/* {_block_comment(text)} ' */"


def _line_comment(text: str) -> str:
    return "-- " + text.replace("\n", " ").replace("\\", "") + "\n"


def _continued_comment(text: str) -> str:
    return "-- x \\\n" + _line_comment(text)[3:]


_strings = st.one_of(
    _noise.map(_single_quoted),
    _noise.map(_double_quoted),
    _noise.map(_raw),
    st.sampled_from(["''", "'it''s WHEN'", '""', 'R"\\"']),
)
_names = st.one_of(
    st.sampled_from(
        ["t.a", "s.b", "c", "t.`when`.x", "t.when", "s.then", "t.end", "s.case", "end"]
    ),
    _noise.map(_backticked).map("t.{}".format),
)
_numbers = st.sampled_from(["1", "2.5", ".5", "1e3", "7L", "2.5BD", "1.", "3S", "9Y"])
_others = st.sampled_from(
    [
        "DATE '2024-01-01'",
        "INTERVAL '1' DAY",
        "NULL",
        "TRUE",
        "current_date()",
        "x'1F'",
        "CAST(NULL AS MAP<STRING, INT>)",
        "exists(s.xs, x -> x = 1)",
        "extract(YEAR FROM t.day)",
        "trim(BOTH 'x' FROM s.b)",
    ]
)
_gaps = st.one_of(
    st.just(" "),
    st.just("\n\t"),
    _noise.map(_block_comment),
    _noise.map(_nested_comment),
    _noise.map(_line_comment),
    _noise.map(_continued_comment),
).map(lambda text: text if text.isspace() else f" {text} ")


@st.composite
def _combined(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    form = draw(
        st.sampled_from(
            [
                "CASE{g}WHEN {a} THEN {b}{g}ELSE {c} END",
                "CASE {a} WHEN {b} THEN {c}{g}WHEN {c} THEN {a} END",
                "CASE WHEN {a} THEN {b} END",
                "({a}{g}= {b})",
                "{a}{g}AND {b}",
                "{a} OR{g}{b}",
                "NOT ({a})",
                "f({a},{g}{b}, {c})",
                "({a}) BETWEEN ({b}){g}AND ({c})",
                "({a}) IN ({b},{g}{c})",
                "({a}) IS{g}NOT DISTINCT FROM ({b})",
                "({a}) IS NOT NULL",
                "({a}) LIKE ({b})",
                "array({a})[{g}0]",
                "({a})",
                "({a}) <=> ({b})",
                "if({a}, {b}, {c})",
            ]
        )
    )
    return form.format(a=draw(inner), b=draw(inner), c=draw(inner), g=draw(_gaps))


expressions: st.SearchStrategy[str] = st.recursive(
    st.one_of(_names, _strings, _numbers, _others), _combined, max_leaves=6
)


@dataclass(frozen=True)
class Pieces:
    """A statement and what it was put together from, in the order of the text."""

    text: str
    expressions: tuple[str, ...]


@st.composite
def _clause(draw: st.DrawFn, kind: str, last: bool) -> tuple[str, list[str]]:
    gap, pieces = draw(_gaps), []
    text = {"m": "WHEN MATCHED", "n": "WHEN NOT MATCHED", "s": "WHEN NOT MATCHED BY SOURCE"}[kind]
    if not last or draw(st.booleans()):
        pieces.append(draw(expressions))
        text += f" AND{gap}{pieces[-1]}"
    text += f"{draw(_gaps)}THEN "
    form = draw(st.sampled_from(["DELETE", "UPDATE SET *", "UPDATE"]))
    if kind == "n":
        values = draw(st.lists(expressions, min_size=1, max_size=3))
        columns = ", ".join(f"c{index}" for index in range(len(values)))
        text += f"INSERT ({columns}){gap}VALUES ({', '.join(values)})"
        return text, pieces + values
    if form == "DELETE" or (form == "UPDATE SET *" and kind == "m"):
        return text + form, pieces
    values = draw(st.lists(expressions, min_size=1, max_size=3))
    assignments = [f"c{index} ={draw(_gaps)}{value}" for index, value in enumerate(values)]
    return f"{text}UPDATE{gap}SET {', '.join(assignments)}", pieces + values


@st.composite
def merges(draw: st.DrawFn) -> Pieces:
    """MERGE statements in the order of clauses that Spark's grammar asks for."""
    on = draw(expressions)
    parts, pieces = [f"MERGE INTO d.t AS t USING d.s AS s ON {on}"], [on]
    for kind in ("m", "n", "s"):
        count = draw(st.integers(min_value=1 if kind == "m" else 0, max_value=2))
        for number in range(count):
            text, found = draw(_clause(kind, number == count - 1))
            parts.append(text)
            pieces += found
    text = parts[0]
    for part in parts[1:]:
        text += draw(_gaps) + part
    return Pieces(text + draw(st.sampled_from(["", ";", " -- end", " /* end */ ;"])), tuple(pieces))


@st.composite
def updates(draw: st.DrawFn) -> Pieces:
    """UPDATE statements."""
    values = draw(st.lists(expressions, min_size=1, max_size=3))
    assignments = ", ".join(f"t.c{index} = {value}" for index, value in enumerate(values))
    text = f"UPDATE d.t SET {assignments}"
    if draw(st.booleans()):
        values.append(draw(expressions))
        text += f"{draw(_gaps)}WHERE{draw(_gaps)}{values[-1]}"
    return Pieces(text, tuple(values))


@st.composite
def deletes(draw: st.DrawFn) -> Pieces:
    """DELETE statements."""
    where = draw(expressions)
    # Without the alias Spark takes the WHERE of WHERE (c) for one.
    return Pieces(f"DELETE FROM{draw(_gaps)}d.t t WHERE{draw(_gaps)}{where}", (where,))


statements: st.SearchStrategy[Pieces] = st.one_of(merges(), updates(), deletes())


@st.composite
def cut_expressions(draw: st.DrawFn) -> str:
    """Expressions that end anywhere, perhaps in a word or a mark of SQL."""
    text = draw(expressions)
    text = text[: draw(st.integers(min_value=1, max_value=len(text)))]
    ends = st.sampled_from([*KEYWORDS, "AND", "OR", "NOT", "IN", "LIKE", "DIV", "INTERVAL", "t."])
    marks = st.sampled_from([*MARKS, "=", "<>", ">", "<", "*", "-", ".", "::ARRAY<INT>", "[", "|"])
    for end in draw(st.lists(st.one_of(ends, marks, _names), max_size=3)):
        text += " " * draw(st.integers(min_value=0, max_value=1)) + end
    return text


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Statements with a few pieces cut out, doubled or replaced."""
    text = draw(statements).text
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        start = draw(st.integers(min_value=0, max_value=len(text)))
        end = min(len(text), start + draw(st.integers(min_value=0, max_value=12)))
        put = draw(st.one_of(st.just(""), _noise, st.just(text[start:end] * 2)))
        text = text[:start] + put + text[end:]
    return text


soup: st.SearchStrategy[str] = st.lists(
    st.one_of(_words, st.sampled_from(MARKS), _names, _numbers, st.sampled_from(["d.t", ".", "="])),
    max_size=40,
).map(" ".join)


_tables = st.sampled_from(
    [
        *("d.a", "d.b", "d.a AS x", "d.`b`", "`d` . a y", "src", "d.b TABLESAMPLE (5 ROWS)"),
        *(
            "range(3)",
            "VALUES (1, 2), (3, 4) AS v(p, q)",
            "(VALUES (1), (2)) AS w",
            "d.when",
            "d.a",
        ),
    ]
)
_FROM = (
    "{r}, {t}",
    "{r} JOIN {t} ON {e} = {e}",
    "{r} LEFT JOIN {t} USING (id)",
    "({q}) AS n",
    "({r} CROSS JOIN {t})",
    "{r}, LATERAL ({q})",
    "{r} LATERAL VIEW explode(xs) e AS k, v",
    "{r} NATURAL JOIN ({q}) m, {t}",
)
_QUERY = (
    "SELECT * FROM {r}",
    "SELECT {e}, {e} AS from_d FROM {r} WHERE {e} AND c IN ({q})",
    "SELECT {e}, ({q}) AS sub FROM {r} GROUP BY ALL HAVING {e} ORDER BY {e}, {e} LIMIT 3",
    "SELECT DISTINCT {e} FROM {r} WHERE EXISTS ({q}) OR a IS DISTINCT FROM {e}",
    "({q}) UNION ALL ({q})",
    "({q}) EXCEPT SELECT {e} FROM {r}",
    "WITH c1 AS ({q}), d (SELECT * FROM c1, {t}) SELECT * FROM c1 JOIN d JOIN {r}",
    "TABLE d.a",
    "FROM {r} SELECT {e}",
    "SELECT trim(BOTH 'x' FROM ({q})), count({e}) FROM {r}",
    "SELECT CASE WHEN {e} THEN ({q}) END FROM {r} WINDOW w AS (PARTITION BY {e}, {e})",
)


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> str:
    """Queries over the tables d.a, d.b and d.when and the source src."""
    form = draw(st.sampled_from(_QUERY if depth else _QUERY[:1]))
    return _filled(draw, form, depth)


def _filled(draw: st.DrawFn, form: str, depth: int) -> str:
    """``form`` with a FROM for r, tables for t, queries for q and expressions for e."""
    text = ""
    for part in form.split("{"):
        kind, brace, rest = part.partition("}")
        if not brace:
            text += part
        elif kind == "r":
            inner = draw(st.sampled_from(_FROM)) if depth else "{t}"
            text += (
                draw(_tables) + rest if inner == "{r}" else _filled(draw, inner, depth - 1) + rest
            )
        elif kind == "q":
            text += draw(queries(max(depth - 1, 0))) + draw(_gaps) + rest
        else:
            text += draw(_tables if kind == "t" else expressions) + draw(_gaps) + rest
    return text
