"""The subscriptions of runtimes to addresses, at a message node (MN-14..MN-17, I-M5..I-M7).

A node sends the messages to an address to all runtimes that subscribed to the address. Such a
subscription, a pair of an address and a runtime, is called a path; its states are those of the
machine `fsm.machines.sync.node_subscription`. A node may hold millions of paths, so they are not
kept as objects: dictionaries hold their states, and the observers that the object's owner consented
to; each transition restores the entity. A single observer is kept without a tuple.

A path to an address of another runtime's object is held, without messages, until the object's owner
consents to an observer of the subscribing runtime (S3, T4); when the last such observer is gone,
the path is held again. The owner's consent is valid for all paths of the runtime to that object,
also for later ones.

The consent of owners is read from the messages that pass a node. The observer's runtime sets its
path, and then asks the owner: by `subscribe` to the object or its `subscription` address, or by
`read` of the object (M-38, M-41, SC-30). `ConsentCore` remembers such requests of runtimes that
have a held path, until the owner's answer passes or the time for an answer is over. Only the
owner's answer to that request counts: an answer to another request, such as the end of a
subscription (M-43), is no consent. A request is identified by sender, receiver and id, which the
requester chooses. So a consent counts only if the answer contains the object, which an owner sends
to observers only; and if two requests have the same id, no answer to them counts.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from sys import intern
from typing import Final, Protocol, TypeAlias, TypeVar

import attrs

from fsm.effects import Refused, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.shares import Share, UserShares, own_user
from fsm.machines.sync.node_subscription import NODE_SUBSCRIPTION, State, Trigger
from specs.limits import node
from specs.limits.protocol import MAX_SUBSCRIPTIONS, REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from specs.trace import Op

Observers: TypeAlias = str | tuple[str, ...] | None
"""Observers that the owner consented to: one or several; None: no consent is needed."""


def _each(observers: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one or several observers as a tuple."""
    return (observers,) if isinstance(observers, str) else observers


def _join(known: Observers, observer: str) -> Observers:
    """Return the observers of a subscription after the owner consented to one more."""
    match known:
        case None:
            return None
        case str():
            return known if known == observer else (known, observer)
        case _:
            return known if observer in known else (*known, observer)


def _without(known: str | tuple[str, ...], observer: str) -> Observers:
    """Return the observers of a subscription without one of them, or None if none is left."""
    if isinstance(known, str):
        return None if known == observer else known
    remaining = tuple(each for each in known if each != observer)
    return remaining if len(remaining) > 1 else remaining[0]


_ENTITY_SLASHES: Final = 4


def entity_of(address: str) -> str:
    """Return the entity that an address belongs to: scheme, domain and first path segment."""
    return "/".join(address.split("/", _ENTITY_SLASHES)[:_ENTITY_SLASHES])


class PathsPort(Protocol):
    """Callbacks of `SubscriptionCore` to its host; none of them may call the core."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition of a subscription."""

    def path_changed(self, row: RowChanged) -> None:
        """Trace that a subscription was added or removed."""

    def forget_routes(self) -> None:
        """Drop cached routing decisions, since the subscriptions have changed."""


_OF_REGISTRY: Final = "/registration"
"""End of the address to which reports on a registration are sent, even without an owner."""


class SubscriptionCore:
    """Subscription table of one node: to which runtimes messages to an address are sent.

    Args:
        port: The host.
        user_of: Returns the user of a runtime: the limits count for all sessions of a user.
    """

    def __init__(self, port: PathsPort, user_of: Callable[[str], str] = own_user) -> None:
        self._port = port
        self._shares = UserShares("paths", _EACH, _TOGETHER, user_of)
        # Active paths with their observers, by address and runtime; and held paths, likewise.
        self._active: dict[str, dict[str, Observers]] = {}
        self._held: dict[str, dict[str, None]] = {}
        # The states of all paths, by runtime and address; and the addresses with a path, by entity.
        self._states: dict[str, dict[str, State]] = {}
        self._parts: dict[str, dict[str, None]] = {}

    def subscribers(self, resource: str) -> Collection[str]:
        """Return the runtimes to which messages to an address are sent, oldest first."""
        return self._active.get(resource, ())

    def is_heard_by(self, resource: str, runtime: str, observer: str) -> bool:
        """Return whether a runtime gets the messages to an address on behalf of an observer.

        If no consent is needed, the runtime gets the messages for all its hyperties.

        Args:
            resource: The address.
            runtime: Address of the runtime.
            observer: Address of the observer.
        """
        runtimes = self._active.get(resource, {})
        if runtime not in runtimes:
            return False
        observers = runtimes[runtime]
        return observers is None or observer in _each(observers)

    def held(self, resource: str) -> Collection[str]:
        """Return the runtimes whose subscription to an address waits for the owner's consent."""
        return self._held.get(resource, ())

    def resources_of(self, runtime: str) -> tuple[str, ...]:
        """Return the addresses to which a runtime has subscriptions, held ones included."""
        return tuple(self._states.get(runtime, ()))

    def observes(self, runtime: str, entity: str) -> bool:
        """Return whether a runtime has a subscription to an entity that needs its owner's consent.

        Args:
            runtime: Address of the runtime.
            entity: Address of the entity.
        """
        return any(
            state is State.HELD or self._active[each][runtime] is not None
            for each, state in self._on(runtime, entity)
        )

    def refusal(self, runtime: str, resources: Collection[str]) -> Refused | None:
        """Return why a runtime may not subscribe to further addresses, or None if it may.

        Args:
            runtime: Address of the runtime.
            resources: The addresses.
        """
        paths = self._states.get(runtime, {})
        added = {resource for resource in resources if resource not in paths}
        if len(paths) + len(added) > MAX_SUBSCRIPTIONS:
            return _TOO_MANY
        return self._shares.refusal(runtime, len(added), sum(map(_cost, added)))

    def __len__(self) -> int:
        return sum(map(len, self._states.values()))

    # ---- setting and removing paths

    def subscribe(
        self, runtime: str, resources: Collection[str], asking: Collection[str] = ()
    ) -> Refused | None:
        """Subscribe a runtime to addresses, so that it gets their messages; to all or none.

        A subscription that needs consent has consent already if another subscription of the runtime
        to the same entity has it.

        Args:
            runtime: Address of the runtime.
            resources: The addresses.
            asking: The addresses whose owner must consent first.
        """
        paths = self._states.get(runtime, {})
        added = [each for each in dict.fromkeys(resources) if each not in paths]
        refusal = self.refusal(runtime, resources)
        if refusal is not None:
            return refusal
        for resource in added:
            is_asking = resource in asking
            observers = self._consents(runtime, entity_of(resource)) if is_asking else None
            trigger = Trigger.HOLD if is_asking and observers is None else Trigger.SUBSCRIBE
            step = Entity(NODE_SUBSCRIPTION, _key(resource, runtime)).step(trigger)
            self._put(resource, runtime, State(step.new), observers)
            self._port.step(step)
            self._port.path_changed(_row(Op.ADD, resource, runtime))
        self._port.forget_routes()
        return None

    def unsubscribe(self, runtime: str, resources: Collection[str]) -> None:
        """Remove the subscriptions of a runtime to `resources`, whose messages it gets no more."""
        paths = self._states.get(runtime, {})
        pairs = [(each, runtime) for each in dict.fromkeys(resources) if each in paths]
        self._remove(pairs, Trigger.UNSUBSCRIBE)

    def remove_runtime(self, runtime: str) -> None:
        """Remove all subscriptions of a runtime whose session is over (I-M4)."""
        pairs = [(each, runtime) for each in self.resources_of(runtime)]
        self._remove(pairs, Trigger.SESSION_OVER)

    def remove_address(self, address: str) -> None:
        """Remove all subscriptions to a released address and to the addresses below it (MN-12)."""
        self._remove(list(self._at_or_below(address)), Trigger.ADDRESS_RELEASED)

    def _remove(self, pairs: Iterable[tuple[str, str]], trigger: Trigger) -> None:
        for resource, runtime in pairs:
            step = self._restore_entity(resource, runtime).step(trigger)
            self._take_out(resource, runtime)
            self._port.step(step)
            self._port.path_changed(_row(Op.DEL, resource, runtime))
        self._port.forget_routes()

    def _at_or_below(self, address: str) -> Iterator[tuple[str, str]]:
        for resource in self._parts.get(entity_of(address), ()):
            is_below = resource.startswith(f"{address}/") and not resource.endswith(_OF_REGISTRY)
            if resource == address or is_below:
                for runtime in (*self._active.get(resource, ()), *self._held.get(resource, ())):
                    yield resource, runtime

    # ---- consent of the owner of an object to an observer in a runtime

    def consent(self, entity: str, runtime: str, observer: str) -> None:
        """Record the owner's consent to an observer; activate its runtime's held subscriptions."""
        observer = intern(observer)
        for resource, state in self._on(runtime, entity):
            if state is State.HELD:
                self._turn(resource, runtime, Trigger.CONSENT, observer)
            else:
                known = self._active[resource][runtime]
                self._active[resource][runtime] = _join(known, observer)
        self._port.forget_routes()

    def decline(self, entity: str, runtime: str, observer: str) -> None:
        """Remove the held subscriptions of a runtime, since the owner refused its observer."""
        self._refuse(entity, runtime, observer, Trigger.REFUSE)

    def lapse(self, entity: str, runtime: str, observer: str) -> None:
        """Remove an observer whose lease is over, and the held subscriptions of its runtime."""
        self._refuse(entity, runtime, observer, Trigger.EXPIRE)

    def _refuse(self, entity: str, runtime: str, observer: str, trigger: Trigger) -> None:
        self.withdraw(entity, runtime, observer)
        paths = self._on(runtime, entity)
        held_paths = [(resource, runtime) for resource, state in paths if state is State.HELD]
        self._remove(held_paths, trigger)

    def withdraw(self, entity: str, runtime: str, observer: str) -> None:
        """Remove an observer that left or was expelled; hold subscriptions without observers."""
        for resource, state in self._on(runtime, entity):
            known = self._active[resource][runtime] if state is State.ACTIVE else None
            if known is not None:
                remaining = _without(known, observer)
                self._active[resource][runtime] = remaining
                if remaining is None:
                    self._turn(resource, runtime, Trigger.WITHDRAW, None)
        self._port.forget_routes()

    def open(self, entity: str) -> None:
        """Activate all held subscriptions to an object, whose new owner is never asked."""
        for resource in tuple(self._parts.get(entity, ())):
            for runtime in tuple(self._held.get(resource, ())):
                self._turn(resource, runtime, Trigger.CONSENT, None)
        self._port.forget_routes()

    def _consents(self, runtime: str, entity: str) -> Observers:
        """Return the observers with consent on other subscriptions of a runtime to one entity."""
        for resource, state in self._on(runtime, entity):
            known = self._active[resource][runtime] if state is State.ACTIVE else None
            if known is not None:
                return known
        return None

    def _restore_entity(self, resource: str, runtime: str) -> Entity:
        state = self._states[runtime][resource]
        return Entity.restore(NODE_SUBSCRIPTION, _key(resource, runtime), state)

    def _turn(self, resource: str, runtime: str, trigger: Trigger, observers: Observers) -> None:
        step = self._restore_entity(resource, runtime).step(trigger)
        self._lift(resource, runtime)
        self._place(resource, runtime, State(step.new), observers)
        self._port.step(step)

    # ---- the tables

    def _on(self, runtime: str, entity: str) -> list[tuple[str, State]]:
        """Return the subscriptions of a runtime to an entity, found in the smaller table."""
        parts, states = self._parts.get(entity), self._states.get(runtime)
        if parts is None or states is None:
            return []
        if len(parts) <= len(states):
            return [(part, states[part]) for part in parts if part in states]
        return [(each, state) for each, state in states.items() if each in parts]

    def _put(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        """Add a new subscription to all tables, and count it for its user's limits."""
        self._shares.take(runtime, 1, _cost(resource))
        self._place(resource, runtime, state, observers)
        self._parts.setdefault(entity_of(resource), {})[resource] = None

    def _take_out(self, resource: str, runtime: str) -> None:
        """Remove an existing subscription from all tables (I-X2)."""
        self._shares.take(runtime, -1, -_cost(resource))
        self._lift(resource, runtime)
        _take_out(self._states, runtime, resource)
        if resource not in self._active and resource not in self._held:
            _take_out(self._parts, entity_of(resource), resource)

    def _place(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        if state is State.HELD:
            self._held.setdefault(resource, {})[runtime] = None
        else:
            self._active.setdefault(resource, {})[runtime] = observers
        self._states.setdefault(runtime, {})[resource] = state

    def _lift(self, resource: str, runtime: str) -> None:
        """Remove a subscription from the table of its state: of active or of held ones."""
        if self._states[runtime][resource] is State.HELD:
            _take_out(self._held, resource, runtime)
        else:
            _take_out(self._active, resource, runtime)


_EACH: Final = Share(node.USER_PATHS, node.USER_PATH_BYTES)
_TOGETHER: Final = Share(node.DOMAIN_PATHS, node.DOMAIN_PATH_BYTES)
_TOO_MANY: Final = Refused(Code.TOO_LARGE, f"a session has at most {MAX_SUBSCRIPTIONS} paths")


def _cost(resource: str) -> int:
    return node.PATH_COST + len(resource)


def _key(resource: str, runtime: str) -> str:
    return f"{resource}|{runtime}"


def _row(op: Op, resource: str, runtime: str) -> RowChanged:
    return RowChanged(op, "subs", resource, runtime, "sm")


V = TypeVar("V")


def _take_out(table: dict[str, dict[str, V]], row: str, value: str) -> None:
    """Remove a value from an inner dictionary, and also this dictionary if it is empty then."""
    del table[row][value]
    if not table[row]:
        del table[row]


# ---- consent of owners


HEEDED: Final = frozenset(
    {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.READ, MessageType.RESPONSE}
)
"""Types of the messages that may tell a node of a new or leaving observer."""

_SUBSCRIPTION: Final = "/subscription"
_NO: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND, Code.GONE})
"""Codes of refused reads that are final for the reader, not just for the moment."""

_Key: TypeAlias = tuple[str, str, int]
"""Identity of a request: sender, receiver and id."""


@attrs.frozen(slots=True)
class _Asked:
    """Observer's request to an owner that waits for the owner's consent."""

    entity: str
    runtime: str
    observer: str
    type: MessageType
    until: float


class ConsentCore:
    """Reader of passing messages, which learns from them which observers an owner consents to.

    Args:
        port: The table of subscriptions, which is told of each consent.
        owner_of: Returns the owner of an address, if any.
    """

    def __init__(self, port: SubscriptionCore, owner_of: Callable[[str], str | None]) -> None:
        self._port = port
        self._owner_of = owner_of
        self._asked: OrderedDict[_Key, _Asked] = OrderedDict()
        self._of: dict[str, dict[_Key, None]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def passed(self, message: Message, by: str, now: float) -> None:
        """Learn consents and leaves from an admitted message, before the message is routed.

        Args:
            message: The message, which was admitted and is permitted by policy.
            by: The runtime over whose session it came.
            now: Seconds on the host's clock.
        """
        match message.type:
            case MessageType.RESPONSE if self._asked:
                self._take_answer(message, by, now)
            case MessageType.UNSUBSCRIBE:
                self._take_leave(message, by)
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
        """Forget the requests of a runtime whose session is over."""
        for key in self._of.pop(runtime, ()):
            del self._asked[key]

    def _note(self, message: Message, by: str, now: float) -> None:
        entity = _object_in(message.to)
        if entity is None or not self._port.observes(by, entity):
            return
        if message.type is MessageType.READ and "attribute" in message.body:
            # The request may read an attribute: 404 then means that the attribute is absent.
            return
        self._forget_late(now)
        key = (message.from_, message.to, message.id)
        request = _Asked(entity, by, _observer(message), message.type, now + REPLY_TIMEOUT)
        earlier = self._asked.get(key)
        if earlier is not None and not _is_same(earlier, request):
            self._forget(key)
            return
        keys = self._of.setdefault(by, {})
        if len(keys) >= MAX_SUBSCRIPTIONS and key not in keys:
            # A path needs one answer only, so a repeated request counts once.
            return
        keys[key] = None
        self._asked[key] = request
        self._asked.move_to_end(key)

    def _take_answer(self, answer: Message, by: str, now: float) -> None:
        key = (answer.to, answer.from_, answer.id)
        request = self._asked.get(key)
        if request is None or now >= request.until or self._owner_of(request.entity) != by:
            return
        if not answer.is_final:
            self._asked[key] = attrs.evolve(request, until=now + REPLY_TIMEOUT)
            self._asked.move_to_end(key)
            return
        is_yes = answer.code <= LAST_SUCCESS
        if is_yes and not isinstance(answer.body.get("value"), dict):
            return
        self._forget(key)
        if is_yes:
            self._port.consent(request.entity, request.runtime, request.observer)
        elif self._is_no(request, answer):
            self._port.decline(request.entity, request.runtime, request.observer)

    def _is_no(self, asked: _Asked, answer: Message) -> bool:
        """Return whether a refusal is final: no other request of the runtime may still be accepted.

        An owner that cannot decide now (503) will be asked again, and has not removed an observer.
        """
        if answer.code == Code.UNAVAILABLE:
            return False
        if asked.type is MessageType.READ and answer.code not in _NO:
            return False
        return not self.is_asking(asked.entity, asked.runtime)

    def _take_leave(self, message: Message, by: str) -> None:
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
        keys = self._of[runtime]
        del keys[key]
        if not keys:
            del self._of[runtime]


def _is_same(first: _Asked, other: _Asked) -> bool:
    """Return whether two requests are equal apart from their deadline."""
    return attrs.evolve(first, until=other.until) == other


def _object_in(to: str) -> str | None:
    """Return the object that a request for consent is about, or None for another message."""
    entity = entity_of(to)
    return entity if to in {entity, entity + _SUBSCRIPTION} else None


def _observer(message: Message) -> str:
    source = message.body.get("source")
    return source if isinstance(source, str) else message.from_


def _shut_out(message: Message) -> str:
    """Return the observer that a message calls expelled: its receiver, or the one in its body."""
    observer = message.body.get("observer")
    return observer if isinstance(observer, str) else message.to


def _expelled_from(message: Message) -> str | None:
    """Return the object from which a message expels an observer (M-45), or None."""
    match message.body:
        # A message to a part of a runtime has the object in a list, like path messages (N8).
        case {"resource": str(url)} | {"resources": [str(url)]}:
            return url
        case _:
            return None
