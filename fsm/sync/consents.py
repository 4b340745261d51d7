"""Consent of owners to be observed, read from the messages that pass a node (S3, T4).

The observer's runtime sets its path, and then asks the owner: `subscribe` to the object or
its `subscription` address, or `read` of it (M-38, M-41, SC-30). The core remembers such
requests, of runtimes that have a path which waits for consent, until the owner's answer
passes or the time for it is over. Only the owner's answer to that request counts: an answer
to any other, such as the end of a subscription (M-43), is no consent. The key of a request
is its ends and its id, which the requester chooses. So a consent counts only if the answer
contains the object, which an owner sends to observers only, and an id that two requests share
counts for neither.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import attrs

from fsm.sync.subscriptions import entity_of
from specs.limits.protocol import MAX_SUBSCRIPTIONS, REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code

HEEDED: Final = frozenset(
    {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.READ, MessageType.RESPONSE}
)
"""Verbs of the messages that may change observers."""

_SUBSCRIPTION: Final = "/subscription"
_NO: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND, Code.GONE})
"""Refusals of a read that are about the reader, not about the moment."""

_Key: TypeAlias = tuple[str, str, int]
"""Sender, receiver and id of a request."""


class ConsentPort(Protocol):
    """The table of paths; no method calls the core."""

    def observes(self, runtime: str, entity: str) -> bool:
        """Return whether a runtime has a path on an object that needs consent."""

    def consent(self, entity: str, runtime: str, observer: str) -> None:
        """The owner of an object consented to an observer in a runtime."""

    def decline(self, entity: str, runtime: str, observer: str) -> None:
        """The owner refused."""

    def withdraw(self, entity: str, runtime: str, observer: str) -> None:
        """The observer left, or was expelled."""


@attrs.frozen(slots=True)
class _Asked:
    """A request for consent that is under way."""

    entity: str
    runtime: str
    observer: str
    type: MessageType
    until: float


class ConsentCore:
    """The requests for consent that are under way through one node.

    Args:
        port: The table of paths.
        owner_of: Returns the owner of an address, if any.
    """

    def __init__(self, port: ConsentPort, owner_of: Callable[[str], str | None]) -> None:
        self._port = port
        self._owner_of = owner_of
        self._asked: OrderedDict[_Key, _Asked] = OrderedDict()
        self._of: dict[str, dict[_Key, None]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def passed(self, message: Message, by: str, now: float) -> None:
        """Read a message of a verb in `HEEDED` that is about to be routed.

        Args:
            message: It was admitted, and policy permits it.
            by: The runtime whose session it came over.
            now: Seconds on the host's clock.
        """
        match message.type:
            case MessageType.RESPONSE if self._asked:
                self._answered(message, by, now)
            case MessageType.UNSUBSCRIBE:
                self._left(message, by)
            case MessageType.SUBSCRIBE | MessageType.READ:
                self._note(message, by, now)
            case _:
                pass

    def is_asking(self, entity: str, runtime: str) -> bool:
        """Return whether a runtime waits for the consent of an object's owner.

        Args:
            entity: Address of the object.
            runtime: Address of the runtime.
        """
        return any(self._asked[key].entity == entity for key in self._of.get(runtime, ()))

    def gone(self, runtime: str) -> None:
        """Forget the requests over a session that is over."""
        for key in self._of.pop(runtime, ()):
            del self._asked[key]

    def _note(self, message: Message, by: str, now: float) -> None:
        entity = _object_in(message.to)
        if entity is None or not self._port.observes(by, entity):
            return
        if message.type is MessageType.READ and "attribute" in message.body:
            # An attribute that is absent is answered 404, too, and may be an object.
            return
        self._forget_late(now)
        key = (message.from_, message.to, message.id)
        asked = _Asked(entity, by, _observer(message), message.type, now + REPLY_TIMEOUT)
        before = self._asked.get(key)
        if before is not None and not _is_same(before, asked):
            self._forget(key)
            return
        mine = self._of.setdefault(by, {})
        if len(mine) >= MAX_SUBSCRIPTIONS and key not in mine:
            # One path needs one answer: a repeated request counts once.
            return
        mine[key] = None
        self._asked[key] = asked
        self._asked.move_to_end(key)

    def _answered(self, answer: Message, by: str, now: float) -> None:
        key = (answer.to, answer.from_, answer.id)
        asked = self._asked.get(key)
        if asked is None or now >= asked.until or self._owner_of(asked.entity) != by:
            return
        if not answer.is_final:
            self._asked[key] = attrs.evolve(asked, until=now + REPLY_TIMEOUT)
            self._asked.move_to_end(key)
            return
        is_yes = answer.code <= LAST_SUCCESS
        if is_yes and not isinstance(answer.body.get("value"), dict):
            return
        self._forget(key)
        if is_yes:
            self._port.consent(asked.entity, asked.runtime, asked.observer)
        elif self._is_no(asked, answer):
            self._port.decline(asked.entity, asked.runtime, asked.observer)

    def _is_no(self, asked: _Asked, answer: Message) -> bool:
        """Return whether a refusal is final: other requests of the runtime may be under way.

        An owner that cannot decide now (503) is asked again, and has not forgotten an observer.
        """
        if answer.code == Code.UNAVAILABLE:
            return False
        if asked.type is MessageType.READ and answer.code not in _NO:
            return False
        return not self.is_asking(asked.entity, asked.runtime)

    def _left(self, message: Message, by: str) -> None:
        entity = _object_in(message.to)
        if entity is not None and self._port.observes(by, entity):
            self._port.withdraw(entity, by, _observer(message))
            return
        expelled = _expelled_from(message)
        if expelled is not None and self._owner_of(expelled) == by:
            runtime = self._owner_of(message.to)
            if runtime is not None and runtime != by:
                self._port.withdraw(entity_of(expelled), runtime, _shut_out(message))

    def _forget_late(self, now: float) -> None:
        while self._asked and next(iter(self._asked.values())).until <= now:
            self._forget(next(iter(self._asked)))

    def _forget(self, key: _Key) -> None:
        runtime = self._asked.pop(key).runtime
        mine = self._of[runtime]
        del mine[key]
        if not mine:
            del self._of[runtime]


def _is_same(first: _Asked, other: _Asked) -> bool:
    """Return whether a request is one that is under way, sent again."""
    return attrs.evolve(first, until=other.until) == other


def _object_in(to: str) -> str | None:
    """Return the object a request for consent goes to; None: it is none."""
    entity = entity_of(to)
    return entity if to in {entity, entity + _SUBSCRIPTION} else None


def _observer(message: Message) -> str:
    source = message.body.get("source")
    return source if isinstance(source, str) else message.from_


def _shut_out(message: Message) -> str:
    """Return the expelled observer: the receiver, or the one named to its sync manager."""
    observer = message.body.get("observer")
    return observer if isinstance(observer, str) else message.to


def _expelled_from(message: Message) -> str | None:
    """Return the object an observer is expelled from (M-45); None: it is not that."""
    match message.body:
        # A part of a runtime is spoken to as in path messages: the object is in a list (N8).
        case {"resource": str(url)} | {"resources": [str(url)]}:
            return url
        case _:
            return None
