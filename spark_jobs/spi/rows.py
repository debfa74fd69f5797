"""The rows that travel from the processor to the sink: names of columns, numbers of operations.

A change row has these columns, followed by table columns under their own names:

============================  =============================  =====================================
column                        Spark type                     meaning
============================  =============================  =====================================
``__merge_operation``         ``tinyint``                    INSERT, DELETE or UPDATE below
``__merge_case_number``       ``int``                        clause that decided, from 0; -1: none
``__merge_row_id``            the connector's struct         target row; NULL on INSERT rows
``__merge_from_update``       ``boolean``                    half of an UPDATE that was split
============================  =============================  =====================================

The numbers are those of Trino's ``ConnectorMergeSink``.
"""

from __future__ import annotations

from typing import Final

RESERVED_PREFIX: Final = "__merge_"

OPERATION: Final = "__merge_operation"
CASE_NUMBER: Final = "__merge_case_number"
ROW_ID: Final = "__merge_row_id"
FROM_UPDATE: Final = "__merge_from_update"

INSERT: Final = 1
DELETE: Final = 2
UPDATE: Final = 3
NO_OPERATION: Final = -1

NO_CASE: Final = -1
