"""An attack on a node: attackers of all forms, honest peers, and checks of the node."""

import secrets
import time
from collections import Counter

import attrs
import trio

from tests.fuzz.attacker import BATCH, SLOTS, Attacker, Breach, Slot
from tests.fuzz.honest import HonestPair
from tests.support.node.node_process import NodeProcess

GROWTH = 20 * 2**20
"""Bytes a node may have grown by when it is over (RELIABILITY F1)."""


@attrs.frozen
class Report:
    """The result of an attack.

    Attributes:
        seconds: How long it took.
        node_seconds: How much of a processor the node took.
        grown: Bytes the node has more than after the first tenth.
        left: How links ended, by close code.
    """

    frames: int
    seconds: float
    node_seconds: float
    resident: int
    grown: int
    rounds: int
    outsiders: int
    left: Counter[int | None]

    def __str__(self) -> str:
        return (
            f"{self.frames} frames in {self.seconds:.1f} s ({self.frames / self.seconds:.0f}/s, "
            f"{1e6 * self.node_seconds / self.frames:.0f} us of the node each); "
            f"{self.resident / 2**20:.1f} MB, {self.grown / 2**20:+.1f} MB; "
            f"{self.rounds} rounds of the honest pair, {self.outsiders} messages of others to it; "
            f"links ended {dict(self.left)}"
        )


@attrs.define
class NodeAttack:
    """Sends `frames` frames made from `seed` to a node."""

    node: NodeProcess
    frames: int
    seed: int
    slots: tuple[Slot, ...] = SLOTS
    first_batch: int = 0
    fired: int = 0
    warm: int = 0
    left: Counter[int | None] = attrs.field(factory=Counter)

    async def run(self) -> Report:
        """Attack the node.

        Raises:
            Breach: The node did what it must not; the batch that was under way stands in it.
        """
        secret = secrets.token_hex(16)
        pair = HonestPair(self.node, secret)
        await pair.come()
        begun, busy = time.perf_counter(), self.node.processor_seconds
        try:
            async with trio.open_nursery() as listening:
                listening.start_soon(pair.listen_as_alice)
                listening.start_soon(pair.listen_as_bob)
                await self._storm(pair, secret)
                listening.cancel_scope.cancel()
        finally:
            for peer in (pair.alice, pair.bob):
                peer.wire.hang_up()
        seconds = time.perf_counter() - begun
        self._check_health()
        resident = self.node.resident
        return Report(
            self.fired, seconds, self.node.processor_seconds - busy, resident,
            resident - self.warm, pair.rounds, pair.outsiders, self.left,
        )  # fmt: skip

    async def _storm(self, pair: HonestPair, secret: str) -> None:
        turns_in, turns_out = trio.open_memory_channel[None](len(self.slots))
        async with trio.open_nursery() as attackers:
            for slot in self.slots:
                attackers.start_soon(self._attack, slot, secret, turns_in.clone())
            await turns_in.aclose()
            async for _ in turns_out:
                await pair.round()

    async def _attack(self, slot: Slot, secret: str, turns: trio.MemorySendChannel[None]) -> None:
        attacker = Attacker(self.node, slot, secret.encode())
        batch = self.first_batch
        async with turns, attacker:
            while self.fired < self.frames:
                shots = attacker.shots(self.seed, batch)
                self.fired += len(shots)
                try:
                    await attacker.fire(shots)
                    self._check_health()
                except Breach as exc:
                    where = f"--seed {self.seed} --only {slot.name} --batch {batch}"
                    raise Breach(f"{exc}\n  again: python -m tests.fuzz {where}") from exc
                if not self.warm and self.fired > self.frames / 10:
                    self.warm = self.node.resident
                batch += 1
                await turns.send(None)
        await attacker.leave()
        self.left += attacker.left

    def _check_health(self) -> None:
        if not self.node.is_alive:
            raise Breach(f"the node ended with {self.node.process.returncode}")


def check(report: Report, node: NodeProcess) -> None:
    """Check the result of an attack."""
    assert node.complaints == [], "\n".join(node.complaints[:20])
    assert report.grown <= GROWTH, str(report)
    assert report.rounds >= report.frames / BATCH / 20, str(report)
