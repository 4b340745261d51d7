"""Login tokens from an identity provider that is reached by an idp-proxy stub (PFY-12).

Requests go to `domain-idp://<domain>` (M-55). When the first token is needed, the runtime fetches
the stub from the catalogue of the domain and runs it in a sandbox. The configured parameters are
passed to the provider unchanged.
"""

from typing import final

import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.stubs import credentials
from specs.addresses.address import domain_of, idp_proxy
from specs.bodies.session import IDENTITY_GUI, OPEN_POPUP, IdentityCall
from specs.jsonvalue import Json, JsonObject
from specs.limits.discovery import GUI_TIMEOUT
from specs.limits.node import TOKEN_TIMEOUT
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_METHOD = "generateAssertion"
_REFUSALS = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


@final
class IdpCredentials(credentials.AskingCredentials):
    """Requests an assertion from the identity provider of a user for each login.

    The provider gets `contents` (the domain whose node is shown the token), `origin` (the runtime),
    `usernameHint` (the user) and `key` (the thumbprint of the runtime's key), and `params`. It
    answers with the token, alone or as `assertion` of an object; or with `loginUrl`, a page that
    the `IdentityGui` of the runtime shows. What the page ends with is the `usernameHint` of a
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
        """Set the port and key of the runtime.

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
            raise credentials.CredentialsError("no runtime has these credentials yet")
        value = await self._generated(port, audience, self._user)
        page = value.get("loginUrl") if isinstance(value, dict) else None
        if isinstance(page, str):
            value = await self._generated(port, audience, await self._shown(port, page))
        token = value.get("assertion") if isinstance(value, dict) else value
        await trio.lowlevel.checkpoint()
        if not isinstance(token, str) or not credentials.is_word(token):
            why = credentials.excess(token) or "there is no token in its answer"
            raise credentials.CredentialsError(
                f"{idp_proxy(domain_of(self._user))} gives no token: {why}"
            )
        return token

    async def _generated(self, port: MiniBusPort, audience: str, hint: Json) -> Json:
        """Ask the provider for an assertion, and return its answer."""
        said: JsonObject = {
            "contents": audience,
            "origin": port.url.rpartition("/")[0],
            "usernameHint": hint,
            "key": self._key,
        }
        call = IdentityCall(_METHOD, {**self._params, **said})
        return await self._executed(port, idp_proxy(domain_of(self._user)), call)

    async def _shown(self, port: MiniBusPort, page: str) -> Json:
        """Have a login page shown, and return what it ended with."""
        to = f"{port.url.rpartition('/')[0]}/{IDENTITY_GUI}"
        return await self._executed(port, to, IdentityCall(OPEN_POPUP, {"urlreq": page}))

    async def _executed(self, port: MiniBusPort, to: str, call: IdentityCall) -> Json:
        """Return the value of an answer.

        Raises:
            CredentialsError: It is a refusal.
        """
        number = self._ids.next(port.url)
        asked = Message(number, MessageType.EXECUTE, port.url, to, write_body(call))
        answer = await port.request(asked)
        if answer.code > LAST_SUCCESS:
            code = Code.UNAUTHENTICATED if answer.code in _REFUSALS else Code.UNAVAILABLE
            hidden = (*self._params.values(), call.params.get("usernameHint"))
            why = credentials.without(
                reason_in(answer), (one for one in hidden if one != self._user)
            )
            raise credentials.CredentialsError(f"{to} answered {answer.code} {why}", code)
        return answer.body.get("value")
