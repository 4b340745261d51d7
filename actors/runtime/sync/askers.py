"""Whom a sync manager serves: the components of its own runtime (SYN-01, SYN-06)."""

from typing import Final

from actors.runtime.sync.presence.registration import SUBSCRIPTION
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code

__all__ = ["check_asker"]

_FOREIGN: Final = "a sync manager serves the components of its own runtime only"


def check_asker(message: Message, manager: str, *, is_foreign: bool) -> None:
    """Refuse what is no word of an object: a sync manager serves its own runtime's components.

    From elsewhere come two such words only: the object is back (M-52), or an observer of it
    is shut out (SYN-21).

    Args:
        message: What was asked.
        manager: The sync manager's own address; what is sent to objects is not looked at.
        is_foreign: Whether it came from elsewhere.

    Raises:
        BadMessageError: 403 it is none of them.
    """
    if not is_foreign or message.to != manager:
        return
    resource = message.body.get("resource")
    is_of_object = isinstance(resource, str) and message.from_ == f"{resource}/{SUBSCRIPTION}"
    is_word = message.type is MessageType.SUBSCRIBE or (
        message.type is MessageType.UNSUBSCRIBE and "observer" in message.body
    )
    if not (is_of_object and is_word):
        raise BadMessageError(_FOREIGN, Code.FORBIDDEN)
