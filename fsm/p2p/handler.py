"""The handler stub: one controller per requester, many at once, none knows another (P2P-19).

How many links a handler stub lets others have of it, and how often they may ask (T11).

An invitation costs a handler two data objects, listeners and dials. Whoever is within
its share is not kept out by who is not: one runtime has one link, and asks as often as
one that loses its links may have to; the runtimes of one domain share what a domain has.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final, final

import attrs

from fsm.limits.token_bucket import Rate, TokenBuckets
from fsm.p2p.controller import P2PControllerCore
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.effects import Answered, Ended, SideEffect
from fsm.p2p.inputs import DisconnectAsked, LinkTerms, SideInput, Started, TimePassed
from fsm.p2p.link_end import after_the_end
from specs.addresses.address import domain_of
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE
from specs.reply_code import Code

__all__ = ["HandlerQuota", "P2PHandlerCore", "PerLink"]

_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


@final
class HandlerQuota:
    """The shares of one handler."""

    def __init__(self) -> None:
        self._meter: Final = TokenBuckets[str](_RATE)

    def refusal(self, remote: str, linked: Collection[str], now: float) -> str | None:
        """Say why a runtime may not have a link now; None: it may.

        Args:
            remote: Who asks.
            linked: The runtimes that have one, or are getting one.
            now: Seconds of any clock.
        """
        if not self._meter.try_spend(remote, now):
            return "this runtime asks for links too often"
        others = [one for one in linked if one != remote]
        if len(others) >= HANDLED_LINKS:
            return "too many runtimes have links"
        domain = domain_of(remote)
        if sum(domain_of(one) == domain for one in others) >= HANDLED_OF_DOMAIN:
            return "too many runtimes of this domain have links"
        return None


@final
@attrs.frozen(slots=True)
class PerLink:
    """An effect of one of the handler's links.

    Attributes:
        link: Address of the link, PC; empty: of none.
    """

    link: str
    effect: SideEffect


@final
class P2PHandlerCore:
    """Decides for one handler stub."""

    def __init__(self, runtime: str, url: str, policy: DialPolicy) -> None:
        self._runtime = runtime
        self._url = url
        self._policy = policy
        self._links: dict[str, P2PControllerCore] = {}
        self._minted = 0

    def deadline(self) -> float:
        """Return when `time_passed` is due."""
        return min((each.deadline() for each in self._links.values()), default=math.inf)

    def knows(self, link: str) -> bool:
        """Say whether a link of that address is at work."""
        return link in self._links

    def terms(self, link: str) -> LinkTerms:
        """Return between whom a link is.

        Raises:
            KeyError: There is no such link.
        """
        return self._links[link].terms

    def invited(self, offer: str, requester: str, remote: str, now: float) -> list[PerLink]:
        """Take an invitation; an older link of the same runtime is closed first.

        Args:
            offer: Address of the requester's Connection object.
            requester: Address of the requester stub.
            remote: Its runtime.
            now: Seconds on the host's clock.
        """
        effects: list[PerLink] = []
        for name in [name for name, core in self._links.items() if core.terms.remote == remote]:
            gone = self.feed(name, DisconnectAsked("the requester asks for a new link"), now)
            effects += [each for each in gone if not isinstance(each.effect, Answered)]
        self._minted += 1
        name = f"{self._url}/conn/{self._minted}"
        terms = LinkTerms(self._runtime, remote, name, requester)
        self._links[name] = P2PControllerCore(terms, offer, self._policy)
        return [*effects, *self.feed(name, Started(), now)]

    def remotes(self) -> tuple[str, ...]:
        """Return the runtimes there are links to."""
        return tuple(dict.fromkeys(core.terms.remote for core in self._links.values()))

    def disconnect(self, named: Sequence[str], why: str, now: float) -> list[PerLink]:
        """Close some links (M-12); exactly one answer is among the effects.

        Args:
            named: Addresses of links, or of runtimes: all links to those.
            why: Half a sentence for people.
            now: The time.
        """
        effects: list[PerLink] = []
        for name in [
            name for name, core in self._links.items() if {name, core.terms.remote} & set(named)
        ]:
            effects += self.feed(name, DisconnectAsked(why), now)
        kept = [each for each in effects if not isinstance(each.effect, Answered)]
        return [*kept, PerLink("", Answered(Code.OK))]

    def feed(self, link: str, happened: SideInput, now: float) -> list[PerLink]:
        """Take an input of one link; a link that is gone only cleans up.

        Args:
            link: Name of the link.
            happened: The input.
            now: Seconds on the host's clock.
        """
        core = self._links.get(link)
        effects = after_the_end(happened) if core is None else core.feed(happened, now)
        if any(isinstance(effect, Ended) for effect in effects):
            del self._links[link]
        return [PerLink(link, effect) for effect in effects]

    def time_passed(self, now: float) -> list[PerLink]:
        """Feed every link whose deadline is over."""
        return [effect for link in self._due(now) for effect in self.feed(link, TimePassed(), now)]

    def _due(self, now: float) -> Iterator[str]:
        yield from [name for name, core in self._links.items() if core.deadline() <= now]
