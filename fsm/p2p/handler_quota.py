"""How many links a handler stub lets others have of it, and how often they may ask (T11).

An invitation costs a handler two data objects, listeners and dials. Whoever is within
its share is not kept out by who is not: one runtime has one link, and asks as often as
one that loses its links may have to; the runtimes of one domain share what a domain has.
"""

from collections.abc import Collection
from typing import Final, final

from fsm.limits.token_bucket import Meter, Rate
from specs.addresses.address import domain_of
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE

__all__ = ["HandlerQuota"]

_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


@final
class HandlerQuota:
    """The shares of one handler."""

    def __init__(self) -> None:
        self._meter: Final = Meter[str](_RATE)

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
