"""What metrics and spans are sent to: a StatsD server, and an OpenTelemetry collector over HTTP."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import wait_for


@dataclass(frozen=True)
class Received:
    """One value: of StatsD as it was sent, of OpenTelemetry a point of a metric."""

    name: str
    value: float
    kind: str
    tags: dict[str, str]


@dataclass
class Statsd:
    """A StatsD server on UDP; tags are those of the dialect of InfluxDB."""

    port: int
    lines: list[str] = field(default_factory=list)

    def received(self) -> list[Received]:
        """All values so far."""
        return [_of_line(line) for line in list(self.lines)]

    def wait_for(self, name: str) -> list[Received]:
        """The values of a metric, as soon as there is one."""
        return wait_for(name, lambda: [e for e in self.received() if e.name == name])


@contextmanager
def statsd() -> Iterator[Statsd]:
    """A StatsD server on a free port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        found, ended = Statsd(server.getsockname()[1]), threading.Event()

        def receive() -> None:
            while not ended.is_set():
                try:
                    found.lines += server.recv(65_536).decode().splitlines()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=receive)
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            thread.join()


def _of_line(line: str) -> Received:
    name_and_tags, _, rest = line.partition(":")
    name, *tags = name_and_tags.split(",")
    value, kind = rest.split("|")[:2]
    return Received(name, float(value), kind, dict(each.split("=", 1) for each in tags))


@dataclass
class Collector:
    """An OpenTelemetry collector for OTLP over HTTP; ``paths`` are those that were asked."""

    port: int
    metrics: list[Received] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def wait_for_span(self, name: str) -> Any:
        """The first span of a name, as soon as there is one."""
        return wait_for(name, lambda: [each for each in list(self.spans) if each.name == name])[0]

    def wait_for_metric(self, name: str) -> list[Received]:
        """The points of a metric, as soon as there is one."""
        return wait_for(name, lambda: [each for each in list(self.metrics) if each.name == name])


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.collector = Collector(server.server_port)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.collector  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Take one export."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        found: Collector = self.server.collector  # type: ignore[attr-defined]
        found.paths.append(self.path)
        if self.path.endswith("/metrics"):
            found.metrics += _points(body)
        elif self.path.endswith("/traces"):
            found.spans += _spans(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _points(body: bytes) -> Iterator[Received]:
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points:
                    tags = {each.key: each.value.string_value for each in point.attributes}
                    yield Received(metric.name, _value(point), kind, tags)


def _value(point: Any) -> float:
    if hasattr(point, "sum"):
        return float(point.sum)
    return float(point.as_int or point.as_double)


def _spans(body: bytes) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
