"""The rows that a dry run has kept for the page of its task."""

from __future__ import annotations

from airflow_provider_merge.metadata.running_notes import RunningNotes
from airflow_provider_merge.ui import answers
from spark_jobs.contract.request import TableName


def read_preview(
    notes: RunningNotes | None, table: TableName, operation_id: str
) -> answers.RowPreview | None:
    """The rows of a dry run on a table; None: there are none, or they are gone.

    Raises:
        JobError: they cannot be reached, or understood.
    """
    found = None if notes is None else notes.row_preview(operation_id, table)
    if found is None:
        return None
    return answers.RowPreview(
        columns=list(found.columns),
        left_out=list(found.left_out),
        rows=[
            answers.PreviewedRow(
                operation=each.operation,
                clause=each.clause,
                old=None if each.old is None else list(each.old),
                new=None if each.new is None else list(each.new),
                differs=list(each.differs),
            )
            for each in found.rows
        ],
    )
