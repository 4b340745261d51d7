"""Short ways to write messages in tests."""

from specs.message import Message, MessageType, reply_to

A, B, C = "hyperty://a.ex/alice", "hyperty://a.ex/bob", "hyperty://b.ex/carol"


def ask(number: int = 1, from_: str = A, to: str = B, **body: object) -> Message:
    """A request."""
    return Message(number, MessageType.CREATE, from_, to, body)


def event(number: int = 1, from_: str = A, to: str = f"{A}/changes") -> Message:
    """An event."""
    return Message(number, MessageType.UPDATE, from_, to)


def answer(request: Message, code: int = 200) -> Message:
    """The answer to a request."""
    return reply_to(request, code)
