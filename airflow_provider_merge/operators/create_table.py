"""``CreateTableOperator``: create a table unless it exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_provider_merge.operators.base import TableOperator
from airflow_provider_merge.operators.templates import has_template
from spark_jobs.contract import codec
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import RequestError

_ROOT = "table"


def column(
    name: str,
    type: str,  # noqa: A002  # as the contract calls it
    *,
    nullable: bool = True,
    comment: str | None = None,
) -> dict[str, Any]:
    """A column as a plain dict; ``type`` is a Spark SQL type such as ``DECIMAL(10, 2)``."""
    return {"name": name, "type": type, "nullable": nullable, "comment": comment}


class CreateTableOperator(TableOperator):
    """Creates ``target``, and its database; an equal table that exists is left alone.

    A difference to the existing table is the final error TABLE_DIFFERS, which lists it. No asset
    event is sent: creating a table brings no data.

    :param columns: ``column(…)`` for each column, or the same as dicts
    :param partition_keys: names of the columns that partition the table
    :param primary_key: names of the key columns, where the table format has keys
    :param table_options: options of the table format
    :param comment: the table's comment
    """

    template_fields: Sequence[str] = (
        *TableOperator.template_fields,
        "columns",
        "partition_keys",
        "primary_key",
        "table_options",
        "comment",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **TableOperator.template_fields_renderers,
        "columns": "json",
        "table_options": "json",
    }
    emits_asset_event = False

    def __init__(
        self,
        *,
        columns: Sequence[Mapping[str, Any]],
        partition_keys: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        table_options: Mapping[str, str] | None = None,
        comment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns = columns
        self.partition_keys = partition_keys
        self.primary_key = primary_key
        self.table_options = table_options or {}
        self.comment = comment
        self._check_parameters()

    def statement(self) -> CreateTableSpec:
        """The statement of the rendered parameters."""
        return _spec(self._document())

    def _document(self) -> dict[str, Any]:
        return {
            "kind": CreateTableSpec.kind,
            "columns": _plain(self.columns),
            "partition_keys": _plain(self.partition_keys),
            "primary_key": _plain(self.primary_key),
            "table_options": _plain(self.table_options),
            "comment": self.comment,
        }

    def _check_parameters(self) -> None:
        """Check while the DAG is parsed, unless a template leaves something open."""
        document = self._document()
        if not has_template(document):
            _spec(document)


def _spec(document: dict[str, Any]) -> CreateTableSpec:
    try:
        return codec.decode(CreateTableSpec, document, _ROOT)
    except RequestError as error:
        # "table.columns[0].type: …" → "columns[0].type: …": the parameters carry these names.
        message = error.message.removeprefix(f"{_ROOT}.").removeprefix(f"{_ROOT}: ")
        raise RequestError(error.code, message, error.remedy) from None


def _plain(value: Any) -> Any:
    """Tuples as lists and mappings as dicts, which is what the contract's JSON form has."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
