"""The hyperty of a sandbox, and its host; other sandboxes do not import this."""

from collections.abc import Callable
from typing import TypeAlias

import attrs

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import NULL_TRACER, Tracer
from actors.runtime.bus.transfers import Transfers
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.objects.participant import Participant, RequestWindows
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.stubs.stub import StubContext
from specs.jsonvalue import JsonObject


def check_class(where: str, found: object) -> type[Hyperty]:
    """Return the class of a hyperty.

    Args:
        where: What it is called, for people.
        found: What has that name.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(found, type) or not issubclass(found, Hyperty):
        raise TypeError(f"{where} is no hyperty")
    return found


@attrs.frozen
class SandboxRuntime:
    """The runtime of a hyperty, as far as its sandbox has it; nothing is stored here.

    What a sandbox traces of steps is believed of stubs only, whose table is known outside.
    """

    url: str
    ids: IdSource
    transfers: Transfers = attrs.field(factory=Transfers)
    tracer: Tracer = NULL_TRACER
    store: RuntimeStore = attrs.field(factory=lambda: RuntimeStore(None))
    windows: RequestWindows = attrs.field(factory=dict)
    own: None = None


_Maker: TypeAlias = Callable[[StubContext], Actor[Delivery]]


def host(
    made: type[Hyperty],
    record_error: Callable[[Exception, str], str],
    largest_body: int,
    configuration: JsonObject,
) -> _Maker:
    """Return what makes the host of a hyperty.

    Args:
        made: The class of the hyperty.
        record_error: Records an exception of a handler; returns its correlation id.
        largest_body: Bytes that its bodies may have, in chunks.
        configuration: What it is to know.
    """

    def make(context: StubContext) -> Actor[Delivery]:
        runtime = SandboxRuntime(context.config.runtime, context.ids, Transfers(largest_body))
        own = Participant(runtime, context.bus)
        own.configuration = configuration
        return HypertyHost(made, own, record_error)

    return make
