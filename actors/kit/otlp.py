"""Live export of the spans of sampled messages to a collector of OpenTelemetry (OTLP over HTTP).

A tracer notes what happens to each sampled message in its process. A task gives the spans of those
that are done to the library's exporter, every few seconds and in a thread, so that a collector that
is slow or away delays nothing: what does not fit is counted and not kept.
"""

import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Unpack
from urllib.parse import urlsplit
from uuid import uuid4

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters, Tally
from actors.kit.log import get_logger
from actors.kit.trace import Hop, More, PassingTracer, Tracer
from specs import spans
from specs.limits import protocol as limits
from specs.message import Message, instance_id, request_id
from specs.reply_code import FIRST_FINAL
from specs.trace import Fact, Kind, Op
from transports.sockets import open_background

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

_log = get_logger("actors.kit")

_PATH: Final = "/v1/traces"
_THREADS: Final = 2
"""Threads that send at a time, among them those whose wait was given up (our choice)."""

_HOPS: Final = frozenset({Kind.MSG, Kind.AUTHZ})
_LAST: Final = frozenset({Op.XMIT, Op.CALLBACK, Op.DROP})
"""What happens last in a process to the final answer of a request."""


class SpanFate(StrEnum):
    """What became of a span."""

    SENT = "sent"
    FAILED = "failed"
    OVERFLOW = "overflow"


def read_collector(url: str) -> str:
    """Return the URL to which spans are posted; without a path, the one that OTLP names is taken.

    Raises:
        ValueError: The text is no HTTP URL, or the extra is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a collector such as http://127.0.0.1:4318")
    if not _is_installed():
        raise ValueError("spans need a library; pip install '.[otlp]' in a checkout")
    return url if parts.path.strip("/") else parts._replace(path=_PATH).geturl()


def check_collector(_: object, __: object, url: str | None) -> None:
    """Refuse a URL to which no spans can be posted: the validator of a field of a configuration.

    Raises:
        ValueError: As `read_collector`.
    """
    if url is not None:
        read_collector(url)


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@attrs.define(eq=False)
class _Span:
    """What a process knows of a sampled message, without its body.

    Attributes:
        parent: Ids of trace and span that the message names; None: it names none.
        events: Time and name of what happened, at most `SPAN_EVENTS`.
    """

    request: str
    type: str
    from_: str
    to: str
    is_request: bool
    is_root: bool
    parent: tuple[str, str] | None
    start: int
    end: int
    is_passed_on: bool = False
    codes: list[int] = attrs.field(factory=list)
    events: list[tuple[int, str]] = attrs.field(factory=list)

    def is_over(self, now: int) -> bool:
        """Return whether nothing is expected to happen to the message any more."""
        patience = limits.SPAN_REQUEST if self.is_request else limits.SPAN_EVENT
        return now - self.end > patience * 1e9


class SpanTracer(PassingTracer):
    """Tracer that makes spans of sampled messages, and passes to another tracer what that wants.

    Args:
        tracer: Takes the trace records.
        sample: A message is sampled if its id is a multiple of this number.
        counters: Counts spans that were dropped, and parents that are invalid.

    Attributes:
        is_full: Is set when as many spans are done as are sent at once.
    """

    def __init__(self, tracer: Tracer, sample: int, counters: Counters) -> None:
        super().__init__(tracer)
        self.sample = sample
        self._counters = counters
        self._open: dict[str, _Span] = {}
        self._done: deque[_Span] = deque()
        self.is_full = trio.Event()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        if self.hops or fact.k not in _HOPS:
            self._tracer.record(actor, fact)
        if fact.k is Kind.MSG and fact.op and fact.mid and not (fact.id or 0) % self.sample:
            self._note(fact.op, fact.ref or fact.mid, fact.code or 0, fact)

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        if self.hops:
            self._tracer.message(actor, op, message, **more)
        if not message.id % self.sample:
            about = request_id(message) if message.is_response else instance_id(message)
            self._note(op, about, message.code, message)

    @override
    def hop(self, hop: Hop, message: Message, seq: int = 0) -> None:
        if self.hops:
            self._tracer.hop(hop, message, seq)
        if not message.id % self.sample:
            about = request_id(message) if message.is_response else instance_id(message)
            for op in hop.ops:
                self._note(op, about, message.code, message)

    def _note(self, op: Op, request: str, code: int, head: Message | Fact) -> None:
        now = time.time_ns()
        is_answer = head.is_response if isinstance(head, Message) else head.ref is not None
        span = self._open.get(request)
        if span is None:
            if is_answer:
                return  # its request has left before the sampling began, or long ago
            if len(self._open) >= limits.SPANS_OPEN:
                self._finish(next(iter(self._open)))
            span = self._open[request] = self._begin(op, request, head, now)
        span.end = now
        if len(span.events) < limits.SPAN_EVENTS:
            span.events.append((now, f"{op} {head.type}"))
        if code and (is_answer or op is Op.DENY):
            span.codes.append(code)
        if is_answer and code >= FIRST_FINAL and op in _LAST:
            self._finish(request)
        elif op is Op.XMIT and not is_answer:
            span.is_passed_on = True

    def _begin(self, op: Op, request: str, head: Message | Fact, now: int) -> _Span:
        parent, is_request = None, True
        if isinstance(head, Message):
            is_request = head.is_request
            if spans.TRACEPARENT in head.body:
                parent = spans.read_traceparent(head.body[spans.TRACEPARENT])
                if parent is None:
                    self._counters.count(Tally.TRACEPARENTS)
        ends = str(head.type), head.from_ or "", head.to or ""
        return _Span(request, *ends, is_request, op is not Op.RCV, parent, now, now)

    def _finish(self, request: str) -> None:
        span = self._open.pop(request)
        if len(self._done) < limits.SPANS_WAITING:
            self._done.append(span)
            if len(self._done) == limits.SPANS_SENT:
                self.is_full.set()
        else:
            self._counters.count(Tally.SPANS, SpanFate.OVERFLOW)

    def finish_old(self, *, is_end: bool = False) -> None:
        """End the spans of messages to which nothing happens any more, or of all."""
        now = time.time_ns()
        for request in [key for key, each in self._open.items() if is_end or each.is_over(now)]:
            self._finish(request)

    def drop_all(self) -> None:
        """Count the spans that could not be sent before the end."""
        if self._done:
            self._counters.tallies[Tally.SPANS][(SpanFate.FAILED,)] += len(self._done)
            self._done.clear()

    def take(self) -> list[_Span]:
        """Remove and return spans that are done, as many as are sent at once."""
        count = min(len(self._done), limits.SPANS_SENT)
        return [self._done.popleft() for _ in range(count)]


@asynccontextmanager
async def open_spans(
    tracer: Tracer, collector: str | None, sample: int, name: str, counters: Counters
) -> AsyncIterator[Tracer]:
    """Yield a tracer that also exports spans while the context is open; at the end, the last ones.

    Args:
        tracer: Takes the trace records.
        collector: URL of the collector; None: nothing is exported, and the tracer is yielded.
        sample: One message in so many is exported.
        name: Name of the process.
        counters: Counts the spans.

    If cancelled, spans that cannot be sent within `SPAN_GOODBYE` seconds are lost.
    """
    if collector is None:
        yield tracer
        return
    maker = SpanTracer(tracer, sample, counters)
    sender = _Sender(maker, _Library(read_collector(collector), name), counters)
    async with open_background() as nursery:
        nursery.start_soon(sender.run)
        try:
            yield maker
        finally:
            nursery.cancel_scope.cancel()
            with trio.move_on_after(limits.SPAN_GOODBYE, shield=True):
                maker.finish_old(is_end=True)
                await sender.send_all()
            maker.drop_all()
            sender.library.exporter.shutdown()  # type: ignore[no-untyped-call] # the library's


@attrs.define(eq=False)
class _Sender:
    """Sends the spans of a tracer; logs when the collector is lost and when it is back."""

    maker: SpanTracer
    library: "_Library"
    counters: Counters
    is_lost: bool = False
    threads: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_THREADS))

    async def run(self) -> None:
        """Send the spans that are done, when they are many or after a while."""
        while True:
            self.maker.is_full = trio.Event()
            with trio.move_on_after(limits.SPAN_INTERVAL):
                await self.maker.is_full.wait()
            self.maker.finish_old()
            await self.send_all()

    async def send_all(self) -> None:
        """Send all spans that are done."""
        while batch := self.maker.take():
            fate, send = SpanFate.FAILED, partial(self.library.send, batch)
            try:
                # The limit of the library is one for each byte of a slow answer.
                with trio.move_on_after(limits.SPAN_TIMEOUT) as limit:
                    if await trio.to_thread.run_sync(
                        send, abandon_on_cancel=True, limiter=self.threads
                    ):
                        fate = SpanFate.SENT
                if limit.cancelled_caught:
                    self.library.renew()
            finally:
                self.counters.tallies[Tally.SPANS][(fate,)] += len(batch)
            if self.is_lost is not (fate is SpanFate.FAILED):
                self.is_lost = not self.is_lost
                _log.warning("spans cannot be exported" if self.is_lost else "spans are exported")


class _Library:
    """The exporter of OpenTelemetry's library, which is optional and takes a while to import.

    Args:
        url: URL to which spans are posted.
        name: Name of the process.
    """

    def __init__(self, url: str, name: str) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - see above
        from opentelemetry.exporter.otlp.proto.http import trace_exporter  # noqa: PLC0415
        from opentelemetry.sdk import resources  # noqa: PLC0415
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415
        from opentelemetry.sdk.util import instrumentation  # noqa: PLC0415

        # Each failure is counted here, and the first one logged.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._make = partial(trace_exporter.OTLPSpanExporter, url, timeout=limits.SPAN_TIMEOUT)
        self.exporter = self._make()
        self._process = uuid4().hex, name
        self._resource = resources.Resource(
            {"service.name": name, "service.instance.id": self._process[0]}
        )
        self._scope = instrumentation.InstrumentationScope("protofly")
        self._api = trace
        self._sdk = sdk

    def renew(self) -> None:
        """Take another connection, as a thread still waits for an answer on the present one."""
        self.exporter = self._make()

    def send(self, batch: Sequence[_Span]) -> bool:
        """Post spans; return whether the collector took them. This call blocks."""
        result = self.exporter.export([self._readable(span) for span in batch])
        return result.name == "SUCCESS"

    def _readable(self, span: _Span) -> "ReadableSpan":
        api = self._api
        place = spans.place_of(span.request, None if span.is_root else self._process)
        trace_id, parent = span.parent or (place.trace, place.parent)
        kind = spans.kind_of(is_root=span.is_root, is_passed_on=span.is_passed_on)
        flags = api.TraceFlags(api.TraceFlags.SAMPLED)

        def context(digits: str) -> "SpanContext":
            ids = int(trace_id, 16), int(digits, 16)
            made: SpanContext = api.SpanContext(*ids, is_remote=False, trace_flags=flags)
            return made

        return self._sdk.ReadableSpan(
            span.type,
            context(place.span),
            context(parent) if parent else None,
            self._resource,
            {
                "protofly.mid": span.request,
                "protofly.from": span.from_,
                "protofly.to": span.to,
            },
            [self._sdk.Event(name, timestamp=at) for at, name in span.events],
            kind=api.SpanKind[kind.name],
            status=api.Status(api.StatusCode[spans.status_of(span.codes).name]),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )
