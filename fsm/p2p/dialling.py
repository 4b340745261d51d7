"""Which candidate of the peer to dial next, and which candidates to dial or offer at all."""

import hmac
from collections.abc import Iterable
from typing import assert_never, final

import attrs

from fsm.p2p.candidate_place import Place, machine_proof, place_of
from fsm.p2p.link_policy import NO_LINKS, LinkWishes
from specs.bodies.sync import Candidate

__all__ = ["DialPlan", "DialPolicy"]


@final
@attrs.frozen(slots=True)
class DialPolicy:
    """What this end is willing to dial, and to let others dial (T10).

    Attributes:
        kinds: Kinds of candidates, best first.
        machine: What the processes of this machine have in common, and tell nobody; None:
            unknown, so nobody is on the same machine.
        links: Who is named there may know places of this network, and name such places.
    """

    kinds: tuple[str, ...]
    machine: bytes | None = None
    links: LinkWishes = NO_LINKS

    def offers(self, kind: str, address: str, remote: str) -> bool:
        """Say whether a runtime is told of a place of ours."""
        place = place_of(kind, address)
        match place:
            case Place.MACHINE:
                return self.machine is not None
            case Place.NETWORK:
                return self.links.names(remote)
            case Place.ANYWHERE:
                return True
            case Place.NOWHERE:
                return False
            case _:
                assert_never(place)

    def allows(self, candidate: Candidate, remote: str) -> bool:
        """Say whether a candidate of a runtime may be dialled at all."""
        if candidate.kind not in self.kinds:
            return False
        if place_of(candidate.kind, candidate.address) is Place.MACHINE:
            return self._is_of_this_machine(candidate)
        return self.offers(candidate.kind, candidate.address, remote)

    def signed(self, candidate: Candidate) -> Candidate:
        """Return a candidate of ours, with the proof of its machine where it needs one."""
        is_near = place_of(candidate.kind, candidate.address) is Place.MACHINE
        if self.machine is None or not is_near:
            return candidate
        return attrs.evolve(candidate, host=machine_proof(self.machine, candidate))

    def _is_of_this_machine(self, candidate: Candidate) -> bool:
        if self.machine is None or candidate.host is None:
            return False
        expected = machine_proof(self.machine, candidate)
        return hmac.compare_digest(expected.encode(), candidate.host.encode())


@final
class DialPlan:
    """The peer's candidates, and which of them this round has tried."""

    def __init__(self, policy: DialPolicy, remote: str) -> None:
        self._policy = policy
        self._remote = remote
        self._known: dict[tuple[str, str], Candidate] = {}
        self._tried: set[tuple[str, str]] = set()

    @property
    def is_blank(self) -> bool:
        """Whether no candidate of the peer is known yet, usable or not."""
        return not self._known

    def learn(self, candidates: Iterable[Candidate]) -> None:
        """Take note of candidates; those known already change nothing."""
        for candidate in candidates:
            self._known.setdefault((candidate.kind, candidate.address), candidate)

    def next(self) -> Candidate | None:
        """Return the best candidate not tried in this round; None: all were."""
        left = [
            (self._policy.kinds.index(candidate.kind), key, candidate)
            for key, candidate in self._known.items()
            if key not in self._tried and self._policy.allows(candidate, self._remote)
        ]
        if not left:
            return None
        _, key, candidate = min(left, key=lambda entry: entry[0])
        self._tried.add(key)
        return candidate

    def restart(self) -> None:
        """Begin a new round: every candidate may be tried again."""
        self._tried.clear()

    def forget(self) -> None:
        """Know no candidate any more: the peer offers others."""
        self._known.clear()
        self._tried.clear()
