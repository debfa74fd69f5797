"""What a statement can read, as metadata tells it: tables, files with a schema, and queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_merge.checks.expressions import Name
from spark_jobs.contract.checks import no_column
from spark_jobs.errors import AnalysisError, ErrorCode


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a source: what expressions call it, what people call it, and its columns.

    ``columns`` has name → type, in their order, with an empty type where it is not known; None: the
    columns are known only when the rows are read.
    """

    alias: str
    label: str
    columns: Mapping[str, str] | None

    def find(self, name: str) -> list[str]:
        """The columns of a name, whatever its case; several in a source of files at most."""
        return [each for each in self.columns or () if each.lower() == name.lower()]

    def known_as(self, alias: str) -> Relation:
        """The same, called otherwise in expressions."""
        return Relation(alias, self.label, self.columns)

    def not_found(self, name: str, place: str, *others: Relation) -> AnalysisError:
        """COLUMN_NOT_FOUND, for a name that is none of the columns, nor of those of ``others``."""
        return _not_found(name, name.rpartition(".")[2], place, [self, *others])


def column_of(
    name: Name, relations: Sequence[Relation], place: str, *, unique: bool = True
) -> tuple[Relation, str] | None:
    """The relation and the column that a name in an expression means, as Spark resolves it.

    None: it cannot be told from metadata. ``place`` names the expression in errors. ``unique``: a
    name without an alias must be a column of one relation only.

    Raises:
        AnalysisError: COLUMN_NOT_FOUND, AMBIGUOUS_REFERENCE.
    """
    known = all(each.columns is not None for each in relations)
    if len(name) > 1:
        for relation in relations:
            if relation.alias.lower() == name[0].lower() and relation.columns is not None:
                if found := relation.find(name[1]):
                    return (relation, found[0]) if len(name) == 2 else None
                if known and not any(each.find(name[0]) for each in relations):
                    raise _not_found(".".join(name), name[1], place, [relation])
        if any(each.alias.lower() == name[0].lower() for each in relations):
            return None
    holders = [each for each in relations if each.find(name[0])]
    if len(holders) > 1 and unique:
        raise _ambiguous(".".join(name), place, holders)
    if not holders and known:
        raise _not_found(".".join(name), name[0], place, relations, may_be_text=True)
    if len(holders) != 1 or len(name) > 1:
        return None
    return holders[0], holders[0].find(name[0])[0]


def _not_found(
    name: str, part: str, place: str, relations: Iterable[Relation], *, may_be_text: bool = False
) -> AnalysisError:
    sides = [(each.label, each.columns or ()) for each in relations]
    problem, remedy = no_column(name, part, sides, may_be_text=may_be_text)
    return AnalysisError(ErrorCode.COLUMN_NOT_FOUND, problem, remedy, (place,), name)


def _ambiguous(name: str, place: str, holders: Sequence[Relation]) -> AnalysisError:
    labels = " and ".join(each.label for each in holders)
    aliases = " or ".join(f"{each.alias}.{name}" for each in holders)
    return AnalysisError(
        ErrorCode.AMBIGUOUS_REFERENCE,
        f"{place}: {name} is a column of {labels}",
        f"Write {aliases}.",
    )
