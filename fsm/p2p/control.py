"""What the ends of a live P2P link say to each other about the link itself (P2P-20)."""

from typing import TypeAlias, final

import attrs

__all__ = ["Ack", "Behind", "Bye", "Control", "Key", "Ping", "Pong"]

Key: TypeAlias = int | str
"""Name of a message within its pair: the id of a request or event, the name of an answer."""


@final
@attrs.frozen(slots=True)
class Behind:
    """An announcement: what a link brings for a pair from now on follows what went before.

    Attributes:
        last: The last message that went by the node and may still be on its way; None:
            there is none.
        top: The highest id of the requests and events among what went by the node.
        age: Seconds since `last` was sent.
        answers: Ids of the answers among what went by the node and may be on its way.
    """

    from_: str
    to: str
    last: Key | None = None
    top: int = 0
    age: float = 0.0
    answers: frozenset[int] = frozenset()


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
