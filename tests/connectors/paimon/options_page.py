"""All options of Paimon's tables, and the page about them.

``python -m tests.connectors.paimon.options_page docs/paimon-options.md`` writes the page.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from spark_jobs.formats.paimon.refused_options import REFUSED, REFUSED_WITH_KEY, Refusal

OPTIONS = tomllib.loads(Path(__file__).with_name("options.toml").read_text())
HONOURED: dict[str, str] = OPTIONS["honoured"]
NO_EFFECT: dict[str, list[str]] = {
    reason: names.split() for reason, names in OPTIONS["no_effect"].items()
}

_HEAD = """\
# Options of Paimon's tables

How this project treats each table option: the options of Paimon 1.4 and 2.0, of pypaimon 2.1, of
Iceberg metadata, and of the connectors for Flink, Spark and Hive. `*` matches any text. An option
that is not on this page counts as a property of your own.

`python -m tests.connectors.paimon.options_page docs/paimon-options.md` generates this page. A test
fails if pypaimon has an option that is not on it.
"""


def kinds_of(option: str) -> list[str]:
    """In which lists an option is: ``honoured``, ``refused``, ``no effect``."""
    lists = {
        "honoured": list(HONOURED),
        "refused": [*REFUSED, *REFUSED_WITH_KEY],
        "no effect": [name for names in NO_EFFECT.values() for name in names],
    }
    return [
        kind
        for kind, patterns in lists.items()
        if any(fnmatchcase(option, pattern) for pattern in patterns)
    ]


def page() -> str:
    """The page as Markdown."""
    lines = [_HEAD, "## Refused\n"]
    lines += ["With `NOT_SUPPORTED` and the name of the option, before any row is read.\n"]
    lines += ["| Option | Accepted values | Other values are refused | Because the table |"]
    lines += ["|---|---|---|---|"]
    lines += sorted(_refused_lines())
    lines += ["\nTables with a primary key are refused, for any use, with these, too:\n"]
    lines += ["| Option | Accepted values |", "|---|---|"]
    lines += sorted(
        f"| `{name}` | {_accepted(values)} |" for name, values in REFUSED_WITH_KEY.items()
    )
    lines += ["\n## Honoured\n", "| Option | For |", "|---|---|"]
    lines += [f"| `{name}` | {purpose} |" for name, purpose in sorted(HONOURED.items())]
    lines += ["\n## Without effect\n", "| Because they concern | Options |", "|---|---|"]
    for reason, names in NO_EFFECT.items():
        lines.append(f"| {reason} | {' '.join(f'`{name}`' for name in sorted(names))} |")
    return "\n".join(lines) + "\n"


def _refused_lines() -> Iterator[str]:
    for name, refusal in REFUSED.items():
        yield f"| `{name}` | {_accepted(refusal.accepted)} | {_uses(refusal)} | {refusal.reason} |"


def _accepted(values: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in values if each) or "unset"


def _uses(refusal: Refusal) -> str:
    if "read" in refusal.uses:
        return "always"
    words = {"write": "as a target", "tag": "for tags and rollback"}
    return " and ".join(words[use] for use in refusal.uses)


def main(path: str) -> None:
    """Write the page."""
    Path(path).write_text(page())


if __name__ == "__main__":
    main(sys.argv[1])
