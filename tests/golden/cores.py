"""What each core got and did, by meaning: names and arguments as plain data.

A core of today takes an input and returns effects: both are classes, whose names become those of
methods. A core with a port takes a call and makes calls of its port. Both give the same line.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import FunctionType
from typing import Final

import attrs

from tests.golden.form import Ids, body_text, plain

CORES: Final[Mapping[str, str]] = {
    "bus chunks": "fsm.bus.chunks:AssembliesCore",
    "bus held bodies": "fsm.bus.chunks:HeldBodiesCore",
    "bus listeners": "fsm.bus.listeners:RoutingCore",
    "bus order received": "fsm.bus.receiving_order:PairOrderCore",
    "bus order sent": "fsm.bus.sending_order:PairPathCore",
    "bus outstanding": "fsm.bus.transactions:OutstandingCore",
    "bus transactions": "fsm.bus.transactions:TransactionsCore",
    "catalogue foreign": "fsm.catalogue.foreign:ForeignCore",
    "group catalogue": "fsm.group.catalogue:CatalogueCore",
    "group durable accept": "fsm.group.durable:AcceptCore",
    "group durable deliver": "fsm.group.durable:DeliverCore",
    "group membership": "fsm.group.membership:MembershipCore",
    "group moves": "fsm.group.moves:MovesCore",
    "group policies": "fsm.group.policies:PoliciesCore",
    "group rows": "fsm.group.rows:RowsCore",
    "limits quarantine": "fsm.limits.rates:QuarantineCore",
    "p2p link end": "fsm.p2p.link_end:LinkEnd",
    "p2p transfer": "fsm.p2p.transfer:P2PTransferCore",
    "registry allocation": "fsm.registry.allocation:AllocationCore",
    "registry registration": "fsm.registry.registration:RegistrationCore",
    "registry relay": "fsm.registry.relay:RelayCore",
    "registry routes": "fsm.registry.resolve.resolve:ResolveCore",
    "session assertion": "fsm.session.assertion:AssertionCore",
    "session keys": "fsm.session.assertion:KeyCacheCore",
    "session node": "fsm.session.node_session:NodeSessionCore",
    "session stub": "fsm.session.stub_client:StubClientCore",
    "sync children copy": "fsm.sync.children:ChildrenCopyCore",
    "sync consents": "fsm.sync.subscriptions:ConsentCore",
    "sync copy": "fsm.sync.copy:ObserverCore",
    "sync observers": "fsm.sync.observers:ObserversCore",
    "sync renewals": "fsm.sync.leases:RenewalsCore",
    "sync repeats": "fsm.sync.leases:RepeatsCore",
    "sync reporter": "fsm.sync.reporter:ReportedObject",
    "sync subscriptions": "fsm.sync.subscriptions:SubscriptionCore",
    "sync writes": "fsm.sync.value.writes:WritesCore",
}
"""The class of each concern: what a rewrite renames, it renames here."""

PROCESS: Final = ContextVar("PROCESS", default="")
"""The process in which a core is."""

_QUERIES: Final = frozenset(
    {
        *(
            "are_usable",
            "awaits",
            "behind",
            "block_of",
            "deadline",
            "find",
            "find_routed",
            "flushed",
        ),
        *("held", "holds", "is_asking", "is_bound", "is_due", "is_heard_by", "is_late", "is_live"),
        *("is_local", "is_open", "is_over", "is_reached", "is_tombstone", "knows", "lease_of"),
        *("links", "live_link", "lost_login", "may_be_tried", "may_read", "may_write", "next"),
        *("node_of", "node_stub", "node_stubs", "observes", "owed", "owned_by", "owner_of"),
        *("refusal", "remotes", "resources_of", "revision", "row", "speaks_for", "subscribers"),
        *("takes_in", "terms", "tidies", "transactions", "waits", "waits_since", "whole", "writes"),
    }
)
"""Methods that change nothing: how often somebody looks is no matter of a core."""
_LEFT_OUT: Final = frozenset({"self", "now"})
"""Arguments that no line has."""

Note = Callable[[str, str], None]
"""Takes a subject and a line."""


class Port:
    """The port of a core, whose calls are noted, and made."""

    def __init__(self, port: object, ids: Ids, did: list[object]) -> None:
        self._port = port
        self._ids = ids
        self._did = did

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._port, name)
        if name in _QUERIES:
            return method

        def call(*args: object, **named: object) -> object:
            given = _arguments(method, args, named, self._ids)
            # A step and a row are lines of their own, as among effects.
            is_plain = name in {"step", "row", "row_changed"}
            self._did.append(next(iter(given.values())) if is_plain else {name: given})
            return method(*args, **named)

        return call


@contextmanager
def watched_cores(note: Note, ids: Ids, cores: Mapping[str, str] = CORES) -> Iterator[None]:
    """Note what cores get and do, while the context is open."""
    replaced: list[tuple[type, str, FunctionType]] = []
    try:
        for concern, place in cores.items():
            module, _, name = place.partition(":")
            owner = getattr(import_module(module), name)
            watch = _Watch(concern, note, ids)
            for method, sound in _methods(owner):
                replaced.append((owner, method, sound))
                wrap = watch.begins if method == "__init__" else watch.calls
                setattr(owner, method, wrap(sound))
        yield
    finally:
        for owner, method, sound in replaced:
            setattr(owner, method, sound)


def _methods(owner: type) -> list[tuple[str, FunctionType]]:
    return [
        (name, each)
        for name, each in vars(owner).items()
        if isinstance(each, FunctionType)
        and (name == "__init__" or not name.startswith("_"))
        and name not in _QUERIES
    ]


@attrs.define
class _Known:
    """A core that was seen.

    Attributes:
        did: Calls of its port since its last line.
    """

    core: object
    subject: str
    did: list[object] = attrs.field(factory=list)


class _Watch:
    """Wraps the methods of one class."""

    def __init__(self, concern: str, note: Note, ids: Ids) -> None:
        self._concern = concern
        self._made: Counter[str] = Counter()
        self._known: dict[int, _Known] = {}
        self._note = note
        self._ids = ids
        self._is_within = False

    def _entry(self, core: object) -> _Known:
        known = self._known.get(id(core))
        if known is None:
            process = PROCESS.get()
            self._made[process] += 1
            subject = f"{process} {self._concern} {self._made[process]}".strip()
            known = self._known[id(core)] = _Known(core, subject)
        return known

    def begins(self, sound: FunctionType) -> Callable[..., None]:
        form = inspect.signature(sound)

        @wraps(sound)
        def begin(core: object, *args: object, **named: object) -> None:
            given = form.bind(core, *args, **named)
            did = self._entry(core).did
            if "port" in given.arguments:
                given.arguments["port"] = Port(given.arguments["port"], self._ids, did)
            sound(*given.args, **given.kwargs)

        return begin

    def calls(self, sound: FunctionType) -> Callable[..., object]:
        @wraps(sound)
        def call(core: object, *args: object, **named: object) -> object:
            if self._is_within:
                return sound(core, *args, **named)
            known = self._entry(core)
            got = _arguments(sound, (core, *args), named, self._ids)
            self._is_within = True
            try:
                result = sound(core, *args, **named)
            finally:
                self._is_within = False
            name = sound.__name__
            if name in {"feed", "answer"}:
                name, got = _input(got)
            effects = [*known.did, *_effects(plain(result, self._ids))]
            known.did.clear()
            if got or effects:  # else time passed, and nothing was due
                self._note(known.subject, f"{name}{body_text(got)} {body_text(effects)}")
            return result

        return call


def _arguments(
    method: Callable[..., object], args: tuple[object, ...], named: Mapping[str, object], ids: Ids
) -> dict[str, object]:
    given = inspect.signature(method).bind(*args, **named).arguments
    return {name: plain(value, ids) for name, value in given.items() if name not in _LEFT_OUT}


def _input(got: dict[str, object]) -> tuple[str, object]:
    """Return an input as a call: what is an object with one key is the name and the arguments."""
    first = next(iter(got.values()))
    if not isinstance(first, dict) or len(first) != 1:
        return "feed", got
    ((name, arguments),) = first.items()
    rest = dict(list(got.items())[1:])
    return name, {**arguments, **rest} if isinstance(arguments, dict) else first


def _effects(result: object) -> list[object]:
    if result is None:
        return []
    return result if isinstance(result, list) else [result]
