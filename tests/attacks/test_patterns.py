"""No regular expression of the jobs takes more than linear time, whatever text it meets."""

from __future__ import annotations

from spark_jobs.landing.csv_records import CsvScanner, Dialect
from spark_jobs.landing.time_patterns import TimePattern
from tests.support.patterns import slow_patterns

_CSV = CsvScanner(Dialect())
_BACKSLASH = CsvScanner(Dialect(escape=b"\\", multi_line=False))
_TIME = TimePattern.of("timestampFormat", "yyyy-MM-dd['T'HH:mm:ss[.SSSSSS][XXX]]").expression
_OF_CSV = "spark_jobs.landing.csv_records: "
# Expressions that values of a run are part of.
SAMPLES = {
    "spark_jobs.contract.operation_files: f'{re.escape(operation_id)}-(?:(\\\\d+)-)?{_RUN}'": [
        r"op-(?:(\d+)-)?[0-9a-f]{32}"
    ],
    "spark_jobs.contract.operation_files: "
    "f'(.+)\\\\.{re.escape(catalog)}\\\\.{_RUN}{re.escape(_SIDE)}'": [
        r"(.+)\.0a1b2c\.[0-9a-f]{32}\.rows"
    ],
    "spark_jobs.engine.runtime.redaction: '|'.join(map(re.escape, self.secrets))": ["aaa|aab|b"],
    # Hadoop's patterns; names of files have at most 255 bytes.
    "spark_jobs.engine.source.complete_listing: str(compiler(part).compiled().pattern())": [
        r"day=.*\.csv"
    ],
    _OF_CSV + r"b'[^' + _in_class(dialect.separator) + b'\\r\\n]*'": [_CSV._plain.pattern],
    _OF_CSV + r"b'[^' + _in_class(dialect.quote) + b'\\r\\n]*'": [_CSV._plain_line.pattern],
    _OF_CSV + "quote + b'(' + _inner(dialect) + b')' + quote": [
        each._quoted.pattern for each in (_CSV, _BACKSLASH) if each._quoted
    ],
    _OF_CSV + "escape + b'([' + marks + b'])'": [
        each._escaped.pattern for each in (_CSV, _BACKSLASH) if each._escaped
    ],
    "spark_jobs.landing.time_patterns: expression": [_TIME.pattern],
}
# Names of settings, of which no more is looked at.
BOUNDS = {"spark_jobs.contract.secret_names": 500}


def test_each_expression_takes_linear_time() -> None:
    assert slow_patterns("spark_jobs", SAMPLES, BOUNDS) == {}
