"""Logins of a runtime: how it opens its session at a node, and tokens for that.

`LoginAttempts` opens the session at the own node before any other message (MN-04).
"""

from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from actors.runtime.stubs.credentials import (
    Credentials,
    CredentialsError,
    ReleaseError,
    SessionError,
    excess,
    is_word,
    without,
)
from specs.addresses.address import domain_of, idp_proxy, session_manager
from specs.bodies.session import (
    IDENTITY_GUI,
    OPEN_POPUP,
    IdentityCall,
    SessionControl,
    SessionParams,
)
from specs.bodies.word import SessionMethod
from specs.jsonvalue import Json, JsonObject
from specs.limits.discovery import GUI_TIMEOUT
from specs.limits.node import TOKEN_TIMEOUT
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY, Code
from transports.bodies import write_body

_log: Final = get_logger("actors.runtime")


class LoginAttempts:
    """Opens the session at the node of the own domain, and remembers a refusal.

    Args:
        port: Port that sends the request.
        domain: Domain of the runtime.
        attempts: Maximum number of requests while no answer comes, such as while a user logs in.
    """

    def __init__(self, port: CorePort, domain: str, attempts: int = 1) -> None:
        self._port = port
        self._attempts = attempts
        self._manager = session_manager(domain)
        self._refused: SessionError | None = None

    def take_answer(self, answer: Message) -> None:
        """Remember an answer of the node, to any request, that refuses the session."""
        if answer.code in TURNED_AWAY:
            self._refused = _error(answer)

    async def enter(self, number: int) -> None:
        """Open the session if it is not open; a remembered refusal is reported once.

        Args:
            number: Id of the message that asks.

        If cancelled, the session may still be opened; the answer of the node is dropped.

        Raises:
            SessionError: The node refuses it, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused
        answer = await self._ask(number, SessionControl(SessionMethod.PING), self._attempts)
        if answer.code > LAST_SUCCESS:
            raise _error(answer)

    async def release(self, number: int, runtime: str) -> None:
        """Release a name of the logged-in user at the node.

        Args:
            number: Id of the message that asks.
            runtime: The name: address of the runtime.

        If cancelled, the name may be given back.

        Raises:
            ReleaseError: The node refuses, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        control = SessionControl(SessionMethod.RELEASE, SessionParams(runtime))
        answer = await self._ask(number, control)
        if answer.code > LAST_SUCCESS:
            raise ReleaseError(runtime, answer.code, reason_in(answer))

    async def _ask(self, number: int, control: SessionControl, attempts: int = 1) -> Message:
        body = write_body(control)
        return await self._port.insist(
            Message(number, MessageType.EXECUTE, self._port.url, self._manager, body), attempts
        )


def _error(answer: Message) -> SessionError:
    return SessionError(answer.code, reason_in(answer))


async def obtain_token(credentials: Credentials, audience: str) -> str | CredentialsError:
    """Return a token, or why there is none; an error is logged.

    Args:
        credentials: The source; whatever it raises is caught.
        audience: Domain whose node is shown the token.

    If cancelled, a token may have been made that nobody uses.
    """
    token: object = None
    # A provider may have to ask a user.
    asking = credentials if isinstance(credentials, IdpCredentials) else None
    limit = TOKEN_TIMEOUT if asking is None else asking.patience
    with Crash() as crash, trio.move_on_after(limit) as scope:
        token = await credentials.token(audience)
    if isinstance(token, str) and (token == "" or is_word(token)):
        return token
    failure = _failure(crash.error, token, is_late=scope.cancelled_caught)
    unforeseen = None if failure is crash.error else crash.error
    _log.warning("login token", domain=audience, why=failure.reason, exc_info=unforeseen)
    return failure


def _failure(error: Exception | None, token: object, *, is_late: bool) -> CredentialsError:
    if isinstance(error, CredentialsError):
        return error
    if is_late:
        return CredentialsError("its source gave none in time")
    if error is None:
        return CredentialsError(excess(token) or "its source gave something else")
    return CredentialsError(f"its source raised {type(error).__name__}")


async def token_for_sandbox(credentials: Credentials, audience: str) -> str | None:
    """Return the login token of a stub in a sandbox; None: there is none.

    Args:
        credentials: The source; an error of it is logged.
        audience: Domain whose node is shown the token.

    If cancelled, a token may have been made that nobody uses.
    """
    token = await obtain_token(credentials, audience)
    return token if isinstance(token, str) and token else None


# Login tokens from an identity provider that is reached by an idp-proxy stub (PFY-12).

_METHOD = "generateAssertion"
_REFUSALS = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


@final
class IdpCredentials(Credentials):
    """Requests an assertion from the identity provider of a user for each login.

    The provider gets `contents` (the domain whose node is shown the token), `origin` (the runtime),
    `usernameHint` (the user) and `key` (the thumbprint of the runtime's key), and `params`. It
    answers with the token, alone or as `assertion` of an object; or with `loginUrl`, a page that
    the `IdentityGui` of the runtime shows. The result of the page is the `usernameHint` of a
    second request.

    Attributes:
        patience: Seconds that a token may take.

    Args:
        user: Address of the user; its domain is that of the provider.
        params: Further parameters for the provider, such as a secret of the user.

    Raises:
        ValueError: The address of the user has no domain.
    """

    def __init__(self, user: str, params: JsonObject | None = None) -> None:
        if not domain_of(user):
            raise ValueError(f"{user!r} is no user such as user://idp.example/alice")
        self._user = user
        self._params = params or {}
        self._port: MiniBusPort | None = None
        self._ids = IdSource()
        self._key = ""
        self.patience = TOKEN_TIMEOUT

    @override
    def __repr__(self) -> str:
        return f"IdpCredentials({self._user!r})"

    def ask_by(self, port: MiniBusPort, ids: IdSource, key: str, *, has_gui: bool) -> None:
        """Set the port by which to send requests, and the key of the runtime.

        Args:
            port: Sends the requests.
            ids: Message ids of the runtime.
            key: Thumbprint of the runtime's key.
            has_gui: Whether the runtime can ask its user.
        """
        self.patience = TOKEN_TIMEOUT + (GUI_TIMEOUT if has_gui else 0.0)
        self._port, self._ids, self._key = port, ids, key

    @override
    async def token(self, audience: str) -> str:
        """Request a token from the provider.

        If cancelled, the provider may have issued a token.

        Raises:
            CredentialsError: The provider refuses, or cannot be reached.
        """
        port = self._port
        if port is None:
            raise CredentialsError("no runtime has these credentials yet")
        value = await self._generate_assertion(port, audience, self._user)
        page = value.get("loginUrl") if isinstance(value, dict) else None
        if isinstance(page, str):
            value = await self._generate_assertion(
                port, audience, await self._open_page(port, page)
            )
        token = value.get("assertion") if isinstance(value, dict) else value
        await trio.lowlevel.checkpoint()
        if not isinstance(token, str) or not is_word(token):
            why = excess(token) or "there is no token in its answer"
            raise CredentialsError(f"{idp_proxy(domain_of(self._user))} gives no token: {why}")
        return token

    async def _generate_assertion(self, port: MiniBusPort, audience: str, hint: Json) -> Json:
        """Ask the provider for an assertion, and return its answer."""
        params: JsonObject = {
            "contents": audience,
            "origin": port.url.rpartition("/")[0],
            "usernameHint": hint,
            "key": self._key,
        }
        call = IdentityCall(_METHOD, {**self._params, **params})
        return await self._call(port, idp_proxy(domain_of(self._user)), call)

    async def _open_page(self, port: MiniBusPort, page: str) -> Json:
        """Show a login page, and return its result."""
        to = f"{port.url.rpartition('/')[0]}/{IDENTITY_GUI}"
        return await self._call(port, to, IdentityCall(OPEN_POPUP, {"urlreq": page}))

    async def _call(self, port: MiniBusPort, to: str, call: IdentityCall) -> Json:
        """Return the value of an answer.

        Raises:
            CredentialsError: The answer is a refusal.
        """
        number = self._ids.next(port.url)
        request = Message(number, MessageType.EXECUTE, port.url, to, write_body(call))
        answer = await port.request(request)
        if answer.code > LAST_SUCCESS:
            code = Code.UNAUTHENTICATED if answer.code in _REFUSALS else Code.UNAVAILABLE
            hidden = (*self._params.values(), call.params.get("usernameHint"))
            why = without(reason_in(answer), (each for each in hidden if each != self._user))
            raise CredentialsError(f"{to} answered {answer.code} {why}", code)
        return answer.body.get("value")
