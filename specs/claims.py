"""The catalogue of claims: what holds in every run of the protocol.

Sentences for people; whoever judges a trace implements them and cites the id.
"""

from typing import Final

from specs import claims_domains, claims_links, claims_traffic
from specs.claim import Claim

CATALOGUE: Final[tuple[Claim, ...]] = (
    *claims_traffic.CLAIMS,
    *claims_links.CLAIMS,
    *claims_domains.CLAIMS,
)
"""Every claim, in the order of the protocol's page."""

CLAIMS: Final = {claim.id: claim for claim in CATALOGUE}
"""The same by id."""
