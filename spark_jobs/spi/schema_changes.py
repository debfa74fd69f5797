"""Changes of a table's schema that a statement asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A column or nested field that is added, or that gets a wider type.

    ``path`` leads from the column to the field; ``element``, ``key`` and ``value`` lead into arrays
    and maps. ``type`` is a Spark SQL type in DDL form, as is ``before``, the type so far; None: the
    column or field is added, nullable, behind the others.
    """

    path: tuple[str, ...]
    type: str
    before: str | None = None

    @property
    def place(self) -> str:
        """The path as people write it."""
        return ".".join(self.path)

    def __str__(self) -> str:
        if self.before is None:
            return f"added {self.place} {_shown(self.type)}"
        return f"widened {self.place} from {_shown(self.before)} to {_shown(self.type)}"


def _shown(ddl: str) -> str:
    """The type with the names of its fields as they are."""
    return ddl if "<" in ddl else ddl.upper()
