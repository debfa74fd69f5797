"""Text of Spark's SQL as sqlglot's trees. What it does not understand is left to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

DIALECT: Final = "spark"

# One of sqlglot's expressions, which are untyped.
Tree: TypeAlias = Any


def tree_of(text: str) -> Tree | None:
    """A statement as a tree; None where sqlglot does not understand it."""
    from sqlglot import parse_one

    try:
        return parse_one(text, dialect=DIALECT)
    except Exception:  # noqa: BLE001 - sqlglot's defects raise all kinds
        return None


def scopes_of(tree: Tree) -> Sequence[Any]:
    """The scopes of a query and of those within it; none where sqlglot cannot tell them."""
    from sqlglot.optimizer.scope import traverse_scope

    try:
        return traverse_scope(tree)
    except Exception:  # noqa: BLE001 - as above
        return ()
