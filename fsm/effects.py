"""Effects that several cores share."""

from typing import final

import attrs

from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op

__all__ = ["Answer", "Dropped", "HintRefused", "OwnNode", "Refused", "RowChanged", "StubRefused"]


@final
@attrs.frozen(slots=True)
class Answer:
    """Send an answer, before any later effect is performed."""

    message: Message


@final
@attrs.frozen(slots=True)
class Refused:
    """Nothing was changed, because of this."""

    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class Dropped:
    """A message ends here, for one recorded reason (OBS-06)."""

    message: Message
    reason: DropReason


@final
@attrs.frozen(slots=True)
class RowChanged:
    """A row of a table came, changed or went; the host traces it.

    Attributes:
        op: ADD, UPD or DEL.
        writer: Its writer (BUS-18).
    """

    op: Op
    table: str
    key: str
    val: str
    writer: str


@final
@attrs.frozen(slots=True)
class OwnNode:
    """The connection to the node of the own domain is live, or no longer (REG-12).

    Attributes:
        stub: Address of the node's stub.
        end: Why the session is over for good; None: the stub connects again.
    """

    stub: str
    is_live: bool
    end: str | None = None


@final
@attrs.frozen(slots=True)
class HintRefused:
    """The hint of a sender how to link to an entity is not confirmed by its record (RES-16).

    Attributes:
        entity: Address of the entity.
        why: The reason, as half a sentence.
    """

    entity: str
    why: str


@final
@attrs.frozen(slots=True)
class StubRefused:
    """A stub of another kind was named than was to be deployed.

    Attributes:
        address: Its catalogue address.
        why: The reason, as a sentence.
    """

    address: str
    why: str
