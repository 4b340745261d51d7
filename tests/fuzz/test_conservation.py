"""What a node is sent is answered or counted: nothing vanishes (MN-25, I-B12, OBS-06)."""

import urllib.request
from collections import Counter

import pytest
import trio

from specs.message import Message
from tests.fuzz.attacker import SLOTS, Attacker, Breach
from tests.fuzz.mutation import Temper
from tests.fuzz.siege import NodeAttack
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process

OPTIONS = ("--domain", DOMAIN, "--allow-legacy", "--http", "127.0.0.1:0", *UNHURRIED)
BATCHES = 20


def drops(node) -> int:
    """Read how many messages the node has dropped so far, for whatever reason."""
    with urllib.request.urlopen(node.ready["http_url"].rstrip("/") + "/metrics") as answer:  # noqa: S310 - http only
        lines = answer.read().decode().splitlines()
    reported = [line.rpartition(" ") for line in lines if "_dropped" in line and line[0] != "#"]
    return sum(int(float(value)) for name, _, value in reported if "_created" not in name)


def is_quiet(shot) -> bool:
    """Leave out what makes the node speak by itself: a registry's news to nobody are counted."""
    return shot.temper is Temper.CALM and b"registry." not in shot.text


@pytest.mark.parametrize("slot", SLOTS[:3], ids=lambda slot: slot.name)
async def test_an_unanswered_message_is_counted(tmp_path, slot):
    """MN-25, I-B12, OBS-06: of mutated messages of one session, to the last of them."""
    with node_process(tmp_path / "log", *OPTIONS) as node:
        attacker = Attacker(node, slot, b"no secret")
        await attacker.fire(attacker.shots(1, 0)[:1])
        for batch in range(1, BATCHES):
            shots = [one for one in attacker.shots(1, batch) if is_quiet(one)]
            before = await trio.to_thread.run_sync(drops, node)
            await attacker.fire(shots)
            after = await trio.to_thread.run_sync(drops, node)

            items = [item for shot in shots for item in attacker.read(shot)]
            kinds = Counter(
                "bad" if not isinstance(item, Message)
                else "request" if item.is_request else "other"
                for item in items
            )  # fmt: skip
            counted = after - before
            assert kinds["bad"] <= counted + attacker.echoed, kinds
            assert counted + attacker.echoed == kinds["bad"] + kinds["other"], kinds
        await attacker.leave()


# What was found ends everything where it stands, sockets included.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "fault",
    ["no_owner_check", "no_consent_is_required", "refusals_are_said_twice", "a_loss_now_and_then"],
)
async def test_an_attack_finds_a_seeded_fault(tmp_path, fault):
    """F1: the attack test can fail."""
    launcher = ("-m", "tests.conformance.node_mutant", fault)
    with (
        node_process(tmp_path / "log", *OPTIONS, launcher=launcher) as node,
        pytest.raises((Breach, BaseExceptionGroup)) as caught,
    ):
        await NodeAttack(node, 60_000, 1).run()
    assert breaches(caught.value), caught.value


def breaches(error: BaseException) -> list[BaseException]:
    """Return the breaches in a group of errors."""
    inside = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [error] if isinstance(error, Breach) else [b for one in inside for b in breaches(one)]
