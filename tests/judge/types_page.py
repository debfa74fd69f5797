"""The page about types, made of the matrix that tests run.

``python -m tests.judge.types_page docs/types.md`` writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.judge.type_matrix import LIMITS, REFUSALS, REMARKS, Cell, Role, refusal
from tests.judge.type_values import KINDS

_HEAD = """\
# Types

Which types columns of Paimon tables may have, by what a column is to a statement and by the format
of the table's data files. Iceberg's: [Types](iceberg.md#types). Each *yes* is tested with NULL,
NaN, -0.0, and the smallest and largest values of the type: Java writes the tables, this project
changes them, and Java, pypaimon and an oracle in Python agree on every value. Each *no* is tested
to fail with an error that names the column or the option, before the table changes.

`python -m tests.judge.types_page docs/types.md` generates this page from what the tests run
(`tests/judge/type_matrix.py`). A test fails if Paimon has a type that is not on it.

## Spark and Paimon

| Spark SQL | Paimon | remarks |
|---|---|---|
| `BOOLEAN` `TINYINT` `SMALLINT` `INT` `BIGINT` `FLOAT` `DOUBLE` `DATE` | the same | |
| `DECIMAL(p, s)` | `DECIMAL(p, s)` | stored as INT32, INT64 or fixed bytes, as Java does |
| `STRING` | `STRING` | |
| `CHAR(n)`, `VARCHAR(n)` | the same | read as `STRING`; the length is kept in the schema. \
[How `CHAR` is compared](semantics.md#char) |
| `BINARY` | `BYTES` | `BINARY(n)`, `VARBINARY(n)` are read as `BINARY` |
| `TIMESTAMP` (an instant) | `TIMESTAMP(6) WITH LOCAL TIME ZONE` | other precisions up to 6 are \
read and written |
| `TIMESTAMP_NTZ` | `TIMESTAMP(6)` | a more precise value is rounded down to the column's \
precision |
| `ARRAY` `MAP` `STRUCT` | `ARRAY` `MAP` `ROW` | NOT NULL inside values is checked when rows are \
written |

## Roles

| | The column |
|---|---|
| ON | is compared with a column of the source by `=` in ON |
| condition | is compared with constants in WHERE or in a clause's condition |
| assigned | gets the value of a source column, by UPDATE and by INSERT |
| carried | is not named; its file is rewritten because of other columns or rows |
| nested | has the type in structs, in arrays, and as keys and values of maps |
| partition | is a partition key: in conditions and ON, in new partitions and moved rows |
| source | belongs to the table that is the source of a MERGE |

`TIMESTAMP_LTZ` stands for `TIMESTAMP WITH LOCAL TIME ZONE`.
"""

_TITLES = {"parquet": "In parquet files", "orc": "In ORC files", "avro": "In Avro files"}
_NOTES = [*REFUSALS, *LIMITS, *REMARKS]


def page() -> str:
    """The page as Markdown."""
    lines = [_HEAD]
    for file_format, title in _TITLES.items():
        lines += [f"## {title}\n", f"| Type | {' | '.join(Role)} | tested as |"]
        lines += ["|---" * (len(Role) + 2) + "|"]
        lines += [*(_line(line, file_format) for line in KINDS), ""]
    lines.append("## Notes\n")
    lines += [f"{number}. {rule.note}" for number, rule in enumerate(_NOTES, 1)]
    return "\n".join(lines) + "\n"


def _line(line: str, file_format: str) -> str:
    words = [_verdict(Cell(line, role, file_format)) for role in Role]
    return f"| {line} | {' | '.join(words)} | {' '.join(_tested_as(line))} |"


def _tested_as(line: str) -> Iterator[str]:
    for kind in KINDS[line]:
        name = kind.paimon if isinstance(kind.paimon, str) else kind.paimon["type"]
        if name != line:
            yield f"`{name.replace(' WITH LOCAL TIME ZONE', '')}`"


def _verdict(cell: Cell) -> str:
    refused = refusal(cell)
    if refused is not None:
        return f"{'n/a' if refused.by_paimon else 'no'} ({_NOTES.index(refused) + 1})"
    numbers = [str(_NOTES.index(rule) + 1) for rule in (*LIMITS, *REMARKS) if rule.applies(cell)]
    return f"yes ({', '.join(numbers)})" if numbers else "yes"


def main(path: str) -> None:
    """Write the page."""
    Path(path).write_text(page())


if __name__ == "__main__":
    main(sys.argv[1])
