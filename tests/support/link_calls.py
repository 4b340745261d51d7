"""Calls of one end of a P2P link as values: what it is told, and what it asks of its port."""

from inspect import signature
from typing import Any, final

import attrs

from fsm.engine import Step
from fsm.p2p.link_end import LinkEnd, LinkPort


@final
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


@final
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


@final
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
            self.asked.append(call.step if name == "step" else call)

        return note

    def take(self) -> list[Step | Call]:
        asked, self.asked = self.asked, []
        return asked


@final
class ToldEnd:
    """An end of a link that is told calls, and returns what it asks for."""

    def __init__(self, terms, role, policy, offer="") -> None:
        self.port = RecordingPort()
        self.core = LinkEnd(terms, role, policy, self.port, offer)

    def tell(self, call: Call, now: float) -> list[Step | Call]:
        method = getattr(self.core, call.name)
        timed = {"now": now} if "now" in signature(method).parameters else {}
        method(*(value for _, value in call.arguments), **timed)
        return self.port.take()

    @property
    def state(self):
        return self.core.state

    @property
    def has_ended(self) -> bool:
        return self.core.has_ended

    def deadline(self) -> float:
        return self.core.deadline()


def is_asked(one: Step | Call, *names: str) -> bool:
    """Return whether an end asks for something of that name."""
    return isinstance(one, Call) and one.name in names
