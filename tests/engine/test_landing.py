"""Rows stand in the table as they stand in the file, or an error says where they do not."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from spark_jobs.contract.request import FileSource
from spark_jobs.contract.result import JobResult, SourceMetrics
from spark_jobs.contract.source_names import INSERT_SOURCE
from spark_jobs.contract.statements import DeleteSpec, MergeSpec
from tests.conformance.behaviour import insert, matched, not_matched, update
from tests.conformance.harness import TARGET, Harness
from tests.engine.landed import Landing, new_landing
from tests.support.source_reading import evaluated
from tests.support.source_traps import avro

HEADER = {"header": "true"}


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    return new_landing(make_table, tmp_path)


def refused(result: JobResult, code: str, *says: str) -> None:
    assert result.error is not None, result
    assert result.error.code == code, result.error
    missing = [text for text in says if text not in result.error.message]
    assert not missing, result.error.message
    assert result.error.remedy


@pytest.mark.parametrize(
    ("name", "content", "options", "schema", "code", "says"),
    [
        ("a.csv", "id,n\n1,99999999999\n", HEADER, "id BIGINT, n INT", "VALUE_NOT_STORABLE",
         ("a.csv, line 2, record 1, column n: '99999999999' is not a valid INT",)),
        ("a.csv", "id,d\n1,2024-13-45\n", HEADER, "id BIGINT, d DATE", "VALUE_NOT_STORABLE",
         ("column d: '2024-13-45' is not a valid DATE",)),
        ("a.csv", "id,m\n1,12345.678\n", HEADER, "id BIGINT, m DECIMAL(6,2)",
         "VALUE_NOT_STORABLE", ("column m: '12345.678' is not a valid DECIMAL(6,2)",)),
        ("a.csv", "id\nx\n", HEADER, "id BIGINT", "VALUE_NOT_STORABLE",
         ("'x' is not a valid BIGINT",)),
        ("a.csv", "id\n1\n", HEADER, "id BIGINT, n INT", "SOURCE_UNREADABLE",
         ("line 1: the header has no column n",)),
        ("a.csv", "1,2\n3,4\n", HEADER, "id BIGINT, n INT", "SOURCE_UNREADABLE",
         ("the header has no column id; it says '1, 2'",)),
        ("a.csv", "id,v\n1,\xe4\n".encode("latin-1"), HEADER, "id BIGINT, v STRING",
         "SOURCE_UNREADABLE", ("line 2, record 1 has bytes that are not UTF-8",)),
        ("a.csv", 'id,v\n1,"a\nb"\n', {**HEADER, "multiLine": "false"}, "id BIGINT, v STRING",
         "SOURCE_UNREADABLE", ("has a quote that is not closed on its line",)),
        ("a.csv.gz", gzip.compress(b"id\n1\n" * 100)[:-9], HEADER, "id BIGINT",
         "SOURCE_UNREADABLE", ("a.csv.gz cannot be read",)),
        ("a.json", '{"id":8,"n":"x"}\n', {}, "id BIGINT, n INT", "VALUE_NOT_STORABLE",
         ("a.json, line 1, record 1, column n: 'x' is not a valid INT",)),
        ("a.json", '{"id":8,"n":1}\n{"id":9,"n"\n', {}, "id BIGINT, n INT", "SOURCE_UNREADABLE",
         ("a.json, line 2, record 2",)),
        ("a.json", '{"id":8,"n":1}\n{"id":9,"n"\n', {}, None, "SOURCE_UNREADABLE",
         ("a.json, line 2, record 2",)),
        ("a.json", '{"id":8}\n', {}, "id BIGINT, n INT", "SOURCE_UNREADABLE",
         ("the column n occurs in no record",)),
        ("a.csv", "id\n1\n", HEADER, "id DECIMAL(99, 1)", "REQUEST_INVALID", ("schema: ", "99")),
        ("a.txt", b"a\n\xff\n", {}, "v STRING", "SOURCE_UNREADABLE", ("a.txt, line 2",)),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_an_error(
    landing: Landing,
    name: str,
    content: str | bytes,
    options: Mapping[str, str],
    schema: str | None,
    code: str,
    says: tuple[str, ...],
) -> None:
    path = landing.file(name, content)
    kind = {".json": "json", ".txt": "text"}.get(Path(name).suffix, "csv")

    result = landing.insert(path, kind, options, schema)

    refused(result, code, "source s", *says)
    assert landing.rows("id") == []


def test_a_source_that_users_did_not_name_is_called_by_its_place(landing: Landing) -> None:
    path = landing.file("a.csv", "id\nx\n")

    result = landing.insert(path, "csv", HEADER, "id BIGINT", called=INSERT_SOURCE)

    refused(result, "VALUE_NOT_STORABLE", f"the source (csv {path}): ", "a.csv, line 2")
    assert result.error is not None
    assert INSERT_SOURCE not in result.error.message


def test_a_dry_run_has_the_same_errors(landing: Landing) -> None:
    path = landing.file("a.csv", "id\nx\n")

    result = landing.insert(path, "csv", HEADER, "id BIGINT", dry_run=True)

    refused(result, "VALUE_NOT_STORABLE", "'x' is not a valid BIGINT")


def test_columns_are_found_by_name(landing: Landing) -> None:
    landing.file("a.csv", "V,other,ID\nx,0,1\n")
    landing.file("b.csv", "id,v\n2,y\n")

    result = landing.insert(str(landing.folder), "csv", HEADER, "id BIGINT, v STRING")

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("schema", [None, "id BIGINT, v STRING"])
def test_a_header_with_blanks_names_the_option_that_drops_them(
    landing: Landing, schema: str | None
) -> None:
    path = landing.file("a.csv", "id, v\n1, x\n")

    result = landing.insert(path, "csv", HEADER, schema)

    refused(result, "SOURCE_UNREADABLE", "v")
    assert result.error is not None
    assert "ignoreLeadingWhiteSpace=True" in result.error.remedy
    options = {**HEADER, "ignoreLeadingWhiteSpace": "true"}
    query = "SELECT CAST(id AS BIGINT) AS id, v FROM files"
    again = landing.insert(path, "csv", options, schema, query, "operation-2")
    assert again.error is None, again.error
    assert landing.rows("id", "v") == [(1, "x")]


@pytest.mark.parametrize("kind", ["csv", "avro", "avro nested"])
def test_a_column_that_only_later_files_have(landing: Landing, kind: str) -> None:
    if kind == "csv":
        landing.file("a.csv", "id\n1\n")
        landing.file("b.csv", "id,v\n2,x\n")
    elif kind == "avro":
        landing.file("a.avro", avro([{"id": 1}], id="long"))
        landing.file("b.avro", avro([{"id": 2, "v": "x"}], id="long", v="string"))
    else:
        for name, fields in (("a", ["x"]), ("b", ["x", "v"])):
            inner = {
                "type": "record",
                "name": "inner",
                "fields": [{"name": each, "type": "string"} for each in fields],
            }
            value = {"id": 1, "s": [dict.fromkeys(fields, "y")]}
            landing.file(
                f"{name}.avro", avro([value], id="long", s={"type": "array", "items": inner})
            )
    options = HEADER if kind == "csv" else {}
    query = "SELECT CAST(id AS BIGINT) AS id FROM files"

    result = landing.insert(str(landing.folder), kind.split(maxsplit=1)[0], options, query=query)

    path = "s.element.v" if kind == "avro nested" else "v"
    refused(result, "SOURCE_UNREADABLE", f"a column {path}, which the first")
    assert landing.rows("id") == []


def test_a_folder_whose_name_is_not_utf8(landing: Landing) -> None:
    landing.file("v=a%FF/a.csv", "id\n1\n")

    result = landing.insert(str(landing.folder), "csv", HEADER, "id BIGINT, v STRING")

    refused(result, "SOURCE_UNREADABLE", "a%FF", "the name of a folder is not UTF-8")
    assert landing.rows("id") == []


def test_keys_of_json_are_found_in_any_case(landing: Landing) -> None:
    path = landing.file("a.json", '{"ID":13,"N":1}\n{"n":2,"Id":14,"other":{"id":9}}\n')

    result = landing.insert(path, "json", schema="id BIGINT, n INT")

    assert result.error is None, result.error
    assert landing.rows("id", "n") == [(13, 1), (14, 2)]


def test_line_breaks_within_quotes_belong_to_the_value(landing: Landing) -> None:
    path = landing.file("a.csv", 'id,v\n1,"a\nb, ""c"""\n2,d\n')

    result = landing.insert(path, "csv", HEADER, "id BIGINT, v STRING")

    assert result.error is None, result.error
    assert landing.rows("id", "v") == [(1, 'a\nb, "c"'), (2, "d")]


def test_a_header_gives_texts_where_there_is_no_schema(landing: Landing) -> None:
    path = landing.file("a.csv", "id,d,v\n1,2024-01-05,\n2,,x\n")

    result = landing.insert(path, "csv", HEADER)

    assert result.error is None, result.error
    assert landing.rows("id", "d", "v") == [(1, dt.date(2024, 1, 5), None), (2, None, "x")]


def test_types_are_inferred_where_the_options_ask_for_it(landing: Landing) -> None:
    path = landing.file("a.csv", "id,m,v\n1,2.5,x\n2,,y\n")

    result = landing.insert(path, "csv", {**HEADER, "inferSchema": "true"})

    assert result.error is None, result.error
    assert landing.rows("id", "m") == [(1, Decimal("2.50")), (2, None)]


def test_json_without_a_schema(landing: Landing) -> None:
    path = landing.file("a.json", '{"id":1,"v":"x"}\n{"id":2,"m":2.5}\n')

    result = landing.insert(path, "json")

    assert result.error is None, result.error
    assert landing.rows("id", "v", "m") == [(1, "x", None), (2, None, Decimal("2.50"))]


@pytest.mark.parametrize(
    ("zone", "utc"),
    [("UTC", (12, 30)), ("America/Los_Angeles", (19, 30)), ("Asia/Kolkata", (7, 0))],
)
def test_times_without_an_offset_are_in_the_sessions_zone(
    landing: Landing, zone: str, utc: tuple[int, int]
) -> None:
    text = "id,t\n1,2024-07-01 12:30:00\n2,2024-07-01T12:30:00+02:00\n"
    path = landing.file("a.csv", text)

    result = landing.insert(path, "csv", HEADER, "id BIGINT, t TIMESTAMP", zone=zone)

    assert result.error is None, result.error
    ((_, local), (_, zoned)) = landing.rows("id", "t")
    assert local.astimezone(dt.UTC) == dt.datetime(2024, 7, 1, *utc, tzinfo=dt.UTC)
    assert zoned.astimezone(dt.UTC) == dt.datetime(2024, 7, 1, 10, 30, tzinfo=dt.UTC)


def test_columns_of_folders(landing: Landing) -> None:
    landing.file("p=a%20b/n=1/x.csv", "id\n1\n")
    landing.file("p=c/n=__HIVE_DEFAULT_PARTITION__/x.csv", "id\n2\n")

    result = landing.insert(str(landing.folder), "csv", HEADER, "id BIGINT, p STRING")

    assert result.error is None, result.error
    assert landing.rows("id", "p", "n") == [(1, "a b", 1), (2, "c", None)]


def test_a_query_reads_the_rows_that_landed(landing: Landing) -> None:
    path = landing.file("a.csv", "id,n\n1,2\n2,3\n")

    query = "SELECT a.id, b.n FROM files a JOIN files b ON a.id = b.id"
    result = landing.insert(path, "csv", HEADER, "id BIGINT, n INT", query)

    assert result.error is None, result.error
    assert landing.rows("id", "n") == [(1, 2), (2, 3)]
    assert result.metrics.sources == {"files": SourceMetrics(files=1, bytes=13, records=2)}


def test_the_size_of_the_columns_that_are_read_is_known(landing: Landing) -> None:
    rows = "".join(f"{i},{'x' * 1000}\n" for i in range(1000))
    path = landing.file("a.csv", f"id,v\n{rows}")
    source = FileSource("s", path, "csv", HEADER, "id BIGINT, v STRING")
    harness = landing.harness

    landed = evaluated(harness.spark, harness.open(), TARGET, source)["s"].landed

    assert landed is not None
    assert landed.byte_size > 1_000_000
    assert 8_000 <= landed.narrowed(["id"]).byte_size < 10_000
    assert landed.narrowed([]).byte_size == 0


def test_merge_and_delete_read_landed_files(landing: Landing) -> None:
    old = landing.file("old.csv", "id,n,v\n1,1,a\n2,2,b\n3,3,c\n")
    assert landing.insert(old, "csv", HEADER, "id BIGINT, n INT, v STRING").error is None
    new = landing.file("new.csv", "id,n,ignored\n2,20,x\n4,40,y\n")
    gone = landing.file("gone.json", '{"id":3}\n{"id":9}\n')

    clauses = (
        matched(update(n="s.n")),
        not_matched(insert(id="s.id", n="s.n")),
    )
    merge = MergeSpec("s", "t.id = s.id", clauses, "t", "s")
    files = FileSource("s", new, "csv", HEADER, "id BIGINT, n INT, ignored STRING")
    merged = landing.run(merge, files, operation_id="operation-2")
    delete = DeleteSpec("t", "t.id IN (SELECT id FROM gone)")
    deleted = landing.run(
        delete, FileSource("gone", gone, "json", {}, "id BIGINT"), operation_id="operation-3"
    )

    assert merged.error is None, merged.error
    assert (merged.metrics.source_rows, merged.metrics.updated, merged.metrics.inserted) == (
        2,
        1,
        1,
    )
    assert deleted.error is None, deleted.error
    assert (deleted.metrics.source_rows, deleted.metrics.deleted) == (2, 1)
    assert landing.rows("id", "n", "v") == [(1, 1, "a"), (2, 20, "b"), (4, 40, None)]


@pytest.mark.parametrize(
    ("options", "lost", "rows"),
    [
        ({"mode": "PERMISSIVE"}, (1, 1), [(1, 2), (2, None), (3, 4)]),
        ({"mode": "DROPMALFORMED"}, (0, 2), [(1, 2)]),
    ],
)
def test_the_sources_own_options_win_and_losses_are_counted(
    landing: Landing,
    options: Mapping[str, str],
    lost: tuple[int, int],
    rows: list[tuple[int | None, int | None]],
) -> None:
    path = landing.file("a.csv", "id,n\n1,2\n2,x\n3,4,5\n")

    result = landing.insert(path, "csv", {**HEADER, **options}, "id BIGINT, n INT")

    assert result.error is None, result.error
    assert landing.rows("id", "n") == rows
    found = result.metrics.sources["s"]
    assert (found.records, found.lost_values, found.lost_records) == (3, *lost)


def test_an_option_that_has_no_effect_is_refused(landing: Landing) -> None:
    path = landing.file("a.csv", "id\n1\n")

    result = landing.insert(path, "csv", {"unescapedQuoteHandling": "SKIP_VALUE"}, "id BIGINT")

    refused(result, "NOT_SUPPORTED", "the option unescapedQuoteHandling of csv")


def test_a_folder_without_files(landing: Landing) -> None:
    landing.file("_hidden", "")

    result = landing.insert(str(landing.folder), "csv", HEADER, "id BIGINT")

    refused(result, "SOURCE_NOT_FOUND", "holds no files")


def test_a_path_that_is_not_there(landing: Landing) -> None:
    result = landing.insert(f"{landing.folder}/none", "csv", HEADER, "id BIGINT")

    refused(result, "SOURCE_NOT_FOUND", "source s", "none")


def test_files_without_rows(landing: Landing) -> None:
    landing.file("a.csv", "id,v\n")
    landing.file("b.csv", "")

    result = landing.insert(str(landing.folder), "csv", HEADER, "id BIGINT, v STRING")

    assert (result.status, result.metrics.source_rows) == ("unchanged", 0), result.error
    assert result.metrics.sources["s"].files == 2


def test_a_large_file_is_read_in_parts(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.engine.source.landing._PART_BYTES", 1000)
    lines = [f"{i},{'x' * (i % 50)}" for i in range(1000)]
    path = landing.file("a.csv", "id,v\n" + "\n".join(lines) + "\n")
    options = {**HEADER, "multiLine": "false"}

    result = landing.insert(path, "csv", options, "id BIGINT, v STRING")

    assert result.error is None, result.error
    expected = [(i, "x" * (i % 50) or None) for i in range(1000)]
    assert landing.rows("id", "v") == expected
    landing.file("a.csv", "id,v\n" + "\n".join(lines) + "\nx,y\n")
    again = landing.insert(path, "csv", options, "id BIGINT, v STRING", operation_id="operation-2")
    refused(again, "VALUE_NOT_STORABLE", "line 1002, column id: 'x'")


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("format_", ["csv", "json", "text"])
def test_a_line_of_many_megabytes_needs_a_higher_limit(landing: Landing, format_: str) -> None:
    text = "x" * 70_000_000
    line = json.dumps({"v": text}) if format_ == "json" else text
    path = landing.file(f"a.{format_}", f"{line}\n")
    query = "SELECT 1L AS id, CAST(length(v) AS INT) AS n FROM files"

    result = landing.insert(path, format_, schema="v STRING", query=query)

    refused(result, "SOURCE_UNREADABLE", f"a.{format_} cannot be read", "longer than")
    assert result.error is not None
    assert "maxRecordBytes" in result.error.remedy
    options = {"maxRecordBytes": "100000000"}
    again = landing.insert(path, format_, options, "v STRING", query, operation_id="operation-2")
    assert again.error is None, again.error
    assert landing.rows("id", "n") == [(1, 70_000_000)]
