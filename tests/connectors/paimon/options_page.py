"""All options of Paimon's tables, and the page about them.

``python -m tests.connectors.paimon.options_page docs/paimon-options.md`` writes the page.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from spark_jobs.connectors.paimon.table.refused_options import REFUSED, Refusal

OPTIONS = tomllib.loads(Path(__file__).with_name("options.toml").read_text())
HONOURED: dict[str, str] = OPTIONS["honoured"]
NO_EFFECT: dict[str, list[str]] = {
    reason: names.split() for reason, names in OPTIONS["no_effect"].items()
}

_HEAD = """\
# Options of Paimon's tables

What becomes of each option here: those of Paimon 1.4 and 2.0 and of pypaimon 2.1, of Iceberg's
metadata, and of the connectors of Flink, Spark and Hive. `*` stands for any text. An option that is
not on this page is taken for a property of yours. The page is made by
`python -m tests.connectors.paimon.options_page`; a test fails when pypaimon has an option that is
not on it.
"""


def kinds_of(option: str) -> list[str]:
    """In which lists an option is: ``honoured``, ``refused``, ``no effect``."""
    lists = {
        "honoured": list(HONOURED),
        "refused": list(REFUSED),
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
    lines += ["With `NOT_SUPPORTED`, by name, before any row is read.\n"]
    lines += ["| Option | Accepted | Otherwise refused | Because the table |", "|---|---|---|---|"]
    lines += sorted(_refused_lines())
    lines += ["\n## Honoured\n", "| Option | For |", "|---|---|"]
    lines += [f"| `{name}` | {purpose} |" for name, purpose in sorted(HONOURED.items())]
    lines += ["\n## Without effect\n", "| About | Options |", "|---|---|"]
    for reason, names in NO_EFFECT.items():
        lines.append(f"| {reason} | {' '.join(f'`{name}`' for name in sorted(names))} |")
    return "\n".join(lines) + "\n"


def _refused_lines() -> Iterator[str]:
    for name, refusal in REFUSED.items():
        accepted = ", ".join(f"`{each}`" for each in refusal.accepted if each) or "unset"
        yield f"| `{name}` | {accepted} | {_uses(refusal)} | {refusal.reason} |"


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
