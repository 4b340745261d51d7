"""The pages /metrics, /healthz and /readyz.

/metrics shows the counters of the process in the text form of Prometheus. Each scrape reads
the counters themselves, so counting costs plain arithmetic. /healthz says that the process
lives, /readyz whether it can serve.
"""

import platform
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from http import HTTPStatus
from importlib import metadata
from types import MappingProxyType
from typing import Final, TypeAlias

import trio
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from typing_extensions import override

from actors.http.site import LATER, Page, json_page
from actors.kit.counters import (
    BOUNDS,
    Counters,
    Durations,
    Gauge,
    Labels,
    Measured,
    Reading,
    Tally,
    Timing,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READY_TIMEOUT
from specs.reply_code import DropReason

# The readiness of a process: the parts without which it cannot serve.


class Part(StrEnum):
    """Components that a process needs to serve; `NODE` and `RUNTIME` mean the whole process."""

    NODE = "node"
    LISTENER = "listener"
    BUS = "bus"
    REGISTRY = "registry"
    KEYS = "identity-keys"
    ENGINE = "engine"
    POLICIES = "policies"
    RUNTIME = "runtime"
    SESSION = "session"
    HYPERTIES = "hyperties"


class Readiness:
    """Record of the reasons why a process cannot serve; at first, that it is starting.

    Args:
        whole: The part that means the whole process; while it is missing, no other part is probed.

    Attributes:
        missing: Reasons by part, as half a sentence.
    """

    def __init__(self, whole: Part = Part.NODE) -> None:
        self.whole = whole
        self._missing: dict[Part, str] = {whole: "it is starting"}
        self.missing = MappingProxyType(self._missing)

    def ready(self, part: Part) -> None:
        """Record that a component can serve."""
        self._missing.pop(part, None)

    def lacking(self, part: Part, why: str) -> None:
        """Record that a component cannot serve.

        Args:
            part: Part of the process.
            why: The reason.
        """
        self._missing[part] = why


Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Tests whether a component works; returns the reason as half a sentence, or None if it works."""

_ALIVE: Final = json_page(HTTPStatus.OK, {"status": "ok"})


async def health() -> Page:
    """Report that the process lives: the answer came from its event loop."""
    return _ALIVE


class ReadyPage:
    """Handler of /readyz: reports which components of the process cannot serve.

    Args:
        probes: Probes of the parts; called only for parts without a recorded reason.
        early: Parts that are probed even while the process is starting.
    """

    def __init__(
        self,
        readiness: Readiness,
        probes: Mapping[Part, Probe],
        early: AbstractSet[Part] = frozenset(),
    ) -> None:
        self._readiness = readiness
        self._probes = probes
        self._early = early

    async def __call__(self) -> Page:
        """Probe all components at the same time, and return the page."""
        missing = dict(self._readiness.missing)
        probed = self._early if self._readiness.whole in missing else self._probes.keys()
        async with trio.open_nursery() as nursery:
            for part in probed - missing.keys():
                nursery.start_soon(self._run_probe, part, self._probes[part], missing)
        listed: list[Json] = [
            {"part": str(part), "why": missing[part]} for part in Part if part in missing
        ]
        content: JsonObject = {"ready": not missing, "missing": listed}
        if missing:
            return json_page(HTTPStatus.SERVICE_UNAVAILABLE, content, LATER)
        return json_page(HTTPStatus.OK, content)

    async def _run_probe(self, part: Part, probe: Probe, missing: dict[Part, str]) -> None:
        why: str | None = f"no answer within {READY_TIMEOUT:g} s"
        with trio.move_on_after(READY_TIMEOUT):
            why = await probe()
        if why is not None:
            missing[part] = why


_PREFIX: Final = "protofly"

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that every Prometheus server reads."""


class Constant(Measured):
    """Counters that `Counters` keeps separately, because they are hot or older."""

    RECEIVED = "messages_received", ("form",), "Messages received over links, before any check."
    SENT = "messages_sent", ("form",), "Messages passed to links for writing."
    ADMITTED = "messages_admitted", (), "Messages that passed every check."
    DECISIONS = "policy_decisions", ("decision",), "Decisions of the policy engine."
    DROPPED = "messages_dropped", ("reason",), "Messages that were not delivered."
    RESTARTS = "actor_restarts", ("actor",), "Restarts of parts of the node."
    DEAD_LETTERS = "dead_letters", (), "Messages for parts that had ended."
    VIOLATIONS = "monitor_violations", ("machine",), "Steps that no table declares: bugs."
    RESETS = "monitor_resets", (), "Resets of the checks of claims."
    BROKEN_CLAIMS = (
        "monitor_broken_claims",
        ("claim",),
        "Broken claims that the process itself found.",
    )


OF_RUNTIMES: Final = frozenset(
    {
        Constant.DROPPED,
        Constant.RESTARTS,
        Constant.DEAD_LETTERS,
        Constant.VIOLATIONS,
        Constant.RESETS,
        Constant.BROKEN_CLAIMS,
        Tally.DESCRIPTORS,
        Tally.HINTS,
        Tally.SPANS,
        Tally.TRACEPARENTS,
    }
)
"""The metrics that a runtime counts, beside its gauges."""


class MetricsPage:
    """Handler of /metrics: writes the counters of a process in the text format of Prometheus.

    Args:
        counters: The counters.
        shown: The metrics to show, beside gauges that are watched; None: all.
    """

    def __init__(self, counters: Counters, shown: Container[Measured] | None = None) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Reader(counters, shown))
        ProcessCollector(registry=self._registry)

    async def __call__(self) -> Page:
        """Return the page with the current values of all counters."""
        return Page(HTTPStatus.OK, generate_latest(self._registry), _TEXT)


class _Reader(Collector):
    """Collector for the Prometheus library, which reads the counters at each scrape."""

    def __init__(self, counters: Counters, shown: Container[Measured] | None) -> None:
        self._counters = counters
        self._shown = shown

    def _is_shown(self, metric: Measured) -> bool:
        return self._shown is None or metric in self._shown

    @override
    def collect(self) -> Iterator[Metric]:
        yield _build()
        yield from self._constant()
        counters = self._counters
        for tally in filter(self._is_shown, Tally):
            yield _counter(tally, _spell_labels(counters.values_of(tally)))
        for timing in filter(self._is_shown, Timing):
            yield _histogram(timing, counters.timings[timing])
        for gauge in Gauge:
            if gauge in counters.gauges:
                yield _gauge(gauge, counters.gauges[gauge]())

    def _constant(self) -> Iterator[Metric]:
        counters = self._counters
        samples: dict[Constant, Iterable[tuple[tuple[str, ...], int]]] = {
            Constant.RECEIVED: [((form,), n) for form, n in counters.received.items()],
            Constant.SENT: [((form,), n) for form, n in counters.sent.items()],
            Constant.ADMITTED: [((), counters.admitted)],
            Constant.DECISIONS: [(("permit",), counters.permitted), (("deny",), counters.denied)],
            Constant.DROPPED: [((each,), counters.drops.get(each, 0)) for each in DropReason],
            Constant.RESTARTS: [((name,), n) for name, n in _kinds(counters.restarts).items()],
            Constant.DEAD_LETTERS: [((), sum(counters.dead_letters.values()))],
            Constant.VIOLATIONS: [((name,), n) for name, n in counters.violations.items()],
            Constant.RESETS: [((), counters.monitor_resets)],
            Constant.BROKEN_CLAIMS: [((claim,), n) for claim, n in counters.broken_claims.items()],
        }
        for metric in filter(self._is_shown, Constant):
            yield _counter(metric, samples[metric])


def _build() -> Metric:
    info = InfoMetricFamily(f"{_PREFIX}_build", "Versions of the program and of Python.")
    info.add_metric([], {"version": _version(), "python": platform.python_version()})
    return info


def _version() -> str:
    try:
        return metadata.version("protofly")
    except metadata.PackageNotFoundError:
        return "unknown"


def _kinds(by_actor: Mapping[str, int]) -> dict[str, int]:
    """Sum up counts by the kind of actor, the text before the colon in its name."""
    kinds: dict[str, int] = {}
    for actor, count in by_actor.items():
        kind = actor.partition(":")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    return kinds


def _spell_labels(counted: Mapping[Labels, int]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the labels as texts, with their counts."""
    for labels, count in counted.items():
        yield tuple(str(label) for label in labels), count


def _counter(metric: Measured, counted: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = CounterMetricFamily(f"{_PREFIX}_{metric}", metric.says, labels=metric.labels)
    for labels, count in counted:
        family.add_metric(labels, count)
    return family


def _gauge(metric: Measured, reading: Reading) -> Metric:
    family = GaugeMetricFamily(f"{_PREFIX}_{metric}", metric.says, labels=metric.labels)
    if isinstance(reading, int):
        family.add_metric((), reading)
    else:
        for label, count in reading.items():
            family.add_metric((str(label),), count)
    return family


def _histogram(metric: Measured, timed: Mapping[Labels, Durations]) -> Metric:
    title = f"{_PREFIX}_{metric}_seconds"
    family = HistogramMetricFamily(title, metric.says, labels=metric.labels)
    for labels, durations in timed.items():
        words = tuple(str(label) for label in labels)
        family.add_metric(words, _buckets(durations), durations.total)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Return cumulative counts, as Prometheus needs: each class includes those before it."""
    ends = [*(str(bound) for bound in BOUNDS), "+Inf"]
    below = 0.0
    buckets: list[tuple[str, float]] = []
    for end, count in zip(ends, durations.classes, strict=True):
        below += count
        buckets.append((end, below))
    return buckets
