"""Managing policies by messages to `MN(d)/policy` (POL-05); for administrators only."""

from collections.abc import Callable, Mapping
from typing import Final, final

from typing_extensions import override

from actors.kit.supervision.actor import ActorRef
from actors.node.components import LocalService
from actors.node.policy.reloader import Reload, ReloadAsked
from actors.node.policy.store import PolicyStore
from fsm.policy.errors import BadPolicyError
from fsm.policy.model import Book, PolicySet
from fsm.policy.reading import read_set
from specs.bodies.body import (
    AddPolicies,
    PolicyBook,
    PolicyChange,
    PolicyCommand,
    PolicyEntry,
    ReadPolicies,
    RemovePolicies,
    ReplacePolicies,
)
from specs.bodies.policy import UNTIL_STOP
from specs.errors import BadMessageError
from specs.identity import Identity
from specs.limits.policy import MAX_POLICY_SETS
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body
from transports.codec import encode

__all__ = ["ADMIN", "PolicyDesk"]

ADMIN: Final = "admin"
"""The role whose bearers may manage policies."""


@final
class PolicyDesk(LocalService):
    """Shows and changes what the node judges by.

    Changes by message last until the node stops or reads its files again: the files
    are the operator's, and the node writes none of them.

    Args:
        store: The policies.
        identity_of: Who vouches for the session of a runtime now; None: nobody.
        reloader: Who reads the files again; None: not yet there.
        counts: What obligations count.
    """

    def __init__(
        self,
        store: PolicyStore,
        identity_of: Callable[[str], Identity | None],
        reloader: Callable[[], ActorRef[ReloadAsked | Reload] | None],
        counts: Mapping[str, int],
    ) -> None:
        self._store = store
        self._counts = counts
        self._identity_of = identity_of
        self._reloader = reloader

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        identity = self._identity_of(by)
        if identity is None or ADMIN not in identity.roles:
            return refuse(message, Code.FORBIDDEN, f"policies are for who has the role {ADMIN}")
        match message.type:
            case MessageType.READ:
                return self._read(message, read_body(message, ReadPolicies))
            case MessageType.CREATE:
                return self._add(message, read_body(message, AddPolicies), identity)
            case MessageType.UPDATE:
                return self._replace(message, read_body(message, ReplacePolicies), identity)
            case MessageType.DELETE:
                return self._remove(message, read_body(message, RemovePolicies))
            case MessageType.EXECUTE:
                read_body(message, PolicyCommand)
                return self._reload(message, by)
            case other:
                known = "read, create, update, delete and execute"
                raise BadMessageError(f"policies know {known}, not {other}")

    def _read(self, message: Message, asked: ReadPolicies) -> Message:
        if asked.resource is None:
            book = _listed(self._store.book, self._counts)
            return reply_to(message, Code.OK, {"value": write_body(book)})
        one = self._store.book.set_of(asked.resource)
        if one is None:
            return _unknown(message, asked.resource)
        answer = reply_to(message, Code.OK, {"value": one.document})
        if len(encode(answer)) > MAX_MESSAGE_BYTES:
            why = f"{one.id} is too large for a message; look into {one.source}"
            return refuse(message, Code.TOO_LARGE, why)
        return answer

    def _add(self, message: Message, asked: AddPolicies, by: Identity) -> Message:
        one = _set_of(asked.value, by)
        if self._store.book.set_of(one.id) is not None:
            why = f"there is a set {one.id} already; replace it by update"
            return refuse(message, Code.CONFLICT, why)
        if self._store.is_full:
            why = f"there are {MAX_POLICY_SETS} sets; delete one first"
            return refuse(message, Code.TOO_LARGE, why)
        return _changed(message, self._store.add(one))

    def _replace(self, message: Message, asked: ReplacePolicies, by: Identity) -> Message:
        one = _set_of(asked.value, by)
        if one.id != asked.resource:
            raise BadMessageError(f"resource is {asked.resource}, but value.id is {one.id}")
        if self._store.book.set_of(one.id) is None:
            return _unknown(message, one.id)
        return _changed(message, self._store.replace(one))

    def _remove(self, message: Message, asked: RemovePolicies) -> Message:
        if self._store.book.set_of(asked.resource) is None:
            return _unknown(message, asked.resource)
        return _changed(message, self._store.remove(asked.resource))

    def _reload(self, message: Message, by: str) -> Message | None:
        """Have the files read: that takes a while, and the answer comes from who reads."""
        reloader = self._reloader()
        if reloader is None or not reloader.try_tell(ReloadAsked(message, by)):
            return refuse(message, Code.UNAVAILABLE, "the policy files cannot be read now")
        return None


def _changed(message: Message, book: Book) -> Message:
    """Answer that policies are others from now on."""
    change = PolicyChange(book.version, UNTIL_STOP)
    return reply_to(message, Code.OK, {"value": write_body(change)})


def _set_of(document: object, by: Identity) -> PolicySet:
    try:
        return read_set(document, by.user)
    except BadPolicyError as exc:
        way = f"value.{exc.way}" if exc.way else "value"
        raise BadMessageError(f"{way}: {exc.reason}") from exc


def _unknown(message: Message, name: str) -> Message:
    return refuse(message, Code.NOT_FOUND, f"there is no policy set {name}")


def _listed(book: Book, counts: Mapping[str, int]) -> PolicyBook:
    entries = tuple(
        PolicyEntry(one.id, one.version, sum(len(each.rules) for each in one.policies), one.source)
        for one in book.sets
    )
    combining, default = str(book.combining), str(book.default)
    return PolicyBook(book.version, combining, default, entries, dict(counts))
