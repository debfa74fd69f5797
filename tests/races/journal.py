"""The journal of a racing process: what it is about to do, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def journal_of(plan: Mapping[str, Any]) -> Iterator[Callable[..., None]]:
    """A function that adds an entry to the file ``plan["journal"]``, for good before it returns."""
    with Path(plan["journal"]).open("a", encoding="utf-8") as journal:

        def note(**entry: Any) -> None:
            journal.write(json.dumps(entry) + "\n")
            journal.flush()

        yield note
