"""Credentials: the token with which a runtime logs in when it opens a session at a node.

A login token opens one session, so a stub requests a token for each session. The
token of the session itself, with which it is resumed, is a different one.

`LoginAttempts` opens the session at the own node before any other message (MN-04).
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import PathInput, as_path, type_checked
from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from specs.addresses.address import domain_of, idp_proxy, session_manager
from specs.bodies.session import (
    IDENTITY_GUI,
    OPEN_POPUP,
    IdentityCall,
    SessionControl,
    SessionParams,
)
from specs.bodies.word import SessionMethod
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits.discovery import GUI_TIMEOUT
from specs.limits.node import TOKEN_CHARS, TOKEN_TIMEOUT
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, TURNED_AWAY, Code
from transports.bodies import write_body


@final
class SessionError(ProtoflyError, public=True):
    """The node of the domain gives a runtime no session.

    Attributes:
        code: Reply code of the node; or of this runtime, such as 503 if the node cannot be reached.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the node gives no session: {reason or code}")
        self.code = code
        self.reason = reason


@final
class ReleaseError(ProtoflyError, public=True):
    """The node does not give back a name of a runtime.

    Attributes:
        code: Reply code: 404 if it is no name of the user, 403 if nobody has logged in.
    """

    def __init__(self, runtime: str, code: int, reason: str) -> None:
        super().__init__(f"the node keeps the name {runtime}: {reason or code}")
        self.code = code


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


_log = get_logger("actors.runtime")


@final
class CredentialsError(ProtoflyError, public=True):
    """No login token is available: wait, or let the operator of the runtime act.

    Args:
        reason: Half a sentence without secrets.
        code: 401 if another attempt does not help, such as after a refusal of the client's
            secret; 503 if it may help.
    """

    def __init__(self, reason: str, code: Code = Code.UNAVAILABLE) -> None:
        super().__init__(f"no login token: {reason}")
        self.reason = reason
        self.code = code


class Credentials(Protocol):
    """The source of the login tokens of a runtime."""

    async def token(self, audience: str) -> str:
        """Return a token for a login; called whenever a session needs one.

        Args:
            audience: Domain whose node gets the token.

        If cancelled, a token may have been made that nobody uses. The runtime cancels it after
        `TOKEN_TIMEOUT` seconds.

        Returns:
            The token; an empty text to open the session without one.

        Raises:
            CredentialsError: No token is available at the moment.
        """
        ...


@final
@attrs.frozen(field_transformer=type_checked)
class GivenToken(Credentials):
    """A token given by the program; where the node accepts each token once, for one session."""

    _token: str = attrs.field(repr=False)

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        return self._token


NO_CREDENTIALS: Final[Credentials] = GivenToken("")
"""Credentials for nodes without login."""


def token_credentials(token: str | None) -> Credentials:
    """Return credentials that have one token; None: credentials without token."""
    return NO_CREDENTIALS if token is None else GivenToken(token)


@final
class TokenFile(Credentials):
    """A file whose token another program renews; it is read each time a session opens."""

    def __init__(self, path: PathInput) -> None:
        self._path = as_path(path, "the token file")

    @override
    async def token(self, audience: str) -> str:
        return await trio.to_thread.run_sync(self.read, abandon_on_cancel=True)

    def read(self) -> str:
        """Read the file; blocks.

        Raises:
            CredentialsError: It cannot be read, or contains no token.
        """
        return read_secret(self._path, "token")


def read_secret(path: Path, kind: str) -> str:
    """Return the one word in a file; blocks.

    Args:
        path: The file.
        kind: Kind of the secret, for errors.

    Raises:
        CredentialsError: The file cannot be read, or has no such word.
    """
    try:
        with path.open("rb") as file:
            text = file.read(TOKEN_CHARS + 2).decode("ascii").strip()
    except OSError as exc:
        why = exc.strerror or "it cannot be read"
        raise CredentialsError(f"cannot use the {kind} file {path}: {why}") from exc
    except UnicodeDecodeError as exc:
        raise CredentialsError(f"cannot use the {kind} file {path}: it holds no {kind}") from exc
    if not is_word(text):
        why = excess(text) or f"it holds no {kind}"
        raise CredentialsError(f"cannot use the {kind} file {path}: {why}")
    return text


def without(why: str, secrets: Iterable[Json]) -> str:
    """Return a provider's reason, or a replacement text if the reason quotes a secret.

    Args:
        why: The reason.
        secrets: The secrets: all texts, also within objects and lists.
    """
    return "it quotes a secret" if any(_quotes(why, secret) for secret in secrets) else why


def _quotes(why: str, secret: Json) -> bool:
    match secret:
        case str():
            return len(secret) >= _SHORTEST and secret in why
        case dict():
            return any(_quotes(why, each) for each in secret.values())
        case list():
            return any(_quotes(why, each) for each in secret)
        case _:
            return False


_SHORTEST: Final = 4
"""Minimum number of characters of a text that is treated as a secret."""

_WORD: Final = re.compile(r"[!-~]+")


def is_word(text: str) -> bool:
    """Return whether a text can be a token: one word of visible characters, not too long."""
    return 0 < len(text) <= TOKEN_CHARS and _WORD.fullmatch(text) is not None


def excess(text: object) -> str:
    """Return half a sentence that says that a text is too long for a token, or an empty text."""
    is_long = isinstance(text, str) and len(text) > TOKEN_CHARS
    return f"it is longer than {TOKEN_CHARS} characters" if is_long else ""


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
