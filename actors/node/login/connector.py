"""The identity connector at `domain://idm.<d>`: validates logins (M-55, CON-01)."""

import math
from typing import Final, TypeAlias

import trio
from typing_extensions import override

from actors.kit.back_ends.requests import Asked
from actors.kit.supervision.actor import Actor
from actors.node.host import NodeHost
from actors.node.login.provider import (
    IdentityProvider,
    LoginRefusedError,
    ProviderAwayError,
)
from actors.node.messages import RuntimeLeft
from specs.addresses.address import host_of, parse
from specs.bodies.session import IdentityCall
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import LOGIN_TIMEOUT, LOGINS_PENDING
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body


def written_identity(identity: Identity) -> JsonObject:
    """Write the identity of a user."""
    roles: list[Json] = [*sorted(identity.roles)]
    written: JsonObject = {"user": identity.user, "issuer": identity.issuer, "roles": roles}
    if math.isfinite(identity.until):
        written["until"] = identity.until
    if identity.runtime is not None:
        written["runtime"] = identity.runtime
    if identity.addresses:
        written["addresses"] = [*sorted(identity.addresses)]
    if identity.key is not None:
        written["key"] = identity.key
    return written


def read_identity(value: Json, until: float) -> Identity:
    """Read an identity from a connector's answer; only the user is required.

    Args:
        value: The value of its answer.
        until: When the login ends at the latest, seconds since the epoch.

    Raises:
        BadMessageError: It names no user, or is not what it should be.
    """
    if not isinstance(value, dict):
        raise BadMessageError("value is no object")
    user = _address(value.get("user"), "user")
    issuer, end = value.get("issuer", host_of(user)), value.get("until", until)
    roles, runtime = value.get("roles", []), value.get("runtime")
    key, addresses = value.get("key"), value.get("addresses", [])
    if not isinstance(addresses, list):
        raise BadMessageError("value.addresses is no list")
    if not isinstance(issuer, str) or not isinstance(roles, list):
        raise BadMessageError("value.issuer or value.roles is not what it should be")
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise BadMessageError("value.until is no time")
    if key is not None and not isinstance(key, str):
        raise BadMessageError("value.key is no thumbprint")
    return Identity(
        user=user,
        issuer=issuer,
        until=min(until, end),
        roles=frozenset(role for role in roles if isinstance(role, str)),
        runtime=None if runtime is None else _address(runtime, "runtime"),
        addresses=frozenset(_address(address, "addresses") for address in addresses),
        key=key,
    )


def _address(value: Json, name: str) -> str:
    try:
        return parse(value).text if isinstance(value, str) else _missing(name)
    except BadUrlError as exc:
        raise BadMessageError(f"value.{name} {exc}") from exc


def _missing(name: str) -> str:
    raise BadMessageError(f"value.{name} is no address")


VALIDATE: Final = "validateAssertion"
"""The one method that a node offers."""

_ELSEWHERE: Final = frozenset({"generateAssertion", "getLoginEndpoint"})
"""Methods of identity providers; a node is none."""

_Message: TypeAlias = Asked | RuntimeLeft


class IdentityConnector(Actor[_Message]):
    """Answers each question once, also if the provider fails; bounded in number.

    Args:
        host: The node.
        provider: Validates logins; outlives the connector.
    """

    def __init__(self, host: NodeHost, provider: IdentityProvider) -> None:
        self._host: Final = host
        self._session: Final = host.addresses.session
        self._provider: Final = provider
        self._pending = 0

    @override
    async def start(self) -> None:
        self._host.bus.attach(self._host.addresses.identities, self.me)

    @override
    async def handle(self, message: Asked | RuntimeLeft) -> None:
        if isinstance(message, RuntimeLeft):
            return
        try:
            assertion = _assertion(message.message)
            key = self._key(message.message)
        except BadMessageError as exc:
            self._answer(message, refuse(message.message, exc.code, exc.reason))
            return
        if self._pending >= LOGINS_PENDING:
            why = f"{LOGINS_PENDING} logins are open; try again"
            self._answer(message, refuse(message.message, Code.UNAVAILABLE, why))
            return
        self._pending += 1
        self.spawn(self._look_into, message, assertion, key)

    def _key(self, message: Message) -> str | None:
        """Return the key that the bearer has proven; only the session manager knows one."""
        params = message.body.get("params")
        key = params.get("key") if isinstance(params, dict) else None
        return key if isinstance(key, str) and message.from_ == self._session else None

    async def _look_into(self, asked: Asked, assertion: str, key: str | None) -> None:
        answer = refuse(asked.message, Code.BACKEND_TIMEOUT, "the identity provider is too slow")
        try:
            with trio.move_on_after(LOGIN_TIMEOUT):
                answer = await self._validated(asked.message, assertion, key)
        finally:
            self._pending -= 1
        self._answer(asked, answer)

    async def _validated(self, message: Message, assertion: str, key: str | None) -> Message:
        try:
            identity = await self._provider.validate(assertion, key)
        except LoginRefusedError as exc:
            return refuse(message, Code.UNAUTHENTICATED, exc.reason, exc.retry_after)
        except ProviderAwayError as exc:
            return refuse(message, Code.BAD_BACKEND, exc.reason)
        return reply_to(message, Code.OK, {"value": written_identity(identity)})

    def _answer(self, asked: Asked, answer: Message) -> None:
        is_own = asked.message.from_ == self._session
        self._host.send(answer, None if is_own else asked.by)


def _assertion(message: Message) -> str:
    """Return what is to be validated.

    Raises:
        BadMessageError: Something else is asked for.
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
