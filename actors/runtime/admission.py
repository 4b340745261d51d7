"""Who may submit what: the checks before a message has any effect (BUS-12, I-B8..I-B10)."""

from collections.abc import Iterator
from typing import final

import attrs

from actors.runtime.bus_messages import Origin
from actors.runtime.hops import Hops
from actors.runtime.policy import Policy
from specs.address import (
    domain_of,
    domain_registry,
    is_below,
    last_segment,
    runtime_of,
    status_of,
)
from specs.limits import HOP_LIMIT
from specs.message import Message
from specs.reply_code import Code, DropReason

__all__ = ["Admission", "Refusal"]

_CHANGES = "changes"
_CHILDREN = "/children/"


@final
@attrs.frozen(slots=True)
class Refusal:
    """Why a message is not admitted.

    Attributes:
        code: What a request is answered with; None: nothing, it ends silently.
    """

    reason: DropReason
    why: str
    code: Code | None = None


@final
class Admission:
    """The grants of one runtime, and the checks that need them."""

    def __init__(self, runtime: str, policy: Policy, hops: Hops) -> None:
        self._policy = policy
        self._hops = hops
        self._runtime = runtime
        self._origins: dict[str, Origin] = {}
        self._granted: dict[str, set[str]] = {}
        self._local: set[str] = set()

    def grant(self, owner: str, address: str, origin: Origin) -> None:
        """Let `owner` send from an address and from what is below it."""
        self._origins[owner] = origin
        granted = self._granted.setdefault(owner, set())
        if origin is Origin.LOCAL and address == runtime_of(address):
            self._local.add(address)
        granted.add(address)

    def revoke(self, owner: str, address: str) -> None:
        """End it; what was not granted is no error."""
        granted = self._granted.get(owner, set())
        granted.discard(address)
        self._local.discard(address)
        if not granted:
            self._granted.pop(owner, None)
            self._origins.pop(owner, None)

    def origin(self, by: str) -> Origin | None:
        """Return what kind of component submits; of a link, what its stub is."""
        owner = self._owner(by)
        return None if owner is None else self._origins[owner]

    def refusal(self, message: Message, by: str) -> Refusal | None:
        """Say why a message may not pass; None: it may (MN-03's order, in a runtime)."""
        if not (self._owns(message.from_, by) or self._is_shared_answer(message, by)):
            why = f"{message.from_} is not an address of {by}"
            return Refusal(DropReason.UNKNOWN_SOURCE, why, Code.UNAUTHENTICATED)
        if not self._may_tell(message, by):
            return Refusal(DropReason.FORGED_STATUS, "a status is told by its owner only")
        via = message.body.get("via")
        if via is not None and _loops(message.via):
            return Refusal(DropReason.LOOP, "it went round in a circle")
        return None if self._is_exempt(message, by) else self._judged(message, by)

    def _is_exempt(self, message: Message, by: str) -> bool:
        """Answers, own status events and the runtime's own parts pass (BUS-13).

        A stub is none of these parts: what it asks of them is judged (SC-23).
        """
        if message.is_response:
            return True
        if not is_below(message.from_, self._runtime):
            return False
        is_status = message.to == status_of(message.from_)
        is_part = self.origin(by) is Origin.LOCAL and is_below(message.to, self._runtime)
        return is_status or is_part

    def _judged(self, message: Message, by: str) -> Refusal | None:
        why = self._policy.refusal(message, by)
        self._hops.decided(message, why)
        return None if why is None else Refusal(DropReason.DENIED, why, Code.FORBIDDEN)

    def _may_tell(self, message: Message, by: str) -> bool:
        """Say whether a status comes from whom it must: its owner, or a domain's registry.

        That one speaks by a node; a peer that does has borrowed its name (M-30).
        """
        match last_segment(message.to):
            case "status":
                return message.to == status_of(message.from_)
            case "registration" if message.is_event:
                is_by_node = self.origin(by) is Origin.NODE_STUB
                return is_by_node and message.from_ == domain_registry(domain_of(message.to))
            case _:
                return True

    def _owns(self, from_: str, by: str) -> bool:
        owner = self._owner(by)
        if owner is None:
            return False
        granted = self._granted[owner]
        if from_ in granted or any(is_below(from_, address) for address in granted):
            return True
        return self._origins[owner] is not Origin.LOCAL and not self._is_local(from_)

    def _is_shared_answer(self, message: Message, by: str) -> bool:
        """Say whether it answers from an address that many listen to (C-81)."""
        if not message.is_response or self.origin(by) in {None, Origin.LOCAL}:
            return False
        return last_segment(message.from_) == _CHANGES or _CHILDREN in message.from_

    def _owner(self, by: str) -> str | None:
        if by in self._origins:
            return by
        return next((up for up in _upwards(by) if up in self._origins), None)

    def _is_local(self, from_: str) -> bool:
        return is_below(from_, self._runtime) or runtime_of(from_) in self._local


def _loops(via: tuple[str, ...]) -> bool:
    return len(via) > HOP_LIMIT or len(set(via)) != len(via)


def _upwards(address: str) -> Iterator[str]:
    head, _, _ = address.rpartition("/")
    while "://" in head:
        yield head
        head, _, _ = head.rpartition("/")
