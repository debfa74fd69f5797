"""The results as a Markdown table and as a chart (SVG)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_MIB: Final = 2**20
_SIZES: Final = ("MiB of JVM, Python, together", "MiB read", "MiB written")
# With both of them, ratios are those of the first one.
_OURS: Final = ("here", "here-iceberg", "here-iceberg-v3")
_WIDTH, _BAR, _LEFT, _SCALE_LEFT = 760, 16, 190, 130
_COLOURS: Final = {
    "iceberg": "#4472a8",
    "iceberg-v2": "#7fa6cf",
    "delta": "#3d8f6b",
    "paimon": "#a8742f",
    "plain": "#999999",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine's part in one work.

    ``seconds``: of each warm round; ``cpu``: the median of its seconds. ``java``, ``python`` and
    ``together``: the highest peak of memory, in bytes. ``read`` and ``written``: bytes of the
    first round, before which the files were not in the cache. ``rows``: of the table then.
    ``error`` is set if there is nothing else.
    """

    work: str
    size: int
    engine: str
    seconds: tuple[float, ...] = ()
    cpu: float = 0.0
    java: int = 0
    python: int = 0
    together: int = 0
    read: int = 0
    written: int = 0
    rows: int = 0
    error: str = ""

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


def table(results: Sequence[Measured]) -> str:
    """A row for each engine in each work; a ratio above 1 means that this project is faster."""
    names = ("Rows", "Work", "Engine", "Seconds", "Ratio", "CPU s", *_SIZES)
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for each in results:
        start = f"| {each.size:,} | {each.work} | {each.engine} |"
        if each.error:
            lines.append(f"{start} failed: {' '.join(each.error.split())[:80]} | | | | | |")
            continue
        low, high = min(each.seconds), max(each.seconds)
        ratio = _ratio(each, results)
        memory = ", ".join(
            f"{size / _MIB:,.0f}" for size in (each.java, each.python, each.together)
        )
        lines.append(
            f"{start} {each.median:.2f} ({low:.2f} to {high:.2f}) | "
            f"{'' if ratio is None else f'{ratio:.2f}'} | {each.cpu:.1f} | {memory} | "
            f"{each.read / _MIB:,.0f} | {each.written / _MIB:,.0f} |"
        )
    return "\n".join(lines)


def chart(results: Sequence[Measured]) -> str:
    """A bar for each other engine in each work: how many times as long as this project it took."""
    rows = [(each, ratio) for each in results if (ratio := _ratio(each, results)) is not None]
    height = _BAR * (len(rows) + 3)
    per_unit = (_WIDTH - _LEFT - _SCALE_LEFT) / max([ratio for _, ratio in rows] + [1.0])
    one, axis = _LEFT + per_unit, height - 8
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"
  font-family="sans-serif" font-size="11">
<rect width="{_WIDTH}" height="{height}" fill="white"/>
{"".join(_bars(rows, per_unit))}<line x1="{one:.0f}" x2="{one:.0f}" y1="0" y2="{axis - _BAR}"
  stroke="black" stroke-dasharray="3"/>
<text x="{_LEFT}" y="{axis}">times as long as this project, which takes 1</text>
</svg>
"""


def _bars(rows: Sequence[tuple[Measured, float]], per_unit: float) -> Iterator[str]:
    work = ""
    for number, (each, ratio) in enumerate(rows):
        y = number * _BAR + 4
        named = f"{each.work} {each.size:,}"
        if named != work:
            yield f'<text x="{_LEFT - 6}" y="{y + 10}" text-anchor="end">{escape(named)}</text>\n'
            work = named
        width = ratio * per_unit
        colour = _COLOURS.get(each.engine, "black")
        yield f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="12" fill="{colour}"/>\n'
        text = f"{each.engine} {ratio:.1f} ({each.median:.1f} s)"
        yield f'<text x="{_LEFT + width + 4:.1f}" y="{y + 10}">{escape(text)}</text>\n'


def _ratio(each: Measured, results: Sequence[Measured]) -> float | None:
    """The seconds of another engine by those of this project."""
    if each.engine in _OURS or each.error:
        return None
    for ours in results:
        is_same = (ours.work, ours.size) == (each.work, each.size) and ours.engine in _OURS
        if is_same and not ours.error:
            return each.median / ours.median
    return None
