"""A collector of traces that reads what it gets by the official messages of OpenTelemetry, on 127.0.0.1.

Prints its address, tells its spans at `/seen`, and ends with its input. With `make FORM` (`protobuf` or `json`) it writes a request
of the spans that standard input describes, one object a line: trace, span, parent, name, start_ns, end_ns, attributes, error.
"""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ending import end_with_input
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

seen = {"requests": [], "resources": [], "spans": []}


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def attributes_of(pairs):
    return {pair.key: plain(pair.value) for pair in pairs}


def keep(request):
    for of_resource in request.resource_spans:
        seen["resources"].append(attributes_of(of_resource.resource.attributes))
        for scope in of_resource.scope_spans:
            for span in scope.spans:
                seen["spans"].append({
                    "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind), "from_ns": span.start_time_unix_nano, "to_ns": span.end_time_unix_nano,
                    "attributes": attributes_of(span.attributes), "failed": span.status.code == Status.STATUS_CODE_ERROR,
                })


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        kind = self.headers["content-type"]
        seen["requests"].append({"path": self.path, "type": kind, "key": self.headers.get("x-key")})
        if self.path != "/v1/traces" or kind != "application/x-protobuf":
            return self.answer(400, b"")
        keep(ExportTraceServiceRequest.FromString(body))
        self.answer(200, ExportTraceServiceResponse().SerializeToString())

    def do_GET(self):
        self.answer(200, json.dumps(seen).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def any_value(value):
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    return AnyValue(string_value=value)


def made(lines):
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    of_resource.resource.attributes.append(KeyValue(key="service.name", value=any_value("desk")))
    scope = of_resource.scope_spans.add()
    for line in lines:
        wanted = json.loads(line)
        span = scope.spans.add(
            trace_id=bytes.fromhex(wanted["trace"]), span_id=bytes.fromhex(wanted["span"]), parent_span_id=bytes.fromhex(wanted.get("parent", "")),
            name=wanted["name"], kind=Span.SPAN_KIND_SERVER, start_time_unix_nano=wanted["start_ns"], end_time_unix_nano=wanted["end_ns"],
        )
        span.attributes.extend(KeyValue(key=key, value=any_value(value)) for key, value in wanted.get("attributes", {}).items())
        if "error" in wanted:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=wanted["error"]))
    return request


def in_json(request):
    """Returns JSON as OTLP has it: numbers of enumerations, and identifiers as hexadecimal digits."""
    body = MessageToDict(request, use_integers_for_enums=True)
    for of_resource in body["resourceSpans"]:
        for scope in of_resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return json.dumps(body).encode()


if sys.argv[1:2] == ["make"]:
    request = made(sys.stdin)
    sys.stdout.buffer.write(in_json(request) if sys.argv[2] == "json" else request.SerializeToString())
else:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    end_with_input()
    server.serve_forever()
