"""The hyperty of a sandbox, and its host; only sandboxes with a hyperty import this module."""

from collections.abc import Callable
from typing import TypeAlias

import attrs

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import NULL_TRACER, Tracer
from actors.pipe.plan import SandboxPlan
from actors.runtime.bus.transfers import Transfers
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.objects.participant import Participant, RequestWindows
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.stubs.stub import StubContext


def check_class(where: str, value: object) -> type[Hyperty]:
    """Return the class of a hyperty.

    Args:
        where: Name of the class, for people.
        value: The object with this name.

    Raises:
        TypeError: The object is no class of a hyperty.
    """
    if not isinstance(value, type) or not issubclass(value, Hyperty):
        raise TypeError(f"{where} is no hyperty")
    return value


@attrs.frozen
class SandboxRuntime:
    """The part of a runtime that the hyperty of a sandbox uses; it stores nothing.

    It traces no steps: the host accepts traced steps of stubs only, whose table it knows.
    """

    url: str
    ids: IdSource
    transfers: Transfers = attrs.field(factory=Transfers)
    tracer: Tracer = NULL_TRACER
    store: RuntimeStore = attrs.field(factory=lambda: RuntimeStore(None))
    windows: RequestWindows = attrs.field(factory=dict)
    own: None = None
    answer_within: float | None = None


_Maker: TypeAlias = Callable[[StubContext], Actor[Delivery]]


def host(
    made: type[Hyperty], record_error: Callable[[Exception, str], str], plan: SandboxPlan
) -> _Maker:
    """Return the maker of the host of a hyperty.

    Args:
        made: The class of the hyperty.
        record_error: Records an exception of a handler; returns its correlation id.
        plan: The description of its sandbox.
    """

    def make(context: StubContext) -> Actor[Delivery]:
        runtime = SandboxRuntime(
            context.config.runtime,
            context.ids,
            Transfers(plan.largest_body),
            answer_within=plan.answer_within,
        )
        participant = Participant(runtime, context.bus)
        participant.configuration = plan.contents.options
        return HypertyHost(made, participant, record_error)

    return make
