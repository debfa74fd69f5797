"""The parameter ``sql``: the text of a statement, or the path of a ``.sql`` file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from airflow.providers.common.compat.sdk import BaseOperator
from jinja2 import TemplateNotFound

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.task_errors import naming_task
from airflow_provider_merge.templates import is_template
from spark_jobs.errors import JobError, error_of

if TYPE_CHECKING:
    from jinja2 import Environment

SQL_FILES = (".sql",)


class SqlOperator(BaseOperator):
    """An operator that takes ``sql``. ``sql_file`` is the path that it was given as, if it was."""

    template_ext: Sequence[str] = SQL_FILES
    sql: str | None
    sql_file: str = ""

    @abstractmethod
    def check_parameters(self) -> None:
        """Check what is known when the DAG is parsed.

        Raises:
            JobError: naming the parameter, and line and column of the text.
        """

    def resolve_template_files(self) -> None:
        """Read the file; Airflow would log that it is missing, and go on with its path."""
        with naming_task(self.task_id):
            if names_sql_file(self.sql):
                self.sql_file = self.sql
                self.sql = sql_of_file(self.sql, self.get_template_env())
            super().resolve_template_files()

    def prepare_template(self) -> None:
        """Check the text that was read from a file, when the DAG is parsed."""
        if isinstance(self.sql, str):
            self.check_parameters()

    def reads_later(self) -> bool:
        """Whether the text is not known yet."""
        return is_template(self.sql) or names_sql_file(self.sql)

    def sql_label(self) -> str:
        """What errors call the text."""
        return f"sql ({self.sql_file})" if self.sql_file else "sql"


def names_sql_file(sql: Any) -> TypeGuard[str]:
    """Whether ``sql`` is the path of a file."""
    return isinstance(sql, str) and sql.endswith(SQL_FILES)


def sql_of_file(path: str, environment: Environment) -> str:
    """The text of a file, which may have templates.

    Raises:
        RequestError: REQUEST_INVALID: there is no such file, or it cannot be read.
    """
    assert environment.loader is not None  # noqa: S101 - Airflow's environments have one
    try:
        return environment.loader.get_source(environment, path)[0]
    except TemplateNotFound:
        folders = [str(each) for each in getattr(environment.loader, "searchpath", ())]
        raise invalid(
            "sql",
            f"there is no file {path!r}",
            "Give its path below the folder of the DAG file or below one of the DAG's "
            f"template_searchpath: {', '.join(folders)}.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise invalid("sql", f"the file {path!r} cannot be read: {error}") from None


@contextmanager
def of_parameter(name: str) -> Iterator[None]:
    """Errors of a text name the parameter that holds it."""
    try:
        yield
    except JobError as error:
        raise error_of(error.code, f"{name}: {error.message}", error.remedy) from None
