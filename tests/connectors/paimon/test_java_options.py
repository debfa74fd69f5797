"""Options that Paimon's Java library knows: each is on the page about options."""

from __future__ import annotations

import subprocess

import pytest

from tests.connectors.paimon.options_page import kinds_of
from tests.judge.toolchain import prepare


@pytest.mark.slow
@pytest.mark.usefixtures("java")
def test_every_option_of_java_is_in_one_list():
    toolchain = prepare(["ListOptions"])
    command = [toolchain.java, "-cp", toolchain.classpath, "ListOptions"]
    keys = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert "snapshot.time-retained" in keys
    assert {key: kinds_of(key) for key in keys if len(kinds_of(key)) != 1} == {}
