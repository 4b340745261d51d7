"""One who means harm: a runtime with or without a session, by one of the wire forms."""

import json
from collections import Counter
from random import Random
from typing import Self

import attrs
import trio

from specs.message import Message
from tests.fuzz import evil
from tests.fuzz.mutation import Mutator, Shot, Temper
from tests.support.node.node_process import DOMAIN, NodeProcess
from tests.support.wire.wire_peer import FORMS, PATIENCE, WirePeer
from tests.support.wire.wire_socket import Left, Refused
from transports.codec import decode_frame, decode_items

BATCH = 64
_PROBE = 10**9
_MANY = 10**12


class Breach(Exception):  # noqa: N818 - the node's fault, named as what it is
    """Something happened that must not."""


@attrs.frozen
class Slot:
    """Who attacks.

    Attributes:
        has_session: Whether it opens a session first.
    """

    form: str
    has_session: bool

    @property
    def name(self) -> str:
        return f"{self.form}-{'in' if self.has_session else 'out'}"


SLOTS = tuple(Slot(form, has_session) for has_session in (True, False) for form in FORMS)


@attrs.define
class Attacker:
    """Shoots batches over one link at a time, and comes back when it is thrown out.

    Attributes:
        secret: What no message to it may ever contain.
        answers: How often each id of the batch under way was answered for good.
        echoed: How many events it heard meanwhile; a new child is a request.
        left: How links ended, by code.
    """

    node: NodeProcess
    slot: Slot
    secret: bytes
    peer: WirePeer | None = None
    lives: int = 0
    answers: Counter[str] = attrs.field(factory=Counter)
    echoed: int = 0
    left: Counter[int | None] = attrs.field(factory=Counter)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.peer is not None and self.peer.wire is not None:
            self.peer.wire.hang_up()

    @property
    def runtime(self) -> str:
        scheme = FORMS[self.slot.form].scheme
        return f"{scheme}://{DOMAIN}/{self.name}"

    @property
    def name(self) -> str:
        return f"x-{self.slot.name}-{self.lives}"

    def shots(self, seed: int, batch: int) -> list[Shot]:
        """Return the frames of a batch: the same for the same seed, slot and number."""
        dice = Random(f"{seed}:{self.slot.name}:{batch}")  # noqa: S311 - chance, no secret
        mutator = Mutator(dice, self.runtime, self._first_id(batch))
        wildness = dice.choice((0.0, 0.0, 0.0, 0.1))
        shots = []
        for _ in range(BATCH):
            shots.append(mutator.shot(wildness))
            if shots[-1].temper is Temper.LAST:
                break
        return shots

    def _first_id(self, batch: int) -> int:
        """Ids of different attackers are different, so that nobody answers in another's name."""
        return (1 + SLOTS.index(self.slot)) * _MANY + batch * 1000

    def _is_own(self, id_: str) -> bool:
        """Say whether nobody but this attacker says such ids."""
        return id_.isdigit() and int(id_) // _MANY == 1 + SLOTS.index(self.slot)

    async def fire(self, shots: list[Shot]) -> None:
        """Shoot, and see to it that everything is answered as it should be.

        Raises:
            Breach: It is not.
        """
        self.answers.clear()
        self.echoed = 0
        try:
            with trio.fail_after(2 * PATIENCE):
                if self.peer is None:
                    await self._come()
                await self.peer.wire.send_bytes(b"".join(shot.raw for shot in shots))
                await self._aftermath(shots)
        except (Left, Refused, trio.BrokenResourceError) as exc:
            self.left[getattr(exc, "code", None)] += 1
            await self.leave()
        except trio.TooSlowError as exc:
            raise Breach(
                f"{self.slot.name}: no answer in time to {self.peer and self.peer.heard}"
            ) from exc

    async def _aftermath(self, shots: list[Shot]) -> None:
        if shots[-1].temper is Temper.LAST:
            await self.peer.wire.stream.send_eof()
            await self._read_on()
        await self._probe()
        await self._hear_all({str(_PROBE)})
        if all(shot.temper is Temper.CALM for shot in shots) and self.slot.has_session:
            await self._hear_all(self._due(shots))
        self._count(shots)

    # ---- coming and going

    async def _come(self) -> None:
        self.peer = FORMS[self.slot.form](self.node.urls, DOMAIN, self.name)
        if not self.slot.has_session and self.slot.form == "plain":
            self.peer.runtime = "nonsense"
        await self.peer.connect()
        if self.slot.has_session:
            await self._open()

    async def _open(self) -> None:
        opened = await self.peer.open()
        if opened is not None and opened["body"]["code"] != 200:
            # Its token went with a link that was lost: nobody but its owner has it.
            self.lives += 1
            await self.leave()
            await self._come()
            return
        for scheme in ("hyperty", "comm"):
            own = f"{scheme}://{DOMAIN}/own-{self.name}"
            await self.peer.paths("subscribe", own, source=self.peer.runtime)

    async def leave(self) -> None:
        """Be gone; a session with a token is left behind, and waits until it expires."""
        if self.peer is not None and self.peer.wire is not None:
            await self.peer.vanish()
        if self.slot.has_session and self.peer is not None and self.peer.token:
            await self._close_session(self.peer)
        self.peer = None

    async def _close_session(self, gone: WirePeer) -> None:
        """Come back once more and close the session in order, if it is still there."""
        again = FORMS[self.slot.form](self.node.urls, DOMAIN, gone.name)
        with trio.move_on_after(PATIENCE):
            await again.connect()
            try:
                if (await again.reopen(gone.token))["body"]["code"] == 200:
                    await again.close()
            except Left:
                pass
            await again.vanish()

    # ---- answers

    async def _probe(self) -> None:
        peer, id_ = self.peer, self.peer.shown_id(_PROBE)
        if self.slot.form == "session" and not self.slot.has_session:
            frame = {"id": id_, "type": "dance", "from": peer.runtime, "to": "mn:/session"}
            await peer.raw(json.dumps(frame).encode())
        else:
            await peer.say_as(id_, "read", peer.part("probe"), evil.NOWHERE, {})

    async def _hear_all(self, due: set[str]) -> None:
        missing = set(due) - self.answers.keys()
        while missing:
            with trio.move_on_after(PATIENCE) as waiting:
                self._take(await self.peer.wire.receive())
            if waiting.cancelled_caught:
                raise Breach(f"{self.slot.name}: never answered: {sorted(missing)[:5]}")
            missing -= self.answers.keys()

    async def _read_on(self) -> None:
        while True:
            self._take(await self.peer.wire.receive())

    def _take(self, text: bytes) -> None:
        if self.secret in text:
            raise Breach(f"{self.slot.name} heard what was not for it: {text[:300]!r}")
        for line in text.split(b"\n"):
            message = json.loads(line)
            if str(message["type"]).lower() == "response" and message["body"]["code"] >= 200:
                self.answers[str(message["id"])] += 1
            elif message["type"].lower() != "create" or "/children/" not in message["to"]:
                self.echoed += 1

    def _count(self, shots: list[Shot]) -> None:
        """Nothing is answered twice (MN-25)."""
        asked = Counter({str(_PROBE): 1})
        for shot in shots:
            for item in self.read(shot):
                asked[_id_of(item)] += 1
        for id_, times in self.answers.items():
            if self._is_own(id_) and 0 < asked[id_] < times:
                reported = [shot.text for shot in shots if shot.text and id_.encode() in shot.text]
                raise Breach(f"{self.slot.name}: {id_} is answered {times} times: {reported}")

    def _due(self, shots: list[Shot]) -> set[str]:
        """Return the ids that must be answered: those of requests to who always answers."""
        return {
            str(item.id)
            for shot in shots
            for item in self.read(shot)
            if isinstance(item, Message) and item.is_request and item.to in _ANSWERING
        }

    def read(self, shot: Shot) -> list[object]:
        if shot.text is None:
            return []
        if self.slot.form == "link":
            return list(decode_frame(shot.text))
        return list(decode_items(shot.text))


_ANSWERING = frozenset({evil.HA, evil.HB, *evil.PARTS, f"domain://registry.{DOMAIN}"})
"""Honest peers, and parts of the node, also such as there are not."""


def _id_of(item: object) -> str:
    message = item if isinstance(item, Message) else item.answer
    return "" if message is None else str(message.id)
