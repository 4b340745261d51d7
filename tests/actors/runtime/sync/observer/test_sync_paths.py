"""What is known of the path of an object that is gone: SYN-20, M-44, M-47."""

from types import SimpleNamespace

from actors.runtime.sync.observer_routes import ObserverPaths
from specs.child import children_addresses
from specs.message import Message, MessageType

URL, RUNTIME = "comm://a.ex/o", "hyperty-runtime://b.ex/rb"
ALL = [f"{URL}/changes", *children_addresses(URL)]


class Bus:
    """Answers each request, and remembers which addresses it was about."""

    def __init__(self):
        self.asked = []

    async def request(self, message):
        self.asked.append((message.type, list(message.body["resources"])))
        return Message(1, MessageType.RESPONSE, message.to, message.from_, {"code": 200})

    def set_event_link(self, url, link):
        pass


def paths_of(bus):
    context = SimpleNamespace(
        bus=bus,
        registry=None,
        runtime=RUNTIME,
        node_for=lambda _url: "domain://b.ex",
        request=lambda kind, to, body: Message(1, kind, RUNTIME, to, body),
    )
    return ObserverPaths(context, None, None, lambda _url: None)


async def test_a_deletion_that_comes_while_the_path_is_closed_is_forgotten_with_it():
    """Whoever observes another object of that address later closes its path as a whole."""
    bus = Bus()
    paths = paths_of(bus)
    await paths.set_path(URL)
    await paths.close(URL)
    paths.on_deleted(URL)
    paths.forget(URL)
    bus.asked.clear()

    await paths.set_path(URL)
    await paths.close(URL)

    assert bus.asked == [(MessageType.SUBSCRIBE, ALL), (MessageType.UNSUBSCRIBE, ALL)]
