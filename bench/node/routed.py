"""What does a message cost that a node routes?

Ordinary case: 500 sessions, each message between another two of them, in bodies as applications
have them, also by a node with policies that is searched as well. Best case: four pairs of sessions
that send to the same ends again and again, so that a node finds in its memory what it has decided.

A figure is CPU of the server for a message, 64 messages on their way. Sessions use upstream's plain
form, or `protofly.v1` with up to 32 messages in a frame. Measured in turn in the same run: the node
with all checks and without limits on rates, a bare relay (`bench.relay`), with `--before` the node
of another checkout, and with `--beside` a server of upstream's plain form that runs already.
"""

import random
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import click
import trio

from bench.peers import Peer, Sockets, at_once, framed, message, polled, prepare_client
from bench.report import Case, Row, interleaved, medians, program, ratio
from bench.servers import (
    DOMAIN,
    UNLIMITED,
    Server,
    open_node_process,
    open_relay,
)

REGISTRY: Final = f"domain://registry.{DOMAIN}"
RULES: Final = 20
PAIRS: Final = 4
_LINES: Final = 32
_OBJECTS: Final = 30
_PAUSE: Final = 1 / 200
_NUMBERS: Final = count(100)
_DICE: Final = random.Random(1)  # noqa: S311 - the same ones in each run


@attrs.frozen
class Work:
    """One kind of load: the messages that are sent, with the target for the node.

    Attributes:
        body: Body of each message.
        is_random: Whether each message is between a random pair of sessions.
        has_via: Whether a message names the stub that it has crossed, as upstream's stubs do.
        searches: Percentage of messages that are replaced by searches of the registry.
        reach: Target: microseconds of the node for a message.
    """

    what: str
    body: dict
    is_random: bool = False
    has_via: bool = False
    searches: int = 0
    reach: float | None = None

    @property
    def case(self) -> Case:
        return Case.ORDINARY if self.is_random else Case.BEST


_SHORT: Final = {"value": "x" * 100}
_LONG: Final = {
    "value": [
        {"name": f"entry {number}", "isDone": False, "at": number * 1.5, "by": "someone"}
        for number in range(_OBJECTS)
    ]
}
SHORT: Final = Work("random pairs, 100 B", _SHORT, is_random=True)
SAME: Final = Work("same pairs, 100 B", _SHORT, reach=12.0)
WORKS: Final = (
    SAME,
    Work("same pairs, 100 B with via", _SHORT, has_via=True),
    SHORT,
    Work("random pairs, 2 kB of 30 objects", _LONG, is_random=True, has_via=True),
)
SEARCHED: Final = attrs.evolve(
    SHORT, what=f"{SHORT.what}, {RULES} rules, a tenth searches", searches=10
)


@attrs.frozen
class Crowd:
    """Sessions that are connected to a server, each with an address of a hyperty."""

    server: Server
    sockets: Sockets
    peers: list[Peer]
    addresses: dict[Peer, str]
    is_plain: bool

    def frames(self, work: Work, messages: int) -> Iterator[tuple[Peer, bytes, int]]:
        """Yield the frames to send: sender, bytes, and number of messages in the frame."""
        some = 1 if self.is_plain or work.is_random else _LINES
        half = min(PAIRS, len(self.peers) // 2)
        for number in range(messages // some):
            if work.is_random:
                sender, receiver = _DICE.sample(self.peers, 2)
            else:
                sender, receiver = self.peers[number % half], self.peers[half + number % half]
            ends = self.addresses[sender], self.addresses[receiver]
            via = {"via": [f"{sender.runtime}/protostub/1"]} if work.has_via else {}
            if _DICE.randrange(100) < work.searches:
                texts = [message(next(_NUMBERS), "read", ends[0], REGISTRY, search_of(receiver))]
            else:
                body = {**work.body, **via}
                texts = [message(next(_NUMBERS), "create", *ends, body) for _ in range(some)]
            yield sender, framed(b"\n".join(texts)), some

    async def cost(self, work: Work, messages: int) -> float:
        """Return microseconds of CPU of the server for a message."""
        return (await self.flow(work, messages))[0]

    async def flow(self, work: Work, messages: int) -> tuple[float, float]:
        """Return microseconds of CPU for a message, and delivered messages per second."""
        frames = list(self.frames(work, messages))
        began, cpu = time.perf_counter(), self.server.cpu()
        await trio.to_thread.run_sync(self.sockets.flow, frames)
        taken = time.perf_counter() - began
        return (self.server.cpu() - cpu) / messages * 1e6, messages / taken


def search_of(peer: Peer) -> dict[str, str]:
    return {"resource": f"user://{DOMAIN}/{peer.runtime.rpartition('/')[2]}"}


@asynccontextmanager
async def open_crowd(
    server: Server,
    sessions: int,
    *,
    is_plain: bool,
    is_registered: bool = False,
    apart: Server | None = None,
    name: str = "r",
) -> AsyncIterator[Crowd]:
    """Connect sessions to a server, which are closed at the end of the context.

    Args:
        server: The server.
        sessions: Number of sessions.
        is_plain: Whether the sessions use upstream's plain form of messages.
        is_registered: Whether each session registers its hyperty.
        apart: Server for the second half of the sessions; None: the same one.
        name: Beginning of the names of the runtimes.
    """
    peers = [Peer(f"{name}{sessions}-{number}") for number in range(sessions)]
    places = dict.fromkeys(peers[: sessions // 2], server) if apart else {}
    addresses: dict[Peer, str] = {}

    async def come(peer: Peer) -> None:
        place = places.get(peer, apart or server).place
        await (peer.be_plain if is_plain else peer.be_ours)(place)
        [addresses[peer]] = await peer.allocate()
        if is_registered:
            value = {
                "url": addresses[peer], "user": search_of(peer)["resource"],
                "runtime": peer.runtime, "hypertyName": "bench", "dataSchemes": ["comm"],
                "resources": ["chat"], "expires": 3600,
            }  # fmt: skip
            await peer.ask("create", f"{peer.runtime}/ua", REGISTRY, {"value": value})

    await at_once(come, peers)
    with polled(peers) as sockets:
        yield Crowd(server, sockets, peers, addresses, is_plain)
    for peer in peers:
        peer.close()


def rules(number: int) -> str:
    """Return the text of a policy file with a number of rules, of which the last one applies."""
    conditions = (
        'srcSPDomain = { equals = "d%d.example" }',
        'msgTo = { like = "comm://*/%d/*" }',
        'srcIDPDomain = { equals = "idp%d.example" }, actionType = { in = ["delete", "update"] }',
    )
    rows = "\n".join(
        f'[[policies.rules]]\nid = "r{index}"\neffect = "deny"\n'
        f"condition = {{ {conditions[index % len(conditions)] % index} }}"
        for index in range(number - 1)
    )
    head = 'id = "s"\n[[policies]]\nid = "p"\nruleCombiningAlgorithm = "firstApplicable"\n'
    return f'{head}{rows}\n[[policies.rules]]\nid = "last"\neffect = "permit"\n'


async def _by_turns(
    crowds: Mapping[str, Crowd], work: Work, messages: int, rounds: int
) -> list[Row]:
    """Measure one kind of load at several servers in turn, after a round without measurement."""
    for crowd in crowds.values():
        await crowd.cost(work, messages // 4 + _LINES)
    works = {name: partial(crowd.cost, work, messages) for name, crowd in crowds.items()}
    taken = await interleaved(rounds, works)
    rows = medians(work.what, taken, "us of CPU", work.case, work.reach)
    for name in [name for name in taken if "node" not in name]:
        times = ratio(taken["node"], taken[name])
        rows.append(Row(f"{work.what}, node in times of {name}", times, "x", work.case))
    return rows


async def _latency(crowds: Mapping[str, Crowd], messages: int, rounds: int) -> list[Row]:
    """Measure the time of single messages at several servers, at 200 messages a second."""
    works = {name: partial(_alone, crowds[name], messages) for name in ("node", "relay")}
    taken = await interleaved(rounds, works)
    what = "200 messages a second, median time"
    times = ratio(taken["node"], taken["relay"])
    row = Row(f"{what}, node in times of relay", times, "x", reach=2.5)
    return [*medians(what, taken, "ms"), row]


async def _alone(crowd: Crowd, messages: int) -> float:
    """Return the median time in milliseconds until a single message is delivered."""
    frames = list(crowd.frames(SHORT, messages))

    def send() -> list[float]:
        taken = []
        for frame in frames:
            time.sleep(_PAUSE)
            sent = time.perf_counter()
            crowd.sockets.flow([frame])
            taken.append(time.perf_counter() - sent)
        return taken

    return statistics.median(await trio.to_thread.run_sync(send)) * 1e3


@asynccontextmanager
async def _open_crowds(servers: Mapping[str, Server], sessions: int) -> AsyncIterator[dict]:
    """Connect sessions to all servers, and to the node in both forms of messages."""
    async with AsyncExitStack() as opened:
        crowds = {
            name: await opened.enter_async_context(open_crowd(server, sessions, is_plain=True))
            for name, server in servers.items()
        }
        ours = open_crowd(servers["node"], sessions, is_plain=False, name="v")
        yield crowds | {"node by protofly.v1": await opened.enter_async_context(ours)}


async def measure(
    messages: int, rounds: int, sessions: int, before: str | None, beside: str | None
) -> list[Row]:
    """Measure all kinds of load at all servers."""
    prepare_client()
    rows: list[Row] = []
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        opening = {"node": open_node_process(), "relay": open_relay()}
        if before is not None:
            opening["before"] = open_node_process(code=Path(before))
        servers = {name: await opened.enter_async_context(opening[name]) for name in opening}
        if beside is not None:
            pid, port = map(int, beside.split(":"))
            servers["other"] = Server(pid, ("127.0.0.1", port))
        for is_random, size in ((False, 2 * PAIRS), (True, sessions)):
            async with _open_crowds(servers, size) as crowds:
                for work in WORKS:
                    if work.is_random is is_random:
                        rows += await _by_turns(crowds, work, messages, rounds)
                if is_random:
                    rows += await _latency(crowds, messages // 40, rounds)
        file = folder / "rules.toml"
        file.write_text(rules(RULES))
        judging = open_node_process(*UNLIMITED, "--policy", str(file))
        node = await opened.enter_async_context(judging)
        crowd = open_crowd(node, sessions, is_plain=True, is_registered=True)
        crowds = {"node": await opened.enter_async_context(crowd)}
        return rows + await _by_turns(crowds, SEARCHED, messages, rounds)


main = program(
    measure,
    {"messages": (5000, 320), "rounds": (3, 1), "sessions": (500, 20)},
    click.Option(["--before"], metavar="FOLDER", help="Another checkout, whose node is measured."),
    click.Option(["--beside"], metavar="PID:PORT", help="A server that runs here."),
)

if __name__ == "__main__":
    main()
