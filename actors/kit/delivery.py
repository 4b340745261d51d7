"""A message on its way from a router to one listener."""

from typing import final

import attrs

from specs.message import Message

__all__ = ["Delivery"]


@final
@attrs.frozen
class Delivery:
    """One message for one listener.

    Attributes:
        message: The message; its `to` is what its sender wrote.
        route: The address the listener was found under: the message's `to`, or
            the URL of the stub or link that leads there.
        is_foreign: Whether it came into this runtime by a stub: whoever said it is
            none of its components.
    """

    message: Message
    route: str
    is_foreign: bool = False
