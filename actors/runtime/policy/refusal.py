"""Why a Message BUS lets a message go no further."""

from typing import final

import attrs

from specs.reply_code import Code, DropReason

__all__ = ["Refusal"]


@final
@attrs.frozen(slots=True)
class Refusal:
    """Why a message is not admitted.

    Attributes:
        code: What a request is answered with; None: nothing, it ends silently.
        in_place: What somebody who awaits the answer in place is told if it is nothing.
    """

    reason: DropReason
    why: str
    code: Code | None = None
    in_place: Code = Code.MALFORMED
