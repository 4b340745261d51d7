"""What is in a room: our stub, a stub that came as a package, or a hyperty."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TypeAlias, assert_never, cast

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.kit.trace import NULL_TRACER
from actors.pipe.plan import Contents, NodeStubRoom, PackageRoom, ProgramRoom
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.hyperty.lifecycle import Faults
from actors.runtime.objects.context import HypertyContext
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.stub import StubContext, StubFactory
from actors.sandbox.archive import open_archive

__all__ = ["Maker", "open_contents"]

Maker: TypeAlias = Callable[[StubContext], Actor[Delivery]]
"""Makes what is in the room, from all that it may use."""


@contextmanager
def open_contents(contents: Contents, archive: bytes, faults: Faults) -> Iterator[Maker]:
    """Find the code of a room; it can be imported from while the context is open.

    Args:
        contents: What is to be in it.
        archive: The code of a package.
        faults: Takes what the handlers of a hyperty raise.

    Raises:
        ImportError: There is no such code, or it cannot be read.
        TypeError: It is something else.
        Exception: Whatever the code raises when it is imported.
    """
    match contents:
        case NodeStubRoom():
            yield node_stub.activate
        case PackageRoom(entry_point):
            with open_archive(archive) as package:
                module, name = _split(entry_point)
                if not package.has(module):
                    raise ImportError(f"the package has no module {module}")
                yield _checked(_stub_factory(entry_point, _named(module, name)))
        case ProgramRoom(where):
            module, name = _split(where)
            yield _host(_hyperty(where, _named(module, name)), faults)
        case _:
            assert_never(contents)


def _split(where: str) -> tuple[str, str]:
    module, _, name = where.partition(":")
    if not module or not name:
        raise ImportError(f"{where!r} is not of the form module:name")
    return module, name


def _named(module: str, name: str) -> object:
    found: object = vars(import_module(module)).get(name)
    if found is None:
        raise ImportError(f"{module} has no {name}")
    return found


def _stub_factory(entry_point: str, found: object) -> StubFactory:
    if not callable(found):
        raise TypeError(f"{entry_point} cannot be called")
    # What it takes and returns shows when it is called.
    return cast("StubFactory", found)


def _checked(activate: StubFactory) -> Maker:
    def make(context: StubContext) -> Actor[Delivery]:
        made: object = activate(context)
        if not isinstance(made, Actor):
            raise TypeError(f"activate returned no actor, but a {type(made).__name__}")
        return made

    return make


def _hyperty(where: str, found: object) -> type[Hyperty]:
    if not isinstance(found, type) or not issubclass(found, Hyperty):
        raise TypeError(f"{where} is no hyperty")
    return found


def _host(made: type[Hyperty], faults: Faults) -> Maker:
    def make(context: StubContext) -> Actor[Delivery]:
        # What a sandbox says of steps is believed of stubs only, whose table is known outside.
        seat = HypertyContext(context.config.runtime, context.bus, context.ids, NULL_TRACER)
        return HypertyHost(made, seat, faults)

    return make
