"""The subscriptions of runtimes to addresses, at a message node (MN-14..MN-17, I-M5..I-M7).

Each pair of an address and a runtime, a path, is an entity of
`fsm.machines.sync.node_subscription`. A node may hold millions of paths, so they are not kept as
objects: dictionaries hold their states, and the observers that the owner consented to; a step
restores the entity. Most paths serve one observer, which is kept without a tuple.

A path on a part of a foreign object is held until the owner consents to an observer of the runtime
(S3, T4); when the last observer is gone, it is held again. The owner's consent is valid for all
paths of the runtime on that object, also for later ones.

The consent of owners is read from the messages that pass a node. The observer's runtime sets its
path, and then asks the owner: by `subscribe` to the object or its `subscription` address, or by
`read` of it (M-38, M-41, SC-30). The core remembers such requests of runtimes that have a held
path, until the owner's answer passes or the time for it is over. Only the owner's answer to that
request counts: an answer to another one, such as the end of a subscription (M-43), is no consent.
The key of a request is its ends and its id, which the requester chooses. So a consent counts only
if the answer contains the object, which an owner sends to observers only; and if two requests have
the same id, no answer to it counts.
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
"""The observers that the owner consented to: one or several; None: the path needs no consent."""


def _each(observers: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the observers as a tuple."""
    return (observers,) if isinstance(observers, str) else observers


def _join(known: Observers, observer: str) -> Observers:
    """Return the observers of a path after one more consent."""
    match known:
        case None:
            return None
        case str():
            return known if known == observer else (known, observer)
        case _:
            return known if observer in known else (*known, observer)


def _without(known: str | tuple[str, ...], observer: str) -> Observers:
    """Return the observers of a path without one of them, or None if none is left."""
    if isinstance(known, str):
        return None if known == observer else known
    remaining = tuple(each for each in known if each != observer)
    return remaining if len(remaining) > 1 else remaining[0]


_ENTITY_SLASHES: Final = 4


def entity_of(address: str) -> str:
    """Return the entity that an address is part of: scheme, domain, first path segment."""
    return "/".join(address.split("/", _ENTITY_SLASHES)[:_ENTITY_SLASHES])


class PathsPort(Protocol):
    """The calls of the table of paths to its host; none of them calls the table."""

    def step(self, step: Step) -> None:
        """Trace a step of a path."""

    def path_changed(self, row: RowChanged) -> None:
        """Trace that a path came or went."""

    def forget_routes(self) -> None:
        """Forget conclusions from the table, since it has changed."""


_OF_REGISTRY: Final = "/registration"
"""The resource of reports on a record, which are sent even if the address has no owner."""


class SubscriptionCore:
    """The subscription table of one node.

    Args:
        port: The host.
        user_of: Returns the user of a runtime: the limits count for all sessions of a user.
    """

    def __init__(self, port: PathsPort, user_of: Callable[[str], str] = own_user) -> None:
        self._port = port
        self._shares = UserShares("paths", _EACH, _TOGETHER, user_of)
        # Active paths with their observers, by address and runtime; and held paths.
        self._active: dict[str, dict[str, Observers]] = {}
        self._held: dict[str, dict[str, None]] = {}
        # The states of all paths, by runtime and address; and the addresses with a path, by entity.
        self._states: dict[str, dict[str, State]] = {}
        self._parts: dict[str, dict[str, None]] = {}

    def subscribers(self, resource: str) -> Collection[str]:
        """Return the runtimes that get the messages to an address, oldest first."""
        return self._active.get(resource, ())

    def is_heard_by(self, resource: str, runtime: str, observer: str) -> bool:
        """Return whether messages to an address go to a runtime for this observer.

        If no consent is needed, messages go there for all hyperties of the runtime.

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
        """Return the runtimes whose path on an address waits for the owner's consent."""
        return self._held.get(resource, ())

    def resources_of(self, runtime: str) -> tuple[str, ...]:
        """Return the addresses on which a runtime has paths, oldest first, with held ones."""
        return tuple(self._states.get(runtime, ()))

    def observes(self, runtime: str, entity: str) -> bool:
        """Return whether a runtime has a path on an entity that needs its owner's consent.

        Args:
            runtime: Address of the runtime.
            entity: Address of the entity.
        """
        return any(
            state is State.HELD or self._active[each][runtime] is not None
            for each, state in self._on(runtime, entity)
        )

    def refusal(self, runtime: str, resources: Collection[str]) -> Refused | None:
        """Return why a runtime may have no paths on further addresses, or None.

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
        """Deliver messages for `resources` to a runtime, too; set all paths or none.

        A path that needs consent has it already if another path on the entity has it.

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
        """Stop delivering messages for `resources` to a runtime."""
        paths = self._states.get(runtime, {})
        pairs = [(each, runtime) for each in dict.fromkeys(resources) if each in paths]
        self._remove(pairs, Trigger.UNSUBSCRIBE)

    def remove_runtime(self, runtime: str) -> None:
        """Remove the paths of a runtime, whose session is over (I-M4)."""
        pairs = [(each, runtime) for each in self.resources_of(runtime)]
        self._remove(pairs, Trigger.SESSION_OVER)

    def remove_address(self, address: str) -> None:
        """Stop delivering messages to a released address or to addresses below it (MN-12)."""
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
        """Activate the subscriptions that wait for the consent of the object's owner."""
        observer = intern(observer)
        for resource, state in self._on(runtime, entity):
            if state is State.HELD:
                self._turn(resource, runtime, Trigger.CONSENT, observer)
            else:
                known = self._active[resource][runtime]
                self._active[resource][runtime] = _join(known, observer)
        self._port.forget_routes()

    def decline(self, entity: str, runtime: str, observer: str) -> None:
        """Note that the owner refused."""
        self._refuse(entity, runtime, observer, Trigger.REFUSE)

    def lapse(self, entity: str, runtime: str, observer: str) -> None:
        """Note that the lease of the observer is over."""
        self._refuse(entity, runtime, observer, Trigger.EXPIRE)

    def _refuse(self, entity: str, runtime: str, observer: str, trigger: Trigger) -> None:
        self.withdraw(entity, runtime, observer)
        paths = self._on(runtime, entity)
        held_paths = [(resource, runtime) for resource, state in paths if state is State.HELD]
        self._remove(held_paths, trigger)

    def withdraw(self, entity: str, runtime: str, observer: str) -> None:
        """Note that the observer left, or was expelled (M-43, M-45)."""
        for resource, state in self._on(runtime, entity):
            known = self._active[resource][runtime] if state is State.ACTIVE else None
            if known is not None:
                remaining = _without(known, observer)
                self._active[resource][runtime] = remaining
                if remaining is None:
                    self._turn(resource, runtime, Trigger.WITHDRAW, None)
        self._port.forget_routes()

    def open(self, entity: str) -> None:
        """Activate all held paths, since the object has a new owner that is never asked."""
        for resource in tuple(self._parts.get(entity, ())):
            for runtime in tuple(self._held.get(resource, ())):
                self._turn(resource, runtime, Trigger.CONSENT, None)
        self._port.forget_routes()

    def _consents(self, runtime: str, entity: str) -> Observers:
        """Return the observers with consent on other paths of a runtime on an entity."""
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
        """Return the paths of a runtime on an entity, by iterating over the smaller table."""
        parts, states = self._parts.get(entity), self._states.get(runtime)
        if parts is None or states is None:
            return []
        if len(parts) <= len(states):
            return [(part, states[part]) for part in parts if part in states]
        return [(each, state) for each, state in states.items() if each in parts]

    def _put(self, resource: str, runtime: str, state: State, observers: Observers) -> None:
        """Add a new path."""
        self._shares.take(runtime, 1, _cost(resource))
        self._place(resource, runtime, state, observers)
        self._parts.setdefault(entity_of(resource), {})[resource] = None

    def _take_out(self, resource: str, runtime: str) -> None:
        """Remove an existing path from all tables (I-X2)."""
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
        """Remove a path from the table of its state."""
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
    """Remove a value from a row, and the row with its last value."""
    del table[row][value]
    if not table[row]:
        del table[row]


# ---- consent of owners


HEEDED: Final = frozenset(
    {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.READ, MessageType.RESPONSE}
)
"""Verbs of the messages that may change observers."""

_SUBSCRIPTION: Final = "/subscription"
_NO: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND, Code.GONE})
"""Codes of refusals of a read that depend on the reader, not on the moment."""

_Key: TypeAlias = tuple[str, str, int]
"""Sender, receiver and id of a request."""


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

    def __init__(self, port: SubscriptionCore, owner_of: Callable[[str], str | None]) -> None:
        self._port = port
        self._owner_of = owner_of
        self._asked: OrderedDict[_Key, _Asked] = OrderedDict()
        self._of: dict[str, dict[_Key, None]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def passed(self, message: Message, by: str, now: float) -> None:
        """Read an admitted message of a type in `HEEDED` before it is routed.

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
        """Forget the requests over a session that is over."""
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
        """Return whether a refusal is final: other requests of the runtime may be under way.

        An owner that cannot decide now (503) is asked again, and has not forgotten an observer.
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
    """Return whether a request repeats another one that is under way."""
    return attrs.evolve(first, until=other.until) == other


def _object_in(to: str) -> str | None:
    """Return the object that a request for consent is about, or None if it is another request."""
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
    """Return the object from which an observer is expelled (M-45), or None."""
    match message.body:
        # A message to a part of a runtime has the object in a list, like path messages (N8).
        case {"resource": str(url)} | {"resources": [str(url)]}:
            return url
        case _:
            return None
