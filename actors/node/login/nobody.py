"""The identity provider of a node that was given none: it vouches for nobody."""

from typing import final

import trio
from typing_extensions import override

from actors.node.login.errors import LoginRefusedError
from actors.node.login.provider import IdentityProvider
from specs.identity import Identity

__all__ = ["Nobody"]


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
