"""The identity connector at `domain://idm.<d>`: validates logins (M-55, CON-01)."""

import math
from collections import Counter
from typing import Final

import attrs
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.node.components import LocalService
from actors.node.host import NodeHost
from actors.node.login.provider import (
    IdentityProvider,
    LoginRefusedError,
    ProviderAwayError,
)
from specs.addresses.address import canonical
from specs.bodies.session import IdentityCall
from specs.errors import BadMessageError
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import LOGIN_TIMEOUT, LOGINS_PENDING
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

_log = get_logger("actors.node")


def encode_identity(identity: Identity) -> JsonObject:
    """Encode the identity of a user as a JSON object."""
    roles: list[Json] = [*sorted(identity.roles)]
    fields: JsonObject = {"user": identity.user, "issuer": identity.issuer, "roles": roles}
    if math.isfinite(identity.until):
        fields["until"] = identity.until
    if identity.runtime is not None:
        fields["runtime"] = identity.runtime
    if identity.addresses:
        fields["addresses"] = [*sorted(identity.addresses)]
    if identity.key is not None:
        fields["key"] = identity.key
    return fields


def _canonical(identity: Identity) -> Identity:
    """Return an identity with its addresses in canonical form.

    Raises:
        BadUrlError: A text is no address.
    """
    runtime = identity.runtime
    return attrs.evolve(
        identity,
        user=canonical(identity.user),
        runtime=None if runtime is None else canonical(runtime),
        addresses=frozenset(map(canonical, identity.addresses)),
    )


VALIDATE: Final = "validateAssertion"
"""The only method that a node offers."""

_ELSEWHERE: Final = frozenset({"generateAssertion", "getLoginEndpoint"})
"""Methods of identity providers, which a node does not offer."""


class IdentityConnector(LocalService):
    """Validate assertions, each in a task, with a limit on their number.

    Args:
        host: The node.
        provider: Validates logins; outlives the bus.
    """

    def __init__(self, host: NodeHost, provider: IdentityProvider) -> None:
        self._host: Final = host
        self._provider: Final = provider
        self._pending = 0
        self._by_runtime = Counter[str]()

    @override
    def receive(self, message: Message, by: str) -> Message | None:
        assertion, pending = _assertion(message), self._by_runtime
        # Half of the limit is reserved for open requests.
        if pending[by] >= LOGINS_PENDING // 8 or pending.total() >= LOGINS_PENDING // 2:
            return refuse(message, Code.UNAVAILABLE, "too many assertions are open; try again")
        pending[by] += 1
        self._host.bus.spawn(self._answer, message, by, assertion)
        return None

    async def _answer(self, message: Message, by: str, assertion: str) -> None:
        try:
            answer, _ = await self.validate(message, assertion)
        finally:
            self._by_runtime.subtract((by,))
            self._by_runtime += Counter()  # drop the zero counts
        self._host.bus.call(self._host.bus.answer, by, answer)

    async def validate(
        self, question: Message, assertion: str, key: str | None = None
    ) -> tuple[Message, Identity | None]:
        """Return the answer to a request, and the proven identity; None: none is proven.

        If cancelled, the assertion may count as used.

        Args:
            question: The request, from session control or from a runtime.
            assertion: The shown assertion.
            key: Thumbprint of the key that the bearer has proven; None: none.
        """
        if self._pending >= LOGINS_PENDING:
            why = f"{LOGINS_PENDING} logins are open; try again"
            return refuse(question, Code.UNAVAILABLE, why), None
        identity: Identity | None = None
        answer = refuse(question, Code.BACKEND_TIMEOUT, "the identity provider is too slow")
        self._pending += 1
        try:
            # A failure of the provider must not affect other logins.
            with Crash(self._report) as crash, trio.move_on_after(LOGIN_TIMEOUT):
                identity = _canonical(await self._provider.validate(assertion, key))
                answer = reply_to(question, Code.OK, {"value": encode_identity(identity)})
        finally:
            self._pending -= 1
        match crash.error:
            case None:
                pass
            case LoginRefusedError(reason=why, retry_after=pause):
                answer = refuse(question, Code.UNAUTHENTICATED, why, pause)
            case ProviderAwayError(reason=why):
                answer = refuse(question, Code.BAD_BACKEND, why)
            case _:
                answer = refuse(question, Code.BAD_BACKEND, "the identity provider has failed")
        return answer, identity

    def _report(self, error: Exception) -> None:
        if not isinstance(error, LoginRefusedError | ProviderAwayError):
            self._host.monitor.record_crash("idm", error)
            _log.error("identity provider failed", exc_info=error)


def _assertion(message: Message) -> str:
    """Return the assertion of a request.

    Raises:
        BadMessageError: The request is of another method, or has no assertion.
    """
    if message.type is not MessageType.EXECUTE:
        raise BadMessageError(f"an identity connector knows execute, not {message.type}")
    call = read_body(message, IdentityCall)
    if call.method in _ELSEWHERE:
        why = f"{call.method} is what an identity provider does; this node only asks {VALIDATE}"
        raise BadMessageError(why, Code.NOT_FOUND)
    if call.method != VALIDATE:
        raise BadMessageError(f"no method {call.method!r} here, only {VALIDATE}", Code.NOT_FOUND)
    assertion = call.params.get("assertion")
    if not isinstance(assertion, str):
        raise BadMessageError("params.assertion is missing or no text")
    return assertion
