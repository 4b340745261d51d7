"""The management of policies by messages (POL-05): the same at a node and at a runtime.

Changes by message last until the process stops or reloads its files. The files belong to the
operator and are never written.
"""

from collections.abc import Mapping

from actors.policy.store import PolicyFileError, PolicyStore
from fsm.effects import Refused
from fsm.policy.model import Book, PolicySet
from fsm.policy.page import BadPolicyError
from fsm.policy.reading import read_set
from specs.bodies import policy
from specs.errors import BadMessageError
from specs.limits.node import MAX_POLICY_SETS
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body
from transports.codec import encode


class PolicyManagement:
    """Handler of messages that read or change the policies of a node or runtime.

    Args:
        store: Store of the policies.
        counts: Values of the counters of obligations, by name.
    """

    def __init__(self, store: PolicyStore, counts: Mapping[str, int]) -> None:
        self._store = store
        self._counts = counts

    def answer(self, message: Message, source: str) -> Message | Book | None:
        """Answer a request to read policies, or return changed policies for the caller to adopt.

        Args:
            message: The request of a sender who may manage policies.
            source: The sender, for the list of sets.

        Returns:
            The answer; or the next policies, which the caller has to put in force; or None for a
            reload, which the caller has to execute.

        Raises:
            BadMessageError: The body is not as the message catalogue requires.
        """
        match message.type:
            case MessageType.READ:
                return self._read(message, read_body(message, policy.ReadPolicies))
            case MessageType.CREATE:
                return self._add(message, read_body(message, policy.AddPolicies), source)
            case MessageType.UPDATE:
                return self._replace(message, read_body(message, policy.ReplacePolicies), source)
            case MessageType.DELETE:
                return self._remove(message, read_body(message, policy.RemovePolicies))
            case MessageType.EXECUTE:
                read_body(message, policy.PolicyCommand)
                return None
            case other:
                known = "read, create, update, delete and execute"
                raise BadMessageError(f"policies know {known}, not {other}")

    def _read(self, message: Message, request: policy.ReadPolicies) -> Message:
        if request.resource is None:
            book = _list_book(self._store.book, self._counts)
            return reply_to(message, Code.OK, {"value": write_body(book)})
        policy_set = self._store.book.set_of(request.resource)
        if policy_set is None:
            return _unknown(message, request.resource)
        answer = reply_to(message, Code.OK, {"value": policy_set.document})
        if len(encode(answer)) > MAX_MESSAGE_BYTES:
            why = f"{policy_set.id} is too large for a message; look into {policy_set.source}"
            return refuse(message, Code.TOO_LARGE, why)
        return answer

    def _add(self, message: Message, request: policy.AddPolicies, source: str) -> Message | Book:
        policy_set, sets = _set_of(request.value, source), self._store.book.sets
        if self._store.book.set_of(policy_set.id) is not None:
            why = f"there is a set {policy_set.id} already; replace it by update"
            return refuse(message, Code.CONFLICT, why)
        if len(sets) >= MAX_POLICY_SETS:
            why = f"there are {MAX_POLICY_SETS} sets; delete one first"
            return refuse(message, Code.TOO_LARGE, why)
        return self._store.with_sets((*sets, policy_set))

    def _replace(
        self, message: Message, request: policy.ReplacePolicies, source: str
    ) -> Message | Book:
        fresh = _set_of(request.value, source)
        if fresh.id != request.resource:
            raise BadMessageError(f"resource is {request.resource}, but value.id is {fresh.id}")
        if self._store.book.set_of(fresh.id) is None:
            return _unknown(message, fresh.id)
        sets = self._store.book.sets
        return self._store.with_sets(fresh if old.id == fresh.id else old for old in sets)

    def _remove(self, message: Message, request: policy.RemovePolicies) -> Message | Book:
        if self._store.book.set_of(request.resource) is None:
            return _unknown(message, request.resource)
        return self._store.with_sets(
            each for each in self._store.book.sets if each.id != request.resource
        )


def change_answer(message: Message, outcome: Book | Refused, lasts: str) -> Message:
    """Return the answer to a request to change the policies.

    Args:
        message: The request.
        outcome: The policies now in force, or why they were not changed.
        lasts: How long they are in force, in words.
    """
    if isinstance(outcome, Refused):
        return refuse(message, outcome.code, outcome.why)
    change = policy.PolicyChange(outcome.version, lasts)
    return reply_to(message, Code.OK, {"value": write_body(change)})


def _set_of(document: object, source: str) -> PolicySet:
    try:
        return read_set(document, source)
    except BadPolicyError as exc:
        path = f"value.{exc.path}" if exc.path else "value"
        raise BadMessageError(f"{path}:  {exc.reason}") from exc


def _unknown(message: Message, name: str) -> Message:
    return refuse(message, Code.NOT_FOUND, f"there is no policy set {name}")


def _list_book(book: Book, counts: Mapping[str, int]) -> policy.PolicyBook:
    entries = tuple(
        policy.PolicyEntry(each.id, each.version, each.rules, each.source) for each in book.sets
    )
    combining, default = str(book.combining), str(book.default)
    return policy.PolicyBook(book.version, combining, default, entries, dict(counts))


def unusable(message: Message, error: PolicyFileError) -> Message:
    """Return the answer that the policy files cannot be used.

    Args:
        message: The request.
        error: The error of the files.
    """
    return refuse(message, Code.BAD_BACKEND, f"{error}; the policies stay as they are")
