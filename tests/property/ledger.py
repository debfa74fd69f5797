"""The seeds that were run: a file of one JSON line per seed, only ever appended to."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Run:
    """One seed: with which commit, how long, what its statements met, and how it failed if so.

    ``commit`` ends with ``+`` where files of the project differed from it.
    """

    seed: int
    commit: str
    seconds: float
    statements: int
    met: dict[str, int]
    failure: str | None = None


@dataclass(frozen=True)
class Ledger:
    """The runs in a file."""

    path: Path

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        if not self.path.exists():
            return []
        return list(_read(self.path.read_text(encoding="utf-8").splitlines()))

    def add(self, run: Run) -> None:
        """Append a run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # A line of its own, also behind one that was cut off.
            file.write("\n" + json.dumps(dataclasses.asdict(run), ensure_ascii=False))

    def missing(self, seeds: Sequence[int], commit: str) -> list[int]:
        """The seeds that have not been run with ``commit``."""
        done = {run.seed for run in self.runs() if run.commit == commit}
        return [seed for seed in seeds if seed not in done]

    def next_seed(self) -> int:
        """The first seed that was never run, with no commit."""
        return max((run.seed for run in self.runs()), default=-1) + 1


def _read(lines: Sequence[str]) -> Iterator[Run]:
    for line in lines:
        try:
            yield Run(**json.loads(line))
        except ValueError:
            continue  # empty, or cut off when a run was killed


def current_commit() -> str:
    """The commit of the working tree."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")


def summary(runs: Sequence[Run]) -> str:
    """What the runs of a ledger add up to, commit by commit."""
    lines = []
    for commit in dict.fromkeys(run.commit for run in runs):
        lines += _of_commit(commit, [run for run in runs if run.commit == commit])
    return "\n".join(lines)


def _of_commit(commit: str, runs: Sequence[Run]) -> list[str]:
    total = sum(run.statements for run in runs)
    met: Counter[str] = Counter()
    for run in runs:
        met.update(run.met)
    failed = [run for run in runs if run.failure]
    seeds, seconds = ranges([run.seed for run in runs]), sum(run.seconds for run in runs)
    return [
        f"{commit}: seeds {seeds}, {total} statements, {seconds:.0f} s, {len(failed)} failed",
        *(f"{count:6} {count / max(total, 1):5.0%}  {name}" for name, count in met.most_common()),
        *(f"  seed {run.seed}: {(run.failure or '').splitlines()[0]}" for run in failed),
    ]


def ranges(numbers: Sequence[int]) -> str:
    """Numbers as text, neighbours as one range."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][-1] == number - 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)
