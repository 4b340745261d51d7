"""The pages /metrics, /healthz and /readyz.

/metrics shows the counters of the process in the text form of Prometheus. Each scrape reads
the counters themselves, so counting costs plain arithmetic. /healthz says that the process
lives, /readyz whether it can serve.
"""

import platform
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from importlib import metadata
from types import MappingProxyType
from typing import Final, TypeAlias, final

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

from actors.kit.counters import (
    BOUNDS,
    GAUGES,
    TALLIES,
    TIMINGS,
    Counters,
    Durations,
    Labels,
    Meaning,
    Reading,
)
from actors.node.health import Part, Readiness
from actors.node.http.site import Page, json_page
from specs.jsonvalue import Json
from specs.limits.protocol import READY_TIMEOUT
from specs.reply_code import DropReason

__all__ = ["CONSTANT", "MetricsPage", "Probe", "ReadyPage", "health"]

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Has a part of the node show that it works; returns half a sentence if it does not."""

_ALIVE: Final = json_page(HTTPStatus.OK, {"status": "ok"})


async def health() -> Page:
    """Report that the process lives: the answer came from its event loop."""
    return _ALIVE


@final
class ReadyPage:
    """Makes /readyz: what the parts say of themselves, and what they show when asked.

    Args:
        probes: Asked only of parts that say nothing against themselves.
    """

    def __init__(self, readiness: Readiness, probes: Mapping[Part, Probe]) -> None:
        self._readiness = readiness
        self._probes = probes

    async def __call__(self) -> Page:
        """Ask every part, all at once."""
        missing = dict(self._readiness.missing)
        if Part.NODE not in missing:
            async with trio.open_nursery() as nursery:
                for part, probe in self._probes.items():
                    if part not in missing:
                        nursery.start_soon(self._ask, part, probe, missing)
        status = HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK
        return json_page(status, {"ready": not missing, "missing": _listed(missing)})

    async def _ask(self, part: Part, probe: Probe, missing: dict[Part, str]) -> None:
        why: str | None = f"no answer within {READY_TIMEOUT:g} s"
        with trio.move_on_after(READY_TIMEOUT):
            why = await probe()
        if why is not None:
            missing[part] = why


def _listed(missing: Mapping[Part, str]) -> list[Json]:
    return [{"part": str(part), "why": missing[part]} for part in Part if part in missing]


_PREFIX: Final = "protofly"

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The text form every Prometheus reads."""

# fmt: off
CONSTANT: Final = MappingProxyType({
    "messages_received":  Meaning(("form",),     "Messages received over links, before any check."),
    "messages_sent":      Meaning(("form",),     "Messages passed to links for writing."),
    "messages_admitted":  Meaning((),            "Messages that passed every check."),
    "policy_decisions":   Meaning(("decision",), "Decisions of the policy engine."),
    "messages_dropped":   Meaning(("reason",),   "Messages that were not delivered."),
    "actor_restarts":     Meaning(("actor",),    "Restarts of parts of the node."),
    "dead_letters":       Meaning((),            "Messages for parts that had ended."),
    "monitor_violations": Meaning(("machine",),  "Steps that no table declares: bugs."),
    "monitor_resets":     Meaning((),            "Resets of the checks of claims."),
    "monitor_broken_claims": Meaning(("claim",), "Broken claims that the process itself found."),
})
"""Counters that `Counters` keeps separately, because they are hot or older."""
# fmt: on


@final
class MetricsPage:
    """Makes /metrics out of the counters of a process; registered nowhere else."""

    def __init__(self, counters: Counters) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Reader(counters))
        ProcessCollector(registry=self._registry)

    async def __call__(self) -> Page:
        """Read every counter."""
        return Page(HTTPStatus.OK, generate_latest(self._registry), _TEXT)


@final
class _Reader(Collector):
    """Reads the counters when it is asked to."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    @override
    def collect(self) -> Iterator[Metric]:
        yield _build()
        yield from self._constant()
        counters = self._counters
        for tally, meaning in TALLIES.items():
            yield _counter(tally.value, meaning, _worded(counters.tallies[tally]))
        for timing, meaning in TIMINGS.items():
            yield _histogram(timing.value, meaning, counters.timings[timing])
        for gauge, meaning in GAUGES.items():
            if gauge in counters.gauges:
                yield _gauge(gauge.value, meaning, counters.gauges[gauge]())

    def _constant(self) -> Iterator[Metric]:
        counters = self._counters
        read: dict[str, Iterable[tuple[tuple[str, ...], int]]] = {
            "messages_received": [
                ((form,), one.received) for form, one in counters.traffic.items()
            ],
            "messages_sent": [((form,), one.sent) for form, one in counters.traffic.items()],
            "messages_admitted": [((), counters.admitted)],
            "policy_decisions": [(("permit",), counters.permitted), (("deny",), counters.denied)],
            "messages_dropped": [((one,), counters.drops.get(one, 0)) for one in DropReason],
            "actor_restarts": [((name,), n) for name, n in _kinds(counters.restarts).items()],
            "dead_letters": [((), sum(counters.dead_letters.values()))],
            "monitor_violations": [((name,), n) for name, n in counters.violations.items()],
            "monitor_resets": [((), counters.monitor_resets)],
            "monitor_broken_claims": [((one,), n) for one, n in counters.broken_claims.items()],
        }
        for name, meaning in CONSTANT.items():
            yield _counter(name, meaning, read[name])


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
    """Sum up by what actors are, without which of several they are."""
    kinds: dict[str, int] = {}
    for actor, count in by_actor.items():
        kind = actor.partition(":")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    return kinds


def _worded(counted: Mapping[Labels, int]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Spell labels as they are shown."""
    for labels, count in counted.items():
        yield tuple(str(label) for label in labels), count


def _counter(name: str, meaning: Meaning, counted: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = CounterMetricFamily(f"{_PREFIX}_{name}", meaning.says, labels=meaning.labels)
    for labels, count in counted:
        family.add_metric(labels, count)
    return family


def _gauge(name: str, meaning: Meaning, reading: Reading) -> Metric:
    family = GaugeMetricFamily(f"{_PREFIX}_{name}", meaning.says, labels=meaning.labels)
    if isinstance(reading, int):
        family.add_metric((), reading)
    else:
        for label, count in reading.items():
            family.add_metric((str(label),), count)
    return family


def _histogram(name: str, meaning: Meaning, timed: Mapping[Labels, Durations]) -> Metric:
    title = f"{_PREFIX}_{name}_seconds"
    family = HistogramMetricFamily(title, meaning.says, labels=meaning.labels)
    for labels, durations in timed.items():
        words = tuple(str(label) for label in labels)
        family.add_metric(words, _buckets(durations), durations.total)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Count up, as Prometheus does: each class holds those before it."""
    ends = [*(str(bound) for bound in BOUNDS), "+Inf"]
    below = 0.0
    buckets: list[tuple[str, float]] = []
    for end, count in zip(ends, durations.classes, strict=True):
        below += count
        buckets.append((end, below))
    return buckets
