"""What is said of children, read from messages and written into them (M-48..M-50)."""

from fsm.sync.children import Act, ChildOp, ChildSaid, SignHeard, op_in
from fsm.sync.value.json import NotJsonError, as_json
from specs.bodies.object import Child, ChildName, ChildrenSign
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body

__all__ = ["VERBS", "as_child_value", "child_body", "read_op", "read_said"]

VERBS = {
    Act.CREATE: MessageType.CREATE,
    Act.UPDATE: MessageType.UPDATE,
    Act.DELETE: MessageType.DELETE,
}
"""The verb by which each thing is said."""


def read_op(message: Message) -> ChildOp:
    """Read what a message does to a child of its sender.

    Raises:
        BadMessageError: It is none, or does something to the child of another.
    """
    if message.type is MessageType.DELETE:
        read_body(message, ChildName)
    else:
        as_child_value(read_body(message, Child).value)
    op = op_in(message)
    if op is None:
        raise BadMessageError("not the child reporter: only its creator writes", Code.FORBIDDEN)
    return op


def read_said(message: Message, url: str) -> ChildSaid | SignHeard:
    """Read what is said where the children of an object are told of: by it, or by a creator.

    Raises:
        BadMessageError: It is neither a sign nor anything done to an own child.
    """
    if message.from_ == url:
        return SignHeard(read_body(message, ChildrenSign))
    return ChildSaid(read_op(message))


def as_child_value(value: object) -> Json:
    """Return a copy of a value as every peer would read it.

    Raises:
        BadMessageError: It is no JSON, or is nested too deep.
    """
    try:
        return as_json(value, (), lambda part: part)
    except NotJsonError as exc:
        raise BadMessageError(f"the value of a child: {exc}") from exc


def child_body(act: Act, name: str, value: Json) -> JsonObject:
    """Write what is said of a child."""
    return write_body(ChildName(name) if act is Act.DELETE else Child(name, value))
