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
    preview = None if notes is None else notes.row_preview(operation_id, table)
    if preview is None:
        return None
    return answers.RowPreview(
        columns=list(preview.columns),
        left_out=list(preview.left_out),
        rows=[
            answers.PreviewedRow(
                operation=row.operation,
                clause=row.clause,
                old=None if row.old is None else list(row.old),
                new=None if row.new is None else list(row.new),
                differs=list(row.differs),
            )
            for row in preview.rows
        ],
    )
