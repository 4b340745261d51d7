"""Two honest peers during an attack: every message between them arrives once and in order."""

import json
from collections.abc import Callable

import attrs
import trio

from tests.fuzz import evil
from tests.fuzz.attacker import Breach
from tests.support.node.node_process import DOMAIN, NodeProcess
from tests.support.wire.wire_peer import FORMS, PATIENCE, WirePeer
from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_sync import asked

_PROTECTED = (evil.ALICE, evil.BOB, evil.HA, evil.HB, evil.THING, "domain://", "global://")


@attrs.define
class HonestPair:
    """Alice asks Bob, and publishes what Bob observes.

    Attributes:
        secret: Stands in all they say to each other.
        rounds: How often all of it went well.
        outsiders: How many messages of others reached them.
    """

    node: NodeProcess
    secret: str
    rounds: int = 0
    outsiders: int = 0
    alice: WirePeer | None = None
    bob: WirePeer | None = None
    _asked: int = 0
    _seen: int = 0
    _answered: trio.Event = attrs.field(factory=trio.Event)
    _observed: trio.Event = attrs.field(factory=trio.Event)

    async def come(self) -> None:
        """Have sessions, addresses and an observed object."""
        self.alice = FORMS["link"](self.node.urls, DOMAIN, "alice")
        self.bob = FORMS["session"](self.node.urls, DOMAIN, "bob")
        for peer in (self.alice, self.bob):
            await peer.connect()
            assert (await peer.open())["body"]["code"] == 200
        await self._claim(self.alice, evil.HA, evil.THING)
        await self._claim(self.alice, f"{evil.THING}/subscription")
        await self._claim(self.bob, evil.HB)
        await self._claim(self.bob, f"{evil.THING}/changes")
        assert await asked(self.alice, evil.THING, self.bob, 200) == 200

    async def _claim(self, peer: WirePeer, *addresses: str) -> None:
        answer = await peer.paths("subscribe", *addresses, source=peer.runtime)
        assert answer["body"]["code"] == 200, answer

    async def listen(self, peer: WirePeer, heard: Callable[[dict], object]) -> None:
        """Hear until the attack is over."""
        try:
            while True:
                while not peer.heard:
                    await peer._read(await peer.wire.receive())
                message = peer.heard.popleft()
                if not heard(message):
                    await self._outsider(peer, message)
        except Left as exc:
            raise Breach(f"{peer.name} was thrown out: {exc}") from exc

    async def listen_as_alice(self) -> None:
        await self.listen(self.alice, self._alice_heard)

    async def listen_as_bob(self) -> None:
        while True:
            await self.listen(self.bob, self._bob_heard)

    async def round(self) -> None:
        """Ask and publish once; all of it arrives.

        Raises:
            Breach: Something is missing.
        """
        self._answered, self._observed = trio.Event(), trio.Event()
        value = {"n": self.rounds + 1, "secret": self.secret}
        await self.alice.say("create", evil.HA, evil.HB, value=value)
        await self.alice.say("update", evil.THING, f"{evil.THING}/changes", value=value, version=1)
        with trio.move_on_after(PATIENCE):
            await self._observed.wait()
            request = {"id": self._pending, "from": evil.HA, "to": evil.HB}
            await self.bob.answer(request, value=value)
            await self._answered.wait()
        if not self._answered.is_set():
            reported = f"asked {self._asked}, seen {self._seen}, observed {self._observed.is_set()}"
            raise Breach(f"the honest pair lost a message in round {self.rounds + 1}: {reported}")
        self.rounds += 1

    _pending: object = None

    def _bob_heard(self, message: dict) -> bool:
        value = message["body"].get("value")
        is_true = isinstance(value, dict) and value.get("secret") == self.secret
        if message["from"] == evil.HA and message["to"] == evil.HB and is_true:
            self._asked = self._next(value["n"], self._asked, "request")
            self._pending = message["id"]
            return True
        if message["from"] == evil.THING and is_true:
            self._seen = self._next(value["n"], self._seen, "change")
            self._observed.set()
            return True
        return False

    def _alice_heard(self, message: dict) -> bool:
        value = message["body"].get("value")
        if (
            message["from"] == evil.HB
            and isinstance(value, dict)
            and value.get("n") == self.rounds + 1
        ):
            if self._answered.is_set() or value.get("secret") != self.secret:
                raise Breach(f"an answer came twice, or from nobody: {json.dumps(message)[:300]}")
            self._answered.set()
            return True
        return False

    def _next(self, number: int, before: int, what: str) -> int:
        if number != before + 1:
            raise Breach(f"bob heard {what} {number} after {before}")
        return number

    async def _outsider(self, peer: WirePeer, message: dict) -> None:
        """A message of somebody else: never in the name of one of us, or of the node (I-B10)."""
        self.outsiders += 1
        from_ = (
            message["from"].replace("runtime://", "hyperty-runtime://", 1)
            if message["from"].startswith("runtime://")
            else message["from"]
        )
        if any(from_ == one or from_.startswith((f"{one}/", "domain://", "global://"))
               for one in _PROTECTED):  # fmt: skip
            raise Breach(f"{peer.name} heard a forged message: {json.dumps(message)[:400]}")
        if message["type"].lower() != "response":
            await peer.answer(message, 403)
