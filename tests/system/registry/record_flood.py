"""Peers that register and change records as fast as they can, and know what was acknowledged."""

from contextlib import suppress

import attrs
import trio

from specs.message import Message, MessageType
from tests.support.node.node_peer import DR, Peer
from tests.support.trace.records import record
from transports.codec import decode_frame, encode
from transports.errors import LinkError
from transports.link import Kind, Network

WINDOW = 64
"""Requests one peer has open at once."""


@attrs.define
class Ledger:
    """What was asked for each record, and what the registry said it had done.

    Attributes:
        sent: The highest version sent, by URL.
        acknowledged: The highest version answered with 200.
    """

    sent: dict[str, int] = attrs.field(factory=dict)
    acknowledged: dict[str, int] = attrs.field(factory=dict)
    count: int = 0


async def flood(network: Network, url: str, runtime: str, ledger: Ledger) -> None:
    """Register and change records until the link breaks."""
    with suppress(LinkError):
        link = await network.dial(Kind.WEBSOCKET, url)
        try:
            peer = await Peer(link, runtime).open()
            urls = await peer.allocate(number=WINDOW)
            await _keep_on(peer, urls, ledger)
        finally:
            with trio.move_on_after(1, shield=True):
                await link.aclose()


async def _keep_on(peer: Peer, urls: list[str], ledger: Ledger) -> None:
    open_ = {}
    number = 10_000
    for url in urls:
        number += 1
        open_[number] = url, 1
        await _send(peer, number, url, 1, ledger)
    while True:
        for answer in decode_frame(await peer.link.receive()):
            if answer.id not in open_:
                continue
            url, version = open_.pop(answer.id)
            assert answer.code == 200, answer.body
            ledger.acknowledged[url] = max(version, ledger.acknowledged.get(url, 0))
            ledger.count += 1
            number += 1
            open_[number] = url, version + 1
            await _send(peer, number, url, version + 1, ledger)


async def _send(peer: Peer, number: int, url: str, version: int, ledger: Ledger) -> None:
    ledger.sent[url] = version
    from_ = f"{peer.runtime}/registry"
    body = {"value": record(url, peer.runtime, version=version)}
    if version == 1:
        message = Message(number, MessageType.CREATE, from_, DR, body)
    else:
        body = {"resource": url, "attribute": "version", "value": version}
        message = Message(number, MessageType.UPDATE, from_, DR, body)
    await peer.link.send(encode(message))
