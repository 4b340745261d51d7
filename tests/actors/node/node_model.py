"""What everybody must hear from a message node, said a second time and simply.

Independent of the product: written from the protocol's pages (MN-04..MN-16, MN-27, ALC, S3),
with none of its code. A session is attached or not, an address is somebody's or nobody's, a
path is held or active; each act says what each runtime hears, in order.
"""

from collections import defaultdict

import attrs

Seen = tuple[object, ...]
"""`("answer", code)`, or `("request" or "event", from, to, value)`."""

Heard = dict[str, list[Seen]]


@attrs.define
class Session:
    """A runtime's session, and what waits for it while it is away.

    Attributes:
        is_known: Whether the runtime has shown that it got the token.
    """

    is_attached: bool = True
    is_known: bool = False
    waiting: list[Seen] = attrs.field(factory=list)


@attrs.define
class Model:
    """One node with its runtimes, by name.

    Attributes:
        owners: Of every address that is allocated.
        graves: Addresses that were.
        held: Paths that wait for consent: resource and runtime.
        active: Paths that bring something.
        is_young: Whether the node has been started within the time to come back (`RETURN_TIME`).
        was_restarted: Whether somebody has named a session that the node does not have: it takes
            that for one of its earlier process, whose runtimes may be on their way back.
    """

    sessions: dict[str, Session] = attrs.field(factory=dict)
    owners: dict[str, str] = attrs.field(factory=dict)
    graves: set[str] = attrs.field(factory=set)
    held: set[tuple[str, str]] = attrs.field(factory=set)
    active: dict[tuple[str, str], None] = attrs.field(factory=dict)
    is_young: bool = True
    was_restarted: bool = False
    heard: defaultdict[str, list[Seen]] = attrs.field(factory=lambda: defaultdict(list))

    def reported(self) -> Heard:
        """Return what was heard since this was asked last."""
        heard, self.heard = dict(self.heard), defaultdict(list)
        return heard

    # ---- sessions

    def open(self, name: str) -> int:
        """Open without a token; the code is for whoever asks."""
        there = self.sessions.get(name)
        if there is not None and (there.is_attached or there.is_known):
            return 409
        self.sessions[name] = Session()
        self._refuse([] if there is None else there.waiting, 503)
        return 200

    def knows(self, name: str) -> None:
        """The runtime says something: it has its token."""
        self.sessions[name].is_known = True

    def reopen(self, name: str, which: str) -> int:
        """Come back by a token that is `right` or `wrong`."""
        if name not in self.sessions:
            self.was_restarted = True
            return 410
        return 200 if which == "right" else 401

    def back(self, name: str) -> None:
        """What waited is heard, and requests of it are answered."""
        session = self.sessions[name]
        session.is_attached = session.is_known = True
        waiting, session.waiting = session.waiting, []
        self.heard[name] += waiting
        for seen in waiting:
            if seen[0] == "request":
                self._deliver(self._owner(str(seen[1])), ("answer", 200))

    def lose(self, name: str) -> None:
        self.sessions[name].is_attached = False

    def expire(self) -> None:
        """So much time goes by that who is away stays away; who is there answers pings."""
        self.is_young = False
        for session in self.sessions.values():
            session.is_known |= session.is_attached
        for name in [name for name, one in self.sessions.items() if not one.is_attached]:
            self.end(name)

    def end(self, name: str) -> None:
        """Nothing of a session stays; who waits for an answer of it is answered 404."""
        waiting = self.sessions.pop(name).waiting
        self.held = {pair for pair in self.held if pair[1] != name}
        self.active = {pair: None for pair in self.active if pair[1] != name}
        for address in [one for one, owner in self.owners.items() if owner == name]:
            self._bury(address)
        self._refuse(waiting, 404)

    def _refuse(self, waiting: list[Seen], code: int) -> None:
        for seen in waiting:
            if seen[0] == "request":
                self._deliver(self._owner(str(seen[1])), ("answer", code))

    # ---- addresses

    def allocated(self, name: str, address: str) -> None:
        assert address not in self.owners
        assert address not in self.graves
        self.owners[address] = name

    def free(self, name: str, address: str) -> int:
        if self.owners.get(address, name) != name:
            return 403
        if address in self.owners:
            self._bury(address)
        return 200

    def _bury(self, address: str) -> None:
        del self.owners[address]
        self.graves.add(address)
        self.held = {pair for pair in self.held if not pair[0].startswith(address + "/")}
        self.active = {pair: None for pair in self.active if not pair[0].startswith(address + "/")}

    def _owner(self, address: str) -> str | None:
        """Whose an address is; all below a runtime is that runtime's."""
        for name in self.sessions:
            if f"/{name}/" in address and address.startswith("hyperty-runtime://"):
                return name
        parts = address.split("/")
        return self.owners.get("/".join(parts[:4]))

    # ---- paths

    def subscribe(self, name: str, object_: str, resource: str) -> int:
        if (resource, name) in self.held or (resource, name) in self.active:
            return 200
        is_free = self.owners.get(object_) == name or self._consents(name, object_)
        if is_free:
            self.active[resource, name] = None
        else:
            self.held.add((resource, name))
        return 200

    def _consents(self, name: str, object_: str) -> bool:
        return any(
            resource.startswith(object_ + "/") and who == name and self.owners.get(object_) != name
            for resource, who in self.active
        )

    def unsubscribe(self, name: str, resource: str) -> int:
        self.held.discard((resource, name))
        self.active.pop((resource, name), None)
        return 200

    def ask(self, name: str, object_: str, code: int) -> None:
        """Ask an owner who is there whether one may observe; it answers with a code."""
        owner = self.owners.get(object_)
        to = f"{object_}/subscription"
        if owner is None or owner == name:
            self.heard[name].append(("answer", self._nobody(owner)))
            return
        self.heard[owner].append(("request", f"{_runtime(name)}/sm", to, None))
        self.heard[name].append(("answer", code))
        mine = {pair for pair in self.held if pair[1] == name and _is_of(pair[0], object_)}
        self.held -= mine
        if code == 200:
            self.active |= dict.fromkeys(sorted(mine))

    # ---- messages

    def publish(self, name: str, object_: str, resource: str, value: int) -> None:
        """Send an event as an object; only its owner is believed."""
        if self.owners.get(object_) != name:
            return
        is_echoed = "/children/" in resource
        for where, who in self.active:
            if where == resource and (is_echoed or who != name):
                self._deliver(who, ("event", object_, resource, value))

    def request(self, name: str, from_: str, to: str, value: int) -> None:
        """Send a request; who is there answers it at once."""
        if self._owner(from_) != name:
            self.heard[name].append(("answer", 401))
            return
        owner = self._owner(to)
        if owner is None or owner == name:
            self.heard[name].append(("answer", self._nobody(owner)))
            return
        self._deliver(owner, ("request", from_, to, value))
        if self.sessions[owner].is_attached:
            self._deliver(name, ("answer", 200))

    def _nobody(self, owner: str | None) -> int:
        """What a request is answered that nobody gets: an unknown owner may still come back."""
        return 503 if owner is None and self.is_young and self.was_restarted else 404

    def _deliver(self, name: str | None, seen: Seen) -> None:
        session = None if name is None else self.sessions.get(name)
        if session is None:
            return
        session.is_known |= session.is_attached and seen[0] == "request"  # it answers
        (self.heard[str(name)] if session.is_attached else session.waiting).append(seen)


def _runtime(name: str) -> str:
    return f"hyperty-runtime://a.ex/{name}"


def _is_of(resource: str, object_: str) -> bool:
    return resource.startswith(f"{object_}/")
