"""The hyperty of a sandbox, and its host; other sandboxes do not import this."""

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.kit.trace import NULL_TRACER
from actors.runtime.bus.transfers import Transfers
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.objects.context import HypertyContext
from actors.runtime.stubs.stub import StubContext
from specs.jsonvalue import JsonObject


def checked(where: str, found: object) -> type[Hyperty]:
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


@final
@attrs.frozen
class More:
    """Parameters of a hyperty in a sandbox besides its code.

    Attributes:
        largest_body: Bytes that its bodies may have, in chunks.
        configuration: What it is to know.
    """

    largest_body: int
    configuration: JsonObject = attrs.field(factory=dict)


_Maker: TypeAlias = Callable[[StubContext], Actor[Delivery]]


def host(made: type[Hyperty], record_error: Callable[[Exception, str], str], more: More) -> _Maker:
    """Return what makes the host of a hyperty.

    Args:
        made: The class of the hyperty.
        record_error: Records an exception of a handler; returns its correlation id.
        more: Its parameters.
    """

    def make(context: StubContext) -> Actor[Delivery]:
        # What a sandbox says of steps is believed of stubs only, whose table is known outside.
        own = HypertyContext(
            context.config.runtime,
            context.bus,
            context.ids,
            NULL_TRACER,
            transfers=Transfers(more.largest_body),
        )
        own.configuration = more.configuration
        return HypertyHost(made, own, record_error)

    return make
