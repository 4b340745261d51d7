"""The messages of a P2P set-up, as one stub writes and reads them (M-06, 07, 32..47)."""

from typing import Final, final

import attrs

from actors.runtime.stubs.stub import StubContext
from fsm.machines.p2p_connection import State
from fsm.p2p.link_io import (
    InvitationAnswered,
    ObjectCreated,
    ObjectRefused,
    ObserveRefused,
    RowReported,
    SideInput,
)
from specs.addresses.address import domain_of, status_of
from specs.bodies.body import LinkStatus
from specs.bodies.sync import (
    Candidate,
    ChangeObject,
    ConnectionData,
    ConnectionDescription,
    CreateObject,
    InviteObservers,
    LinkRow,
    NewObject,
    ObjectName,
    Observe,
    Snapshot,
)
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.bodies import read_body, write_body

__all__ = [
    "Signalling",
    "invitation_answered",
    "object_created",
    "read_connection",
    "read_snapshot",
    "row_told",
]

_NAME: Final = "P2PConnection"
_ARRAY: Final = "array"


@final
class Signalling:
    """Writes a stub's messages; all are from the stub's own address.

    Attributes:
        url: That address.
    """

    def __init__(self, context: StubContext) -> None:
        self.url = context.url
        self._context = context
        self._runtime = context.config.runtime
        self._manager = f"{self._runtime}/sm"
        domain = domain_of(self._runtime)
        self._schema = f"hyperty-catalogue://catalogue.{domain}/.well-known/dataschema/Connection"

    def _message(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        url = self._context.url
        return Message(self._context.ids.next(url), kind, url, to, body)

    def status(self, remote: str, link: str, state: State, why: str) -> Message:
        """Write the status event of a link's step (C-13)."""
        kind = MessageType.CREATE if state is State.CREATED else MessageType.UPDATE
        body = LinkStatus(state.value, remote, why or None, link)
        return self._message(kind, status_of(self._context.url), write_body(body))

    def ask_row(self, remote: str) -> Message:
        """Ask the registry for its row of the remote runtime (P2P-18)."""
        return self._message(
            MessageType.READ, f"{self._runtime}/registry", write_body(ObjectName(remote))
        )

    def over(self, link: str) -> Message:
        """Tell the registry that a link has ended for good (I-P19)."""
        return self._message(
            MessageType.DELETE, f"{self._runtime}/registry", write_body(ObjectName(link))
        )

    def create_object(self, description: str) -> Message:
        """Create the own Connection object (M-32); `description`: offer or answer."""
        data = ConnectionData(self._context.url, "", ConnectionDescription(description))
        value = NewObject(
            self._context.url,
            write_body(data),
            self._runtime,
            name=_NAME,
            resources=("data",),
        )
        body = CreateObject(value, self._schema, p2p=False)
        return self._message(MessageType.CREATE, self._manager, write_body(body))

    def invite(self, url: str, peer: str) -> Message:
        """Invite the peer to observe the own object (M-33)."""
        told: JsonObject = {"runtime": self._runtime, "reporter": self._context.url}
        body = InviteObservers(url, self._schema, (peer,), told)
        return self._message(MessageType.CREATE, self._manager, write_body(body))

    def observe(self, url: str) -> Message:
        """Observe the peer's object (M-36)."""
        body = write_body(Observe(url, self._schema))
        return self._message(MessageType.SUBSCRIBE, self._manager, body)

    def shown_anew(self, message: Message) -> str | None:
        """Return the object that the sync manager shows again by a message; None: it does not."""
        is_shown = message.from_ == self._manager and message.type is MessageType.UPDATE
        url = message.body.get("resource") if is_shown else None
        return url if isinstance(url, str) else None

    def read(self, url: str) -> Message:
        """Read the peer's object after a gap (M-41)."""
        return self._message(MessageType.READ, url, {})

    def offer(self, url: str, candidates: tuple[Candidate, ...]) -> Message:
        """Add candidates to the own object."""
        listed = [write_body(candidate) for candidate in candidates]
        body = ChangeObject(url, "iceCandidates", [*listed], _ARRAY, "add")
        return self._message(MessageType.UPDATE, self._manager, write_body(body))

    def plead(self, url: str, status: str) -> Message:
        """Write the own object's status."""
        body = ChangeObject(url, "status", status)
        return self._message(MessageType.UPDATE, self._manager, write_body(body))

    def offer_anew(self, url: str, status: str) -> list[Message]:
        """Take the candidates out of the own object, then say that they are void (M-40).

        In this order nobody ever sees an old candidate under the new status.
        """
        body = ChangeObject(url, "iceCandidates", [], _ARRAY)
        void = self._message(MessageType.UPDATE, self._manager, write_body(body))
        return [void, self.plead(url, status)]

    def stop_observing(self, url: str) -> Message:
        """Leave the peer's object (M-42)."""
        return self._message(MessageType.UNSUBSCRIBE, self._manager, write_body(ObjectName(url)))

    def delete(self, url: str) -> Message:
        """Delete the own object (M-46)."""
        return self._message(MessageType.DELETE, self._manager, write_body(ObjectName(url)))


def _why(answer: Message) -> str:
    told = answer.body.get("description")
    return told if isinstance(told, str) else f"refused with {answer.code}"


def object_created(answer: Message) -> SideInput:
    """Understand the answer to `create_object`."""
    url = answer.body.get("resource")
    if answer.code > LAST_SUCCESS or not isinstance(url, str):
        return ObjectRefused(_why(answer))
    return ObjectCreated(url)


def invitation_answered(answer: Message) -> SideInput:
    """Understand the answer to `invite`."""
    return InvitationAnswered(answer.code, _why(answer) if answer.code > LAST_SUCCESS else "")


def row_told(answer: Message) -> SideInput:
    """Understand the answer to `ask_row`: no row, or none that is readable, is none."""
    try:
        row = read_body(attrs.evolve(answer, body=_value(answer)), LinkRow)
    except BadMessageError:
        return RowReported(has_own_request=False)
    return RowReported(row.role == "requester" and row.status != State.FAILED.value)


def read_snapshot(answer: Message) -> Snapshot | ObserveRefused:
    """Understand the answer to `observe` or `read`."""
    if answer.code > LAST_SUCCESS:
        return ObserveRefused(_why(answer))
    try:
        return read_body(attrs.evolve(answer, body=_value(answer)), Snapshot)
    except BadMessageError as exc:
        return ObserveRefused(exc.reason)


def read_connection(message: Message, data: JsonObject) -> ConnectionData | ObserveRefused:
    """Understand the value of a Connection object that came with `message`."""
    try:
        return read_body(attrs.evolve(message, body=data), ConnectionData)
    except BadMessageError as exc:
        return ObserveRefused(exc.reason)


def _value(answer: Message) -> JsonObject:
    value = answer.body.get("value")
    return value if isinstance(value, dict) else {}
