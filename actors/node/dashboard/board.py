"""The stream for the viewers of a node: one snapshot, then frames that all viewers share.

No task makes frames: the first viewer that needs the next frame makes it, so that nothing runs
without a viewer. A frame is encoded once. A viewer that is too far behind is dropped.
"""

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import orjson
import trio
from typing_extensions import override

from actors.http.site import Parts
from actors.kit.counters import Counters, Gauge, Tally
from actors.node.dashboard.tap import Tap, wall
from actors.node.session.exchange import Exchange
from fsm.dashboard.fleet import Fleet, Watched
from specs.jsonvalue import Json, JsonObject
from specs.limits.dashboard import FRAME_INTERVAL, FRAMES_KEPT, SLOW_ROWS, VIEWERS
from specs.limits.protocol import HTTP_REQUEST_TIMEOUT

if TYPE_CHECKING:
    from actors.node.dashboard.overview import Overview


class ViewerEnd(StrEnum):
    """Reasons of the end of a viewer, or of its refusal."""

    LEFT = "left"
    SLOW = "slow"
    FULL = "full"


def _event(name: str, number: int, content: JsonObject) -> bytes:
    data = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, name.encode(), data)


class Board:
    """The dashboard of one node, without its pages.

    Args:
        domain: Domain of the node.
        fleet: State of the runtimes, from the trace.
        tap: Feeds the fleet.
        watched: Messages of connections that an operator watches.
        counters: Counters of the node.

    Attributes:
        exchange: Sessions and links of the running bus; None: no bus runs yet.
        group: The group of the node; None: it is the only node of its domain, or no bus runs yet.
    """

    def __init__(
        self, domain: str, fleet: Fleet, tap: Tap, watched: Watched, counters: Counters
    ) -> None:
        self.domain: Final = domain
        self.fleet: Final = fleet
        self.tap: Final = tap
        self.watched: Final = watched
        self.counters: Final = counters
        self.exchange: Exchange | None = None
        self.group: Overview | None = None
        self._viewers = 0
        self._number = 0
        self._due = 0.0
        self._epoch = 0.0
        self._figures: dict[str, int] = {}
        self._nodes: dict[str, JsonObject] = {}
        self._frames: deque[bytes] = deque(maxlen=FRAMES_KEPT)
        counters.watch(Gauge.VIEWERS, lambda: self._viewers)

    def watch(self, exchange: Exchange, group: "Overview | None") -> None:
        """Watch a bus of the node, instead of the one before a crash.

        Args:
            exchange: Sessions and links of the bus.
            group: The group of the node; None: it is the only node of its domain.
        """
        self.exchange = exchange
        self.group = group
        self.tap.owner_of = exchange.tables.routing.owner_of

    def take_restored(self, exchange: Exchange) -> None:
        """Add the sessions that were restored from a state file.

        Args:
            exchange: The sessions.
        """
        for runtime, session in exchange.sessions.items():
            self.fleet.restore_session(runtime, str(session.core.state), wall())

    # ---- viewers

    def join(self) -> "Viewer | None":
        """Return a new viewer; None: there are too many."""
        if self._viewers >= VIEWERS:
            self.counters.count(Tally.VIEWERS, ViewerEnd.FULL)
            return None
        if not self._viewers:
            self.fleet.is_watched = True
            self.fleet.news()
            self._frames.clear()
            self._epoch = wall() - trio.current_time()
            self._figures = self.counters.figures()
            self._nodes = self._group_nodes(self._figures)
            self._due = trio.current_time() + FRAME_INTERVAL
        self._viewers += 1
        return Viewer(self)

    def leave(self, why: ViewerEnd) -> None:
        """Remove a viewer.

        Args:
            why: The reason.
        """
        self.counters.count(Tally.VIEWERS, why)
        self._viewers -= 1
        self.fleet.is_watched = self._viewers > 0

    def whole(self) -> tuple[int, bytes]:
        """Return the number of the last frame, and a snapshot of the whole state."""
        now = self.counters.figures()
        content = {
            "at": wall(),
            "domain": self.domain,
            "interval": FRAME_INTERVAL,
            **self.fleet.whole(),
            "figures": dict[str, Json](now),
            "slow": self._slow(),
        }
        if self.group is not None:
            content["nodes"] = dict[str, Json](self._group_nodes(now))
        return self._number, _event("whole", self._number, content)

    async def after(self, number: int) -> tuple[int, list[bytes]]:
        """Wait for the next frames; return the last number, and no frames if too many were missed.

        Args:
            number: Number of the last frame that the viewer has.
        """
        if number == self._number:
            await trio.sleep_until(self._due)
            if number == self._number:
                self._make()
        missing = self._number - number
        frames = list(self._frames)[-missing:] if missing <= len(self._frames) else []
        return self._number, frames

    def _make(self) -> None:
        """Make the next frame, with the changes since the last one."""
        now = self.counters.figures()
        before, self._figures = self._figures, now
        changed: JsonObject = {each: n for each, n in now.items() if before.get(each) != n}
        content = {"at": wall(), **self.fleet.news(), "figures": changed, "slow": self._slow()}
        if self.group is not None:
            content["nodes"] = self._changed_nodes(now)
        self._number += 1
        self._due = trio.current_time() + FRAME_INTERVAL
        self._frames.append(_event("news", self._number, content))

    def _group_nodes(self, now: dict[str, int]) -> dict[str, JsonObject]:
        """Return the nodes of the group; none if this is the only node."""
        return {} if self.group is None else self.group.nodes(now, self._epoch)

    def _changed_nodes(self, now: dict[str, int]) -> JsonObject:
        """Return the nodes that have changed; null for a node that is no longer known."""
        before, self._nodes = self._nodes, self._group_nodes(now)
        changed: JsonObject = {
            node: row for node, row in self._nodes.items() if before.get(node) != row
        }
        return changed | dict.fromkeys(before.keys() - self._nodes.keys())

    def _slow(self) -> list[Json]:
        """Return the consumers with the longest queues."""
        if self.exchange is None:
            return []
        ports, sessions = self.exchange.ports.values(), self.exchange.sessions.items()
        waiting = [(port.waiting, port.runtime or "", port.name) for port in ports]
        waiting += [
            (len(session.core.waiting), name, "")
            for name, session in sessions
            if session.port is None
        ]
        most = sorted((each for each in waiting if each[0]), reverse=True)[:SLOW_ROWS]
        return [[runtime, link, count] for count, runtime, link in most]


class Viewer(Parts):
    """The stream of server-sent events of one watching page."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._number: int | None = None
        self._end: ViewerEnd | None = None
        self._is_closed = False
        self._given_at = 0.0

    @override
    async def next(self) -> bytes | None:
        if self._end is not None:
            return None
        if self._number is None:
            await trio.lowlevel.checkpoint()
            self._number, first = self._board.whole()
            self._given_at = trio.current_time()
            return first
        self._number, frames = await self._board.after(self._number)
        self._given_at = trio.current_time()
        if not frames:
            self._end = ViewerEnd.SLOW
            return b"event: end\ndata: slow\n\n"
        return b"".join(frames)

    @override
    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._end is None:
            is_slow = trio.current_time() - self._given_at >= HTTP_REQUEST_TIMEOUT
            self._end = ViewerEnd.SLOW if is_slow else ViewerEnd.LEFT
        self._board.leave(self._end)
