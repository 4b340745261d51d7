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
from actors.runtime.stubs.credentials import Credentials, CredentialsError, is_word, without
from specs.addresses.address import domain_of, idp_proxy
from specs.bodies.session import IdentityCall
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["IdpCredentials"]

_METHOD = "generateAssertion"
_REFUSALS = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND})


@final
class IdpCredentials(Credentials):
    """Requests an assertion from the identity provider of a user for each login.

    The provider gets `contents` (the domain whose node is shown the token), `origin` (the runtime),
    `usernameHint` (the user) and `key` (the thumbprint of the runtime's key), and `params`. It
    answers with the token, alone or as `assertion` of an object.

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

    @override
    def __repr__(self) -> str:
        return f"IdpCredentials({self._user!r})"

    def ask_by(self, port: MiniBusPort, ids: IdSource, key: str) -> None:
        """Set the port and key of the runtime.

        Args:
            port: Sends the requests.
            ids: Message ids of the runtime.
            key: Thumbprint of the runtime's key.
        """
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
        to = idp_proxy(domain_of(self._user))
        said: JsonObject = {
            "contents": audience,
            "origin": port.url.rpartition("/")[0],
            "usernameHint": self._user,
            "key": self._key,
        }
        body = write_body(IdentityCall(_METHOD, {**self._params, **said}))
        number = self._ids.next(port.url)
        answer = await port.request(Message(number, MessageType.EXECUTE, port.url, to, body))
        if answer.code > LAST_SUCCESS:
            code = Code.UNAUTHENTICATED if answer.code in _REFUSALS else Code.UNAVAILABLE
            why = without(reason_in(answer), self._params.values())
            raise CredentialsError(f"{to} answered {answer.code} {why}", code)
        value = answer.body.get("value")
        token = value.get("assertion") if isinstance(value, dict) else value
        await trio.lowlevel.checkpoint()
        if not isinstance(token, str) or not is_word(token):
            raise CredentialsError(f"{to} answered without a token")
        return token
