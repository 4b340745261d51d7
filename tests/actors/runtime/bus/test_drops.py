"""The drop ledger of a runtime (OBS-06): each message not delivered has one reason."""

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.log import Level, configure_log
from actors.kit.supervision.actor import Delivery
from actors.runtime.bus.message_bus import DeadMail
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.mini_bus import MiniBus
from specs.limits.bus import DROPS_KEPT
from specs.message import MessageType
from specs.reply_code import DropReason
from tests.actors.runtime.bus.deaf import deaf
from tests.support.log import captured_log
from tests.support.runtime.domain import DOMAIN, open_domain
from tests.support.runtime.runtime_parts import open_bus
from tests.support.wire.wire import A, B, answer, ask, event


@pytest.fixture
def talkative():
    """A log that speaks of what is no trouble, too."""
    configure_log(Level.INFO)
    yield
    configure_log()


async def test_a_drop_is_reported_with_its_ends_its_reason_and_where_but_not_what_it_said():
    """OBS-06."""
    async with open_bus() as world:
        await world.component(B)
        await world.port(B).post(answer(ask(7)))
        await world.settle()
        ledger = world.counters.ledger()
    (drop,) = ledger.last
    assert (drop.reason, drop.where) == (DropReason.UNMATCHED, "bus")
    assert (drop.id, drop.type, drop.from_, drop.to) == (7, MessageType.RESPONSE, B, A)
    assert "body" not in {field.name for field in attrs.fields(type(drop))}
    assert (ledger.total, dict(ledger.counts)) == (1, {DropReason.UNMATCHED: 1})


def test_all_are_counted_and_the_last_are_kept():
    """OBS-06: the ledger does not grow."""
    counters = Counters()
    for number in range(1, DROPS_KEPT + 11):
        counters.drop(DropReason.LOOP, ask(number), "bus")
    ledger = counters.ledger()
    assert ledger.total == DROPS_KEPT + 10
    assert [drop.id for drop in ledger.last] == list(range(11, DROPS_KEPT + 11))


def test_an_invalid_message_is_only_counted():
    """OBS-06."""
    counters = Counters()
    counters.drop(DropReason.MALFORMED)
    assert (counters.ledger().total, counters.ledger().last) == (1, ())


def test_a_ledger_stays_as_it_was_when_it_was_asked_for():
    """OBS-06."""
    counters = Counters()
    before = counters.ledger()
    counters.drop(DropReason.LOOP, ask(1), "bus")
    assert (before.total, before.last) == (0, ())


async def test_a_copy_for_a_full_receiver_among_several_is_a_drop(autojump_clock):
    """BUS-03, OBS-06: the others get theirs."""
    changes = f"{A}/changes"
    async with open_bus() as world:
        alice = await world.component(A)
        await deaf(world, B)
        for follower in (A, B):
            world.agent.follow(changes, follower)
        for number in range(1, 5):
            await world.port(A).post(event(number, to=changes))
            await world.settle()
        assert [message.id for message in world.heard_by(alice)] == [1, 2, 3, 4]
        ledger = world.counters.ledger()
        assert [(drop.id, drop.reason) for drop in ledger.last] == [
            (3, DropReason.OVERFLOW), (4, DropReason.OVERFLOW),
        ]  # fmt: skip
        await world.supervisor.stop_child(B)


@pytest.mark.parametrize("is_closed", [False, True])
async def test_what_a_sandbox_has_no_room_for_is_refused_or_counted(is_closed):
    """OBS-06: what waited for the first listener; if the runtime has closed meanwhile, too."""
    async with open_bus() as world:
        await world.component(A)
        mini_bus = MiniBus("minibus", world.hops("minibus"), world.bus.hops)
        world.agent.admit(B, Origin.LOCAL, mini_bus)
        answers = []
        if is_closed:
            await world.port(A).post(ask(2))
            world.bus.close()
            world.bus.overflow(mini_bus.add(B, _Full(), "test"))
        else:
            async with trio.open_nursery() as nursery:

                async def request():
                    answers.append(await world.port(A).request(ask(2)))

                nursery.start_soon(request)
                await world.settle()
                world.bus.overflow(mini_bus.add(B, _Full(), "test"))
        assert [one.code for one in answers] == ([] if is_closed else [503])
        drops = [drop.reason for drop in world.counters.ledger().last]
        assert drops == ([DropReason.OVERFLOW] if is_closed else [])


class _Full:
    name = "full"
    is_gone = False
    waiting = 0

    def try_tell(self, message):
        return False


async def test_an_unanswerable_message_for_an_ended_actor_is_a_drop():
    """OBS-06: when the bus is gone, too."""
    counters = Counters()
    async with open_bus() as world:
        mail = DeadMail(world.bus, counters)
    delivery = Delivery(event(1), A)
    mail("bob", delivery)
    assert [(drop.id, drop.where) for drop in counters.ledger().last] == [(1, "bob")]


async def test_a_runtime_and_a_node_show_their_drops(autojump_clock):
    """OBS-06: an event to nobody ends where it is known that nobody is there."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        port = one.hyperty._participant.port
        ends = f"{one.runtime.url}/changes", f"hyperty://{DOMAIN}/nobody/changes"
        for number, to in enumerate(ends, start=10**6):
            await port.post(event(number, one.address, to))
        await trio.sleep(1)
        here, there = one.runtime.counters.ledger().last[-1], domain.node.drops().last[-1]
    assert (here.to, here.reason, here.where) == (ends[0], DropReason.NO_TARGET, "bus")
    assert (there.to, there.reason) == (ends[1], DropReason.NO_TARGET)


async def test_a_runtime_says_at_its_end_what_it_did_not_deliver(autojump_clock, talkative):
    """OBS-06: to its operator, by reasons."""
    with captured_log() as log:
        async with open_domain("ra") as domain:
            one = domain["ra"]
            lost = event(10**6, one.address, f"{one.runtime.url}/changes")
            await one.hyperty._participant.port.post(lost)
    (line,) = [line for line in log if line["event"] == "messages not delivered"]
    assert (line["runtime"], line["no-target"]) == ("ra", line["total"])
