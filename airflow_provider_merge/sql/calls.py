"""CALL of the formats' own procedures, as the operations that do the same here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from airflow_provider_merge.sql import iceberg_procedures, paimon_procedures
from airflow_provider_merge.sql.call_arguments import Argument, Call, read_call
from airflow_provider_merge.sql.procedures import Parameters, Procedure
from airflow_provider_merge.sql.text import SqlText
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote, unquoted
from spark_jobs.contract.table_name import BRANCH_MARK, MAIN_BRANCH
from spark_jobs.errors import RequestError

# By the name of the schema that procedures are in.
_FORMATS: Final = {"system": "iceberg", "sys": "paimon"}
_PROCEDURES: Final[Mapping[str, Mapping[str, Procedure]]] = {
    "system": iceberg_procedures.PROCEDURES,
    "sys": paimon_procedures.PROCEDURES,
}


@dataclass(frozen=True, slots=True)
class ReadCall:
    """The operation and the parameters of a CALL; ``format``: of the catalog that it is for.

    ``catalog``: its name in the text, if it has one.
    """

    operation: str
    parameters: Parameters
    format: str
    catalog: str


def read_procedure(sql: SqlText, database: str | None, time_zone: str) -> ReadCall:
    """What a whole CALL asks for; ``database`` is that of a table that is named without one.

    Raises:
        RequestError: SYNTAX_ERROR; REQUEST_INVALID: an unknown argument, or a wrong value.
        NotSupportedError: a procedure or an argument that has no equal here.
    """
    call = read_call(sql, time_zone)
    kind = call.name[-2].lower() if len(call.name) in (2, 3) else ""
    known = _PROCEDURES.get(kind, {})
    procedure = known.get(call.name[-1].lower())
    if procedure is None:
        start = sql.tokens[1].start
        others = ", ".join(known) or "those in system and in sys"
        problem = f"the procedure {'.'.join(call.name)} is not supported"
        raise sql.unsupported(start, problem, f"Supported: {others}.")
    names = ("table", *procedure.takes)
    ordered = len(names) if procedure.ordered is None else procedure.ordered
    arguments = call.by_name(names, ordered)
    if "table" not in arguments:
        raise sql.error(sql.tokens[0].start, "the argument table is missing")
    for name, reason in procedure.needs.items():
        if name not in arguments:
            problem = f"{call.name[-1]} without {name} is not supported"
            raise sql.unsupported(sql.tokens[0].start, problem, reason)
    parameters: Parameters = {"target": _table(call, arguments.pop("table"), database)}
    parameters |= procedure.always
    for name, argument in arguments.items():
        taken = procedure.takes[name]
        if isinstance(taken, str):
            raise call.unsupported(argument, name, taken)
        parameters |= taken(call, argument)
    catalog = call.name[0] if len(call.name) == 3 else ""
    return ReadCall(procedure.operation, _on_branch(parameters), _FORMATS[kind], catalog)


def _table(call: Call, at: Argument, database: str | None) -> str:
    text = call.text(at)
    try:
        if database is not None and "." not in text:
            table = TableName(database, unquoted(text.strip()))
        else:
            table = TableName.parse(text)
    except RequestError as error:
        raise call.wrong(at, error.message, "Write 'database.table'.") from None
    parts = (table.catalog, table.database, table.table)
    return ".".join(quote(each) for each in parts if each)


def _on_branch(parameters: Parameters) -> Parameters:
    """The parameters with the branch that the operation is about in the name of the target."""
    branch = parameters.pop("of_branch", MAIN_BRANCH)
    if branch != MAIN_BRANCH:
        head, _, table = parameters["target"].rpartition(".")
        named = quote(f"{unquoted(table)}{BRANCH_MARK}{branch}")
        parameters["target"] = f"{head}.{named}"
    return parameters
