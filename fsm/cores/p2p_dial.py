"""Which candidate of the peer to dial next."""

from collections.abc import Iterable
from typing import Final, final

import attrs

from specs.body_sync import Candidate

__all__ = ["DialPlan", "DialPolicy"]

_SAME_HOST: Final = "unix"
"""The kind that is only dialled by a process of the same machine."""


@final
@attrs.frozen(slots=True)
class DialPolicy:
    """What this end is willing to dial.

    Attributes:
        kinds: Kinds of candidates, best first.
        host: Fingerprint of this machine; None: same-host candidates are skipped.
    """

    kinds: tuple[str, ...]
    host: str | None = None

    def allows(self, candidate: Candidate) -> bool:
        """Say whether the candidate may be dialled at all."""
        if candidate.kind == _SAME_HOST and (self.host is None or candidate.host != self.host):
            return False
        return candidate.kind in self.kinds


@final
class DialPlan:
    """The peer's candidates, and which of them this round has tried."""

    def __init__(self, policy: DialPolicy) -> None:
        self._policy = policy
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
            if key not in self._tried and self._policy.allows(candidate)
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
