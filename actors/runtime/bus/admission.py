"""Checks of a message before it has any effect on a Message BUS (BUS-12, I-B8..I-B10)."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, final

from actors.kit.log import get_logger
from actors.policy.engine import Decision, Ruling
from actors.runtime.bus.messages import Announced, InFlight, Origin
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy import Judge, Refusal, direction_word
from fsm.bus.link_senders import LinkSenders, SenderProof
from fsm.effects import RowChanged, taken_off
from specs.addresses.address import (
    RUNTIME_SCHEME,
    domain_of,
    domain_registry,
    is_below,
    last_segment,
    runtime_of,
    scheme_of,
    status_of,
)
from specs.child import naming_error, parent_of
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.routing import Direction, Exempt, Interception, is_of_session, is_routing_loop
from specs.trace import Op

_log = get_logger("actors.runtime")

_Listens: TypeAlias = Callable[[str, str], bool]
"""Function that returns whether a component receives the messages sent to an address."""

_COMMANDS: Final = frozenset({MessageType.EXECUTE, MessageType.SUBSCRIBE})
"""Message types by which parts of the runtime control the stubs of direct (P2P) links."""

_TABLE: Final = "components"
_CHANGES: Final = "changes"


@final
class Admission:
    """The sender addresses that components of one runtime may use, and the checks of messages.

    Attributes:
        senders: The sender addresses that the peers of direct links may use.
        origins: The kinds of the components that may submit messages, by component address.
        version: Number of changes of the permissions; a cached check is valid for one version.
        after: Task that the policy wants done after the message (`settle` runs it); None: none.
    """

    def __init__(
        self,
        runtime: str,
        policy: Judge,
        hops: HopTrace,
        listens: _Listens = lambda _component, _address: False,
    ) -> None:
        self.senders: LinkSenders[Announced | InFlight] = LinkSenders()
        self._policy = policy
        self._listens = listens
        self._hops = hops
        self._runtime = runtime
        self.origins: dict[str, Origin] = {}
        self._granted: dict[str, set[str]] = {}
        self._local: set[str] = set()
        self._reporters: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.after: Callable[[], object] | None = None
        self.version = 0

    def set_name(self, component: str, name: str | None) -> None:
        """Set the name of a hyperty, for policies.

        Args:
            component: Address of the hyperty.
            name: Its name; None: the hyperty is gone.
        """
        if name is None:
            self._names.pop(component, None)
        else:
            self._names[component] = name

    def hyperties(self, address: str) -> frozenset[str]:
        """Return the names of the local hyperties that own an address, or the object above it."""
        return frozenset(
            name
            for component, name in self._names.items()
            if any(is_below(address, each) for each in self._granted.get(component, ()))
        )

    def grant(self, owner: str, address: str, origin: Origin) -> None:
        """Let `owner` send from an address and from what is below it."""
        self.version += 1
        self.origins[owner] = origin
        granted = self._granted.setdefault(owner, set())
        if origin is Origin.LOCAL and address == runtime_of(address):
            self._local.add(address)
        if address not in granted:
            self._hops.rows([RowChanged(Op.ADD, _TABLE, address, owner, origin.value)])
        granted.add(address)

    def revoke(self, owner: str, address: str) -> None:
        """Revoke a grant. Idempotent."""
        self.version += 1
        granted = self._granted.get(owner, set())
        if address in granted:
            origin = self.origins[owner].value
            self._hops.rows([RowChanged(Op.DEL, _TABLE, address, owner, origin)])
        granted.discard(address)
        self._local.discard(address)
        if not granted:
            self._granted.pop(owner, None)
            self.origins.pop(owner, None)

    def allow_events(self, address: str, link: str | None) -> None:
        """Accept the events of an object at an address by one link only.

        Args:
            address: Address of the changes, or of the children.
            link: Name of the link; None: accept them by no link.
        """
        if link is None:
            self._reporters.pop(address, None)
        else:
            self._reporters[address] = link

    def origin(self, by: str) -> Origin | None:
        """Return the kind of the submitting component; for a link, the kind of its stub."""
        owner = self._owner(by)
        return None if owner is None else self.origins[owner]

    def is_granted(self, address: str) -> bool:
        """Return whether exactly this address is granted to a local component."""
        return any(address in granted for granted in self._granted.values())

    def is_by_peer(self, message: Message, by: str) -> bool:
        """Return whether a link's peer has sent a message: its P2P stub has stamped it last.

        A P2P stub does not stamp its own messages.
        """
        return message.is_last_by(by) and self.origin(by) is Origin.P2P_STUB

    def sender_proof(self, message: Message, link: str) -> SenderProof:
        """Return whether a link has proven that its peer may send as the sender of a message."""
        if self._is_shared_answer(message, link):
            return SenderProof.PROVEN
        return self._sender_proof(message.from_, link)

    def announcer_proof(self, from_: str, link: str) -> SenderProof:
        """Return whether a link has proven the sender of whose messages an announcement tells.

        Args:
            from_: Address of the sender.
            link: Address of the link.
        """
        return SenderProof.PROVEN if _is_shared(from_) else self._sender_proof(from_, link)

    def _sender_proof(self, from_: str, link: str) -> SenderProof:
        return (
            SenderProof.FOREIGN if self.is_local(from_) else self.senders.sender_proof(link, from_)
        )

    def direction(self, message: Message, origin: Origin) -> Direction:
        """Return the pipeline that a message passes: that of local senders, or of remote ones."""
        # A stub that speaks for itself is part of this runtime.
        if origin is Origin.LOCAL or is_below(message.from_, self._runtime):
            return Direction.OUTGOING
        return Direction.INCOMING

    def is_exempt(self, message: Message, by: str, exempt: frozenset[Exempt]) -> bool:
        """Return whether a message skips a stage of its pipeline, by the stage's exemptions."""
        if message.is_response:
            if Exempt.ANSWERS in exempt:
                return True
            return Exempt.SHARED_ANSWERS in exempt and self._is_shared_answer(message, by)
        # Checked first: nearly every message is of a hyperty.
        from_ = message.from_
        if not (from_.startswith(self._runtime) and is_below(from_, self._runtime)):
            return False
        if Exempt.OWN_STATUS in exempt and message.to == status_of(from_):
            return True
        if Exempt.PARTS not in exempt or not is_below(message.to, self._runtime):
            return False
        return self.origin(by) is Origin.LOCAL

    # ---- stages

    def source(self, row: Interception, message: Message, by: str) -> Refusal | None:
        """Check that the submitting component owns its sender address (BUS-12)."""
        # The exemption is checked last: nearly no message needs one.
        origin = self.origin(by)
        is_carried = origin is not Origin.LOCAL and message.is_last_by(by)
        if is_carried and origin is Origin.P2P_STUB:
            is_theirs = self.sender_proof(message, by) is SenderProof.PROVEN
        else:
            is_owner = self._owns(message, by, origin, is_carried=is_carried)
            is_theirs = is_owner or self.is_exempt(message, by, row.exempt)
        if is_theirs:
            return None
        if message.from_ == by and not is_below(by, self._runtime):
            return Refusal(row.drop, f"{by} is not deployed any more", Code.GONE)
        return Refusal(row.drop, f"{message.from_} is not an address of {by}", row.refusal)

    def status_sender(self, row: Interception, message: Message, by: str) -> Refusal | None:
        """Check that a status event is sent by the entity whose status it states (ADR-06)."""
        if self._may_report(message, by):
            return None
        return Refusal(row.drop, "only its owner reports a status", row.refusal)

    def child_writer(self, row: Interception, message: Message, by: str) -> Refusal | None:
        """Check that the writer of a child is its creator, and observes the object (I-D10)."""
        url = None if message.is_response else parent_of(message.to)
        why = None if url is None else self._objection(message, url, by)
        forbidden = row.refusal or Code.FORBIDDEN
        return None if why is None else Refusal(row.drop, why, forbidden, in_place=forbidden)

    def _objection(self, message: Message, url: str, by: str) -> str | None:
        """Return why a component may not write a child or report its object; None: it may.

        The node has checked that a remote writer observes the object; the sync manager checks
        this for messages of links.
        """
        origin = self.origin(by)
        if message.from_ == url:
            is_asked = origin is not Origin.P2P_STUB or self._reporters.get(message.to) == by
            return None if is_asked else f"nothing of {url} is to come by this link"
        # A local writer is a listener of the children, or answers for them.
        is_writer = self._listens(by, message.to) or message.to in self._granted.get(by, ())
        if origin is Origin.LOCAL and not is_writer:
            return naming_error(message) or f"{message.from_} does not observe {url}"
        return naming_error(message)

    def stub_command(self, row: Interception, message: Message, by: str) -> Refusal | None:
        """Check requests to stubs, requests of node stubs, and requests about the session.

        Only parts of the runtime command its stubs (P2P-29): other runtimes and local hyperties
        could otherwise end sessions and links. The code of a node stub may be another domain's:
        although its address is below that of the runtime, it may send no request to the parts.
        Nor may hyperties send a node requests about the whole session: one could end the session,
        free the addresses, remove the paths and change the records of others.
        """
        why = self._objection_to_command(message, by) if message.is_request else None
        if why is None:
            return None
        return Refusal(row.drop, why, row.refusal, in_place=row.refusal or Code.FORBIDDEN)

    def _objection_to_command(self, message: Message, by: str) -> str | None:
        stub, is_own = self.origins.get(message.to), is_below(message.from_, self._runtime)
        if is_own and self.origin(by) is Origin.NODE_STUB:
            is_part = is_below(message.to, self._runtime)
            return "a stub asks nothing of the runtime that it is a stub of" if is_part else None
        is_stub = stub is not None and stub is not Origin.LOCAL
        if not is_stub or (is_own and self.origin(by) is Origin.LOCAL):
            is_part = is_below(by, self._runtime) or self.origin(by) is not Origin.LOCAL
            if is_stub or is_part or not is_of_session(message):
                return None
            return "only the parts of a runtime ask its node: it does that for all hyperties here"
        # Of stubs of links, another runtime asks for a link.
        if stub is Origin.NODE_STUB or message.type in _COMMANDS:
            return "a stub takes commands from the parts of its own runtime only"
        return None

    def loop(self, row: Interception, message: Message, _by: str) -> Refusal | None:
        """Check for a routing loop: the message must not have passed here before (STB-06)."""
        if "via" in message.body and is_routing_loop(message):
            return Refusal(row.drop, "it is in a routing loop", row.refusal)
        return None

    def policy(
        self, row: Interception, direction: Direction, message: Message, by: str
    ) -> Message | Refusal | None:
        """Return the permitted message, or a refusal; None: unchanged (POL-01, POL-17)."""
        if self.is_exempt(message, by, row.exempt):
            return None
        if self.after is not None:
            self.settle()
        try:
            ruling = self._policy.judge(message, by, direction, self)
        except Exception as error:  # noqa: BLE001 - a policy may be the application's code
            why = "the policy of the runtime failed on it"
            ruling = Ruling(Decision.DENY, "", why, direction=direction_word(direction))
            _log.error("policy crashed", by=by, exc_info=error)
        if self._hops.is_on:
            self._hops.record_decision(message, ruling)
        self.after = ruling.after
        if ruling.decision is Decision.PERMIT:
            return ruling.marked
        return Refusal(row.drop, ruling.why or "blocked by policy", row.refusal)

    def settle(self) -> None:
        """Run the task that the policy wants done after the last message (POL-13)."""
        after, self.after = self.after, None
        if after is not None:
            after()

    def _may_report(self, message: Message, by: str) -> bool:
        """Return whether a status comes from a permitted sender: its owner, or a domain's registry.

        The registry sends by a node: a peer of a link has forged its address (M-30). A peer may
        publish changes of an object, or expel its observers, only by the link of the object (I-D1).
        """
        if self.origin(by) is Origin.P2P_STUB:
            url = taken_off(message)
            if url is not None:
                return self._reporters.get(f"{url}/{_CHANGES}") == by
        match last_segment(message.to):
            case "status":
                return message.to == status_of(message.from_)
            case "registration" if message.is_event:
                is_by_node = self.origin(by) is Origin.NODE_STUB
                return is_by_node and message.from_ == domain_registry(domain_of(message.to))
            case "changes" if self.origin(by) is Origin.P2P_STUB and not message.is_response:
                is_of_registry = scheme_of(message.to) == RUNTIME_SCHEME
                return is_of_registry or self._reporters.get(message.to) == by
            case _:
                return True

    def _owns(self, message: Message, by: str, origin: Origin | None, *, is_carried: bool) -> bool:
        from_ = message.from_
        if is_carried and origin is Origin.NODE_STUB:
            # The node has sent it: its stub stamps all messages but its own.
            return not self.is_local(from_)
        if from_ in self._granted.get(by, ()):
            return True
        owner = self._owner(by)
        if owner is None:
            return False
        if any(is_below(from_, address) for address in self._granted[owner]):
            return True
        # A P2P stub refuses messages that it cannot send, in the name of the receiver.
        is_stub = origin is Origin.NODE_STUB or (origin is Origin.P2P_STUB and message.is_response)
        return is_stub and not self.is_local(from_)

    def _is_shared_answer(self, message: Message, by: str) -> bool:
        """Return whether a message is an answer from an address where several runtimes listen.

        A peer answers for its own runtime only, which `source` names (C-81).
        """
        if not message.is_response or not _is_shared(message.from_):
            return False
        origin = self.origin(by)
        if origin is None or origin is Origin.LOCAL:
            return False
        is_by_peer = self.is_by_peer(message, by)
        return not is_by_peer or message.body.get("source") == self.senders.remote(by)

    def _owner(self, by: str) -> str | None:
        if by in self.origins:
            return by
        return next((above for above in _addresses_above(by) if above in self.origins), None)

    def is_local(self, from_: str) -> bool:
        """Return whether an address belongs to this runtime.

        Args:
            from_: The address.
        """
        return is_below(from_, self._runtime) or runtime_of(from_) in self._local


def _is_shared(address: str) -> bool:
    """Return whether several runtimes may answer requests to an address (C-81)."""
    return last_segment(address) == _CHANGES or parent_of(address) is not None


def _addresses_above(address: str) -> Iterator[str]:
    head, _, _ = address.rpartition("/")
    while "://" in head:
        yield head
        head, _, _ = head.rpartition("/")
