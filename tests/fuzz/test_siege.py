"""RELIABILITY F1: mutated frames against a running node; `make soak` shoots more of them."""

import os

import pytest

from tests.fuzz.attacker import SLOTS, Attacker
from tests.fuzz.mutation import BATCH_OF_CI, SEED_OF_CI
from tests.fuzz.siege import NodeAttack, check
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process

LEGACY = ("--domain", DOMAIN, "--allow-legacy")


@pytest.mark.timeout(280)
@pytest.mark.parametrize(
    ("options", "frames"),
    [(UNHURRIED, BATCH_OF_CI), (("--handshake-rate", "none"), 4_000)],
    ids=["as fast as it goes", "with the limits as they are"],
)
async def test_mutated_frames_change_nothing_between_honest_peers(
    tmp_path, options, frames, capsys
):
    """MN-25, CON-05, I-B9, I-B10, I-A3, S1, S3: no crash, no hang, no forged or stray message.

    Refused requests are answered once; memory stays; what honest peers send each other
    arrives exactly once and in order.
    """
    seed = int(os.environ.get("FUZZ_SEED", SEED_OF_CI))
    with node_process(tmp_path / "log", *LEGACY, *options) as node:
        report = await NodeAttack(node, frames, seed).run()
        with capsys.disabled():
            print(f"\n  {report}")  # noqa: T201 - figures for whoever looks
        check(report, node)
        assert node.stop() == 0


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.name)
def test_a_batch_is_the_same_whenever_it_is_made(slot):
    """A failure is found again by its seed."""
    one, again = (Attacker(None, slot, b"") for _ in range(2))

    assert one.shots(7, 11) == again.shots(7, 11)
    assert one.shots(7, 11) != one.shots(7, 12) != one.shots(8, 12)
