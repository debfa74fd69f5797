"""Templates in a text, with words of the same length in their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
    parts, end = [], 0
    while (start := text.find("{{", end)) >= 0 and (close := text.find("}}", start + 2)) >= 0:
        template = text[start : close + 2]
        word = f"t{len(templates):x}".ljust(len(template), "_")
        templates[word] = template
        parts += [text[end:start], word]
        end = close + 2
    return MaskedText("".join((*parts, text[end:])), templates)
