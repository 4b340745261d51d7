"""The state of data objects that outlives the process, and its restore (SYN-25, SYN-28).

Of an object that its reporter wants stored, everything is kept that an observer could have
seen, or relies on: its value and version, its observers with their sync managers, the
allowed observers. A `ReportedObject` says what is to be written before it says anything that
relies on it. `Rest` is the content of a file: the sum of all that was written.
"""

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from specs.bodies.object import DataObject
from specs.jsonvalue import JsonObject


@attrs.frozen(slots=True)
class ObjectKept:
    """An object has this value and version.

    Attributes:
        is_public: Whether every hyperty may observe it.
    """

    snapshot: DataObject
    is_public: bool = False


@attrs.frozen(slots=True)
class ObjectForgotten:
    """An object is deleted: nothing of it stays."""

    url: str


@attrs.frozen(slots=True)
class ObserverKept:
    """A hyperty observes an object, by this sync manager.

    Attributes:
        lease: Seconds that its subscription lasts; None: it needs no renewal.
    """

    url: str
    observer: str
    manager: str
    lease: int | None = None


@attrs.frozen(slots=True)
class ObserverForgotten:
    """A hyperty no longer observes an object."""

    url: str
    observer: str


@attrs.frozen(slots=True)
class AllowedKept:
    """The reporter has allowed or expelled an observer.

    Attributes:
        may: True: it is allowed; False: it was expelled; None: neither any more.
    """

    url: str
    guest: str
    may: bool | None


@attrs.frozen(slots=True)
class ChildrenKept:
    """The children of an object, as the store writes them; None: there are none."""

    url: str
    children: JsonObject | None


@attrs.frozen(slots=True)
class CopyKept:
    """The copy of a remote object at an observer here."""

    url: str
    observer: str
    version: int
    data: JsonObject


@attrs.frozen(slots=True)
class CopyForgotten:
    """An observer here has ended its subscription to an object."""

    url: str
    observer: str


@attrs.frozen(slots=True)
class HomeKept:
    """A hyperty of this runtime has an address.

    Attributes:
        descriptor: Catalogue address by which the hyperty is recognised.
    """

    url: str
    descriptor: str


@attrs.frozen(slots=True)
class HomeForgotten:
    """The address was given back."""

    url: str


@attrs.frozen(slots=True)
class SessionKept:
    """The session with the node of a domain has this token."""

    domain: str
    token: str = attrs.field(repr=False)


Keep: TypeAlias = (
    ObjectKept
    | ObjectForgotten
    | ObserverKept
    | ObserverForgotten
    | AllowedKept
    | ChildrenKept
    | CopyKept
    | CopyForgotten
    | HomeKept
    | HomeForgotten
    | SessionKept
)

# --- what there is ------------------------------------------------------------------------


@attrs.define(slots=True)
class ObjectAtRest:
    """One object that is stored.

    Attributes:
        observers: Its observers.
        guests: Observers that the reporter has allowed (True) or expelled (False).
        children: As `ChildrenKept`.
    """

    snapshot: DataObject
    is_public: bool = False
    observers: dict[str, ObserverKept] = attrs.field(factory=dict)
    guests: dict[str, bool] = attrs.field(factory=dict)
    children: JsonObject | None = None

    def follow(self, change: ObserverKept | ObserverForgotten | AllowedKept | ChildrenKept) -> None:
        """Apply what was written of the object."""
        match change:
            case ObserverKept(_, observer):
                self.observers[observer] = change
            case ObserverForgotten(_, observer):
                self.observers.pop(observer, None)
            case AllowedKept(_, guest, None):
                self.guests.pop(guest, None)
            case AllowedKept(_, guest, may):
                self.guests[guest] = bool(may)
            case ChildrenKept(_, children):
                self.children = children


@attrs.define(slots=True)
class Rest:
    """All that one runtime has stored.

    Attributes:
        objects: By address.
        copies: By object and observer.
        homes: Addresses of hyperties, with their descriptors.
        sessions: Tokens, by domain.
    """

    objects: dict[str, ObjectAtRest] = attrs.field(factory=dict)
    copies: dict[tuple[str, str], CopyKept] = attrs.field(factory=dict)
    homes: dict[str, str] = attrs.field(factory=dict)
    sessions: dict[str, str] = attrs.field(factory=dict)

    def follow(self, changes: Iterable[Keep]) -> None:
        """Apply what was written; changes of an object that is not there are ignored."""
        for change in changes:
            match change:
                case CopyKept(url, observer):
                    self.copies[url, observer] = change
                case CopyForgotten(url, observer):
                    self.copies.pop((url, observer), None)
                case HomeKept(url, descriptor):
                    self.homes[url] = descriptor
                case HomeForgotten(url):
                    self.homes.pop(url, None)
                case SessionKept(domain, token):
                    self.sessions[domain] = token
                case ObjectKept(snapshot, is_public):
                    kept = self.objects.setdefault(snapshot.url, ObjectAtRest(snapshot))
                    kept.snapshot, kept.is_public = snapshot, is_public
                case ObjectForgotten(url):
                    self.objects.pop(url, None)
                case _:
                    if change.url in self.objects:
                        self.objects[change.url].follow(change)

    @property
    def tenants(self) -> set[str]:
        """The hyperties of which something is stored."""
        reporters = {each.snapshot.reporter for each in self.objects.values()}
        return reporters | {observer for _, observer in self.copies}


def asked_for(
    objects: Iterable[DataObject], reporter: str, schema: str | None, name: str | None
) -> list[DataObject]:
    """Return the stored objects that a request to resume means (M-51).

    Args:
        objects: The stored objects.
        reporter: Address of the reporter that resumes.
        schema: Only objects of this schema and of the same `name`; None: all of the reporter.
        name: Name of the object; None: objects without a name. Ignored without a schema.
    """
    mine = [one for one in objects if one.reporter == reporter]
    if schema is None:
        return mine
    return [one for one in mine if one.schema == schema and one.name == name]
