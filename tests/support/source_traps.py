"""What files bring that readers trip over: each with what becomes of it.

``docs/sources.md`` lists the same traps under the same ids; the suites of the engine and of object
stores read them from local files and from S3.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

Rows = list[tuple[Any, ...]]
HEADER = {"header": "true"}
ID_V = "id BIGINT, v STRING"


@dataclass(frozen=True)
class Trap:
    """Files of a source, and its rows; or the error, and the options under which they are read.

    ``says``: parts of the error's message. Without ``code`` the source is read as it is.
    """

    id: str
    files: Mapping[str, bytes]
    format: str
    schema: str | None
    rows: Rows = field(default_factory=list)
    options: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None
    says: tuple[str, ...] = ()
    accepting: Mapping[str, str] = field(default_factory=dict)


def csv(id_: str, content: str | bytes, schema: str, rows: Rows, **more: Any) -> Trap:
    """A CSV file with a header, unless the options say something else."""
    data = content if isinstance(content, bytes) else content.encode()
    options = {**HEADER, **more.pop("options", {})}
    return Trap(f"csv-{id_}", {"a.csv": data}, "csv", schema, rows, options, **more)


def lines(id_: str, content: str, schema: str, rows: Rows, **more: Any) -> Trap:
    """A file of JSON lines."""
    return Trap(f"json-{id_}", {"a.json": content.encode()}, "json", schema, rows, **more)


def parquet(**columns: Any) -> bytes:
    """A parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def orc_file(**columns: Any) -> bytes:
    """An ORC file."""
    stream = io.BytesIO()
    orc.write_table(pa.table(columns), stream)
    return stream.getvalue()


def avro(rows: list[dict[str, Any]], **types: Any) -> bytes:
    """An Avro file."""
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    stream = io.BytesIO()
    fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, rows)
    return stream.getvalue()


_BAD_VALUE = {"code": "VALUE_NOT_STORABLE", "accepting": {"mode": "PERMISSIVE"}}
_BAD_RECORD = {"code": "SOURCE_UNREADABLE", "accepting": {"mode": "DROPMALFORMED"}}
_UTC = dt.UTC

CSV_TRAPS = (
    csv("too-large", "id,n\n1,99999999999\n", "id BIGINT, n INT", [(1, None)],
        says=("a.csv, line 2, record 1, column n: '99999999999' is not a valid INT",),
        **_BAD_VALUE),
    csv("no-number", "id\nx\n", "id BIGINT", [(None,)], says=("'x' is not a valid BIGINT",),
        **_BAD_VALUE),
    csv("hex", "id\n0x1F\n", "id BIGINT", [(None,)], says=("'0x1F' is not a valid BIGINT",),
        **_BAD_VALUE),
    csv("no-date", "id,d\n1,2024-13-45\n", "id BIGINT, d DATE", [(1, None)],
        says=("column d: '2024-13-45' is not a valid DATE",), **_BAD_VALUE),
    csv("date-and-more", "id,d\n1,2024-01-05 x\n", "id BIGINT, d DATE", [(1, None)],
        says=("'2024-01-05 x' is not a valid DATE",), **_BAD_VALUE),
    csv("date-format", "id,d\n1,05.01.2024\n", "id BIGINT, d DATE", [(1, dt.date(2024, 1, 5))],
        code="VALUE_NOT_STORABLE", says=("'05.01.2024' is not a valid DATE",),
        accepting={"dateFormat": "dd.MM.yyyy"}),
    csv("decimal-digits", "id,m\n1,12345.678\n", "id BIGINT, m DECIMAL(6,2)", [(1, None)],
        says=("'12345.678' is not a valid DECIMAL(6,2)",), **_BAD_VALUE),
    csv("decimal-rounding", "id,m\n1,1.005\n", "id BIGINT, m DECIMAL(6,2)", [(1, None)],
        says=("'1.005' is not a valid DECIMAL(6,2)",), **_BAD_VALUE),
    # Arrow makes 0.10 of it.
    csv("wide-decimal", "id,m\n1,34028236692093846346337460743176821145.7\n",
        "id BIGINT, m DECIMAL(5,2)", [(1, None)], says=("is not a valid DECIMAL(5,2)",),
        **_BAD_VALUE),
    csv("double-overflow", "id,x\n1,1e400\n", "id BIGINT, x DOUBLE", [(1, None)],
        says=("'1e400' is not a valid DOUBLE",), **_BAD_VALUE),
    csv("nanoseconds", "id,t\n1,2024-01-05 10:00:00.123456789\n", "id BIGINT, t TIMESTAMP",
        [(1, None)], says=("parts of a microsecond",), **_BAD_VALUE),
    csv("offset", "id,t\n1,2024-01-05T10:00:00+02:00\n", "id BIGINT, t TIMESTAMP",
        [(1, dt.datetime(2024, 1, 5, 8, tzinfo=_UTC))]),
    csv("offset-for-local-time", "id,t\n1,2024-01-05T10:00:00Z\n", "id BIGINT, t TIMESTAMP_NTZ",
        [(1, None)], says=("is not a valid TIMESTAMP_NTZ",), **_BAD_VALUE),
    csv("left-out-by-the-zone", "id,t\n1,2024-03-31 02:30:00\n", "id BIGINT, t TIMESTAMP",
        [(1, None)], options={"timeZone": "Europe/Berlin"}, says=("clocks in Europe/Berlin",),
        **_BAD_VALUE),
    csv("twice-in-the-zone", "id,t\n1,2024-10-27 02:30:00\n", "id BIGINT, t TIMESTAMP",
        [(1, dt.datetime(2024, 10, 27, 0, 30, tzinfo=_UTC))],
        options={"timeZone": "Europe/Berlin"}),
    csv("z-in-format", "id,t\n1,2024-01-05T10:00:00Z\n", "id BIGINT, t TIMESTAMP",
        [(1, dt.datetime(2024, 1, 5, 9, tzinfo=_UTC))],
        options={"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss'Z'", "timeZone": "Europe/Berlin"}),
    csv("epoch", "id,t\n1,1700000000\n", "id BIGINT, t TIMESTAMP", [(1, None)],
        says=("'1700000000' is not a valid TIMESTAMP",), **_BAD_VALUE),
    csv("old-day", "id,d\n1,1500-02-28\n", "id BIGINT, d DATE", [(1, dt.date(1500, 2, 28))]),
    csv("column-missing", "id\n1\n", ID_V, [(1, None)], code="SOURCE_UNREADABLE",
        says=("line 1: the header has no column v; it says 'id'",)),
    csv("other-order", "V,id\nx,1\n", ID_V, [(1, "x")]),
    csv("more-columns", "id,w,v\n1,2,x\n", ID_V, [(1, "x")]),
    csv("column-twice", "id,ID,v\n1,2,x\n", ID_V, [], code="SOURCE_UNREADABLE",
        says=("names twice the column id",)),
    csv("no-header", "1,x\n2,y\n", ID_V, [(1, "x"), (2, "y")], code="SOURCE_UNREADABLE",
        says=("the header has no column id; it says '1, x'",), accepting={"header": "false"}),
    csv("short-record", "id,v\n1\n2,y\n", ID_V, [(2, "y")],
        says=("line 2, record 1 has 1 field where the header has 2",), **_BAD_RECORD),
    csv("long-record", "id,v\n1,x,z\n2,y\n", ID_V, [(2, "y")],
        says=("line 2, record 1 has 3 fields where the header has 2",), **_BAD_RECORD),
    csv("line-break", 'id,v\n1,"a\nb"\n2,c\n', ID_V, [(1, "a\nb"), (2, "c")]),
    csv("line-break-in-lines", 'id,v\n1,"a\nb"\n', ID_V, [(1, "a\nb")],
        options={"multiLine": "false"}, code="SOURCE_UNREADABLE",
        says=("has a quote that is not closed on its line",), accepting={"multiLine": "true"}),
    csv("doubled-quote", 'id,v\n1,"a ""b"""\n', ID_V, [(1, 'a "b"')]),
    csv("escaped-quote", 'id,v\n1,"a \\"b\\""\n', ID_V, [(1, 'a "b"')], code="SOURCE_UNREADABLE",
        says=("text behind a closing quote",), accepting={"escape": "\\"}),
    csv("text-behind-quote", 'id,v\n1,"a"b\n2,y\n', ID_V, [(2, "y")],
        says=("line 2, record 1 has text behind a closing quote",), **_BAD_RECORD),
    csv("quote-never-closed", 'id,v\n1,x\n2,"y\n3,z\n', ID_V, [(1, "x")],
        says=("line 3, record 2 has a quote that is never closed",), **_BAD_RECORD),
    csv("quote-in-text", 'id,v\n1,5" pipe\n', ID_V, [(1, '5" pipe')]),
    csv("empty", 'id,v\n1,\n2,""\n', ID_V, [(1, None), (2, "")]),
    csv("empty-at-the-end", 'id,v\n"1",', ID_V, [(1, None)]),
    csv("blanks-in-header", "id, v\n1, x\n", ID_V, [(1, "x")], code="SOURCE_UNREADABLE",
        says=("the column v occurs in no record",), accepting={"ignoreLeadingWhiteSpace": "true"}),
    csv("blanks", "id,v\n 1 , x \n", ID_V, [(1, " x ")]),
    csv("nul", "id,v\n1,a\0b\n", ID_V, [(1, "a\0b")]),
    csv("null-spelling", "id,n\n1,NA\n", "id BIGINT, n INT", [(1, None)],
        code="VALUE_NOT_STORABLE", says=("'NA' is not a valid INT",),
        accepting={"nullValue": "NA"}),
    csv("blank-lines", "\nid,v\n\n1,x\n\n", ID_V, [(1, "x")]),
    csv("encoding", "id,v\n1,ä\n".encode("latin-1"), ID_V, [(1, "ä")], code="SOURCE_UNREADABLE",
        says=("line 2, record 1 has bytes that are not UTF-8",),
        accepting={"encoding": "ISO-8859-1"}),
    csv("undecodable", b"id,v\n1,\x81\n", ID_V, [], options={"encoding": "windows-1252"},
        code="SOURCE_UNREADABLE", says=("a.csv cannot be read: it is not cp1252",)),
    csv("utf-16", "id,v\n1,x\n".encode("utf-16-le"), ID_V, [(1, "x")],
        options={"encoding": "UTF-16"}, code="SOURCE_UNREADABLE", says=("a.csv cannot be read",),
        accepting={"encoding": "UTF-16LE"}),
    csv("byte-order-mark", "\ufeffid,v\n1,x\n", ID_V, [(1, "x")]),
    csv("line-ends", "id,v\r\n1,x\r\n2,y\r3,z\n", ID_V, [(1, "x"), (2, "y"), (3, "z")]),
    Trap("csv-gzip", {"a.csv.gz": gzip.compress(b"id,v\n1,x\n")}, "csv", ID_V, [(1, "x")], HEADER),
    Trap("csv-gzip-cut-off", {"a.csv.gz": gzip.compress(b"id,v\n1,x\n" * 99)[:-9]}, "csv", ID_V,
         [], HEADER, "SOURCE_UNREADABLE", ("a.csv.gz cannot be read",)),
    Trap("csv-zip", {"a.csv.zip": b"PK"}, "csv", ID_V, [], HEADER, "NOT_SUPPORTED", (".zip",)),
    Trap("csv-no-rows", {"a.csv": b"id,v\n", "b.csv": b""}, "csv", ID_V, [], HEADER),
)  # fmt: skip

JSON_TRAPS = (
    lines("text-for-number", '{"id":8,"n":"x"}\n', "id BIGINT, n INT", [(8, None)],
          says=("a.json, line 1, record 1, column n: 'x' is not a valid INT",), **_BAD_VALUE),
    lines("number-in-quotes", '{"id":"8"}\n', "id BIGINT", [(8,)]),
    lines("too-large", '{"id":1,"n":99999999999}\n', "id BIGINT, n INT", [(1, None)],
          says=("'99999999999' is not a valid INT",), **_BAD_VALUE),
    lines("fraction-for-whole-number", '{"id":1,"n":1.5}\n', "id BIGINT, n INT", [(1, None)],
          says=("'1.5' is not a valid INT",), **_BAD_VALUE),
    lines("decimal", '{"id":1,"m":0.1}\n', "id BIGINT, m DECIMAL(38,20)",
          [(1, Decimal("0.10000000000000000000"))]),
    lines("epoch", '{"id":1,"t":1700000000}\n', "id BIGINT, t TIMESTAMP", [(1, None)],
          says=("column t: '1700000000' is not a valid TIMESTAMP",), **_BAD_VALUE),
    lines("cut-off", '{"id":1}\n{"id":2,\n', "id BIGINT", [(1,)],
          says=("a.json, line 2, record 2",), **_BAD_RECORD),
    lines("text-behind", '{"id":1} x\n{"id":2}\n', "id BIGINT", [(2,)],
          says=("a.json, line 1, record 1",), **_BAD_RECORD),
    lines("no-object", 'null\n{"id":2}\n', "id BIGINT", [(2,)], says=("line 1, record 1",),
          **_BAD_RECORD),
    lines("key-in-other-case", '{"ID":13,"N":1}\n', "id BIGINT, n INT", [(13, 1)]),
    lines("key-twice", '{"id":1,"ID":2}\n{"id":3}\n', "id BIGINT", [(3,)],
          says=("line 1, record 1",), **_BAD_RECORD),
    lines("key-missing", '{"id":1,"v":"x"}\n{"id":2}\n', ID_V, [(1, "x"), (2, None)]),
    lines("column-nowhere", '{"id":1}\n', ID_V, [], code="SOURCE_UNREADABLE",
          says=("the column v occurs in no record",)),
    lines("object-for-text", '{"id":1,"v":{"a": 1.50}}\n', ID_V, [(1, '{"a": 1.50}')]),
    lines("pretty-printed", '{\n  "id": 1\n}\n', "id BIGINT", [(1,)], code="SOURCE_UNREADABLE",
          says=("line 1",), accepting={"multiLine": "true"}),
    lines("array-on-a-line", '[{"id":1},{"id":2}]\n', "id BIGINT", [(1,), (2,)]),
    Trap("json-encoding", {"a.json": '{"id":1,"v":"ä"}\n'.encode("latin-1")}, "json", ID_V,
         [(1, "ä")], {}, "SOURCE_UNREADABLE", ("line 1, record 1",), {"encoding": "ISO-8859-1"}),
)  # fmt: skip

OTHER_TRAPS = (
    Trap("text-encoding", {"a.txt": b"a\n\xe4\n"}, "text", "v STRING", [("a",), ("ä",)], {},
         "SOURCE_UNREADABLE", ("a.txt, line 2",), {"encoding": "ISO-8859-1"}),
    Trap("text-lines", {"a.txt": b"a\r\n\nb"}, "text", "v STRING", [("",), ("a",), ("b",)]),
    Trap("avro-column-missing",
         {"a.avro": avro([{"id": 1, "v": "x"}], id="long", v="string"),
          "b.avro": avro([{"id": 2}], id="long")},
         "avro", ID_V, [], {}, "SOURCE_UNREADABLE", ("b.avro", "v")),
    Trap("avro-types", {"a.avro": avro([{"id": 1, "d": dt.date(2024, 1, 5)}], id="int",
                                       d={"type": "int", "logicalType": "date"})},
         "avro", None, [(1, dt.date(2024, 1, 5))]),
    Trap("avro-cut-off", {"a.avro": avro([{"id": i} for i in range(99)], id="long")[:-20]}, "avro",
         "id BIGINT", [], {}, "SOURCE_UNREADABLE", ("a.avro",)),
    Trap("parquet-column-missing",
         {"a.parquet": parquet(id=[1], v=["x"]), "b.parquet": parquet(id=[2])}, "parquet", ID_V, [],
         {}, "SOURCE_UNREADABLE", ("b.parquet has no column v",)),
    Trap("parquet-field-missing",
         {"a.parquet": parquet(id=[1], s=[[{"x": 1}]]),
          "b.parquet": parquet(id=[2], s=[[{"x": 1, "y": 2}]])},
         "parquet", None, [], {}, "SOURCE_UNREADABLE", ("s.element.y",)),
    Trap("parquet-too-large", {"a.parquet": parquet(id=[2**40])}, "parquet", "id INT", [], {},
         "SOURCE_UNREADABLE", ("a.parquet column id holds BIGINT where INT is expected",)),
    Trap("parquet-upper-bits", {"a.parquet": parquet(id=pa.array([1000], pa.int32()))}, "parquet",
         "id TINYINT", [], {}, "SOURCE_UNREADABLE", ("holds INT where TINYINT is expected",)),
    Trap("parquet-nanoseconds",
         {"a.parquet": parquet(id=[1], t=pa.array([1_000], pa.timestamp("ns", "UTC")))},
         "parquet", None, [(1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=_UTC))]),
    Trap("parquet-parts-of-a-microsecond",
         {"a.parquet": parquet(id=[1], t=pa.array([1_001], pa.timestamp("ns", "UTC")))},
         "parquet", None, [], {}, "VALUE_NOT_STORABLE", ("column t", "1001 nanoseconds")),
    Trap("parquet-name-twice", {"a.parquet": parquet(id=[1], v=["x"], V=["y"])}, "parquet", ID_V,
         [], {}, "SOURCE_UNREADABLE", ("a.parquet has two columns v",)),
    Trap("parquet-cut-off", {"a.parquet": parquet(id=[1])[:-20]}, "parquet", "id BIGINT", [], {},
         "SOURCE_UNREADABLE", ("a.parquet",)),
    Trap("orc-column-missing", {"a.orc": orc_file(id=[1], v=["x"]), "b.orc": orc_file(id=[2])},
         "orc", ID_V, [], {}, "SOURCE_UNREADABLE", ("b.orc has no column v",)),
    Trap("orc-too-large", {"a.orc": orc_file(id=[2**40])}, "orc", "id INT", [], {},
         "SOURCE_UNREADABLE", ("a.orc column id holds BIGINT where INT is expected",)),
    Trap("orc-instant", {"a.orc": orc_file(id=[1], t=pa.array([1], pa.timestamp("us", "UTC")))},
         "orc", None, [], {}, "NOT_SUPPORTED", ("column t",)),
)  # fmt: skip

TRAPS = (*CSV_TRAPS, *JSON_TRAPS, *OTHER_TRAPS)
