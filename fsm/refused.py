"""The effect of a core that says no."""

from typing import final

import attrs

from specs.reply_code import Code

__all__ = ["Refused"]


@final
@attrs.frozen(slots=True)
class Refused:
    """Nothing was changed, because of this."""

    code: Code
    why: str
