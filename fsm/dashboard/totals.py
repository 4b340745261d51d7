"""What the stream of the dashboard says of a node as a whole: sessions, rates, drops, queues."""

from collections import deque
from collections.abc import Mapping
from typing import Final, TypeVar

import attrs

from specs.jsonvalue import Json, JsonObject

T = TypeVar("T")

_SERIES: Final[Mapping[str, str]] = {
    "received": "received.", "sent": "sent.", "refused": "refused.", "dropped": "dropped.",
}  # fmt: skip
"""Prefixes of the figures that are added up, by the name of the sum."""

_LATEST: Final = 2.0**35
"""Seconds since 1970 before which each time is."""

_LEAST: Final = 0.1
"""Seconds between two frames at least, also if the clock of the node was set back."""


@attrs.frozen
class Queue:
    """The messages that wait for one runtime.

    Attributes:
        runtime: Its address; empty: the session of the link is not open yet.
        link: Name of its link; empty: it has none at the moment.
        waiting: Number of messages.
    """

    runtime: str
    link: str
    waiting: int


@attrs.frozen
class NodeTotals:
    """The state of a node as a whole.

    Attributes:
        at: Seconds since 1970 UTC.
        domain: Its domain.
        runtimes: Number of runtimes with a session.
        links: Number of links.
        sessions: Sessions by their state.
        per_second: Messages a second: received, sent, refused and dropped.
        total: The same messages since the start of the node.
        drops: Dropped messages by reason, the most frequent first.
        slowest: The runtimes with the longest queues.
    """

    at: float
    domain: str
    runtimes: int
    links: int
    sessions: Mapping[str, int]
    per_second: Mapping[str, float]
    total: Mapping[str, int]
    drops: Mapping[str, int]
    slowest: list[Queue]


class TotalsReader:
    """Reads the frames of one stream, of which the first has the whole state.

    Args:
        frames: Number of frames over which rates are means.
    """

    def __init__(self, frames: int) -> None:
        self._domain = ""
        self._figures: dict[str, int] = {}
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=frames + 1)

    def read(self, frame: JsonObject) -> NodeTotals:
        """Return the state of the node after the next frame.

        Raises:
            KeyError: The frame lacks something.
            TypeError: A value in it is of another type.
            ValueError: A queue in it has other columns, or its time is none.
        """
        self._domain = _require(str, frame.get("domain", self._domain))
        figures = _require(dict, frame["figures"])
        self._figures.update((name, _require(int, figure)) for name, figure in figures.items())
        total = {name: sum(self._parts(prefix).values()) for name, prefix in _SERIES.items()}
        at = _require(float, frame["at"])
        if not 0 <= at < _LATEST:
            raise ValueError(f"{at} is no time")
        self._samples.append((at, total))
        (begin, before), (end, _) = self._samples[0], self._samples[-1]
        seconds = max(end - begin, _LEAST)
        return NodeTotals(
            at=end,
            domain=self._domain,
            runtimes=_require(int, frame["total"]),
            links=self._figures.get("links", 0),
            sessions=self._parts("sessions."),
            per_second={name: round((total[name] - before[name]) / seconds, 1) for name in total},
            total=total,
            drops=self._parts(_SERIES["dropped"]),
            slowest=[_queue(*_require(list, row)) for row in _require(list, frame["slow"])],
        )

    def _parts(self, prefix: str) -> dict[str, int]:
        """Return the figures with a prefix, by the rest of their names, the largest first."""
        parts = [(n, name) for name, n in self._figures.items() if name.startswith(prefix)]
        return {name.removeprefix(prefix): n for n, name in sorted(parts, reverse=True)}


def _queue(runtime: Json, link: Json, waiting: Json) -> Queue:
    return Queue(_require(str, runtime), _require(str, link), _require(int, waiting))


def _require(kind: type[T], value: Json) -> T:
    """Return a value of the type that it must have.

    Raises:
        TypeError: It is of another.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
