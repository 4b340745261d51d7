"""What the ends of a live P2P link say to each other about the link itself (P2P-20)."""

from typing import TypeAlias, final

import attrs

__all__ = ["Ack", "Bye", "Control", "Ping", "Pong"]


@final
@attrs.frozen(slots=True)
class Ack:
    """All messages up to number `seq` were taken."""

    seq: int


@final
@attrs.frozen(slots=True)
class Ping:
    """Is anybody there?"""


@final
@attrs.frozen(slots=True)
class Pong:
    """Yes."""


@final
@attrs.frozen(slots=True)
class Bye:
    """Nothing more will come, on purpose."""


Control: TypeAlias = Ack | Ping | Pong | Bye
