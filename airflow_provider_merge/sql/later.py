"""The word that stands in a text for a part that is rendered only later."""

from __future__ import annotations

from typing import Final

RENDERED_LATER: Final = "rendered_later__"
