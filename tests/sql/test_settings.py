"""What stands around a statement for other engines: SET, and OPTIONS behind the target."""

from __future__ import annotations

import pytest

from tests.sql.reading import read, refusal

SETTING = "SET spark.sql.sources.partitionOverwriteMode"
OPTION = "/*+ OPTIONS('dynamic-partition-overwrite' = '{}') */"
POLICIES = {
    f"{SETTING} = DYNAMIC; INSERT OVERWRITE d.t SELECT 1": "dynamic",
    f"{SETTING.lower()}=static;\nINSERT OVERWRITE d.t SELECT 1;": "static",
    f"{SETTING}=static; {SETTING}=dynamic; INSERT OVERWRITE d.t SELECT 1": "dynamic",
    f"INSERT OVERWRITE d.t {OPTION.format('true')} SELECT 1": "dynamic",
    f"INSERT OVERWRITE d.t {OPTION.format('FALSE')} PARTITION (a = 1) (b) SELECT 1": "static",
    f"INSERT INTO d.t {OPTION.format('false')} SELECT 1": "static",
    f"{SETTING}=dynamic; INSERT OVERWRITE d.t {OPTION.format('false')} SELECT 1": "static",
    f"{SETTING}=dynamic; DELETE FROM d.t": "dynamic",
    "INSERT OVERWRITE d.t SELECT /*+ BROADCAST(s) */ * FROM d.s": None,
}


@pytest.mark.parametrize(("text", "policy"), POLICIES.items(), ids=POLICIES)
def test_policy(text, policy):
    assert read(text).overwrites == policy


def test_places_in_errors_are_those_of_the_whole_text():
    error = refusal(f"{SETTING} = dynamic;\nDELETE FORM d.t")
    assert error.message.startswith("line 2, column 8: expected FROM")


REFUSED = {
    "SET spark.sql.shuffle.partitions = 7; DELETE FROM d.t": "conf={'spark.sql.shuffle.partitions'",
    "SET spark.sql.session.timeZone = UTC; DELETE FROM d.t": "Write session_time_zone=",
    "SET TIME ZONE 'UTC'; DELETE FROM d.t": "Write session_time_zone=",
    "SET spark.sql.ansi.enabled = false; DELETE FROM d.t": "as ANSI SQL has it",
    "SET hive.exec.dynamic.partition.mode = nonstrict; DELETE FROM d.t": "Leave it out: no setting",
    "SET 'execution.runtime-mode' = 'batch'; DELETE FROM d.t": "Leave it out: no setting",
    "INSERT INTO d.t /*+ OPTIONS('sink.parallelism' = '4') */ SELECT 1": "Leave it out.",
    "INSERT INTO d.t SELECT * FROM d.s /*+ OPTIONS('scan.snapshot-id' = '4') */": "at its latest",
    "DELETE FROM d.t /*+ OPTIONS('a' = 'b') */": "Leave it out.",
}


@pytest.mark.parametrize(("text", "remedy"), REFUSED.items(), ids=REFUSED)
def test_the_error_says_what_to_write(text, remedy):
    error = refusal(text)
    assert error.code.name == "NOT_SUPPORTED"
    assert remedy in error.remedy


WRONG = {
    f"{SETTING} = both; DELETE FROM d.t": "is neither DYNAMIC nor STATIC",
    f"{SETTING} = dynamic": "expected SET key = value; in front of the statement",
    "INSERT INTO d.t /*+ OPTIONS(a) */ SELECT 1": "expected OPTIONS('key' = 'value')",
    "INSERT INTO d.t /*+ OPTIONS() */ SELECT 1": "expected OPTIONS('key' = 'value')",
    "INSERT INTO d.t /*+ FAST */ SELECT 1": "a hint can stand only behind SELECT",
}


@pytest.mark.parametrize(("text", "problem"), WRONG.items(), ids=WRONG)
def test_wrong(text, problem):
    error = refusal(text)
    assert error.code.name == "SYNTAX_ERROR"
    assert problem in error.message


def test_no_value_of_a_setting_is_shown():
    error = refusal("SET spark.hadoop.fs.s3a.secret.key = swordfish; DELETE FROM d.t")
    assert "swordfish" not in str(error)
