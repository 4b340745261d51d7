"""The catalogue of claims: what holds in every run of the protocol.

Sentences for people; whoever judges a trace implements them and cites the id.
"""

from typing import Final

from specs.claims import domains as claims_domains
from specs.claims import links as claims_links
from specs.claims import traffic as claims_traffic
from specs.claims.claim import Claim

CATALOGUE: Final[tuple[Claim, ...]] = (
    *claims_traffic.CLAIMS,
    *claims_links.CLAIMS,
    *claims_domains.CLAIMS,
)
"""Every claim, in the order of the protocol's page."""

CLAIMS: Final = {claim.id: claim for claim in CATALOGUE}
"""The same by id."""
