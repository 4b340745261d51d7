"""Logins under way: whose wish for a session waits for the identity connector (M-55, SC-40)."""

from collections.abc import Callable
from typing import TypeAlias, final

import attrs
import structlog
import trio

from actors.kit.counting.tally import Outcome, Tally
from actors.node.login.connector import VALIDATE, read_identity
from actors.node.login.login import Login
from actors.node.messages import Asked
from actors.node.session.exchange import Exchange
from actors.node.session.opening import OpenRequest
from fsm.session.node_session_io import Credentials
from specs.addresses.address import is_node
from specs.bodies.body import IdentityCall
from specs.errors import BadMessageError
from specs.identity import Identity
from specs.limits.login import LOGINS_PENDING
from specs.limits.protocol import OPEN_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["Denied", "Logins", "Verdict", "Vouched"]

_log = structlog.get_logger("actors.node")

_AWAY = "who you are cannot be found out now; try again"


@final
@attrs.frozen
class Vouched:
    """A login succeeded.

    Attributes:
        credentials: The same, as a session keeps it.
    """

    wish: OpenRequest
    identity: Identity
    credentials: Credentials


@final
@attrs.frozen
class Denied:
    """A login did not succeed, because of this."""

    wish: OpenRequest
    code: Code
    why: str


Verdict: TypeAlias = Vouched | Denied


@final
class Logins:
    """Asks the identity connector by message, and knows who waits; part of the bus's task.

    Each link waits for one login, all together for `LOGINS_PENDING`; who is not answered
    within `OPEN_TIMEOUT` is refused. A link that goes leaves nothing.
    """

    def __init__(self, exchange: Exchange, login: Login, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._life = login.life
        self._clock = login.clock or clock
        self._waiting: dict[int, tuple[OpenRequest, float]] = {}
        self._links: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def is_waiting(self, link: int) -> bool:
        """Say whether a login of a link is under way."""
        return link in self._links

    def ask(self, wish: OpenRequest) -> Denied | None:
        """Have a login looked into; return why that is not possible."""
        node = self._exchange.tables.addresses
        connector = self._exchange.components.get(node.identities)
        if connector is None or len(self._waiting) >= LOGINS_PENDING:
            return Denied(wish, Code.UNAVAILABLE, _AWAY)
        number = self._exchange.next_id(node.session)
        call = IdentityCall(VALIDATE, {"assertion": wish.token, "origin": node.domain})
        question = Message(
            number, MessageType.EXECUTE, node.session, node.identities, write_body(call)
        )
        if not connector.try_tell(Asked(question, node.session, None)):
            return Denied(wish, Code.UNAVAILABLE, _AWAY)
        self._exchange.witness.deliver(question, node.identities)
        self._waiting[number] = wish, trio.current_time() + OPEN_TIMEOUT
        self._links[wish.port.number] = number
        return None

    def answered(self, answer: Message) -> Verdict | None:
        """Take the connector's answer; None: nobody waits for it any more."""
        wish = self._taken(answer.id)
        if wish is None:
            return None
        self._exchange.witness.deliver(answer, answer.to)
        verdict = self._verdict(wish, answer)
        self._count(_outcome(verdict))
        return verdict

    def _verdict(self, wish: OpenRequest, answer: Message) -> Verdict:
        why = str(answer.body.get("description", ""))
        if answer.code == Code.UNAUTHENTICATED:
            return _refused(wish, why)
        if answer.code != Code.OK:
            _log.warning("login not looked into", runtime=wish.runtime, why=why)
            return Denied(wish, Code.UNAVAILABLE, _AWAY)
        return self._vouched(wish, answer)

    def forget(self, link: int) -> None:
        """Wait for nothing of a link any more: it is gone."""
        number = self._links.get(link)
        if number is not None:
            self._taken(number)

    def deadline(self) -> float:
        """Return when `overdue` has somebody to name."""
        return next((until for _, until in self._waiting.values()), float("inf"))

    def overdue(self) -> list[Denied]:
        """Give up on those who have waited too long."""
        now = trio.current_time()
        late = [number for number, (_, until) in self._waiting.items() if until <= now]
        for _ in late:
            self._count(Outcome.TIMEOUT)
        wishes = [self._taken(number) for number in late]
        return [Denied(wish, Code.UNAVAILABLE, _AWAY) for wish in wishes if wish is not None]

    def _count(self, outcome: Outcome) -> None:
        self._exchange.witness.counters.count(Tally.LOGINS, outcome)

    def _taken(self, number: int) -> OpenRequest | None:
        wish, _ = self._waiting.pop(number, (None, 0.0))
        if wish is not None:
            del self._links[wish.port.number]
        return wish

    def _vouched(self, wish: OpenRequest, answer: Message) -> Verdict:
        wall, now = self._clock(), trio.current_time()
        try:
            identity = read_identity(answer.body.get("value"), wall + self._life)
        except BadMessageError as exc:
            _log.warning("login not understood", runtime=wish.runtime, why=exc.reason)
            return Denied(wish, Code.UNAVAILABLE, _AWAY)
        if identity.until <= wall:
            return _refused(wish, "what vouched for you is over")
        if identity.runtime is not None and identity.runtime != wish.runtime:
            return _refused(wish, f"the token is good for {identity.runtime} only")
        if identity.runtime is None and is_node(wish.runtime):
            # Or any user's token would do to speak for a whole domain.
            return _refused(wish, "a node shows a token that is bound to its address")
        until = now + identity.until - wall
        return Vouched(wish, identity, Credentials(identity.user, identity.issuer, until))


def _outcome(verdict: Verdict) -> Outcome:
    if isinstance(verdict, Vouched):
        return Outcome.OK
    return Outcome.REFUSED if verdict.code == Code.UNAUTHENTICATED else Outcome.FAILED


def _refused(wish: OpenRequest, why: str) -> Denied:
    _log.info("login refused", runtime=wish.runtime, why=why)
    return Denied(wish, Code.UNAUTHENTICATED, why)
