"""Templates in a text, with words of the same length in their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_EXPRESSION: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_BLOCK: Final = re.compile(r"\{[%#]")


@dataclass(frozen=True, slots=True)
class MaskedText:
    """``text`` can be split into tokens; all positions are those of the text as it was written."""

    text: str
    templates: dict[str, str]

    def restored(self, text: str) -> str:
        """A part of the text, perhaps edited, with its templates."""
        for word, template in self.templates.items():
            text = text.replace(word, template)
        return text


def masked(text: str) -> MaskedText | None:
    """The text with words for its expressions; None: blocks decide which statements there are."""
    if _BLOCK.search(text):
        return None
    templates: dict[str, str] = {}

    def word(found: re.Match[str]) -> str:
        name = f"t{len(templates):x}".ljust(len(found[0]), "_")
        templates[name] = found[0]
        return name

    return MaskedText(_EXPRESSION.sub(word, text), templates)
