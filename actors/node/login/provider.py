"""The seam of identity providers: who says whom a login token belongs to (CON-01, C-59).

The identity provider of a node that was given none: it vouches for nobody.
"""

from abc import ABC, abstractmethod
from typing import final

import trio
from typing_extensions import override

from actors.node.login.errors import LoginRefusedError
from specs.identity import Identity

__all__ = ["IdentityProvider", "Nobody"]


class IdentityProvider(ABC):
    """Validates what somebody brings to log in.

    Asked by several tasks of one actor at once, each with a deadline of its own.
    """

    @abstractmethod
    async def validate(self, assertion: str) -> Identity:
        """Return whom an assertion vouches for.

        If cancelled, it may count as used.

        Raises:
            LoginRefusedError: It vouches for nobody, here and now.
            ProviderAwayError: That cannot be found out at the moment.
        """

    async def why_not(self) -> str | None:
        """Return why nobody can be looked into now, as half a sentence; None: anybody can."""
        await trio.lowlevel.checkpoint()
        return None

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of what was opened; called once, when the node has stopped asking."""


@final
class Nobody(IdentityProvider):
    """Refuses whatever is brought."""

    @override
    async def validate(self, assertion: str) -> Identity:
        await trio.lowlevel.checkpoint()
        raise LoginRefusedError("this node was given no keys, so nobody can log in")

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
