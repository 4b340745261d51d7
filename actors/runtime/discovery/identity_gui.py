"""The dialogs of an application for the login of its user (ADR-03)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from specs.jsonvalue import Json


class IdentityGui(ABC):
    """The dialogs of an application for the login of its user; one is open at a time."""

    @abstractmethod
    async def show(self, url: str) -> Json:
        """Show a login page, and return its result, such as a code; None: the user left.

        The address comes from an identity provider. Show its host to the user.

        If cancelled, the user took too long.
        """

    @abstractmethod
    async def choose(self, identities: Sequence[Json], providers: Sequence[Json]) -> Json:
        """Let the user choose an identity or a provider; None: the user chose none.

        Args:
            identities: Known identities, in the requester's words.
            providers: Known identity providers, in the requester's words.

        If cancelled, the user took too long.
        """
