"""The path by which the events of an observed object come (M-37, M-44)."""

from specs.bodies.object import ObjectName
from specs.child import children_addresses
from specs.message import Message, MessageType
from tests.actors.runtime.sync.lone_observers import BOB, URL, Lone

ALL = [f"{URL}/changes", *children_addresses(URL)]


async def observe_and_leave(lone, number):
    lone.wanted(number)
    await lone.run()
    request = Message(number + 1, MessageType.UNSUBSCRIBE, BOB, lone.bus.url, {"resource": URL})
    lone.observed.leave(request, ObjectName(URL))
    await lone.run()


def removed(lone):
    said = [m for m in lone.bus.said if m.type is MessageType.UNSUBSCRIBE]
    return [list(m.body["resources"]) for m in said if "resources" in m.body]


async def test_a_deletion_that_comes_while_the_path_is_closed_is_forgotten_with_it():
    """Whoever observes another object of that address later closes its path as a whole."""
    lone = Lone()
    deleted = Message(9, MessageType.DELETE, f"{URL}/subscription", f"{URL}/changes", {})

    def decide(message):
        if message.type is MessageType.UNSUBSCRIBE and "resources" in message.body:
            lone.observed.objects[URL].on_event(deleted)
        return 200

    lone.bus.decide = decide
    await observe_and_leave(lone, 1)
    assert removed(lone) == [ALL]

    lone.bus.decide = lambda _message: 200
    lone.bus.said.clear()
    await observe_and_leave(lone, 3)
    assert removed(lone) == [ALL]
