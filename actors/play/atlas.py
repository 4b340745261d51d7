"""Which addresses a scenario speaks of, and which of them its short names of places mean."""

from collections.abc import Iterable, Iterator
from typing import Final, final

from actors.play.hop import Hop, Place, read_place
from actors.play.macros import MACROS, expanded
from actors.play.script import (
    AuthzStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
)
from specs.address import (
    RUNTIME_SCHEME,
    canonical,
    domain_of,
    message_node,
    runtime_of,
    scheme_of,
)
from specs.errors import BadUrlError
from specs.jsonvalue import Json

__all__ = ["Atlas", "entity_of", "is_address", "is_hyperty", "texts_in"]

HYPERTY: Final = "hyperty"
_SANDBOX: Final = "sandbox"
_NODE: Final = "MN."
_NODE_MACRO: Final = "MN"
_TOP: Final = ".ex"
"""Where the domains of the scenarios' page are."""
_BACKEND: Final = "domain"
_SEPARATOR: Final = "://"


def is_hyperty(address: str) -> bool:
    """Say whether an address is a hyperty's, or below one."""
    return scheme_of(address) == HYPERTY


def entity_of(address: str) -> str:
    """Return what an address belongs to: its domain and first part, `O/changes` is of `O`."""
    return runtime_of(address)


def is_address(text: str) -> bool:
    """Say whether a text is the address of something."""
    try:
        return canonical(text) == text
    except BadUrlError:
        return False


def texts_in(value: Json) -> Iterator[str]:
    """Yield every text in a value."""
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from texts_in(one)
        case dict():
            for one in value.values():
                yield from texts_in(one)
        case _:
            return


@final
class Atlas:
    """The addresses of one scenario.

    Attributes:
        addresses: All that are written out in it, canonical, in the order of first mention.
        runtimes: The runtimes among them, and those its places name.
        domains: The domains whose nodes or other services it speaks of, likewise.
    """

    def __init__(self, scenario: Scenario) -> None:
        texts = (text for step in scenario.steps for text in _texts(step))
        self.addresses = tuple(dict.fromkeys(_addresses(texts)))
        self._named = dict(self._names())
        places = [self.of(place) for step in scenario.steps for place in _places(step)]
        told = [*self.addresses, *(place for place in places if place is not None)]
        self.domains = tuple(
            dict.fromkeys(domain_of(one) for one in told if scheme_of(one) == _BACKEND)
        )
        self.runtimes = tuple(
            dict.fromkeys(runtime_of(one) for one in told if scheme_of(one) == RUNTIME_SCHEME)
        )

    def _names(self) -> Iterator[tuple[str, str]]:
        for address in reversed(self.addresses):
            entity = entity_of(address)
            yield entity.rpartition("/")[2].lower(), entity

    def of(self, place: Place) -> str | None:
        """Return the address that a place means; None if nothing says which.

        `RA` and `PH/conn/1` by the page's short names; `MN.b` is the node of the domain
        whose first word is b; `sandbox(HA)` is HA; any other word is what an address of
        the scenario is called behind its domain, so `hx` is `hyperty://a.ex/hx`.
        """
        if place.root == _SANDBOX:
            return self._word(place.note)
        if place.text.startswith(_NODE):
            return self._node(place.root.removeprefix(_NODE))
        return self._word(place.root)

    def _word(self, word: str) -> str | None:
        written = expanded(word)
        if isinstance(written, str) and _SEPARATOR in written:
            return written
        return self._named.get(word.lower())

    def _node(self, label: str) -> str:
        domains = (domain_of(address) for address in self.addresses)
        mine = (domain for domain in domains if domain.partition(".")[0] == label)
        macro = MACROS.get(f"{_NODE_MACRO}{label.upper()}")
        return message_node(next(mine, f"{label}{_TOP}")) if macro is None else macro

    def runtime(self, place: Place) -> str | None:
        """Return the runtime a place is in, if it is in one."""
        address = self.of(place)
        if address is None or scheme_of(address) != RUNTIME_SCHEME:
            return None
        return runtime_of(address)

    def hyperty(self, place: Place) -> str | None:
        """Return the hyperty a place is, if it is one."""
        address = self.of(place)
        return address if address is not None and is_hyperty(address) else None


def _texts(step: Step) -> Iterator[str]:
    """Yield every text of a step in which an address may stand."""
    match step:
        case MessageStep(message=message):
            yield from (message.from_, message.to)
            yield from texts_in(message.body)
        case StateStep(key=key):
            yield from key
        case TableStep(key=row, val=val):
            yield row
            yield from texts_in(val)
        case ResolveStep(to=to, result=result):
            yield from (to, result or "")
        case _:
            return


def _places(step: Step) -> Iterable[Place]:
    match step:
        case MessageStep(hop=Hop() as hop):
            return hop.places
        case TableStep(at=at) | ResolveStep(at=at) | AuthzStep(at=at):
            return (at,)
        case StateStep(key=(node, *_)) if node.startswith(_NODE):
            return (read_place(node),)
        case _:
            return ()


def _addresses(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if is_address(text):
            yield text
