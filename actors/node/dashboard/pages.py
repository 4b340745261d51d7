"""The paths that the page of the dashboard reads, all behind the operator's token.

The page itself contains no data, and is served to everybody from the package `web`. The paths only
read, and never show a token, a key or the body of a message.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.http.config import HttpConfig
from actors.http.site import WEB, Feed, Gate, HttpService, Page, Visit, json_page
from actors.kit.counters import BrokenClaim
from actors.kit.trace import user_digest
from actors.node.dashboard.board import Board
from actors.node.dashboard.overview import Wanted
from actors.policy.store import PolicyStore
from fsm.dashboard.fleet import is_over
from fsm.machine_list import MACHINES
from fsm.registry.records import Row
from specs.jsonvalue import Json, JsonObject
from specs.limits.dashboard import STORY_LEASE, STORY_PAGE, TABLE_ROWS

if TYPE_CHECKING:
    from actors.node.dashboard.colleagues import Colleagues


DASHBOARD: Final = "/dashboard"
"""Prefix of the paths; the prefix alone redirects to the page."""

_PAGE: Final = f"{WEB}dashboard/index.html"
_EVENTS: Final = "text/event-stream"
_NANO: Final = 1e9

_RECORD_FIELDS: Final = (
    "descriptor", "dataSchemes", "resources", "name", "schema", "expires", "startingTime",
    "lastModified", "p2pRequester", "p2pHandler", "reporter", "scheme",
)  # fmt: skip
"""Fields of a registry record that are shown: no user, no key, no statement."""


@attrs.frozen
class Sources:
    """The sources of the pages besides the board.

    Attributes:
        records: Returns the records of the domain registry; None: a service behind the node has
            them.
        policies: The policies in force; None: there are none.
        catalogue: Domain of the catalogue that is served; empty: none is.
        is_monitored: Whether the node judges itself.
        colleagues: Ask the other nodes of the domain; None: there are none.
    """

    records: Callable[[], Sequence[Row]] | None
    policies: PolicyStore | None
    catalogue: str
    is_monitored: bool
    colleagues: "Colleagues | None" = None


_View: TypeAlias = Callable[[Visit], Page | Feed | Awaitable[Page]]


class _DashboardService(HttpService):
    """Serve one path to readers that the gate admits."""

    methods: tuple[str, ...] = ("GET",)
    limit = 0

    def __init__(self, gate: Gate, view: _View) -> None:
        self._gate = gate
        self._view = view

    @override
    def body_limit(self, visit: Visit) -> int:
        return 0

    @override
    async def answer(self, visit: Visit) -> Page | Feed:
        await trio.lowlevel.checkpoint()
        refusal = self._gate.refusal(visit)
        if refusal is not None:
            return refusal
        page = self._view(visit)
        return page if isinstance(page, Page | Feed) else await page

    @override
    def refusal_page(self, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Page:
        return json_page(status, {"error": why}, *headers)


async def to_page() -> Page:
    """Redirect from the short path to the page."""
    await trio.lowlevel.checkpoint()
    location = ("location", _PAGE)
    return json_page(HTTPStatus.TEMPORARY_REDIRECT, {"see": _PAGE}, location)


def dashboard_services(
    config: HttpConfig, board: Board, sources: Sources
) -> dict[str, HttpService]:
    """Make the services of the dashboard, by path.

    Args:
        config: The configuration of the listener, with the token of the operator.
        board: The watched state.
        sources: The other sources.
    """
    gate, views = Gate(config.token), _Views(board, sources)
    paths: Mapping[str, _View] = {
        "events": views.events,
        "about": views.about,
        "runtime": views.runtime,
        "story": views.story,
        "refused": views.refusals,
        "elsewhere": views.elsewhere,
        "registrations": views.registrations,
        "policies": views.policies,
        "findings": views.findings,
    }
    return {f"{DASHBOARD}/{name}": _DashboardService(gate, view) for name, view in paths.items()}


class _Views:
    """Make the answers of the paths."""

    def __init__(self, board: Board, sources: Sources) -> None:
        self._board = board
        self._sources = sources

    def events(self, _: Visit) -> Page | Feed:
        """Return the stream of a viewer."""
        viewer = self._board.join()
        if viewer is None:
            return json_page(
                HTTPStatus.SERVICE_UNAVAILABLE,
                {"error": "enough pages watch this node; close one of them"},
                ("retry-after", "5"),
            )
        return Feed(HTTPStatus.OK, viewer, _EVENTS)

    def about(self, _: Visit) -> Page:
        """Return the constant facts: the machines, and the parts of the node."""
        return _ok(
            {
                "domain": self._board.domain,
                "machines": [_machine(name) for name in MACHINES],
                "monitored": self._sources.is_monitored,
                "policies": self._sources.policies is not None,
                "records": self._sources.records is not None,
                "catalogue": self._sources.catalogue,
                "node": "" if self._sources.colleagues is None else self._sources.colleagues.node,
            }
        )

    def runtime(self, visit: Visit) -> Page:
        """Return one runtime: its session, its link, its addresses and paths.

        Without a session, which may end while pages show it, `state` is null.
        """
        exchange, runtime = self._board.exchange, visit.query.get("runtime", "")
        session = None if exchange is None else exchange.sessions.get(runtime)
        if exchange is None or session is None:
            group = self._board.group
            elsewhere = None if group is None else group.home(runtime)
            return _ok({"runtime": runtime, "state": None, "elsewhere": elsewhere})
        port, tables = session.port, exchange.tables
        addresses = tables.allocation.owned_by(runtime)
        paths = tables.subscriptions.resources_of(runtime)
        link: JsonObject | None = None
        if port is not None:
            form = port.acceptor.form.value
            link = {
                "name": port.name, "host": port.host, "form": form, "waiting": port.waiting
            }  # fmt: skip
        user = None if session.identity is None else user_digest(session.identity.user)
        return _ok(
            {
                "runtime": runtime,
                "state": str(session.core.state),
                "stub": session.stub,
                "user": user,
                "link": link,
                "waiting": len(session.core.waiting),
                "addresses": _some(addresses),
                "paths": _some(paths),
                "counts": {"addresses": len(addresses), "paths": len(paths)},
            }
        )

    def story(self, visit: Visit) -> Page:
        """Return the events of one connection, and watch its messages for a while."""
        runtime = visit.query.get("runtime", "")
        after, hop = _number(visit, "after"), _number(visit, "hop")
        is_watched = self._board.tap.watch(runtime)
        events = self._board.fleet.story(runtime, after, STORY_PAGE)
        hops = self._board.watched.hops(runtime, hop)[:STORY_PAGE]
        return _ok(
            {
                "runtime": runtime,
                "watched": is_watched,
                "lease": STORY_LEASE,
                "events": [event.as_json() for event in events],
                "hops": [each.as_json() for each in hops],
            }
        )

    def refusals(self, visit: Visit) -> Page:
        """Return refusals and drops, the newest first; of one message id, if given."""
        wanted = _read_query(visit)
        return _ok(wanted.among(self._board.counters, TABLE_ROWS))

    async def elsewhere(self, visit: Visit) -> Page:
        """Return the refusals and drops of the other nodes, by node; null: no answer."""
        group, colleagues = self._board.group, self._sources.colleagues
        if group is None or colleagues is None:
            return json_page(HTTPStatus.NOT_FOUND, {"error": "this node knows no others"})
        answers = await colleagues.ask(group.others, _read_query(visit))
        return _ok({"nodes": dict[str, Json](answers)})

    def registrations(self, visit: Visit) -> Page:
        """Return records of the domain registry that have a text in their address or runtime."""
        records, text = self._sources.records, visit.query.get("q", "")
        if records is None:
            return json_page(
                HTTPStatus.NOT_FOUND, {"error": "the records are in a service behind this node"}
            )
        rows = records()
        matches = [row for row in rows if text in row.url or text in row.runtime]
        newest = nlargest(TABLE_ROWS, matches, key=lambda row: row.number)
        newest_rows = list[Json](_record(row) for row in newest)
        return _ok({"total": len(rows), "found": len(matches), "records": newest_rows})

    def policies(self, _: Visit) -> Page:
        """Return the policies in force, as they were read."""
        store = self._sources.policies
        if store is None:
            return json_page(HTTPStatus.NOT_FOUND, {"error": "this node has no policy files"})
        book = store.book
        return _ok(
            {
                "version": book.version,
                "combining": str(book.combining),
                "default": str(book.default),
                "sets": [
                    {
                        "id": each.id, "version": each.version, "source": each.source,
                        "rules": each.rules, "document": each.document,
                    }
                    for each in book.sets
                ],
            }
        )  # fmt: skip

    def findings(self, _: Visit) -> Page:
        """Return the claims that the monitor found violated, the newest first."""
        violations = reversed(self._board.counters.findings())
        return _ok({"findings": [_finding(item) for item in violations]})


def _finding(violation: BrokenClaim) -> JsonObject:
    return {
        "at": violation.wall_ns / _NANO,
        "claim": violation.claim,
        "about": violation.about,
        "expected": violation.expected,
    }


def _ok(content: JsonObject) -> Page:
    return json_page(HTTPStatus.OK, content)


def _number(visit: Visit, name: str) -> int:
    text = visit.query.get(name, "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _DIGITS else 0


_DIGITS: Final = 16


def _read_query(visit: Visit) -> Wanted:
    return Wanted(visit.query.get("id", ""), visit.query.get("q", ""))


def _some(texts: Iterable[str]) -> list[Json]:
    return list[Json](sorted(texts)[:TABLE_ROWS])


def _record(row: Row) -> JsonObject:
    value: JsonObject = {name: row.value[name] for name in _RECORD_FIELDS if name in row.value}
    return {
        "url": row.url,
        "runtime": row.runtime,
        "status": str(row.status),
        "touched": row.touched,
        "value": value,
    }


def _machine(name: str) -> JsonObject:
    table = MACHINES[name]
    return {
        "name": name,
        "owner": table.owner,
        "states": [
            {
                "name": state.value,
                "meaning": table.meanings.get(state, ""),
                "over": is_over(name, state.value),
            }
            for state in table.states
        ],
        "edges": [[row.old, row.trigger.value, row.target.value] for row in table.rows],
    }
