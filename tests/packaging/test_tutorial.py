"""docs/tutorial.md, word for word: its commands in one shell, and under each what it prints.

Blocks marked ``bash`` run in one session, in the order of the page; the block without a language
behind one is its output. There ``…`` stands for any text in a line, and a line that is only ``…``
for any lines. The home folder is new.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

import pytest

from tests.packaging.conftest import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
MARK = "=== block "
# `make` makes an archive of Spark's classes for all suites; it only saves seconds.
CLASS_ARCHIVE = "AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER"


@dataclass(frozen=True)
class Block:
    """Commands, and the output that the page shows, if any."""

    commands: str
    shown: str | None

    @property
    def installs(self) -> bool:
        """Whether it downloads hundreds of megabytes: the environments that exist stand in."""
        return "pip install" in self.commands


def read_blocks(page: str) -> list[Block]:
    found = re.findall(r"^```(.*)\n((?s:.*?))^```$", page, re.MULTILINE)
    blocks: list[Block] = []
    for language, text in found:
        if language:
            assert language == "bash", f"a block that no shell runs: {language}"
            blocks.append(Block(text, None))
        else:
            assert blocks, "an output needs a command"
            assert blocks[-1].shown is None, "an output needs a command of its own"
            blocks[-1] = Block(blocks[-1].commands, text)
    return blocks


def pattern_of(shown: str) -> re.Pattern[str]:
    """What the printed lines match, from the first to the last."""
    lines = []
    for line in shown.splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(r".*".join(re.escape(part) for part in line.split("…")) + r" *\n")
    return re.compile("".join(lines))


BLOCKS = read_blocks(PAGE.read_text())
SHOWN = [number for number, block in enumerate(BLOCKS) if block.shown is not None]


def installing(installation) -> str:
    """In place of the installation: the installed wheel, and the tests' Spark environment."""
    command = installation.python.with_name("airflow")
    command.write_text(
        f"#!{installation.python}\nfrom airflow.__main__ import main\n\nraise SystemExit(main())\n"
    )
    command.chmod(0o755)
    return (
        "mkdir -p ~/lake/airflow/dags ~/lake/warehouse ~/lake/landing\n"
        f"ln -s '{installation.python.parents[1]}' ~/lake/airflow-env\n"
        f"ln -s '{os.environ['MERGE_SPARK_ENV']}' ~/lake/spark-env\n"
    )


@pytest.fixture(scope="module")
def printed(installation, tmp_path_factory) -> list[str]:
    """What each block printed, with its errors."""
    home = tmp_path_factory.mktemp("home")
    script = "".join(
        f"echo '{MARK}{number}'\n{installing(installation) if block.installs else block.commands}"
        for number, block in enumerate(BLOCKS)
    )
    foreign = ("AIRFLOW", "MERGE_", "PYTHON", "SPARK_", "VIRTUAL_ENV")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(foreign) or name == CLASS_ARCHIVE
    }
    done = subprocess.run(
        ["bash", "-c", "set -e\n" + script],
        cwd=home,
        env=kept | {"HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1200,
    )
    (home / "printed.txt").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-8000:]
    return re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.MULTILINE)[1:]


def test_only_the_first_block_installs_and_installs_what_the_readme_says():
    first = BLOCKS[0].commands
    assert [number for number, block in enumerate(BLOCKS) if block.installs] == [0]
    words = (ROOT / "README.md").read_text().partition("/opt/merge-spark/bin/pip install ")[2]
    needed = " ".join(words.partition("`")[0].split())
    assert f"~/lake/spark-env/bin/pip install {needed}\n" in first


@pytest.mark.slow
@pytest.mark.parametrize("number", SHOWN)
def test_commands_print_what_the_page_shows(printed, number):
    block = BLOCKS[number]
    # Some commands end with empty lines.
    assert pattern_of(block.shown).fullmatch(printed[number].rstrip("\n") + "\n"), (
        f"{block.commands}\nprints\n{printed[number][-8000:]}\nbut the page shows\n{block.shown}"
    )
