"""The shares that one handler stub gives to other runtimes (T11)."""

from collections.abc import Collection
from typing import Final, final

from fsm.limits.token_bucket import Rate, TokenBuckets
from specs.addresses.address import domain_of
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE

_RATE: Final = Rate(INVITATION_RATE, INVITATION_BURST)


@final
class HandlerQuota:
    """The shares of one handler."""

    def __init__(self) -> None:
        self._buckets: Final = TokenBuckets[str](_RATE)

    def refusal(self, remote: str, linked: Collection[str], now: float) -> str | None:
        """Return the reason to refuse a runtime a link now; None: there is none.

        Args:
            remote: The requesting runtime.
            linked: The runtimes that have one, or are getting one.
            now: Seconds of any clock.
        """
        if not self._buckets.try_spend(remote, now):
            return "this runtime asks for links too often"
        others = [one for one in linked if one != remote]
        if len(others) >= HANDLED_LINKS:
            return "too many runtimes have links"
        domain = domain_of(remote)
        if sum(domain_of(one) == domain for one in others) >= HANDLED_OF_DOMAIN:
            return "too many runtimes of this domain have links"
        return None
