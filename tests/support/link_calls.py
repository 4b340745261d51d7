"""Calls of a core as values: what it is told, and what it asks of its port."""

from collections.abc import Callable
from inspect import ismethod, signature
from typing import Any

import attrs

from fsm.engine import Step
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkEnd, LinkPort, LinkTerms, Role


@attrs.frozen
class Call:
    """A call of a method; its arguments are attributes of it.

    Attributes:
        name: Name of the method.
        arguments: Names and values, but the time.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        for known, value in self.arguments:
            if known == name:
                return value
        raise AttributeError(name)


class Calls:
    """Makes calls of the methods of a class: `tell.dial_failed(1)`."""

    def __init__(self, of: type) -> None:
        self._of = of

    def __getattr__(self, name: str):
        form = signature(getattr(self._of, name))
        untimed = [each for each in form.parameters.values() if each.name not in {"self", "now"}]
        form = form.replace(parameters=untimed)

        def made(*args: Any, **named: Any) -> Call:
            bound = form.bind(*args, **named)
            bound.apply_defaults()
            return Call(name, tuple(bound.arguments.items()))

        return made


tell, asks = Calls(LinkEnd), Calls(LinkPort)


class RecordingPort:
    """Notes what it is asked: steps, and other calls.

    Args:
        of: The class that it stands for.
    """

    def __init__(self, of: type = LinkPort) -> None:
        self.asked: list[Step | Call] = []
        self._calls = Calls(of)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)

        def note(*args: Any, **named: Any) -> None:
            named.pop("now", None)
            call = getattr(self._calls, name)(*args, **named)
            value = {"step": "step", "grant": "granted"}.get(name)
            self.asked.append(call if value is None else getattr(call, value))

        return note

    def take(self) -> list[Step | Call]:
        asked, self.asked = self.asked, []
        return asked


def make(call: Call, core: object, now: float) -> None:
    """Make a call of a core."""
    method = getattr(core, call.name)
    timed = {"now": now} if "now" in signature(method).parameters else {}
    method(**dict(call.arguments), **timed)


class Told:
    """A core and its port: a call of it returns what it asked for, or what it returns."""

    def __init__(self, port: type, make_core: Callable[[Any], Any]) -> None:
        self.port = RecordingPort(port)
        self.core = make_core(self.port)

    def tell(self, call: Call, now: float) -> list[Step | Call]:
        make(call, self.core, now)
        return self.port.take()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.core, name)
        if not ismethod(method):
            return method

        def call(*args: Any, **named: Any) -> Any:
            result = method(*args, **named)
            return self.port.take() if result is None else result

        return call


def told_end(terms: LinkTerms, role: Role, policy: DialPolicy, offer: str = "") -> Told:
    return Told(LinkPort, lambda port: LinkEnd(terms, role, policy, port, offer))


def is_asked(one: Step | Call, *names: str) -> bool:
    """Return whether a core asks for something of that name."""
    return isinstance(one, Call) and one.name in names
