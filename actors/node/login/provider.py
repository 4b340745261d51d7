"""The interface of identity providers, and the login configuration of a node (CON-01, C-59)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum, unique
from pathlib import Path
from typing import TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import as_path_or_none
from actors.node.login.errors import LoginRefusedError
from actors.node.login.used_tokens import UsedTokens
from specs.identity import Identity
from specs.limits.node import SESSION_LIFE


class IdentityProvider(ABC):
    """Validates the credentials of a login.

    Asked by several tasks of one actor at once, each with a deadline of its own.
    """

    @abstractmethod
    async def validate(self, assertion: str, key: str | None) -> Identity:
        """Return the identity that an assertion proves.

        Args:
            assertion: What is to be validated, such as a token.
            key: Thumbprint of the key that its bearer has proven; None: none. An assertion that is
                bound to another key proves nothing, and does not count as used.

        If cancelled, it may count as used.

        Raises:
            LoginRefusedError: It proves no identity, here and now.
            ProviderAwayError: That cannot be found out at the moment.
        """

    async def why_not(self) -> str | None:
        """Return why no credentials can be validated now, as half a sentence; None: they can.

        If cancelled, nothing has changed there.
        """
        await trio.lowlevel.checkpoint()
        return None

    def remember(self, used: UsedTokens) -> None:
        """Write used tokens down there from now on; called once at most, before logins; blocks.

        Raises:
            UsedTokensError: Nothing can be written down there.
        """
        used.close()

    @abstractmethod
    async def aclose(self) -> None:
        """Close what was opened; called once, when the node has stopped asking.

        If cancelled, it is closed all the same.
        """


@final
class Nobody(IdentityProvider):
    """Refuses all credentials."""

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        await trio.lowlevel.checkpoint()
        raise LoginRefusedError("this node has no keys, so no login is possible")

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


ProviderMaker: TypeAlias = Callable[[Callable[[], float]], IdentityProvider]
"""Makes an identity provider; its argument is a clock of seconds since the epoch."""


@final
@unique
class Admission(StrEnum):
    """Conditions for opening a session."""

    VOUCHED = "who logs in"
    ANYBODY = "anybody; who brings credentials must bring good ones"


@final
@attrs.frozen(kw_only=True)
class Login:
    """The rules for opening sessions at one node.

    Attributes:
        provider: Who validates credentials; made once for the life of the node.
        life: Seconds a session lives on its credentials.
        clock: Seconds since the epoch, as the world counts them; None: as the node does.
        used_tokens: File of used tokens, which nodes without an engine can share; None: they are
            where the node has its sessions.
    """

    provider: ProviderMaker
    admission: Admission = Admission.VOUCHED
    life: float = SESSION_LIFE
    clock: Callable[[], float] | None = None
    used_tokens: Path | None = attrs.field(default=None, converter=as_path_or_none)
