"""Effects that several cores share."""

from typing import final

import attrs

from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.trace import Op


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
