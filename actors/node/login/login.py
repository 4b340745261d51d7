"""Who has to log in at a node, and who vouches for them: what a node is configured with."""

from collections.abc import Callable
from enum import StrEnum, unique
from typing import TypeAlias, final

import attrs

from actors.node.login.provider import IdentityProvider
from specs.limits.login import SESSION_LIFE

__all__ = ["Admission", "Login", "ProviderMaker"]

ProviderMaker: TypeAlias = Callable[[Callable[[], float]], IdentityProvider]
"""Makes an identity provider; it is given a clock that tells seconds since the epoch."""


@final
@unique
class Admission(StrEnum):
    """Who may open a session."""

    VOUCHED = "who logs in"
    ANYBODY = "anybody; who brings credentials must bring good ones"


@final
@attrs.frozen(kw_only=True)
class Login:
    """How sessions are opened at one node.

    Attributes:
        provider: Who validates credentials; made once for the life of the node.
        admission: Who may come without any.
        life: Seconds a session lives on its credentials.
        clock: Seconds since the epoch, as the world counts them; None: as the node does.
    """

    provider: ProviderMaker
    admission: Admission = Admission.VOUCHED
    life: float = SESSION_LIFE
    clock: Callable[[], float] | None = None
