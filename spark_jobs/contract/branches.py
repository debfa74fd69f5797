"""How names of tables name branches: ``orders$branch_audit``."""

from __future__ import annotations

from typing import Final

# What stands between the name of a table and that of its branch, and the branch of every table.
BRANCH_MARK: Final = "$branch_"
MAIN_BRANCH: Final = "main"
