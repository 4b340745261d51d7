"""Has what peers send over links wait until its sender is proven (I-B10, S1)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never, final

from actors.runtime.bus.admission import Admission
from actors.runtime.bus.messages import Announced, Submitted
from actors.runtime.bus.outbound import Outbound
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy.hook import Refusal
from fsm.bus.link_senders import Decided, Holding, SenderProof
from fsm.registry.resolve.effects import OwnerDoubted, OwnerKnown, PeerGone, PeerKnown, SenderEvents
from fsm.registry.resolve.inputs import LinkForged, OwnerAsked
from specs.addresses.address import runtime_of
from specs.reply_code import Code, DropReason

__all__ = ["SenderProofs"]

_Item: TypeAlias = Submitted | Announced
_Pass: TypeAlias = Callable[[_Item, float], None]
_Refuse: TypeAlias = Callable[[Submitted, Refusal, float], None]

_UNPROVEN = Refusal(
    DropReason.UNKNOWN_SOURCE,
    "whose the sender's address is cannot be found out now; send it by the node",
    Code.UNAUTHENTICATED,
)
_FULL = Refusal(
    DropReason.OVERFLOW, "too many messages of links wait for their senders", Code.TOO_LARGE
)


@final
class SenderProofs:
    """Hosts `LinkSenders` for a Message BUS; part of its task.

    Args:
        admission: Knows what is proven.
        outward: Leads to the registry, which reads whose an address is.
        passes: Takes a message whose sender is decided on.
        refuses: Refuses one that is not to be decided on any more.
    """

    def __init__(
        self,
        admission: Admission,
        outward: Outbound,
        hops: HopTrace,
        passes: _Pass,
        refuses: _Refuse,
    ) -> None:
        self._admission = admission
        self._senders = admission.senders
        self._outbound = outward
        self._hops = hops
        self._passes = passes
        self._refuses = refuses

    def waits(self, submitted: Submitted, now: float) -> bool:
        """Say whether a message has to wait for the proof of its sender, and keep it then."""
        message, link = submitted.message, submitted.by
        if self._admission.standing(message, link) is not SenderProof.UNKNOWN:
            return False
        self._hold(link, message.from_, submitted, now)
        return True

    def may_announce(self, announced: Announced, now: float) -> bool:
        """Say whether a link may announce what messages of this sender follow.

        An announcement waits for the proof of its sender, as the messages do that it precedes.
        """
        from_, link = announced.behind.from_, announced.by
        match self._admission.announcer(from_, link):
            case SenderProof.PROVEN:
                return True
            case SenderProof.UNKNOWN:
                self._hold(link, from_, announced, now)
            case SenderProof.FOREIGN:
                self.forged(link, now)
        return False

    def _hold(self, link: str, from_: str, item: _Item, now: float) -> None:
        match self._senders.hold(link, from_, item, now):
            case Holding.ASK:
                self._ask(link, runtime_of(from_), now)
            case Holding.FULL:
                self._refuse(item, _FULL, now)
            case Holding.WAIT:
                pass

    def _refuse(self, item: _Item, refusal: Refusal, now: float) -> None:
        """Refuse what waited; an announcement that is not taken changes nothing."""
        if isinstance(item, Submitted):
            self._refuses(item, refusal, now)

    def _ask(self, link: str, entity: str, now: float) -> None:
        registry, remote = self._outbound.registry, self._senders.remote(link) or ""
        if registry is None or not registry.try_tell(OwnerAsked(entity, remote)):
            for one in self._senders.dropped(link, entity):
                self._refuse(one, _UNPROVEN, now)

    def forged(self, link: str, now: float) -> None:
        """Note a message in the name of others; too many end the link."""
        registry = self._outbound.registry
        if self._senders.forged(link, now) and registry is not None:
            # One that finds no room is said again with the next such message.
            registry.try_tell(LinkForged(link))

    def told(self, news: SenderEvents, now: float) -> None:
        """Take what the registry says of links, and of whose an address is."""
        match news:
            case PeerKnown(link, remote):
                self._hops.rows(self._senders.opened(link, remote))
            case PeerGone(link):
                self._hops.rows(self._senders.closed(link))
            case OwnerDoubted(entity):
                self._hops.rows(self._senders.doubted(entity))
            case OwnerKnown(entity, owner):
                rows, decided = self._senders.owned(entity, owner)
                self._hops.rows(rows)
                self._go_on(decided, now)
            case _:
                assert_never(news)

    def _go_on(self, decided: Sequence[Decided[_Item]], now: float) -> None:
        for one in decided:
            if one.is_proven or isinstance(one.item, Submitted):
                self._passes(one.item, now)
        self._hops.rows(self._senders.swept())

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return self._senders.deadline()

    def tick(self, now: float) -> None:
        """Refuse what has waited too long for its proof."""
        for one in self._senders.late(now):
            self._refuse(one.item, _UNPROVEN, now)
        self._hops.rows(self._senders.swept())
