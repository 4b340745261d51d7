"""Spans of messages as a collector gets them, over HTTP; and what becomes of them without one."""

import threading
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trio

import actors
from actors.http.config import HttpConfig
from actors.hyperties import Caller
from actors.kit import otlp
from actors.kit.counters import Counters, Tally
from actors.kit.otlp import SpanFate, SpanTracer
from actors.kit.trace import NULL_TRACER
from specs.limits import protocol as limits
from specs.message import Message, MessageType
from specs.spans import read_traceparent
from specs.trace import Op
from tests.support.command import typed
from tests.support.ports import free_port

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@contextmanager
def collector(status=200):
    """Run a collector; yield its URL, and the list that its requests are added to."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            request = service.ExportTraceServiceRequest.FromString(body)
            requests.append((self.path, request))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()


def spans_in(requests):
    """By process: its spans."""
    by_process = {}
    for path, request in requests:
        assert path == "/v1/traces"
        for resource in request.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            spans = [span for scope in resource.scope_spans for span in scope.spans]
            by_process.setdefault(names["service.name"], []).extend(spans)
    return by_process


def about(spans, request):
    """The only span of a request."""
    (span,) = [span for span in spans if attributes(span)["protofly.mid"] == request]
    return span


def attributes(span):
    return {each.key: each.value.string_value for each in span.attributes}


class Answerer(actors.Hyperty):
    """Answers with the parent that came with the request."""

    async def on_request(self, message):
        return message.body.get("traceparent")


@asynccontextmanager
async def domain(url, sample=1, trace=None):
    """Run a node, with monitor and pages, and two runtimes; all export their spans."""
    node = actors.NodeConfig(
        domain="a.ex", allow_legacy=True, otlp=url, otlp_sample=sample, monitor=True,
        http=HttpConfig("127.0.0.1:0"),
    )  # fmt: skip
    async with actors.open_node(node, trace=trace) as opened:
        configs = [
            actors.RuntimeConfig(
                domain="a.ex", name=name, node=opened.url, otlp=url, otlp_sample=sample
            )
            for name in ("ra", "rb")
        ]
        async with (
            actors.open_runtime(configs[0]) as ra,
            actors.open_runtime(configs[1]) as rb,
        ):
            yield opened, await ra.deploy(Caller), await rb.deploy(Answerer)


async def test_each_process_of_a_request_has_a_span_below_that_of_its_sender():
    with collector() as (url, requests):
        async with domain(url) as (node, caller, answerer):
            assert (await caller.request(answerer.url)).value is None
            answer = await caller.request(answerer.url, traceparent=TRACEPARENT)
            assert answer.value == TRACEPARENT  # it is passed on as it is
            await caller.request(answerer.url, traceparent="00-0-0-01")
        assert node.counters.tallies[Tally.TRACEPARENTS][()] == 1
        assert set(node.counters.tallies[Tally.SPANS]) == {(SpanFate.SENT,)}
    spans = spans_in(requests)
    assert set(spans) == {"ra", "rb", "node.a.ex"}
    own = [
        span for span in spans["ra"]
        if attributes(span)["protofly.from"] == caller.url
        and attributes(span)["protofly.to"] == answerer.url
    ]  # fmt: skip
    plain, with_parent, with_invalid = sorted(own, key=lambda span: span.start_time_unix_nano)
    for root in (plain, with_invalid):
        request = attributes(root)["protofly.mid"]
        assert (root.name, root.kind, root.parent_span_id, root.status.code) == (
            "create",
            3,
            b"",
            1,
        )
        for process, kind in (("node.a.ex", 1), ("rb", 2)):
            span = about(spans[process], request)
            assert (span.trace_id, span.parent_span_id) == (root.trace_id, root.span_id)
            assert span.kind == kind
            assert root.start_time_unix_nano <= span.start_time_unix_nano
            assert span.start_time_unix_nano <= span.end_time_unix_nano
    names = [event.name for event in plain.events]
    assert names[0] == "submit create"
    assert names[-1] == "callback response"
    for process in spans:
        span = about(spans[process], attributes(with_parent)["protofly.mid"])
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert len({span.span_id for each in spans.values() for span in each}) == sum(
        map(len, spans.values())
    )


@pytest.mark.parametrize("has_trace", [False, True])
async def test_one_message_in_so_many_is_exported_and_a_trace_has_all(has_trace, tmp_path):
    trace = tmp_path if has_trace else None
    with collector() as (url, requests):
        async with domain(url, sample=10, trace=trace) as (_, caller, answerer):
            for _ in range(40):
                await caller.request(answerer.url)
    lines = [line for file in tmp_path.rglob("*.jsonl") for line in file.read_text().splitlines()]
    received = [line for line in lines if '"op":"rcv"' in line and caller.url in line]
    assert len(received) >= 80 * has_trace
    spans = spans_in(requests)
    counts = Counter(
        process for process in spans for span in spans[process]
        if attributes(span)["protofly.from"] == caller.url
    )  # fmt: skip
    assert set(counts) == set(spans)
    assert all(4 <= count <= 6 for count in counts.values()), counts


@pytest.mark.parametrize("status", [None, 400], ids=["away", "refuses"])
async def test_without_a_collector_messages_pass_and_spans_are_counted(status, monkeypatch):
    monkeypatch.setattr(limits, "SPAN_INTERVAL", 0.05)
    with collector(status or 200) as (url, _):
        async with domain(url if status else f"http://127.0.0.1:{free_port()}") as (
            node,
            caller,
            answerer,
        ):
            counts = node.counters.tallies[Tally.SPANS]
            with trio.fail_after(30):
                while not counts[(SpanFate.FAILED,)]:
                    assert (await caller.request(answerer.url)).code == 200
                    await trio.sleep(0.01)  # real time: a thread fails meanwhile
        assert (SpanFate.SENT,) not in counts


async def test_a_collector_that_never_ends_its_answer_costs_no_more_than_its_spans(autojump_clock):
    answered, counters = threading.Event(), Counters()

    class Library:
        renewals = 0

        def send(self, _):
            return answered.wait(60)

        def renew(self):
            self.renewals += 1

    tracer, library = SpanTracer(NULL_TRACER, 1, counters), Library()
    sender = otlp._Sender(tracer, library, counters)
    try:
        for number in range(1, 6):
            tracer.message("bus", Op.RCV, Message(number, MessageType.CREATE, "x://a", "x://b"))
            tracer.finish_old(is_end=True)
            with trio.fail_after(2 * limits.SPAN_TIMEOUT):
                await sender.send_all()
    finally:
        answered.set()
    assert counters.tallies[Tally.SPANS] == {(SpanFate.FAILED,): 5}
    assert library.renewals == 5


def test_what_does_not_fit_is_counted(monkeypatch):
    monkeypatch.setattr(limits, "SPANS_OPEN", 4)
    monkeypatch.setattr(limits, "SPANS_WAITING", 3)
    counters = Counters()
    tracer = SpanTracer(NULL_TRACER, 2, counters)
    for number in range(20):
        tracer.message("bus", Op.RCV, Message(number, MessageType.CREATE, "x://a", "x://b"))
    tracer.finish_old(is_end=True)
    assert len(tracer.take()) == 3
    assert counters.tallies[Tally.SPANS] == {(SpanFate.OVERFLOW,): 7}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACEPARENT, (TRACE, PARENT)),
        (f"01-{TRACE}-{PARENT}-00-more", (TRACE, PARENT)),
        (f"{TRACEPARENT}-more", None),
        (f"ff-{TRACE}-{PARENT}-01", None),
        (f"00-{'0' * 32}-{PARENT}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (TRACEPARENT.upper(), None),
        (f"{TRACEPARENT}\n", None),
        (7, None),
    ],
)
def test_a_parent_is_read_as_trace_context_says(text, expected):
    assert read_traceparent(text) == expected


def test_a_collector_that_cannot_be_used_is_refused(monkeypatch):
    ended = typed("node", "--domain", "a.ex", "--otlp", "collector:4318")
    assert ended.status == 2
    assert "is no URL of a collector such as http://127.0.0.1:4318" in ended.err[-1]
    monkeypatch.setattr(otlp, "_is_installed", lambda: False)
    with pytest.raises(ValueError, match=r"pip install '\.\[otlp\]'"):
        actors.NodeConfig(domain="a.ex", otlp="http://127.0.0.1:4318")
