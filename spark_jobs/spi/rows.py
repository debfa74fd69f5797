"""Column names and operation numbers of the change rows that go from the processor to the sink.

A change row has these columns, followed by table columns under their own names:

============================  =============================  =====================================
column                        Spark type                     meaning
============================  =============================  =====================================
``__merge_operation``         ``tinyint``                    INSERT, DELETE or UPDATE below
``__merge_case_number``       ``int``                        clause that applies, from 0; -1: none
``__merge_row_id``            the connector's struct         target row; NULL in INSERT rows
``__merge_from_update``       ``boolean``                    whether it is half of a split UPDATE
``__merge_moved_from``        the connector's struct         target row that a split UPDATE replaces
                                                             by this INSERT row; NULL in others
============================  =============================  =====================================

The last one is there only if UPDATEs are split and the table's rows have identities.

The numbers are those of Trino's ``ConnectorMergeSink``.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.contract import sql_text

RESERVED_PREFIX: Final = sql_text.RESERVED_PREFIX

OPERATION: Final = "__merge_operation"
CASE_NUMBER: Final = "__merge_case_number"
ROW_ID: Final = "__merge_row_id"
FROM_UPDATE: Final = "__merge_from_update"
MOVED_FROM: Final = "__merge_moved_from"

INSERT: Final = 1
DELETE: Final = 2
UPDATE: Final = 3
NO_OPERATION: Final = -1

NO_CASE: Final = -1

# The most bytes that the texts of one Arrow array may have.
MOST_ARRAY_BYTES: Final = 2**31 - 1
